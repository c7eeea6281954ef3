"""The partition machine: first leaders, elections, and who is told of them."""

from barnabas.core.controller.effects import PartitionMoved, PartitionMoveFailed
from barnabas.core.controller.partition_machine import bring_online
from barnabas.core.controller.partition_states import PartitionState
from barnabas.core.controller.replica_states import ReplicaState
from barnabas.core.controller.request_batch import SendLeaderAndIsr
from barnabas.model.ids import TopicPartition
from barnabas.model.partition import LeaderRecoveryState
from barnabas.model.znode import Create, Delete, SetData
from tests.behaviours import behaviour
from tests.unit.core.controller.cluster import Cluster, leader_and_isr, replica, shown, tp

P = PartitionState


def told_leaders(cluster: Cluster) -> list[tuple[str, int, list[object]]]:
    return [shown(one) for one in cluster.requests if isinstance(one, SendLeaderAndIsr)]


# -- creation ------------------------------------------------------------------------------------


@behaviour("P1")
def test_a_new_partition_is_only_remembered():
    cluster = Cluster()
    cluster.move_partitions([tp("t")], P.NEW)
    assert (cluster.requests, cluster.committed) == ([], [])
    assert cluster.partition_state("t") is P.NEW


@behaviour("P2", "P5")
def test_the_first_live_replica_leads_and_the_live_ones_are_in_sync_and_told_as_new():
    cluster = Cluster()
    cluster.create_topic("t", [77, 3, 1, 78])
    cluster.run()
    state = cluster.state("t")
    assert (state.leader, state.isr, state.leader_epoch) == (3, (3, 1), 0)
    assert (state.controller_epoch, state.partition_epoch) == (1, 0)
    assert told_leaders(cluster) == [
        ("LeaderAndIsr", 1, [("t-0", 3, 0, True)]),
        ("LeaderAndIsr", 3, [("t-0", 3, 0, True)]),
    ]
    told = [shown(one) for one in cluster.requests if one.entries]
    assert [one for one in told if one[0] == "UpdateMetadata"] == [
        ("UpdateMetadata", broker_id, [("t-0", 3)]) for broker_id in (1, 2, 3, 4)
    ]


@behaviour("P2")
def test_a_replica_on_a_failed_directory_is_not_live():
    cluster = Cluster()
    cluster.storage_errors[1] = {tp("u")}
    cluster.add("u", [1, 2])
    cluster.storage_errors[1] = set()
    cluster.context.replicas_on_offline_dirs[1][tp("t")] = None
    cluster.create_topic("t", [1, 2])
    cluster.run()
    assert (cluster.state("t").leader, cluster.state("t").isr) == (2, (2,))


@behaviour("P3")
def test_a_partition_without_a_live_replica_stays_new_until_one_comes():
    cluster = Cluster()
    cluster.create_topic("t", [77], [1])
    cluster.run()
    (failed,) = cluster.failures()
    assert (failed.partition, failed.source, failed.target) == (tp("t"), P.NEW, P.ONLINE)
    assert "77" in failed.reason
    assert cluster.partition_state("t") is P.NEW
    assert cluster.partition_state("t", 1) is P.ONLINE
    cluster.register(77)
    cluster.run()
    assert cluster.state("t").leader == 77
    assert cluster.partition_state("t") is P.ONLINE


@behaviour("P4")
def test_nodes_are_created_level_by_level_each_under_the_check():
    cluster = Cluster()
    cluster.create_topic("t", [1], [2])
    cluster.run()
    assert [write.path for write in cluster.committed if isinstance(write, Create)] == [
        "/brokers/topics/t/partitions",
        "/brokers/topics/t/partitions/0",
        "/brokers/topics/t/partitions/1",
        "/brokers/topics/t/partitions/0/state",
        "/brokers/topics/t/partitions/1/state",
    ]
    # The world commits each write under a check of the epoch's version: with another it is lost.
    cluster.context.image.controller_epoch_version += 1
    cluster.clear()
    cluster.create_topic("u", [1])
    cluster.run()
    assert cluster.committed == []
    assert not cluster.exists("/brokers/topics/u/partitions")


@behaviour("P5")
def test_a_state_that_nobody_knew_of_fails_the_first_election():
    cluster = Cluster()
    cluster.create_topic("t", [1, 2])
    states = ("partitions", "partitions/0", "partitions/0/state")
    for name in states:
        cluster.do(Create(f"/brokers/topics/t/{name}", b'{"version":1}'))
    content = b'{"version":1,"leader":2,"leader_epoch":3,"controller_epoch":1,"isr":[2]}'
    cluster.do(SetData("/brokers/topics/t/partitions/0/state", content))
    cluster.run()
    (failed,) = cluster.failures()
    assert failed.target is P.ONLINE
    assert cluster.partition_state("t") is P.NEW
    assert told_leaders(cluster) == []
    assert cluster.data("/brokers/topics/t/partitions/0/state") == content


