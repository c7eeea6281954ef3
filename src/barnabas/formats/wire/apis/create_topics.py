"""CreateTopics: new topics with their partitions, placement and configs."""

from barnabas.formats.codec.schema import (
    BOOL,
    BROKER_ID,
    INT8,
    INT16,
    INT32,
    STRING,
    TOPIC_ID,
    Api,
    Array,
    Field,
    Struct,
)

CREATABLE_REPLICA_ASSIGNMENT = Struct(
    "CreatableReplicaAssignment",
    Field("partition_index", INT32),
    Field("broker_ids", Array(BROKER_ID)),
)

CREATABLE_TOPIC_CONFIG = Struct(
    "CreatableTopicConfig",
    Field("name", STRING),
    Field("value", STRING, nullable="0+"),
)

CREATABLE_TOPIC = Struct(
    "CreatableTopic",
    Field("name", STRING),
    Field("num_partitions", INT32),
    Field("replication_factor", INT16),
    Field("assignments", Array(CREATABLE_REPLICA_ASSIGNMENT)),
    Field("configs", Array(CREATABLE_TOPIC_CONFIG)),
)

REQUEST = Struct(
    "CreateTopicsRequest",
    Field("topics", Array(CREATABLE_TOPIC)),
    Field("timeout_ms", INT32, default=60000),
    Field("validate_only", BOOL, "1+"),
)

CREATABLE_TOPIC_CONFIGS = Struct(
    "CreatableTopicConfigs",
    Field("name", STRING, "5+"),
    Field("value", STRING, "5+", nullable="5+"),
    Field("read_only", BOOL, "5+"),
    Field("config_source", INT8, "5+", default=-1, ignorable=True),
    Field("is_sensitive", BOOL, "5+"),
)

CREATABLE_TOPIC_RESULT = Struct(
    "CreatableTopicResult",
    Field("name", STRING),
    Field("topic_id", TOPIC_ID, "7+", ignorable=True),
    Field("error_code", INT16),
    Field("error_message", STRING, "1+", nullable="0+", ignorable=True),
    Field("topic_config_error_code", INT16, "5+", tag=0, ignorable=True),
    Field("num_partitions", INT32, "5+", default=-1, ignorable=True),
    Field("replication_factor", INT16, "5+", default=-1, ignorable=True),
    Field("configs", Array(CREATABLE_TOPIC_CONFIGS), "5+", nullable="5+", ignorable=True),
)

RESPONSE = Struct(
    "CreateTopicsResponse",
    Field("throttle_time_ms", INT32, "2+", ignorable=True),
    Field("topics", Array(CREATABLE_TOPIC_RESULT)),
)

API = Api(
    key=19,
    name="CreateTopics",
    versions="0-7",
    flexible="5+",
    request=REQUEST,
    response=RESPONSE,
)
