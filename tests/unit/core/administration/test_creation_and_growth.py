"""Every reason to refuse a topic or its growth, in the order in which they are checked."""

import random
import re
from dataclasses import replace

import pytest

from barnabas.core.administration.creation import Surroundings, TopicPlan, TopicWish, plan_creation
from barnabas.core.administration.expansion import GrowthWish, plan_expansion
from barnabas.core.administration.placement import Place
from barnabas.core.administration.refusals import Refused
from barnabas.core.administration.topic_names import TopicNames
from barnabas.model.error_codes import ErrorCode
from barnabas.model.ids import BrokerId
from barnabas.model.partition import ReplicaAssignment
from tests.behaviours import behaviour

AROUND = Surroundings(
    places=[Place(BrokerId(number)) for number in (1, 2, 3)],
    default_partitions=4,
    default_replication_factor=2,
    known_topics=("known", "a.b"),
    stored_topics=TopicNames(["known", "stored", "a.b"]),
    marked_topics=("marked",),
)
E = ErrorCode


def plan(wish: TopicWish, **around) -> TopicPlan | Refused:
    return plan_creation(wish, replace(AROUND, **around), random.Random(1))


def error_of(wish: TopicWish, **around) -> ErrorCode:
    refused = plan(wish, **around)
    assert isinstance(refused, Refused), refused
    return refused.error


@behaviour("C10")
def test_what_is_not_said_is_the_brokers_default():
    planned = plan(TopicWish("t"))
    assert isinstance(planned, TopicPlan)
    assert [len(replicas) for replicas in planned.assigned.values()] == [2, 2, 2, 2]
    planned = plan(TopicWish("t", 1, 3, configs=[("retention.ms", "5")]))
    assert isinstance(planned, TopicPlan)
    assert [len(replicas) for replicas in planned.assigned.values()] == [3]
    assert planned.configs == {"retention.ms": "5"}


@behaviour("C10", "C11")
@pytest.mark.parametrize(
    ("wish", "error"),
    [
        (TopicWish("known"), E.TOPIC_ALREADY_EXISTS),
        (TopicWish("stored"), E.TOPIC_ALREADY_EXISTS),
        (TopicWish("marked"), E.TOPIC_ALREADY_EXISTS),
        (TopicWish("t", configs=[("retention.ms", None)]), E.INVALID_CONFIG),
        (TopicWish("t", configs=[("nosuch", "1")]), E.INVALID_CONFIG),
        (TopicWish("t", configs=[("retention.ms", "x")]), E.INVALID_CONFIG),
        (TopicWish("t", 2, -1, [(0, (1,))]), E.INVALID_REQUEST),
        (TopicWish("t", -1, 1, [(0, (1,))]), E.INVALID_REQUEST),
        (TopicWish("t", 0), E.INVALID_PARTITIONS),
        (TopicWish("t", -2), E.INVALID_PARTITIONS),
        (TopicWish("t", 1, 0), E.INVALID_REPLICATION_FACTOR),
        (TopicWish("t", 1, 4), E.INVALID_REPLICATION_FACTOR),
        (TopicWish("t", assignments=[(0, (1, 1))]), E.INVALID_REPLICA_ASSIGNMENT),
        (TopicWish("t", assignments=[(0, (1, 2)), (1, (1,))]), E.INVALID_REPLICA_ASSIGNMENT),
        (TopicWish("t", assignments=[(1, (1,))]), E.INVALID_REPLICA_ASSIGNMENT),
        (TopicWish("t", assignments=[(0, ())]), E.INVALID_REPLICA_ASSIGNMENT),
        (TopicWish("t", assignments=[(0, (-1,))]), E.INVALID_REPLICA_ASSIGNMENT),
        (TopicWish("a_b"), E.INVALID_TOPIC_EXCEPTION),
        (TopicWish("x" * 250), E.INVALID_TOPIC_EXCEPTION),
        (TopicWish(""), E.INVALID_TOPIC_EXCEPTION),
    ],
)
def test_refusals(wish: TopicWish, error: ErrorCode):
    assert error_of(wish) is error


@behaviour("C11")
def test_brokers_that_nobody_knows_may_be_assigned():
    planned = plan(TopicWish("t", assignments=[(0, (1, 77)), (1, (77, 1))]))
    assert isinstance(planned, TopicPlan)
    assert planned.assigned == {0: (1, 77), 1: (77, 1)}
    assert isinstance(plan(TopicWish("t", assignments=[(0, (0, 1))])), TopicPlan)


