"""ApiVersions: which APIs the receiver serves, and in which versions."""

from barnabas.formats.codec.schema import (
    BOOL,
    INT16,
    INT32,
    INT64,
    STRING,
    Api,
    Array,
    Field,
    Struct,
)

REQUEST = Struct(
    "ApiVersionsRequest",
    Field("client_software_name", STRING, "3+", ignorable=True),
    Field("client_software_version", STRING, "3+", ignorable=True),
)

API_VERSION = Struct(
    "ApiVersion",
    Field("api_key", INT16),
    Field("min_version", INT16),
    Field("max_version", INT16),
)

SUPPORTED_FEATURE_KEY = Struct(
    "SupportedFeatureKey",
    Field("name", STRING, "3+"),
    Field("min_version", INT16, "3+"),
    Field("max_version", INT16, "3+"),
)

FINALIZED_FEATURE_KEY = Struct(
    "FinalizedFeatureKey",
    Field("name", STRING, "3+"),
    Field("max_version_level", INT16, "3+"),
    Field("min_version_level", INT16, "3+"),
)

RESPONSE = Struct(
    "ApiVersionsResponse",
    Field("error_code", INT16),
    Field("api_keys", Array(API_VERSION)),
    Field("throttle_time_ms", INT32, "1+", ignorable=True),
    Field("supported_features", Array(SUPPORTED_FEATURE_KEY), "3+", tag=0, ignorable=True),
    Field("finalized_features_epoch", INT64, "3+", tag=1, default=-1, ignorable=True),
    Field("finalized_features", Array(FINALIZED_FEATURE_KEY), "3+", tag=2, ignorable=True),
    Field("zk_migration_ready", BOOL, "3+", tag=3, ignorable=True),
)

API = Api(
    key=18,
    name="ApiVersions",
    versions="0-4",
    flexible="3+",
    request=REQUEST,
    response=RESPONSE,
)
