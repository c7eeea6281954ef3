"""DeleteRecords: moves the start of a log up to an offset."""

from barnabas.formats.codec.schema import (
    INT16,
    INT32,
    INT64,
    STRING,
    Api,
    Array,
    Field,
    Struct,
)

DELETE_RECORDS_PARTITION = Struct(
    "DeleteRecordsPartition",
    Field("partition_index", INT32),
    Field("offset", INT64),
)

DELETE_RECORDS_TOPIC = Struct(
    "DeleteRecordsTopic",
    Field("name", STRING),
    Field("partitions", Array(DELETE_RECORDS_PARTITION)),
)

REQUEST = Struct(
    "DeleteRecordsRequest",
    Field("topics", Array(DELETE_RECORDS_TOPIC)),
    Field("timeout_ms", INT32),
)

DELETE_RECORDS_PARTITION_RESULT = Struct(
    "DeleteRecordsPartitionResult",
    Field("partition_index", INT32),
    Field("low_watermark", INT64),
    Field("error_code", INT16),
)

DELETE_RECORDS_TOPIC_RESULT = Struct(
    "DeleteRecordsTopicResult",
    Field("name", STRING),
    Field("partitions", Array(DELETE_RECORDS_PARTITION_RESULT)),
)

RESPONSE = Struct(
    "DeleteRecordsResponse",
    Field("throttle_time_ms", INT32),
    Field("topics", Array(DELETE_RECORDS_TOPIC_RESULT)),
)

API = Api(
    key=21,
    name="DeleteRecords",
    versions="0-2",
    flexible="2+",
    request=REQUEST,
    response=RESPONSE,
)
