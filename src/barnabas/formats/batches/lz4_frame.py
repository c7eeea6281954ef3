"""LZ4 frames as Kafka's clients write and read them: independent blocks of at most 64 KiB.

A frame is a magic number, a descriptor (flags, block size, perhaps the content's size) with one
byte of its checksum, blocks each after its length, a zero, and perhaps a checksum of the content.
Clients of magic 0 computed the descriptor's checksum from the magic number on, which is wrong:
it is written so for them, and not looked at when they wrote it.
"""

from typing import Final, NamedTuple

import cramjam

from barnabas.formats.batches.bounded_output import BoundedOutput
from barnabas.model.errors import CorruptBatch

FRAME_MAGIC: Final = (0x184D2204).to_bytes(4, "little")
DESCRIPTOR_AT: Final = 4

VERSION_1: Final = 0x40
VERSION_MASK: Final = 0xC0
BLOCKS_ARE_INDEPENDENT: Final = 0x20
BLOCKS_HAVE_CHECKSUM: Final = 0x10
HAS_CONTENT_SIZE: Final = 0x08
HAS_CONTENT_CHECKSUM: Final = 0x04
RESERVED_FLAGS: Final = 0x03

BLOCK_SIZE_64_KIB: Final = 4
BLOCK_SIZE_4_MIB: Final = 7
BLOCK_BYTES: Final = 64 * 1024
IS_STORED: Final = 0x8000_0000
"""The bit of a block's length that says that the block could not be compressed."""
END_MARK: Final = bytes(4)

MASK_32: Final = 0xFFFF_FFFF
PRIME_1: Final = 0x9E3779B1
PRIME_2: Final = 0x85EBCA77
PRIME_3: Final = 0xC2B2AE3D
PRIME_4: Final = 0x27D4EB2F
PRIME_5: Final = 0x165667B1


class FrameHeader(NamedTuple):
    """What the descriptor says, and where the first block begins."""

    flags: int
    block_bytes_max: int
    blocks_at: int


def compress_lz4(data: bytes, *, level: int | None, magic: int) -> bytes:
    """A frame; `level` None is the fast compressor, a number the slow one's level."""
    descriptor = bytes((VERSION_1 | BLOCKS_ARE_INDEPENDENT, BLOCK_SIZE_64_KIB << 4))
    checked = FRAME_MAGIC + descriptor if magic == 0 else descriptor
    parts = [FRAME_MAGIC, descriptor, _checksum_byte(checked)]
    for start in range(0, len(data), BLOCK_BYTES):
        block = data[start : start + BLOCK_BYTES]
        parts.append(_fast_block(block) if level is None else _slow_block(block, level))
    parts.append(END_MARK)
    return b"".join(parts)


def _fast_block(block: bytes) -> bytes:
    """The block after its length, stored when it cannot be compressed."""
    packed = bytes(cramjam.lz4.compress_block(block, store_size=False))
    if len(packed) < len(block):
        return len(packed).to_bytes(4, "little") + packed
    return (len(block) | IS_STORED).to_bytes(4, "little") + block


def _slow_block(block: bytes, level: int) -> bytes:
    """The same at a level of the slow compressor, which the library has for frames alone."""
    compressor = cramjam.lz4.Compressor(level=level, content_checksum=False, block_linked=False)
    compressor.compress(block)
    frame = bytes(compressor.finish())
    block_at = _read_header(frame, is_checksum_ignored=False).blocks_at
    size_bytes = _read_length(frame, block_at) & ~IS_STORED
    return frame[block_at : block_at + 4 + size_bytes]


def decompress_lz4(data: bytes | memoryview, output: BoundedOutput, *, magic: int) -> None:
    """Read one frame; what follows its end is left, as Kafka does."""
    header = _read_header(data, is_checksum_ignored=magic == 0)
    has_checksum = header.flags & BLOCKS_HAVE_CHECKSUM != 0
    scratch: bytearray | None = None
    position = header.blocks_at
    while True:
        length = _read_length(data, position)
        if length == 0:
            break
        block_at = position + 4
        is_stored = length & IS_STORED != 0
        length &= ~IS_STORED
        if length > header.block_bytes_max:
            raise CorruptBatch(f"lz4: a block of {length} bytes, {header.block_bytes_max} at most")
        position = block_at + length + (4 if has_checksum else 0)
        if position > len(data):
            raise CorruptBatch("lz4: the stream ends before its end")
        if has_checksum:
            _check_block(data[block_at - 4 : position], header.block_bytes_max)
        block = data[block_at : block_at + length]
        if is_stored:
            output.add(bytes(block))
            continue
        if scratch is None:
            scratch = bytearray(header.block_bytes_max)
        size_bytes = _decompress_block(block, scratch)
        output.add(bytes(memoryview(scratch)[:size_bytes]))
    if header.flags & HAS_CONTENT_CHECKSUM and position + 8 > len(data):
        raise CorruptBatch("lz4: the stream ends before its end")


