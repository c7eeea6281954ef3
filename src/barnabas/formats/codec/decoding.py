"""What generated decoders call: lengths, strings, arrays of numbers, tagged fields, records.

Hot: compiled by mypyc. Each function reads at `position`, never at or beyond `end`, and returns
the value and the position behind it. Whatever the bytes are, the only exception is DecodeError,
and a count is held against the bytes that remain before anything is made room for.

A message may become eight times its bytes in memory, a short one `MEMORY_FLOOR`: what its objects
take is counted before they are made. The counting is kept here and not handed from function to
function, since one message is decoded at a time and nothing else happens meanwhile.
"""

# Native integers of one width become another without a word here; pyright checks the rest.
# mypy: disable-error-code="arg-type,assignment"

from __future__ import annotations

from types import FunctionType
from typing import TYPE_CHECKING, Any, Final, NoReturn

from librt.strings import read_i16_be, read_i32_be, read_i64_be

from barnabas.formats.codec.no_items import NO_ITEMS
from barnabas.formats.codec.records import RecordsSpan
from barnabas.model.errors import DecodeError
from barnabas.model.invariant import InvariantViolated

if TYPE_CHECKING:
    from mypy_extensions import i16, i64

UNKNOWN_TAGS_MAX: Final = 64
"""Tagged fields that this codec does not know, in one struct; Kafka itself has at most four."""

UNKNOWN_TAGS_SIZE_MAX: Final = 65536
"""Their bytes in one struct."""

ELEMENTS_MAX: Final = 262144
"""In one array: two bytes on the wire may become an object of a hundred, and nobody needs more."""

MEMORY_PER_BYTE: Final = 8
MEMORY_FLOOR: Final = 16 * 1024 * 1024
"""What any message may take: a consumer of fifty thousand partitions is not an attack."""

_LIST_SIZE: Final = 56
_SHORT_LIST_SIZE: Final = 88
"""Up to four elements."""
_STRING_SIZE: Final = 49
_WIDE_STRING_SIZE: Final = 80
_BYTES_SIZE: Final = 40
_NUMBER_SIZE: Final = 32
_TUPLE_SIZE: Final = 40
_GC_HEAD_SIZE: Final = 16
_HAS_GC_HEAD: Final = 1 << 14
"""Py_TPFLAGS_HAVE_GC."""

_VARINT_SIZE_MAX: Final = 5

_SMALL_NUMBERS_END: Final = 4096
_SMALL_NUMBERS: Final[list[Any]] = list(range(_SMALL_NUMBERS_END))
"""The broker ids and partition numbers of arrays: objects that exist once, not once per array."""


class _Memory:
    """What may still be taken for the message that is being decoded."""

    __slots__ = ("left",)

    def __init__(self) -> None:
        self.left: i64 = MEMORY_FLOOR


_MEMORY: Final = _Memory()


def allow_memory(size: i64) -> None:
    """A message of so many bytes begins."""
    allowed: i64 = size * MEMORY_PER_BYTE
    _MEMORY.left = allowed if allowed > MEMORY_FLOOR else MEMORY_FLOOR


def take_memory(size: i64) -> None:
    """So much is about to be allocated."""
    left: i64 = _MEMORY.left - size
    _MEMORY.left = left
    if left < 0:
        raise DecodeError("the message would take too many times its size in memory")


def take_numbers(*numbers: int) -> None:
    """Numbers that are objects, as where a codec is interpreted; the small ones exist once."""
    for number in numbers:
        if not -6 < number < 257:
            take_memory(_NUMBER_SIZE)


def are_numbers_objects(method: object) -> bool:
    """Whether the attributes of the class with this method refer to numbers, or hold them."""
    return isinstance(method, FunctionType)


def object_size(kind: Any) -> int:
    """What an object of a class takes, without what its attributes refer to.

    The numbers of a tuple are objects always.
    """
    if issubclass(kind, tuple):
        fields = len(kind.__annotations__)
        return _GC_HEAD_SIZE + _TUPLE_SIZE + fields * (8 + _NUMBER_SIZE)
    size: int = kind.__basicsize__
    return size + _GC_HEAD_SIZE if kind.__flags__ & _HAS_GC_HEAD else size


def _take_list(count: i64, element_size: i64) -> None:
    """A list that grows to so many elements, and the elements."""
    if count <= 4:
        take_memory(_SHORT_LIST_SIZE + count * element_size)
    else:
        take_memory(2 * _LIST_SIZE + count * (element_size + 9))


def refuse_short(what: str, position: i64, end: i64) -> NoReturn:
    """The bytes end inside a value."""
    raise DecodeError(f"{what} at {position}: only {end - position} bytes are left")


def refuse_count(count: i64, position: i64, end: i64) -> NoReturn:
    """More elements than can be there, or than one array may have."""
    if count > ELEMENTS_MAX:
        raise DecodeError(f"{count} elements at {position}: {ELEMENTS_MAX} are allowed")
    refuse_short(f"{count} elements", position, end)


