"""OffsetDelete: committed offsets of a group to be removed."""

from barnabas.formats.codec.schema import (
    INT16,
    INT32,
    STRING,
    Api,
    Array,
    Field,
    Struct,
)

OFFSET_DELETE_REQUEST_PARTITION = Struct(
    "OffsetDeleteRequestPartition",
    Field("partition_index", INT32),
)

OFFSET_DELETE_REQUEST_TOPIC = Struct(
    "OffsetDeleteRequestTopic",
    Field("name", STRING),
    Field("partitions", Array(OFFSET_DELETE_REQUEST_PARTITION)),
)

REQUEST = Struct(
    "OffsetDeleteRequest",
    Field("group_id", STRING),
    Field("topics", Array(OFFSET_DELETE_REQUEST_TOPIC)),
)

OFFSET_DELETE_RESPONSE_PARTITION = Struct(
    "OffsetDeleteResponsePartition",
    Field("partition_index", INT32),
    Field("error_code", INT16),
)

OFFSET_DELETE_RESPONSE_TOPIC = Struct(
    "OffsetDeleteResponseTopic",
    Field("name", STRING),
    Field("partitions", Array(OFFSET_DELETE_RESPONSE_PARTITION)),
)

RESPONSE = Struct(
    "OffsetDeleteResponse",
    Field("error_code", INT16),
    Field("throttle_time_ms", INT32, ignorable=True),
    Field("topics", Array(OFFSET_DELETE_RESPONSE_TOPIC)),
)

API = Api(
    key=47,
    name="OffsetDelete",
    versions="0",
    flexible="none",
    request=REQUEST,
    response=RESPONSE,
)
