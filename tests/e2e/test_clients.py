"""Unmodified clients create topics, produce with every codec and acks, and read it all back."""

import random
import string
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.broker_process import BrokerProcess
from tests.e2e.clients.aio import Aiokafka
from tests.e2e.clients.client import Client, Read, Sent
from tests.e2e.clients.confluent import Confluent
from tests.e2e.clients.java_console import JavaConsole
from tests.e2e.clients.kafka_python import KafkaPython
from tests.e2e.clients.kcat import Kcat
from tests.tools import need

CLIENTS: list[tuple[Client, str | None]] = [
    (Confluent(), None),
    (KafkaPython(), None),
    (Aiokafka(), None),
    (Kcat(), "kcat"),
    (JavaConsole(), "java"),
]
CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
ACKS = ("0", "1", "all")


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    directory: Path = tmp_path_factory.mktemp("clients")
    with BrokerProcess(directory, {"num.partitions": "1"}) as running:
        yield running


def _choose(request: pytest.FixtureRequest) -> Client:
    chosen, tool = request.param
    if tool is not None:
        need(tool)
    return chosen


@pytest.fixture(params=CLIENTS, ids=[client.name for client, _ in CLIENTS])
def client(request: pytest.FixtureRequest) -> Client:
    return _choose(request)


TIME_CLIENTS = [row for row in CLIENTS if row[0].can_read_by_time]


@pytest.fixture(params=TIME_CLIENTS, ids=[client.name for client, _ in TIME_CLIENTS])
def time_client(request: pytest.FixtureRequest) -> Client:
    return _choose(request)


def some_records(count: int, seed: int) -> list[Sent]:
    """Random text with a timestamp a second apart each, so that times can be looked up."""
    source = random.Random(seed)
    now_ms = int(time.time() * 1000) - count * 1000
    alphabet = string.ascii_letters + string.digits
    return [
        Sent(
            f"key-{number}".encode(),
            "".join(source.choices(alphabet, k=source.randrange(1, 400))).encode(),
            now_ms + number * 1000,
        )
        for number in range(count)
    ]


@pytest.mark.timeout(240)
def test_every_codec_and_acks_comes_back(broker: BrokerProcess, client: Client) -> None:
    topic = f"codecs-{client.name}"
    if client.can_create_topics:
        client.create_topic(broker.bootstrap, topic)
    combinations = [(codec, acks) for codec in CODECS for acks in ACKS]
    sent: list[Sent] = []
    for number, (codec, acks) in enumerate(combinations):
        records = some_records(20, number)
        client.produce(broker.bootstrap, topic, records, codec, acks)
        sent += records
    expected = [Read(n, record.key, record.value) for n, record in enumerate(sent)]
    assert client.read_from_start(broker.bootstrap, topic, len(expected)) == expected
    middle = len(expected) // 2 + 3
    tail = expected[middle:]
    assert client.read_from_offset(broker.bootstrap, topic, middle, len(tail)) == tail


def test_a_time_is_found(broker: BrokerProcess, time_client: Client) -> None:
    topic = f"times-{time_client.name}"
    writer = time_client if time_client.can_set_timestamps else Confluent()
    Confluent().create_topic(broker.bootstrap, topic)
    records = some_records(50, 7)
    writer.produce(broker.bootstrap, topic, records, "none", "all")
    expected = [Read(n, record.key, record.value) for n, record in enumerate(records)][31:]
    asked_ms = records[30].timestamp_ms + 1
    found = time_client.read_from_time(broker.bootstrap, topic, asked_ms, len(expected))
    assert found == expected
