"""Groups of real clients: two members share a topic, and go on where they were after kill -9."""

import asyncio
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from queue import Queue
from threading import Event, Thread
from typing import Any

import aiokafka
import confluent_kafka
import kafka
import pytest

from tests.e2e.broker_process import BrokerProcess

PARTITIONS = 4
RECORDS = 400
SECONDS = 60.0
SETTINGS = {
    "num.partitions": str(PARTITIONS),
    "offsets.topic.replication.factor": "1",
    "offsets.topic.num.partitions": "5",
    "group.initial.rebalance.delay.ms": "0",
}
TOPIC = "shared"
GROUP = "readers"


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[BrokerProcess]:
    with BrokerProcess(tmp_path, SETTINGS) as running:
        yield running


def produce(broker: BrokerProcess, first: int) -> list[bytes]:
    """RECORDS values from a number on, spread over all partitions."""
    values = [b"value-%d" % number for number in range(first, first + RECORDS)]
    producer = confluent_kafka.Producer({"bootstrap.servers": broker.bootstrap})
    for number, value in enumerate(values):
        producer.produce(TOPIC, value=value, partition=number % PARTITIONS)
    assert producer.flush(30) == 0
    return values


def until(is_reached: Callable[[], bool], step: Callable[[], object], what: str) -> None:
    """Take steps until it is so; each step waits for something itself."""
    deadline = time.monotonic() + SECONDS
    while not is_reached():
        assert time.monotonic() < deadline, f"{what}: not within {SECONDS:.0f} s"
        step()


class ConfluentMember:
    """A member that is librdkafka's consumer; it commits when it is told to."""

    def __init__(self, broker: BrokerProcess) -> None:
        self.values: list[bytes] = []
        self._consumer = confluent_kafka.Consumer(
            {
                "bootstrap.servers": broker.bootstrap,
                "group.id": GROUP,
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
                "session.timeout.ms": 10_000,
                "heartbeat.interval.ms": 500,
                "reconnect.backoff.max.ms": 200,
            }
        )
        self._consumer.subscribe([TOPIC])

    def poll(self) -> None:
        message = self._consumer.poll(0.1)
        if message is not None and message.error() is None:
            self.values.append(message.value())

    def partitions(self) -> int:
        return len(self._consumer.assignment())

    def commit(self) -> None:
        self._consumer.commit(asynchronous=False)

    def close(self) -> None:
        self._consumer.close()


class PythonMember:
    """A member that is kafka-python's consumer, on a thread of its own as its users have it.

    Two of them polled in turn by one thread rejoin for ever: a join that is answered between two
    polls is begun anew by the second.
    """

    def __init__(self, broker: BrokerProcess) -> None:
        self.values: list[bytes] = []
        self._partitions = 0
        self._wishes: Queue[str] = Queue()
        self._turned = Event()
        self._done = Event()
        self._thread = Thread(target=self._run, args=(broker.bootstrap,), daemon=True)
        self._thread.start()

    def _run(self, bootstrap: str) -> None:
        consumer: Any = kafka.KafkaConsumer(
            TOPIC,
            bootstrap_servers=bootstrap,
            group_id=GROUP,
            auto_offset_reset="earliest",
            enable_auto_commit=False,
            session_timeout_ms=10_000,
            heartbeat_interval_ms=500,
        )
        wish = ""
        while wish != "close":
            for records in consumer.poll(timeout_ms=200).values():
                self.values += [record.value for record in records]
            self._partitions = len(consumer.assignment())
            self._turned.set()
            wish = "" if self._wishes.empty() else self._wishes.get()
            if wish == "commit":
                consumer.commit()
                self._done.set()
        consumer.close()

    def poll(self) -> None:
        self._turned.clear()
        self._turned.wait(1)

    def partitions(self) -> int:
        return self._partitions

    def commit(self) -> None:
        self._wishes.put("commit")
        assert self._done.wait(SECONDS), "no commit"

    def close(self) -> None:
        self._wishes.put("close")
        self._thread.join(SECONDS)
        assert not self._thread.is_alive()


Member = ConfluentMember | PythonMember


@pytest.mark.timeout(240)
@pytest.mark.parametrize("client", [ConfluentMember, PythonMember])
def test_two_members_share_a_topic_and_resume_after_kill_9(
    broker: BrokerProcess, client: type[Member]
) -> None:
    first_values = produce(broker, 0)
    one = client(broker)
    members: list[Member] = [one]

    def poll_all() -> None:
        for member in members:
            member.poll()

    until(lambda: one.partitions() == PARTITIONS, poll_all, "the first member has all partitions")
    members.append(client(broker))
    halves = [PARTITIONS // 2] * 2
    until(
        lambda: [member.partitions() for member in members] == halves,
        poll_all,
        "two members share the partitions",
    )

    def seen() -> set[bytes]:
        return {value for member in members for value in member.values}

    until(lambda: seen() >= set(first_values), poll_all, "all of the first records are read")
    for member in members:
        member.commit()
    broker.kill()
    broker.start()
    for member in members:
        member.values.clear()
    second_values = produce(broker, RECORDS)
    until(lambda: seen() >= set(second_values), poll_all, "all of the second records are read")
    assert seen() == set(second_values), "nothing that was committed comes again"
    for member in members:
        member.close()


@pytest.mark.timeout(120)
def test_aiokafka_resumes_where_its_group_was(broker: BrokerProcess) -> None:
    first_values = produce(broker, 0)

    async def read(count: int) -> list[bytes]:
        consumer: Any = aiokafka.AIOKafkaConsumer(
            TOPIC,
            bootstrap_servers=broker.bootstrap,
            group_id=GROUP,
            auto_offset_reset="earliest",
            enable_auto_commit=False,
        )
        await consumer.start()
        try:
            values: list[bytes] = []
            while len(values) < count:
                record = await asyncio.wait_for(consumer.getone(), SECONDS)
                values.append(record.value)
            await consumer.commit()
            return values
        finally:
            await consumer.stop()

    assert sorted(asyncio.run(read(RECORDS))) == sorted(first_values)
    broker.kill()
    broker.start()
    second_values = produce(broker, RECORDS)
    assert sorted(asyncio.run(read(RECORDS))) == sorted(second_values)
