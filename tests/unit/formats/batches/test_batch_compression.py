"""The five codecs: framing, what other libraries make of it, broken streams, bombs."""

import contextlib
import gzip
import os
import struct
import tracemalloc
import zlib

import cramjam
import lz4.frame
import pytest
import snappy
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from barnabas.formats.batches.bounded_output import DecompressionLimits
from barnabas.formats.batches.compression import (
    CompressionCodec,
    codec_of,
    compress,
    decompress,
)
from barnabas.formats.batches.lz4_frame import xxh32_short
from barnabas.formats.batches.snappy_stream import STREAM_HEADER
from barnabas.model.errors import CorruptBatch
from tests.unit.formats.batches.batch_samples import codecs

REAL_CODECS = [codec for codec in CompressionCodec if codec is not CompressionCodec.NONE]
RANDOM = os.urandom(200_000)
MIXED = RANDOM + b"abcdefgh" * 50_000 + bytes(300_000)
SMALL = DecompressionLimits(output_bytes_max=100_000, ratio_max=10, free_bytes=50_000)


@given(st.binary(max_size=3000), codecs)
def test_what_is_compressed_comes_back(data: bytes, codec: CompressionCodec) -> None:
    assert decompress(codec, compress(codec, data)) == data


@pytest.mark.parametrize("codec", REAL_CODECS)
@pytest.mark.parametrize(
    "data", [b"x", RANDOM, MIXED, b"x" * 65536, b"x" * 65537, bytes(1_000_000)]
)
def test_many_blocks_come_back(codec: CompressionCodec, data: bytes) -> None:
    packed = compress(codec, data)
    assert decompress(codec, packed) == data
    assert decompress(codec, memoryview(b"..." + packed)[3:]) == data


@pytest.mark.parametrize("level", [1, 9])
@pytest.mark.parametrize("codec", [c for c in REAL_CODECS if c is not CompressionCodec.SNAPPY])
def test_levels_are_used(codec: CompressionCodec, level: int) -> None:
    text = b"".join(b"the %d-th line of %d\n" % (n * 7919 % 1000, n) for n in range(20_000))
    packed = compress(codec, text, level=level)
    assert decompress(codec, packed) == text
    other = compress(codec, text, level=5)
    assert len(packed) != len(other)


def test_other_libraries_read_what_is_written() -> None:
    assert gzip.decompress(compress(CompressionCodec.GZIP, MIXED)) == MIXED
    assert lz4.frame.decompress(compress(CompressionCodec.LZ4, MIXED)) == MIXED
    assert zstandard.decompress(compress(CompressionCodec.ZSTD, MIXED)) == MIXED


def test_xerial_snappy_is_a_header_and_blocks() -> None:
    packed = compress(CompressionCodec.SNAPPY, MIXED)
    assert packed[:16] == b"\x82SNAPPY\0\0\0\0\x01\0\0\0\x01"
    position = 16
    blocks = []
    while position < len(packed):
        (length,) = struct.unpack_from(">i", packed, position)
        blocks.append(snappy.uncompress(packed[position + 4 : position + 4 + length]))
        position += 4 + length
    assert b"".join(blocks) == MIXED
    assert {len(block) for block in blocks[:-1]} == {32 * 1024}


def test_snappy_without_a_stream_is_one_block() -> None:
    assert decompress(CompressionCodec.SNAPPY, snappy.compress(MIXED)) == MIXED


def test_snappy_streams_follow_each_other() -> None:
    one, two = (compress(CompressionCodec.SNAPPY, part) for part in (b"one" * 50, b"two" * 50))
    assert decompress(CompressionCodec.SNAPPY, one + two) == b"one" * 50 + b"two" * 50


@pytest.mark.parametrize(
    "broken",
    [
        b"",
        STREAM_HEADER[:9],
        STREAM_HEADER[:12] + bytes(4),
        STREAM_HEADER + b"\0\0",
        STREAM_HEADER + b"\0\0\0\x05ab",
        STREAM_HEADER + b"\xff\xff\xff\xff\x01\0a",
        STREAM_HEADER + b"\0\0\0\0",
        STREAM_HEADER + STREAM_HEADER[:10],
        b"\xff\xff\xff\xff\xff\xff",
    ],
)
def test_broken_snappy_is_refused(broken: bytes) -> None:
    with pytest.raises(CorruptBatch):
        decompress(CompressionCodec.SNAPPY, broken)


