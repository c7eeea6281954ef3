"""What one flush tells the brokers: entries per partition, gathered into one request per broker.

Three buffers (Q1): LeaderAndIsr and StopReplica by broker and partition, UpdateMetadata by
partition for a set of brokers. A flush empties all three, whatever becomes of the requests.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple, TypeVar

from barnabas.core.image.cluster_image import ClusterImage, RegisteredBroker
from barnabas.model.epochs import BrokerEpoch, ControllerEpoch, LeaderEpoch
from barnabas.model.ids import BrokerId, TopicId, TopicPartition
from barnabas.model.invariant import invariant
from barnabas.model.partition import LeaderAndIsr, ReplicaAssignment


class LeaderAndIsrEntry(NamedTuple):
    """What a replica's broker is told of its partition (K7)."""

    partition: TopicPartition
    state: LeaderAndIsr
    assignment: ReplicaAssignment
    is_new: bool


class MetadataEntry(NamedTuple):
    """What every broker is told of a partition, for the clients that ask it."""

    partition: TopicPartition
    state: LeaderAndIsr
    replicas: tuple[BrokerId, ...]
    offline_replicas: tuple[BrokerId, ...]


class StopReplicaEntry(NamedTuple):
    """That a broker shall stop its replica, and whether it shall delete it."""

    partition: TopicPartition
    leader_epoch: LeaderEpoch
    delete_partition: bool


@dataclass(frozen=True, slots=True)
class SendLeaderAndIsr:
    """One LeaderAndIsr request to one broker."""

    broker_id: BrokerId
    broker_epoch: BrokerEpoch
    controller_epoch: ControllerEpoch
    entries: tuple[LeaderAndIsrEntry, ...]
    topic_ids: dict[str, TopicId]
    live_leaders: tuple[RegisteredBroker, ...]
    """The live brokers that lead a partition of this request (Q4)."""


@dataclass(frozen=True, slots=True)
class SendUpdateMetadata:
    """One UpdateMetadata request to one broker; without entries it is the broker list alone."""

    broker_id: BrokerId
    broker_epoch: BrokerEpoch
    controller_epoch: ControllerEpoch
    entries: tuple[MetadataEntry, ...]
    topic_ids: dict[str, TopicId]
    live_brokers: tuple[RegisteredBroker, ...]


@dataclass(frozen=True, slots=True)
class SendStopReplica:
    """One StopReplica request to one broker."""

    broker_id: BrokerId
    broker_epoch: BrokerEpoch
    controller_epoch: ControllerEpoch
    entries: tuple[StopReplicaEntry, ...]


ControlRequest = SendLeaderAndIsr | SendUpdateMetadata | SendStopReplica


class Flushed(NamedTuple):
    """The requests of one flush in their order (Q5), and the brokers that are not there (Q10)."""

    requests: tuple[ControlRequest, ...]
    dropped_for: tuple[BrokerId, ...]


