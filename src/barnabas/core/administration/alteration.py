"""What AlterConfigs and IncrementalAlterConfigs may change, and what the settings are then (M1)."""

from collections import Counter
from collections.abc import Mapping, Sequence
from enum import IntEnum
from typing import Final, NamedTuple

from barnabas.core.administration.refusals import Refused
from barnabas.model.config import RUN_TIME_KEYS, BrokerConfig, check_topic_overrides
from barnabas.model.config_definition import (
    ConfigKey,
    ConfigType,
    Mark,
    UpdateMode,
    parse,
    shown,
)
from barnabas.model.config_keys import BROKER_KEYS
from barnabas.model.error_codes import ErrorCode
from barnabas.model.errors import ConfigRefused
from barnabas.model.topic_config_keys import TOPIC_KEYS

TOPIC: Final = 2
BROKER: Final = 4
BROKER_LOGGER: Final = 8
CLIENT_METRICS: Final = 16
LONGEST_ID: Final = 11
"""The characters of the smallest int32."""


class ConfigOperation(IntEnum):
    """What is done to one setting; the numbers are Kafka's."""

    SET = 0
    DELETE = 1
    APPEND = 2
    SUBTRACT = 3


class ConfigEdit(NamedTuple):
    """One setting of one resource, and what shall be done to it."""

    name: str
    operation: int
    value: str | None


class Alteration(NamedTuple):
    """What a client wants of one resource."""

    resource_type: int
    name: str
    edits: Sequence[ConfigEdit]
    is_replacement: bool = False
    """What is not named is removed (AlterConfigs)."""


def find_form_fault(wish: Alteration, broker_id: int) -> Refused | None:
    """What is wrong with a wish whatever is set by now, in Kafka's order of checks."""
    names = Counter(edit.name for edit in wish.edits)
    if len(names) < len(wish.edits):
        return Refused(ErrorCode.INVALID_REQUEST, "Error due to duplicate config keys")
    nulls = [
        edit.name
        for edit in wish.edits
        if edit.value is None and edit.operation != ConfigOperation.DELETE
    ]
    if nulls:
        return Refused(
            ErrorCode.INVALID_REQUEST, f"Null value not supported for : {', '.join(nulls)}"
        )
    kind = wish.resource_type
    if kind == TOPIC:
        fault = None if wish.name else "Default topic resources are not allowed."
    elif kind == BROKER:
        fault = _find_broker_id_fault(wish.name, broker_id) if wish.name else None
    elif kind == BROKER_LOGGER and not wish.is_replacement:
        fault = "This broker has no log levels that could be set."
    elif kind == CLIENT_METRICS:
        fault = (
            "AlterConfigs is only supported for topics and brokers, "
            "but resource type is CLIENT_METRICS"
        )
    else:
        fault = f"Unknown resource type {kind}"
    return None if fault is None else Refused(ErrorCode.INVALID_REQUEST, fault)


def _find_broker_id_fault(name: str, broker_id: int) -> str | None:
    digits = name.removeprefix("-")
    if len(name) > LONGEST_ID or not (digits.isascii() and digits.isdecimal()):
        return f"Node id must be an integer, but it is: {name}"
    if int(name) != broker_id:
        return f"Unexpected broker id, expected {broker_id}, but received {name}"
    return None


def plan_topic_alteration(wish: Alteration, stored: Mapping[str, str]) -> dict[str, str] | Refused:
    """All settings that the topic has then, or why it cannot have them."""
    wanted = _edited(wish, stored, TOPIC_KEYS)
    if isinstance(wanted, Refused):
        return wanted
    for name in wanted:
        if name not in TOPIC_KEYS:
            return Refused(ErrorCode.INVALID_CONFIG, f"Unknown topic config name: {name}")
    fault = _find_value_fault(wanted, TOPIC_KEYS)
    if fault is not None:
        resource = f"ConfigResource(type=TOPIC, name='{wish.name}')"
        return Refused(
            ErrorCode.INVALID_CONFIG, f"Invalid config value for resource {resource}: {fault}"
        )
    try:
        check_topic_overrides(wanted)
    except ConfigRefused as problem:
        return Refused(ErrorCode.INVALID_CONFIG, str(problem))
    return wanted


