"""Deletions: the queue, what makes them wait and what lets them go on."""

import pytest

from barnabas.core.controller.context import ControllerSettings
from barnabas.core.controller.effects import (
    DeletionMarkersDropped,
    RequestsDropped,
    TopicDeleted,
    TopicDeletionHalted,
    WriteFailed,
)
from barnabas.core.controller.events import LeaderAndIsrAnswered, StopReplicaAnswered
from barnabas.core.controller.partition_states import PartitionState
from barnabas.core.controller.replica_states import ReplicaState
from barnabas.core.controller.request_batch import SendLeaderAndIsr, SendUpdateMetadata
from barnabas.core.controller.znode_trees import DELETES_PER_WRITE_MAX
from barnabas.model.error_codes import ErrorCode
from barnabas.model.ids import BrokerId
from barnabas.model.znode import Create, Delete, StoreError
from tests.behaviours import behaviour
from tests.unit.core.controller.cluster import Cluster, leader_and_isr, shown, tp
from tests.worlds.controller_world import delete_topic

S = ReplicaState


@behaviour("D4", "D5")
def test_markers_of_topics_that_are_not_there_are_removed():
    cluster = Cluster()
    cluster.add("t", [1])
    delete_topic(cluster, "ghost")
    cluster.run()
    assert [one.path for one in cluster.committed] == ["/admin/delete_topics/ghost"]
    assert DeletionMarkersDropped(("ghost",)) in cluster.stories
    assert cluster.requests == []
    assert cluster.exists("/brokers/topics/t")


@behaviour("D6")
def test_without_permission_to_delete_all_markers_are_removed_also_at_start():
    cluster = Cluster(settings=ControllerSettings(delete_topic_enable=False))
    cluster.add("t", [1])
    cluster.delete("t")
    assert not cluster.exists("/admin/delete_topics/t")
    assert cluster.exists("/brokers/topics/t/partitions/0/state")
    assert cluster.requests == []
    delete_topic(cluster, "t")
    cluster.elect()
    cluster.run()
    assert not cluster.exists("/admin/delete_topics/t")
    assert cluster.state("t").leader == 1


@behaviour("D4", "D10", "K1")
def test_everybody_forgets_the_topic_first():
    cluster = Cluster()
    cluster.add("t", [1, 2], [2, 1])
    for partition, isr in enumerate(([1, 2], [2, 1])):
        # Epochs above those that everybody is told at the end.
        cluster.set_state("t", partition, leader_and_isr(isr[0], isr, 4))
        known = cluster.context.image.partition_states
        known[tp("t", partition)] = cluster.state("t", partition)
    cluster.delete("t")
    told = [one for one in cluster.requests if isinstance(one, SendUpdateMetadata)]
    assert [one.broker_id for one in told] == [1, 2, 3, 4]
    for request in told:
        states = [one.state for one in request.entries]
        assert [(s.leader, s.leader_epoch, s.partition_epoch) for s in states] == [(-2, 0, 0)] * 2
        assert [s.isr for s in states] == [(1, 2), (2, 1)]
    assert not any(isinstance(one, SendLeaderAndIsr) for one in cluster.requests)
    partitions = [move for move in cluster.moves() if "on" not in move[0]]
    assert partitions[:2] == [("t-0", "ONLINE", "OFFLINE"), ("t-1", "ONLINE", "OFFLINE")]
    assert partitions[2:] == [
        ("t-0", "OFFLINE", "NON_EXISTENT"),
        ("t-1", "OFFLINE", "NON_EXISTENT"),
    ]


@behaviour("D14")
def test_nodes_go_leaves_first_then_settings_then_marker_and_nothing_is_remembered():
    cluster = Cluster()
    cluster.add("t", [1], [2], *[[1]] * 9)
    cluster.delete("t")
    removed = [one.path for one in cluster.committed if isinstance(one, Delete)]
    root = "/brokers/topics/t/partitions"
    assert removed == [
        *[path for n in range(11) for path in (f"{root}/{n}/state", f"{root}/{n}")],
        root, "/brokers/topics/t", "/config/topics/t", "/admin/delete_topics/t",
    ]  # fmt: skip
    context = cluster.context
    assert TopicDeleted("t") in cluster.stories
    assert not context.image.topics
    assert not context.image.partition_states
    assert not context.replica_states
    assert not context.partition_states
    assert not context.topics_with_deletion_started
    assert not context.topics_ineligible_for_deletion
    assert not context.is_queued_for_deletion("t")


