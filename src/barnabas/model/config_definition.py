"""What a configuration key is: its type, default, allowed values, and how far it is honoured."""

import math
import re
from enum import Enum
from typing import NamedTuple, assert_never

from barnabas.model.errors import ConfigRefused

ConfigValue = str | int | float | bool | tuple[str, ...] | None
"""What a text becomes; None is Kafka's null, which only a default can be."""


class ConfigType(Enum):
    """Kafka's types; the values are the numbers DescribeConfigs answers with."""

    BOOLEAN = 1
    STRING = 2
    INT = 3
    SHORT = 4
    LONG = 5
    DOUBLE = 6
    LIST = 7
    CLASS = 8
    PASSWORD = 9


class Importance(Enum):
    """How likely it is that somebody must set the key."""

    HIGH = "high"
    MEDIUM = "medium"
    LOW = "low"


class UpdateMode(Enum):
    """Whether a running broker takes a new value, and for whom it may be set."""

    READ_ONLY = "read-only"
    PER_BROKER = "per-broker"
    CLUSTER_WIDE = "cluster-wide"


class Mark(Enum):
    """How far a key is honoured; one that is not is never passed over in silence."""

    HONOURED = "honoured"
    HARMLESS = "without effect here, harmless"
    NOT_YET = "not yet"
    REFUSED = "refused"


class Between(NamedTuple):
    """A number within limits, both included."""

    low: float
    high: float = math.inf


class BetweenOr(NamedTuple):
    """A number within limits, or one that means "the default"."""

    low: int
    high: int
    other: int


class OneOf(NamedTuple):
    """One of some words."""

    words: tuple[str, ...]
    is_case_ignored: bool = False


class EachOf(NamedTuple):
    """A list of nothing but these words."""

    words: tuple[str, ...]


class NotEmpty(NamedTuple):
    """A text or a list with something in it."""


class ProtocolVersion(NamedTuple):
    """A version of the inter-broker protocol, in full ("3.9-IV0") or in part ("3.9")."""


class ThrottledReplicas(NamedTuple):
    """A list of partition:broker, or * for all."""


Valid = Between | BetweenOr | OneOf | EachOf | NotEmpty | ProtocolVersion | ThrottledReplicas | None


class Synonym(NamedTuple):
    """A broker key that gives a topic key its default, and the factor between their units."""

    name: str
    factor: int = 1


class ConfigKey(NamedTuple):
    """One row of the tables; `default` is text, as DescribeConfigs shows it."""

    name: str
    mark: Mark
    type: ConfigType
    default: str | None
    valid: Valid
    importance: Importance
    mode: UpdateMode = UpdateMode.READ_ONLY
    is_internal: bool = False
    synonyms: tuple[Synonym, ...] = ()

    @property
    def is_sensitive(self) -> bool:
        """Whether the value is a secret, shown to nobody and written to no log."""
        return self.type is ConfigType.PASSWORD


_LIMITS = {
    ConfigType.SHORT: (-(2**15), 2**15 - 1),
    ConfigType.INT: (-(2**31), 2**31 - 1),
    ConfigType.LONG: (-(2**63), 2**63 - 1),
}
_INTEGER = re.compile(r"[+-]?[0-9]+")
_DOUBLE = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?[fFdD]?")
_LIST_SEPARATOR = re.compile(r"\s*,\s*")
_THROTTLED_REPLICA = re.compile(r"[0-9]+:[0-9]+")
_ZERO_VERSION = re.compile(r"0\.")


def parse(key: ConfigKey, text: str) -> ConfigValue:
    """The value that `text` stands for, checked; `ConfigRefused` says what is wrong with it."""
    value = _parse_type(key, text)
    complaint = _complaint(key.valid, value)
    if complaint is not None:
        raise ConfigRefused(key.name, shown(key, text), complaint)
    return value


def default_of(key: ConfigKey) -> ConfigValue:
    """The value of the key when nobody sets it."""
    return None if key.default is None else _parse_type(key, key.default)


def shown(key: ConfigKey, text: str) -> str:
    """The text as a message may carry it."""
    return "[hidden]" if key.is_sensitive else text


def _parse_type(key: ConfigKey, text: str) -> ConfigValue:
    trimmed = text.strip()
    kind = key.type
    match kind:
        case ConfigType.BOOLEAN:
            return _parse_boolean(key, trimmed)
        case ConfigType.SHORT | ConfigType.INT | ConfigType.LONG:
            return _parse_integer(key, trimmed)
        case ConfigType.DOUBLE:
            if _DOUBLE.fullmatch(trimmed) is None:
                raise ConfigRefused(key.name, text, f"Not a number of type {kind.name}")
            return float(trimmed.rstrip("fFdD"))
        case ConfigType.LIST:
            return tuple(_LIST_SEPARATOR.split(trimmed)) if trimmed else ()
        case ConfigType.STRING | ConfigType.CLASS | ConfigType.PASSWORD:
            return trimmed
    assert_never(kind)


