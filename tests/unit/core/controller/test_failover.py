"""What a new controller does, in which order, and with which states it begins."""

import pytest

from barnabas.core.controller.effects import (
    OpenChannel,
    TopicDeletionHalted,
    WriteFailed,
    ZnodeIgnored,
)
from barnabas.core.controller.events import (
    BrokerModified,
    BrokersChanged,
    ControllerElected,
    TopicDeletionRequested,
    TopicModified,
    TopicsChanged,
    event_of_watch,
)
from barnabas.core.controller.partition_states import PartitionState
from barnabas.core.controller.replica_states import ReplicaState
from barnabas.core.controller.request_batch import SendLeaderAndIsr, SendUpdateMetadata
from barnabas.formats.znodes.topics import TopicAssignment
from barnabas.model.ids import NO_TOPIC_ID, BrokerId
from barnabas.model.invariant import InvariantViolated
from barnabas.model.znode import Create, CreateMode, Delete, SetData, StoreError
from tests.behaviours import behaviour
from tests.unit.core.controller.cluster import Cluster, shown, tp
from tests.worlds.controller_world import ControllerWorld, assignments, delete_topic

S, P = ReplicaState, PartitionState


@behaviour("N2", "R1")
def test_order_of_a_take_over():
    cluster = Cluster()
    cluster.add("t", [1, 2])
    cluster.add("gone", [1])
    cluster.create_topic("new", [3])
    delete_topic(cluster, "gone")
    for path in (
        "/isr_change_notification/isr_change_",
        "/log_dir_event_notification/log_dir_event_",
    ):
        cluster.do(Create(path, b"{}", CreateMode.PERSISTENT_SEQUENTIAL))
    cluster.do(Delete("/feature"))
    cluster.elect()
    cluster.run()
    paths = [one.path for one in cluster.committed]
    assert paths[:3] == [
        "/feature",
        "/log_dir_event_notification/log_dir_event_0000000000",
        "/isr_change_notification/isr_change_0000000000",
    ]
    # The list of live brokers goes out before any machine has moved anything.
    assert [effect.broker.broker_id for effect in cluster.effects[:4]] == [1, 2, 3, 4]
    assert all(isinstance(effect, OpenChannel) for effect in cluster.effects[:4])
    assert [shown(one) for one in cluster.requests[:4]] == [
        ("UpdateMetadata", broker_id, []) for broker_id in (1, 2, 3, 4)
    ]
    moves = cluster.moves()
    replicas = [at for at, move in enumerate(moves) if move[1:] == ("ONLINE", "ONLINE")]
    created = moves.index(("new-0", "NEW", "ONLINE"))
    deleted = moves.index(("gone-0", "ONLINE", "OFFLINE"))
    assert max(replicas) < created < deleted


@behaviour("R22")
def test_replicas_of_live_brokers_are_online_the_others_ineligible_before_they_go_offline():
    cluster = Cluster()
    cluster.add("t", [1, 2], [77])
    cluster.kill(2)
    cluster.elect()
    cluster.run()
    assert ("t-0 on 1", "ONLINE", "ONLINE") in cluster.moves()
    assert ("t-0 on 2", "DELETION_INELIGIBLE", "OFFLINE") in cluster.moves()
    assert ("t-1 on 77", "DELETION_INELIGIBLE", "OFFLINE") in cluster.moves()
    assert cluster.partition_state("t") is P.ONLINE
    assert cluster.partition_state("t", 1) is P.NEW


@behaviour("R1")
def test_the_machines_begin_with_the_first_event_and_not_before():
    world = ControllerWorld()
    for broker_id in (1, 2):
        world.register(broker_id)
    world.create_topic("t", [1, 2])
    controller = world.elect()
    assert not controller.context.replica_states
    assert not controller.context.partition_states
    assert not controller.image.topics
    world.run()
    assert controller.context.replica_states


def test_partitions_begin_as_their_leaders_are():
    cluster = Cluster()
    cluster.add("t", [1, 2], [2, 1], [3])
    cluster.kill(3)
    cluster.elect()
    cluster.handle(ControllerElected())
    assert cluster.partition_state("t") is P.ONLINE
    assert cluster.partition_state("t", 2) is P.OFFLINE
    told = [one for one in cluster.requests if isinstance(one, SendUpdateMetadata) and one.entries]
    assert {str(e.partition) for one in told for e in one.entries} == {"t-0", "t-1", "t-2"}


def test_features_are_switched_on_and_what_is_on_is_left_alone():
    cluster = Cluster()
    assert cluster.data("/feature") == b'{"features":{},"version":2,"status":1}'
    version_1 = (
        b'{"version":1,"status":1,"features":{"f":{"min_version_level":1,"max_version_level":2}}}'
    )
    cluster.do(SetData("/feature", version_1))
    cluster.elect()
    cluster.run()
    assert cluster.data("/feature") == version_1
    cluster.do(SetData("/feature", b'{"version":2,"status":0,"features":{}}'))
    cluster.elect()
    cluster.run()
    assert cluster.data("/feature") == b'{"features":{},"version":2,"status":1}'
    cluster.clear()
    cluster.do(SetData("/feature", b"?"))
    cluster.elect()
    cluster.run()
    assert any(isinstance(one, ZnodeIgnored) and one.path == "/feature" for one in cluster.stories)


