"""OffsetForLeaderEpoch: where a leader epoch ends in the log of its leader."""

from barnabas.formats.codec.schema import (
    BROKER_ID,
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

OFFSET_FOR_LEADER_PARTITION = Struct(
    "OffsetForLeaderPartition",
    Field("partition", INT32),
    Field("current_leader_epoch", LEADER_EPOCH, "2+", default=-1, ignorable=True),
    Field("leader_epoch", LEADER_EPOCH),
)

OFFSET_FOR_LEADER_TOPIC = Struct(
    "OffsetForLeaderTopic",
    Field("topic", STRING),
    Field("partitions", Array(OFFSET_FOR_LEADER_PARTITION)),
)

REQUEST = Struct(
    "OffsetForLeaderEpochRequest",
    Field("replica_id", BROKER_ID, "3+", default=-2, ignorable=True),
    Field("topics", Array(OFFSET_FOR_LEADER_TOPIC)),
)

EPOCH_END_OFFSET = Struct(
    "EpochEndOffset",
    Field("error_code", INT16),
    Field("partition", INT32),
    Field("leader_epoch", LEADER_EPOCH, "1+", default=-1, ignorable=True),
    Field("end_offset", INT64, default=-1),
)

OFFSET_FOR_LEADER_TOPIC_RESULT = Struct(
    "OffsetForLeaderTopicResult",
    Field("topic", STRING),
    Field("partitions", Array(EPOCH_END_OFFSET)),
)

RESPONSE = Struct(
    "OffsetForLeaderEpochResponse",
    Field("throttle_time_ms", INT32, "2+", ignorable=True),
    Field("topics", Array(OFFSET_FOR_LEADER_TOPIC_RESULT)),
)

API = Api(
    key=23,
    name="OffsetForLeaderEpoch",
    versions="0-4",
    flexible="4+",
    request=REQUEST,
    response=RESPONSE,
)
