"""The replica machine on several brokers: each crossing, who is told, and what is refused."""

from barnabas.core.controller.effects import ReplicaAdopted, ReplicaMoved
from barnabas.core.controller.replica_machine import group_by_broker
from barnabas.core.controller.replica_states import ReplicaState
from barnabas.core.controller.request_batch import SendStopReplica
from barnabas.model.ids import BrokerId
from barnabas.model.partition import LeaderRecoveryState, ReplicaAssignment
from barnabas.model.znode import Delete, StoreError
from tests.behaviours import behaviour
from tests.unit.core.controller.cluster import Cluster, leader_and_isr, replica, shown, tp

S = ReplicaState
ALL = (1, 2, 3, 4)


def metadata_for(requests, partition: str) -> list[int]:
    """Who got an UpdateMetadata that tells of the partition."""
    return [
        to for kind, to, entries in map(shown, requests)
        if kind == "UpdateMetadata" and any(entry[0] == partition for entry in entries)
    ]  # fmt: skip


# -- groups --------------------------------------------------------------------------------------


@behaviour("R2")
def test_replicas_are_grouped_by_broker():
    replicas = [replica("test", 0, 0), replica("test", 0, 1), replica("test", 1, 0),
                replica("test", 1, 1)]  # fmt: skip
    assert group_by_broker(replicas) == {
        0: [replica("test", 0, 0), replica("test", 1, 0)],
        1: [replica("test", 0, 1), replica("test", 1, 1)],
    }
    assert list(group_by_broker([replica("test", 0, 1), replica("test", 1, 0)])) == [0, 1]


@behaviour("R2", "Q5")
def test_a_group_is_crossed_broker_by_broker_and_sent_once_at_the_end():
    cluster = Cluster()
    cluster.add("t", [1, 2], [2, 1])
    cluster.move_replicas([replica("t", p, b) for p in (0, 1) for b in (1, 2)], S.OFFLINE)
    crossed = [story.replica for story in cluster.stories if isinstance(story, ReplicaMoved)]
    assert [one.broker_id for one in crossed] == [1, 1, 2, 2]
    assert [(kind, to) for kind, to, _ in map(shown, cluster.requests)] == [
        ("LeaderAndIsr", 1), ("LeaderAndIsr", 2),
        *[("UpdateMetadata", broker_id) for broker_id in ALL],
        ("StopReplica", 1), ("StopReplica", 2),
    ]  # fmt: skip
    assert all(len(one.entries) == 2 for one in cluster.requests), "both partitions in each"


@behaviour("R2")
def test_nothing_to_move_does_nothing():
    cluster = Cluster()
    cluster.move_replicas([], S.ONLINE)
    assert (cluster.requests, cluster.committed, cluster.stories) == ([], [], [])


# -- refusals ------------------------------------------------------------------------------------


@behaviour("R5", "R6", "R23")
def test_an_unknown_replica_does_not_exist_and_a_forbidden_crossing_stops_nobody_else():
    cluster = Cluster()
    cluster.add("t", [1, 2])
    # Both on one broker: the refused one comes first there.
    unknown = replica("nobody", 0, 2)
    assert cluster.replica_state("nobody", 0, 2) is S.NON_EXISTENT
    cluster.move_replicas([unknown, replica("t", 0, 2)], S.OFFLINE)
    (refused,) = cluster.refusals()
    assert (refused.replica, refused.source, refused.target) == (unknown, S.NON_EXISTENT, S.OFFLINE)
    assert set(refused.expected) == {S.NEW, S.ONLINE, S.OFFLINE, S.DELETION_INELIGIBLE}
    assert cluster.replica_state("nobody", 0, 2) is S.NON_EXISTENT
    assert cluster.replica_state("t", 0, 2) is S.OFFLINE
    assert cluster.moves() == [("t-0 on 2", "ONLINE", "OFFLINE")]


@behaviour("R3", "R23")
def test_what_fails_for_one_replica_is_told_and_the_rest_goes_on():
    cluster = Cluster()
    cluster.add("t", [1, 2], [2, 1])
    cluster.do(Delete("/brokers/topics/t/partitions/0/state"))
    cluster.move_replicas([replica("t", 0, 1), replica("t", 1, 1)], S.OFFLINE)
    (failed,) = cluster.failures()
    assert failed.replica == replica("t", 0, 1)
    assert (failed.source, failed.target) == (S.ONLINE, S.OFFLINE)
    assert "no state in the store" in failed.reason
    assert cluster.replica_state("t", 0, 1) is S.ONLINE
    assert cluster.replica_state("t", 1, 1) is S.OFFLINE