def refuse_null(what: str) -> NoReturn:
    """A null where the version does not allow one."""
    raise DecodeError(f"{what} is null, which this version does not allow")


def refuse_trailing(what: str, position: i64, end: i64) -> NoReturn:
    """Bytes are left behind the last field."""
    raise DecodeError(f"{what} ends at {position}, and {end - position} bytes follow")


def refuse_tagged_size(what: str, position: i64, field_end: i64) -> NoReturn:
    """A tagged field whose content does not fill its size."""
    raise DecodeError(f"{what} ends at {position}, its size says {field_end}")


def read_uvarint(data: bytes, position: i64, end: i64) -> tuple[i64, i64]:
    """An unsigned varint of at most five bytes and 32 bits."""
    if position >= end:
        refuse_short("varint", position, end)
    byte: i64 = data[position]
    position += 1
    if byte < 0x80:
        return byte, position
    value: i64 = byte & 0x7F
    shift: i64 = 7
    for _ in range(_VARINT_SIZE_MAX - 1):
        if position >= end:
            refuse_short("varint", position, end)
        byte = data[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            if value > 0xFFFFFFFF:
                raise DecodeError(f"varint before {position} has more than 32 bits")
            return value, position
        shift += 7
    raise DecodeError(f"varint before {position} is longer than five bytes")


def read_int8(data: bytes, position: i64) -> i16:
    """A signed byte that is known to be there."""
    byte: i16 = data[position]
    return byte if byte < 128 else byte - 256


def read_uuid(data: bytes, position: i64) -> bytes:
    """Sixteen bytes that are known to be there."""
    return data[position : position + 16]


def read_text(data: bytes, position: i64, size: i64) -> str:
    """UTF-8 that is known to be there."""
    try:
        text = data[position : position + size].decode("utf-8")
    except UnicodeDecodeError as error:
        raise DecodeError(f"string at {position} is not UTF-8: {error.reason}") from None
    if size > 1:
        # One character beyond the first planes makes all the others as wide.
        take_memory(_STRING_SIZE + size if len(text) == size else _WIDE_STRING_SIZE + 4 * size)
    return text


def _copy(data: bytes, position: i64, size: i64) -> bytes:
    """Bytes that are known to be there."""
    take_memory(_BYTES_SIZE + size)
    return data[position : position + size]


def read_string(data: bytes, position: i64, end: i64) -> tuple[str, i64]:
    if end - position < 2:
        refuse_short("string", position, end)
    size: i64 = read_i16_be(data, position)
    position += 2
    if size < 0:
        refuse_null("string")
    if size > end - position:
        refuse_short("string", position, end)
    return read_text(data, position, size), position + size


def read_nullable_string(data: bytes, position: i64, end: i64) -> tuple[str | None, i64]:
    if end - position < 2:
        refuse_short("string", position, end)
    size: i64 = read_i16_be(data, position)
    position += 2
    if size < 0:
        return None, position
    if size > end - position:
        refuse_short("string", position, end)
    return read_text(data, position, size), position + size


def read_compact_string(data: bytes, position: i64, end: i64) -> tuple[str, i64]:
    size, position = read_compact_size(data, position, end)
    if size < 0:
        refuse_null("string")
    if size > 32767:
        raise DecodeError(f"string at {position}: {size} bytes are too many")
    return read_text(data, position, size), position + size


def read_compact_nullable_string(data: bytes, position: i64, end: i64) -> tuple[str | None, i64]:
    size, position = read_compact_size(data, position, end)
    if size < 0:
        return None, position
    if size > 32767:
        raise DecodeError(f"string at {position}: {size} bytes are too many")
    return read_text(data, position, size), position + size


def read_size(data: bytes, position: i64, end: i64) -> tuple[i64, i64]:
    """An int32 length that the remaining bytes can hold; -1 for null."""
    if end - position < 4:
        refuse_short("size", position, end)
    size: i64 = read_i32_be(data, position)
    position += 4
    if size < 0:
        return -1, position
    if size > end - position:
        refuse_short(f"{size} bytes", position, end)
    return size, position


def read_compact_size(data: bytes, position: i64, end: i64) -> tuple[i64, i64]:
    """A varint length that the remaining bytes can hold; -1 for null."""
    size, position = read_uvarint(data, position, end)
    size -= 1
    if size > end - position:
        refuse_short(f"{size} bytes", position, end)
    return size, position


def read_bytes(data: bytes, position: i64, end: i64) -> tuple[bytes, i64]:
    size, position = read_size(data, position, end)
    if size < 0:
        refuse_null("bytes")
    return _copy(data, position, size), position + size


def read_nullable_bytes(data: bytes, position: i64, end: i64) -> tuple[bytes | None, i64]:
    size, position = read_size(data, position, end)
    if size < 0:
        return None, position
    return _copy(data, position, size), position + size


def read_compact_bytes(data: bytes, position: i64, end: i64) -> tuple[bytes, i64]:
    size, position = read_compact_size(data, position, end)
    if size < 0:
        refuse_null("bytes")
    return _copy(data, position, size), position + size


def read_compact_nullable_bytes(data: bytes, position: i64, end: i64) -> tuple[bytes | None, i64]:
    size, position = read_compact_size(data, position, end)
    if size < 0:
        return None, position
    return _copy(data, position, size), position + size


def read_nullable_records(data: bytes, position: i64, end: i64) -> tuple[RecordsSpan | None, i64]:
    size, position = read_size(data, position, end)
    if size < 0:
        return None, position
    return RecordsSpan(data, position, position + size), position + size


def read_compact_nullable_records(
    data: bytes, position: i64, end: i64
) -> tuple[RecordsSpan | None, i64]:
    size, position = read_compact_size(data, position, end)
    if size < 0:
        return None, position
    return RecordsSpan(data, position, position + size), position + size


def read_count(
    data: bytes, position: i64, end: i64, element_size_min: i64, memory: i64
) -> tuple[i64, i64]:
    """How many elements follow, held against the bytes that remain; -1 for null.

    `memory` is what each takes apart from its strings and arrays.
    """
    if end - position < 4:
        refuse_short("count", position, end)
    count: i64 = read_i32_be(data, position)
    position += 4
    if count < 0:
        return -1, position
    if count * element_size_min > end - position or count > ELEMENTS_MAX:
        refuse_count(count, position, end)
    if count > 0:
        _take_list(count, memory)
    return count, position


def read_compact_count(
    data: bytes, position: i64, end: i64, element_size_min: i64, memory: i64
) -> tuple[i64, i64]:
    """As `read_count`, where the count is a varint."""
    count, position = read_uvarint(data, position, end)
    count -= 1
    if count * element_size_min > end - position or count > ELEMENTS_MAX:
        refuse_count(count, position, end)
    if count > 0:
        _take_list(count, memory)
    return count, position


def no_items() -> list[Any]:
    """The shared empty list of decoded messages, which nobody may have changed."""
    if len(NO_ITEMS) > 0:
        changed = repr(NO_ITEMS)
        NO_ITEMS.clear()
        raise InvariantViolated(f"an empty array of a decoded message was changed: {changed}")
    return NO_ITEMS


def read_int32_items(data: bytes, position: i64, count: i64) -> tuple[list[Any], i64]:
    """Numbers that are known to be there, as those of the other arrays of fixed width."""
    if count == 0:
        return no_items(), position
    items: list[Any] = []
    for _ in range(count):
        number = read_i32_be(data, position)
        if 0 <= number < _SMALL_NUMBERS_END:
            items.append(_SMALL_NUMBERS[number])
        else:
            take_memory(_NUMBER_SIZE)
            items.append(number)
        position += 4
    return items, position


def read_int64_items(data: bytes, position: i64, count: i64) -> tuple[list[int], i64]:
    if count == 0:
        return no_items(), position
    items: list[int] = []
    for _ in range(count):
        items.append(read_i64_be(data, position))
        position += 8
    return items, position


def read_uuid_items(data: bytes, position: i64, count: i64) -> tuple[list[bytes], i64]:
    if count == 0:
        return no_items(), position
    items: list[bytes] = []
    for _ in range(count):
        items.append(data[position : position + 16])
        position += 16
    return items, position


def read_string_items(data: bytes, position: i64, end: i64, count: i64) -> tuple[list[str], i64]:
    if count == 0:
        return no_items(), position
    items: list[str] = []
    for _ in range(count):
        item, position = read_string(data, position, end)
        items.append(item)
    return items, position


def read_compact_string_items(
    data: bytes, position: i64, end: i64, count: i64
) -> tuple[list[str], i64]:
    if count == 0:
        return no_items(), position
    items: list[str] = []
    for _ in range(count):
        item, position = read_compact_string(data, position, end)
        items.append(item)
    return items, position


def read_tag(data: bytes, position: i64, end: i64) -> tuple[i64, i64, i64]:
    """The head of a tagged field: its tag, where its content starts, and where that ends."""
    tag, position = read_uvarint(data, position, end)
    size, position = read_uvarint(data, position, end)
    if size > end - position:
        refuse_short(f"tagged field {tag} of {size} bytes", position, end)
    return tag, position, position + size


def skip_tagged_fields(data: bytes, position: i64, end: i64) -> i64:
    """Go behind the tagged fields of a struct in which none is known."""
    if position < end and data[position] == 0:
        return position + 1
    count, position = read_uvarint(data, position, end)
    check_unknown_tags(count, 0)
    start = position
    for _ in range(count):
        _tag, _content, position = read_tag(data, position, end)
    check_unknown_tags(count, position - start)
    return position


def check_unknown_tags(count: i64, size: i64) -> None:
    """Hold a struct's unknown tagged fields to the limits on their number and bytes."""
    if count > UNKNOWN_TAGS_MAX:
        raise DecodeError(f"{count} unknown tagged fields in one struct")
    if size > UNKNOWN_TAGS_SIZE_MAX:
        raise DecodeError(f"{size} bytes of unknown tagged fields in one struct")
