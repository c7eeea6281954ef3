"""What the controller knows beside the znodes: states, deletions under way, what was not sent yet.

It is forgotten with the controllership: a new controller derives all of it from the image.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from barnabas.core.controller.effects import (
    ConditionalWrite,
    Effect,
    PartitionMoved,
    PartitionMoveFailed,
    PartitionMoveRefused,
    ReplicaMoved,
    ReplicaMoveFailed,
    ReplicaMoveRefused,
    RequestsDropped,
    Story,
)
from barnabas.core.controller.partition_states import PARTITION, PartitionState
from barnabas.core.controller.replica_states import (
    LEADER_AND_ISR,
    REPLICA,
    STOP_REPLICA,
    UPDATE_METADATA,
    ReplicaState,
)
from barnabas.core.controller.request_batch import (
    LeaderAndIsrEntry,
    MetadataEntry,
    RequestBatch,
    StopReplicaEntry,
)
from barnabas.core.image.cluster_image import ClusterImage, Replica
from barnabas.model.epochs import EPOCH_DURING_DELETE, NO_EPOCH, LeaderEpoch, PartitionEpoch
from barnabas.model.ids import BrokerId, TopicId, TopicPartition
from barnabas.model.partition import LEADER_DURING_DELETE, LeaderAndIsr


@dataclass(frozen=True, slots=True)
class ControllerSettings:
    """The settings that the controller's decisions depend on."""

    delete_topic_enable: bool = True
    unclean_leader_election_enable: bool = False
    """What holds for a topic that does not say it for itself."""


