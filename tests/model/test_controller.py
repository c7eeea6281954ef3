"""The controller among brokers that come and go: whatever happened, at rest the cluster is whole.

Topics are created, grown and deleted, brokers die, return and bounce, directories fail, controllers
are replaced, answers are lost. After each step the controller has come to rest, and then what the
store says, what the controller believes and what the brokers were told must be one.
"""

from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from barnabas.core.controller.effects import CloseChannel, ConditionalWrite, WriteResult
from barnabas.core.controller.events import LeaderAndIsrAnswered
from barnabas.core.controller.partition_states import PartitionState
from barnabas.core.controller.replica_states import ReplicaState
from barnabas.core.controller.request_batch import (
    SendLeaderAndIsr,
    SendStopReplica,
    SendUpdateMetadata,
)
from barnabas.formats.znodes.partition_states import from_bytes, state_path
from barnabas.model.error_codes import ErrorCode
from barnabas.model.ids import BrokerId, TopicPartition
from barnabas.model.znode import Create, GetChildren, StoreError
from tests.unit.core.controller.cluster import Cluster

BROKERS = (1, 2, 3, 4)
TOPICS = ("a", "b", "c")
replica_lists = st.lists(st.sampled_from(BROKERS), min_size=1, max_size=3, unique=True)


class LossyCluster(Cluster):
    """Some answers of the store are lost, the write done or not."""

    losses: list[str]

    def commit(self, write: ConditionalWrite) -> WriteResult:
        loss = self.losses.pop() if getattr(self, "losses", None) else ""
        if loss == "request":
            return WriteResult(StoreError.CONNECTION_LOSS)
        result = super().commit(write)
        return WriteResult(StoreError.CONNECTION_LOSS) if loss == "answer" else result


