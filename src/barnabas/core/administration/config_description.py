"""What DescribeConfigs tells of a setting: its value, where it comes from, what else might hold.

A synonym is another place that sets the same thing: a topic's key falls back on the broker's, a
key in milliseconds on the one in hours. They are told from the strongest on; as in Kafka the list
begins with the first that has the described key's own name, so that a topic whose retention comes
from log.retention.hours has no synonyms at all.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Final

from barnabas.model.config import BrokerConfig, TopicConfig, to_text
from barnabas.model.config_definition import ConfigKey, ConfigType, ConfigValue, UpdateMode, parse
from barnabas.model.config_keys import BROKER_KEYS
from barnabas.model.errors import ConfigRefused
from barnabas.model.topic_config_keys import TOPIC_KEYS


class ConfigSource(IntEnum):
    """Who set a value; the numbers are Kafka's."""

    TOPIC_CONFIG = 1
    DYNAMIC_BROKER_CONFIG = 2
    DYNAMIC_DEFAULT_BROKER_CONFIG = 3
    STATIC_BROKER_CONFIG = 4
    DEFAULT_CONFIG = 5


@dataclass(frozen=True, slots=True)
class ConfigSynonym:
    """A place that sets the same thing, and what it says."""

    name: str
    value: str | None
    source: ConfigSource


@dataclass(frozen=True, slots=True)
class DescribedConfig:
    """One setting as it is told."""

    name: str
    value: str | None
    """None for a secret, and for a setting that has no value."""
    source: ConfigSource
    is_sensitive: bool
    is_read_only: bool
    type: ConfigType
    synonyms: tuple[ConfigSynonym, ...]


_ALIKE: Final = (
    ("log.roll.ms", "log.roll.hours"),
    ("log.roll.jitter.ms", "log.roll.jitter.hours"),
    ("log.retention.ms", "log.retention.minutes", "log.retention.hours"),
)
"""Broker keys that set one thing in several units; any of them has all of them as synonyms."""
_FALLS_BACK: Final = {
    "log.flush.interval.ms": ("log.flush.interval.ms", "log.flush.scheduler.interval.ms")
}


def describe_topic(config: BrokerConfig, overrides: Mapping[str, str]) -> list[DescribedConfig]:
    """Every setting of a topic that has these of its own."""
    effective = TopicConfig.resolve(config, overrides)
    described: list[DescribedConfig] = []
    for name, key in TOPIC_KEYS.items():
        value: ConfigValue = getattr(effective, name.replace(".", "_"))
        text = None if key.is_sensitive else to_text(value)
        own = (ConfigSynonym(name, text, ConfigSource.TOPIC_CONFIG),) if name in overrides else ()
        inherited = _broker_synonyms(config, key.synonyms[0].name) if key.synonyms else ()
        described.append(_described(key, text, (*own, *inherited), False))
    return described


def describe_broker(config: BrokerConfig) -> list[DescribedConfig]:
    """Every setting of this broker."""
    return [
        _described(
            key,
            None if key.is_sensitive else _broker_value(config, key),
            _broker_synonyms(config, name),
            key.mode is UpdateMode.READ_ONLY,
        )
        for name, key in BROKER_KEYS.items()
        if not key.is_internal
    ]


def describe_cluster_default(config: BrokerConfig) -> list[DescribedConfig]:
    """What was set at run time for all brokers, and nothing else."""
    source = ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG
    described: list[DescribedConfig] = []
    for name, text in config.dynamic_default.items():
        synonym = ConfigSynonym(name, _shown(name, text), source)
        described.append(_described(BROKER_KEYS[name], synonym.value, (synonym,), False))
    return described


def only(
    described: Iterable[DescribedConfig], names: Sequence[str] | None
) -> list[DescribedConfig]:
    """The settings that were asked for; all of them when none was named."""
    if not names:
        return list(described)
    wanted = frozenset(names)
    return [one for one in described if one.name in wanted]


def _described(
    key: ConfigKey, text: str | None, synonyms: tuple[ConfigSynonym, ...], is_read_only: bool
) -> DescribedConfig:
    source = synonyms[0].source if synonyms else ConfigSource.DEFAULT_CONFIG
    return DescribedConfig(
        key.name, text, source, key.is_sensitive, is_read_only, key.type, synonyms
    )


def _broker_value(config: BrokerConfig, key: ConfigKey) -> str | None:
    text = next((layer[key.name] for layer, _ in _layers(config) if key.name in layer), key.default)
    if text is None:
        return None
    try:
        return to_text(parse(key, text))
    except ConfigRefused:
        return text


def _broker_synonyms(config: BrokerConfig, name: str) -> tuple[ConfigSynonym, ...]:
    """What is set, then what holds by default, from the key's own name on."""
    names = _FALLS_BACK.get(name) or next((group for group in _ALIKE if name in group), (name,))
    found = [
        ConfigSynonym(one, _shown(one, layer[one]), source)
        for layer, source in _layers(config)
        for one in names
        if one in layer
    ]
    for one in names:
        default = BROKER_KEYS[one].default
        if default is not None:
            found.append(ConfigSynonym(one, _shown(one, default), ConfigSource.DEFAULT_CONFIG))
    first = next((at for at, synonym in enumerate(found) if synonym.name == name), len(found))
    return tuple(found[first:])


def _layers(config: BrokerConfig) -> tuple[tuple[Mapping[str, str], ConfigSource], ...]:
    """What was set for a broker, from the strongest on."""
    return (
        (config.dynamic, ConfigSource.DYNAMIC_BROKER_CONFIG),
        (config.dynamic_default, ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG),
        (config.explicit, ConfigSource.STATIC_BROKER_CONFIG),
    )


def _shown(name: str, text: str) -> str | None:
    return None if BROKER_KEYS[name].is_sensitive else text
