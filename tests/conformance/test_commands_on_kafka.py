"""What our broker does not serve yet is tried on a real Kafka 3.9.2: settings, groups, records."""

import json
from collections.abc import Iterator

import kafka
import pytest

from barnabas.admin.addresses import parse_addresses
from barnabas.client.configs import (
    ConfigSource,
    Resource,
    ResourceType,
    describe_configs,
    replace_configs,
)
from barnabas.client.groups import delete_offsets, fetch_offsets
from barnabas.client.offsets import EARLIEST, list_offsets
from barnabas.client.producer import NewRecord, Producer
from barnabas.client.topics import NewTopic, create_topics, delete_records
from barnabas.model.ids import TopicPartition
from barnabas.node.blocking_client import BlockingClient
from tests.e2e.command_runs import run_barnabas
from tests.oracles.kafka import running_kafka
from tests.tools import need

T0 = TopicPartition("t", 0)


@pytest.fixture(scope="module")
def bootstrap(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    need("java")
    with running_kafka(tmp_path_factory.mktemp("kafka"), {"num.partitions": "2"}) as port:
        yield f"127.0.0.1:{port}"


@pytest.fixture
def client(bootstrap: str) -> Iterator[BlockingClient]:
    with BlockingClient(parse_addresses(bootstrap)) as connected:
        yield connected


def _run(bootstrap: str, *arguments: str) -> tuple[int, list[dict[str, object]], str]:
    run = run_barnabas(*arguments, "--output", "json", "--bootstrap-server", bootstrap)
    return run.returncode, [json.loads(line) for line in run.stdout.splitlines()], run.stderr


def _fill(client: BlockingClient, topic: str) -> None:
    client.run(create_topics(client.cluster, [NewTopic(topic, 2, 1)]))
    records = [NewRecord(1_700_000_000_000 + at, b"x", partition=at % 2) for at in range(20)]
    client.run(Producer(client.cluster).send(topic, records))


def test_settings_are_altered_key_by_key(bootstrap: str, client: BlockingClient):
    _fill(client, "settings")
    words = ("configs", "alter", "topic", "settings")
    assert (
        _run(bootstrap, *words, "--set", "retention.ms=9", "--set", "cleanup.policy=compact")[0]
        == 0
    )
    assert (
        _run(bootstrap, *words, "--unset", "retention.ms", "--append", "cleanup.policy=delete")[0]
        == 0
    )
    _, rows, _ = _run(bootstrap, "configs", "describe", "topic", "settings")
    assert [(row["key"], row["value"]) for row in rows] == [("cleanup.policy", "compact,delete")]
    code, _, said = _run(bootstrap, *words, "--set", "x=y")
    assert (code, "Unknown topic config name: x" in said) == (1, True)
    resource = Resource(ResourceType.TOPIC, "settings")
    assert client.run(replace_configs(client.cluster, resource, {"flush.ms": "7"})).is_ok
    own = [
        (entry.name, entry.value)
        for entry in client.run(describe_configs(client.cluster, resource))
        if entry.source is ConfigSource.DYNAMIC_TOPIC_CONFIG
    ]
    assert own == [("flush.ms", "7")]


def test_a_live_group_is_shown_and_guarded(bootstrap: str, client: BlockingClient):
    _fill(client, "t")
    member = kafka.KafkaConsumer(
        "t", bootstrap_servers=bootstrap, group_id="g", auto_offset_reset="earliest"
    )
    try:
        read = 0
        while read < 20:
            read += sum(len(records) for records in member.poll(1000).values())
        member.commit()
        _, rows, _ = _run(bootstrap, "groups", "describe", "g")
        assert [(row["partition"], row["committed"], row["lag"]) for row in rows] == [
            (0, 10, 0),
            (1, 10, 0),
        ]
        _, (row,), _ = _run(bootstrap, "groups", "describe", "g", "--members")
        assert row["partitions"] == ["t-0", "t-1"]
        reset = ("groups", "reset-offsets", "g", "--to-earliest", "--execute")
        code, _, said = _run(bootstrap, *reset)
        assert (code, "it is live: Stable with 1 members" in said) == (4, True)
        assert _run(bootstrap, "groups", "delete", "g")[0] == 4
    finally:
        member.close()
    _, rows, _ = _run(bootstrap, "groups", "reset-offsets", "g", "--shift-by", "-3")
    assert [(row["committed"], row["new"]) for row in rows] == [(10, 7), (10, 7)]
    assert client.run(fetch_offsets(client.cluster, "g"))[T0].offset == 10
    _run(
        bootstrap, "groups", "reset-offsets", "g", "--topic", "t:0", "--to-offset", "4", "--execute"
    )
    committed = client.run(fetch_offsets(client.cluster, "g"))
    assert {place.partition: each.offset for place, each in committed.items()} == {0: 4, 1: 10}
    assert client.run(delete_offsets(client.cluster, "g", [T0]))[T0].is_ok
    assert T0 not in client.run(fetch_offsets(client.cluster, "g"))
    assert _run(bootstrap, "groups", "delete", "g")[0] == 0
    code, _, said = _run(bootstrap, "groups", "describe", "g")
    assert (code, "the cluster has no such group" in said) == (1, True)


def test_records_are_cut(client: BlockingClient):
    _fill(client, "cut")
    place = TopicPartition("cut", 0)
    assert client.run(delete_records(client.cluster, {place: 6})) == {place: 6}
    found = client.run(list_offsets(client.cluster, {place: EARLIEST}))
    assert found[place].offset == 6