def _parse_boolean(key: ConfigKey, text: str) -> bool:
    word = text.lower()
    if word not in ("true", "false"):
        raise ConfigRefused(key.name, text, "Expected value to be either true or false")
    return word == "true"


def _parse_integer(key: ConfigKey, text: str) -> int:
    if _INTEGER.fullmatch(text) is None:
        raise ConfigRefused(key.name, text, f"Not a number of type {key.type.name}")
    low, high = _LIMITS[key.type]
    # A longer text is out of range whatever it says; Python would refuse to convert 5,000 digits.
    value = int(text) if len(text) <= 40 else high + 1
    if not low <= value <= high:
        raise ConfigRefused(key.name, text, f"Not a number of type {key.type.name}")
    return value


def _complaint(valid: Valid, value: ConfigValue) -> str | None:
    """What is wrong with a value of the right type; None when nothing is."""
    match valid:
        case None:
            return None
        case Between(low, high):
            return _complaint_about_number(value, low, high)
        case BetweenOr(low, high, other):
            if value == other or (isinstance(value, int) and low <= value <= high):
                return None
            return f"Value must be between {low} and {high} or equal to {other}"
        case OneOf(words, is_case_ignored):
            given = str(value).upper() if is_case_ignored else value
            return None if given in words else f"String must be one of: {', '.join(words)}"
        case EachOf(words):
            given = value if isinstance(value, tuple) else ()
            is_right = all(word in words for word in given)
            return None if is_right else f"String must be one of: {', '.join(words)}"
        case NotEmpty():
            return None if value else "must not be empty"
        case ProtocolVersion():
            return None if is_protocol_version(str(value)) else "is no version of Kafka's protocol"
        case ThrottledReplicas():
            return _complaint_about_throttled_replicas(value)
    assert_never(valid)


def _complaint_about_number(value: ConfigValue, low: float, high: float) -> str | None:
    if not isinstance(value, (int, float)):
        return "is not a number"
    if value < low:
        return f"Value must be at least {low}"
    if value > high:
        return f"Value must be no more than {high}"
    return None


def _complaint_about_throttled_replicas(value: ConfigValue) -> str | None:
    replicas = value if isinstance(value, tuple) else ()
    if replicas == ("*",) or all(_THROTTLED_REPLICA.fullmatch(replica) for replica in replicas):
        return None
    return "must be * or a list of partition:broker"


# fmt: off
PROTOCOL_VERSIONS = (
    "0.8.0", "0.8.1", "0.8.2", "0.9.0", "0.10.0-IV0", "0.10.0-IV1", "0.10.1-IV0", "0.10.1-IV1",
    "0.10.1-IV2", "0.10.2-IV0", "0.11.0-IV0", "0.11.0-IV1", "0.11.0-IV2", "1.0-IV0", "1.1-IV0",
    "2.0-IV0", "2.0-IV1", "2.1-IV0", "2.1-IV1", "2.1-IV2", "2.2-IV0", "2.2-IV1", "2.3-IV0",
    "2.3-IV1", "2.4-IV0", "2.4-IV1", "2.5-IV0", "2.6-IV0", "2.7-IV0", "2.7-IV1", "2.7-IV2",
    "2.8-IV0", "2.8-IV1", "3.0-IV0", "3.0-IV1", "3.1-IV0", "3.2-IV0", "3.3-IV0", "3.3-IV1",
    "3.3-IV2", "3.3-IV3", "3.4-IV0", "3.5-IV0", "3.5-IV1", "3.5-IV2", "3.6-IV0", "3.6-IV1",
    "3.6-IV2", "3.7-IV0", "3.7-IV1", "3.7-IV2", "3.7-IV3", "3.7-IV4", "3.8-IV0", "3.9-IV0",
    "4.0-IV0", "4.0-IV1",
)
# fmt: on
"""Every version that Kafka 3.9 knows, oldest first."""


def is_protocol_version(text: str) -> bool:
    """Whether the text names a version; more digits than a version has are passed over."""
    parts = text.split(".")
    wanted = ".".join(parts[: 3 if _ZERO_VERSION.match(text) else 2])
    return any(
        version == wanted or version.partition("-")[0] == wanted for version in PROTOCOL_VERSIONS
    )
