"""DeleteTopics: topics to be removed, by name or by id."""

from barnabas.formats.codec.schema import (
    INT16,
    INT32,
    STRING,
    TOPIC_ID,
    Api,
    Array,
    Field,
    Struct,
)

DELETE_TOPIC_STATE = Struct(
    "DeleteTopicState",
    Field("name", STRING, "6+", nullable="6+", default=None),
    Field("topic_id", TOPIC_ID, "6+"),
)

REQUEST = Struct(
    "DeleteTopicsRequest",
    Field("topics", Array(DELETE_TOPIC_STATE), "6+"),
    Field("topic_names", Array(STRING), "0-5", ignorable=True),
    Field("timeout_ms", INT32),
)

DELETABLE_TOPIC_RESULT = Struct(
    "DeletableTopicResult",
    Field("name", STRING, nullable="6+"),
    Field("topic_id", TOPIC_ID, "6+", ignorable=True),
    Field("error_code", INT16),
    Field("error_message", STRING, "5+", nullable="5+", default=None, ignorable=True),
)

RESPONSE = Struct(
    "DeleteTopicsResponse",
    Field("throttle_time_ms", INT32, "1+", ignorable=True),
    Field("responses", Array(DELETABLE_TOPIC_RESULT)),
)

API = Api(
    key=20,
    name="DeleteTopics",
    versions="0-6",
    flexible="4+",
    request=REQUEST,
    response=RESPONSE,
)