def _read_header(data: bytes | memoryview, *, is_checksum_ignored: bool) -> FrameHeader:
    if len(data) < DESCRIPTOR_AT + 3:
        raise CorruptBatch("lz4: the stream ends before its end")
    if bytes(data[:DESCRIPTOR_AT]) != FRAME_MAGIC:
        raise CorruptBatch("lz4: not a frame")
    flags, block_size = data[DESCRIPTOR_AT], data[DESCRIPTOR_AT + 1]
    if flags & VERSION_MASK != VERSION_1 or flags & RESERVED_FLAGS:
        raise CorruptBatch(f"lz4: unknown flags {flags:02x}")
    if not flags & BLOCKS_ARE_INDEPENDENT:
        raise CorruptBatch("lz4: blocks that depend on each other are not supported")
    size_code = block_size >> 4
    if block_size & 0x0F or not BLOCK_SIZE_64_KIB <= size_code <= BLOCK_SIZE_4_MIB:
        raise CorruptBatch(f"lz4: unknown block size {block_size:02x}")
    checksum_at = DESCRIPTOR_AT + 2 + (8 if flags & HAS_CONTENT_SIZE else 0)
    if checksum_at >= len(data):
        raise CorruptBatch("lz4: the stream ends before its end")
    if not is_checksum_ignored:
        checksum = _checksum_byte(bytes(data[DESCRIPTOR_AT:checksum_at]))
        if data[checksum_at] != checksum[0]:
            raise CorruptBatch("lz4: the checksum of the frame's descriptor is wrong")
    return FrameHeader(flags, 1 << (2 * size_code + 8), checksum_at + 1)


def _read_length(data: bytes | memoryview, position: int) -> int:
    if position + 4 > len(data):
        raise CorruptBatch("lz4: the stream ends before its end")
    return int.from_bytes(data[position : position + 4], "little")


def _decompress_block(block: bytes | memoryview, scratch: bytearray) -> int:
    try:
        return cramjam.lz4.decompress_block_into(block, scratch)
    except cramjam.DecompressionError as error:
        raise CorruptBatch(f"lz4: {error}") from error


def _check_block(block: bytes | memoryview, block_bytes_max: int) -> None:
    """Have the library verify a block's checksum: as the only block of a frame of its own."""
    size_code = (block_bytes_max.bit_length() - 9) // 2
    flags = VERSION_1 | BLOCKS_ARE_INDEPENDENT | BLOCKS_HAVE_CHECKSUM
    descriptor = bytes((flags, size_code << 4))
    frame = b"".join((FRAME_MAGIC, descriptor, _checksum_byte(descriptor), block, END_MARK))
    try:
        cramjam.lz4.decompress_into(frame, bytearray(block_bytes_max))
    except cramjam.DecompressionError as error:
        raise CorruptBatch(f"lz4: {error}") from error


def _checksum_byte(descriptor: bytes) -> bytes:
    """The second byte of the descriptor's XXH32."""
    return bytes(((xxh32_short(descriptor) >> 8) & 0xFF,))


def xxh32_short(data: bytes) -> int:
    """XXH32 with seed 0 of fewer than 16 bytes, which is all that a descriptor has."""
    value = (PRIME_5 + len(data)) & MASK_32
    position = 0
    while position + 4 <= len(data):
        word = int.from_bytes(data[position : position + 4], "little")
        value = (value + word * PRIME_3) & MASK_32
        value = (_rotate_left(value, 17) * PRIME_4) & MASK_32
        position += 4
    for byte in data[position:]:
        value = (value + byte * PRIME_5) & MASK_32
        value = (_rotate_left(value, 11) * PRIME_1) & MASK_32
    value = ((value ^ (value >> 15)) * PRIME_2) & MASK_32
    value = ((value ^ (value >> 13)) * PRIME_3) & MASK_32
    return value ^ (value >> 16)


def _rotate_left(value: int, bits: int) -> int:
    return ((value << bits) | (value >> (32 - bits))) & MASK_32
