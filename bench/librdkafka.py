"""The producer that many clients are made of, with payloads that are read back and compared."""

import logging
import random
import time
from typing import Any, NamedTuple

from bench.brokers import PARTITIONS, TOPIC, BenchBroker

PAYLOAD_BYTES = 100
SECONDS_MAX = 60.0


class ProducerFigures(NamedTuple):
    """What it took to have all records acknowledged, and whether they were read back equal."""

    records_per_second: float
    cpu_us_per_record: float
    lost_or_changed: int


def quiet(settings: dict[str, Any]) -> dict[str, Any]:
    """Settings of a client that keeps what it tells out of the table."""
    logger = logging.getLogger("bench.librdkafka")
    logger.addHandler(logging.NullHandler())
    logger.propagate = False
    return {**settings, "logger": logger}


def produce_and_read_back(broker: BenchBroker, *, linger_ms: int, records: int) -> ProducerFigures:
    """Random payloads, so that a byte that went astray on the way to the disk is seen."""
    from confluent_kafka import Producer

    noise = random.Random(linger_ms).randbytes(records + PAYLOAD_BYTES)
    acknowledged: dict[tuple[int, int], int] = {}
    producer = Producer(
        quiet(
            {
                "bootstrap.servers": f"127.0.0.1:{broker.port}",
                "linger.ms": linger_ms,
                "acks": "all",
                "queue.buffering.max.messages": 100_000,
            }
        )
    )

    def note(index: int) -> Any:
        def delivered(error: object, message: Any) -> None:
            if error is None:
                acknowledged[message.partition(), message.offset()] = index

        return delivered

    cpu_before, begun = broker.cpu_seconds(), time.perf_counter()
    for index in range(records):
        payload = noise[index : index + PAYLOAD_BYTES]
        while True:
            try:
                producer.produce(
                    TOPIC, payload, partition=index % PARTITIONS, on_delivery=note(index)
                )
                break
            except BufferError:
                producer.poll(0.1)
        if index % 1000 == 0:
            producer.poll(0)
    producer.flush(SECONDS_MAX)
    seconds = time.perf_counter() - begun
    cpu = broker.cpu_seconds() - cpu_before
    missing = records - len(acknowledged)
    return ProducerFigures(
        records_per_second=records / seconds,
        cpu_us_per_record=cpu * 1e6 / records,
        lost_or_changed=missing + _count_unread(broker, acknowledged, noise),
    )


def _count_unread(
    broker: BenchBroker, acknowledged: dict[tuple[int, int], int], noise: bytes
) -> int:
    """How many acknowledged records are not in the log as they were sent."""
    from confluent_kafka import Consumer, TopicPartition

    consumer = Consumer(
        quiet(
            {
                "bootstrap.servers": f"127.0.0.1:{broker.port}",
                "group.id": "bench",
                "enable.auto.commit": False,
            }
        )
    )
    starts: dict[int, int] = {}
    for partition, offset in acknowledged:
        starts[partition] = min(starts.get(partition, offset), offset)
    consumer.assign([TopicPartition(TOPIC, part, offset) for part, offset in starts.items()])
    unread = dict(acknowledged)
    deadline = time.monotonic() + SECONDS_MAX
    while unread and time.monotonic() < deadline:
        for message in consumer.consume(10_000, timeout=0.2):
            place = message.partition(), message.offset()
            index = unread.get(place)
            if index is not None and message.value() == noise[index : index + PAYLOAD_BYTES]:
                del unread[place]
    consumer.close()
    return len(unread)
