"""FindCoordinator: which broker keeps a group or a transactional id."""

from barnabas.formats.codec.schema import (
    BROKER_ID,
    INT8,
    INT16,
    INT32,
    STRING,
    Api,
    Array,
    Field,
    Struct,
)

REQUEST = Struct(
    "FindCoordinatorRequest",
    Field("key", STRING, "0-3"),
    Field("key_type", INT8, "1+"),
    Field("coordinator_keys", Array(STRING), "4+"),
)

COORDINATOR = Struct(
    "Coordinator",
    Field("key", STRING, "4+"),
    Field("node_id", BROKER_ID, "4+"),
    Field("host", STRING, "4+"),
    Field("port", INT32, "4+"),
    Field("error_code", INT16, "4+"),
    Field("error_message", STRING, "4+", nullable="4+", ignorable=True),
)

RESPONSE = Struct(
    "FindCoordinatorResponse",
    Field("throttle_time_ms", INT32, "1+", ignorable=True),
    Field("error_code", INT16, "0-3"),
    Field("error_message", STRING, "1-3", nullable="1-3", ignorable=True),
    Field("node_id", BROKER_ID, "0-3"),
    Field("host", STRING, "0-3"),
    Field("port", INT32, "0-3"),
    Field("coordinators", Array(COORDINATOR), "4+"),
)

API = Api(
    key=10,
    name="FindCoordinator",
    versions="0-6",
    flexible="3+",
    request=REQUEST,
    response=RESPONSE,
)
