"""The three buffers of a flush: merging, order, who leads, and the example of fifteen brokers."""

import pytest

from barnabas.core.controller.request_batch import (
    LeaderAndIsrEntry,
    MetadataEntry,
    RequestBatch,
    SendLeaderAndIsr,
    SendStopReplica,
    SendUpdateMetadata,
    StopReplicaEntry,
)
from barnabas.core.image.cluster_image import ClusterImage, RegisteredBroker, TopicImage
from barnabas.formats.znodes.brokers import BrokerRegistration
from barnabas.model.epochs import BrokerEpoch, ControllerEpoch, LeaderEpoch
from barnabas.model.ids import BrokerId, TopicId
from barnabas.model.invariant import InvariantViolated
from barnabas.model.listeners import Listener
from barnabas.model.partition import ReplicaAssignment
from tests.behaviours import behaviour
from tests.unit.core.controller.cluster import leader_and_isr, tp


def image_of(*broker_ids: int) -> ClusterImage:
    image = ClusterImage(ControllerEpoch(3), 3)
    for number in broker_ids:
        listener = Listener("PLAINTEXT", f"host{number}", 9092)
        image.brokers[BrokerId(number)] = RegisteredBroker(
            BrokerId(number), BrokerEpoch(100 + number), BrokerRegistration((listener,), 0)
        )
    return image


def entry(
    topic: str, partition: int, leader: int, isr: list[int], replicas: list[int] | None = None,
    *, is_new: bool = False,
) -> LeaderAndIsrEntry:  # fmt: skip
    assigned = tuple(BrokerId(one) for one in (replicas or isr))
    return LeaderAndIsrEntry(
        tp(topic, partition), leader_and_isr(leader, isr), ReplicaAssignment(assigned), is_new
    )


@behaviour("P9", "P7", "Q4")
def test_fifteen_brokers_two_of_which_are_16_and_19():
    image = image_of(*range(12), 14, 16, 19)
    batch = RequestBatch()
    batch.add_leader_and_isr([5, 9, 10], entry("foo", 1, 5, [5, 9, 10]))
    batch.add_leader_and_isr([8, 10, 14], entry("test", 0, 10, [8, 10, 14]))
    batch.add_leader_and_isr([4, 7, 10, 16, 19], entry("bar", 1, 4, [4, 10], [4, 7, 10, 16, 19]))
    requests = {one.broker_id: one for one in batch.flush(image).requests}
    assert sorted(requests) == [4, 5, 7, 8, 9, 10, 14, 16, 19]
    ten = requests[BrokerId(10)]
    assert isinstance(ten, SendLeaderAndIsr)
    assert [(str(one.partition), one.state.leader) for one in ten.entries] == [
        ("bar-1", 4), ("foo-1", 5), ("test-0", 10),
    ]  # fmt: skip
    assert [broker.broker_id for broker in ten.live_leaders] == [4, 5, 10]
    assert ten.broker_epoch == 110
    for broker_id, partitions in ((4, ["bar-1"]), (9, ["foo-1"]), (14, ["test-0"])):
        told = requests[BrokerId(broker_id)].entries
        assert [str(one.partition) for one in told] == partitions


@behaviour("Q3")
def test_new_stays_new_and_delete_stays_delete():
    batch = RequestBatch()
    batch.add_leader_and_isr([1], entry("t", 0, 1, [1], is_new=True))
    batch.add_leader_and_isr([1], entry("t", 0, 2, [1, 2]))
    batch.add_stop_replica([1], StopReplicaEntry(tp("t"), LeaderEpoch(1), True))
    batch.add_stop_replica([1], StopReplicaEntry(tp("t"), LeaderEpoch(2), False))
    leader_and_isr_request, stop = batch.flush(image_of(1, 2)).requests
    assert isinstance(leader_and_isr_request, SendLeaderAndIsr)
    assert isinstance(stop, SendStopReplica)
    (told,) = leader_and_isr_request.entries
    assert (told.is_new, told.state.leader) == (True, 2)
    assert stop.entries == (StopReplicaEntry(tp("t"), LeaderEpoch(2), True),)


