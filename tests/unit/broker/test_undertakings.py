"""Work that clients set going: a slice per turn, in rotation, bounded; bugs stay with requests."""

from types import SimpleNamespace
from typing import Any

import pytest

from barnabas.broker.deadlines import Deadlines
from barnabas.broker.handlers import create_topics, describe_configs, init_producer_id
from barnabas.broker.undertakings import SLICE_MAX, Undertaking, Undertakings
from barnabas.formats.wire.api_keys import ApiKey
from barnabas.formats.wire.generated.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsTopic,
)
from barnabas.formats.wire.generated.create_topics import CreatableTopic, CreateTopicsRequest
from barnabas.formats.wire.generated.delete_topics import DeleteTopicsRequest
from barnabas.formats.wire.generated.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
)
from barnabas.formats.wire.generated.init_producer_id import InitProducerIdRequest
from barnabas.formats.wire.generated.metadata import MetadataRequest, MetadataRequestTopic
from barnabas.model.error_codes import ErrorCode as E
from tests.worlds.cluster_world import ClusterWorld


class Turns:
    """The turns of a loop that has nothing else to do."""

    def __init__(self) -> None:
        self.deadlines = Deadlines()
        self.failed: list[tuple[Any, Exception]] = []
        router = SimpleNamespace(fail=lambda request, bug, _: self.failed.append((request, bug)))
        broker: Any = SimpleNamespace(deadlines=self.deadlines, now_ms=0, router=router)
        self.undertakings = Undertakings(broker)
        self.done: list[str] = []

    def begin(self, request: Any = None, size: int = 1) -> Undertaking:
        undertaking = self.undertakings.begin(request, size)
        assert undertaking is not None
        return undertaking

    def each(self, name: str, count: int) -> None:
        self.undertakings.each(
            self.begin(), [name] * count, lambda item, now_ms: self.done.append(item)
        )

    def turn(self) -> int:
        before = len(self.done)
        self.deadlines.run_due(0)
        return len(self.done) - before


