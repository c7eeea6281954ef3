"""A walk over a batch's records without making them: structure, keys, timestamps, offsets.

Hot: compiled by mypyc where a compiler is there. Lengths are checked before they are followed,
so that nothing is read past the end and nothing is left over.

    varint   length of what follows       varint   length of the value, -1 for null
    int8     attributes, unused           bytes    value
    varlong  timestamp delta              varint   number of headers
    varint   offset delta                   varint  length of the key
    varint   length of the key, -1: null    bytes   key
    bytes    key                            varint  length of the value, -1 for null
                                            bytes   value
"""

# Native integers of one width become another without a word here; pyright checks the rest.
# mypy: disable-error-code="arg-type,assignment"

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from barnabas.model.errors import CorruptBatch

if TYPE_CHECKING:
    from mypy_extensions import i64

NO_TIMESTAMP: Final = -1
SMALLEST_INT64: Final = -0x8000_0000_0000_0000
LARGEST_INT64: Final = 0x7FFF_FFFF_FFFF_FFFF
_FAR: Final = 1 << 61
"""Compared with first: beyond 62 bits compiled code takes the slow way that all ints can go."""
SMALLEST_RECORD_BYTES: Final = 7
LISTED_MAX: Final = 1000
"""Wrong records of one kind that are listed: an answer names some, not a million."""


class RecordsSummary:
    """What a walk over all records found; what it found wrong is listed by record index."""

    __slots__ = (
        "are_offsets_consecutive",
        "keyless",
        "max_timestamp",
        "min_timestamp",
        "out_of_time",
    )

    def __init__(self) -> None:
        self.max_timestamp: int = NO_TIMESTAMP
        """The latest, but no earlier than NO_TIMESTAMP."""
        self.min_timestamp: int = NO_TIMESTAMP
        """The earliest, but no later than NO_TIMESTAMP: what is below that is no time."""
        self.are_offsets_consecutive: bool = True
        """Whether the n-th record has offset delta n, as every producer writes it."""
        self.keyless: list[int] | None = None
        self.out_of_time: list[int] | None = None
        """Records with a timestamp outside the bounds; one without a timestamp is inside.
        None where there is no such record, as in nearly every batch."""


def read_varint(data: bytes, position: i64, end: i64) -> tuple[i64, i64]:
    """A zigzag varint of at most 32 bits and the position after it."""
    raw: i64 = 0
    shift: i64 = 0
    while True:
        if position >= end:
            raise CorruptBatch("a varint reaches past the end of the records")
        byte: i64 = data[position]
        position += 1
        raw |= (byte & 0x7F) << shift
        if byte < 0x80:
            break
        shift += 7
        if shift > 28:
            raise CorruptBatch("a varint is longer than five bytes")
    raw &= 0xFFFF_FFFF
    return (raw >> 1) ^ -(raw & 1), position


def read_varlong(data: bytes, position: i64, end: i64) -> tuple[i64, i64]:
    """A zigzag varint of at most 64 bits and the position after it."""
    low: i64 = 0
    shift: i64 = 0
    top: i64 = 0
    while True:
        if position >= end:
            raise CorruptBatch("a varint reaches past the end of the records")
        byte: i64 = data[position]
        position += 1
        if shift == 63:
            # The tenth byte has room for one bit; kept apart, all numbers here fit 63 bits.
            top = byte & 1
            if byte >= 0x80:
                raise CorruptBatch("a varint is longer than ten bytes")
            break
        low |= (byte & 0x7F) << shift
        if byte < 0x80:
            break
        shift += 7
    half: i64 = (low >> 1) | (top << 62)
    return (-half - 1 if low & 1 else half), position


def skip_bytes(data: bytes, position: i64, end: i64) -> i64:
    """The position after a nullable field of bytes."""
    if position >= end:
        raise CorruptBatch("a record reaches past its end")
    length: i64 = data[position]
    if length < 0x80:
        position += 1
        if length & 1:
            # Negative numbers are odd; all of them mean null.
            return position
        length >>= 1
    else:
        length, position = read_varint(data, position, end)
        if length < 0:
            return position
    if length > end - position:
        raise CorruptBatch("a field reaches past the end of its record")
    return position + length


