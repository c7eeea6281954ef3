"""Topics that come, grow, vanish or make no sense."""

from barnabas.core.controller.effects import WriteFailed, ZnodeIgnored
from barnabas.core.controller.events import TopicsChanged, UncleanElectionEnabled
from barnabas.core.controller.partition_states import PartitionState
from barnabas.core.controller.replica_states import ReplicaState
from barnabas.formats.znodes.topics import TopicAssignment, topic_path
from barnabas.model.ids import NO_TOPIC_ID
from barnabas.model.znode import Create, Delete, GetChildren, SetData, StoreError
from tests.behaviours import behaviour
from tests.unit.core.controller.cluster import Cluster, shown, tp
from tests.worlds.controller_world import assignments, topic_id_of


@behaviour("C15")
def test_the_difference_is_what_counts():
    cluster = Cluster()
    cluster.add("old", [1])
    cluster.create_topic("new", [2])
    cluster.create_topic("newer", [3])
    cluster.do(Delete("/config/topics/old"))
    cluster.do(*[Delete(f"/brokers/topics/old{p}") for p in (
        "/partitions/0/state", "/partitions/0", "/partitions", "")])  # fmt: skip
    cluster.run()
    image = cluster.context.image
    assert sorted(image.topics) == ["new", "newer"]
    assert image.topic_id("new") == topic_id_of("new")
    assert tp("old") not in image.partition_states
    assert cluster.replica_state("old", 0, 1) is ReplicaState.NON_EXISTENT
    assert cluster.partition_state("new") is PartitionState.ONLINE
    cluster.clear()
    # A topic is watched from the moment it is known.
    cluster.set_topic("new", [2], [3])
    cluster.run()
    assert cluster.partition_state("new", 1) is PartitionState.ONLINE


@behaviour("C15")
def test_a_topic_without_an_id_gets_one():
    cluster = Cluster()
    for topic in ("a", "b"):
        content = TopicAssignment(NO_TOPIC_ID, assignments([1], [2])).to_bytes()
        cluster.do(Create(topic_path(topic), content))
    cluster.handle(TopicsChanged())
    versions = [cluster.context.image.topics[topic].version for topic in ("a", "b")]
    assert versions == [1, 1], "what a write left behind is known before its watch fires"
    cluster.run()
    ids = [cluster.context.image.topic_id(topic) for topic in ("a", "b")]
    assert NO_TOPIC_ID not in ids
    assert len(set(ids)) == 2
    for topic, topic_id in zip(("a", "b"), ids, strict=True):
        written = TopicAssignment.from_bytes("", cluster.data(topic_path(topic)))
        assert written == TopicAssignment(topic_id, assignments([1], [2]))
    told = next(one for one in cluster.requests if shown(one)[0] == "LeaderAndIsr")
    assert told.topic_ids["a"] == ids[0]


def test_an_id_that_somebody_else_gave_meanwhile_is_kept():
    cluster = Cluster()
    content = TopicAssignment(NO_TOPIC_ID, assignments([1])).to_bytes()
    cluster.do(Create(topic_path("a"), content))
    given = iter([TopicAssignment(topic_id_of("a"), assignments([1])).to_bytes()])

    def meanwhile(writes) -> None:
        for data in given:
            cluster.do(SetData(topic_path("a"), data))

    cluster.before_commit = meanwhile
    cluster.run()
    assert cluster.context.image.topic_id("a") == topic_id_of("a")


def test_a_topic_that_makes_no_sense_is_left_alone_by_name():
    cluster = Cluster()
    cluster.do(Create(topic_path("bad"), b"not json"))
    cluster.create_topic("good", [1])
    cluster.run()
    assert cluster.partition_state("good") is PartitionState.ONLINE
    assert "bad" not in cluster.context.image.topics
    assert any(
        isinstance(story, ZnodeIgnored) and story.path == topic_path("bad")
        for story in cluster.stories
    )


@behaviour("M8")
def test_only_partitions_that_are_new_are_created():
    cluster = Cluster()
    cluster.add("t", [1, 2])
    cluster.set_topic("t", [3, 4], [2, 3])
    cluster.run()
    # The other replicas of the old partition are not taken over: that is a reassignment's part.
    assert cluster.context.image.assignment(tp("t")).replicas == (1, 2)
    assert cluster.state("t", 1).leader == 2
    assert cluster.context.image.topics["t"].version == 1
    assert [move[0] for move in cluster.moves()] == [
        "t-1", "t-1 on 2", "t-1 on 3", "t-1", "t-1 on 2", "t-1 on 3",
    ]  # fmt: skip


