"""UpdateMetadata: the controller tells a broker what it shall answer to Metadata."""

from barnabas.formats.codec.schema import (
    BOOL,
    BROKER_EPOCH,
    BROKER_ID,
    CONTROLLER_EPOCH,
    INT8,
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

UPDATE_METADATA_PARTITION_STATE = Struct(
    "UpdateMetadataPartitionState",
    Field("topic_name", STRING, "0-4", ignorable=True),
    Field("partition_index", INT32),
    Field("controller_epoch", CONTROLLER_EPOCH),
    Field("leader", BROKER_ID),
    Field("leader_epoch", LEADER_EPOCH),
    Field("isr", Array(BROKER_ID)),
    Field("zk_version", INT32),
    Field("replicas", Array(BROKER_ID)),
    Field("offline_replicas", Array(BROKER_ID), "4+", ignorable=True),
)

UPDATE_METADATA_TOPIC_STATE = Struct(
    "UpdateMetadataTopicState",
    Field("topic_name", STRING, "5+"),
    Field("topic_id", TOPIC_ID, "7+", ignorable=True),
    Field("partition_states", Array(UPDATE_METADATA_PARTITION_STATE), "5+"),
)

UPDATE_METADATA_ENDPOINT = Struct(
    "UpdateMetadataEndpoint",
    Field("port", INT32, "1+"),
    Field("host", STRING, "1+"),
    Field("listener", STRING, "3+", ignorable=True),
    Field("security_protocol", INT16, "1+"),
)

UPDATE_METADATA_BROKER = Struct(
    "UpdateMetadataBroker",
    Field("id", BROKER_ID),
    Field("v0_host", STRING, "0", ignorable=True),
    Field("v0_port", INT32, "0", ignorable=True),
    Field("endpoints", Array(UPDATE_METADATA_ENDPOINT), "1+", ignorable=True),
    Field("rack", STRING, "2+", nullable="0+", ignorable=True),
)

REQUEST = Struct(
    "UpdateMetadataRequest",
    Field("controller_id", BROKER_ID),
    Field("is_k_raft_controller", BOOL, "8+"),
    Field("type", INT8, "8+", tag=0),
    Field("controller_epoch", CONTROLLER_EPOCH),
    Field("broker_epoch", BROKER_EPOCH, "5+", default=-1, ignorable=True),
    Field("ungrouped_partition_states", Array(UPDATE_METADATA_PARTITION_STATE), "0-4"),
    Field("topic_states", Array(UPDATE_METADATA_TOPIC_STATE), "5+"),
    Field("live_brokers", Array(UPDATE_METADATA_BROKER)),
)

RESPONSE = Struct(
    "UpdateMetadataResponse",
    Field("error_code", INT16),
)

API = Api(
    key=6,
    name="UpdateMetadata",
    versions="0-8",
    flexible="6+",
    request=REQUEST,
    response=RESPONSE,
)
