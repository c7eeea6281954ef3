"""Topics asked for over the wire: what is written, who is answered what, and when."""

import json
from pathlib import Path
from typing import Any

import pytest

from barnabas.formats.wire.api_keys import ApiKey
from barnabas.formats.wire.generated.create_topics import CreatableTopic, CreateTopicsRequest
from barnabas.formats.wire.generated.delete_topics import DeleteTopicsRequest, DeleteTopicState
from barnabas.formats.wire.generated.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
)
from barnabas.formats.znodes.uuids import uuid_from_text
from barnabas.model.error_codes import ErrorCode
from barnabas.model.ids import TopicPartition
from barnabas.model.topic_config_keys import TOPIC_KEYS
from barnabas.model.znode import Check, Create, CreateMode, SetData
from tests.behaviours import behaviour
from tests.worlds.cluster_world import ClusterWorld

E = ErrorCode
RECORDED = Path(__file__).parents[1] / "vectors" / "controller" / "a2-create-refusals.jsonl"


@pytest.fixture
def world() -> ClusterWorld:
    """Three brokers; the first is the controller."""
    world = ClusterWorld()
    world.add_brokers(1, 2, 3)
    return world


def topic_writes(world: ClusterWorld) -> list[Any]:
    """What was written to the store for topics, by anybody, in order."""
    return [
        operation
        for _, operation in world.written
        if isinstance(operation, Create | SetData)
        and operation.path.startswith(("/brokers/topics/", "/config/topics/", "/admin/"))
    ]


# -- creation ------------------------------------------------------------------------------------


@behaviour("C3")
def test_only_the_controller_takes_requests_about_topics(world: ClusterWorld):
    world.create("t", 1, 1)
    for other in (2, 3):
        assert world.create("u", 1, 1, at=other).error_code == E.NOT_CONTROLLER
        assert world.grow("t", 2, at=other).error_code == E.NOT_CONTROLLER
        assert world.delete("t", at=other).error_code == E.NOT_CONTROLLER
    assert world.children("/brokers/topics") == ["t"]
    assert world.children("/admin/delete_topics") == []


@behaviour("C13")
def test_settings_are_written_first_then_the_topic_neither_under_a_check(world: ClusterWorld):
    world.written.clear()
    answer = world.create("t", assignments=[[1, 2], [2, 3]], configs={"retention.ms": "5"})
    assert answer.error_code == E.NONE
    config, topic = topic_writes(world)[:2]
    assert config == Create("/config/topics/t", b'{"version":1,"config":{"retention.ms":"5"}}')
    assert topic.path == "/brokers/topics/t"
    content = world.data("/brokers/topics/t")
    assert content["partitions"] == {"0": [1, 2], "1": [2, 3]}
    assert uuid_from_text("", content["topic_id"]) == answer.topic_id
    transactions = [operations for operations, _ in world.written if config in operations
                    or topic in operations]  # fmt: skip
    assert transactions == [(config,), (topic,)]


@behaviour("C13")
def test_settings_left_behind_by_an_unfinished_creation_are_replaced(world: ClusterWorld):
    world.hosts[2].broker.metadata.submit(
        [Create("/config/topics/t", b'{"version":1,"config":{"retention.ms":"9"}}')],
        lambda *_: None,
    )
    world.run(10)
    assert world.create("t", 1, 1, configs={"segment.ms": "7"}).error_code == E.NONE
    assert world.data("/config/topics/t")["config"] == {"segment.ms": "7"}
    operations = next(operations for operations, operation in world.written
                      if isinstance(operation, SetData) and "config" in operation.path)  # fmt: skip
    assert operations[0] == Check("/controller", -1)