# -- new and online ------------------------------------------------------------------------------


@behaviour("R7")
def test_the_leader_cannot_be_a_new_replica():
    cluster = Cluster()
    cluster.add("t", [1, 2])
    cluster.context.replica_states[replica("t", 0, 1)] = S.NON_EXISTENT
    cluster.move_replicas([replica("t", 0, 1)], S.NEW)
    (failed,) = cluster.failures()
    assert (failed.replica, failed.target) == (replica("t", 0, 1), S.NEW)
    assert "is the leader" in failed.reason
    assert cluster.replica_state("t", 0, 1) is S.NON_EXISTENT
    assert cluster.requests == []


@behaviour("R8", "Q2")
def test_a_new_replica_of_a_led_partition_is_told_as_new_and_everybody_gets_the_metadata():
    cluster = Cluster()
    cluster.add("t", [1, 2])
    cluster.move_replicas([replica("t", 0, 3)], S.NEW)
    told = [shown(request) for request in cluster.requests]
    assert told[0] == ("LeaderAndIsr", 3, [("t-0", 1, 0, True)])
    assert metadata_for(cluster.requests, "t-0") == list(ALL)
    assert len(told) == 1 + len(ALL)
    assert cluster.replica_state("t", 0, 3) is S.NEW


@behaviour("R9")
def test_a_new_replica_of_an_unled_partition_is_only_remembered():
    cluster = Cluster()
    cluster.move_replicas([replica("t", 0, 3)], S.NEW)
    assert cluster.requests == []
    assert cluster.replica_state("t", 0, 3) is S.NEW


@behaviour("R10")
def test_a_new_replica_comes_online_without_a_request():
    cluster = Cluster()
    cluster.add("t", [1, 2])
    cluster.context.replica_states[replica("t", 0, 2)] = S.NEW
    cluster.move_replicas([replica("t", 0, 2)], S.ONLINE)
    assert cluster.requests == []
    assert cluster.replica_state("t", 0, 2) is S.ONLINE
    assert cluster.context.image.assignment(tp("t")).replicas == (1, 2)


@behaviour("R10")
def test_a_new_replica_that_is_in_no_assignment_is_appended_to_it():
    cluster = Cluster()
    cluster.add("t", [1, 2])
    cluster.context.replica_states[replica("t", 0, 4)] = S.NEW
    cluster.move_replicas([replica("t", 0, 4)], S.ONLINE)
    assert cluster.context.image.assignment(tp("t")).replicas == (1, 2, 4)
    assert ReplicaAdopted(replica("t", 0, 4)) in cluster.stories
    assert cluster.requests == []
    assert cluster.committed == []


@behaviour("R11")
def test_a_replica_that_comes_back_is_told_the_state_and_not_as_new():
    cluster = Cluster()
    cluster.add("t", [1, 2, 3])
    for source in (S.ONLINE, S.OFFLINE, S.DELETION_INELIGIBLE):
        cluster.clear()
        cluster.context.replica_states[replica("t", 0, 2)] = source
        cluster.move_replicas([replica("t", 0, 2)], S.ONLINE)
        assert shown(cluster.requests[0]) == ("LeaderAndIsr", 2, [("t-0", 1, 0, False)])
        assert metadata_for(cluster.requests, "t-0") == list(ALL)
        assert cluster.replica_state("t", 0, 2) is S.ONLINE


@behaviour("R11")
def test_without_leadership_there_is_nothing_to_tell_a_replica_that_comes_back():
    cluster = Cluster()
    cluster.context.replica_states[replica("t", 0, 2)] = S.OFFLINE
    cluster.move_replicas([replica("t", 0, 2)], S.ONLINE)
    assert cluster.requests == []
    assert cluster.replica_state("t", 0, 2) is S.ONLINE


# -- offline -------------------------------------------------------------------------------------


@behaviour("R12", "R13")
def test_going_offline_stops_the_replica_and_tells_all_others():
    cluster = Cluster()
    cluster.add("t", [1, 2, 3])
    cluster.move_replicas([replica("t", 0, 2)], S.OFFLINE)
    state = cluster.state("t")
    assert (state.leader, state.isr, state.leader_epoch) == (1, (1, 3), 1)
    told = [shown(request) for request in cluster.requests]
    assert [one for one in told if one[0] == "LeaderAndIsr"] == [
        ("LeaderAndIsr", 1, [("t-0", 1, 1, False)]),
        ("LeaderAndIsr", 3, [("t-0", 1, 1, False)]),
    ]
    # The epoch is that of before the replica was taken out of the isr.
    assert [one for one in told if one[0] == "StopReplica"] == [
        ("StopReplica", 2, [("t-0", 0, False)])
    ]


