"""What CreateTopics may create: replicas, settings, defaults of what was not asked (C7, C10)."""

import random
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass

from barnabas.core.administration.placement import Assigned, Place, assign_replicas
from barnabas.core.administration.refusals import Refused
from barnabas.core.administration.topic_names import TopicNames, find_fault
from barnabas.model.config import check_topic_overrides
from barnabas.model.error_codes import ErrorCode
from barnabas.model.errors import ConfigRefused
from barnabas.model.ids import BrokerId

UNSET = -1
"""Asks for the broker's default number of partitions or replicas."""


@dataclass(frozen=True, slots=True)
class TopicWish:
    """A topic as a client wants it: numbers, or the replicas of each partition."""

    name: str
    partitions: int = UNSET
    replication_factor: int = UNSET
    assignments: Sequence[tuple[int, tuple[BrokerId, ...]]] = ()
    configs: Sequence[tuple[str, str | None]] = ()


@dataclass(frozen=True, slots=True)
class TopicPlan:
    """A topic that may be written."""

    name: str
    assigned: Assigned
    configs: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What is there already, and what holds where the client says nothing."""

    places: Sequence[Place]
    default_partitions: int
    default_replication_factor: int
    known_topics: Collection[str]
    """Those in this broker's metadata."""
    stored_topics: TopicNames
    """Those with a znode."""
    marked_topics: Collection[str]
    """Those that are being deleted."""


CreateTopicPolicy = Callable[[TopicPlan], str | None]
"""Says why a topic must not be created; None when it may. Whoever runs the broker wrote it."""

Judge = Callable[[TopicPlan], Refused | None]
"""Asks the policy, whatever that does."""


def plan_creation(
    wish: TopicWish,
    around: Surroundings,
    source: random.Random,
    judge: Judge | None = None,
) -> TopicPlan | Refused:
    """The topic to write, or the first reason against it, in Kafka's order of checks."""
    if wish.name in around.known_topics:
        return _exists(wish.name)
    nulls = [name for name, value in wish.configs if value is None]
    if nulls:
        return Refused(
            ErrorCode.INVALID_CONFIG, f"a topic's settings must not be null: {', '.join(nulls)}"
        )
    if wish.assignments and (wish.partitions != UNSET or wish.replication_factor != UNSET):
        return Refused(
            ErrorCode.INVALID_REQUEST,
            "numbers of partitions or replicas and replica assignments exclude each other",
        )
    assigned = _assign(wish, around, source)
    if isinstance(assigned, Refused):
        return assigned
    configs = {name: value for name, value in wish.configs if value is not None}
    plan = TopicPlan(wish.name, assigned, configs)
    refusal = _find_refusal(plan, around)
    if refusal is not None:
        return refusal
    if judge is not None:
        refusal = judge(plan)
    return plan if refusal is None else refusal


def _assign(wish: TopicWish, around: Surroundings, source: random.Random) -> Assigned | Refused:
    if wish.assignments:
        return dict(wish.assignments)
    partitions = around.default_partitions if wish.partitions == UNSET else wish.partitions
    replicas = wish.replication_factor
    if replicas == UNSET:
        replicas = around.default_replication_factor
    return assign_replicas(around.places, partitions, replicas, source)


def _find_refusal(plan: TopicPlan, around: Surroundings) -> Refused | None:
    """Why a topic must not be written, as far as its name, replicas and settings go (C11)."""
    fault = find_fault(plan.name)
    if fault is not None:
        return Refused(ErrorCode.INVALID_TOPIC_EXCEPTION, fault)
    if plan.name in around.marked_topics:
        return Refused(
            ErrorCode.TOPIC_ALREADY_EXISTS, f"Topic '{plan.name}' is marked for deletion."
        )
    if plan.name in around.stored_topics:
        return _exists(plan.name)
    collisions = around.stored_topics.collisions(plan.name)
    if collisions:
        return Refused(
            ErrorCode.INVALID_TOPIC_EXCEPTION,
            f"the metrics of '{plan.name}' would be those of {', '.join(collisions)}",
        )
    fault = find_assignment_fault(plan.assigned)
    if fault is not None:
        return Refused(ErrorCode.INVALID_REPLICA_ASSIGNMENT, fault)
    try:
        check_topic_overrides(plan.configs)
    except ConfigRefused as problem:
        return Refused(ErrorCode.INVALID_CONFIG, str(problem))
    return None


def find_assignment_fault(assigned: Assigned) -> str | None:
    """What is wrong with the replicas of a new topic; brokers that are unknown are not (C11).

    Kafka takes a partition without any replica, which can never have a leader; we do not.
    """
    counts = {len(replicas) for replicas in assigned.values()}
    if len(counts) != 1:
        return "all partitions must have the same number of replicas"
    for partition, replicas in assigned.items():
        if not replicas:
            return f"partition {partition} has no replica"
        if len(frozenset(replicas)) != len(replicas):
            return f"partition {partition} has two replicas on one broker: {list(replicas)}"
        if any(replica < 0 for replica in replicas):
            return f"partition {partition} has a replica on a broker that cannot be"
    if sorted(assigned) != list(range(len(assigned))):
        return "partitions must be numbered from 0 on, without a gap"
    return None


def _exists(topic: str) -> Refused:
    return Refused(ErrorCode.TOPIC_ALREADY_EXISTS, f"Topic '{topic}' already exists.")