@behaviour("C10", "C11")
@pytest.mark.parametrize("line", RECORDED.read_text().splitlines())
def test_answers_are_those_that_were_recorded(line: str):
    recorded = json.loads(line)
    wish = recorded["wish"]
    world = ClusterWorld()
    world.add_brokers(1, 2)
    topic = wish.get("name", "x")
    answer = world.create(
        topic,
        wish.get("num_partitions", -1),
        wish.get("replication_factor", -1),
        assignments=None,
        configs={one["name"]: one["value"] for one in wish.get("configs", ())},
        given=[(one["partition_index"], one["broker_ids"]) for one in wish.get("assignments", ())],
        is_validation=topic == "v",
    )
    if wish.get("assignments") == [{"partition_index": 0, "broker_ids": []}]:
        # Kafka takes it and the partition never has a leader; we refuse it.
        assert answer.error_code == E.INVALID_REPLICA_ASSIGNMENT
        return
    assert ErrorCode(answer.error_code).name.lower() == recorded["error"]
    assert answer.num_partitions == recorded["partitions"]
    assert answer.replication_factor == recorded["replicas"]
    assert world.children("/brokers/topics") == (
        [topic] if recorded["error"] == "none" and topic != "v" else []
    )


@behaviour("C10")
def test_a_name_that_stands_twice_is_refused_twice_and_the_others_are_not(world: ClusterWorld):
    body = CreateTopicsRequest(
        topics=[CreatableTopic(name=n, num_partitions=1, replication_factor=1) for n in
                ("tw", "ok", "tw")],
        timeout_ms=5_000,
    )  # fmt: skip
    answer = world.ask(ApiKey.CREATE_TOPICS, 7, body)
    assert [(one.name, one.error_code) for one in answer.topics] == [
        ("tw", E.INVALID_REQUEST), ("ok", E.NONE), ("tw", E.INVALID_REQUEST),
    ]  # fmt: skip


@behaviour("C7", "C10")
def test_two_topics_of_one_request_collide_like_any_others(world: ClusterWorld):
    body = CreateTopicsRequest(
        topics=[CreatableTopic(name=n, num_partitions=1, replication_factor=1)
                for n in ("a.b", "a_b")],
        timeout_ms=5_000,
    )  # fmt: skip
    answer = world.ask(ApiKey.CREATE_TOPICS, 7, body)
    assert [one.error_code for one in answer.topics] == [E.NONE, E.INVALID_TOPIC_EXCEPTION]
    assert world.create("a.b", 1, 1).error_code == E.TOPIC_ALREADY_EXISTS


def test_the_partitions_of_one_request_are_limited_together(world: ClusterWorld):
    body = CreateTopicsRequest(
        topics=[CreatableTopic(name=n, num_partitions=6_000, replication_factor=1) for n in "ab"],
        validate_only=True,
    )
    answer = world.ask(ApiKey.CREATE_TOPICS, 7, body)
    assert [one.error_code for one in answer.topics] == [E.NONE, E.INVALID_PARTITIONS]


@behaviour("C14")
def test_the_answer_waits_until_the_partitions_have_leaders(world: ClusterWorld):
    sent_ms = world.now_ms
    answer = world.create("t", 3, 3)
    assert answer.error_code == E.NONE
    assert world.now_ms > sent_ms
    states = [world.hosts[1].broker.metadata_cache.partition("t", n) for n in range(3)]
    assert all(state is not None and state.leader > 0 for state in states)
    assert (answer.num_partitions, answer.replication_factor) == (3, 3)
    assert [one.name for one in answer.configs] == list(TOPIC_KEYS)


@behaviour("C14")
def test_without_a_leader_time_is_over_and_without_time_at_once(world: ClusterWorld):
    sent_ms = world.now_ms
    answer = world.create("t", assignments=[[77]], timeout_ms=2_000)
    assert answer.error_code == E.REQUEST_TIMED_OUT
    assert 2_000 <= world.now_ms - sent_ms <= 2_100
    assert (answer.num_partitions, answer.replication_factor, answer.configs) == (-1, -1, [])
    assert answer.topic_id != bytes(16), "it was written all the same"
    for timeout_ms in (0, -1):
        answer = world.create(f"u{timeout_ms}", 1, 1, timeout_ms=timeout_ms)
        assert answer.error_code == E.REQUEST_TIMED_OUT
    world.run(100)
    assert world.hosts[3].broker.metadata_cache.topic("u0") is not None


