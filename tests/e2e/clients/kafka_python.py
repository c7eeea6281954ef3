"""kafka-python: a client in Python alone."""

from collections.abc import Sequence

from kafka import KafkaConsumer, KafkaProducer, TopicPartition
from kafka.admin import KafkaAdminClient, NewTopic

from tests.e2e.clients.client import Read, Sent

SECONDS = 20.0


class KafkaPython:
    """Producer, consumer and admin of kafka-python."""

    name = "kafka-python"
    can_create_topics = True
    can_read_by_time = True
    can_set_timestamps = True

    def create_topic(self, bootstrap: str, topic: str) -> None:
        admin = KafkaAdminClient(bootstrap_servers=bootstrap)
        try:
            admin.create_topics([NewTopic(topic, num_partitions=1, replication_factor=1)])
        finally:
            admin.close()

    def produce(
        self, bootstrap: str, topic: str, records: Sequence[Sent], codec: str, acks: str
    ) -> None:
        producer = KafkaProducer(
            bootstrap_servers=bootstrap,
            compression_type=None if codec == "none" else codec,
            acks=acks if acks == "all" else int(acks),
            enable_idempotence=False,
            linger_ms=5,
        )
        try:
            sent = [
                producer.send(
                    topic,
                    key=record.key,
                    value=record.value,
                    partition=0,
                    timestamp_ms=record.timestamp_ms,
                )
                for record in records
            ]
            producer.flush(SECONDS)
            for future in sent:
                future.get(SECONDS)
        finally:
            producer.close()

    def read_from_start(self, bootstrap: str, topic: str, count: int) -> list[Read]:
        return self._read(bootstrap, topic, 0, count)

    def read_from_offset(self, bootstrap: str, topic: str, offset: int, count: int) -> list[Read]:
        return self._read(bootstrap, topic, offset, count)

    def read_from_time(
        self, bootstrap: str, topic: str, timestamp_ms: int, count: int
    ) -> list[Read]:
        return self._read(bootstrap, topic, None, count, timestamp_ms)

    def _read(
        self, bootstrap: str, topic: str, offset: int | None, count: int, timestamp_ms: int = 0
    ) -> list[Read]:
        consumer = KafkaConsumer(
            bootstrap_servers=bootstrap,
            enable_auto_commit=False,
            check_crcs=True,
            consumer_timeout_ms=int(SECONDS * 1000),
        )
        try:
            partition = TopicPartition(topic, 0)
            consumer.assign([partition])
            if offset is None:
                offset = consumer.offsets_for_times({partition: timestamp_ms})[partition].offset
            consumer.seek(partition, offset)
            found: list[Read] = []
            for message in consumer:
                found.append(Read(message.offset, message.key, message.value))
                if len(found) == count:
                    break
            assert len(found) == count, f"only {len(found)} of {count} records came"
            return found
        finally:
            consumer.close()
