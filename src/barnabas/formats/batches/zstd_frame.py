"""Zstandard frames: their blocks are counted before anything is allocated for them.

The library can be given a target of fixed size, and nothing tells how large that must be: a
frame may or may not say it. So the headers of frames and blocks are walked first; a block says
how many bytes it becomes (stored, or one byte repeated) or at most becomes (compressed).
"""

from typing import Final

import cramjam

from barnabas.formats.batches.bounded_output import BoundedOutput
from barnabas.model.errors import CorruptBatch

FRAME_MAGIC: Final = 0xFD2FB528
SKIPPABLE_MAGIC: Final = 0x184D2A50
SKIPPABLE_MASK: Final = 0xFFFF_FFF0

IS_SINGLE_SEGMENT: Final = 0x20
HAS_CHECKSUM: Final = 0x04
DICTIONARY_ID_BYTES: Final = (0, 1, 2, 4)
CONTENT_SIZE_BYTES: Final = (0, 2, 4, 8)

STORED_BLOCK: Final = 0
REPEATED_BLOCK: Final = 1
COMPRESSED_BLOCK: Final = 2
BLOCK_BYTES_MAX: Final = 128 * 1024

FIRST_TARGET_BYTES: Final = 256 * 1024
TARGET_GROWTH: Final = 4


def compress_zstd(data: bytes, level: int) -> bytes:
    return bytes(cramjam.zstd.compress(data, level=level))


def decompress_zstd(data: bytes | memoryview, output: BoundedOutput) -> None:
    """Read all frames; the target grows towards what the blocks can become at most."""
    at_least, at_most = _output_bounds(data)
    output.check_room(at_least)
    at_most = min(at_most, output.remaining_bytes)
    target_bytes = min(at_most, max(FIRST_TARGET_BYTES, at_least, len(data) * TARGET_GROWTH))
    while True:
        target = bytearray(target_bytes)
        try:
            size_bytes = cramjam.zstd.decompress_into(data, target)
        except cramjam.DecompressionError as error:
            if target_bytes >= at_most:
                reason = f"{error}; {at_most} bytes are possible or allowed"
                raise CorruptBatch(f"zstd: {reason}") from error
            target_bytes = min(at_most, target_bytes * TARGET_GROWTH)
            continue
        output.add(bytes(memoryview(target)[:size_bytes]))
        return


def _output_bounds(data: bytes | memoryview) -> tuple[int, int]:
    """How many bytes the frames become at least and at most."""
    position = 0
    at_least = 0
    at_most = 0
    while position < len(data):
        magic = _read_little(data, position, 4)
        if magic & SKIPPABLE_MASK == SKIPPABLE_MAGIC:
            position += 8 + _read_little(data, position + 4, 4)
            continue
        if magic != FRAME_MAGIC:
            raise CorruptBatch("zstd: not a frame")
        flags = _read_little(data, position + 4, 1)
        position = _skip_frame_header(data, position + 5, flags)
        while True:
            block_header = _read_little(data, position, 3)
            position += 3
            kind, size_bytes = (block_header >> 1) & 3, block_header >> 3
            if kind == COMPRESSED_BLOCK:
                position += size_bytes
                at_most += BLOCK_BYTES_MAX
            elif kind in (STORED_BLOCK, REPEATED_BLOCK):
                position += size_bytes if kind == STORED_BLOCK else 1
                at_least += size_bytes
                at_most += size_bytes
            else:
                raise CorruptBatch("zstd: a block of no known kind")
            if block_header & 1:
                break
        if flags & HAS_CHECKSUM:
            position += 4
    if position != len(data) or position == 0:
        raise CorruptBatch("zstd: the stream ends before its end")
    return at_least, at_most


def _skip_frame_header(data: bytes | memoryview, position: int, flags: int) -> int:
    """Where the first block begins, after the optional fields of the frame's header."""
    is_single_segment = flags & IS_SINGLE_SEGMENT != 0
    content_size_bytes = CONTENT_SIZE_BYTES[flags >> 6]
    if is_single_segment:
        content_size_bytes = max(content_size_bytes, 1)
    window_bytes = 0 if is_single_segment else 1
    position += window_bytes + DICTIONARY_ID_BYTES[flags & 3] + content_size_bytes
    if position > len(data):
        raise CorruptBatch("zstd: the stream ends before its end")
    return position


def _read_little(data: bytes | memoryview, position: int, size_bytes: int) -> int:
    if position + size_bytes > len(data):
        raise CorruptBatch("zstd: the stream ends before its end")
    return int.from_bytes(data[position : position + size_bytes], "little")