@behaviour("C14")
def test_a_validation_writes_nothing(world: ClusterWorld):
    world.written.clear()
    answer = world.create("t", 2, 1, is_validation=True)
    assert (answer.error_code, answer.num_partitions) == (E.NONE, 2)
    assert answer.topic_id == bytes(16)
    assert topic_writes(world) == []


@behaviour("C14")
@pytest.mark.parametrize("version", range(8))
def test_every_version_of_the_answer(world: ClusterWorld, version: int):
    answer = world.create("t", 2, 1, version=version, is_validation=False)
    assert answer.error_code == E.NONE
    if version >= 5:
        assert (answer.num_partitions, answer.replication_factor) == (2, 1)
        assert {one.name: one.value for one in answer.configs}["segment.bytes"] == "1073741824"
    if version >= 7:
        assert answer.topic_id == world.hosts[1].broker.metadata_cache.topic_id("t")


# -- automatic creation --------------------------------------------------------------------------


@behaviour("C4", "C6", "C8")
def test_any_broker_creates_what_a_client_asks_the_metadata_of(world: ClusterWorld):
    assert world.metadata("t", at=2, allow=False) == {"t": E.UNKNOWN_TOPIC_OR_PARTITION}
    assert world.children("/brokers/topics") == []
    world.written.clear()
    asked = world.metadata("t", "bad name", "..", at=2)
    assert asked == {
        "t": E.LEADER_NOT_AVAILABLE,
        "bad name": E.INVALID_TOPIC_EXCEPTION,
        "..": E.INVALID_TOPIC_EXCEPTION,
    }
    first = topic_writes(world)[:2]
    assert [one.path for one in first] == ["/config/topics/t", "/brokers/topics/t"]
    assert world.writers["/brokers/topics/t"] == 2, "the asked broker writes, not the controller"
    world.run(100)
    for broker_id in (1, 2, 3):
        assert world.metadata("t", at=broker_id) == {"t": E.NONE}


@behaviour("C4")
def test_a_broker_that_must_not_create_does_not():
    world = ClusterWorld()
    world.add_brokers(1, auto_create_topics_enable="false")
    assert world.metadata("t", at=1) == {"t": E.UNKNOWN_TOPIC_OR_PARTITION}
    assert world.children("/brokers/topics") == []


@behaviour("C9")
def test_until_the_leader_is_known_clients_are_told_to_come_back(world: ClusterWorld):
    administration = world.hosts[2].broker.administration
    answers: list[dict[str, ErrorCode]] = []
    for _ in range(2):
        administration.create_automatically(["t"], lambda errors, _: answers.append(errors))
    # The second one came while the first was being written.
    world.run(0)
    assert answers == [{"t": E.UNKNOWN_TOPIC_OR_PARTITION}, {"t": E.LEADER_NOT_AVAILABLE}]
    administration.create_automatically(["t"], lambda errors, _: answers.append(errors))
    world.run(0)
    assert answers[-1] == {"t": E.LEADER_NOT_AVAILABLE}, "it exists, its leader is not known here"
    administration.create_automatically(["x y"], lambda errors, _: answers.append(errors))
    assert answers[-1] == {"x y": E.INVALID_TOPIC_EXCEPTION}


@behaviour("C6", "C9")
def test_what_refuses_an_automatic_creation_is_told():
    world = ClusterWorld()
    world.add_brokers(1, default_replication_factor="3")
    assert world.metadata("t", at=1) == {"t": E.INVALID_REPLICATION_FACTOR}
    assert world.metadata("t", at=1) == {"t": E.INVALID_REPLICATION_FACTOR}


