"""Batch headers as they stand in segments, messages of the old formats 0 and 1 included.

An old message is shown as a batch of one offset: that of the message, or for a compressed set
that of its last inner message, which is what its own header tells.
"""

import struct
import zlib
from typing import Final

from barnabas.formats.batches.header import (
    CURRENT_MAGIC,
    HEADER_SIZE,
    LOG_OVERHEAD,
    BatchHeader,
    has_valid_crc,
)
from barnabas.model.errors import CorruptBatch

MAGIC_AT: Final = 16
MESSAGE_SIZE_MIN: Final = 26
"""Offset, length, checksum, magic, attributes and two empty fields."""
NO_TIMESTAMP: Final = -1

_V2: Final = struct.Struct(">qiibIhiqqqhii")
_TIMESTAMP_TYPE: Final = 0x08


def header_at(data: bytes, at: int) -> BatchHeader | None:
    """The header at a place; None when not all of it is in `data`."""
    left = len(data) - at
    if left <= MAGIC_AT:
        return None
    if data[at + MAGIC_AT] >= CURRENT_MAGIC:
        if left < HEADER_SIZE:
            return None
        header = BatchHeader(data, at)
        if header.magic != CURRENT_MAGIC or header.size_bytes < HEADER_SIZE:
            raise CorruptBatch(f"a batch of magic {header.magic} and {header.size_bytes} bytes")
        return header
    if left < MESSAGE_SIZE_MIN:
        return None
    return _old_header(data, at)


def _old_header(data: bytes, at: int) -> BatchHeader:
    """What a message of format 0 or 1 says, in the words of a batch."""
    offset, length, crc, magic, attributes, timestamp = struct.unpack_from(">qiIbbq", data, at)
    if length + LOG_OVERHEAD < MESSAGE_SIZE_MIN or magic < 0:
        raise CorruptBatch(f"a message of magic {magic} and {length} bytes")
    if magic == 0:
        timestamp = NO_TIMESTAMP
    shown = _V2.pack(
        offset, length, -1, magic, crc, attributes & 0xFF, 0, timestamp, timestamp, -1, -1, -1, 1
    )
    return BatchHeader(shown, 0)


def is_intact(data: bytes, header: BatchHeader, at: int) -> bool:
    """Whether the batch at a place, all of which is there, has the checksum it claims."""
    if header.magic >= CURRENT_MAGIC:
        return has_valid_crc(data, header, at)
    return zlib.crc32(memoryview(data)[at + MAGIC_AT : at + header.size_bytes]) == header.crc


def why_not_next(data: bytes, header: BatchHeader, position: int, log_end_offset: int) -> str:
    """Why a leader's batch cannot be appended to a log; empty when it can."""
    if header.base_offset < log_end_offset:
        return (
            f"a batch at offset {header.base_offset}, behind the end of the log at {log_end_offset}"
        )
    if not is_intact(data, header, position):
        return f"the batch at offset {header.base_offset} has a wrong checksum"
    return ""
