"""Settings of topics, brokers and groups: described with their sources, altered key by key."""

from collections.abc import Mapping, Sequence
from enum import IntEnum
from typing import Final, NamedTuple

from barnabas.client.errors import RequestRefused, code_of
from barnabas.client.routing import Build, Cluster
from barnabas.client.steps import Operation, Response
from barnabas.client.topics import Verdict, verdict_of
from barnabas.formats.wire.api_keys import ApiKey
from barnabas.formats.wire.catalog import Message
from barnabas.formats.wire.generated.alter_configs import (
    AlterableConfig as WholeConfig,
)
from barnabas.formats.wire.generated.alter_configs import (
    AlterConfigsRequest,
)
from barnabas.formats.wire.generated.alter_configs import (
    AlterConfigsResource as WholeResource,
)
from barnabas.formats.wire.generated.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
)
from barnabas.formats.wire.generated.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from barnabas.model.error_codes import ErrorCode
from barnabas.model.ids import BrokerId


class ResourceType(IntEnum):
    """What has settings; the numbers are Kafka's."""

    TOPIC = 2
    BROKER = 4
    BROKER_LOGGER = 8
    CLIENT_METRICS = 16
    GROUP = 32


class Resource(NamedTuple):
    """Whose settings: a topic's name, a broker's number, nothing for all brokers."""

    kind: ResourceType
    name: str


class ConfigSource(IntEnum):
    """Where a value comes from; Kafka's numbers and, as names, the words its tools print."""

    UNKNOWN = 0
    DYNAMIC_TOPIC_CONFIG = 1
    DYNAMIC_BROKER_CONFIG = 2
    DYNAMIC_DEFAULT_BROKER_CONFIG = 3
    STATIC_BROKER_CONFIG = 4
    DEFAULT_CONFIG = 5
    DYNAMIC_BROKER_LOGGER_CONFIG = 6
    DYNAMIC_CLIENT_METRICS_CONFIG = 7
    DYNAMIC_GROUP_CONFIG = 8


class Synonym(NamedTuple):
    """A value that would hold if those above it did not."""

    name: str
    value: str | None
    source: ConfigSource


class ConfigEntry(NamedTuple):
    """One key; a sensitive value is None."""

    name: str
    value: str | None
    source: ConfigSource
    is_sensitive: bool
    is_read_only: bool
    synonyms: tuple[Synonym, ...]


class ConfigOperation(IntEnum):
    """What is done to a key; the numbers are Kafka's."""

    SET = 0
    DELETE = 1
    APPEND = 2
    SUBTRACT = 3


class Alteration(NamedTuple):
    """One key of an incremental alteration."""

    name: str
    operation: ConfigOperation
    value: str | None = None


BROKER_BOUND: Final = (ResourceType.BROKER, ResourceType.BROKER_LOGGER)
"""Settings that only the broker itself knows and takes."""


def describe_configs(
    cluster: Cluster, resource: Resource, *, keys: Sequence[str] | None = None
) -> Operation[list[ConfigEntry]]:
    """Every key of a resource, or these, sorted by name."""

    def build(version: int) -> Message:
        request = DescribeConfigsRequest(
            resources=[
                DescribeConfigsResource(
                    resource_type=resource.kind,
                    resource_name=resource.name,
                    configuration_keys=None if keys is None else list(keys),
                )
            ]
        )
        if version >= 1:
            request.include_synonyms = True
        return request

    response = yield from _ask(cluster, resource, ApiKey.DESCRIBE_CONFIGS, build)
    (result,) = response.body.results
    if result.error_code != ErrorCode.NONE:
        code = code_of(result.error_code)
        raise RequestRefused(_name_of(resource), code, result.error_message)
    entries = [_read_entry(entry, response.version) for entry in result.configs]
    return sorted(entries, key=lambda entry: entry.name)


def alter_configs(
    cluster: Cluster,
    resource: Resource,
    alterations: Sequence[Alteration],
    *,
    validate_only: bool = False,
) -> Operation[Verdict]:
    """Change these keys and no other."""

    def build(version: int) -> Message:
        return IncrementalAlterConfigsRequest(
            resources=[
                AlterConfigsResource(
                    resource_type=resource.kind,
                    resource_name=resource.name,
                    configs=[
                        AlterableConfig(
                            name=each.name, config_operation=each.operation, value=each.value
                        )
                        for each in alterations
                    ],
                )
            ],
            validate_only=validate_only,
        )

    response = yield from _ask(cluster, resource, ApiKey.INCREMENTAL_ALTER_CONFIGS, build)
    (result,) = response.body.responses
    return verdict_of(result.error_code, result.error_message)


def replace_configs(
    cluster: Cluster, resource: Resource, values: Mapping[str, str], *, validate_only: bool = False
) -> Operation[Verdict]:
    """Set these keys and unset every other: the older API, for brokers before 2.3."""

    def build(version: int) -> Message:
        return AlterConfigsRequest(
            resources=[
                WholeResource(
                    resource_type=resource.kind,
                    resource_name=resource.name,
                    configs=[WholeConfig(name=name, value=value) for name, value in values.items()],
                )
            ],
            validate_only=validate_only,
        )

    response = yield from _ask(cluster, resource, ApiKey.ALTER_CONFIGS, build)
    (result,) = response.body.responses
    return verdict_of(result.error_code, result.error_message)


def _ask(
    cluster: Cluster, resource: Resource, api_key: ApiKey, build: Build
) -> Operation[Response]:
    if resource.kind in BROKER_BOUND and resource.name:
        return (yield from cluster.ask_broker(BrokerId(int(resource.name)), api_key, build))
    return (yield from cluster.ask_any(api_key, build))


def _name_of(resource: Resource) -> str:
    return f"{resource.kind.name.lower().replace('_', ' ')} {resource.name}".rstrip()


def _read_entry(entry: Message, version: int) -> ConfigEntry:
    if version == 0:
        default = ConfigSource.DEFAULT_CONFIG if entry.is_default else ConfigSource.UNKNOWN
        return ConfigEntry(
            entry.name, entry.value, default, entry.is_sensitive, entry.read_only, ()
        )
    return ConfigEntry(
        entry.name,
        entry.value,
        _source_of(entry.config_source),
        entry.is_sensitive,
        entry.read_only,
        tuple(Synonym(each.name, each.value, _source_of(each.source)) for each in entry.synonyms),
    )


def _source_of(number: int) -> ConfigSource:
    try:
        return ConfigSource(number)
    except ValueError:
        return ConfigSource.UNKNOWN
