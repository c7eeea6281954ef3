"""InitProducerId: a producer id and epoch for idempotent and transactional producers."""

from barnabas.formats.codec.schema import (
    INT16,
    INT32,
    PRODUCER_ID,
    STRING,
    Api,
    Field,
    Struct,
)

REQUEST = Struct(
    "InitProducerIdRequest",
    Field("transactional_id", STRING, nullable="0+"),
    Field("transaction_timeout_ms", INT32),
    Field("producer_id", PRODUCER_ID, "3+", default=-1),
    Field("producer_epoch", INT16, "3+", default=-1),
)

RESPONSE = Struct(
    "InitProducerIdResponse",
    Field("throttle_time_ms", INT32, ignorable=True),
    Field("error_code", INT16),
    Field("producer_id", PRODUCER_ID, default=-1),
    Field("producer_epoch", INT16),
)

API = Api(
    key=22,
    name="InitProducerId",
    versions="0-5",
    flexible="2+",
    request=REQUEST,
    response=RESPONSE,
)