@behaviour("Q4")
def test_a_leader_that_is_not_there_is_not_among_the_live_ones():
    batch = RequestBatch()
    batch.add_leader_and_isr([1], entry("t", 0, -1, [1]))
    batch.add_leader_and_isr([1], entry("t", 1, 7, [1, 7]))
    (request,) = batch.flush(image_of(1, 2)).requests
    assert isinstance(request, SendLeaderAndIsr)
    assert request.live_leaders == ()


@behaviour("Q1", "Q5")
def test_order_of_a_flush_and_that_it_empties_all_three_buffers():
    batch = RequestBatch()
    metadata = MetadataEntry(tp("t"), leader_and_isr(1, [1]), (BrokerId(1),), ())
    batch.add_stop_replica([2, 1], StopReplicaEntry(tp("t"), LeaderEpoch(0), False))
    batch.add_update_metadata([2, 1], [metadata])
    batch.add_leader_and_isr([2, 1], entry("t", 0, 1, [1]))
    requests = batch.flush(image_of(1, 2)).requests
    assert [(type(one), one.broker_id) for one in requests] == [
        (SendLeaderAndIsr, 1), (SendLeaderAndIsr, 2),
        (SendUpdateMetadata, 1), (SendUpdateMetadata, 2),
        (SendStopReplica, 1), (SendStopReplica, 2),
    ]  # fmt: skip
    assert batch.is_empty
    assert batch.flush(image_of(1, 2)).requests == ()
    batch.add_update_metadata([1], [])
    assert [one.entries for one in batch.flush(image_of(1, 2)).requests] == [()]


@behaviour("K6")
def test_zero_is_a_broker_and_minus_one_is_none():
    batch = RequestBatch()
    batch.add_leader_and_isr([-1, 0], entry("t", 0, 0, [0]))
    batch.add_update_metadata([-1, 0], [])
    batch.add_stop_replica([-1, 0], StopReplicaEntry(tp("u"), LeaderEpoch(0), False))
    flushed = batch.flush(image_of(0))
    assert [one.broker_id for one in flushed.requests] == [0, 0, 0]
    assert flushed.dropped_for == ()


@behaviour("Q10")
def test_what_is_meant_for_a_broker_that_is_gone_is_dropped_by_name():
    batch = RequestBatch()
    batch.add_leader_and_isr([1, 5], entry("t", 0, 1, [1]))
    batch.add_update_metadata([7], [])
    batch.add_stop_replica([6], StopReplicaEntry(tp("t"), LeaderEpoch(0), True))
    flushed = batch.flush(image_of(1))
    assert [one.broker_id for one in flushed.requests] == [1]
    assert flushed.dropped_for == (5, 7, 6)
    assert batch.is_empty


@behaviour("Q10")
def test_no_batch_begins_on_one_that_was_not_sent():
    batch = RequestBatch()
    batch.begin()
    batch.add_update_metadata([1], [])
    with pytest.raises(InvariantViolated, match="neither sent nor dropped"):
        batch.begin()


@behaviour("K7", "N11")
def test_ids_of_topics_and_the_list_of_brokers():
    image = image_of(1, 2)
    image.topics["t"] = TopicImage(TopicId(b"t" * 16), 0, {})
    batch = RequestBatch()
    batch.add_leader_and_isr([1], entry("t", 0, 1, [1]))
    batch.add_leader_and_isr([1], entry("old", 0, 1, [1]))
    batch.add_update_metadata([1], [])
    told, brokers = batch.flush(image).requests
    assert isinstance(told, SendLeaderAndIsr)
    assert told.topic_ids == {"t": b"t" * 16, "old": bytes(16)}
    assert told.controller_epoch == 3
    assert isinstance(brokers, SendUpdateMetadata)
    assert brokers.entries == ()
    assert [one.broker_id for one in brokers.live_brokers] == [1, 2]
