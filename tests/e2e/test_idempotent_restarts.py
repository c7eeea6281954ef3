"""Idempotent producers go through kill -9 and restarts: nothing lost, nothing twice, no error."""

import subprocess
from collections.abc import Iterator
from pathlib import Path

import confluent_kafka
import pytest

from tests.e2e.broker_process import BrokerProcess
from tests.e2e.clients.confluent import Confluent
from tests.tools import java_command, need

KILLS = 5
RECORDS = 60_000
KILL_EVERY = RECORDS // (KILLS + 1)


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[BrokerProcess]:
    with BrokerProcess(tmp_path, {"num.partitions": "1"}) as running:
        yield running


def values_in(broker: BrokerProcess, topic: str) -> list[bytes]:
    return [row.value for row in Confluent().read_from_start(broker.bootstrap, topic, RECORDS)]


def end_offset(broker: BrokerProcess, topic: str) -> int:
    consumer = confluent_kafka.Consumer(
        {"bootstrap.servers": broker.bootstrap, "group.id": "unused"}
    )
    try:
        partition = confluent_kafka.TopicPartition(topic, 0)
        return int(consumer.get_watermark_offsets(partition, timeout=20)[1])
    finally:
        consumer.close()


@pytest.mark.timeout(240)
def test_librdkafka_goes_through_five_kills(broker: BrokerProcess) -> None:
    topic = "idempotent-librdkafka"
    Confluent().create_topic(broker.bootstrap, topic)
    acknowledged: list[bytes] = []
    problems: list[str] = []
    producer = confluent_kafka.Producer(
        {
            "bootstrap.servers": broker.bootstrap,
            "enable.idempotence": True,
            "linger.ms": 1,
            "batch.num.messages": 200,
            "reconnect.backoff.max.ms": 200,
            "message.timeout.ms": 60_000,
            "queue.buffering.max.messages": 2_000,
        }
    )

    def on_delivery(
        error: confluent_kafka.KafkaError | None, message: confluent_kafka.Message
    ) -> None:
        if error is not None:
            problems.append(str(error))
        else:
            acknowledged.append(message.value())

    kills = 0
    for number in range(RECORDS):
        while True:
            try:
                producer.produce(
                    topic, value=b"record-%d" % number, partition=0, on_delivery=on_delivery
                )
                break
            except BufferError:
                producer.poll(0.05)
        producer.poll(0)
        if kills < KILLS and len(acknowledged) >= KILL_EVERY * (kills + 1):
            broker.kill()
            kills += 1
            broker.start()
    assert producer.flush(60) == 0
    assert (kills, problems) == (KILLS, [])
    expected = [b"record-%d" % number for number in range(RECORDS)]
    assert acknowledged == expected
    assert values_in(broker, topic) == expected
    assert end_offset(broker, topic) == RECORDS


@pytest.mark.timeout(240)
def test_java_goes_through_five_kills(broker: BrokerProcess) -> None:
    need("java")
    topic = "idempotent-java"
    Confluent().create_topic(broker.bootstrap, topic)
    program = Path(__file__).parent.parent / "oracles" / "IdempotentProducer.java"
    command = java_command(program, broker.bootstrap, topic, str(RECORDS))
    kills = 0
    lines: list[str] = []
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as producer:
        assert producer.stdout is not None
        for line in producer.stdout:
            lines.append(line)
            is_progress = line.startswith("acknowledged ")
            if is_progress and kills < KILLS and int(line.split()[1]) >= KILL_EVERY * (kills + 1):
                broker.kill()
                kills += 1
                broker.start()
    assert producer.returncode == 0
    assert kills == KILLS
    assert lines[-1] == f"done {RECORDS} errors 0\n"
    assert [line for line in lines if line.startswith("error")] == []
    assert values_in(broker, topic) == [b"record-%d" % number for number in range(RECORDS)]
    assert end_offset(broker, topic) == RECORDS
