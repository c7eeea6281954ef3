"""What the controller told this broker about the cluster: the answer to every Metadata request.

Updates merge: a partition stays as it was told until it is told again; leader -2 takes it away,
and its topic with the last of its partitions. The list of live brokers and the controller's id are
replaced whole by every update, also by one that names no partition at all (N11). Only a decoded
request is kept, so that nothing is lost that a later answer needs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

from barnabas.formats.wire.generated.update_metadata import (
    UpdateMetadataBroker,
    UpdateMetadataPartitionState,
)
from barnabas.model.ids import NO_BROKER, NO_TOPIC_ID, BrokerId, TopicId, TopicPartition
from barnabas.model.partition import LEADER_DURING_DELETE

UNKNOWN_FEATURES_EPOCH = -1


class Node(NamedTuple):
    """A broker as clients of one listener reach it."""

    broker_id: BrokerId
    host: str
    port: int
    rack: str | None


class LiveBroker(NamedTuple):
    """A broker that is there, and where it listens."""

    broker_id: BrokerId
    rack: str | None
    endpoints: dict[str, tuple[str, int]]
    """Host and port by the name of the listener."""

    def node(self, listener: str) -> Node | None:
        """Where clients of a listener reach the broker; None if it has no such listener."""
        endpoint = self.endpoints.get(listener)
        if endpoint is None:
            return None
        return Node(self.broker_id, endpoint[0], endpoint[1], self.rack)


class CachedTopic:
    """One topic with the last told state of its partitions."""

    __slots__ = ("name", "partitions", "topic_id")

    def __init__(self, name: str) -> None:
        self.name = name
        self.topic_id = NO_TOPIC_ID
        self.partitions: dict[int, UpdateMetadataPartitionState] = {}

    def partition_count(self) -> int:
        return len(self.partitions)


class PartitionUpdate(NamedTuple):
    """One partition's news, with the topic's name that the request may hold elsewhere."""

    topic: str
    state: UpdateMetadataPartitionState


class CacheUpdate(NamedTuple):
    """What one update touched, for those who wait for it."""

    topics: tuple[str, ...]
    """Every topic that an entry of the update named, in its order."""
    deleted: tuple[TopicPartition, ...]


Listener = Callable[[CacheUpdate, int], None]


class MetadataCache:
    """The cluster as last told; empty until the first UpdateMetadata."""

    def __init__(self) -> None:
        self.controller_id: BrokerId = NO_BROKER
        self.finalized_features_epoch = UNKNOWN_FEATURES_EPOCH
        self._topics: dict[str, CachedTopic] = {}
        self._topic_names: dict[TopicId, str] = {}
        self._live_brokers: dict[BrokerId, LiveBroker] = {}
        self._listeners: list[Listener] = []

    def on_update(self, listener: Listener) -> None:
        """Call `listener(update, now_ms)` after each update, in order of asking."""
        self._listeners.append(listener)

    # -- reading -----------------------------------------------------------------------------

    def contains(self, topic: str, partition: int) -> bool:
        cached = self._topics.get(topic)
        return cached is not None and partition in cached.partitions

    def topic(self, name: str) -> CachedTopic | None:
        return self._topics.get(name)

    def topic_names(self) -> list[str]:
        """Every topic, by name."""
        return sorted(self._topics)

    def topic_id(self, name: str) -> TopicId:
        """The id of a topic; NO_TOPIC_ID when there is no such topic or it has none."""
        cached = self._topics.get(name)
        return NO_TOPIC_ID if cached is None else cached.topic_id

    def topic_name(self, topic_id: TopicId) -> str | None:
        return self._topic_names.get(topic_id)

    def partition(self, topic: str, partition: int) -> UpdateMetadataPartitionState | None:
        cached = self._topics.get(topic)
        return None if cached is None else cached.partitions.get(partition)

    def is_alive(self, broker_id: BrokerId) -> bool:
        return broker_id in self._live_brokers

    def live_broker(self, broker_id: BrokerId) -> LiveBroker | None:
        return self._live_brokers.get(broker_id)

    def live_brokers(self) -> list[LiveBroker]:
        """Every live broker, by id."""
        return [self._live_brokers[broker_id] for broker_id in sorted(self._live_brokers)]

    def node(self, broker_id: BrokerId, listener: str) -> Node | None:
        """Where a live broker is reached by clients of a listener."""
        live = self._live_brokers.get(broker_id)
        return None if live is None else live.node(listener)

    def nodes(self, listener: str) -> list[Node]:
        """The live brokers that clients of a listener can reach, by id."""
        found = [broker.node(listener) for broker in self.live_brokers()]
        return [node for node in found if node is not None]

    # -- updating ----------------------------------------------------------------------------

    def apply(
        self,
        controller_id: BrokerId,
        brokers: Iterable[UpdateMetadataBroker],
        topic_ids: Iterable[tuple[str, TopicId]],
        partitions: Iterable[PartitionUpdate],
        now_ms: int,
    ) -> CacheUpdate:
        """Merge one update; `topic_ids` holds every topic that was told with a place for its id."""
        self.controller_id = controller_id if controller_id >= 0 else NO_BROKER
        self._live_brokers = {
            broker.id: LiveBroker(
                broker.id,
                broker.rack,
                {end.listener: (end.host, end.port) for end in broker.endpoints},
            )
            for broker in brokers
        }
        touched: dict[str, None] = {}
        deleted: dict[TopicPartition, None] = {}
        for topic, state in partitions:
            touched[topic] = None
            key = TopicPartition(topic, state.partition_index)
            if state.leader == LEADER_DURING_DELETE:
                self._remove(topic, state.partition_index)
                deleted[key] = None
            else:
                self._put(topic, state)
                deleted.pop(key, None)
        for topic, topic_id in topic_ids:
            self._name(topic, topic_id)
        update = CacheUpdate(tuple(touched), tuple(deleted))
        for listener in self._listeners:
            listener(update, now_ms)
        return update

    def _put(self, topic: str, state: UpdateMetadataPartitionState) -> None:
        cached = self._topics.get(topic)
        if cached is None:
            cached = self._topics[topic] = CachedTopic(topic)
        cached.partitions[state.partition_index] = state

    def _remove(self, topic: str, partition: int) -> None:
        cached = self._topics.get(topic)
        if cached is None:
            return
        cached.partitions.pop(partition, None)
        if not cached.partitions:
            del self._topics[topic]
            self._topic_names.pop(cached.topic_id, None)

    def _name(self, topic: str, topic_id: TopicId) -> None:
        """Tie a topic and its id; the id of zeros withdraws the one that was known."""
        cached = self._topics.get(topic)
        if cached is None or cached.topic_id == topic_id:
            return
        self._topic_names.pop(cached.topic_id, None)
        cached.topic_id = topic_id
        if topic_id != NO_TOPIC_ID:
            self._topic_names[topic_id] = topic
