"""Creation, growth and deletion answer when all of it shows in the metadata, not a part of it."""

import pytest

from barnabas.broker.administration import Answers
from barnabas.core.administration.creation import TopicWish
from barnabas.core.administration.expansion import GrowthWish
from barnabas.formats.znodes.topics import TopicAssignment, topic_path
from barnabas.model.error_codes import ErrorCode
from barnabas.model.ids import BrokerId, TopicId
from barnabas.model.partition import LEADER_DURING_DELETE, NO_LEADER, ReplicaAssignment
from barnabas.model.znode import Create
from tests.behaviours import behaviour
from tests.worlds.virtual_world import BrokerHost, VirtualWorld, plan

ID = TopicId(b"\x07" * 16)
TIMEOUT_MS = 5_000


@pytest.fixture
def world() -> VirtualWorld:
    """One broker that knows topic t with one partition; the test plays the controller."""
    made = VirtualWorld()
    host = made.add_broker(1)
    made.tell_metadata(1, "t", ID, {0: plan(1, 0, (1,), (1,))}, [1])
    store = made.ensemble.connect(lambda event, now_ms: None)
    made.settle()
    for path in (
        "/brokers",
        "/brokers/topics",
        "/admin",
        "/admin/delete_topics",
        "/config",
        "/config/topics",
    ):
        store.submit([Create(path)])
    content = TopicAssignment(ID, {0: ReplicaAssignment((BrokerId(1),))}).to_bytes()
    store.submit([Create(topic_path("t"), content)])
    made.run(10)
    assert host.broker.metadata_cache.contains("t", 0)
    return made


def host_of(world: VirtualWorld) -> BrokerHost:
    return world.hosts[1]


@behaviour("C14")
def test_creation_waits_for_every_partition_to_have_a_leader(world: VirtualWorld) -> None:
    broker = host_of(world).broker
    answered: list[Answers] = []
    broker.administration.create_topics(
        [TopicWish("u", 2, 1)],
        is_validation=False,
        timeout_ms=TIMEOUT_MS,
        then=lambda answers, now_ms: answered.append(answers),
    )
    host_of(world).is_touched = True
    world.run(100)
    assert answered == []
    known = {0: plan(1, 0, (1,), (1,)), 1: plan(NO_LEADER, 0, (1,), (1,))}
    world.tell_metadata(1, "u", ID, known, [1])
    world.run(10)
    assert broker.metadata_cache.contains("u", 1)
    assert answered == [], "partition 1 is known and has no leader yet"
    world.tell_metadata(1, "u", ID, {1: plan(1, 1, (1,), (1,))}, [1])
    world.run(10)
    assert [answers["u"].error for answers in answered] == [ErrorCode.NONE]


@behaviour("D17")
def test_deletion_waits_until_the_last_partition_has_left_the_metadata(world: VirtualWorld) -> None:
    broker = host_of(world).broker
    world.tell_metadata(1, "t", ID, {1: plan(1, 0, (1,), (1,))}, [1])
    answered: list[Answers] = []
    for timeout_ms in (TIMEOUT_MS, 0):
        broker.administration.delete_topics(
            ["t"],
            timeout_ms=timeout_ms,
            then=lambda answers, now_ms: answered.append(answers),
            now_ms=world.now_ms,
        )
    host_of(world).is_touched = True
    world.run(100)
    assert [answers["t"].error for answers in answered] == [ErrorCode.REQUEST_TIMED_OUT]
    answered.clear()
    for partition in (0, 1):
        assert answered == [], "a partition is known still"
        gone = {partition: plan(LEADER_DURING_DELETE, 0, (1,), (1,))}
        world.tell_metadata(1, "t", ID, gone, [1])
        world.run(10)
    assert [answers["t"].error for answers in answered] == [ErrorCode.NONE]
    # The store has it still; who gave no time is not told how far it is.
    broker.administration.delete_topics(
        ["t"],
        timeout_ms=0,
        then=lambda answers, now_ms: answered.append(answers),
        now_ms=world.now_ms,
    )
    host_of(world).is_touched = True
    world.run(10)
    assert answered[-1]["t"].error is ErrorCode.REQUEST_TIMED_OUT


@behaviour("D3")
def test_what_the_store_does_not_have_is_not_marked_for_deletion(world: VirtualWorld) -> None:
    answered: list[Answers] = []
    host_of(world).broker.administration.delete_topics(
        ["nosuch"],
        timeout_ms=TIMEOUT_MS,
        then=lambda answers, now_ms: answered.append(answers),
        now_ms=world.now_ms,
    )
    host_of(world).is_touched = True
    world.run(10)
    assert [one["nosuch"].error for one in answered] == [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]
    assert world.ensemble.machine.tree.node("/admin/delete_topics/nosuch") is None


@behaviour("M10")
def test_who_gave_no_time_is_told_so_whatever_is_known_already(world: VirtualWorld) -> None:
    broker = host_of(world).broker
    world.tell_metadata(1, "t", ID, {1: plan(1, 0, (1,), (1,))}, [1])
    answered: list[Answers] = []
    for timeout_ms in (0, -1):
        broker.administration.grow_topics(
            [GrowthWish("t", 2 - timeout_ms)],
            is_validation=False,
            timeout_ms=timeout_ms,
            then=lambda answers, now_ms: answered.append(answers),
            now_ms=world.now_ms,
        )
        host_of(world).is_touched = True
        world.run(10)
        world.tell_metadata(1, "t", ID, {2: plan(1, 0, (1,), (1,))}, [1])
    assert [answers["t"].error for answers in answered] == [ErrorCode.REQUEST_TIMED_OUT] * 2


@behaviour("M10")
def test_growth_waits_for_every_new_partition_to_have_a_leader(world: VirtualWorld) -> None:
    broker = host_of(world).broker
    answered: list[Answers] = []
    broker.administration.grow_topics(
        [GrowthWish("t", 3)],
        is_validation=False,
        timeout_ms=TIMEOUT_MS,
        then=lambda answers, now_ms: answered.append(answers),
        now_ms=world.now_ms,
    )
    host_of(world).is_touched = True
    world.run(100)
    assert answered == []
    world.tell_metadata(1, "t", ID, {1: plan(1, 0, (1,), (1,))}, [1])
    world.run(10)
    assert answered == [], "partition 2 is not known yet"
    world.tell_metadata(1, "t", ID, {2: plan(NO_LEADER, 0, (1,), (1,))}, [1])
    world.run(10)
    assert answered == [], "partition 2 has no leader yet"
    world.tell_metadata(1, "t", ID, {2: plan(1, 1, (1,), (1,))}, [1])
    world.run(10)
    assert [answers["t"].error for answers in answered] == [ErrorCode.NONE]