class RequestBatch:
    """The three buffers; `is_empty` before and after every group of crossings."""

    def __init__(self) -> None:
        self._leader_and_isr: dict[BrokerId, dict[TopicPartition, LeaderAndIsrEntry]] = {}
        self._stop_replica: dict[BrokerId, dict[TopicPartition, StopReplicaEntry]] = {}
        self._metadata_brokers: dict[BrokerId, None] = {}
        self._metadata: dict[TopicPartition, MetadataEntry] = {}

    @property
    def is_empty(self) -> bool:
        return not (self._leader_and_isr or self._stop_replica or self._metadata_brokers)

    def begin(self) -> None:
        """Start a group of crossings: what an earlier one left behind would be sent with it."""
        invariant(self.is_empty, "requests of an earlier batch were neither sent nor dropped")

    def add_leader_and_isr(self, broker_ids: Iterable[BrokerId], entry: LeaderAndIsrEntry) -> None:
        """Tell these brokers; an entry that was new stays new however often it is replaced (Q3)."""
        for broker_id in _real(broker_ids):
            entries = self._leader_and_isr.setdefault(broker_id, {})
            earlier = entries.get(entry.partition)
            is_new = entry.is_new or (earlier is not None and earlier.is_new)
            entries[entry.partition] = entry._replace(is_new=is_new)

    def add_update_metadata(
        self, broker_ids: Iterable[BrokerId], entries: Iterable[MetadataEntry]
    ) -> None:
        """Tell these brokers these partitions, and all others of this flush with them."""
        for broker_id in _real(broker_ids):
            self._metadata_brokers[broker_id] = None
        for entry in entries:
            self._metadata[entry.partition] = entry

    def add_stop_replica(self, broker_ids: Iterable[BrokerId], entry: StopReplicaEntry) -> None:
        """Stop a replica; once it is to be deleted it stays so (Q3)."""
        for broker_id in _real(broker_ids):
            entries = self._stop_replica.setdefault(broker_id, {})
            earlier = entries.get(entry.partition)
            delete = entry.delete_partition or (earlier is not None and earlier.delete_partition)
            entries[entry.partition] = entry._replace(delete_partition=delete)

    def flush(self, image: ClusterImage) -> Flushed:
        """One request per broker and kind: LeaderAndIsr first, then UpdateMetadata, StopReplica."""
        leader_and_isr, self._leader_and_isr = self._leader_and_isr, {}
        stop_replica, self._stop_replica = self._stop_replica, {}
        metadata_brokers, self._metadata_brokers = self._metadata_brokers, {}
        metadata, self._metadata = self._metadata, {}

        requests: list[ControlRequest] = []
        dropped: dict[BrokerId, None] = {}
        for broker_id in sorted(leader_and_isr):
            entries = _ordered(leader_and_isr[broker_id].values())
            broker = image.brokers.get(broker_id)
            if broker is None:
                dropped[broker_id] = None
            else:
                requests.append(_leader_and_isr_request(image, broker, entries))
        if metadata_brokers:
            told = _ordered(metadata.values())
            for broker_id in sorted(metadata_brokers):
                broker = image.brokers.get(broker_id)
                if broker is None:
                    dropped[broker_id] = None
                else:
                    requests.append(_update_metadata_request(image, broker, told))
        for broker_id in sorted(stop_replica):
            broker = image.brokers.get(broker_id)
            if broker is None:
                dropped[broker_id] = None
            else:
                stopped = _ordered(stop_replica[broker_id].values())
                requests.append(
                    SendStopReplica(broker_id, broker.epoch, image.controller_epoch, stopped)
                )
        return Flushed(tuple(requests), tuple(dropped))


Entry = LeaderAndIsrEntry | MetadataEntry | StopReplicaEntry
AnEntry = TypeVar("AnEntry", bound=Entry)


def _real(broker_ids: Iterable[BrokerId]) -> list[BrokerId]:
    """Without the negative ids that stand for "nobody" (K6)."""
    return [broker_id for broker_id in broker_ids if broker_id >= 0]


def _ordered(entries: Iterable[AnEntry]) -> tuple[AnEntry, ...]:
    return tuple(sorted(entries, key=lambda entry: entry.partition))


def _leader_and_isr_request(
    image: ClusterImage, broker: RegisteredBroker, entries: tuple[LeaderAndIsrEntry, ...]
) -> SendLeaderAndIsr:
    leaders = sorted({entry.state.leader for entry in entries})
    return SendLeaderAndIsr(
        broker.broker_id,
        broker.epoch,
        image.controller_epoch,
        entries,
        _topic_ids(image, entries),
        tuple(image.brokers[leader] for leader in leaders if leader in image.brokers),
    )


def _update_metadata_request(
    image: ClusterImage, broker: RegisteredBroker, entries: tuple[MetadataEntry, ...]
) -> SendUpdateMetadata:
    return SendUpdateMetadata(
        broker.broker_id,
        broker.epoch,
        image.controller_epoch,
        entries,
        _topic_ids(image, entries),
        tuple(image.brokers[broker_id] for broker_id in image.live_broker_ids()),
    )


def _topic_ids(image: ClusterImage, entries: Iterable[Entry]) -> dict[str, TopicId]:
    """The ids of the topics that the entries name; NO_TOPIC_ID for one without."""
    ids: dict[str, TopicId] = {}
    for entry in entries:
        topic = entry.partition.topic
        if topic not in ids:
            ids[topic] = image.topic_id(topic)
    return ids
