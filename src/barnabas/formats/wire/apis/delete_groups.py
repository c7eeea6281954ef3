"""DeleteGroups: groups without members to be removed."""

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
    "DeleteGroupsRequest",
    Field("groups_names", Array(STRING)),
)

DELETABLE_GROUP_RESULT = Struct(
    "DeletableGroupResult",
    Field("group_id", STRING),
    Field("error_code", INT16),
)

RESPONSE = Struct(
    "DeleteGroupsResponse",
    Field("throttle_time_ms", INT32),
    Field("results", Array(DELETABLE_GROUP_RESULT)),
)

API = Api(
    key=42,
    name="DeleteGroups",
    versions="0-2",
    flexible="2+",
    request=REQUEST,
    response=RESPONSE,
)
