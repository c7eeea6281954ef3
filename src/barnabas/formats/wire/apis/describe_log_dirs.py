"""DescribeLogDirs: what lies in the log directories, and how much room there is."""

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

DESCRIBABLE_LOG_DIR_TOPIC = Struct(
    "DescribableLogDirTopic",
    Field("topic", STRING),
    Field("partitions", Array(INT32)),
)

REQUEST = Struct(
    "DescribeLogDirsRequest",
    Field("topics", Array(DESCRIBABLE_LOG_DIR_TOPIC), nullable="0+"),
)

DESCRIBE_LOG_DIRS_PARTITION = Struct(
    "DescribeLogDirsPartition",
    Field("partition_index", INT32),
    Field("partition_size", INT64),
    Field("offset_lag", INT64),
    Field("is_future_key", BOOL),
)

DESCRIBE_LOG_DIRS_TOPIC = Struct(
    "DescribeLogDirsTopic",
    Field("name", STRING),
    Field("partitions", Array(DESCRIBE_LOG_DIRS_PARTITION)),
)

DESCRIBE_LOG_DIRS_RESULT = Struct(
    "DescribeLogDirsResult",
    Field("error_code", INT16),
    Field("log_dir", STRING),
    Field("topics", Array(DESCRIBE_LOG_DIRS_TOPIC)),
    Field("total_bytes", INT64, "4+", default=-1, ignorable=True),
    Field("usable_bytes", INT64, "4+", default=-1, ignorable=True),
)

RESPONSE = Struct(
    "DescribeLogDirsResponse",
    Field("throttle_time_ms", INT32),
    Field("error_code", INT16, "3+", ignorable=True),
    Field("results", Array(DESCRIBE_LOG_DIRS_RESULT)),
)

API = Api(
    key=35,
    name="DescribeLogDirs",
    versions="0-4",
    flexible="2+",
    request=REQUEST,
    response=RESPONSE,
)
