"""Produce: record batches for partitions that the receiver leads, and where they were put."""

from barnabas.formats.codec.schema import (
    BROKER_ID,
    INT16,
    INT32,
    INT64,
    LEADER_EPOCH,
    RECORDS,
    STRING,
    Api,
    Array,
    Field,
    Struct,
)

PARTITION_PRODUCE_DATA = Struct(
    "PartitionProduceData",
    Field("index", INT32),
    Field("records", RECORDS, nullable="0+"),
)

TOPIC_PRODUCE_DATA = Struct(
    "TopicProduceData",
    Field("name", STRING),
    Field("partition_data", Array(PARTITION_PRODUCE_DATA)),
)

REQUEST = Struct(
    "ProduceRequest",
    Field("transactional_id", STRING, "3+", nullable="3+", default=None),
    Field("acks", INT16),
    Field("timeout_ms", INT32),
    Field("topic_data", Array(TOPIC_PRODUCE_DATA)),
)

BATCH_INDEX_AND_ERROR_MESSAGE = Struct(
    "BatchIndexAndErrorMessage",
    Field("batch_index", INT32, "8+"),
    Field("batch_index_error_message", STRING, "8+", nullable="8+", default=None),
)

LEADER_ID_AND_EPOCH = Struct(
    "LeaderIdAndEpoch",
    Field("leader_id", BROKER_ID, "10+", default=-1),
    Field("leader_epoch", LEADER_EPOCH, "10+", default=-1),
)

PARTITION_PRODUCE_RESPONSE = Struct(
    "PartitionProduceResponse",
    Field("index", INT32),
    Field("error_code", INT16),
    Field("base_offset", INT64),
    Field("log_append_time_ms", INT64, "2+", default=-1, ignorable=True),
    Field("log_start_offset", INT64, "5+", default=-1, ignorable=True),
    Field("record_errors", Array(BATCH_INDEX_AND_ERROR_MESSAGE), "8+", ignorable=True),
    Field("error_message", STRING, "8+", nullable="8+", default=None, ignorable=True),
    Field("current_leader", LEADER_ID_AND_EPOCH, "10+", tag=0),
)

TOPIC_PRODUCE_RESPONSE = Struct(
    "TopicProduceResponse",
    Field("name", STRING),
    Field("partition_responses", Array(PARTITION_PRODUCE_RESPONSE)),
)

NODE_ENDPOINT = Struct(
    "NodeEndpoint",
    Field("node_id", BROKER_ID, "10+"),
    Field("host", STRING, "10+"),
    Field("port", INT32, "10+"),
    Field("rack", STRING, "10+", nullable="10+", default=None),
)

RESPONSE = Struct(
    "ProduceResponse",
    Field("responses", Array(TOPIC_PRODUCE_RESPONSE)),
    Field("throttle_time_ms", INT32, "1+", ignorable=True),
    Field("node_endpoints", Array(NODE_ENDPOINT), "10+", tag=0),
)

API = Api(
    key=0,
    name="Produce",
    versions="0-11",
    flexible="9+",
    request=REQUEST,
    response=RESPONSE,
)