@behaviour("P6", "R23")
def test_the_order_of_crossings_of_a_creation():
    cluster = Cluster()
    cluster.create_topic("t", [1, 2])
    cluster.run()
    assert cluster.moves() == [
        ("t-0", "NON_EXISTENT", "NEW"),
        ("t-0 on 1", "NON_EXISTENT", "NEW"),
        ("t-0 on 2", "NON_EXISTENT", "NEW"),
        ("t-0", "NEW", "ONLINE"),
        ("t-0 on 1", "NEW", "ONLINE"),
        ("t-0 on 2", "NEW", "ONLINE"),
    ]


@behaviour("P7")
def test_many_partitions_make_one_request_for_each_broker():
    cluster = Cluster()
    cluster.create_topic("t", [1, 2], [2, 3], [3, 1])
    cluster.create_topic("u", [2, 1])
    cluster.run()
    assert {to: [entry[0] for entry in entries] for _, to, entries in told_leaders(cluster)} == {
        1: ["t-0", "t-2", "u-0"],
        2: ["t-0", "t-1", "u-0"],
        3: ["t-1", "t-2"],
    }
    assert len(told_leaders(cluster)) == 3


@behaviour("P4")
def test_the_second_partition_of_a_topic_does_not_make_its_folder_again():
    cluster = Cluster()
    cluster.add("t", [1])
    asked: list[str] = []
    cluster.before_commit = lambda writes: asked.extend(
        operation.path for write in writes for operation in write.operations
    )
    cluster.set_topic("t", [1], [2])
    cluster.run()
    assert asked == ["/brokers/topics/t/partitions/1", "/brokers/topics/t/partitions/1/state"]


# -- elections -----------------------------------------------------------------------------------


@behaviour("P8")
def test_a_dead_leader_is_followed_by_the_next_live_replica_in_sync():
    cluster = Cluster()
    cluster.add("t", [1, 2, 3])
    cluster.kill(1)
    cluster.run()
    # One election; then the dead replica is not in the isr any more and nothing is written.
    state = cluster.state("t")
    assert (state.leader, state.isr, state.leader_epoch) == (2, (2, 3), 1)
    first_told = next(told for told in told_leaders(cluster) if told[1] == 3)
    assert first_told[2] == [("t-0", 2, 1, False)]


def test_nobody_in_sync_is_live_and_an_unclean_leader_is_not_allowed():
    cluster = Cluster()
    cluster.add("t", [1, 2])
    cluster.kill(2)
    cluster.run()
    cluster.kill(1)
    cluster.run()
    cluster.clear()
    cluster.register(2)
    cluster.run()
    assert (cluster.state("t").leader, cluster.state("t").isr) == (-1, (1,))
    assert cluster.partition_state("t") is P.OFFLINE
    assert any("no live replica may lead" in failed.reason for failed in cluster.failures())


def test_an_unclean_leader_is_alone_in_sync_and_recovering():
    cluster = Cluster()
    cluster.add("t", [1, 2])
    cluster.do(SetData("/config/topics/t", b'{"config":{"unclean.leader.election.enable":"TRUE"}}'))
    cluster.kill(2)
    cluster.run()
    cluster.kill(1)
    cluster.run()
    cluster.register(2)
    cluster.run()
    state = cluster.state("t")
    assert (state.leader, state.isr) == (2, (2,))
    assert state.leader_recovery_state is LeaderRecoveryState.RECOVERING


def test_an_election_that_lost_the_race_is_held_again_on_what_is_there():
    cluster = Cluster()
    cluster.add("t", [1, 2, 3])
    changes = iter([leader_and_isr(1, [1, 3], 4)])

    def meanwhile(writes) -> None:
        for state in changes:
            cluster.set_state("t", 0, state)

    cluster.before_commit = meanwhile
    cluster.kill(1)
    cluster.run()
    assert (cluster.state("t").leader, cluster.state("t").isr) == (3, (3,))
    assert cluster.state("t").leader_epoch == 5


