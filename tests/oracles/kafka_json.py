"""Kafka's own message definitions, read from the kafka-clients jar, and a slow codec on them.

Written to be independent of the generated codecs: it interprets the definitions field by field,
with Kafka's camel-case names turned to snake case, and knows nothing of our schemas.
"""

import json
import re
import struct
import zipfile
from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

from tests.tools import KAFKA_JARS, KAFKA_VERSION

Plain = dict[str, Any]
Definition = dict[str, Any]

FIXED = {"int8": ">b", "int16": ">h", "int32": ">i", "int64": ">q", "bool": ">?"}


@cache
def definitions() -> dict[tuple[int, str], Definition]:
    """Every request and response of the jar by API key and "request" or "response"."""
    found: dict[tuple[int, str], Definition] = {}
    with zipfile.ZipFile(KAFKA_JARS / f"kafka-clients-{KAFKA_VERSION}.jar") as jar:
        for name in jar.namelist():
            if name.startswith("common/message/") and name.endswith(".json"):
                definition = _without_comments(jar.read(name).decode())
                if "apiKey" in definition and definition["type"] in ("request", "response"):
                    found[(definition["apiKey"], definition["type"])] = definition
    return found


@cache
def header(name: str) -> Definition:
    """RequestHeader or ResponseHeader."""
    with zipfile.ZipFile(KAFKA_JARS / f"kafka-clients-{KAFKA_VERSION}.jar") as jar:
        return _without_comments(jar.read(f"common/message/{name}.json").decode())


def _without_comments(text: str) -> Definition:
    lines = [line for line in text.splitlines() if not line.lstrip().startswith("//")]
    definition = json.loads("\n".join(lines))
    assert isinstance(definition, dict)
    return definition


def snake_case(name: str) -> str:
    words = re.sub(r"(.)([A-Z][a-z]+)", r"\1_\2", name)
    return re.sub(r"([a-z0-9])([A-Z])", r"\1_\2", words).lower()


def version_range(text: str | None) -> range:
    """The versions of "3", "0-2", "4+" or "none"."""
    if text is None or text == "none":
        return range(0)
    if text.endswith("+"):
        return range(int(text[:-1]), 32768)
    first, _, last = text.partition("-")
    return range(int(first), int(last or first) + 1)


def default_of(field: Definition, structs: dict[str, list[Definition]]) -> Any:
    """The value of a field that is not on the wire."""
    kind = field["type"]
    given = field.get("default")
    if given == "null":
        return None
    if kind.startswith("[]"):
        return []
    if kind in structs:
        return {snake_case(f["name"]): default_of(f, structs) for f in structs[kind]}
    if kind == "bool":
        return str(given).lower() == "true"
    if kind in FIXED:
        return int(str(given), 0) if given not in (None, "") else 0
    return {"string": given or "", "bytes": b"", "records": None, "uuid": bytes(16)}[kind]


def structs_of(definition: Definition) -> dict[str, list[Definition]]:
    """The fields of every struct in a definition by the struct's name."""
    found = {common["name"]: common["fields"] for common in definition.get("commonStructs", [])}
    waiting = [*definition["fields"], *(f for fields in found.values() for f in fields)]
    while waiting:
        field = waiting.pop()
        if "fields" in field:
            found[field["type"].removeprefix("[]")] = field["fields"]
            waiting += field["fields"]
    return found


