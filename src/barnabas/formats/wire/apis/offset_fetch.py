"""OffsetFetch: how far a group has read."""

from barnabas.formats.codec.schema import (
    BOOL,
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

OFFSET_FETCH_REQUEST_TOPIC = Struct(
    "OffsetFetchRequestTopic",
    Field("name", STRING, "0-7"),
    Field("partition_indexes", Array(INT32), "0-7"),
)

OFFSET_FETCH_REQUEST_TOPICS = Struct(
    "OffsetFetchRequestTopics",
    Field("name", STRING, "8+"),
    Field("partition_indexes", Array(INT32), "8+"),
)

OFFSET_FETCH_REQUEST_GROUP = Struct(
    "OffsetFetchRequestGroup",
    Field("group_id", STRING, "8+"),
    Field("member_id", STRING, "9+", nullable="9+", default=None, ignorable=True),
    Field("member_epoch", INT32, "9+", default=-1, ignorable=True),
    Field("topics", Array(OFFSET_FETCH_REQUEST_TOPICS), "8+", nullable="8+"),
)

REQUEST = Struct(
    "OffsetFetchRequest",
    Field("group_id", STRING, "0-7"),
    Field("topics", Array(OFFSET_FETCH_REQUEST_TOPIC), "0-7", nullable="2-7"),
    Field("groups", Array(OFFSET_FETCH_REQUEST_GROUP), "8+"),
    Field("require_stable", BOOL, "7+"),
)

OFFSET_FETCH_RESPONSE_PARTITION = Struct(
    "OffsetFetchResponsePartition",
    Field("partition_index", INT32, "0-7"),
    Field("committed_offset", INT64, "0-7"),
    Field("committed_leader_epoch", LEADER_EPOCH, "5-7", default=-1, ignorable=True),
    Field("metadata", STRING, "0-7", nullable="0-7"),
    Field("error_code", INT16, "0-7"),
)

OFFSET_FETCH_RESPONSE_TOPIC = Struct(
    "OffsetFetchResponseTopic",
    Field("name", STRING, "0-7"),
    Field("partitions", Array(OFFSET_FETCH_RESPONSE_PARTITION), "0-7"),
)

OFFSET_FETCH_RESPONSE_PARTITIONS = Struct(
    "OffsetFetchResponsePartitions",
    Field("partition_index", INT32, "8+"),
    Field("committed_offset", INT64, "8+"),
    Field("committed_leader_epoch", LEADER_EPOCH, "8+", default=-1, ignorable=True),
    Field("metadata", STRING, "8+", nullable="8+"),
    Field("error_code", INT16, "8+"),
)

OFFSET_FETCH_RESPONSE_TOPICS = Struct(
    "OffsetFetchResponseTopics",
    Field("name", STRING, "8+"),
    Field("partitions", Array(OFFSET_FETCH_RESPONSE_PARTITIONS), "8+"),
)

OFFSET_FETCH_RESPONSE_GROUP = Struct(
    "OffsetFetchResponseGroup",
    Field("group_id", STRING, "8+"),
    Field("topics", Array(OFFSET_FETCH_RESPONSE_TOPICS), "8+"),
    Field("error_code", INT16, "8+"),
)

RESPONSE = Struct(
    "OffsetFetchResponse",
    Field("throttle_time_ms", INT32, "3+", ignorable=True),
    Field("topics", Array(OFFSET_FETCH_RESPONSE_TOPIC), "0-7"),
    Field("error_code", INT16, "2-7", ignorable=True),
    Field("groups", Array(OFFSET_FETCH_RESPONSE_GROUP), "8+"),
)

API = Api(
    key=9,
    name="OffsetFetch",
    versions="0-9",
    flexible="6+",
    request=REQUEST,
    response=RESPONSE,
)
