"""Settings of a topic as `kafka-topics.sh` judges them before it asks a broker."""

from collections.abc import Mapping

from barnabas.model.config_definition import (
    Between,
    ConfigKey,
    ConfigType,
    EachOf,
    OneOf,
    parse,
)
from barnabas.model.errors import ConfigRefused
from barnabas.model.topic_config_keys import TOPIC_KEYS

WIDTHS = {ConfigType.SHORT: 16, ConfigType.INT: 32, ConfigType.LONG: 64}
NUMBERS = (*WIDTHS, ConfigType.DOUBLE)


def complaint_about(settings: Mapping[str, str]) -> str | None:
    """What is wrong with them, in the words of the script; None when nothing is."""
    for name in settings:
        if name not in TOPIC_KEYS:
            return f"Unknown topic config name: {name}"
    for name, text in settings.items():
        key = TOPIC_KEYS[name]
        try:
            parse(key, text)
        except ConfigRefused as problem:
            reason = _reason(key, text) or problem.reason
            return f"Invalid value {text} for configuration {name}: {reason}"
    return None


def _reason(key: ConfigKey, text: str) -> str | None:
    if key.type is ConfigType.BOOLEAN:
        return "Expected value to be either true or false"
    valid = key.valid
    if key.type in NUMBERS:
        no_number = f"Not a number of type {key.type.name}"
        try:
            number = float(text)
        except ValueError:
            return no_number
        if key.type in WIDTHS and abs(number) >= 1 << (WIDTHS[key.type] - 1):
            return no_number
        if isinstance(valid, Between):
            if number < valid.low:
                return f"Value must be at least {valid.low:g}"
            if number > valid.high:
                return f"Value must be no more than {valid.high:g}"
    if isinstance(valid, (OneOf, EachOf)):
        return f"String must be one of: {', '.join(valid.words)}"
    return None
