"""AlterPartition: a leader asks the controller to change the in-sync replicas."""

from barnabas.formats.codec.schema import (
    BROKER_EPOCH,
    BROKER_ID,
    INT8,
    INT16,
    INT32,
    LEADER_EPOCH,
    PARTITION_EPOCH,
    STRING,
    TOPIC_ID,
    Api,
    Array,
    Field,
    Struct,
)

BROKER_STATE = Struct(
    "BrokerState",
    Field("broker_id", BROKER_ID, "3+"),
    Field("broker_epoch", BROKER_EPOCH, "3+", default=-1),
)

REQUEST_PARTITION_DATA = Struct(
    "RequestPartitionData",
    Field("partition_index", INT32),
    Field("leader_epoch", LEADER_EPOCH),
    Field("new_isr", Array(BROKER_ID), "0-2"),
    Field("new_isr_with_epochs", Array(BROKER_STATE), "3+"),
    Field("leader_recovery_state", INT8, "1+"),
    Field("partition_epoch", PARTITION_EPOCH),
)

REQUEST_TOPIC_DATA = Struct(
    "RequestTopicData",
    Field("topic_name", STRING, "0-1", ignorable=True),
    Field("topic_id", TOPIC_ID, "2+", ignorable=True),
    Field("partitions", Array(REQUEST_PARTITION_DATA)),
)

REQUEST = Struct(
    "AlterPartitionRequest",
    Field("broker_id", BROKER_ID),
    Field("broker_epoch", BROKER_EPOCH, default=-1),
    Field("topics", Array(REQUEST_TOPIC_DATA)),
)

RESPONSE_PARTITION_DATA = Struct(
    "ResponsePartitionData",
    Field("partition_index", INT32),
    Field("error_code", INT16),
    Field("leader_id", BROKER_ID),
    Field("leader_epoch", LEADER_EPOCH),
    Field("isr", Array(BROKER_ID)),
    Field("leader_recovery_state", INT8, "1+", ignorable=True),
    Field("partition_epoch", PARTITION_EPOCH),
)

RESPONSE_TOPIC_DATA = Struct(
    "ResponseTopicData",
    Field("topic_name", STRING, "0-1", ignorable=True),
    Field("topic_id", TOPIC_ID, "2+", ignorable=True),
    Field("partitions", Array(RESPONSE_PARTITION_DATA)),
)

RESPONSE = Struct(
    "AlterPartitionResponse",
    Field("throttle_time_ms", INT32),
    Field("error_code", INT16),
    Field("topics", Array(RESPONSE_TOPIC_DATA)),
)

API = Api(
    key=56,
    name="AlterPartition",
    versions="0-3",
    flexible="0+",
    request=REQUEST,
    response=RESPONSE,
)