@behaviour("R13")
def test_for_a_topic_that_is_deleted_the_isr_is_written_and_nobody_is_told():
    cluster = Cluster()
    cluster.add("t", [1, 2, 3])
    cluster.context.image.topics_to_be_deleted["t"] = None
    cluster.move_replicas([replica("t", 0, 2)], S.OFFLINE)
    assert cluster.state("t").isr == (1, 3)
    assert [shown(one)[0] for one in cluster.requests] == ["StopReplica"]
    assert shown(cluster.requests[0])[2] == [("t-0", -2, False)]


@behaviour("R14")
def test_without_leadership_only_the_metadata_is_updated():
    cluster = Cluster()
    cluster.context.replica_states[replica("t", 0, 2)] = S.NEW
    cluster.move_replicas([replica("t", 0, 2)], S.OFFLINE)
    assert cluster.committed == []
    assert [shown(one) for one in cluster.requests] == [
        *[("UpdateMetadata", one, []) for one in ALL],
        ("StopReplica", 2, [("t-0", -1, False)]),
    ]
    assert cluster.replica_state("t", 0, 2) is S.OFFLINE


@behaviour("R15")
def test_the_leader_leaves_nobody_behind_it():
    cluster = Cluster()
    cluster.add("t", [1, 2, 3])
    cluster.move_replicas([replica("t", 0, 1)], S.OFFLINE)
    state = cluster.state("t")
    assert (state.leader, state.isr, state.leader_epoch) == (-1, (2, 3), 1)
    assert state.partition_epoch == 1


@behaviour("R15")
def test_the_sole_member_of_an_isr_stays_and_is_written_each_time():
    cluster = Cluster()
    cluster.add("t", [1])
    for times in (1, 2, 3):
        cluster.move_replicas([replica("t", 0, 1)], S.OFFLINE)
        state = cluster.state("t")
        assert (state.leader, state.isr) == (-1, (1,))
        assert (state.leader_epoch, state.partition_epoch) == (times, times)


@behaviour("R15")
def test_a_replica_out_of_the_isr_is_not_written_but_the_others_are_told_what_they_know():
    cluster = Cluster()
    cluster.add("t", [1, 2, 3])
    cluster.move_replicas([replica("t", 0, 2)], S.OFFLINE)
    cluster.clear()
    cluster.context.image.controller_epoch = type(cluster.context.image.controller_epoch)(7)
    cluster.move_replicas([replica("t", 0, 2)], S.OFFLINE)
    assert cluster.committed == []
    told = [shown(one) for one in cluster.requests if shown(one)[0] == "LeaderAndIsr"]
    assert told == [
        ("LeaderAndIsr", 1, [("t-0", 1, 1, False)]),
        ("LeaderAndIsr", 3, [("t-0", 1, 1, False)]),
    ]
    # Confirmed by this controller, so it is told under its epoch.
    assert cluster.context.image.partition_states[tp("t")].controller_epoch == 7


@behaviour("R15")
def test_what_a_shrink_does_not_touch_stays_as_it_was():
    cluster = Cluster()
    cluster.add("t", [1, 2, 3])
    recovering = leader_and_isr(1, [1, 2, 3], 4, is_recovering=True)
    cluster.set_state("t", 0, recovering)
    cluster.context.image.partition_states[tp("t")] = cluster.state("t")
    cluster.move_replicas([replica("t", 0, 3)], S.OFFLINE)
    state = cluster.state("t")
    assert state.leader_recovery_state is LeaderRecoveryState.RECOVERING
    assert (state.leader, state.isr, state.leader_epoch) == (1, (1, 2), 5)


@behaviour("R15")
def test_a_state_that_changed_meanwhile_is_read_again_and_decided_again():
    cluster = Cluster()
    cluster.add("t", [1, 2, 3], [1, 2, 3])
    cluster.set_state("t", 0, leader_and_isr(3, [1, 3], 9))
    cluster.move_replicas([replica("t", 0, 1), replica("t", 1, 1)], S.OFFLINE)
    state = cluster.state("t")
    assert (state.leader, state.isr, state.leader_epoch) == (3, (3,), 10)
    assert cluster.state("t", 1).isr == (2, 3)
    told = {shown(one)[1]: shown(one)[2] for one in cluster.requests
            if shown(one)[0] == "LeaderAndIsr"}  # fmt: skip
    assert told == {
        2: [("t-0", 3, 10, False), ("t-1", -1, 1, False)],
        3: [("t-0", 3, 10, False), ("t-1", -1, 1, False)],
    }