def test_features_that_others_write_meanwhile_or_that_cannot_be_written():
    world = ControllerWorld()
    others = iter([b'{"version":2,"status":0,"features":{}}'])

    def meanwhile(writes: object) -> None:
        for data in others:
            world.do(Create("/feature", data))

    world.before_commit = meanwhile
    world.elect()
    world.run()
    assert world.data("/feature") == b'{"features":{},"version":2,"status":1}'
    assert world.stories == []
    refused = ControllerWorld()
    refused.refuse_with = StoreError.NO_AUTH
    refused.elect()
    refused.run()
    assert WriteFailed("/feature", StoreError.NO_AUTH) in refused.stories
    unreadable = ControllerWorld()
    unreadable.refuse_reads["/feature"] = StoreError.NO_AUTH
    unreadable.elect()
    unreadable.run()
    assert not unreadable.exists("/feature")


def test_topics_without_an_id_get_one_from_the_next_controller():
    cluster = Cluster()
    cluster.add("t", [1, 2])
    content = TopicAssignment(NO_TOPIC_ID, assignments([1, 2])).to_bytes()
    cluster.do(SetData("/brokers/topics/t", content))
    cluster.elect()
    cluster.run()
    topic_id = cluster.context.image.topic_id("t")
    assert topic_id != NO_TOPIC_ID
    written = TopicAssignment.from_bytes("", cluster.data("/brokers/topics/t"))
    assert written.topic_id == topic_id
    told = next(one for one in cluster.requests if isinstance(one, SendLeaderAndIsr))
    assert told.topic_ids == {"t": topic_id}


def test_everything_that_was_read_is_watched():
    cluster = Cluster()
    cluster.add("t", [1, 2])
    cluster.elect()
    cluster.run()
    cluster.set_topic("t", [1, 2], [2, 1])
    cluster.run()
    assert cluster.state("t", 1).leader == 2
    cluster.create_topic("u", [1])
    cluster.run()
    assert cluster.state("u").leader == 1
    cluster.delete("u")
    assert not cluster.exists("/brokers/topics/u")


def test_a_deletion_that_waits_for_a_broker_waits_under_the_next_controller_too():
    cluster = Cluster()
    cluster.add("t", [1, 2])
    cluster.kill(2)
    cluster.run()
    delete_topic(cluster, "t")
    cluster.elect()
    cluster.run()
    assert TopicDeletionHalted("t", "replicas are offline") in cluster.stories
    assert cluster.exists("/brokers/topics/t")
    assert not any(shown(one)[0] == "StopReplica" for one in cluster.requests)
    cluster.register(2)
    cluster.run()
    assert not cluster.exists("/brokers/topics/t")


@pytest.mark.parametrize(
    ("path", "meaning"),
    [
        ("/brokers/ids", BrokersChanged()),
        ("/brokers/ids/7", BrokerModified(BrokerId(7))),
        ("/brokers/ids/x", None),
        ("/brokers/topics", TopicsChanged()),
        ("/brokers/topics/7", TopicModified("7")),
        ("/brokers/topics/t/partitions", None),
        ("/admin/delete_topics", TopicDeletionRequested()),
        ("/controller", None),
        ("/elsewhere/7", None),
    ],
)
def test_what_a_watch_means(path: str, meaning: object):
    assert event_of_watch(path) == meaning


def test_a_state_that_cannot_be_read_leaves_its_partition_without_a_leader():
    cluster = Cluster()
    cluster.add("t", [1, 2], [2, 1])
    cluster.do(SetData("/brokers/topics/t/partitions/0/state", b"nonsense"))
    cluster.elect()
    cluster.run()
    assert cluster.partition_state("t") is P.NEW
    assert cluster.partition_state("t", 1) is P.ONLINE
    assert cluster.data("/brokers/topics/t/partitions/0/state") == b"nonsense"
    assert any("cannot be read" in failed.reason for failed in cluster.failures())
    ignored = [one.path for one in cluster.stories if isinstance(one, ZnodeIgnored)]
    assert ignored == ["/brokers/topics/t/partitions/0/state"]


@behaviour("N3")
def test_one_event_after_the_other():
    world = ControllerWorld()
    controller = world.elect()
    outcome = controller.handle(ControllerElected(), 0)
    assert outcome.wanted is not None
    assert not controller.is_idle
    with pytest.raises(InvariantViolated, match="before the last event"):
        controller.handle(BrokersChanged(), 0)


def test_an_answer_to_another_question_is_a_bug():
    world = ControllerWorld()
    controller = world.elect()
    outcome = controller.handle(ControllerElected(), 0)
    assert outcome.wanted is not None
    answer = world.ask(outcome.wanted)
    with pytest.raises(InvariantViolated, match="something else"):
        controller.handle(type(answer)(reads=(*answer.reads, *answer.reads)), 0)
    world.controller = None
    idle = world.elect()
    with pytest.raises(InvariantViolated, match="nothing was asked"):
        idle.handle(answer, 0)


def test_the_marker_of_a_topic_that_is_gone_is_dropped_at_the_start():
    cluster = Cluster()
    delete_topic(cluster, "ghost")
    cluster.elect()
    cluster.run()
    assert not cluster.exists("/admin/delete_topics/ghost")
    assert tp("ghost") not in cluster.context.partition_states
