"""Moves replicas along the arrows of their table, a group at a time, and tells their brokers.

`move_replicas` works broker by broker (R2) and flushes once at the end, so that each broker gets
one request of a kind for all partitions of the group. A group that fails in part goes on with the
rest; why a replica stayed where it was is told per replica (R3, R6).
"""

from collections.abc import Iterable, Sequence

from barnabas.core.controller.context import ControllerContext
from barnabas.core.controller.effects import (
    ConditionalWrite,
    Procedure,
    ReplicaAdopted,
    ReplicaMoved,
    Tell,
)
from barnabas.core.controller.elections import without_replica
from barnabas.core.controller.replica_states import (
    LEADER_AND_ISR,
    STOP_REPLICA,
    UPDATE_METADATA,
    ReplicaState,
)
from barnabas.core.controller.state_nodes import set_state, write_states
from barnabas.core.image.cluster_image import Replica
from barnabas.model.ids import BrokerId, TopicPartition
from barnabas.model.partition import LeaderAndIsr, ReplicaAssignment


def group_by_broker(replicas: Iterable[Replica]) -> dict[BrokerId, list[Replica]]:
    """The replicas of each broker, brokers in the order of their ids (R2)."""
    groups: dict[BrokerId, list[Replica]] = {}
    for replica in sorted(replicas, key=lambda replica: (replica.broker_id, replica)):
        groups.setdefault(replica.broker_id, []).append(replica)
    return groups


def move_replicas(
    context: ControllerContext, replicas: Iterable[Replica], target: ReplicaState
) -> Procedure[None]:
    """Move each replica to `target` where its table allows it; nothing for no replicas."""
    groups = group_by_broker(replicas)
    if not groups:
        return
    context.batch.begin()
    for broker_id, group in groups.items():
        valid = context.valid_replicas(group, target)
        if target is ReplicaState.OFFLINE:
            yield from _move_offline(context, broker_id, valid)
        else:
            for replica in valid:
                _move(context, replica, target)
    context.flush()


def _move(context: ControllerContext, replica: Replica, target: ReplicaState) -> None:
    """All crossings that need no write."""
    match target:
        case ReplicaState.NEW:
            _move_new(context, replica)
        case ReplicaState.ONLINE:
            _move_online(context, replica)
        case ReplicaState.DELETION_STARTED:
            context.stop(replica, delete_partition=True)
            context.cross_replica(replica, target, STOP_REPLICA)
        case ReplicaState.DELETION_SUCCESSFUL | ReplicaState.DELETION_INELIGIBLE:
            context.cross_replica(replica, target)
        case ReplicaState.NON_EXISTENT:
            context.image.remove_replica(replica)
            context.cross_replica(replica, target)
        case ReplicaState.OFFLINE:
            raise AssertionError("a replica goes offline by a write")


def _move_new(context: ControllerContext, replica: Replica) -> None:
    """A new replica follows the leader that is there; without one it waits for the election."""
    partition = replica.topic_partition
    state = context.image.partition_states.get(partition)
    if state is None:
        context.cross_replica(replica, ReplicaState.NEW)
    elif state.leader == replica.broker_id:
        context.fail_replica(
            replica, ReplicaState.NEW, "it is the leader of its partition, which is not new"
        )
    else:
        entry = context.leader_and_isr_entry(partition, state, is_new=True)
        context.tell((replica.broker_id,), entry)
        context.cross_replica(replica, ReplicaState.NEW, LEADER_AND_ISR, UPDATE_METADATA)


def _move_online(context: ControllerContext, replica: Replica) -> None:
    partition = replica.topic_partition
    if context.replica_state(replica) is ReplicaState.NEW:
        assignment = context.image.assignment(partition)
        if replica.broker_id not in assignment.replicas:
            context.stories.append(ReplicaAdopted(replica))
            extended = ReplicaAssignment(
                (*assignment.replicas, replica.broker_id),
                assignment.adding_replicas,
                assignment.removing_replicas,
            )
            context.image.set_assignment(partition, extended)
        context.cross_replica(replica, ReplicaState.ONLINE)
        return
    state = context.image.partition_states.get(partition)
    if state is None:
        context.cross_replica(replica, ReplicaState.ONLINE)
        return
    entry = context.leader_and_isr_entry(partition, state, is_new=False)
    context.tell((replica.broker_id,), entry)
    context.cross_replica(replica, ReplicaState.ONLINE, LEADER_AND_ISR, UPDATE_METADATA)


def _move_offline(
    context: ControllerContext, broker_id: BrokerId, replicas: Sequence[Replica]
) -> Procedure[None]:
    """Stop the replicas of one broker, then take them out of their partitions' isr (R12-R15)."""
    states = context.image.partition_states
    for replica in replicas:
        context.stop(replica, delete_partition=False)
    led = [replica.topic_partition for replica in replicas if replica.topic_partition in states]
    yield from write_states(context, led, _TakeOut(context, broker_id))
    for replica in replicas:
        if replica.topic_partition not in states:
            context.tell_metadata(context.image.live_broker_ids(), (replica.topic_partition,))
            context.cross_replica(replica, ReplicaState.OFFLINE, UPDATE_METADATA, STOP_REPLICA)


class _TakeOut:
    """Takes one broker's replica out of a partition's isr, as often as the state has changed."""

    def __init__(self, context: ControllerContext, broker_id: BrokerId) -> None:
        self._context = context
        self._broker_id = broker_id

    def decide(self, partition: TopicPartition, state: LeaderAndIsr) -> ConditionalWrite | None:
        """The write that shrinks the isr; a replica out of it is offline without one (R15)."""
        context, replica = self._context, self._replica(partition)
        source = context.replica_state(replica)
        shrunk = without_replica(state, self._broker_id, context.image.controller_epoch)
        if shrunk is not None:
            written = set_state(partition, state, shrunk)
            return ConditionalWrite(
                written.operations,
                written.change,
                ReplicaMoved(replica, source, ReplicaState.OFFLINE),
                self._tells(partition, written.change.state),
            )
        context.image.confirm_state(partition, state)
        tells = self._tells(partition, context.image.partition_states[partition])
        for told in tells:
            context.tell(told.broker_ids, told.entry)
        names = (LEADER_AND_ISR, UPDATE_METADATA) if tells else ()
        context.cross_replica(replica, ReplicaState.OFFLINE, *names, STOP_REPLICA)
        return None

    def note_missing(self, partition: TopicPartition) -> None:
        """The state node is gone; a topic that is being deleted may have lost it already."""
        if not self._context.is_queued_for_deletion(partition.topic):
            self.note_failed(partition, "its partition has no state in the store")

    def note_failed(self, partition: TopicPartition, reason: str) -> None:
        self._context.fail_replica(self._replica(partition), ReplicaState.OFFLINE, reason)

    def _replica(self, partition: TopicPartition) -> Replica:
        return Replica(partition.topic, partition.partition, self._broker_id)

    def _tells(self, partition: TopicPartition, state: LeaderAndIsr) -> tuple[Tell, ...]:
        """All other replicas are told, unless their topic is being deleted anyway (R13)."""
        context = self._context
        if context.is_queued_for_deletion(partition.topic):
            return ()
        others = context.image.assignment(partition).replicas
        return (
            Tell(
                tuple(replica for replica in others if replica != self._broker_id),
                context.leader_and_isr_entry(partition, state, is_new=False),
            ),
        )
