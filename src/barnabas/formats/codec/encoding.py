"""What generated encoders call: lengths, strings, arrays of numbers, tagged fields, records.

Hot: compiled by mypyc. "Compact" is the form of flexible versions: a length plus one as a varint,
where zero is null; the plain form is a fixed-width length where -1 is null.
"""

# Native integers of one width become another without a word here; pyright checks the rest.
# mypy: disable-error-code="arg-type,assignment"

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NoReturn

from librt.strings import BytesWriter, write_i16_be, write_i32_be, write_i64_be

from barnabas.formats.codec.errors import Unencodable
from barnabas.formats.codec.records import RecordsSpan

if TYPE_CHECKING:
    from mypy_extensions import i64

    from barnabas.formats.codec.records import Cut, Records

EMPTY: Final[list[Any]] = []
"""Stands in a constructor's signature for a new, empty list; never handed out."""

ZERO_UUID: Final[bytes] = bytes(16)

_STRING_SIZE_MAX: Final = 32767


def refuse_field(struct: str, field: str, versions: str) -> NoReturn:
    """A field was set that the version being encoded has no place for."""
    raise Unencodable(f"{struct}.{field} is set, and versions {versions} cannot carry it")


def refuse_none(struct: str, field: str, versions: str) -> NoReturn:
    """A field is None in a version where it may not be."""
    raise Unencodable(f"{struct}.{field} is None, which versions {versions} do not allow")


def refuse_value(what: str) -> NoReturn:
    """A value is outside what its type can hold."""
    raise Unencodable(what)


def write_uvarint(writer: BytesWriter, value: i64) -> None:
    """Seven bits in each byte, the lowest first."""
    while value >= 0x80:
        writer.append((value & 0x7F) | 0x80)
        value >>= 7
    writer.append(value)


def write_bool(writer: BytesWriter, value: bool) -> None:
    writer.append(1 if value else 0)


def write_int8(writer: BytesWriter, value: i64) -> None:
    if value < -128 or value > 127:
        refuse_value(f"{value} is no int8")
    writer.append(value & 0xFF)


def write_uuid(writer: BytesWriter, value: bytes) -> None:
    if len(value) != 16:
        refuse_value(f"a uuid has 16 bytes, not {len(value)}")
    writer.write(value)


def write_string(writer: BytesWriter, value: str) -> None:
    encoded = value.encode("utf-8")
    size: i64 = len(encoded)
    if size > _STRING_SIZE_MAX:
        refuse_value(f"a string of {size} bytes is too long")
    write_i16_be(writer, size)
    writer.write(encoded)


def write_nullable_string(writer: BytesWriter, value: str | None) -> None:
    if value is None:
        write_i16_be(writer, -1)
    else:
        write_string(writer, value)


def write_compact_string(writer: BytesWriter, value: str) -> None:
    encoded = value.encode("utf-8")
    size: i64 = len(encoded)
    if size > _STRING_SIZE_MAX:
        refuse_value(f"a string of {size} bytes is too long")
    write_uvarint(writer, size + 1)
    writer.write(encoded)


def write_compact_nullable_string(writer: BytesWriter, value: str | None) -> None:
    if value is None:
        writer.append(0)
    else:
        write_compact_string(writer, value)


def write_bytes(writer: BytesWriter, value: bytes) -> None:
    write_i32_be(writer, len(value))
    writer.write(value)


def write_nullable_bytes(writer: BytesWriter, value: bytes | None) -> None:
    if value is None:
        write_i32_be(writer, -1)
    else:
        write_bytes(writer, value)


def write_compact_bytes(writer: BytesWriter, value: bytes) -> None:
    write_uvarint(writer, len(value) + 1)
    writer.write(value)


def write_compact_nullable_bytes(writer: BytesWriter, value: bytes | None) -> None:
    if value is None:
        writer.append(0)
    else:
        write_compact_bytes(writer, value)


def write_nullable_records(writer: BytesWriter, value: Records | None, cuts: list[Cut]) -> None:
    """The size as int32, then the batches, or a cut where they belong."""
    if value is None:
        write_i32_be(writer, -1)
    elif isinstance(value, bytes):
        write_bytes(writer, value)
    elif isinstance(value, RecordsSpan):
        write_bytes(writer, value.data[value.start : value.end])
    elif isinstance(value, memoryview):
        write_bytes(writer, bytes(value))
    else:
        write_i32_be(writer, value.size_bytes)
        cuts.append((len(writer), value))


def write_compact_nullable_records(
    writer: BytesWriter, value: Records | None, cuts: list[Cut]
) -> None:
    """The size plus one as a varint, then the batches, or a cut where they belong."""
    if value is None:
        writer.append(0)
    elif isinstance(value, bytes):
        write_compact_bytes(writer, value)
    elif isinstance(value, RecordsSpan):
        write_compact_bytes(writer, value.data[value.start : value.end])
    elif isinstance(value, memoryview):
        write_compact_bytes(writer, bytes(value))
    else:
        write_uvarint(writer, value.size_bytes + 1)
        cuts.append((len(writer), value))


def write_count(writer: BytesWriter, count: i64) -> None:
    write_i32_be(writer, count)


def write_compact_count(writer: BytesWriter, count: i64) -> None:
    write_uvarint(writer, count + 1)


def write_int32_items(writer: BytesWriter, items: list[int]) -> None:
    for item in items:
        write_i32_be(writer, item)


def write_int64_items(writer: BytesWriter, items: list[int]) -> None:
    for item in items:
        write_i64_be(writer, item)


def write_string_items(writer: BytesWriter, items: list[str]) -> None:
    for item in items:
        write_string(writer, item)


def write_compact_string_items(writer: BytesWriter, items: list[str]) -> None:
    for item in items:
        write_compact_string(writer, item)


def write_uuid_items(writer: BytesWriter, items: list[bytes]) -> None:
    for item in items:
        write_uuid(writer, item)


def write_tagged_field(writer: BytesWriter, tag: i64, content: BytesWriter) -> None:
    """One tagged field: its tag, its size, its content."""
    encoded = content.getvalue()
    write_uvarint(writer, tag)
    write_uvarint(writer, len(encoded))
    writer.write(encoded)
