"""DescribeConfigs: the effective configs of topics and brokers, and where they come from."""

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

DESCRIBE_CONFIGS_RESOURCE = Struct(
    "DescribeConfigsResource",
    Field("resource_type", INT8),
    Field("resource_name", STRING),
    Field("configuration_keys", Array(STRING), nullable="0+"),
)

REQUEST = Struct(
    "DescribeConfigsRequest",
    Field("resources", Array(DESCRIBE_CONFIGS_RESOURCE)),
    Field("include_synonyms", BOOL, "1+"),
    Field("include_documentation", BOOL, "3+"),
)

DESCRIBE_CONFIGS_SYNONYM = Struct(
    "DescribeConfigsSynonym",
    Field("name", STRING, "1+"),
    Field("value", STRING, "1+", nullable="0+"),
    Field("source", INT8, "1+"),
)

DESCRIBE_CONFIGS_RESOURCE_RESULT = Struct(
    "DescribeConfigsResourceResult",
    Field("name", STRING),
    Field("value", STRING, nullable="0+"),
    Field("read_only", BOOL),
    Field("is_default", BOOL, "0"),
    Field("config_source", INT8, "1+", default=-1, ignorable=True),
    Field("is_sensitive", BOOL),
    Field("synonyms", Array(DESCRIBE_CONFIGS_SYNONYM), "1+", ignorable=True),
    Field("config_type", INT8, "3+", ignorable=True),
    Field("documentation", STRING, "3+", nullable="0+", ignorable=True),
)

DESCRIBE_CONFIGS_RESULT = Struct(
    "DescribeConfigsResult",
    Field("error_code", INT16),
    Field("error_message", STRING, nullable="0+"),
    Field("resource_type", INT8),
    Field("resource_name", STRING),
    Field("configs", Array(DESCRIBE_CONFIGS_RESOURCE_RESULT)),
)

RESPONSE = Struct(
    "DescribeConfigsResponse",
    Field("throttle_time_ms", INT32),
    Field("results", Array(DESCRIBE_CONFIGS_RESULT)),
)

API = Api(
    key=32,
    name="DescribeConfigs",
    versions="0-4",
    flexible="4+",
    request=REQUEST,
    response=RESPONSE,
)