class ControllerMachine(RuleBasedStateMachine):
    """Random histories of a cluster of four."""

    def __init__(self) -> None:
        super().__init__()
        self.cluster = LossyCluster()
        self.cluster.losses = []
        self.live = set(BROKERS)
        self.told: dict[int, dict[TopicPartition, Any]] = {one: {} for one in BROKERS}
        self.metadata: dict[int, dict[TopicPartition, Any]] = {one: {} for one in BROKERS}

    def work(self) -> None:
        """Let the controller come to rest, and note what the brokers were told."""
        cluster = self.cluster
        cluster.run()
        for effect in cluster.effects:
            match effect:
                case CloseChannel(broker_id):
                    self.told[broker_id], self.metadata[broker_id] = {}, {}
                case SendLeaderAndIsr():
                    for one in effect.entries:
                        self.told[effect.broker_id][one.partition] = (one.state, one.assignment)
                case SendUpdateMetadata():
                    for one in effect.entries:
                        if one.state.leader == -2:
                            self.metadata[effect.broker_id].pop(one.partition, None)
                        else:
                            self.metadata[effect.broker_id][one.partition] = (
                                one.state,
                                one.offline_replicas,
                            )
                case SendStopReplica():
                    for one in effect.entries:
                        if one.delete_partition:
                            self.told[effect.broker_id].pop(one.partition, None)
                case _:
                    pass
        cluster.clear()

    # -- what happens ------------------------------------------------------------------------

    @rule(topic=st.sampled_from(TOPICS), replicas=st.lists(replica_lists, min_size=1, max_size=3))
    def create(self, topic: str, replicas: list[list[int]]) -> None:
        if not self.cluster.exists(f"/brokers/topics/{topic}"):
            self.cluster.create_topic(topic, *replicas)
            self.work()

    @rule(topic=st.sampled_from(TOPICS), replicas=replica_lists)
    def grow(self, topic: str, replicas: list[int]) -> None:
        known = self.cluster.context.image.topics.get(topic)
        if known is not None:
            before = [list(known.assignments[n].replicas) for n in sorted(known.assignments)]
            if all(before):
                self.cluster.set_topic(topic, *before, replicas)
                self.work()

    @rule(topic=st.sampled_from(TOPICS))
    def delete(self, topic: str) -> None:
        if self.cluster.exists(f"/brokers/topics/{topic}"):
            self.cluster.do(Create(f"/admin/delete_topics/{topic}"))
            self.work()

    @precondition(lambda self: len(self.live) > 1)
    @rule(data=st.data())
    def kill(self, data: st.DataObject) -> None:
        broker_id = data.draw(st.sampled_from(sorted(self.live)))
        self.live.remove(broker_id)
        self.cluster.storage_errors.pop(broker_id, None)
        self.cluster.kill(broker_id)
        self.work()

    @precondition(lambda self: len(self.live) < len(BROKERS))
    @rule(data=st.data())
    def start(self, data: st.DataObject) -> None:
        broker_id = data.draw(st.sampled_from(sorted(set(BROKERS) - self.live)))
        self.live.add(broker_id)
        self.cluster.register(broker_id)
        self.work()

    @rule(data=st.data())
    def bounce(self, data: st.DataObject) -> None:
        broker_id = data.draw(st.sampled_from(sorted(self.live)))
        self.cluster.storage_errors.pop(broker_id, None)
        self.cluster.bounce(broker_id)
        self.work()

    @rule(data=st.data())
    def lose_directory(self, data: st.DataObject) -> None:
        broker_id = data.draw(st.sampled_from(sorted(self.live)))
        hosted = [
            one.topic_partition for one in self.cluster.context.image.replicas_on([broker_id])
        ]
        if hosted:
            lost = data.draw(st.sampled_from(sorted(hosted)))
            self.cluster.storage_errors.setdefault(broker_id, set()).add(lost)
            self.cluster.handle(
                LeaderAndIsrAnswered(BrokerId(broker_id), {lost: ErrorCode.KAFKA_STORAGE_ERROR})
            )
            self.work()

    @rule()
    def elect(self) -> None:
        """Another controller takes over; what the brokers were told stays with them."""
        self.cluster.elect()
        self.work()

    @rule(losses=st.lists(st.sampled_from(["", "request", "answer"]), max_size=4))
    def lose_answers(self, losses: list[str]) -> None:
        """The next answers of the store are lost."""
        self.cluster.losses = losses

    # -- what must hold ----------------------------------------------------------------------

    @invariant()
    def image_is_what_the_store_says(self) -> None:
        cluster = self.cluster
        image = cluster.context.image
        assert sorted(image.topics) == sorted(
            cluster.machine.tree.read(GetChildren("/brokers/topics")).children
        )
        assert set(image.brokers) == self.live
        for partition in image.partitions():
            path = state_path(*partition)
            node = cluster.machine.tree.node(path)
            known = image.partition_states.get(partition)
            assert (node is None) == (known is None), partition
            if node is not None and known is not None:
                stored = from_bytes(path, node.data, node.version)
                confirmed = (known.leader, known.isr, known.leader_epoch, known.partition_epoch)
                assert confirmed == (
                    stored.leader, stored.isr, stored.leader_epoch, stored.partition_epoch,
                )  # fmt: skip

    @invariant()
    def leaders_are_live_and_in_sync(self) -> None:
        context = self.cluster.context
        for partition, state in context.image.partition_states.items():
            replicas = context.image.assignment(partition).replicas
            assert state.isr, "an isr is never empty"
            assert state.leader == -1 or state.leader in state.isr
            assert set(state.isr) <= set(replicas)
            if context.is_queued_for_deletion(partition.topic):
                continue
            live = [one for one in state.isr if context.is_online(one, partition)]
            if state.leader == -1:
                assert not live, f"{partition} could have a leader"
                assert context.partition_state(partition) is PartitionState.OFFLINE
            else:
                assert context.is_online(state.leader, partition)
                assert list(state.isr) == live, "who is gone is not in sync"
                assert context.partition_state(partition) is PartitionState.ONLINE

    @invariant()
    def partitions_wait_only_for_replicas(self) -> None:
        context = self.cluster.context
        for partition in context.image.partitions():
            if partition not in context.image.partition_states:
                assert not context.live_replicas(partition) or context.is_queued_for_deletion(
                    partition.topic
                )

    @invariant()
    def replicas_are_as_their_brokers_are(self) -> None:
        context = self.cluster.context
        for replica in context.image.replicas_of(context.image.partitions()):
            if context.is_queued_for_deletion(replica.topic):
                continue
            # A replica that was created on a dead broker is online until somebody looks (P6).
            allowed = [ReplicaState.ONLINE, ReplicaState.OFFLINE]
            if context.is_online(replica.broker_id, replica.topic_partition):
                allowed = [ReplicaState.ONLINE]
            assert context.replica_state(replica) in allowed, replica

    @invariant()
    def deletions_wait_only_for_replicas(self) -> None:
        context = self.cluster.context
        for topic in context.image.topics_to_be_deleted:
            replicas = context.image.replicas_of(context.image.partitions_of(topic))
            assert any(not context.is_online(r.broker_id, r.topic_partition) for r in replicas)

    @invariant()
    def brokers_know_what_they_are(self) -> None:
        """The newest thing every live broker heard is how things are."""
        context = self.cluster.context
        for partition, state in context.image.partition_states.items():
            if context.is_queued_for_deletion(partition.topic):
                continue
            assignment = context.image.assignment(partition)
            offline = tuple(
                one for one in assignment.replicas if not context.is_online(one, partition)
            )
            for broker_id in self.live:
                heard, offline_heard = self.metadata[broker_id][partition]
                assert self._same(heard, state), f"{broker_id} has old metadata of {partition}"
                assert offline_heard == offline
                if broker_id in assignment.replicas and context.is_online(broker_id, partition):
                    role, replicas = self.told[broker_id][partition]
                    assert self._same(role, state), f"{broker_id} has an old role in {partition}"
                    assert replicas == assignment

    @staticmethod
    def _same(one: Any, other: Any) -> bool:
        return (one.leader, one.isr, one.leader_epoch) == (
            other.leader,
            other.isr,
            other.leader_epoch,
        )


ControllerMachine.TestCase.settings = settings(stateful_step_count=25)
TestController = ControllerMachine.TestCase
