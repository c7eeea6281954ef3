"""Where replicas go: Kafka's worked example, its racks, and what must hold for any cluster."""

import random
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from barnabas.core.administration.placement import (
    PARTITIONS_PER_REQUEST_MAX,
    Place,
    Start,
    alternate_racks,
    assign_replicas,
)
from barnabas.core.administration.refusals import Refused
from barnabas.model.error_codes import ErrorCode
from barnabas.model.ids import BrokerId
from tests.behaviours import behaviour


def places(*racks: str | None) -> list[Place]:
    return [Place(BrokerId(number), rack) for number, rack in enumerate(racks)]


class Chosen(random.Random):
    """Chance that always says the same."""

    def __init__(self, *numbers: int) -> None:
        super().__init__(0)
        self._numbers = iter(numbers)

    def randrange(self, *_arguments: int) -> int:
        return next(self._numbers)


@behaviour("C12")
def test_round_by_round_with_a_growing_shift():
    # Kafka's own table: five brokers, ten partitions, three replicas, from the first broker on.
    assigned = assign_replicas(places(*[None] * 5), 10, 3, Chosen(0, 0))
    assert assigned == {
        0: (0, 1, 2), 1: (1, 2, 3), 2: (2, 3, 4), 3: (3, 4, 0), 4: (4, 0, 1),
        5: (0, 2, 3), 6: (1, 3, 4), 7: (2, 4, 0), 8: (3, 0, 1), 9: (4, 1, 2),
    }  # fmt: skip


@behaviour("C12")
def test_the_start_is_drawn():
    drawn = {
        assign_replicas(places(*[None] * 4), 1, 2, random.Random(seed))[0] for seed in range(60)
    }
    assert {replicas[0] for replicas in drawn} == {0, 1, 2, 3}
    assert len(drawn) == 12, "every pair of brokers should come up"


@behaviour("C12")
def test_racks_in_turn():
    racks = places("rack1", "rack3", "rack3", "rack2", "rack2", "rack1")
    assert [place.broker_id for place in alternate_racks(racks)] == [0, 3, 1, 5, 4, 2]
    assigned = assign_replicas(racks, 7, 3, Chosen(0, 0))
    assert assigned == {
        0: (0, 3, 1), 1: (3, 1, 5), 2: (1, 5, 4), 3: (5, 4, 2), 4: (4, 2, 0), 5: (2, 0, 3),
        6: (0, 4, 2),
    }  # fmt: skip


@behaviour("M6")
def test_more_partitions_go_on_from_the_first_replica_of_the_first():
    # Recorded: partition 0 is [2, 3, 1]; the next two are [3, 2, 1] and [1, 3, 2].
    brokers = [Place(BrokerId(number)) for number in (1, 2, 3)]
    assigned = assign_replicas(brokers, 2, 3, random.Random(0), Start(1, 1))
    assert assigned == {1: (3, 2, 1), 2: (1, 3, 2)}


@behaviour("C2", "C10")
@pytest.mark.parametrize(
    ("partitions", "replicas", "error"),
    [
        (0, 1, ErrorCode.INVALID_PARTITIONS),
        (-2, 1, ErrorCode.INVALID_PARTITIONS),
        (PARTITIONS_PER_REQUEST_MAX + 1, 1, ErrorCode.INVALID_PARTITIONS),
        (1, 0, ErrorCode.INVALID_REPLICATION_FACTOR),
        (1, 3, ErrorCode.INVALID_REPLICATION_FACTOR),
    ],
)
def test_numbers_that_cannot_be(partitions: int, replicas: int, error: ErrorCode):
    refused = assign_replicas(places(None, None), partitions, replicas, random.Random(0))
    assert isinstance(refused, Refused)
    assert refused.error is error


def test_as_many_partitions_as_are_allowed():
    assigned = assign_replicas(places(None), PARTITIONS_PER_REQUEST_MAX, 1, random.Random(0))
    assert len(assigned) == PARTITIONS_PER_REQUEST_MAX


def test_racks_for_some_brokers_only():
    refused = assign_replicas(places("a", None), 1, 1, random.Random(0))
    assert isinstance(refused, Refused)
    assert refused.error is ErrorCode.UNKNOWN_SERVER_ERROR


@behaviour("C12")
@given(
    st.integers(1, 8), st.integers(1, 20), st.integers(1, 5), st.integers(0, 3),
    st.randoms(use_true_random=False),
)  # fmt: skip
@settings(max_examples=3 * settings().max_examples)
def test_any_cluster(brokers: int, partitions: int, replicas: int, racks: int, source):
    names = [f"r{n % racks}" if racks else None for n in range(brokers)]
    assigned = assign_replicas(places(*names), partitions, replicas, source)
    if replicas > brokers:
        assert isinstance(assigned, Refused)
        return
    assert not isinstance(assigned, Refused)
    assert sorted(assigned) == list(range(partitions))
    rack_count = len(set(names))
    for chosen in assigned.values():
        assert len(set(chosen)) == replicas
        if racks:
            assert len({names[one] for one in chosen}) == min(replicas, rack_count)
    firsts = Counter(chosen[0] for chosen in assigned.values())
    assert max(firsts.values()) - min(firsts.get(one, 0) for one in range(brokers)) <= 1
