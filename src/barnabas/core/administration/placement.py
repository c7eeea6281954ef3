"""Which brokers get the replicas of new partitions (C12).

The first replicas go round the brokers from a random one on; the others follow at a shift that
grows with every round, so that the partitions of one broker spread over all others. With racks the
round takes the racks in turn, and a partition fills every rack before it doubles one.
"""

import random
from collections.abc import Sequence
from typing import NamedTuple

from barnabas.core.administration.refusals import Refused
from barnabas.model.error_codes import ErrorCode
from barnabas.model.ids import BrokerId

PARTITIONS_PER_REQUEST_MAX = 10_000
"""More at once is a mistake: the assignment would not fit into a znode."""


class Place(NamedTuple):
    """A broker that may get replicas, and its rack."""

    broker_id: BrokerId
    rack: str | None = None


class Start(NamedTuple):
    """Where the round begins for a topic that has partitions already (M6)."""

    place: int
    partition: int


Assigned = dict[int, tuple[BrokerId, ...]]


def assign_replicas(
    places: Sequence[Place],
    partitions: int,
    replication_factor: int,
    source: random.Random,
    start: Start | None = None,
) -> Assigned | Refused:
    """Replicas for new partitions by number; `places` in the order of their ids."""
    if partitions <= 0:
        return Refused(ErrorCode.INVALID_PARTITIONS, f"{partitions} partitions cannot be created")
    if partitions > PARTITIONS_PER_REQUEST_MAX:
        return too_many_partitions(partitions)
    if replication_factor <= 0:
        return Refused(
            ErrorCode.INVALID_REPLICATION_FACTOR,
            f"a replication factor of {replication_factor} makes no sense",
        )
    if replication_factor > len(places):
        return Refused(
            ErrorCode.INVALID_REPLICATION_FACTOR,
            f"{replication_factor} replicas need as many brokers; {len(places)} are there",
        )
    racks = {place.rack for place in places}
    if None in racks and len(racks) > 1:
        return Refused(
            ErrorCode.UNKNOWN_SERVER_ERROR, "some brokers have a rack and some have none"
        )
    ordered = list(places) if None in racks else alternate_racks(places)
    index = source.randrange(len(ordered)) if start is None else start.place
    shift = source.randrange(len(ordered)) if start is None else start.place
    first_partition = 0 if start is None else start.partition
    assigned: Assigned = {}
    for partition in range(first_partition, first_partition + partitions):
        if partition > 0 and partition % len(ordered) == 0:
            shift += 1
        first = (partition + index) % len(ordered)
        if None in racks:
            assigned[partition] = _without_racks(ordered, first, shift, replication_factor)
        else:
            assigned[partition] = _with_racks(
                ordered, first, shift * len(racks), replication_factor, len(racks)
            )
    return assigned


def too_many_partitions(partitions: int) -> Refused:
    """More partitions at once than anybody means to have."""
    return Refused(
        ErrorCode.INVALID_PARTITIONS,
        f"{partitions} partitions at once; {PARTITIONS_PER_REQUEST_MAX} are allowed",
    )


def alternate_racks(places: Sequence[Place]) -> list[Place]:
    """One broker of each rack in turn, racks by name and brokers by id, until none is left."""
    by_rack: dict[str, list[Place]] = {}
    for place in sorted(places):
        by_rack.setdefault(place.rack or "", []).append(place)
    rounds = max(len(members) for members in by_rack.values())
    return [
        by_rack[rack][turn]
        for turn in range(rounds)
        for rack in sorted(by_rack)
        if turn < len(by_rack[rack])
    ]


def _without_racks(
    places: Sequence[Place], first: int, shift: int, replication_factor: int
) -> tuple[BrokerId, ...]:
    others = [_shifted(first, shift, step, len(places)) for step in range(replication_factor - 1)]
    return tuple(places[index].broker_id for index in (first, *others))


def _with_racks(
    places: Sequence[Place], first: int, shift: int, replication_factor: int, rack_count: int
) -> tuple[BrokerId, ...]:
    """Skip a rack that has a replica while another has none, and a broker that has one."""
    chosen = [places[first]]
    step = 0
    while len(chosen) < replication_factor:
        place = places[_shifted(first, shift, step, len(places))]
        step += 1
        racks = {one.rack for one in chosen}
        if (place.rack not in racks or len(racks) == rack_count) and place not in chosen:
            chosen.append(place)
    return tuple(place.broker_id for place in chosen)


def _shifted(first: int, shift: int, step: int, count: int) -> int:
    """The index of a further replica: never that of the first."""
    return (first + 1 + (shift + step) % (count - 1)) % count