@behaviour("C10")
def test_the_order_of_reasons():
    both = TopicWish("known", 2, assignments=[(0, (1,))], configs=[("a", None)])
    assert error_of(both) is E.TOPIC_ALREADY_EXISTS
    assert error_of(replace(both, name="t")) is E.INVALID_CONFIG
    assert error_of(replace(both, name="t", configs=())) is E.INVALID_REQUEST
    assert error_of(TopicWish("a b", 0)) is E.INVALID_PARTITIONS
    assert error_of(TopicWish("a b", configs=[("nosuch", "1")])) is E.INVALID_TOPIC_EXCEPTION
    assert error_of(TopicWish("t", assignments=[(0, (1, 1))], configs=[("nosuch", "")])) is (
        E.INVALID_REPLICA_ASSIGNMENT
    )


@behaviour("C10")
def test_a_policy_has_the_last_word():
    refusal = Refused(E.POLICY_VIOLATION, "too many partitions")

    def nothing_big(planned: TopicPlan) -> Refused | None:
        return refusal if len(planned.assigned) > 3 else None

    assert plan_creation(TopicWish("t", 4), AROUND, random.Random(1), nothing_big) == refusal
    assert plan_creation(TopicWish("a b", 4), AROUND, random.Random(1), nothing_big) != refusal
    assert isinstance(plan_creation(TopicWish("t", 3), AROUND, random.Random(1), nothing_big),
                      TopicPlan)  # fmt: skip


# -- growth --------------------------------------------------------------------------------------

EXISTING = {n: ReplicaAssignment((BrokerId(2), BrokerId(3))) for n in range(4)}


def grow(wish: GrowthWish, existing=EXISTING):
    return plan_expansion(wish, existing, AROUND.places, random.Random(0))


@behaviour("M3", "M5")
@pytest.mark.parametrize(
    ("wish", "error", "words"),
    [
        (
            GrowthWish("t", 2),
            E.INVALID_PARTITIONS,
            "currently has 4 .* higher than the requested 2",
        ),
        (GrowthWish("t", 4), E.INVALID_PARTITIONS, "already has 4"),
        (GrowthWish("t", 5, [(1, 99)]), E.INVALID_REPLICA_ASSIGNMENT, "99"),
        (GrowthWish("t", 6, [(1, 2)]), E.INVALID_REPLICA_ASSIGNMENT, "1 partitions, but 2"),
        (GrowthWish("t", 5, []), E.INVALID_REPLICA_ASSIGNMENT, "0 partitions, but 1"),
        (GrowthWish("t", 5, [(1,)]), E.INVALID_REPLICA_ASSIGNMENT, "partitions 4 another number"),
        (GrowthWish("t", 5, [()]), E.INVALID_REPLICA_ASSIGNMENT, "no replica"),
        (GrowthWish("t", 5, [(1, 1)]), E.INVALID_REPLICA_ASSIGNMENT, "two replicas on one"),
    ],
)
def test_refused_growth(wish: GrowthWish, error: ErrorCode, words: str):
    refused = grow(wish)
    assert isinstance(refused, Refused)
    assert refused.error is error
    assert re.search(words, refused.message or ""), refused.message


@behaviour("M4")
def test_no_growth_of_what_is_not_there_or_is_being_reassigned():
    refused = grow(GrowthWish("t", 5), {})
    assert isinstance(refused, Refused)
    assert refused.error is E.UNKNOWN_TOPIC_OR_PARTITION
    moving = {**EXISTING, 3: ReplicaAssignment((BrokerId(1),), adding_replicas=(BrokerId(1),))}
    refused = grow(GrowthWish("t", 5), moving)
    assert isinstance(refused, Refused)
    assert refused.error is E.REASSIGNMENT_IN_PROGRESS
    for broken in ({1: EXISTING[1]}, {0: ReplicaAssignment(())}):
        refused = grow(GrowthWish("t", 5), broken)
        assert isinstance(refused, Refused)
        assert refused.error is E.UNKNOWN_SERVER_ERROR


@behaviour("M2", "M5", "M6")
def test_growth_with_and_without_an_assignment():
    assert grow(GrowthWish("t", 6, [(1, 2), (3, 1)])) == {4: (1, 2), 5: (3, 1)}
    assert grow(GrowthWish("t", 6)) == {4: (3, 2), 5: (1, 3)}
    first_is_gone = {0: ReplicaAssignment((BrokerId(9), BrokerId(1)))}
    assert grow(GrowthWish("t", 2), first_is_gone) == {1: (2, 3)}