@behaviour("R16")
def test_the_state_of_a_later_controller_is_left_alone():
    cluster = Cluster()
    cluster.add("t", [1, 2, 3])
    later = leader_and_isr(2, [2, 3], 5, controller_epoch=99)
    cluster.set_state("t", 0, later)
    cluster.move_replicas([replica("t", 0, 3)], S.OFFLINE)
    assert cluster.state("t").controller_epoch == 99
    assert cluster.state("t").isr == (2, 3)
    (failed,) = cluster.failures()
    assert "epoch 99" in failed.reason
    assert cluster.replica_state("t", 0, 3) is S.ONLINE
    assert [shown(one)[0] for one in cluster.requests] == ["StopReplica"]


def test_a_refusal_that_no_look_can_mend_fails_the_replica():
    cluster = Cluster()
    cluster.add("t", [1, 2, 3])
    cluster.refuse_with = StoreError.NO_AUTH
    cluster.move_replicas([replica("t", 0, 3)], S.OFFLINE)
    (failed,) = cluster.failures()
    assert "NO_AUTH" in failed.reason
    assert cluster.replica_state("t", 0, 3) is S.ONLINE


# -- deletion ------------------------------------------------------------------------------------


@behaviour("R17", "R18", "R19")
def test_the_way_of_a_replica_out_of_the_cluster():
    cluster = Cluster()
    cluster.add("t", [1, 2])
    cluster.context.image.set_assignment(
        tp("t"),
        ReplicaAssignment((BrokerId(1), BrokerId(2)), (BrokerId(2),), (BrokerId(2), BrokerId(1))),
    )
    two = replica("t", 0, 2)
    cluster.context.replica_states[two] = S.OFFLINE
    cluster.move_replicas([two], S.DELETION_STARTED)
    assert [shown(one) for one in cluster.requests] == [("StopReplica", 2, [("t-0", 0, True)])]
    cluster.clear()
    cluster.move_replicas([two], S.DELETION_SUCCESSFUL)
    cluster.move_replicas([two], S.NON_EXISTENT)
    assert (cluster.requests, cluster.committed) == ([], [])
    assert two not in cluster.context.replica_states
    assert cluster.context.image.assignment(tp("t")) == ReplicaAssignment(
        (BrokerId(1),), (), (BrokerId(1),)
    )


@behaviour("R18")
def test_a_deletion_that_fails_is_only_remembered():
    cluster = Cluster()
    cluster.add("t", [1, 2])
    cluster.context.replica_states[replica("t", 0, 2)] = S.DELETION_STARTED
    cluster.move_replicas([replica("t", 0, 2)], S.DELETION_INELIGIBLE)
    assert (cluster.requests, cluster.committed) == ([], [])
    assert cluster.replica_state("t", 0, 2) is S.DELETION_INELIGIBLE


@behaviour("R20")
def test_a_replica_of_a_deleted_topic_is_stopped_then_deleted():
    cluster = Cluster()
    cluster.add("t", [1, 2])
    cluster.delete("t")
    for broker_id in (1, 2):
        stops = [one for one in cluster.requests_to(broker_id) if isinstance(one, SendStopReplica)]
        assert [shown(one)[2] for one in stops] == [[("t-0", -2, False)], [("t-0", -2, True)]]
        states = [
            story.target for story in cluster.stories
            if isinstance(story, ReplicaMoved) and story.replica == replica("t", 0, broker_id)
        ]  # fmt: skip
        assert states == [S.OFFLINE, S.DELETION_STARTED, S.DELETION_SUCCESSFUL, S.NON_EXISTENT]


# -- ids -----------------------------------------------------------------------------------------


@behaviour("K6")
def test_nobody_is_told_what_is_meant_for_no_broker():
    cluster = Cluster()
    cluster.add("t", [1, 2])
    context = cluster.context
    state = context.image.partition_states[tp("t")]
    entry = context.leader_and_isr_entry(tp("t"), state, is_new=False)
    context.tell((BrokerId(-1), BrokerId(2)), entry)
    context.tell_metadata((BrokerId(-1),), (tp("t"),))
    context.stop(replica("t", 0, -1), delete_partition=False)
    context.flush()
    assert {effect.broker_id for effect in context.effects} == {1, 2, 3, 4}
    assert [shown(e)[1] for e in context.effects if shown(e)[0] == "LeaderAndIsr"] == [2]
    assert context.stories == [], "nothing was dropped, for nobody was meant"
