"""DeleteTopics: the controller's broker marks topics and waits until they have left (D1-D17)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from barnabas.broker.administration import Answers, busy_before
from barnabas.broker.connections import Request
from barnabas.formats.wire.generated.delete_topics import (
    DeletableTopicResult,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    DeleteTopicState,
)
from barnabas.model.error_codes import ErrorCode
from barnabas.model.ids import NO_TOPIC_ID

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker

FIRST_VERSION_WITH_QUOTAS: Final = 5
FIRST_VERSION_WITH_IDS: Final = 6
FIRST_VERSION_WITH_DISABLED: Final = 3


def handle(
    broker: Broker, request: Request, body: DeleteTopicsRequest, now_ms: int
) -> DeleteTopicsResponse | None:
    """Answer at once for what cannot be deleted; for the rest when it is out of the metadata."""
    version = request.api_version
    topics = body.topics
    if version < FIRST_VERSION_WITH_IDS:
        topics = [DeleteTopicState(name=name) for name in body.topic_names]
    refusal = _find_refusal(broker, topics, version)
    if refusal is not None:
        return DeleteTopicsResponse(responses=[_result(t, t.name, refusal) for t in topics])
    results = [_resolve(broker, topic) for topic in topics]
    wanted = [one.name for one in results if one.error_code == ErrorCode.NONE and one.name]
    if not wanted:
        return DeleteTopicsResponse(responses=results)

    def on_answers(answers: Answers, answered_ms: int) -> None:
        throttle_ms = busy_before(answers, version, FIRST_VERSION_WITH_QUOTAS)
        for one in results:
            if one.error_code == ErrorCode.NONE and one.name in answers:
                one.error_code = answers[one.name].error
                one.error_message = answers[one.name].message
        broker.answer(
            request, DeleteTopicsResponse(throttle_time_ms=throttle_ms, responses=results)
        )

    broker.administration.delete_topics(
        list(dict.fromkeys(wanted)),
        timeout_ms=body.timeout_ms,
        then=on_answers,
        now_ms=now_ms,
        request=request,
    )
    return None


def _find_refusal(broker: Broker, topics: list[DeleteTopicState], version: int) -> ErrorCode | None:
    """What refuses the whole request."""
    if not broker.controller.is_active:
        return ErrorCode.NOT_CONTROLLER
    if not broker.config.delete_topic_enable:
        if version < FIRST_VERSION_WITH_DISABLED:
            return ErrorCode.INVALID_REQUEST
        return ErrorCode.TOPIC_DELETION_DISABLED
    if any(topic.name is not None and topic.topic_id != NO_TOPIC_ID for topic in topics):
        return ErrorCode.INVALID_REQUEST
    return None


def _resolve(broker: Broker, topic: DeleteTopicState) -> DeletableTopicResult:
    """A topic by its name, or by its id as the controller knows it."""
    if topic.topic_id != NO_TOPIC_ID:
        name = broker.controller.topic_name(topic.topic_id)
        if name is None:
            return _result(topic, None, ErrorCode.UNKNOWN_TOPIC_ID)
    else:
        name = topic.name
    if not name or broker.metadata_cache.topic(name) is None:
        return _result(topic, name, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    return _result(topic, name, ErrorCode.NONE)


def _result(topic: DeleteTopicState, name: str | None, error: ErrorCode) -> DeletableTopicResult:
    return DeletableTopicResult(name=name, topic_id=topic.topic_id, error_code=error)