def plan_broker_alteration(
    wish: Alteration, stored: Mapping[str, str], static: BrokerConfig
) -> dict[str, str] | Refused:
    """All settings that the broker's node, or the one for all, has then; or why it cannot.

    What is there already and cannot be honoured (another kind of broker wrote it) stays.
    """
    wanted = _edited(wish, stored, BROKER_KEYS)
    if isinstance(wanted, Refused):
        return wanted
    changed = {name: text for name, text in wanted.items() if stored.get(name) != text}
    fault = (
        _find_read_only(changed)
        or _find_value_fault(changed, BROKER_KEYS)
        or (None if wish.name else _find_per_broker(changed))
        or _find_unhonoured(changed)
        or _find_conflict(wanted, static)
    )
    return wanted if fault is None else Refused(ErrorCode.INVALID_REQUEST, fault)


def _edited(
    wish: Alteration, stored: Mapping[str, str], keys: Mapping[str, ConfigKey]
) -> dict[str, str] | Refused:
    """The settings after all edits, in the order in which they came to be."""
    settings = {} if wish.is_replacement else dict(stored)
    for name, operation, value in wish.edits:
        text = value or ""
        match operation:
            case ConfigOperation.SET:
                settings[name] = text
            case ConfigOperation.DELETE:
                settings.pop(name, None)
            case ConfigOperation.APPEND | ConfigOperation.SUBTRACT:
                key = keys.get(name)
                if key is None or key.type is not ConfigType.LIST:
                    word = ConfigOperation(operation).name.lower()
                    return Refused(
                        ErrorCode.INVALID_CONFIG,
                        f"Config value {word} is not allowed for config key: {name}",
                    )
                old = settings.get(name, key.default or "").split(",")
                settings[name] = ",".join(_combined(old, text.split(","), operation))
            case _:
                return Refused(
                    ErrorCode.INVALID_REQUEST, f"Unknown operation {operation} on {name}"
                )
    return settings


def _combined(old: list[str], words: list[str], operation: int) -> list[str]:
    if operation == ConfigOperation.APPEND:
        return old + [word for word in words if word not in old]
    return [word for word in old if word not in words]


def _find_value_fault(settings: Mapping[str, str], keys: Mapping[str, ConfigKey]) -> str | None:
    for name, text in settings.items():
        key = keys.get(name)
        if key is None:
            continue
        try:
            parse(key, text)
        except ConfigRefused as problem:
            value = shown(key, problem.value)
            return f"Invalid value {value} for configuration {name}: {problem.reason}"
    return None


def _find_read_only(settings: Mapping[str, str]) -> str | None:
    names = [
        name
        for name in settings
        if name in BROKER_KEYS and BROKER_KEYS[name].mode is UpdateMode.READ_ONLY
    ]
    return f"Cannot update these configs dynamically: Set({', '.join(names)})" if names else None


def _find_per_broker(settings: Mapping[str, str]) -> str | None:
    names = [
        name
        for name in settings
        if name in BROKER_KEYS and BROKER_KEYS[name].mode is UpdateMode.PER_BROKER
    ]
    if not names:
        return None
    return (
        "Cannot update these configs at default cluster level, "
        f"broker id must be specified: Set({', '.join(names)})"
    )


def _find_unhonoured(settings: Mapping[str, str]) -> str | None:
    """Kafka would take these; a setting that changes nothing here must not look as if it did."""
    for name in settings:
        if name in RUN_TIME_KEYS:
            continue
        key = BROKER_KEYS.get(name)
        if key is None:
            return f"{name} is not a setting that this broker knows."
        if key.mark is Mark.HONOURED:
            return f"This broker takes {name} at its start alone, from server.properties."
        if key.mark is Mark.HARMLESS:
            return f"{name} has no effect in this broker."
        return f"This broker does not honour {name}."
    return None


def _find_conflict(settings: Mapping[str, str], static: BrokerConfig) -> str | None:
    try:
        static.with_dynamic({}, settings)
    except ConfigRefused as problem:
        return str(problem)
    return None