@behaviour("D14")
def test_a_topic_of_the_same_name_is_a_new_one():
    cluster = Cluster()
    cluster.add("t", [1, 2])
    cluster.delete("t")
    cluster.clear()
    cluster.create_topic("t", [3], topic_id=b"another-topic-id")
    cluster.run()
    assert cluster.state("t").leader == 3
    assert cluster.replica_state("t", 0, 3) is S.ONLINE
    assert cluster.context.image.topic_id("t") == b"another-topic-id"


@behaviour("D14")
def test_what_was_known_of_a_deleted_topic_does_not_hold_for_the_next():
    cluster = Cluster()
    for topic in ("t", "u"):
        cluster.add(topic, [1, 2])
        cluster.handle_event(
            LeaderAndIsrAnswered(BrokerId(2), {tp(topic): ErrorCode.KAFKA_STORAGE_ERROR})
        )
    cluster.storage_errors[2] = {tp("u")}
    cluster.delete("t")
    assert "t" in cluster.context.topics_ineligible_for_deletion
    cluster.handle_event(LeaderAndIsrAnswered(BrokerId(2), {tp("t"): ErrorCode.NONE}))
    cluster.bounce(2)
    cluster.run()
    assert not cluster.exists("/brokers/topics/t")
    assert "t" not in cluster.context.topics_ineligible_for_deletion
    cluster.context.replicas_on_offline_dirs[BrokerId(1)] = {tp("u"): None, tp("v"): None}
    cluster.add("v", [1, 2])
    assert cluster.state("v").leader == 2
    cluster.context.image.topics_to_be_deleted["v"] = None
    cluster.context.topics_ineligible_for_deletion["v"] = "why"
    cluster.context.forget_topic("v")
    assert cluster.context.topics_ineligible_for_deletion == {}
    assert list(cluster.context.replicas_on_offline_dirs[BrokerId(1)]) == [tp("u")]


@behaviour("D9", "D11")
def test_a_dead_replica_makes_its_topic_wait_and_not_the_others():
    cluster = Cluster()
    cluster.add("t", [1, 3])
    cluster.add("u", [1])
    cluster.kill(3)
    cluster.run()
    cluster.clear()
    delete_topic(cluster, "t")
    cluster.delete("u")
    assert not cluster.exists("/brokers/topics/u")
    assert cluster.exists("/brokers/topics/t")
    assert TopicDeletionHalted("t", "replicas are offline") in cluster.stories
    assert ("t-0 on 3", "OFFLINE", "DELETION_INELIGIBLE") in cluster.moves()
    assert cluster.replica_state("t", 0, 1) is S.DELETION_SUCCESSFUL
    assert all(shown(one)[1] != 3 for one in cluster.requests)
    assert RequestsDropped(BrokerId(3)) in cluster.stories
    cluster.register(3)
    cluster.run()
    assert not cluster.exists("/brokers/topics/t")
    assert not cluster.exists("/admin/delete_topics/t")


@behaviour("D13", "D9")
def test_an_error_makes_the_topic_wait_after_one_more_stop():
    cluster = Cluster()
    cluster.add("t", [1, 2])
    cluster.stop_errors[2] = ErrorCode.KAFKA_STORAGE_ERROR
    cluster.delete("t")
    assert cluster.replica_state("t", 0, 1) is S.DELETION_SUCCESSFUL
    assert cluster.replica_state("t", 0, 2) is S.OFFLINE
    assert cluster.context.topics_ineligible_for_deletion.keys() == {"t"}
    stops = [shown(one)[2] for one in cluster.requests_to(2) if shown(one)[0] == "StopReplica"]
    assert stops == [[("t-0", -2, False)], [("t-0", -2, True)], [("t-0", -2, False)]]
    assert cluster.exists("/brokers/topics/t")


@behaviour("D13", "Q8")
def test_an_answer_counts_for_topics_that_are_being_deleted_alone():
    cluster = Cluster()
    cluster.add("t", [1, 2])
    cluster.add("u", [1, 2])
    cluster.silent.update({1, 2})
    cluster.delete("t")
    before = dict(cluster.context.replica_states)
    cluster.handle_event(StopReplicaAnswered(2, {tp("u"): ErrorCode.NONE}))
    assert cluster.context.replica_states == before
    cluster.handle_event(StopReplicaAnswered(1, {tp("t"): ErrorCode.NONE}))
    assert cluster.replica_state("t", 0, 1) is S.DELETION_SUCCESSFUL
    assert cluster.replica_state("t", 0, 2) is S.DELETION_STARTED
    cluster.handle_event(StopReplicaAnswered(2, {tp("t"): ErrorCode.NONE}))
    assert not cluster.exists("/brokers/topics/t")


