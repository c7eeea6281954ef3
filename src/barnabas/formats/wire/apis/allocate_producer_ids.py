"""AllocateProducerIds: a broker asks the controller for a block of producer ids."""

from barnabas.formats.codec.schema import (
    BROKER_EPOCH,
    BROKER_ID,
    INT16,
    INT32,
    PRODUCER_ID,
    Api,
    Field,
    Struct,
)

REQUEST = Struct(
    "AllocateProducerIdsRequest",
    Field("broker_id", BROKER_ID),
    Field("broker_epoch", BROKER_EPOCH, default=-1),
)

RESPONSE = Struct(
    "AllocateProducerIdsResponse",
    Field("throttle_time_ms", INT32),
    Field("error_code", INT16),
    Field("producer_id_start", PRODUCER_ID),
    Field("producer_id_len", INT32),
)

API = Api(
    key=67,
    name="AllocateProducerIds",
    versions="0",
    flexible="0+",
    request=REQUEST,
    response=RESPONSE,
)
