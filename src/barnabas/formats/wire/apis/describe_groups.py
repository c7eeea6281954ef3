"""DescribeGroups: the state and the members of groups."""

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

REQUEST = Struct(
    "DescribeGroupsRequest",
    Field("groups", Array(STRING)),
    Field("include_authorized_operations", BOOL, "3+"),
)

DESCRIBED_GROUP_MEMBER = Struct(
    "DescribedGroupMember",
    Field("member_id", STRING),
    Field("group_instance_id", STRING, "4+", nullable="4+", default=None, ignorable=True),
    Field("client_id", STRING),
    Field("client_host", STRING),
    Field("member_metadata", BYTES),
    Field("member_assignment", BYTES),
)

DESCRIBED_GROUP = Struct(
    "DescribedGroup",
    Field("error_code", INT16),
    Field("group_id", STRING),
    Field("group_state", STRING),
    Field("protocol_type", STRING),
    Field("protocol_data", STRING),
    Field("members", Array(DESCRIBED_GROUP_MEMBER)),
    Field("authorized_operations", INT32, "3+", default=-2147483648),
)

RESPONSE = Struct(
    "DescribeGroupsResponse",
    Field("throttle_time_ms", INT32, "1+", ignorable=True),
    Field("groups", Array(DESCRIBED_GROUP)),
)

API = Api(
    key=15,
    name="DescribeGroups",
    versions="0-5",
    flexible="5+",
    request=REQUEST,
    response=RESPONSE,
)
