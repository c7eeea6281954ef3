"""A policy for new topics, asked by a broker: what it refuses, and what its bugs cost."""

import sys

import pytest

from barnabas.broker.administration import CreateTopicPolicyFailed
from barnabas.core.administration.creation import TopicPlan
from barnabas.model.error_codes import ErrorCode
from tests.behaviours import behaviour
from tests.worlds.cluster_world import ClusterWorld

E = ErrorCode


def _policy(plan: TopicPlan) -> str | None:
    match plan.name:
        case "raises":
            raise KeyError("no such team")
        case "exits":
            sys.exit(3)
        case "wrong":
            return 7  # type: ignore[return-value]  # pyright: ignore[reportReturnType]
        case "meddles":
            plan.assigned.clear()
            return None
        case _:
            return "one partition is enough" if len(plan.assigned) > 1 else None


@pytest.fixture
def world() -> ClusterWorld:
    world = ClusterWorld()
    world.create_topic_policy = _policy
    world.add_brokers(1)
    return world


@behaviour("C10")
def test_the_policy_refuses_in_its_own_words(world: ClusterWorld):
    answer = world.create("t", 2, 1)
    assert (answer.error_code, answer.error_message) == (
        E.POLICY_VIOLATION,
        "one partition is enough",
    )
    assert world.children("/brokers/topics") == []
    assert world.create("t", 1, 1).error_code == E.NONE


@behaviour("C10")
@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("raises", "KeyError: 'no such team'"),
        ("exits", "SystemExit: 3"),
        ("wrong", "returned int where the reason is text or None"),
    ],
)
def test_a_policy_with_a_bug_makes_no_topic_and_harms_nobody(
    world: ClusterWorld, name: str, words: str
):
    answer = world.create(name, 1, 1)
    assert answer.error_code == E.UNKNOWN_SERVER_ERROR
    assert answer.error_message == f"the policy for new topics failed: {words}"
    [told] = world.hosts[1].told.of(CreateTopicPolicyFailed)
    assert (told.topic, told.problem) == (name, words)
    assert world.children("/brokers/topics") == []
    assert world.create("t", 1, 1).error_code == E.NONE


def test_a_policy_cannot_change_what_is_made(world: ClusterWorld):
    assert world.create("meddles", 1, 1).error_code == E.NONE
    assert world.data("/brokers/topics/meddles")["partitions"] == {"0": [1]}


@behaviour("C9", "C10")
def test_automatic_creation_asks_the_policy_too(world: ClusterWorld):
    asked = world.metadata("raises", "fine", at=1)
    assert asked["raises"] == E.UNKNOWN_SERVER_ERROR
    world.run(1000)
    assert world.children("/brokers/topics") == ["fine"]
