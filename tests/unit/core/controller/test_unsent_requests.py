"""A broker that listens too slowly: its requests are merged, none of their meaning is lost."""

from hypothesis import given, settings
from hypothesis import strategies as st

from barnabas.core.controller.request_batch import (
    ControlRequest,
    MetadataEntry,
    RequestBatch,
    SendLeaderAndIsr,
    SendStopReplica,
    SendUpdateMetadata,
    StopReplicaEntry,
)
from barnabas.core.controller.unsent_requests import WAITING_MAX, UnsentRequests, merge
from barnabas.model.epochs import LeaderEpoch
from barnabas.model.ids import BrokerId
from tests.behaviours import behaviour
from tests.unit.core.controller.cluster import leader_and_isr, tp
from tests.unit.core.controller.test_request_batch import entry, image_of

IMAGE = image_of(1, 2, 3)


def told(partition: int, leader: int, *, is_new: bool = False) -> ControlRequest:
    batch = RequestBatch()
    batch.add_leader_and_isr([1], entry("t", partition, leader, [1, 2, 3], is_new=is_new))
    return batch.flush(IMAGE).requests[0]


def metadata(partition: int, leader: int) -> ControlRequest:
    batch = RequestBatch()
    known = MetadataEntry(tp("t", partition), leader_and_isr(leader, [1]), (BrokerId(1),), ())
    batch.add_update_metadata([1], [known])
    return batch.flush(IMAGE).requests[0]


def stop(partition: int, *, delete: bool) -> ControlRequest:
    batch = RequestBatch()
    batch.add_stop_replica([1], StopReplicaEntry(tp("t", partition), LeaderEpoch(0), delete))
    return batch.flush(IMAGE).requests[0]


@behaviour("Q5")
def test_few_requests_leave_as_they_came():
    unsent = UnsentRequests()
    requests = [stop(0, delete=False), stop(0, delete=True), metadata(0, 1), told(0, 1)]
    for request in requests:
        unsent.add(request)
    assert len(unsent) == 4
    assert [unsent.take() for _ in requests] == requests
    assert unsent.take() is None


def test_as_many_as_may_wait_wait_unmerged_and_one_more_merges_them():
    unsent = UnsentRequests()
    for number in range(WAITING_MAX):
        unsent.add(told(number, 1))
    assert len(unsent) == WAITING_MAX
    unsent.add(told(WAITING_MAX, 1))
    assert len(unsent) == 1
    unsent.clear()
    assert unsent.take() is None


@behaviour("Q9")
def test_a_broker_that_never_listens_costs_no_more_than_its_partitions():
    unsent = UnsentRequests()
    for number in range(1_000):
        unsent.add(told(number % 3, 1 + number % 2))
        unsent.add(metadata(number % 3, 1 + number % 2))
        assert len(unsent) <= WAITING_MAX
    merged = merge(list(iter(unsent.take, None)))
    assert [len(one.entries) for one in merged] == [3, 3]
    assert [one.state.leader for one in merged[0].entries] == [2, 2, 1]


@behaviour("Q3", "Q4")
def test_the_newest_counts_what_was_new_stays_new_and_leaders_are_those_of_the_rest():
    merged = merge([told(0, 2, is_new=True), told(1, 3), told(0, 1)])
    (request,) = merged
    assert isinstance(request, SendLeaderAndIsr)
    assert [(one.partition.partition, one.state.leader, one.is_new) for one in request.entries] == [
        (0, 1, True), (1, 3, False),
    ]  # fmt: skip
    assert [one.broker_id for one in request.live_leaders] == [1, 3]


@behaviour("Q3")
def test_a_deletion_is_neither_dropped_nor_overtaken():
    merged = merge(
        [told(0, 1), stop(0, delete=True), stop(0, delete=False), told(0, 2, is_new=True)]
    )
    first, second, third = merged
    assert isinstance(first, SendLeaderAndIsr)
    assert isinstance(second, SendStopReplica)
    assert second.entries[0].delete_partition
    assert isinstance(third, SendLeaderAndIsr)
    assert third.entries[0].is_new


def test_a_stop_that_deletes_nothing_is_out_of_date_once_the_replica_is_told_to_go_on():
    merged = merge([stop(0, delete=False), stop(1, delete=False), told(0, 1)])
    assert [type(one) for one in merged] == [SendLeaderAndIsr, SendStopReplica]
    assert [one.partition.partition for one in merged[1].entries] == [1]


requests = st.one_of(
    st.builds(told, st.integers(0, 2), st.integers(1, 3), is_new=st.booleans()),
    st.builds(metadata, st.integers(0, 2), st.integers(1, 3)),
    st.builds(stop, st.integers(0, 2), delete=st.booleans()),
)


def final(sent: list[ControlRequest]) -> dict[object, object]:
    """What a broker believes after these requests, and what it deleted on the way."""
    known: dict[object, object] = {}
    for request in sent:
        for one in request.entries:
            number = one.partition.partition
            if isinstance(request, SendLeaderAndIsr):
                known[number, "role"] = ("leads", one.state.leader)
            elif isinstance(request, SendUpdateMetadata):
                known[number, "metadata"] = one.state.leader
            elif one.delete_partition:
                known[number, "role"] = "deleted"
                known[number, "deletions"] = True
            elif known.get((number, "role")) != "deleted":
                known[number, "role"] = "stopped"
    return known


@given(st.lists(requests, max_size=12))
@settings(max_examples=4 * settings().max_examples)
def test_merged_or_not_the_broker_ends_up_the_same(sent: list[ControlRequest]):
    assert final(merge(sent)) == final(sent)
