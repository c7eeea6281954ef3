"""Snappy as Java's stream writes it: a header, then blocks each after its length."""

from typing import Final

import cramjam

from barnabas.formats.batches.bounded_output import BoundedOutput
from barnabas.model.errors import CorruptBatch

STREAM_MAGIC: Final = b"\x82SNAPPY\x00"
STREAM_HEADER: Final = STREAM_MAGIC + (1).to_bytes(4, "big") + (1).to_bytes(4, "big")
"""The magic, the version of the writer and the oldest version that can read it."""
HEADER_HEAD: Final = STREAM_MAGIC[:4]
"""Where a length is expected it says that another stream begins; as a length it is negative."""
BLOCK_BYTES: Final = 32 * 1024


def compress_snappy(data: bytes) -> bytes:
    parts = [STREAM_HEADER]
    for start in range(0, len(data), BLOCK_BYTES):
        block = bytes(cramjam.snappy.compress_raw(data[start : start + BLOCK_BYTES]))
        parts.append(len(block).to_bytes(4, "big"))
        parts.append(block)
    return b"".join(parts)


def decompress_snappy(data: bytes | memoryview, output: BoundedOutput) -> None:
    """Read a stream; without the stream's header everything is one bare block, as in Java."""
    if bytes(data[: len(STREAM_MAGIC)]) != STREAM_MAGIC:
        _decompress_block(data, output)
        return
    position = _skip_header(data, 0)
    while position < len(data):
        length = bytes(data[position : position + 4])
        if length == HEADER_HEAD:
            position = _skip_header(data, position)
            continue
        block_start = position + 4
        position = block_start + int.from_bytes(length, "big")
        if block_start > len(data) or position > len(data):
            raise CorruptBatch("snappy: a block reaches past the end")
        _decompress_block(data[block_start:position], output)


def _skip_header(data: bytes | memoryview, position: int) -> int:
    header = bytes(data[position : position + len(STREAM_HEADER)])
    if len(header) < len(STREAM_HEADER) or header[:8] != STREAM_MAGIC:
        raise CorruptBatch("snappy: the stream's header is cut or not one")
    if int.from_bytes(header[12:16], "big", signed=True) < 1:
        raise CorruptBatch("snappy: the stream's version cannot be read")
    return position + len(STREAM_HEADER)


def _decompress_block(block: bytes | memoryview, output: BoundedOutput) -> None:
    try:
        output.check_room(cramjam.snappy.decompress_raw_len(block))
        output.add(bytes(cramjam.snappy.decompress_raw(block)))
    except cramjam.DecompressionError as error:
        raise CorruptBatch(str(error)) from error
