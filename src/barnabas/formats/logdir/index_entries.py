"""Entries of the offset index (8 bytes) and of the time index (12 bytes) of a segment."""

import struct
from typing import Final, NamedTuple

OFFSET_ENTRY_SIZE: Final = 8
TIME_ENTRY_SIZE: Final = 12
RELATIVE_OFFSET_MAX: Final = 0x7FFF_FFFF

_OFFSET_ENTRY: Final = struct.Struct(">ii")
_TIME_ENTRY: Final = struct.Struct(">qi")


class OffsetEntry(NamedTuple):
    """A batch whose last offset is `offset` begins at `position` of the segment."""

    offset: int
    position: int


class TimeEntry(NamedTuple):
    """Nothing up to `offset` is younger than `timestamp`."""

    timestamp: int
    offset: int


def encode_offset_entry(base_offset: int, offset: int, position: int) -> bytes:
    return _OFFSET_ENTRY.pack(offset - base_offset, position)


def decode_offset_entry(base_offset: int, data: bytes, at: int = 0) -> OffsetEntry:
    relative, position = _OFFSET_ENTRY.unpack_from(data, at)
    return OffsetEntry(base_offset + relative, position)


def encode_time_entry(base_offset: int, timestamp: int, offset: int) -> bytes:
    return _TIME_ENTRY.pack(timestamp, offset - base_offset)


def decode_time_entry(base_offset: int, data: bytes, at: int = 0) -> TimeEntry:
    timestamp, relative = _TIME_ENTRY.unpack_from(data, at)
    return TimeEntry(timestamp, base_offset + relative)