class JsonCodec:
    """Encodes and decodes one message in one version by interpreting its definition."""

    def __init__(self, definition: Definition, version: int) -> None:
        self.definition = definition
        self.version = version
        self.structs = structs_of(definition)
        self.flexible = version in version_range(definition["flexibleVersions"])

    def encode(self, plain: Plain) -> bytes:
        return self._struct_bytes(self.definition["fields"], plain)

    def decode(self, data: bytes) -> Plain:
        cursor = Cursor(data)
        plain = self._read_struct(self.definition["fields"], cursor)
        assert cursor.position == len(data), "bytes are left"
        return plain

    def _is_in(self, field: Definition, key: str = "versions") -> bool:
        return self.version in version_range(field.get(key))

    def _is_flexible(self, field: Definition) -> bool:
        if "flexibleVersions" in field:
            return self.version in version_range(field["flexibleVersions"])
        return self.flexible

    def _struct_bytes(self, fields: list[Definition], plain: Plain) -> bytes:
        written = b""
        tagged: dict[int, bytes] = {}
        for field in fields:
            if not self._is_in(field):
                continue
            value = plain[snake_case(field["name"])]
            content = self._value_bytes(field, field["type"], value)
            if not self._is_in(field, "taggedVersions"):
                written += content
            elif value != default_of(field, self.structs):
                tagged[field["tag"]] = content
        if self.flexible:
            written += uvarint(len(tagged))
            for tag, content in sorted(tagged.items()):
                written += uvarint(tag) + uvarint(len(content)) + content
        return written

    def _value_bytes(self, field: Definition, kind: str, value: Any) -> bytes:
        flexible = self._is_flexible(field)
        if kind in FIXED:
            return struct.pack(FIXED[kind], value)
        if kind == "uuid":
            assert len(value) == 16
            return bytes(value)
        if kind in self.structs:
            return self._struct_bytes(self.structs[kind], value)
        if value is None:
            assert self._is_in(field, "nullableVersions"), f"{field['name']} is None"
            if flexible:
                return uvarint(0)
            return struct.pack(">h" if kind == "string" else ">i", -1)
        if kind.startswith("[]"):
            element = kind.removeprefix("[]")
            items = b"".join(self._value_bytes(field, element, item) for item in value)
            count = uvarint(len(value) + 1) if flexible else struct.pack(">i", len(value))
            return count + items
        content = value.encode() if kind == "string" else bytes(value)
        if flexible:
            return uvarint(len(content) + 1) + content
        return struct.pack(">h" if kind == "string" else ">i", len(content)) + content

    def _read_struct(self, fields: list[Definition], cursor: "Cursor") -> Plain:
        plain: Plain = {}
        for field in fields:
            if self._is_in(field):
                if self._is_in(field, "taggedVersions"):
                    plain[snake_case(field["name"])] = default_of(field, self.structs)
                else:
                    plain[snake_case(field["name"])] = self._read(field, field["type"], cursor)
        if self.flexible:
            tags = {f["tag"]: f for f in fields if self._is_in(f, "taggedVersions")}
            for _ in range(cursor.uvarint()):
                tag, size = cursor.uvarint(), cursor.uvarint()
                content = Cursor(cursor.take(size))
                if tag in tags:
                    field = tags[tag]
                    plain[snake_case(field["name"])] = self._read(field, field["type"], content)
                    assert content.position == size
        return plain

    def _read(self, field: Definition, kind: str, cursor: "Cursor") -> Any:
        if kind in FIXED:
            return struct.unpack(FIXED[kind], cursor.take(struct.calcsize(FIXED[kind])))[0]
        if kind == "uuid":
            return cursor.take(16)
        if kind in self.structs:
            return self._read_struct(self.structs[kind], cursor)
        if self._is_flexible(field):
            size = cursor.uvarint() - 1
        elif kind == "string":
            size = struct.unpack(">h", cursor.take(2))[0]
        else:
            size = struct.unpack(">i", cursor.take(4))[0]
        if size < 0:
            assert self._is_in(field, "nullableVersions"), f"{field['name']} is null"
            return None
        if kind.startswith("[]"):
            element = kind.removeprefix("[]")
            return [self._read(field, element, cursor) for _ in range(size)]
        content = cursor.take(size)
        return content.decode() if kind == "string" else content


class Cursor:
    """Bytes that are taken from the front."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.position = 0

    def take(self, size: int) -> bytes:
        taken = self.data[self.position : self.position + size]
        assert len(taken) == size, "too short"
        self.position += size
        return taken

    def uvarint(self) -> int:
        value = shift = 0
        while True:
            byte = self.take(1)[0]
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value
            shift += 7


def uvarint(value: int) -> bytes:
    written = b""
    while value >= 0x80:
        written += bytes([value & 0x7F | 0x80])
        value >>= 7
    return written + bytes([value])


class JsonField(NamedTuple):
    """What a definition says of a field, to be compared with a schema."""

    name: str
    type: str
    versions: range
    nullable: range
    tag: int | None
    default: Any
    ignorable: bool


def json_fields(
    definition: Definition, on: Callable[[str], range] = version_range
) -> dict[str, list[JsonField]]:
    """The fields of a message and of each struct in it; the message's own are under its name."""
    structs = structs_of(definition)
    return {
        name: [
            JsonField(
                snake_case(field["name"]),
                field["type"],
                on(field["versions"]),
                on(field.get("nullableVersions")),
                field.get("tag") if "taggedVersions" in field else None,
                default_of(field, structs),
                bool(field.get("ignorable", False)),
            )
            for field in fields
        ]
        for name, fields in {**structs, definition["name"]: definition["fields"]}.items()
    }
