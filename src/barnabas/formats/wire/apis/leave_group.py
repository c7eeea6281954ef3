"""LeaveGroup: members leave a group of their own will."""

from barnabas.formats.codec.schema import (
    INT16,
    INT32,
    STRING,
    Api,
    Array,
    Field,
    Struct,
)

MEMBER_IDENTITY = Struct(
    "MemberIdentity",
    Field("member_id", STRING, "3+"),
    Field("group_instance_id", STRING, "3+", nullable="3+", default=None),
    Field("reason", STRING, "5+", nullable="5+", default=None, ignorable=True),
)

REQUEST = Struct(
    "LeaveGroupRequest",
    Field("group_id", STRING),
    Field("member_id", STRING, "0-2"),
    Field("members", Array(MEMBER_IDENTITY), "3+"),
)

MEMBER_RESPONSE = Struct(
    "MemberResponse",
    Field("member_id", STRING, "3+"),
    Field("group_instance_id", STRING, "3+", nullable="3+"),
    Field("error_code", INT16, "3+"),
)

RESPONSE = Struct(
    "LeaveGroupResponse",
    Field("throttle_time_ms", INT32, "1+", ignorable=True),
    Field("error_code", INT16),
    Field("members", Array(MEMBER_RESPONSE), "3+"),
)

API = Api(
    key=13,
    name="LeaveGroup",
    versions="0-5",
    flexible="4+",
    request=REQUEST,
    response=RESPONSE,
)
