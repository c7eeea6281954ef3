"""CreatePartitions: the controller's broker writes a topic with more partitions (M2-M10)."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

from barnabas.broker.administration import Answers, TopicAnswer, busy_before
from barnabas.broker.connections import Request
from barnabas.core.administration.expansion import GrowthWish
from barnabas.formats.wire.generated.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
    CreatePartitionsTopicResult,
)
from barnabas.model.error_codes import ErrorCode

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker


FIRST_VERSION_WITH_QUOTAS: Final = 3


def handle(
    broker: Broker, request: Request, body: CreatePartitionsRequest, now_ms: int
) -> CreatePartitionsResponse | None:
    """Answer at once for what is refused by its form; for the rest when it is written."""
    if not broker.controller.is_active:
        return CreatePartitionsResponse(
            results=[_result(t.name, TopicAnswer(ErrorCode.NOT_CONTROLLER)) for t in body.topics]
        )
    counts = Counter(topic.name for topic in body.topics)
    refused: Answers = {}
    wishes: list[GrowthWish] = []
    for topic in body.topics:
        if counts[topic.name] > 1:
            refused[topic.name] = _TWICE
        elif broker.controller.is_queued_for_deletion(topic.name):
            refused[topic.name] = _BEING_DELETED
        else:
            wishes.append(_wish(topic))

    def on_answers(answers: Answers, answered_ms: int) -> None:
        throttle_ms = busy_before(answers, request.api_version, FIRST_VERSION_WITH_QUOTAS)
        found = {**answers, **refused}
        results = [_result(name, found[name]) for name in counts]
        broker.answer(
            request, CreatePartitionsResponse(throttle_time_ms=throttle_ms, results=results)
        )

    broker.administration.grow_topics(
        wishes,
        is_validation=body.validate_only,
        timeout_ms=body.timeout_ms,
        then=on_answers,
        now_ms=now_ms,
        request=request,
    )
    return None


_TWICE = TopicAnswer(ErrorCode.INVALID_REQUEST, "the request names this topic more than once")
_BEING_DELETED = TopicAnswer(ErrorCode.INVALID_TOPIC_EXCEPTION, "The topic is queued for deletion.")


def _wish(topic: CreatePartitionsTopic) -> GrowthWish:
    given = topic.assignments
    return GrowthWish(
        topic.name,
        topic.count,
        None if given is None else [tuple(one.broker_ids) for one in given],
    )


def _result(name: str, answer: TopicAnswer) -> CreatePartitionsTopicResult:
    return CreatePartitionsTopicResult(
        name=name, error_code=answer.error, error_message=answer.message
    )
