"""DescribeProducers: the producers whose state a partition keeps."""

from barnabas.formats.codec.schema import (
    INT16,
    INT32,
    INT64,
    PRODUCER_ID,
    STRING,
    Api,
    Array,
    Field,
    Struct,
)

TOPIC_REQUEST = Struct(
    "TopicRequest",
    Field("name", STRING),
    Field("partition_indexes", Array(INT32)),
)

REQUEST = Struct(
    "DescribeProducersRequest",
    Field("topics", Array(TOPIC_REQUEST)),
)

PRODUCER_STATE = Struct(
    "ProducerState",
    Field("producer_id", PRODUCER_ID),
    Field("producer_epoch", INT32),
    Field("last_sequence", INT32, default=-1),
    Field("last_timestamp", INT64, default=-1),
    Field("coordinator_epoch", INT32),
    Field("current_txn_start_offset", INT64, default=-1),
)

PARTITION_RESPONSE = Struct(
    "PartitionResponse",
    Field("partition_index", INT32),
    Field("error_code", INT16),
    Field("error_message", STRING, nullable="0+", default=None),
    Field("active_producers", Array(PRODUCER_STATE)),
)

TOPIC_RESPONSE = Struct(
    "TopicResponse",
    Field("name", STRING),
    Field("partitions", Array(PARTITION_RESPONSE)),
)

RESPONSE = Struct(
    "DescribeProducersResponse",
    Field("throttle_time_ms", INT32),
    Field("topics", Array(TOPIC_RESPONSE)),
)

API = Api(
    key=61,
    name="DescribeProducers",
    versions="0",
    flexible="0+",
    request=REQUEST,
    response=RESPONSE,
)
