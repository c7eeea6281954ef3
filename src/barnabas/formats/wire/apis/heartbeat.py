"""Heartbeat: a member of a group says that it is alive."""

from barnabas.formats.codec.schema import (
    INT16,
    INT32,
    STRING,
    Api,
    Field,
    Struct,
)

REQUEST = Struct(
    "HeartbeatRequest",
    Field("group_id", STRING),
    Field("generation_id", INT32),
    Field("member_id", STRING),
    Field("group_instance_id", STRING, "3+", nullable="3+", default=None),
)

RESPONSE = Struct(
    "HeartbeatResponse",
    Field("throttle_time_ms", INT32, "1+", ignorable=True),
    Field("error_code", INT16),
)

API = Api(
    key=12,
    name="Heartbeat",
    versions="0-4",
    flexible="4+",
    request=REQUEST,
    response=RESPONSE,
)