class ControllerContext:
    """The image, the two machines' states, and the outbox of the step that is running."""

    def __init__(
        self, settings: ControllerSettings, image: ClusterImage, new_topic_id: Callable[[], TopicId]
    ) -> None:
        self.settings = settings
        self.image = image
        self.new_topic_id = new_topic_id
        self.replica_states: dict[Replica, ReplicaState] = {}
        self.partition_states: dict[TopicPartition, PartitionState] = {}
        self.replicas_on_offline_dirs: dict[BrokerId, dict[TopicPartition, None]] = {}
        """Replicas whose broker answered KAFKA_STORAGE_ERROR (Q7)."""
        self.topics_ineligible_for_deletion: dict[str, str] = {}
        """Topics whose deletion waits, and for what; a part of those to be deleted."""
        self.topics_with_deletion_started: dict[str, None] = {}
        self.batch = RequestBatch()
        self.effects: list[Effect] = []
        self.stories: list[Story] = []

    # -- questions ---------------------------------------------------------------------------

    def is_online(self, broker_id: BrokerId, partition: TopicPartition) -> bool:
        """Whether the replica's broker is there and its directory is not known to be offline."""
        return broker_id in self.image.brokers and partition not in (
            self.replicas_on_offline_dirs.get(broker_id, {})
        )

    def live_replicas(self, partition: TopicPartition) -> tuple[BrokerId, ...]:
        """The assigned replicas that are online, in the order of preference."""
        replicas = self.image.assignment(partition).replicas
        return tuple(replica for replica in replicas if self.is_online(replica, partition))

    def is_queued_for_deletion(self, topic: str) -> bool:
        return topic in self.image.topics_to_be_deleted

    def replicas_in(self, topic: str, state: ReplicaState) -> list[Replica]:
        """The replicas of a topic that are in a state."""
        replicas = self.image.replicas_of(self.image.partitions_of(topic))
        return [replica for replica in replicas if self.replica_states.get(replica) is state]

    # -- the replica machine -----------------------------------------------------------------

    def replica_state(self, replica: Replica) -> ReplicaState:
        """The state of a replica; one that was never heard of does not exist (R5)."""
        return self.replica_states.get(replica, ReplicaState.NON_EXISTENT)

    def valid_replicas(self, replicas: Iterable[Replica], target: ReplicaState) -> list[Replica]:
        """Those that may enter `target`; the others are refused, one story each (R6)."""
        valid: list[Replica] = []
        for replica in replicas:
            source = self.replica_states.setdefault(replica, ReplicaState.NON_EXISTENT)
            if REPLICA.allows(source, target):
                valid.append(replica)
            else:
                self.stories.append(
                    ReplicaMoveRefused(replica, source, target, REPLICA.sources_of(target))
                )
        return valid

    def cross_replica(self, replica: Replica, target: ReplicaState, *requests: str) -> None:
        """Take an arrow; `requests` names what was added to the batch because of it."""
        source = self.replica_state(replica)
        REPLICA.check_names(requests, source, target)
        if target is ReplicaState.NON_EXISTENT:
            self.replica_states.pop(replica, None)
        else:
            self.replica_states[replica] = target
        self.stories.append(ReplicaMoved(replica, source, target))

    def fail_replica(self, replica: Replica, target: ReplicaState, reason: str) -> None:
        """Tell why a replica stays where it is."""
        source = self.replica_state(replica)
        self.stories.append(ReplicaMoveFailed(replica, source, target, reason))

    # -- the partition machine ---------------------------------------------------------------

    def partition_state(self, partition: TopicPartition) -> PartitionState:
        return self.partition_states.get(partition, PartitionState.NON_EXISTENT)

    def valid_partitions(
        self, partitions: Iterable[TopicPartition], target: PartitionState
    ) -> list[TopicPartition]:
        """Those that may enter `target`; the others are refused, one story each."""
        valid: list[TopicPartition] = []
        for partition in partitions:
            source = self.partition_states.setdefault(partition, PartitionState.NON_EXISTENT)
            if PARTITION.allows(source, target):
                valid.append(partition)
            else:
                self.stories.append(
                    PartitionMoveRefused(partition, source, target, PARTITION.sources_of(target))
                )
        return valid

    def cross_partition(
        self, partition: TopicPartition, target: PartitionState, *requests: str
    ) -> None:
        """Take an arrow; `requests` names what was added to the batch because of it."""
        source = self.partition_state(partition)
        PARTITION.check_names(requests, source, target)
        self.partition_states[partition] = target
        self.stories.append(PartitionMoved(partition, source, target))

    def fail_partition(
        self, partition: TopicPartition, target: PartitionState, reason: str
    ) -> None:
        """Tell why a partition stays where it is."""
        source = self.partition_state(partition)
        self.stories.append(PartitionMoveFailed(partition, source, target, reason))

    def forget_topic(self, topic: str) -> None:
        """Drop a topic from the image and all states of its partitions and replicas."""
        for partition in [known for known in self.partition_states if known.topic == topic]:
            del self.partition_states[partition]
        for replica in [known for known in self.replica_states if known.topic == topic]:
            del self.replica_states[replica]
        for offline in self.replicas_on_offline_dirs.values():
            for partition in [known for known in offline if known.topic == topic]:
                del offline[partition]
        self.topics_ineligible_for_deletion.pop(topic, None)
        self.topics_with_deletion_started.pop(topic, None)
        self.image.remove_topic(topic)

    # -- requests ----------------------------------------------------------------------------

    def leader_and_isr_entry(
        self, partition: TopicPartition, state: LeaderAndIsr, *, is_new: bool
    ) -> LeaderAndIsrEntry:
        return LeaderAndIsrEntry(partition, state, self.image.assignment(partition), is_new)

    def tell(self, broker_ids: Iterable[BrokerId], entry: LeaderAndIsrEntry) -> None:
        """Send a partition's state to its replicas, and with it to everybody's metadata (Q2)."""
        self.batch.add_leader_and_isr(broker_ids, entry)
        self.tell_metadata(self.image.live_broker_ids(), (entry.partition,))

    def tell_metadata(
        self, broker_ids: Iterable[BrokerId], partitions: Iterable[TopicPartition]
    ) -> None:
        """Send partitions to brokers' metadata; one that never had a leader is left out."""
        entries = [self.metadata_entry(partition) for partition in partitions]
        self.batch.add_update_metadata(broker_ids, [entry for entry in entries if entry])

    def stop(self, replica: Replica, *, delete_partition: bool) -> None:
        """Stop a replica, with the epoch that its broker compares (R12, D12)."""
        partition = replica.topic_partition
        if self.is_queued_for_deletion(replica.topic):
            leader_epoch = EPOCH_DURING_DELETE
        else:
            state = self.image.partition_states.get(partition)
            leader_epoch = NO_EPOCH if state is None else state.leader_epoch
        entry = StopReplicaEntry(partition, LeaderEpoch(leader_epoch), delete_partition)
        self.batch.add_stop_replica((replica.broker_id,), entry)

    def flush(self) -> None:
        """Release what the batch gathered."""
        flushed = self.batch.flush(self.image)
        self.effects.extend(flushed.requests)
        self.stories.extend(RequestsDropped(broker_id) for broker_id in flushed.dropped_for)

    def metadata_entry(self, partition: TopicPartition) -> MetadataEntry | None:
        """What everybody is told of a partition; None when it never had a leader."""
        state = self.image.partition_states.get(partition)
        if state is None:
            return None
        if self.is_queued_for_deletion(partition.topic):
            state = replace(
                state,
                leader=LEADER_DURING_DELETE,
                leader_epoch=LeaderEpoch(0),
                partition_epoch=PartitionEpoch(0),
            )
        replicas = self.image.assignment(partition).replicas
        offline = tuple(broker for broker in replicas if not self.is_online(broker, partition))
        return MetadataEntry(partition, state, replicas, offline)

    # -- committed writes --------------------------------------------------------------------

    def apply(self, write: ConditionalWrite) -> None:
        """Take over a committed write: the image first, then the crossing and who is told."""
        if write.change is not None:
            self.image.apply(write.change)
        names = (LEADER_AND_ISR, UPDATE_METADATA) if write.tells else ()
        match write.crossing:
            case ReplicaMoved(replica, _, target):
                # Only the way out of the isr is written, and there the replica was stopped first.
                self.cross_replica(replica, target, *names, STOP_REPLICA)
            case PartitionMoved(partition, _, target):
                self.cross_partition(partition, target, *names)
            case None:
                pass
        for told in write.tells:
            self.tell(told.broker_ids, told.entry)