def _lz4_frame(**options: object) -> bytes:
    return lz4.frame.compress(MIXED, block_linked=False, **options)


@pytest.mark.parametrize("block_size", [4, 5, 6, 7])
@pytest.mark.parametrize("options", [{}, {"content_checksum": True}, {"block_checksum": True}])
def test_lz4_frames_of_other_libraries(block_size: int, options: dict[str, object]) -> None:
    frame = _lz4_frame(block_size=block_size, store_size=True, **options)
    assert decompress(CompressionCodec.LZ4, frame) == MIXED
    assert decompress(CompressionCodec.LZ4, frame + b"what follows is left") == MIXED


def test_lz4_frames_as_old_clients_wrote_them() -> None:
    old = compress(CompressionCodec.LZ4, MIXED, magic=0)
    assert old[6] != compress(CompressionCodec.LZ4, MIXED)[6]
    assert decompress(CompressionCodec.LZ4, old, magic=0) == MIXED
    with pytest.raises(CorruptBatch, match="descriptor"):
        decompress(CompressionCodec.LZ4, old, magic=1)


def test_lz4_blocks_that_depend_on_each_other_are_refused_as_kafka_does() -> None:
    with pytest.raises(CorruptBatch, match="depend"):
        decompress(CompressionCodec.LZ4, lz4.frame.compress(MIXED, block_linked=True))


def test_lz4_block_checksums_are_verified() -> None:
    frame = bytearray(_lz4_frame(block_checksum=True, store_size=False))
    (length,) = struct.unpack_from("<I", frame, 7)
    frame[11 + (length & 0x7FFFFFFF)] ^= 1
    with pytest.raises(CorruptBatch):
        decompress(CompressionCodec.LZ4, bytes(frame))


@pytest.mark.parametrize("position", range(7))
def test_every_byte_of_the_lz4_descriptor_counts(position: int) -> None:
    frame = bytearray(compress(CompressionCodec.LZ4, b"some content"))
    frame[position] ^= 0x01
    with pytest.raises(CorruptBatch):
        decompress(CompressionCodec.LZ4, bytes(frame))


def test_an_lz4_block_larger_than_its_frame_allows_is_refused() -> None:
    frame = compress(CompressionCodec.LZ4, b"")[:-4]
    with pytest.raises(CorruptBatch, match="at most"):
        decompress(CompressionCodec.LZ4, frame + struct.pack("<I", 65537) + bytes(65541))


@given(st.binary(max_size=15))
def test_short_xxh32(data: bytes) -> None:
    assert xxh32_short(data) == _xxh32_by_zstandard(data)


def _xxh32_by_zstandard(data: bytes) -> int:
    """XXH32 through a library: a frame's content checksum is the XXH32 of its content."""
    frame = lz4.frame.compress(data, content_checksum=True)
    return int.from_bytes(frame[-4:], "little")


def test_zstd_frames_with_and_without_their_size() -> None:
    compressor = zstandard.ZstdCompressor(write_content_size=False, write_checksum=True)
    sizeless = compressor.compress(MIXED)
    sized = zstandard.ZstdCompressor(write_content_size=True).compress(MIXED)
    skippable = struct.pack("<II", 0x184D2A53, 5) + b"notes"
    assert decompress(CompressionCodec.ZSTD, sizeless + skippable + sized) == MIXED * 2


def test_a_zstd_stream_of_many_flushed_blocks() -> None:
    compressor = zstandard.ZstdCompressor().compressobj()
    pieces = []
    for number in range(3000):
        pieces.append(compressor.compress(b"record %d" % number))
        pieces.append(compressor.flush(zstandard.COMPRESSOBJ_FLUSH_BLOCK))
    packed = b"".join([*pieces, compressor.flush()])
    expected = b"".join(b"record %d" % number for number in range(3000))
    assert decompress(CompressionCodec.ZSTD, packed) == expected


@pytest.mark.parametrize("codec", REAL_CODECS)
def test_every_cut_stream_is_refused(codec: CompressionCodec) -> None:
    packed = compress(codec, b"some content that is compressed " * 40)
    whole_blocks = {16} if codec is CompressionCodec.SNAPPY else set()
    for end in range(len(packed)):
        if end in whole_blocks:
            continue
        with pytest.raises(CorruptBatch):
            decompress(codec, packed[:end])


