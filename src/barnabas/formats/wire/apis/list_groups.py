"""ListGroups: the groups that the receiver coordinates."""

from barnabas.formats.codec.schema import (
    INT16,
    INT32,
    STRING,
    Api,
    Array,
    Field,
    Struct,
)

REQUEST = Struct(
    "ListGroupsRequest",
    Field("states_filter", Array(STRING), "4+"),
    Field("types_filter", Array(STRING), "5+"),
)

LISTED_GROUP = Struct(
    "ListedGroup",
    Field("group_id", STRING),
    Field("protocol_type", STRING),
    Field("group_state", STRING, "4+", ignorable=True),
    Field("group_type", STRING, "5+", ignorable=True),
)

RESPONSE = Struct(
    "ListGroupsResponse",
    Field("throttle_time_ms", INT32, "1+", ignorable=True),
    Field("error_code", INT16),
    Field("groups", Array(LISTED_GROUP)),
)

API = Api(
    key=16,
    name="ListGroups",
    versions="0-5",
    flexible="3+",
    request=REQUEST,
    response=RESPONSE,
)