@behaviour("D9")
def test_a_topic_without_a_replica_left_is_finished():
    cluster = Cluster()
    cluster.create_topic("t", [])
    cluster.run()
    cluster.delete("t")
    assert not cluster.exists("/brokers/topics/t")
    assert not cluster.exists("/admin/delete_topics/t")


@behaviour("D9")
def test_a_topic_that_waits_or_is_done_does_not_hold_up_the_next():
    cluster = Cluster()
    for topic in ("t", "u", "v"):
        cluster.add(topic, [1])
    cluster.add("w", [2])
    cluster.silent.add(1)
    for topic in ("t", "u", "v", "w"):
        delete_topic(cluster, topic)
        cluster.run()
    assert not cluster.exists("/brokers/topics/w"), "it need not wait for the others"
    assert cluster.exists("/brokers/topics/t")
    # One event, and not those that follow from what it wrote: they would look at all of them again.
    cluster.handle(StopReplicaAnswered(1, {tp("t"): ErrorCode.NONE, tp("v"): ErrorCode.NONE}))
    assert [cluster.exists(f"/brokers/topics/{one}") for one in "tuv"] == [False, True, False]


def test_a_deletion_that_is_asked_for_twice_happens_once():
    cluster = Cluster()
    cluster.add("t", [1])
    cluster.silent.add(1)
    cluster.delete("t")
    requests = len(cluster.requests)
    delete_topic(cluster, "ghost")
    cluster.run()
    assert len(cluster.requests) == requests


@behaviour("D14")
def test_what_others_left_below_a_topic_goes_with_it():
    cluster = Cluster()
    cluster.add("t", [1])
    cluster.do(Create("/brokers/topics/t/partitions/7"), Create("/brokers/topics/t/notes"))
    added = iter(["/brokers/topics/t/partitions/8"])

    def meanwhile(writes) -> None:
        if any(isinstance(one, Delete) for write in writes for one in write.operations):
            for path in added:
                cluster.do(Create(path))

    cluster.before_commit = meanwhile
    cluster.delete("t")
    assert not cluster.exists("/brokers/topics/t")
    assert not cluster.exists("/admin/delete_topics/t")


def test_a_large_topic_is_removed_in_several_writes():
    cluster = Cluster()
    cluster.add("t", *[[1]] * (DELETES_PER_WRITE_MAX // 2 + 5))
    cluster.delete("t")
    sizes = [len(one) for one in cluster.transactions if isinstance(one[0], Delete)]
    assert sizes[0] == DELETES_PER_WRITE_MAX
    assert len(sizes) == 2
    assert not cluster.exists("/brokers/topics/t")


def test_a_store_that_refuses_the_removal_is_asked_again_at_the_next_chance():
    cluster = Cluster()
    cluster.add("t", [1])
    cluster.silent.add(1)
    cluster.delete("t")
    cluster.refuse_with = StoreError.NO_AUTH
    cluster.handle_event(StopReplicaAnswered(1, {tp("t"): ErrorCode.NONE}))
    assert cluster.exists("/admin/delete_topics/t")
    assert cluster.context.is_queued_for_deletion("t")
    first = "/brokers/topics/t/partitions/0/state"
    assert WriteFailed(first, StoreError.NO_AUTH) in cluster.stories
    cluster.refuse_with = None
    delete_topic(cluster, "ghost")
    cluster.run()
    assert not cluster.exists("/brokers/topics/t")
    assert not cluster.context.is_queued_for_deletion("t")


@behaviour("D14")
def test_a_topic_whose_nodes_somebody_else_removed_is_forgotten_all_the_same():
    cluster = Cluster()
    cluster.add("t", [1])
    cluster.silent.add(1)
    cluster.delete("t")
    for path in ("/partitions/0/state", "/partitions/0", "/partitions", ""):
        cluster.do(Delete(f"/brokers/topics/t{path}"))
    cluster.do(Delete("/config/topics/t"), Delete("/admin/delete_topics/t"))
    cluster.handle(StopReplicaAnswered(1, {tp("t"): ErrorCode.NONE}))
    assert not cluster.context.is_queued_for_deletion("t")
    assert TopicDeleted("t") in cluster.stories


@pytest.mark.parametrize("topics", [["t"], ["t", "u"]])
def test_a_deletion_at_the_start_of_a_controller(topics: list[str]):
    cluster = Cluster()
    for topic in topics:
        cluster.add(topic, [1, 2])
        delete_topic(cluster, topic)
    cluster.elect()
    cluster.run()
    for topic in topics:
        assert not cluster.exists(f"/brokers/topics/{topic}")
    assert cluster.partition_state("t") is PartitionState.NON_EXISTENT
