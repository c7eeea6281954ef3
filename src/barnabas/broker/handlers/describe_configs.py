"""DescribeConfigs: the settings that hold for topics and for this broker, and where from."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from barnabas.broker.connections import Request
from barnabas.core.administration.config_description import (
    ConfigSource,
    DescribedConfig,
    describe_broker,
    describe_cluster_default,
    describe_topic,
    only,
)
from barnabas.core.administration.topic_names import find_fault
from barnabas.formats.wire.generated.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
    DescribeConfigsSynonym,
)
from barnabas.formats.znodes.configs import config_from_bytes, config_path, topic_entity
from barnabas.model.error_codes import ErrorCode, bounded_message
from barnabas.model.errors import DecodeError
from barnabas.model.znode import GetData, Outcome, StoreAnswer, StoreError

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker

TOPIC: Final = 2
BROKER: Final = 4
BROKER_LOGGER: Final = 8
LONGEST_ID: Final = 11
"""The characters of the smallest int32."""


def handle(
    broker: Broker, request: Request, body: DescribeConfigsRequest, now_ms: int
) -> DescribeConfigsResponse | None:
    """Answer for brokers from what this one knows, for topics from what the store says now."""
    topics = list(
        dict.fromkeys(
            one.resource_name
            for one in body.resources
            if one.resource_type == TOPIC and _topic_refusal(broker, one.resource_name) is None
        )
    )
    version = request.api_version
    if not topics:
        return _respond(broker, body, {}, version)

    def on_read(answer: StoreAnswer, read_ms: int) -> None:
        found = dict(zip(topics, answer.outcomes, strict=True))
        broker.answer(request, _respond(broker, body, found, version))

    broker.client_metadata.submit(
        [GetData(config_path(topic_entity(one))) for one in topics],
        broker.router.guarded(request, on_read),
    )
    return None


def _respond(
    broker: Broker, body: DescribeConfigsRequest, found: Mapping[str, Outcome], version: int
) -> DescribeConfigsResponse:
    """Each resource is described once, however often it is named: all settings are a long answer
    to a short question."""
    known: dict[tuple[int, str], Described] = {}
    asked_for_all: set[tuple[int, str]] = set()
    results: list[DescribeConfigsResult] = []
    for resource in body.resources:
        key = (resource.resource_type, resource.resource_name)
        if key not in known:
            known[key] = _describe(broker, resource, found)
        if not resource.configuration_keys:
            if key in asked_for_all:
                continue
            asked_for_all.add(key)
        results.append(_answer(resource, known[key], body.include_synonyms, version))
    return DescribeConfigsResponse(results=results)


def _answer(
    resource: DescribeConfigsResource, described: Described, with_synonyms: bool, version: int
) -> DescribeConfigsResult:
    if isinstance(described, tuple):
        error, message = described
        return _result(resource, error, message)
    wanted = only(described, resource.configuration_keys)
    result = _result(resource, ErrorCode.NONE, None)
    result.configs = [_config(one, with_synonyms, version) for one in wanted]
    return result


def _describe(
    broker: Broker, resource: DescribeConfigsResource, found: Mapping[str, Outcome]
) -> Described:
    kind = resource.resource_type
    if kind == TOPIC:
        return _describe_topic(broker, resource, found)
    if kind == BROKER:
        return _describe_broker(broker, resource)
    if kind == BROKER_LOGGER:
        return _describe_loggers(broker, resource)
    return ErrorCode.INVALID_REQUEST, f"resource type {kind} cannot be described"


def _result(
    resource: DescribeConfigsResource, error: ErrorCode, message: str | None
) -> DescribeConfigsResult:
    return DescribeConfigsResult(
        error_code=error,
        error_message=None if message is None else bounded_message(message),
        resource_type=resource.resource_type,
        resource_name=resource.resource_name,
        configs=[],
    )


Described = list[DescribedConfig] | tuple[ErrorCode, str | None]


def _describe_topic(
    broker: Broker, resource: DescribeConfigsResource, found: Mapping[str, Outcome]
) -> Described:
    topic = resource.resource_name
    refusal = _topic_refusal(broker, topic)
    if refusal is not None:
        return refusal
    outcome = found.get(topic)
    if outcome is None:
        # It was made after the store was asked.
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, None
    if outcome.error is StoreError.NO_NODE:
        return describe_topic(broker.config, {})
    if not outcome.is_ok:
        return ErrorCode.UNKNOWN_SERVER_ERROR, f"the metadata store says {outcome.error.name}"
    try:
        overrides = config_from_bytes(config_path(topic_entity(topic)), outcome.data)
    except DecodeError as problem:
        return ErrorCode.UNKNOWN_SERVER_ERROR, str(problem)
    return describe_topic(broker.config, overrides)


def _topic_refusal(broker: Broker, topic: str) -> tuple[ErrorCode, str | None] | None:
    fault = find_fault(topic)
    if fault is not None:
        return ErrorCode.INVALID_TOPIC_EXCEPTION, fault
    if broker.metadata_cache.topic(topic) is None:
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, None
    return None


def _describe_broker(broker: Broker, resource: DescribeConfigsResource) -> Described:
    """This broker's own settings; without an id those that were set for all brokers."""
    if not resource.resource_name:
        return describe_cluster_default(broker.config)
    refusal = _broker_refusal(broker, resource.resource_name)
    return describe_broker(broker.config) if refusal is None else refusal


def _describe_loggers(broker: Broker, resource: DescribeConfigsResource) -> Described:
    """Log levels are not settings here: a broker has none to tell."""
    if not resource.resource_name:
        return ErrorCode.INVALID_REQUEST, "a broker's id is needed"
    return _broker_refusal(broker, resource.resource_name) or []


def _broker_refusal(broker: Broker, name: str) -> tuple[ErrorCode, str | None] | None:
    """Only this broker can tell its settings."""
    if len(name) > LONGEST_ID or not name.removeprefix("-").isdecimal():
        return ErrorCode.INVALID_REQUEST, f"a broker's id is a number, not {name}"
    if int(name) != broker.broker_id:
        return ErrorCode.INVALID_REQUEST, f"this is broker {broker.broker_id}, not {name}"
    return None


def _config(
    described: DescribedConfig, with_synonyms: bool, version: int
) -> DescribeConfigsResourceResult:
    """One setting; version 0 tells no source, only whether the value is the default."""
    return DescribeConfigsResourceResult(
        name=described.name,
        value=described.value,
        read_only=described.is_read_only,
        is_default=version == 0 and described.source is ConfigSource.DEFAULT_CONFIG,
        config_source=described.source,
        is_sensitive=described.is_sensitive,
        synonyms=[
            DescribeConfigsSynonym(name=one.name, value=one.value, source=one.source)
            for one in described.synonyms
        ]
        if with_synonyms
        else [],
        config_type=described.type.value,
        documentation=None,
    )
