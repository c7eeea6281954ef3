"""AlterConfigs: replaces all dynamic configs of a topic or broker."""

from barnabas.formats.codec.schema import (
    BOOL,
    INT8,
    INT16,
    INT32,
    STRING,
    Api,
    Array,
    Field,
    Struct,
)

ALTERABLE_CONFIG = Struct(
    "AlterableConfig",
    Field("name", STRING),
    Field("value", STRING, nullable="0+"),
)

ALTER_CONFIGS_RESOURCE = Struct(
    "AlterConfigsResource",
    Field("resource_type", INT8),
    Field("resource_name", STRING),
    Field("configs", Array(ALTERABLE_CONFIG)),
)

REQUEST = Struct(
    "AlterConfigsRequest",
    Field("resources", Array(ALTER_CONFIGS_RESOURCE)),
    Field("validate_only", BOOL),
)

ALTER_CONFIGS_RESOURCE_RESPONSE = Struct(
    "AlterConfigsResourceResponse",
    Field("error_code", INT16),
    Field("error_message", STRING, nullable="0+"),
    Field("resource_type", INT8),
    Field("resource_name", STRING),
)

RESPONSE = Struct(
    "AlterConfigsResponse",
    Field("throttle_time_ms", INT32),
    Field("responses", Array(ALTER_CONFIGS_RESOURCE_RESPONSE)),
)

API = Api(
    key=33,
    name="AlterConfigs",
    versions="0-2",
    flexible="2+",
    request=REQUEST,
    response=RESPONSE,
)
