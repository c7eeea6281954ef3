"""What a cluster told of itself: brokers, controller, topics and who leads their partitions."""

from typing import NamedTuple

from barnabas.client.errors import code_of
from barnabas.client.steps import Address
from barnabas.formats.wire.catalog import Message
from barnabas.formats.wire.generated.metadata import MetadataRequest, MetadataRequestTopic
from barnabas.model.error_codes import ErrorCode
from barnabas.model.ids import NO_BROKER, BrokerId, TopicId


class BrokerNode(NamedTuple):
    """A live broker."""

    id: BrokerId
    address: Address
    rack: str | None


class PartitionMetadata(NamedTuple):
    """One partition; no leader is -1."""

    partition: int
    leader_id: BrokerId
    leader_epoch: int
    replicas: tuple[BrokerId, ...]
    isr: tuple[BrokerId, ...]
    offline_replicas: tuple[BrokerId, ...]
    code: ErrorCode


class TopicMetadata(NamedTuple):
    """A topic, partitions in order; with a code other than NONE the rest says nothing."""

    name: str
    topic_id: TopicId
    is_internal: bool
    partitions: tuple[PartitionMetadata, ...]
    code: ErrorCode

    @property
    def replication_factor(self) -> int:
        return len(self.partitions[0].replicas) if self.partitions else 0


class ClusterMetadata(NamedTuple):
    """One answer to a Metadata request."""

    cluster_id: str | None
    controller_id: BrokerId
    brokers: dict[BrokerId, BrokerNode]
    topics: dict[str, TopicMetadata]


NOTHING_KNOWN = ClusterMetadata(None, NO_BROKER, {}, {})


def build_request(topics: tuple[str, ...] | None, version: int, may_create: bool) -> Message:
    """A Metadata request for these topics, or for all of them."""
    asked = None if topics is None else [MetadataRequestTopic(name=name) for name in topics]
    if asked is None and version == 0:
        asked = []
    request = MetadataRequest(topics=asked)
    if version >= 4:
        request.allow_auto_topic_creation = may_create
    return request


def read_response(body: Message) -> ClusterMetadata:
    """What the answer says."""
    return ClusterMetadata(
        body.cluster_id,
        body.controller_id,
        {
            node.node_id: BrokerNode(node.node_id, Address(node.host, node.port), node.rack)
            for node in body.brokers
        },
        {topic.name: _read_topic(topic) for topic in body.topics},
    )


def _read_topic(topic: Message) -> TopicMetadata:
    partitions = [
        PartitionMetadata(
            partition.partition_index,
            partition.leader_id,
            partition.leader_epoch,
            tuple(partition.replica_nodes),
            tuple(partition.isr_nodes),
            tuple(partition.offline_replicas),
            code_of(partition.error_code),
        )
        for partition in topic.partitions
    ]
    partitions.sort()
    return TopicMetadata(
        topic.name, topic.topic_id, topic.is_internal, tuple(partitions), code_of(topic.error_code)
    )
