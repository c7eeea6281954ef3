"""server.properties in Java's syntax, and the KAFKA_ environment that beats it."""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from barnabas.model.errors import DecodeError

_BLANKS = " \t\f"
_SEPARATORS = "=:"
_ESCAPES = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
_HEX_DIGITS = "0123456789abcdefABCDEF"

ENVIRONMENT_PREFIX = "KAFKA_"
_NOT_SETTINGS = frozenset(
    (
        *("KAFKA_VERSION", "KAFKA_HOME", "KAFKA_OPTS", "KAFKA_HEAP_OPTS", "KAFKA_DEBUG"),
        *("KAFKA_GC_LOG_OPTS", "KAFKA_JVM_PERFORMANCE_OPTS", "KAFKA_MODE", "KAFKA_CLUSTER_ID"),
        *("KAFKA_LOG4J_OPTS", "KAFKA_LOG4J_LOGGERS", "KAFKA_LOG4J_ROOT_LOGLEVEL"),
        *("KAFKA_TOOLS_LOG4J_LOGLEVEL", "KAFKA_JMX_OPTS", "KAFKA_JMX_PORT", "KAFKA_JMX_HOSTNAME"),
    )
)
"""Variables of Kafka's scripts and images that look like settings and are none."""


class Setting(NamedTuple):
    """One key as somebody set it, and where: a file with its line, or a variable."""

    name: str
    text: str
    origin: str


def is_text(data: bytes) -> bool:
    """Whether the bytes can be a properties file at all.

    Java takes any byte for a Latin-1 character, so that nothing else tells them from a program, an
    archive, or text of two bytes a character: no text has a zero in it.
    """
    return b"\0" not in data


def read_properties(data: bytes, origin: str) -> list[Setting]:
    """The settings of a file in order; `DecodeError` names the line that cannot be read.

    As Java reads it: Latin-1 with \\uXXXX for the rest, # and ! begin a comment, a backslash at
    the end of a line continues it, and the key ends at the first =, : or blank.
    """
    return [
        _split(line, f"{origin}:{number}")
        for number, line in _logical_lines(data.decode("latin-1"))
    ]


def read_environment(environment: Mapping[str, str], names: Iterable[str]) -> list[Setting]:
    """The settings in KAFKA_ variables: . is written _, _ is written __ and - is written ___.

    `names` are the keys that exist: they give back the capitals that a variable's name lost.
    """
    spelled = {name.lower(): name for name in names}
    settings: list[Setting] = []
    for variable in sorted(environment):
        if not variable.startswith(ENVIRONMENT_PREFIX) or variable in _NOT_SETTINGS:
            continue
        name = _from_variable(variable.removeprefix(ENVIRONMENT_PREFIX))
        settings.append(Setting(spelled.get(name, name), environment[variable], variable))
    return settings


def to_variable(name: str) -> str:
    """The environment variable that sets a key."""
    dashes = name.replace("_", "__").replace("-", "___")
    return ENVIRONMENT_PREFIX + dashes.replace(".", "_").upper()


def merge(*layers: Iterable[Setting]) -> dict[str, Setting]:
    """One setting for each key: the last of the last layer that has it."""
    return {setting.name: setting for layer in layers for setting in layer}


def _from_variable(rest: str) -> str:
    name = rest.lower().replace("___", "-")
    return name.replace("__", "\0").replace("_", ".").replace("\0", "_")


def _logical_lines(text: str) -> list[tuple[int, str]]:
    """Lines with their continuations joined and comments left out, with the first line's number."""
    lines: list[tuple[int, str]] = []
    started_at = 0
    joined = ""
    natural_lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    for number, natural in enumerate(natural_lines, start=1):
        line = natural.lstrip(_BLANKS)
        if not joined:
            if not line or line[0] in "#!":
                continue
            started_at = number
        backslashes = len(line) - len(line.rstrip("\\"))
        if backslashes % 2:
            joined += line[:-1]
            continue
        lines.append((started_at, joined + line))
        joined = ""
    if joined:
        lines.append((started_at, joined))
    return lines


def _split(line: str, origin: str) -> Setting:
    position = 0
    while position < len(line) and line[position] not in _SEPARATORS + _BLANKS:
        position += 2 if line[position] == "\\" else 1
    end = min(position, len(line))
    while position < len(line) and line[position] in _BLANKS:
        position += 1
    if position < len(line) and line[position] in _SEPARATORS:
        position += 1
        while position < len(line) and line[position] in _BLANKS:
            position += 1
    return Setting(_unescape(line[:end], origin), _unescape(line[position:], origin), origin)


def _unescape(text: str, origin: str) -> str:
    if "\\" not in text:
        return text
    parts: list[str] = []
    position = 0
    while position < len(text):
        character = text[position]
        position += 1
        if character != "\\":
            parts.append(character)
            continue
        escaped = text[position : position + 1]
        position += 1
        if escaped != "u":
            parts.append(_ESCAPES.get(escaped, escaped))
            continue
        digits = text[position : position + 4]
        if len(digits) != 4 or any(digit not in _HEX_DIGITS for digit in digits):
            raise DecodeError(
                f"{origin}: \\u{digits} is not a character in four hexadecimal digits"
            )
        parts.append(chr(int(digits, 16)))
        position += 4
    return "".join(parts)