@behaviour("M9")
def test_growth_of_a_topic_that_is_deleted_is_taken_back_and_its_echo_ignored():
    cluster = Cluster()
    cluster.add("t", [1, 2], [2, 1])
    cluster.silent.update({1, 2})
    cluster.delete("t")
    cluster.clear()
    cluster.set_topic("t", [1, 2], [2, 1], [1])
    cluster.run()
    (restored,) = cluster.committed
    assert isinstance(restored, SetData)
    content = TopicAssignment.from_bytes("", restored.data)
    assert content == TopicAssignment(topic_id_of("t"), assignments([1, 2], [2, 1]))
    assert cluster.context.image.topics["t"].version == 2


@behaviour("M9")
def test_what_is_restored_is_the_old_replicas_of_the_partitions_that_have_a_node():
    cluster = Cluster()
    cluster.kill(3)
    cluster.run()
    # Nobody can lead the second partition: it has no node below /partitions.
    cluster.add("t", [1, 3], [3])
    assert cluster.machine.tree.read(GetChildren("/brokers/topics/t/partitions")).children == ("0",)
    cluster.delete("t")
    assert cluster.context.is_queued_for_deletion("t"), "it waits for broker 3"
    cluster.do(Create("/brokers/topics/t/partitions/2"))
    cluster.clear()
    cluster.set_topic("t", [2, 4], [3], [1])
    cluster.run()
    (restored,) = cluster.committed
    content = TopicAssignment.from_bytes("", restored.data)
    assert content == TopicAssignment(topic_id_of("t"), assignments([1, 3]))
    assert restored == SetData(topic_path("t"), content.to_bytes(), version=1)
    assert sorted(cluster.context.image.topics["t"].assignments) == [0, 1]


def test_a_topic_that_vanishes_while_it_is_looked_at_is_no_trouble():
    cluster = Cluster()
    cluster.add("t", [1])
    cluster.silent.add(1)
    cluster.set_topic("t", [1], [2])
    cluster.do(*[Delete(f"/brokers/topics/t{p}") for p in (
        "/partitions/0/state", "/partitions/0", "/partitions", "")])  # fmt: skip
    cluster.run()
    assert "t" not in cluster.context.image.topics
    assert cluster.committed == []


def test_unclean_election_switched_on_brings_a_topic_back():
    cluster = Cluster()
    for topic in ("t", "u"):
        cluster.add(topic, [1, 2])
    cluster.kill(2)
    cluster.run()
    cluster.kill(1)
    cluster.run()
    cluster.register(2)
    cluster.run()
    for topic in ("t", "u"):
        config = b'{"config":{"unclean.leader.election.enable":"true"}}'
        cluster.do(SetData(f"/config/topics/{topic}", config))
    cluster.handle_event(UncleanElectionEnabled("t"))
    assert cluster.state("t").leader == 2
    assert cluster.state("u").leader == -1


@behaviour("M9")
def test_a_restore_that_loses_is_tried_on_what_is_there_and_one_that_is_refused_is_told():
    cluster = Cluster()
    cluster.add("t", [1])
    cluster.silent.add(1)
    cluster.delete("t")
    others = iter([[[1], [2], [3]]])

    def meanwhile(writes) -> None:
        for grown in others:
            cluster.set_topic("t", *grown)

    cluster.clear()
    cluster.before_commit = meanwhile
    cluster.set_topic("t", [1], [2])
    cluster.run()
    restored = TopicAssignment.from_bytes("", cluster.data(topic_path("t")))
    assert restored == TopicAssignment(topic_id_of("t"), assignments([1]))
    assert cluster.stories == []
    cluster.refuse_with = StoreError.NO_AUTH
    cluster.set_topic("t", [1], [2])
    cluster.run()
    assert cluster.stories == [WriteFailed(topic_path("t"), StoreError.NO_AUTH)]


def test_a_topic_that_the_store_does_not_show_is_told_of():
    cluster = Cluster()
    cluster.refuse_reads[topic_path("t")] = StoreError.NO_AUTH
    cluster.create_topic("t", [1])
    cluster.run()
    assert cluster.stories == [ZnodeIgnored(topic_path("t"), "NO_AUTH")]
    assert "t" not in cluster.context.image.topics


def test_a_store_that_refuses_an_id_is_told_of():
    cluster = Cluster()
    content = TopicAssignment(NO_TOPIC_ID, assignments([1])).to_bytes()
    cluster.do(Create(topic_path("a"), content))
    cluster.refuse_with = StoreError.NO_AUTH
    cluster.run()
    assert WriteFailed(topic_path("a"), StoreError.NO_AUTH) in cluster.stories
    assert any("NO_AUTH" in failed.reason for failed in cluster.failures())
