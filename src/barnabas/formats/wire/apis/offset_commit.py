"""OffsetCommit: a group's member notes how far it has read."""

from barnabas.formats.codec.schema import (
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

OFFSET_COMMIT_REQUEST_PARTITION = Struct(
    "OffsetCommitRequestPartition",
    Field("partition_index", INT32),
    Field("committed_offset", INT64),
    Field("committed_leader_epoch", LEADER_EPOCH, "6+", default=-1, ignorable=True),
    Field("commit_timestamp", INT64, "1", default=-1),
    Field("committed_metadata", STRING, nullable="0+"),
)

OFFSET_COMMIT_REQUEST_TOPIC = Struct(
    "OffsetCommitRequestTopic",
    Field("name", STRING),
    Field("partitions", Array(OFFSET_COMMIT_REQUEST_PARTITION)),
)

REQUEST = Struct(
    "OffsetCommitRequest",
    Field("group_id", STRING),
    Field("generation_id_or_member_epoch", INT32, "1+", default=-1, ignorable=True),
    Field("member_id", STRING, "1+", ignorable=True),
    Field("group_instance_id", STRING, "7+", nullable="7+", default=None),
    Field("retention_time_ms", INT64, "2-4", default=-1, ignorable=True),
    Field("topics", Array(OFFSET_COMMIT_REQUEST_TOPIC)),
)

OFFSET_COMMIT_RESPONSE_PARTITION = Struct(
    "OffsetCommitResponsePartition",
    Field("partition_index", INT32),
    Field("error_code", INT16),
)

OFFSET_COMMIT_RESPONSE_TOPIC = Struct(
    "OffsetCommitResponseTopic",
    Field("name", STRING),
    Field("partitions", Array(OFFSET_COMMIT_RESPONSE_PARTITION)),
)

RESPONSE = Struct(
    "OffsetCommitResponse",
    Field("throttle_time_ms", INT32, "3+", ignorable=True),
    Field("topics", Array(OFFSET_COMMIT_RESPONSE_TOPIC)),
)

API = Api(
    key=8,
    name="OffsetCommit",
    versions="0-9",
    flexible="8+",
    request=REQUEST,
    response=RESPONSE,
)
