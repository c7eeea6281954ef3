"""Metadata: brokers, topics and leaders as the controller last told them to this broker."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from barnabas.broker.connections import Request
from barnabas.broker.metadata_cache import CachedTopic, MetadataCache
from barnabas.core.administration.topic_names import INTERNAL_TOPICS, is_valid_topic_name
from barnabas.formats.wire.generated.metadata import (
    MetadataRequest,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from barnabas.model.error_codes import ErrorCode
from barnabas.model.ids import NO_BROKER, NO_TOPIC_ID, BrokerId, TopicId

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker
    from barnabas.formats.wire.generated.update_metadata import UpdateMetadataPartitionState

FIRST_VERSION_WITH_IDS: Final = 12
"""From here on topics may be asked for by id; 10 and 11 have the field and refuse it."""

TOPIC_OPERATIONS: Final = sum(1 << operation for operation in (3, 4, 5, 6, 7, 8, 10, 11))
"""What may be done with a topic when nothing is forbidden: bits by Kafka's operation codes."""
CLUSTER_OPERATIONS: Final = sum(1 << operation for operation in (5, 7, 8, 9, 10, 11, 12))


def handle(
    broker: Broker, request: Request, body: MetadataRequest, now_ms: int
) -> MetadataResponse | None:
    """Answer from the cache; a topic that is not there may be created first (C4)."""
    version = request.api_version
    if body.topics is not None and version < FIRST_VERSION_WITH_IDS:
        for topic in body.topics:
            if topic.name is None or topic.topic_id != NO_TOPIC_ID:
                return _refused(body)
    answer = _Answer(broker, request, body)
    missing = answer.collect()
    # Who asks for all topics misses none.
    is_creation_allowed = broker.config.auto_create_topics_enable and body.allow_auto_topic_creation
    if not missing or not is_creation_allowed:
        for name in missing:
            answer.add_error(name, _absence(name))
        return answer.finish()
    broker.administration.create_automatically(missing, answer.on_created, request)
    return None


def _refused(body: MetadataRequest) -> MetadataResponse:
    """Ids or null names in a version that does not have them yet."""
    return MetadataResponse(
        topics=[
            MetadataResponseTopic(
                error_code=ErrorCode.INVALID_REQUEST,
                name=topic.name or "",
                topic_id=topic.topic_id,
            )
            for topic in body.topics or ()
        ]
    )


def _absence(name: str) -> ErrorCode:
    """Why a topic that nobody may create is not there (C6)."""
    if is_valid_topic_name(name):
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    return ErrorCode.INVALID_TOPIC_EXCEPTION


class _Answer:
    """One answer while it is put together."""

    def __init__(self, broker: Broker, request: Request, body: MetadataRequest) -> None:
        self._broker = broker
        self._request = request
        self._body = body
        self._topics: list[MetadataResponseTopic] = []
        self.is_for_all_topics = body.topics is None or (
            not body.topics and request.api_version == 0
        )

    def collect(self) -> list[str]:
        """Describe every topic that is asked for and there; the names that are not."""
        cache = self._broker.metadata_cache
        names, unknown_ids = self._wanted(cache)
        self._topics = [
            MetadataResponseTopic(
                error_code=ErrorCode.UNKNOWN_TOPIC_ID, name=None, topic_id=topic_id
            )
            for topic_id in unknown_ids
        ]
        missing: list[str] = []
        for name in names:
            topic = cache.topic(name)
            if topic is None:
                missing.append(name)
            else:
                self._topics.append(self._describe(topic, cache))
        return missing

    def _wanted(self, cache: MetadataCache) -> tuple[list[str], list[TopicId]]:
        """Each name once, in the order of asking; ids push names aside."""
        if self.is_for_all_topics:
            return cache.topic_names(), []
        topics = self._body.topics or []
        ids = [t.topic_id for t in topics if t.topic_id != NO_TOPIC_ID]
        if not ids:
            return list(dict.fromkeys(t.name for t in topics if t.name is not None)), []
        names: dict[str, None] = {}
        unknown: dict[TopicId, None] = {}
        for topic_id in ids:
            name = cache.topic_name(topic_id)
            if name is None:
                unknown[topic_id] = None
            else:
                names[name] = None
        return list(names), list(unknown)

    def _describe(self, topic: CachedTopic, cache: MetadataCache) -> MetadataResponseTopic:
        listener = self._request.connection.listener
        version = self._request.api_version
        return MetadataResponseTopic(
            name=topic.name,
            topic_id=topic.topic_id,
            is_internal=topic.name in INTERNAL_TOPICS,
            partitions=[
                describe_partition(topic.partitions[index], cache, listener, version)
                for index in sorted(topic.partitions)
            ],
        )

    def add_error(self, name: str, error: ErrorCode) -> None:
        """A topic that is not there, and why."""
        self._topics.append(
            MetadataResponseTopic(
                error_code=error,
                name=name,
                topic_id=self._broker.metadata_cache.topic_id(name),
                is_internal=name in INTERNAL_TOPICS,
            )
        )

    def on_created(self, errors: dict[str, ErrorCode], now_ms: int) -> None:
        """The missing topics were written, or not: what their asker is told."""
        for name, error in errors.items():
            self.add_error(name, error)
        self._broker.answer(self._request, self.finish())

    def finish(self) -> MetadataResponse:
        broker = self._broker
        version = self._request.api_version
        response = MetadataResponse(
            brokers=[
                MetadataResponseBroker(
                    node_id=node.broker_id, host=node.host, port=node.port, rack=node.rack
                )
                for node in broker.metadata_cache.nodes(self._request.connection.listener)
            ],
            cluster_id=broker.cluster_id,
            controller_id=broker.metadata_cache.controller_id,
            topics=self._topics,
        )
        if 8 <= version <= 10 and self._body.include_cluster_authorized_operations:
            response.cluster_authorized_operations = CLUSTER_OPERATIONS
        if version >= 8 and self._body.include_topic_authorized_operations:
            for topic in self._topics:
                if topic.error_code != ErrorCode.UNKNOWN_TOPIC_ID:
                    topic.topic_authorized_operations = TOPIC_OPERATIONS
        return response


def describe_partition(
    state: UpdateMetadataPartitionState, cache: MetadataCache, listener: str, version: int
) -> MetadataResponsePartition:
    """One partition as clients of a listener are told of it (C6).

    Version 0 leaves out replicas that cannot be reached and says so by an error; later versions
    tell all of them. A leader that cannot be reached is no leader.
    """
    replicas: list[BrokerId] = state.replicas
    isr: list[BrokerId] = state.isr
    if version == 0:
        replicas = [replica for replica in replicas if cache.node(replica, listener) is not None]
        isr = [member for member in isr if cache.node(member, listener) is not None]
    leader_id = state.leader
    error = ErrorCode.NONE
    if cache.node(state.leader, listener) is None:
        leader_id = NO_BROKER
        error = ErrorCode.LEADER_NOT_AVAILABLE
        if version >= 6 and cache.is_alive(state.leader):
            error = ErrorCode.LISTENER_NOT_FOUND
    elif len(replicas) < len(state.replicas) or len(isr) < len(state.isr):
        error = ErrorCode.REPLICA_NOT_AVAILABLE
    return MetadataResponsePartition(
        error_code=error,
        partition_index=state.partition_index,
        leader_id=leader_id,
        leader_epoch=state.leader_epoch,
        replica_nodes=replicas,
        isr_nodes=isr,
        offline_replicas=state.offline_replicas,
    )
