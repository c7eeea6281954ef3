"""The five codecs of a batch in Kafka's framing; decompression is bounded."""

import zlib
from enum import IntEnum
from typing import Final, assert_never

from barnabas.formats.batches.bounded_output import (
    DEFAULT_LIMITS,
    BoundedOutput,
    DecompressionLimits,
)
from barnabas.formats.batches.lz4_frame import compress_lz4, decompress_lz4
from barnabas.formats.batches.snappy_stream import compress_snappy, decompress_snappy
from barnabas.formats.batches.zstd_frame import compress_zstd, decompress_zstd
from barnabas.model.errors import CorruptBatch


class CompressionCodec(IntEnum):
    """The number in the low three bits of a batch's attributes."""

    NONE = 0
    GZIP = 1
    SNAPPY = 2
    LZ4 = 3
    ZSTD = 4


CODEC_OF_CONFIG: Final = {
    "uncompressed": CompressionCodec.NONE,
    "gzip": CompressionCodec.GZIP,
    "snappy": CompressionCodec.SNAPPY,
    "lz4": CompressionCodec.LZ4,
    "zstd": CompressionCodec.ZSTD,
}
"""Values of compression.type of a broker or topic, but for `producer`."""

DEFAULT_LEVEL: Final = {
    CompressionCodec.GZIP: -1,
    CompressionCodec.LZ4: 9,
    CompressionCodec.ZSTD: 3,
}
"""compression.gzip.level, compression.lz4.level and compression.zstd.level when not set."""

GZIP_WINDOW_BITS: Final = 16 + zlib.MAX_WBITS
GZIP_MAGIC: Final = b"\x1f\x8b"
GZIP_CHUNK_BYTES: Final = 256 * 1024


def codec_of(number: int) -> CompressionCodec:
    """The codec of that number; `CorruptBatch` for 5, 6 and 7, which no codec has."""
    if not 0 <= number <= CompressionCodec.ZSTD:
        raise CorruptBatch(f"there is no compression codec {number}")
    return CompressionCodec(number)


def compress(
    codec: CompressionCodec, data: bytes, *, level: int | None = None, magic: int = 2
) -> bytes:
    """The records of a batch (or the messages of an old wrapper of `magic`) in the codec."""
    if level is None:
        level = DEFAULT_LEVEL.get(codec, 0)
    match codec:
        case CompressionCodec.NONE:
            return data
        case CompressionCodec.GZIP:
            compressor = zlib.compressobj(level, zlib.DEFLATED, GZIP_WINDOW_BITS)
            return compressor.compress(data) + compressor.flush()
        case CompressionCodec.SNAPPY:
            return compress_snappy(data)
        case CompressionCodec.LZ4:
            is_fast = level == DEFAULT_LEVEL[CompressionCodec.LZ4]
            return compress_lz4(data, level=None if is_fast else level, magic=magic)
        case CompressionCodec.ZSTD:
            return compress_zstd(data, level)
        case _:
            assert_never(codec)


def decompress(
    codec: CompressionCodec,
    data: bytes | memoryview,
    *,
    limits: DecompressionLimits = DEFAULT_LIMITS,
    magic: int = 2,
) -> bytes:
    """What was compressed; `CorruptBatch` when it is broken or more than `limits` allow."""
    output = BoundedOutput(limits.allowed_bytes(len(data)))
    match codec:
        case CompressionCodec.NONE:
            return bytes(data)
        case CompressionCodec.GZIP:
            _decompress_gzip(data, output)
        case CompressionCodec.SNAPPY:
            decompress_snappy(data, output)
        case CompressionCodec.LZ4:
            decompress_lz4(data, output, magic=magic)
        case CompressionCodec.ZSTD:
            decompress_zstd(data, output)
        case _:
            assert_never(codec)
    return output.to_bytes()


def _decompress_gzip(data: bytes | memoryview, output: BoundedOutput) -> None:
    """One gzip member after another, as Java reads them: other bytes after a member are left."""
    rest: bytes | memoryview = data
    while True:
        decompressor = zlib.decompressobj(GZIP_WINDOW_BITS)
        try:
            while not decompressor.eof:
                piece = decompressor.decompress(rest, GZIP_CHUNK_BYTES)
                rest = decompressor.unconsumed_tail
                if not piece and not rest and not decompressor.eof:
                    raise CorruptBatch("gzip: the stream ends before its end")
                output.add(piece)
        except zlib.error as error:
            raise CorruptBatch(f"gzip: {error}") from error
        rest = decompressor.unused_data
        if rest[:2] != GZIP_MAGIC:
            return
