"""JSON of znodes: written compactly, read field by field with a reason for every refusal.

Keys nobody asks for are tolerated, as every Kafka broker does.
"""

import json
import re
from collections.abc import Mapping
from typing import cast

from barnabas.model.errors import DecodeError

INT32_MIN = -(2**31)
INT32_MAX = 2**31 - 1
INT64_MAX = 2**63 - 1

_NUMBER = re.compile(r"-?[0-9]{1,19}")
_SHOWN_CHARACTERS = 60


def to_json(members: Mapping[str, object]) -> bytes:
    """The members in their order, without a space, characters beyond ASCII as they are."""
    return json.dumps(members, ensure_ascii=False, separators=(",", ":")).encode("utf-8")


def parse_object(path: str, data: bytes | None) -> "JsonObject":
    """The object that a znode holds; `DecodeError` when it holds anything else."""
    if data is None:
        raise DecodeError(f"{path}: no data, expected a JSON object")
    try:
        value: object = json.loads(data.decode("utf-8"), parse_constant=_refuse_constant)
        if b"\\u" in data:
            json.dumps(value, ensure_ascii=False).encode("utf-8")
    except RecursionError:
        raise DecodeError(f"{path}: not JSON that can be read: nested too deeply") from None
    except ValueError as error:
        raise DecodeError(f"{path}: not JSON that can be read: {error}") from None
    return _object(path, value)


class JsonObject:
    """An object read from a znode; `where` is the path and the keys that lead to it."""

    __slots__ = ("_members", "where")

    def __init__(self, where: str, members: dict[str, object]) -> None:
        self.where = where
        self._members = members

    def __contains__(self, key: str) -> bool:
        """Whether the key is there, be it with null."""
        return key in self._members

    def is_null(self, key: str) -> bool:
        """Whether the key is missing or there with null."""
        return self._members.get(key) is None

    def names(self) -> tuple[str, ...]:
        return tuple(self._members)

    def integer(self, key: str) -> int:
        """A whole number of 32 bits."""
        return _integer(self._at(key), self._members.get(key))

    def text(self, key: str) -> str:
        return _text(self._at(key), self._members.get(key))

    def long_text(self, key: str) -> int:
        """A whole number of 64 bits written as text."""
        text = self.text(key)
        if not _NUMBER.fullmatch(text) or abs(int(text)) > INT64_MAX:
            raise _refusal(self._at(key), text, "a number written as text")
        return int(text)

    def object(self, key: str) -> "JsonObject":
        return _object(self._at(key), self._members.get(key))

    def objects(self, key: str) -> "tuple[JsonObject, ...]":
        """A list of objects."""
        items = _items(self._at(key), self._members.get(key))
        return tuple(_object(f"{self._at(key)}[{i}]", item) for i, item in enumerate(items))

    def texts(self, key: str) -> tuple[str, ...]:
        """A list of texts."""
        items = _items(self._at(key), self._members.get(key))
        return tuple(_text(f"{self._at(key)}[{i}]", item) for i, item in enumerate(items))

    def integers(self, key: str) -> tuple[int, ...]:
        """A list of whole numbers of 32 bits."""
        items = _items(self._at(key), self._members.get(key))
        return tuple(_integer(f"{self._at(key)}[{i}]", item) for i, item in enumerate(items))

    def note_ms(self, key: str) -> int:
        """A time that is only told to people: -1 when it is missing or makes no sense."""
        value = self._members.get(key)
        if isinstance(value, int) and not isinstance(value, bool):
            return value
        if isinstance(value, str) and _NUMBER.fullmatch(value):
            return int(value)
        return -1

    def _at(self, key: str) -> str:
        return f"{self.where}: {key}" if ": " not in self.where else f"{self.where}.{key}"


def _object(where: str, value: object) -> JsonObject:
    if not isinstance(value, dict):
        raise _refusal(where, value, "a JSON object")
    return JsonObject(where, cast(dict[str, object], value))


def _items(where: str, value: object) -> list[object]:
    if not isinstance(value, list):
        raise _refusal(where, value, "a list")
    return cast(list[object], value)


def _integer(where: str, value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise _refusal(where, value, "a whole number")
    if not INT32_MIN <= value <= INT32_MAX:
        raise _refusal(where, value, "a number of 32 bits")
    return value


def _text(where: str, value: object) -> str:
    if not isinstance(value, str):
        raise _refusal(where, value, "text")
    return value


def _refusal(where: str, found: object, expected: str) -> DecodeError:
    if found is None:
        return DecodeError(f"{where}: missing, expected {expected}")
    shown = repr(found) if isinstance(found, str | int | float) else type(found).__name__
    return DecodeError(f"{where}: found {shown[:_SHOWN_CHARACTERS]}, expected {expected}")


def _refuse_constant(name: str) -> object:
    raise ValueError(f"{name} is not a JSON number")
