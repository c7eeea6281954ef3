"""CreateTopics: the controller's broker writes the topics and waits until they have leaders."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

from barnabas.broker.administration import Answers, TopicAnswer, busy_before
from barnabas.broker.connections import Request
from barnabas.core.administration.config_description import describe_topic
from barnabas.core.administration.creation import TopicPlan, TopicWish
from barnabas.formats.wire.generated.create_topics import (
    CreatableTopic,
    CreatableTopicConfigs,
    CreatableTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from barnabas.model.error_codes import ErrorCode

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker


FIRST_VERSION_WITH_QUOTAS: Final = 6


def handle(
    broker: Broker, request: Request, body: CreateTopicsRequest, now_ms: int
) -> CreateTopicsResponse | None:
    """Answer at once for what is refused by its form; for the rest when it is written."""
    if not broker.controller.is_active:
        return CreateTopicsResponse(
            topics=[_result(broker, t.name, _NOT_CONTROLLER, {}) for t in body.topics]
        )
    counts = Counter(topic.name for topic in body.topics)
    wishes = [_wish(topic) for topic in body.topics if counts[topic.name] == 1]

    def on_answers(answers: Answers, answered_ms: int) -> None:
        throttle_ms = busy_before(answers, request.api_version, FIRST_VERSION_WITH_QUOTAS)
        described: Described = {}
        results = [
            _result(broker, topic.name, answers.get(topic.name, _TWICE), described)
            for topic in body.topics
        ]
        broker.answer(request, CreateTopicsResponse(throttle_time_ms=throttle_ms, topics=results))

    broker.administration.create_topics(
        wishes,
        is_validation=body.validate_only,
        timeout_ms=body.timeout_ms,
        then=on_answers,
        request=request,
    )
    return None


_NOT_CONTROLLER = TopicAnswer(ErrorCode.NOT_CONTROLLER)
_TWICE = TopicAnswer(ErrorCode.INVALID_REQUEST, "the request names this topic more than once")


def _wish(topic: CreatableTopic) -> TopicWish:
    return TopicWish(
        topic.name,
        topic.num_partitions,
        topic.replication_factor,
        [(one.partition_index, tuple(one.broker_ids)) for one in topic.assignments],
        [(config.name, config.value) for config in topic.configs],
    )


Described = dict[tuple[tuple[str, str], ...], list[CreatableTopicConfigs]]
"""All settings of topics by those of their own: most topics of one request have the same."""


def _result(
    broker: Broker, name: str, answer: TopicAnswer, described: Described
) -> CreatableTopicResult:
    """One topic's answer; numbers and settings are told of a topic that is there now."""
    result = CreatableTopicResult(
        name=name,
        topic_id=answer.topic_id,
        error_code=answer.error,
        error_message=answer.message,
        configs=[],
    )
    if answer.error is ErrorCode.NONE and answer.plan is not None:
        result.num_partitions = len(answer.plan.assigned)
        result.replication_factor = len(answer.plan.assigned[0])
        own = tuple(sorted(answer.plan.configs.items()))
        configs = described.get(own)
        if configs is None:
            configs = described[own] = _configs(broker, answer.plan)
        result.configs = configs
    return result


def _configs(broker: Broker, plan: TopicPlan) -> list[CreatableTopicConfigs]:
    return [
        CreatableTopicConfigs(
            name=one.name,
            value=one.value,
            read_only=one.is_read_only,
            config_source=one.source,
            is_sensitive=one.is_sensitive,
        )
        for one in describe_topic(broker.config, plan.configs)
    ]
