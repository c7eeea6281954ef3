"""The cluster as its znodes tell it: brokers, topics and partition states with their versions.

The controller decides on this image and writes on condition of its versions, so that a stale image
loses and is read again. Two things in it run ahead of the store or beside it, on purpose: a
replica that was deleted is gone from its assignment before its topic's znode is (R19), and a state
that was confirmed without a write carries the epoch of the controller that confirmed it (R15).
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from barnabas.formats.znodes.brokers import BrokerRegistration
from barnabas.model.epochs import BrokerEpoch, ControllerEpoch
from barnabas.model.ids import NO_TOPIC_ID, BrokerId, TopicId, TopicPartition
from barnabas.model.invariant import invariant
from barnabas.model.partition import LeaderAndIsr, ReplicaAssignment


class Replica(NamedTuple):
    """One replica: a partition and the broker that holds it; its id is the broker's (K6)."""

    topic: str
    partition: int
    broker_id: BrokerId

    @property
    def topic_partition(self) -> TopicPartition:
        return TopicPartition(self.topic, self.partition)

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition} on {self.broker_id}"


@dataclass(frozen=True, slots=True)
class RegisteredBroker:
    """A broker that is there, with what its ephemeral node says."""

    broker_id: BrokerId
    epoch: BrokerEpoch
    """The czxid of the node: a larger one under the same id is a broker that bounced (N12)."""
    registration: BrokerRegistration


@dataclass(slots=True)
class TopicImage:
    """A topic's znode; `assignments` runs ahead of it while replicas are being deleted."""

    topic_id: TopicId
    version: int
    assignments: dict[int, ReplicaAssignment]


class ClusterImage:
    """All of it, for one controller epoch; changed only by what was read or committed."""

    def __init__(self, controller_epoch: ControllerEpoch, controller_epoch_version: int) -> None:
        self.controller_epoch = controller_epoch
        self.controller_epoch_version = controller_epoch_version
        """The znode version of /controller_epoch: every write of this controller checks it."""
        self.brokers: dict[BrokerId, RegisteredBroker] = {}
        self.topics: dict[str, TopicImage] = {}
        self.partition_states: dict[TopicPartition, LeaderAndIsr] = {}
        self.topics_to_be_deleted: dict[str, None] = {}
        """Topics with a marker under /admin/delete_topics, in the order in which they came."""

    # -- brokers -----------------------------------------------------------------------------

    def live_broker_ids(self) -> tuple[BrokerId, ...]:
        """Every registered broker, by id."""
        return tuple(sorted(self.brokers))

    # -- topics and partitions ---------------------------------------------------------------

    def topic_id(self, topic: str) -> TopicId:
        """The id of a topic; NO_TOPIC_ID when it has none or is not there."""
        known = self.topics.get(topic)
        return NO_TOPIC_ID if known is None else known.topic_id

    def topic_name(self, topic_id: TopicId) -> str | None:
        """The topic of an id; None when no topic has it."""
        for name, topic in self.topics.items():
            if topic.topic_id == topic_id:
                return name
        return None

    def assignment(self, partition: TopicPartition) -> ReplicaAssignment:
        """The replicas of a partition; none for one that is not there."""
        topic = self.topics.get(partition.topic)
        if topic is None:
            return _NO_REPLICAS
        return topic.assignments.get(partition.partition, _NO_REPLICAS)

    def set_assignment(self, partition: TopicPartition, assignment: ReplicaAssignment) -> None:
        """Change what is known of a partition's replicas."""
        topic = self.topics.get(partition.topic)
        invariant(topic is not None, f"{partition} has replicas but its topic is not there")
        if topic is not None:
            topic.assignments[partition.partition] = assignment

    def partitions(self) -> Iterator[TopicPartition]:
        """Every partition, by topic and number."""
        for name in sorted(self.topics):
            yield from self.partitions_of(name)

    def partitions_of(self, topic: str) -> list[TopicPartition]:
        """The partitions of a topic, by number."""
        known = self.topics.get(topic)
        if known is None:
            return []
        return [TopicPartition(topic, number) for number in sorted(known.assignments)]

    def replicas_of(self, partitions: Iterable[TopicPartition]) -> list[Replica]:
        """All replicas of these partitions, in the order of their assignments."""
        return [
            Replica(partition.topic, partition.partition, broker_id)
            for partition in partitions
            for broker_id in self.assignment(partition).replicas
        ]

    def replicas_on(self, broker_ids: Iterable[BrokerId]) -> list[Replica]:
        """All replicas that these brokers hold."""
        wanted = frozenset(broker_ids)
        return [
            replica
            for replica in self.replicas_of(self.partitions())
            if replica.broker_id in wanted
        ]

    def remove_replica(self, replica: Replica) -> None:
        """Take a deleted replica out of its partition's assignment, ahead of the znode (R19)."""
        assignment = self.assignment(replica.topic_partition)
        self.set_assignment(
            replica.topic_partition,
            ReplicaAssignment(
                _without(assignment.replicas, replica.broker_id),
                _without(assignment.adding_replicas, replica.broker_id),
                _without(assignment.removing_replicas, replica.broker_id),
            ),
        )

    def confirm_state(self, partition: TopicPartition, state: LeaderAndIsr) -> None:
        """Take a state that this controller read or found unchanged as its own (R15)."""
        self.partition_states[partition] = replace(state, controller_epoch=self.controller_epoch)

    def remove_topic(self, topic: str) -> None:
        """Forget a topic and all that hangs on it."""
        for partition in self.partitions_of(topic):
            self.partition_states.pop(partition, None)
        self.topics.pop(topic, None)
        self.topics_to_be_deleted.pop(topic, None)

    # -- what was committed ------------------------------------------------------------------

    def apply(self, change: "ImageChange") -> None:
        """Take over what a committed write changed."""
        match change:
            case PartitionStateWritten():
                self.partition_states[change.partition] = change.state
            case TopicWritten():
                self.topics[change.topic] = TopicImage(
                    change.topic_id, change.version, dict(change.assignments)
                )


@dataclass(frozen=True, slots=True)
class PartitionStateWritten:
    """A partition's state znode was created or set."""

    partition: TopicPartition
    state: LeaderAndIsr


@dataclass(frozen=True, slots=True)
class TopicWritten:
    """A topic's znode was set."""

    topic: str
    topic_id: TopicId
    version: int
    assignments: Mapping[int, ReplicaAssignment] = field(
        default_factory=dict[int, ReplicaAssignment]
    )


ImageChange = PartitionStateWritten | TopicWritten

_NO_REPLICAS = ReplicaAssignment(())


def _without(replicas: tuple[BrokerId, ...], broker_id: BrokerId) -> tuple[BrokerId, ...]:
    return tuple(replica for replica in replicas if replica != broker_id)