def test_a_turn_does_a_slice_whoever_asked() -> None:
    turns = Turns()
    turns.each("a", SLICE_MAX * 2)
    assert len(turns.done) == SLICE_MAX
    turns.each("b", SLICE_MAX // 2)
    assert len(turns.done) == SLICE_MAX
    assert turns.turn() == SLICE_MAX
    assert turns.done[SLICE_MAX:].count("b") == SLICE_MAX // 2, "it waits for no large one"
    assert turns.turn() == SLICE_MAX // 2
    turns.turn()
    assert turns.deadlines.next_ms() is None
    turns.each("c", 1)
    assert turns.done[-1] == "c"


def test_many_requests_of_one_turn_share_its_slice() -> None:
    turns = Turns()
    for number in range(SLICE_MAX + 7):
        turns.each(str(number), 1)
    assert len(turns.done) == SLICE_MAX
    assert turns.turn() == 7


def test_a_bug_ends_its_request_and_gives_its_room_back() -> None:
    turns = Turns()
    room = turns.undertakings.room
    undertaking = turns.begin("asked", 3)
    assert turns.undertakings.room == room - 3
    broken = KeyError("bug")

    def fail(item: int, now_ms: int) -> None:
        if item == 1:
            raise broken
        turns.done.append(str(item))

    turns.undertakings.each(undertaking, range(3), fail)
    assert turns.failed == [("asked", broken)]
    assert turns.done == ["0", "2"]
    undertaking.end()
    assert turns.undertakings.room == room


def creation(*topics: tuple[str, int], validate_only: bool = False) -> CreateTopicsRequest:
    return CreateTopicsRequest(
        topics=[CreatableTopic(name=n, num_partitions=p, replication_factor=1) for n, p in topics],
        timeout_ms=10_000,
        validate_only=validate_only,
    )


def growth(topics: dict[str, int], *, validate_only: bool = False) -> CreatePartitionsRequest:
    return CreatePartitionsRequest(
        topics=[
            CreatePartitionsTopic(name=n, count=c, assignments=None) for n, c in topics.items()
        ],
        timeout_ms=10_000,
        validate_only=validate_only,
    )


@pytest.fixture
def world() -> ClusterWorld:
    world = ClusterWorld()
    world.add_brokers(1)
    return world


@pytest.mark.parametrize(
    ("version", "error", "throttle_ms"),
    [(7, E.THROTTLING_QUOTA_EXCEEDED, 1000), (5, E.REQUEST_TIMED_OUT, 1000)],
)
def test_what_is_too_much_at_once_is_asked_to_come_back(
    world: ClusterWorld, version: int, error: E, throttle_ms: int
) -> None:
    world.hosts[1].broker.administration.undertakings.under_way_max = 6
    first, second = world.client(1), world.client(1)
    taken = first.send(ApiKey.CREATE_TOPICS, 7, creation(("a", 2), ("b", 2)))
    refused = second.call(ApiKey.CREATE_TOPICS, version, creation(("c", 3)))
    assert [one.error_code for one in refused.topics] == [error]
    assert refused.throttle_time_ms == throttle_ms
    world.run(1000)
    assert [one.error_code for one in first.answers[taken].topics] == [E.NONE, E.NONE]
    again = second.call(ApiKey.CREATE_TOPICS, version, creation(("c", 3)))
    assert ([one.error_code for one in again.topics], again.throttle_time_ms) == ([E.NONE], 0)


def test_growth_deletion_and_automatic_creation_are_in_the_same_bound(world: ClusterWorld) -> None:
    world.create("t", 1, 1)
    world.create("u", 1, 1)
    client = world.client(1)
    undertakings = world.hosts[1].broker.administration.undertakings
    undertakings.under_way_max = 1
    grown = client.call(ApiKey.CREATE_PARTITIONS, 3, growth({"t": 4}))
    assert (grown.results[0].error_code, grown.throttle_time_ms) == (89, 1000)
    names = DeleteTopicsRequest(topic_names=["t", "u"], timeout_ms=1000)
    deleted = client.call(ApiKey.DELETE_TOPICS, 5, names)
    assert {one.error_code for one in deleted.responses} == {E.THROTTLING_QUOTA_EXCEEDED}
    asked = MetadataRequest(
        topics=[MetadataRequestTopic(name=name) for name in ("x", "y")],
        allow_auto_topic_creation=True,
    )
    answer = client.call(ApiKey.METADATA, 9, asked)
    assert {one.name: one.error_code for one in answer.topics} == {
        "x": E.LEADER_NOT_AVAILABLE,
        "y": E.UNKNOWN_TOPIC_OR_PARTITION,
    }
    undertakings.under_way_max = 100
    assert client.call(ApiKey.CREATE_PARTITIONS, 3, growth({"t": 4})).results[0].error_code == 0
    assert undertakings.room == 100


def test_one_request_adds_ten_thousand_partitions_to_all_its_topics(world: ClusterWorld) -> None:
    for name in "tu":
        world.create(name, 1, 1)
    answer = world.client(1).call(
        ApiKey.CREATE_PARTITIONS, 3, growth({"t": 6_000, "u": 6_000}, validate_only=True)
    )
    assert [one.error_code for one in answer.results] == [E.NONE, E.INVALID_PARTITIONS]


def test_topics_beyond_ten_thousand_partitions_are_refused(world: ClusterWorld) -> None:
    wishes = creation(("t", 6_000), ("u", 6_000), ("v", 10), validate_only=True)
    answer = world.client(1).call(ApiKey.CREATE_TOPICS, 7, wishes)
    assert [one.error_code for one in answer.topics] == [E.NONE, E.INVALID_PARTITIONS, E.NONE]


CALLED_LATER = {
    "creation": (create_topics, "_result", ApiKey.CREATE_TOPICS, 7, creation(("z", 1))),
    "description": (
        describe_configs,
        "_respond",
        ApiKey.DESCRIBE_CONFIGS,
        4,
        DescribeConfigsRequest(
            resources=[DescribeConfigsResource(resource_type=2, resource_name="t")]
        ),
    ),
    "producer id": (
        init_producer_id,
        "InitProducerIdResponse",
        ApiKey.INIT_PRODUCER_ID,
        4,
        InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=1000),
    ),
}


@pytest.mark.parametrize("name", CALLED_LATER)
def test_a_bug_in_what_the_store_calls_later_ends_the_connection_and_not_the_broker(
    world: ClusterWorld, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    world.create("t", 1, 1)
    module, function, api_key, version, body = CALLED_LATER[name]

    def fail(*arguments: Any, **named: Any) -> None:
        raise KeyError("bug")

    client = world.client(1)
    with monkeypatch.context() as patch:
        patch.setattr(module, function, fail)
        client.send(api_key, version, body)
        world.run(20_000)
    assert client.closed_reason
    assert world.client(1).call(api_key, version, body) is not None
    assert world.hosts[1].broker.administration.undertakings.room == 20_000
