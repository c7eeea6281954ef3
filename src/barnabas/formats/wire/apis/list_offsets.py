"""ListOffsets: the offset that belongs to a timestamp, or one of the ends of a log."""

from barnabas.formats.codec.schema import (
    BROKER_ID,
    INT8,
    INT16,
    INT32,
    INT64,
    LEADER_EPOCH,
    STRING,
    Api,
    Array,
    Field,
    Struct,
)

LIST_OFFSETS_PARTITION = Struct(
    "ListOffsetsPartition",
    Field("partition_index", INT32),
    Field("current_leader_epoch", LEADER_EPOCH, "4+", default=-1, ignorable=True),
    Field("timestamp", INT64),
    Field("max_num_offsets", INT32, "0", default=1),
)

LIST_OFFSETS_TOPIC = Struct(
    "ListOffsetsTopic",
    Field("name", STRING),
    Field("partitions", Array(LIST_OFFSETS_PARTITION)),
)

REQUEST = Struct(
    "ListOffsetsRequest",
    Field("replica_id", BROKER_ID),
    Field("isolation_level", INT8, "2+"),
    Field("topics", Array(LIST_OFFSETS_TOPIC)),
)

LIST_OFFSETS_PARTITION_RESPONSE = Struct(
    "ListOffsetsPartitionResponse",
    Field("partition_index", INT32),
    Field("error_code", INT16),
    Field("old_style_offsets", Array(INT64), "0"),
    Field("timestamp", INT64, "1+", default=-1),
    Field("offset", INT64, "1+", default=-1),
    Field("leader_epoch", LEADER_EPOCH, "4+", default=-1),
)

LIST_OFFSETS_TOPIC_RESPONSE = Struct(
    "ListOffsetsTopicResponse",
    Field("name", STRING),
    Field("partitions", Array(LIST_OFFSETS_PARTITION_RESPONSE)),
)

RESPONSE = Struct(
    "ListOffsetsResponse",
    Field("throttle_time_ms", INT32, "2+", ignorable=True),
    Field("topics", Array(LIST_OFFSETS_TOPIC_RESPONSE)),
)

API = Api(
    key=2,
    name="ListOffsets",
    versions="0-9",
    flexible="6+",
    request=REQUEST,
    response=RESPONSE,
)
