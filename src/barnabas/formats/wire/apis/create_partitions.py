"""CreatePartitions: more partitions for existing topics."""

from barnabas.formats.codec.schema import (
    BOOL,
    BROKER_ID,
    INT16,
    INT32,
    STRING,
    Api,
    Array,
    Field,
    Struct,
)

CREATE_PARTITIONS_ASSIGNMENT = Struct(
    "CreatePartitionsAssignment",
    Field("broker_ids", Array(BROKER_ID)),
)

CREATE_PARTITIONS_TOPIC = Struct(
    "CreatePartitionsTopic",
    Field("name", STRING),
    Field("count", INT32),
    Field("assignments", Array(CREATE_PARTITIONS_ASSIGNMENT), nullable="0+"),
)

REQUEST = Struct(
    "CreatePartitionsRequest",
    Field("topics", Array(CREATE_PARTITIONS_TOPIC)),
    Field("timeout_ms", INT32),
    Field("validate_only", BOOL),
)

CREATE_PARTITIONS_TOPIC_RESULT = Struct(
    "CreatePartitionsTopicResult",
    Field("name", STRING),
    Field("error_code", INT16),
    Field("error_message", STRING, nullable="0+", default=None),
)

RESPONSE = Struct(
    "CreatePartitionsResponse",
    Field("throttle_time_ms", INT32),
    Field("results", Array(CREATE_PARTITIONS_TOPIC_RESULT)),
)

API = Api(
    key=37,
    name="CreatePartitions",
    versions="0-3",
    flexible="2+",
    request=REQUEST,
    response=RESPONSE,
)
