"""confluent-kafka: librdkafka behind Python."""

from collections.abc import Sequence

import confluent_kafka
from confluent_kafka.admin import AdminClient, NewTopic

from tests.e2e.clients.client import Read, Sent

SECONDS = 20.0


class Confluent:
    """Producer, consumer and admin of confluent-kafka."""

    name = "confluent-kafka"
    can_create_topics = True
    can_read_by_time = True
    can_set_timestamps = True

    def create_topic(self, bootstrap: str, topic: str) -> None:
        admin = AdminClient({"bootstrap.servers": bootstrap})
        made = admin.create_topics([NewTopic(topic, 1, 1)], operation_timeout=SECONDS)
        made[topic].result(SECONDS)

    def produce(
        self, bootstrap: str, topic: str, records: Sequence[Sent], codec: str, acks: str
    ) -> None:
        problems: list[str] = []
        producer = confluent_kafka.Producer(
            {
                "bootstrap.servers": bootstrap,
                "compression.codec": codec,
                "acks": acks,
                "linger.ms": 5,
            }
        )

        def on_delivery(error: object, message: object) -> None:
            if error is not None:
                problems.append(str(error))

        for record in records:
            producer.produce(
                topic,
                key=record.key,
                value=record.value,
                partition=0,
                timestamp=record.timestamp_ms,
                on_delivery=on_delivery,
            )
        left = producer.flush(SECONDS)
        assert (left, problems) == (0, [])

    def read_from_start(self, bootstrap: str, topic: str, count: int) -> list[Read]:
        return self._read(bootstrap, topic, confluent_kafka.OFFSET_BEGINNING, count)

    def read_from_offset(self, bootstrap: str, topic: str, offset: int, count: int) -> list[Read]:
        return self._read(bootstrap, topic, offset, count)

    def read_from_time(
        self, bootstrap: str, topic: str, timestamp_ms: int, count: int
    ) -> list[Read]:
        return self._read(bootstrap, topic, None, count, timestamp_ms)

    def _read(
        self, bootstrap: str, topic: str, offset: int | None, count: int, timestamp_ms: int = 0
    ) -> list[Read]:
        consumer = confluent_kafka.Consumer(
            {
                "bootstrap.servers": bootstrap,
                "group.id": "unused",
                "enable.auto.commit": False,
                "check.crcs": True,
            }
        )
        try:
            if offset is None:
                asked = [confluent_kafka.TopicPartition(topic, 0, timestamp_ms)]
                offset = consumer.offsets_for_times(asked, timeout=SECONDS)[0].offset
            consumer.assign([confluent_kafka.TopicPartition(topic, 0, offset)])
            found: list[Read] = []
            while len(found) < count:
                messages = consumer.consume(count - len(found), timeout=SECONDS)
                assert messages, f"only {len(found)} of {count} records came"
                for message in messages:
                    assert message.error() is None, message.error()
                    found.append(Read(message.offset(), message.key(), message.value()))
            return found
        finally:
            consumer.close()