@behaviour("C7")
def test_a_name_that_collides_is_not_created_automatically(world: ClusterWorld):
    world.create("a.x", 1, 1)
    assert world.metadata("a_x", at=3) == {"a_x": E.INVALID_TOPIC_EXCEPTION}


@behaviour("C1", "C5")
def test_by_numbers_by_assignment_or_by_use():
    world = ClusterWorld()
    world.add_brokers(1, 2, num_partitions="3", default_replication_factor="2")
    assert world.create("numbers", 2, 1).error_code == E.NONE
    assert world.create("given", assignments=[[2, 1], [1, 2]]).error_code == E.NONE
    world.metadata("used", at=2)
    world.run(100)
    found = {topic: world.data(f"/brokers/topics/{topic}")["partitions"] for topic in
             ("numbers", "given", "used")}  # fmt: skip
    assert [len(replicas) for replicas in found["numbers"].values()] == [1, 1]
    assert found["given"] == {"0": [2, 1], "1": [1, 2]}
    assert [len(replicas) for replicas in found["used"].values()] == [2, 2, 2]
    assert world.data("/config/topics/used")["config"] == {}
    assert world.metadata("numbers", "given", "used", at=1) == dict.fromkeys(found, E.NONE)


# -- growth --------------------------------------------------------------------------------------


@behaviour("M3", "M4", "M5")
def test_growth_and_what_is_refused(world: ClusterWorld):
    world.create("exp", assignments=[[2, 3, 1]])
    topic_id = world.data("/brokers/topics/exp")["topic_id"]
    assert world.grow("exp", 3).error_code == E.NONE
    assert world.data("/brokers/topics/exp")["partitions"] == {
        "0": [2, 3, 1], "1": [3, 2, 1], "2": [1, 3, 2],
    }  # fmt: skip
    assert world.grow("exp", 4, [[3, 1, 2]]).error_code == E.NONE
    refused = [
        (world.grow("exp", 2), E.INVALID_PARTITIONS, "higher than the requested 2"),
        (world.grow("exp", 4), E.INVALID_PARTITIONS, "already has 4"),
        (world.grow("exp", 5, [[1, 2, 99]]), E.INVALID_REPLICA_ASSIGNMENT, "99"),
        (world.grow("exp", 5, [[1, 2]]), E.INVALID_REPLICA_ASSIGNMENT, ""),
        (world.grow("exp", 6, [[1, 2, 3]]), E.INVALID_REPLICA_ASSIGNMENT, ""),
        (world.grow("nosuch", 3), E.UNKNOWN_TOPIC_OR_PARTITION, "does not exist"),
    ]
    for answer, error, words in refused:
        assert answer.error_code == error
        assert words in answer.error_message
    content = world.data("/brokers/topics/exp")
    assert content["topic_id"] == topic_id
    assert sorted(content["partitions"]) == ["0", "1", "2", "3"]


@behaviour("M10")
def test_growth_answers_when_the_new_partitions_are_known_or_time_is_over(world: ClusterWorld):
    world.create("t", 1, 1)
    assert world.grow("t", 3, timeout_ms=5_000).error_code == E.NONE
    cache = world.hosts[1].broker.metadata_cache
    assert cache.partition("t", 2) is not None
    assert world.grow("t", 4, is_validation=True).error_code == E.NONE
    assert sorted(world.data("/brokers/topics/t")["partitions"]) == ["0", "1", "2"]
    assert world.grow("t", 4, timeout_ms=0).error_code == E.REQUEST_TIMED_OUT
    world.run(100)
    assert cache.partition("t", 3) is not None
    sent_ms = world.now_ms
    world.hosts[1].broker.metadata.submit([], lambda *_: None)
    world.hosts[1].broker.controller.stop(world.now_ms)
    assert world.grow("t", 5, at=1).error_code == E.NOT_CONTROLLER
    assert world.now_ms - sent_ms < 100