@pytest.mark.parametrize("codec", REAL_CODECS)
def test_any_changed_byte_gives_a_value_or_corrupt_batch(codec: CompressionCodec) -> None:
    packed = compress(codec, b"some content that is compressed " * 8)
    for position in range(len(packed)):
        for mask in (0x01, 0x80, 0xFF):
            changed = bytearray(packed)
            changed[position] ^= mask
            try:
                decompress(codec, bytes(changed), limits=SMALL)
            except CorruptBatch:
                continue


@given(st.binary(max_size=200), codecs)
def test_garbage_gives_a_value_or_corrupt_batch(garbage: bytes, codec: CompressionCodec) -> None:
    with contextlib.suppress(CorruptBatch):
        decompress(codec, garbage, limits=SMALL)


def _bombs() -> dict[str, tuple[CompressionCodec, bytes]]:
    size = 64 * 1024 * 1024
    compressor = zlib.compressobj(9, zlib.DEFLATED, 31)
    gzip_bomb = compressor.compress(bytes(size)) + compressor.flush()
    zstd_blocks = b"".join(
        (b"\x02\0\x10" + b"\0" if n < 511 else b"\x03\0\x10" + b"\0") for n in range(512)
    )
    lz4_block = bytes(cramjam.lz4.compress_block(bytes(4 << 20), store_size=False))
    lz4_bomb = (
        compress(CompressionCodec.LZ4, b"")[:4]
        + b"\x60\x70"
        + bytes(((xxh32_short(b"\x60\x70") >> 8) & 0xFF,))
        + (struct.pack("<I", len(lz4_block)) + lz4_block) * 16
        + bytes(4)
    )
    snappy_block = snappy.compress(bytes(1 << 20))
    snappy_bomb = STREAM_HEADER + (struct.pack(">i", len(snappy_block)) + snappy_block) * 64
    return {
        "gzip": (CompressionCodec.GZIP, gzip_bomb),
        "zstd": (CompressionCodec.ZSTD, zstandard.compress(bytes(size))),
        "zstd of repeated blocks": (
            CompressionCodec.ZSTD,
            bytes.fromhex("28b52ffd0058") + zstd_blocks,
        ),
        "lz4": (CompressionCodec.LZ4, lz4_bomb),
        "snappy": (CompressionCodec.SNAPPY, snappy_bomb),
        "snappy that claims 4 GiB": (CompressionCodec.SNAPPY, b"\xff\xff\xff\xff\x0fabc"),
    }


@pytest.mark.parametrize("name", _bombs())
def test_bombs_are_stopped_before_they_fill_memory(name: str) -> None:
    codec, bomb = _bombs()[name]
    limits = DecompressionLimits(output_bytes_max=6 << 20, ratio_max=1 << 20, free_bytes=0)
    tracemalloc.start()
    try:
        with pytest.raises(CorruptBatch):
            decompress(codec, bomb, limits=limits)
        _, peak_bytes = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak_bytes < 20 << 20


def test_the_ratio_is_bounded_above_what_is_free() -> None:
    packed = compress(CompressionCodec.ZSTD, bytes(60_000))
    limits = DecompressionLimits(output_bytes_max=1 << 30, ratio_max=10, free_bytes=59_999)
    with pytest.raises(CorruptBatch, match="allowed"):
        decompress(CompressionCodec.ZSTD, packed, limits=limits)
    generous = limits._replace(free_bytes=60_000)
    assert len(decompress(CompressionCodec.ZSTD, packed, limits=generous)) == 60_000
    assert limits._replace(output_bytes_max=70_000).allowed_bytes(10_000) == 70_000


def test_gzip_members_follow_each_other_and_what_is_none_is_left() -> None:
    members = gzip.compress(b"one") + gzip.compress(b"two")
    assert decompress(CompressionCodec.GZIP, members + b"tail") == b"onetwo"


def test_numbers_without_a_codec_are_refused() -> None:
    assert [codec_of(number).name for number in range(5)] == [
        "NONE",
        "GZIP",
        "SNAPPY",
        "LZ4",
        "ZSTD",
    ]
    for number in (5, 6, 7, -1):
        with pytest.raises(CorruptBatch):
            codec_of(number)
