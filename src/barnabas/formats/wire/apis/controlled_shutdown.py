"""ControlledShutdown: a broker asks the controller to move its leaderships away."""

from barnabas.formats.codec.schema import (
    BROKER_EPOCH,
    BROKER_ID,
    INT16,
    INT32,
    STRING,
    Api,
    Array,
    Field,
    Struct,
)

REQUEST = Struct(
    "ControlledShutdownRequest",
    Field("broker_id", BROKER_ID),
    Field("broker_epoch", BROKER_EPOCH, "2+", default=-1, ignorable=True),
)

REMAINING_PARTITION = Struct(
    "RemainingPartition",
    Field("topic_name", STRING),
    Field("partition_index", INT32),
)

RESPONSE = Struct(
    "ControlledShutdownResponse",
    Field("error_code", INT16),
    Field("remaining_partitions", Array(REMAINING_PARTITION)),
)

API = Api(
    key=7,
    name="ControlledShutdown",
    versions="0-3",
    flexible="3+",
    request=REQUEST,
    response=RESPONSE,
)
