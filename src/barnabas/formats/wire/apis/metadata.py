"""Metadata: the live brokers, the topics, and who leads each partition."""

from barnabas.formats.codec.schema import (
    BOOL,
    BROKER_ID,
    INT16,
    INT32,
    LEADER_EPOCH,
    STRING,
    TOPIC_ID,
    Api,
    Array,
    Field,
    Struct,
)

METADATA_REQUEST_TOPIC = Struct(
    "MetadataRequestTopic",
    Field("topic_id", TOPIC_ID, "10+", ignorable=True),
    Field("name", STRING, nullable="10+"),
)

REQUEST = Struct(
    "MetadataRequest",
    Field("topics", Array(METADATA_REQUEST_TOPIC), nullable="1+"),
    Field("allow_auto_topic_creation", BOOL, "4+", default=True),
    Field("include_cluster_authorized_operations", BOOL, "8-10"),
    Field("include_topic_authorized_operations", BOOL, "8+"),
)

METADATA_RESPONSE_BROKER = Struct(
    "MetadataResponseBroker",
    Field("node_id", BROKER_ID),
    Field("host", STRING),
    Field("port", INT32),
    Field("rack", STRING, "1+", nullable="1+", default=None, ignorable=True),
)

METADATA_RESPONSE_PARTITION = Struct(
    "MetadataResponsePartition",
    Field("error_code", INT16),
    Field("partition_index", INT32),
    Field("leader_id", BROKER_ID),
    Field("leader_epoch", LEADER_EPOCH, "7+", default=-1, ignorable=True),
    Field("replica_nodes", Array(BROKER_ID)),
    Field("isr_nodes", Array(BROKER_ID)),
    Field("offline_replicas", Array(BROKER_ID), "5+", ignorable=True),
)

METADATA_RESPONSE_TOPIC = Struct(
    "MetadataResponseTopic",
    Field("error_code", INT16),
    Field("name", STRING, nullable="12+"),
    Field("topic_id", TOPIC_ID, "10+", ignorable=True),
    Field("is_internal", BOOL, "1+", ignorable=True),
    Field("partitions", Array(METADATA_RESPONSE_PARTITION)),
    Field("topic_authorized_operations", INT32, "8+", default=-2147483648),
)

RESPONSE = Struct(
    "MetadataResponse",
    Field("throttle_time_ms", INT32, "3+", ignorable=True),
    Field("brokers", Array(METADATA_RESPONSE_BROKER)),
    Field("cluster_id", STRING, "2+", nullable="2+", default=None, ignorable=True),
    Field("controller_id", BROKER_ID, "1+", default=-1, ignorable=True),
    Field("topics", Array(METADATA_RESPONSE_TOPIC)),
    Field("cluster_authorized_operations", INT32, "8-10", default=-2147483648),
)

API = Api(
    key=3,
    name="Metadata",
    versions="0-12",
    flexible="9+",
    request=REQUEST,
    response=RESPONSE,
)
