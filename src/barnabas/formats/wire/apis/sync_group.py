"""SyncGroup: the leader of a group hands in the assignment, every member gets its own."""

from barnabas.formats.codec.schema import (
    BYTES,
    INT16,
    INT32,
    STRING,
    Api,
    Array,
    Field,
    Struct,
)

SYNC_GROUP_REQUEST_ASSIGNMENT = Struct(
    "SyncGroupRequestAssignment",
    Field("member_id", STRING),
    Field("assignment", BYTES),
)

REQUEST = Struct(
    "SyncGroupRequest",
    Field("group_id", STRING),
    Field("generation_id", INT32),
    Field("member_id", STRING),
    Field("group_instance_id", STRING, "3+", nullable="3+", default=None),
    Field("protocol_type", STRING, "5+", nullable="5+", default=None, ignorable=True),
    Field("protocol_name", STRING, "5+", nullable="5+", default=None, ignorable=True),
    Field("assignments", Array(SYNC_GROUP_REQUEST_ASSIGNMENT)),
)

RESPONSE = Struct(
    "SyncGroupResponse",
    Field("throttle_time_ms", INT32, "1+", ignorable=True),
    Field("error_code", INT16),
    Field("protocol_type", STRING, "5+", nullable="5+", default=None, ignorable=True),
    Field("protocol_name", STRING, "5+", nullable="5+", default=None, ignorable=True),
    Field("assignment", BYTES),
)

API = Api(
    key=14,
    name="SyncGroup",
    versions="0-5",
    flexible="4+",
    request=REQUEST,
    response=RESPONSE,
)