def skip_headers(data: bytes, position: i64, end: i64) -> i64:
    """The position after a record's headers."""
    count, position = read_varint(data, position, end)
    if count < 0 or count > end - position:
        raise CorruptBatch(f"a record with {count} headers in {end - position} bytes")
    while count > 0:
        length, position = read_varint(data, position, end)
        if length < 0 or length > end - position:
            raise CorruptBatch("a header's key is null or reaches past the end of its record")
        position = skip_bytes(data, position + length, end)
        count -= 1
    return position


def skip_records_below(
    data: bytes, start: i64, end: i64, count: i64, offset_delta: i64
) -> tuple[i64, i64]:
    """How many of `count` records come before that offset delta, and where the next one begins."""
    position: i64 = start
    index: i64 = 0
    while index < count:
        length, record_start = read_varint(data, position, end)
        if length < 0 or length > end - record_start:
            raise CorruptBatch("a record reaches past the end of its batch")
        record_end: i64 = record_start + length
        _, after = read_varlong(data, record_start + 1, record_end)
        delta, _ = read_varint(data, after, record_end)
        if delta >= offset_delta:
            break
        position = record_end
        index += 1
    return index, position


# tidy: long because each call in this loop costs every record of every batch
def check_records(
    data: bytes,
    start: i64,
    end: i64,
    count: i64,
    base_timestamp: int,
    is_time_bounded: bool,
    earliest: int,
    latest: int,
) -> RecordsSummary:
    """Walk `count` records that fill data[start:end]; `CorruptBatch` unless they do exactly.

    Only with `is_time_bounded` must timestamps be from `earliest` to `latest`.
    """
    summary = RecordsSummary()
    if count < 0 or count * SMALLEST_RECORD_BYTES > end - start:
        raise CorruptBatch(f"{count} records cannot be in {end - start} bytes")
    max_timestamp = NO_TIMESTAMP
    min_timestamp = NO_TIMESTAMP
    position: i64 = start
    index: i64 = 0
    while index < count:
        length, position = read_varint(data, position, end)
        if length < 0 or length > end - position:
            raise CorruptBatch("a record reaches past the end of its batch")
        record_end: i64 = position + length
        position += 1
        # Deltas and the key's length mostly fit one byte, which is read without a call.
        if position < record_end and data[position] < 0x80:
            delta: i64 = (data[position] >> 1) ^ -(data[position] & 1)
            position += 1
        else:
            delta, position = read_varlong(data, position, record_end)
        if position < record_end and data[position] < 0x80:
            offset_delta: i64 = (data[position] >> 1) ^ -(data[position] & 1)
            position += 1
        else:
            offset_delta, position = read_varint(data, position, record_end)
        if offset_delta != index:
            summary.are_offsets_consecutive = False
        # The lowest bit of a zigzag number is its sign, and a negative length means null.
        if position < record_end and data[position] & 1 != 0:
            summary.keyless = _listed(summary.keyless, index)
        position = skip_bytes(data, position, record_end)
        position = skip_bytes(data, position, record_end)
        if position < record_end and data[position] == 0:
            position += 1
        else:
            position = skip_headers(data, position, record_end)
        if position != record_end:
            raise CorruptBatch("a record is longer than what is in it")
        # Not a native integer any more, in which the sum might come out as another time.
        unbounded_delta: int = delta
        timestamp = base_timestamp + unbounded_delta
        if timestamp > max_timestamp:
            max_timestamp = timestamp
        if timestamp < min_timestamp:
            min_timestamp = timestamp
        if (
            is_time_bounded
            and (timestamp < earliest or timestamp > latest)
            and timestamp != NO_TIMESTAMP
        ):
            summary.out_of_time = _listed(summary.out_of_time, index)
        index += 1
    if position != end:
        raise CorruptBatch("bytes are left after the last record of a batch")
    if (max_timestamp > _FAR and max_timestamp > LARGEST_INT64) or (
        min_timestamp < -_FAR and min_timestamp < SMALLEST_INT64
    ):
        raise CorruptBatch("a timestamp does not fit 64 bits")
    summary.max_timestamp = max_timestamp
    summary.min_timestamp = min_timestamp
    return summary


def _listed(wrong: list[int] | None, index: int) -> list[int]:
    """The list with one more record, while there is room in it."""
    if wrong is None:
        return [index]
    if len(wrong) < LISTED_MAX:
        wrong.append(index)
    return wrong