@behaviour("M7")
def test_growth_on_a_topic_that_changed_meanwhile_is_planned_again(world: ClusterWorld):
    world.create("t", assignments=[[1]])
    number = world.client(1)
    first = number.send(ApiKey.CREATE_PARTITIONS, 3, world.growth("t", 2))
    second = number.send(ApiKey.CREATE_PARTITIONS, 3, world.growth("t", 3))
    world.run_until(lambda: second in number.answers)
    errors = [number.answers[one].results[0].error_code for one in (first, second)]
    assert errors == [E.NONE, E.NONE]
    assert sorted(world.data("/brokers/topics/t")["partitions"]) == ["0", "1", "2"]


# -- deletion ------------------------------------------------------------------------------------


@behaviour("D1", "D3", "D17")
def test_deletion_answers_when_the_topic_has_left_the_metadata(world: ClusterWorld):
    world.create("t", 2, 3)
    world.written.clear()
    assert world.delete("t").error_code == E.NONE
    assert topic_writes(world)[0] == Create("/admin/delete_topics/t")
    assert world.hosts[1].broker.metadata_cache.topic("t") is None
    world.run(100)
    for path in ("/brokers/topics", "/config/topics", "/admin/delete_topics"):
        assert world.children(path) == []
    assert world.delete("t").error_code == E.UNKNOWN_TOPIC_OR_PARTITION


@behaviour("D16", "D17")
def test_a_dead_replica_does_not_keep_a_topic_in_the_metadata(world: ClusterWorld):
    world.create("t", 1, 3)
    world.hosts[3].kill()
    world.run_until(lambda: world.children("/brokers/ids") == ["1", "2"])
    world.run(100)
    assert world.delete("t").error_code == E.NONE
    assert world.children("/brokers/topics") == ["t"]
    assert world.hosts[2].broker.metadata_cache.topic("t") is None
    assert world.create("t", 1, 1).error_code == E.TOPIC_ALREADY_EXISTS
    assert world.grow("t", 9).error_code == E.INVALID_TOPIC_EXCEPTION
    world.restart(3)
    world.run(200)
    assert world.children("/brokers/topics") == []
    assert world.create("t", 1, 1).error_code == E.NONE


@behaviour("D17")
def test_deletion_without_time_answers_at_once(world: ClusterWorld):
    world.create("t", 1, 1)
    assert world.delete("t", timeout_ms=0).error_code == E.REQUEST_TIMED_OUT
    world.run(100)
    assert world.children("/brokers/topics") == []


@behaviour("D2")
def test_deletion_by_id(world: ClusterWorld):
    topic_id = world.create("t", 1, 1).topic_id
    both = world.delete("t", topic_id=topic_id)
    assert (both.error_code, both.name) == (E.INVALID_REQUEST, "t")
    unknown = world.delete(None, topic_id=bytes(15) + b"\x07")
    assert (unknown.error_code, unknown.name) == (E.UNKNOWN_TOPIC_ID, None)
    assert world.children("/admin/delete_topics") == []
    found = world.delete(None, topic_id=topic_id)
    assert (found.error_code, found.name, found.topic_id) == (E.NONE, "t", topic_id)
    world.run(100)
    assert world.children("/brokers/topics") == []


@behaviour("D1")
@pytest.mark.parametrize("version", range(7))
def test_deletion_where_it_is_not_allowed(version: int):
    world = ClusterWorld()
    world.add_brokers(1, delete_topic_enable="false")
    world.create("t", 1, 1)
    wanted = E.INVALID_REQUEST if version < 3 else E.TOPIC_DELETION_DISABLED
    assert world.delete("t", version=version).error_code == wanted
    assert world.children("/admin/delete_topics") == []
    assert world.children("/brokers/topics") == ["t"]


@behaviour("D3")
def test_deletion_of_what_is_being_deleted_is_no_error(world: ClusterWorld):
    world.create("t", 1, 1)
    client = world.client(1)
    body = DeleteTopicsRequest(topics=[DeleteTopicState(name="t")] * 2, timeout_ms=5_000)
    numbers = [client.send(ApiKey.DELETE_TOPICS, 6, body) for _ in range(2)]
    world.run_until(lambda: all(number in client.answers for number in numbers))
    for number in numbers:
        codes = [one.error_code for one in client.answers[number].responses]
        assert codes == [E.NONE, E.NONE]


