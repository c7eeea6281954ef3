"""JoinGroup: a member enters a group or a new generation of it."""

from barnabas.formats.codec.schema import (
    BOOL,
    BYTES,
    INT16,
    INT32,
    STRING,
    Api,
    Array,
    Field,
    Struct,
)

JOIN_GROUP_REQUEST_PROTOCOL = Struct(
    "JoinGroupRequestProtocol",
    Field("name", STRING),
    Field("metadata", BYTES),
)

REQUEST = Struct(
    "JoinGroupRequest",
    Field("group_id", STRING),
    Field("session_timeout_ms", INT32),
    Field("rebalance_timeout_ms", INT32, "1+", default=-1, ignorable=True),
    Field("member_id", STRING),
    Field("group_instance_id", STRING, "5+", nullable="5+", default=None),
    Field("protocol_type", STRING),
    Field("protocols", Array(JOIN_GROUP_REQUEST_PROTOCOL)),
    Field("reason", STRING, "8+", nullable="8+", default=None, ignorable=True),
)

JOIN_GROUP_RESPONSE_MEMBER = Struct(
    "JoinGroupResponseMember",
    Field("member_id", STRING),
    Field("group_instance_id", STRING, "5+", nullable="5+", default=None, ignorable=True),
    Field("metadata", BYTES),
)

RESPONSE = Struct(
    "JoinGroupResponse",
    Field("throttle_time_ms", INT32, "2+", ignorable=True),
    Field("error_code", INT16),
    Field("generation_id", INT32, default=-1),
    Field("protocol_type", STRING, "7+", nullable="7+", default=None, ignorable=True),
    Field("protocol_name", STRING, nullable="7+"),
    Field("leader", STRING),
    Field("skip_assignment", BOOL, "9+"),
    Field("member_id", STRING),
    Field("members", Array(JOIN_GROUP_RESPONSE_MEMBER)),
)

API = Api(
    key=11,
    name="JoinGroup",
    versions="0-9",
    flexible="6+",
    request=REQUEST,
    response=RESPONSE,
)
