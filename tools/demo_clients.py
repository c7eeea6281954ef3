"""The two libraries of the demonstration behind one face: send records, read all of them back."""

import logging
from collections.abc import Callable
from typing import Any, Protocol

from confluent_kafka import Consumer, KafkaError, Producer
from confluent_kafka import TopicPartition as ConfluentPartition
from kafka import KafkaConsumer, KafkaProducer
from kafka import TopicPartition as PythonPartition

TOPIC = "demo"
WAIT_SECONDS = 120.0

# A killed broker is the point here; the libraries need not say that it is gone.
logging.getLogger("kafka").setLevel(logging.CRITICAL)

OnDone = Callable[[str | None], None]
"""Called once per record: None when it was acknowledged, else the error."""


class Client(Protocol):
    """One library on one broker."""

    name: str

    def send(self, value: bytes, on_done: OnDone) -> None:
        """Send a record with acks=all, idempotently; retries are the library's."""
        ...

    def serve(self, seconds: float) -> None:
        """Let the library call back for up to `seconds`, if it needs a thread for that."""
        ...

    def flush(self) -> None:
        """Wait until every record has its answer."""
        ...

    def read_all(self) -> list[bytes]:
        """Every record of the topic, from the beginning, without a group."""
        ...


class ConfluentClient:
    """librdkafka, through confluent-kafka."""

    name = "confluent-kafka"

    def __init__(self, bootstrap: str) -> None:
        self._bootstrap = bootstrap
        self._producer = Producer(
            {
                "bootstrap.servers": bootstrap,
                "enable.idempotence": True,
                "linger.ms": 2,
                "reconnect.backoff.max.ms": 200,
                "log_level": 0,
            }
        )

    def send(self, value: bytes, on_done: OnDone) -> None:
        def done(error: KafkaError | None, message: Any) -> None:
            on_done(None if error is None else error.str())

        self._producer.produce(TOPIC, value, on_delivery=done)
        self._producer.poll(0)

    def serve(self, seconds: float) -> None:
        self._producer.poll(seconds)

    def flush(self) -> None:
        self._producer.flush(WAIT_SECONDS)

    def read_all(self) -> list[bytes]:
        consumer = Consumer(
            {
                "bootstrap.servers": self._bootstrap,
                "group.id": "none",
                "enable.auto.commit": False,
                "enable.partition.eof": True,
                "log_level": 0,
            }
        )
        partitions = consumer.list_topics(TOPIC, timeout=WAIT_SECONDS).topics[TOPIC].partitions
        consumer.assign([ConfluentPartition(TOPIC, partition, 0) for partition in partitions])
        values: list[bytes] = []
        at_end = 0
        while at_end < len(partitions):
            for message in consumer.consume(10_000, timeout=1.0):
                error = message.error()
                if error is None:
                    values.append(message.value() or b"")
                elif error.code() == KafkaError._PARTITION_EOF:
                    at_end += 1
        consumer.close()
        return values


class PythonClient:
    """kafka-python."""

    name = "kafka-python"

    def __init__(self, bootstrap: str) -> None:
        self._bootstrap = bootstrap
        self._producer = KafkaProducer(
            bootstrap_servers=bootstrap,
            enable_idempotence=True,
            acks="all",
            linger_ms=2,
            reconnect_backoff_max_ms=200,
            delivery_timeout_ms=int(WAIT_SECONDS * 1000),
        )

    def send(self, value: bytes, on_done: OnDone) -> None:
        future = self._producer.send(TOPIC, value)
        future.add_callback(lambda metadata: on_done(None))
        future.add_errback(lambda error: on_done(repr(error)))

    def serve(self, seconds: float) -> None:
        """It has a thread of its own for that."""

    def flush(self) -> None:
        self._producer.flush(WAIT_SECONDS)

    def read_all(self) -> list[bytes]:
        consumer = KafkaConsumer(bootstrap_servers=self._bootstrap, group_id=None)
        numbers = consumer.partitions_for_topic(TOPIC) or ()
        partitions = [PythonPartition(TOPIC, number) for number in sorted(numbers)]
        consumer.assign(partitions)
        consumer.seek_to_beginning(*partitions)
        ends = consumer.end_offsets(partitions)
        values: list[bytes] = []
        while any(consumer.position(partition) < ends[partition] for partition in partitions):
            for records in consumer.poll(timeout_ms=1000, max_records=10_000).values():
                values += [record.value for record in records]
        consumer.close()
        return values


def create_topic(bootstrap: str, partitions: int) -> None:
    """Create the topic and wait for its leaders."""
    from confluent_kafka.admin import AdminClient, NewTopic

    admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 0})
    created = admin.create_topics([NewTopic(TOPIC, partitions, 1)], operation_timeout=WAIT_SECONDS)
    created[TOPIC].result(WAIT_SECONDS)