# -- settings ------------------------------------------------------------------------------------


def describe(world: ClusterWorld, kind: int, name: str, version: int = 4, **how: Any) -> Any:
    resource = DescribeConfigsResource(
        resource_type=kind, resource_name=name, configuration_keys=how.pop("keys", None)
    )
    body = DescribeConfigsRequest(resources=[resource], **how)
    return world.ask(ApiKey.DESCRIBE_CONFIGS, version, body, 1).results[0]


@pytest.mark.parametrize("version", range(5))
def test_settings_of_a_topic(world: ClusterWorld, version: int):
    world.create("t", 1, 1, configs={"retention.ms": "5"})
    synonyms = {"include_synonyms": True} if version else {}
    found = describe(world, 2, "t", version, keys=["retention.ms"], **synonyms)
    assert found.error_code == E.NONE
    (retention,) = found.configs
    assert (retention.name, retention.value) == ("retention.ms", "5")
    if version:
        assert retention.config_source == 1
        assert [(one.name, one.source) for one in retention.synonyms] == [("retention.ms", 1)]
    else:
        assert not retention.is_default
    if version >= 3:
        assert retention.config_type == 5
    everything = describe(world, 2, "t", version)
    assert len(everything.configs) == len(TOPIC_KEYS)
    if not version:
        assert sum(not one.is_default for one in everything.configs) == 1


def test_settings_of_a_broker_and_what_cannot_be_described(world: ClusterWorld):
    broker = describe(world, 4, "1", keys=["broker.id"])
    assert [(one.value, one.read_only, one.config_source) for one in broker.configs] == [
        ("1", True, 4)
    ]
    assert describe(world, 4, "").configs == []
    assert describe(world, 8, "1").error_code == E.NONE
    refused = [(4, "2"), (4, "one"), (8, ""), (16, "x"), (0, "x"), (-1, "")]
    for kind, name in refused:
        assert describe(world, kind, name).error_code == E.INVALID_REQUEST, (kind, name)
    assert describe(world, 2, "nosuch").error_code == E.UNKNOWN_TOPIC_OR_PARTITION
    assert describe(world, 2, "a b").error_code == E.INVALID_TOPIC_EXCEPTION
    old = describe(world, 4, "1", 1, keys=["num.partitions"])
    assert old.configs[0].value == "1"


@behaviour("M1")
def test_settings_that_were_written_and_announced_reach_every_broker(world: ClusterWorld):
    world.create("t", 1, 3)
    world.create("elsewhere", assignments=[[2]])
    known = [host.broker.topic_configs for host in world.hosts.values()]
    assert [configs.config("t").retention_ms for configs in known] == [604_800_000] * 3
    content = b'{"version":1,"config":{"retention.ms":"5"}}'
    for topic in ("t", "elsewhere"):
        world.hosts[2].broker.metadata.submit(
            [Check("/controller", -1), SetData(f"/config/topics/{topic}", content)],
            lambda *_: None,
            is_multi=True,
        )
        note = f'{{"version":2,"entity_path":"topics/{topic}"}}'.encode()
        change = Create("/config/changes/config_change_", note, CreateMode.PERSISTENT_SEQUENTIAL)
        world.hosts[2].broker.metadata.submit([change], lambda *_: None)
    world.run(100)
    assert [configs.config("t").retention_ms for configs in known] == [5, 5, 5]
    logs = [host.broker.logs.log(TopicPartition("t", 0)) for host in world.hosts.values()]
    assert [log.config.retention_ms for log in logs if log is not None] == [5, 5, 5]
    assert describe(world, 2, "elsewhere", keys=["retention.ms"]).configs[0].value == "5"
