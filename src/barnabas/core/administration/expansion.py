"""How many partitions a topic may grow to, and who gets the new ones (M2-M6)."""

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from barnabas.core.administration.placement import Assigned, Place, Start, assign_replicas
from barnabas.core.administration.refusals import Refused
from barnabas.model.error_codes import ErrorCode
from barnabas.model.ids import BrokerId
from barnabas.model.partition import ReplicaAssignment


@dataclass(frozen=True, slots=True)
class GrowthWish:
    """The number of partitions a topic shall have, and perhaps the replicas of the new ones."""

    topic: str
    count: int
    assignments: Sequence[tuple[BrokerId, ...]] | None = None


def plan_expansion(
    wish: GrowthWish,
    existing: Mapping[int, ReplicaAssignment],
    places: Sequence[Place],
    source: random.Random,
) -> Assigned | Refused:
    """The replicas of the new partitions, or the first reason against them."""
    if any(replicas.is_being_reassigned for replicas in existing.values()):
        return Refused(
            ErrorCode.REASSIGNMENT_IN_PROGRESS,
            f"the replicas of '{wish.topic}' are being reassigned",
        )
    if not existing:
        return unknown_topic(wish.topic)
    increment = wish.count - len(existing)
    if increment < 0:
        return Refused(
            ErrorCode.INVALID_PARTITIONS,
            f"Topic currently has {len(existing)} partitions, "
            f"which is higher than the requested {wish.count}.",
        )
    if increment == 0:
        return Refused(
            ErrorCode.INVALID_PARTITIONS, f"Topic already has {len(existing)} partitions."
        )
    if 0 not in existing or not existing[0].replicas:
        return Refused(
            ErrorCode.UNKNOWN_SERVER_ERROR,
            f"'{wish.topic}' has partitions but not replicas of its first",
        )
    first_replicas = existing[0].replicas
    if wish.assignments is not None:
        return _check_given(wish, len(existing), increment, len(first_replicas), places)
    index = next((at for at, place in enumerate(places) if place.broker_id >= first_replicas[0]), 0)
    return assign_replicas(
        places, increment, len(first_replicas), source, Start(index, len(existing))
    )


def unknown_topic(topic: str) -> Refused:
    """There is no such topic to grow."""
    return Refused(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"The topic '{topic}' does not exist.")


def _check_given(
    wish: GrowthWish,
    existing_count: int,
    increment: int,
    replication_factor: int,
    places: Sequence[Place],
) -> Assigned | Refused:
    """The replicas that the client wants, when they are of live brokers and of one number (M5)."""
    given = wish.assignments or ()
    live = frozenset(place.broker_id for place in places)
    unknown = sorted({one for replicas in given for one in replicas if one not in live})
    if unknown:
        return _misassigned(f"there are no brokers {', '.join(map(str, unknown))}")
    if len(given) != increment:
        return _misassigned(f"replicas for {len(given)} partitions, but {increment} are added")
    assigned = {existing_count + at: tuple(replicas) for at, replicas in enumerate(given)}
    for partition, replicas in assigned.items():
        if not replicas:
            return _misassigned(f"partition {partition} has no replica")
        if len(frozenset(replicas)) != len(replicas):
            return _misassigned(f"partition {partition} has two replicas on one broker")
    uneven = [one for one, replicas in assigned.items() if len(replicas) != replication_factor]
    if uneven:
        return _misassigned(
            f"partition 0 has {replication_factor} replicas, "
            f"partitions {', '.join(map(str, uneven))} another number"
        )
    return assigned


def _misassigned(message: str) -> Refused:
    return Refused(ErrorCode.INVALID_REPLICA_ASSIGNMENT, message)