def test_a_change_that_leaves_nobody_to_elect_is_no_election_and_never_an_unclean_one():
    cluster = Cluster()
    cluster.add("t", [1, 2])
    # Asked for only when it is needed, and here it was not yet when it was asked.
    cluster.do(SetData("/config/topics/t", b'{"config":{"unclean.leader.election.enable":"true"}}'))
    changes = iter([leader_and_isr(1, [1], 4)])

    def meanwhile(writes) -> None:
        for state in changes:
            cluster.set_state("t", 0, state)

    cluster.before_commit = meanwhile
    cluster.kill(1)
    del cluster.context.image.brokers[1]
    cluster.context.partition_states[tp("t")] = P.OFFLINE
    assert cluster.do_step(bring_online(cluster.context)) == []
    assert (cluster.state("t").leader, cluster.state("t").leader_epoch) == (1, 4)


def test_a_leader_that_lives_out_of_sync_was_not_elected_now():
    cluster = Cluster()
    cluster.add("t", [1, 2])
    cluster.set_state("t", 0, leader_and_isr(1, [77], 4))
    cluster.context.image.partition_states[tp("t")] = cluster.state("t")
    cluster.context.partition_states[tp("t")] = P.OFFLINE
    assert cluster.do_step(bring_online(cluster.context)) == []
    assert cluster.state("t").leader_epoch == 4


def test_a_state_that_is_gone_or_makes_no_sense_gets_no_leader_and_is_told_of():
    cluster = Cluster()
    cluster.add("t", [1, 2], [1, 2])
    cluster.do(Delete("/brokers/topics/t/partitions/0/state"))
    cluster.do(SetData("/brokers/topics/t/partitions/1/state", b"?"))
    cluster.kill(1)
    cluster.run()
    reasons = {one.partition: one.reason for one in cluster.failures()
               if isinstance(one, PartitionMoveFailed)}  # fmt: skip
    assert "no state in the store" in reasons[tp("t")]
    assert "cannot be read" in reasons[tp("t", 1)]


@behaviour("R16")
def test_no_election_on_the_state_of_a_later_controller():
    cluster = Cluster()
    cluster.add("t", [1, 2, 3])
    cluster.set_state("t", 0, leader_and_isr(1, [1, 2, 3], 4, controller_epoch=50))
    cluster.kill(1)
    cluster.run()
    assert cluster.state("t").controller_epoch == 50
    assert any("epoch 50" in failed.reason for failed in cluster.failures())


def test_the_elections_that_succeeded_are_counted():
    cluster = Cluster()
    cluster.add("t", [1, 2], [2, 1])
    context = cluster.context
    cluster.kill(1)
    del context.image.brokers[1]
    context.partition_states[tp("t")] = P.OFFLINE
    context.partition_states[tp("t", 1)] = P.OFFLINE
    context.replicas_on_offline_dirs[2] = {tp("t", 1): None}
    assert cluster.do_step(bring_online(context)) == [tp("t")]
    assert PartitionMoved(tp("t"), P.OFFLINE, P.ONLINE) in cluster.stories
    assert cluster.partition_state("t", 1) is P.OFFLINE


def test_a_topic_that_is_deleted_gets_no_leader():
    cluster = Cluster()
    cluster.add("t", [1, 2])
    cluster.context.image.topics_to_be_deleted["t"] = None
    cluster.context.partition_states[tp("t")] = P.OFFLINE
    assert cluster.do_step(bring_online(cluster.context)) == []
    assert cluster.committed == []


def test_a_partition_whose_leadership_is_not_known_cannot_elect():
    cluster = Cluster()
    cluster.add("t", [1, 2])
    partition = TopicPartition("t", 0)
    del cluster.context.image.partition_states[partition]
    cluster.context.partition_states[partition] = P.OFFLINE
    assert cluster.do_step(bring_online(cluster.context)) == []
    (failed,) = cluster.failures()
    assert "not known" in failed.reason


@behaviour("R11")
def test_offline_replicas_are_named_in_the_metadata():
    cluster = Cluster()
    cluster.add("t", [1, 2, 3])
    cluster.kill(3)
    cluster.run()
    told = [one for one in cluster.requests if shown(one)[0] == "UpdateMetadata"]
    assert told[-1].entries[0].offline_replicas == (3,)
    cluster.clear()
    cluster.register(3)
    cluster.run()
    told = [one for one in cluster.requests_to(3) if shown(one)[0] == "UpdateMetadata"]
    assert [one.entries[0].offline_replicas for one in told] == [(), ()]
    assert cluster.replica_state("t", 0, 3) is ReplicaState.ONLINE
    assert replica("t", 0, 3) in cluster.context.replica_states
