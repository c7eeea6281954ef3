"""Message sets of magic 0 and 1: read, wrapped, converted up when produced, down when fetched."""

import contextlib
import struct
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.formats.batches.admission import AdmittedBatch, ProduceRules, Rejection, WorkBudget
from barnabas.formats.batches.builder import BatchBuilder, build_batch
from barnabas.formats.batches.compression import CompressionCodec, compress
from barnabas.formats.batches.control import EndMarker, build_end_marker
from barnabas.formats.batches.conversion import (
    ConversionBudget,
    admit_message_set,
    down_converted,
)
from barnabas.formats.batches.header import LOG_APPEND_TIME
from barnabas.formats.batches.old_magic import (
    OldMessage,
    build_message_set,
    messages_in,
    read_message_set,
)
from barnabas.formats.batches.reader import Record, read_batch
from barnabas.model.error_codes import ErrorCode
from barnabas.model.errors import CorruptBatch
from tests.unit.formats.batches.batch_samples import NOW_MS, records, renumbered, some_records

OLD_CODECS = [c for c in CompressionCodec if c is not CompressionCodec.ZSTD]
PLAIN = [record._replace(headers=()) for record in some_records(4)]
RULES = ProduceRules(max_message_bytes=1_048_588, segment_bytes=1 << 30)


def timeless(given_records: list[Record]) -> list[Record]:
    return [record._replace(timestamp=-1) for record in given_records]


@given(
    records(with_headers=False),
    st.sampled_from(OLD_CODECS),
    st.sampled_from([0, 1]),
    st.integers(0, 2**60),
)
def test_what_is_built_is_read(
    given_records: list[Record], codec: CompressionCodec, magic: int, base_offset: int
) -> None:
    numbered = renumbered(given_records, base_offset)
    data = b"ab" + build_message_set(numbered, magic=magic, codec=codec)
    read = read_message_set(data, 2, len(data))
    assert read == (timeless(numbered) if magic == 0 else numbered)


def test_the_bytes_of_a_message_of_magic_1() -> None:
    data = build_message_set([Record(5, 7, b"k", None)], magic=1)
    covered = b"\x01\x00" + struct.pack(">qi", 7, 1) + b"k" + struct.pack(">i", -1)
    assert data == struct.pack(">qiI", 5, 4 + len(covered), zlib.crc32(covered)) + covered


def test_offsets_inside_a_wrapper_of_magic_1_count_from_its_first() -> None:
    data = build_message_set(renumbered(PLAIN, 100), magic=1, codec=CompressionCodec.GZIP)
    (wrapper,) = messages_in(data, 0, len(data))
    assert wrapper.offset == 103
    assert wrapper.timestamp == max(record.timestamp for record in PLAIN)
    inner = zlib.decompress(wrapper.value or b"", 31)
    assert [message.offset for message in messages_in(inner, 0, len(inner))] == [0, 1, 2, 3]


def test_a_wrapper_with_offset_0_leaves_the_offsets_inside() -> None:
    data = build_message_set(renumbered(PLAIN, 0), magic=1, codec=CompressionCodec.GZIP)
    zeroed = bytes(8) + data[8:]
    assert [r.offset for r in read_message_set(zeroed, 0, len(zeroed))] == [0, 1, 2, 3]
    low = struct.pack(">q", 2) + data[8:]
    with pytest.raises(CorruptBatch, match="below"):
        read_message_set(low, 0, len(low))


def test_log_append_time_of_a_wrapper_is_that_of_all_inside() -> None:
    data = build_message_set(
        renumbered(PLAIN, 0), magic=1, codec=CompressionCodec.SNAPPY, log_append_time_ms=NOW_MS + 9
    )
    assert {record.timestamp for record in read_message_set(data, 0, len(data))} == {NOW_MS + 9}


def test_a_message_that_is_cut_at_the_end_is_left_out() -> None:
    data = build_message_set(renumbered(PLAIN, 0), magic=1)
    for cut in (1, 5, 20):
        assert len(read_message_set(data, 0, len(data) - cut)) == 3
    assert read_message_set(data, 0, 11) == []


def _wrapped(inner: bytes, *, codec: int = 1, value: bytes | None = b"", magic: int = 1) -> bytes:
    """A wrapper around any bytes, with a checksum that fits."""
    packed = compress(CompressionCodec.GZIP, inner) if value == b"" else value
    covered = bytes((magic, codec)) + struct.pack(">q", NOW_MS) * magic + struct.pack(">i", -1)
    covered += struct.pack(">i", -1 if packed is None else len(packed)) + (packed or b"")
    return struct.pack(">qiI", 3, 4 + len(covered), zlib.crc32(covered)) + covered


@pytest.mark.parametrize(
    "wrapper",
    [
        _wrapped(b""),
        _wrapped(b"", value=None),
        _wrapped(b"", codec=4),
        _wrapped(b"", value=b"no gzip"),
        _wrapped(_wrapped(build_message_set(PLAIN[:1], magic=1))),
        _wrapped(build_batch(PLAIN)),
        _wrapped(build_message_set(PLAIN[:1], magic=1)[:-3] + b"bad"),
    ],
)
def test_broken_wrappers_are_refused(wrapper: bytes) -> None:
    with pytest.raises(CorruptBatch):
        read_message_set(wrapper, 0, len(wrapper))
    result = admit_message_set(wrapper, 0, len(wrapper), RULES, NOW_MS, WorkBudget())
    assert isinstance(result, Rejection)
    assert result.error_code in (ErrorCode.INVALID_RECORD, ErrorCode.CORRUPT_MESSAGE)


@pytest.mark.parametrize("magic", [0, 1])
def test_any_changed_byte_of_a_set(magic: int) -> None:
    for codec in OLD_CODECS:
        data = build_message_set(renumbered(PLAIN[:2], 0), magic=magic, codec=codec)
        for position in range(len(data)):
            for mask in (0x01, 0x80, 0xFF):
                broken = bytearray(data)
                broken[position] ^= mask
                with contextlib.suppress(CorruptBatch):
                    read_message_set(bytes(broken), 0, len(broken))
                result = admit_message_set(
                    bytes(broken), 0, len(broken), RULES, NOW_MS, WorkBudget()
                )
                assert result is None or isinstance(result, AdmittedBatch | Rejection)


@given(
    records(with_headers=False),
    st.sampled_from(OLD_CODECS),
    st.sampled_from([0, 1]),
    st.sampled_from([-1, 0, 4]),
)
def test_a_produced_set_becomes_one_batch(
    given_records: list[Record], codec: CompressionCodec, magic: int, topic_codec: int
) -> None:
    data = b"x" + build_message_set(renumbered(given_records, 0), magic=magic, codec=codec)
    topic = ProduceRules(max_message_bytes=1 << 20, segment_bytes=1 << 30, codec=topic_codec)
    result = admit_message_set(data, 1, len(data), topic, NOW_MS, WorkBudget())
    assert isinstance(result, AdmittedBatch)
    expected = renumbered(given_records, 0)
    assert read_batch(result.data, result.start, len(result.data)) == (
        timeless(expected) if magic == 0 else expected
    )
    assert result.header.compression_codec == (codec if topic_codec == -1 else topic_codec)


def test_a_produced_set_gets_the_brokers_time() -> None:
    data = build_message_set(renumbered(PLAIN, 0), magic=0)
    topic = ProduceRules(max_message_bytes=1 << 20, segment_bytes=1 << 30, is_log_append_time=True)
    result = admit_message_set(data, 0, len(data), topic, NOW_MS + 5, WorkBudget())
    assert isinstance(result, AdmittedBatch)
    assert result.header.timestamp_type == LOG_APPEND_TIME
    assert result.header.max_timestamp == NOW_MS + 5


def _answer(data: bytes, **changes: object) -> ErrorCode | None:
    chosen: dict[str, object] = {"max_message_bytes": 1 << 20, "segment_bytes": 1 << 30}
    topic = ProduceRules(**(chosen | changes))  # type: ignore[arg-type]
    result = admit_message_set(data, 0, len(data), topic, NOW_MS, WorkBudget())
    if result is None:
        return None
    return result.error_code if isinstance(result, Rejection) else ErrorCode.NONE


def test_what_a_produced_set_is_answered() -> None:
    numbered = renumbered(PLAIN, 0)
    plain = build_message_set(numbered, magic=1)
    packed = build_message_set(numbered, magic=1, codec=CompressionCodec.GZIP)
    assert _answer(b"") is None
    assert _answer(plain[:20]) is None
    assert _answer(plain) is ErrorCode.NONE
    assert _answer(plain + plain[:9]) is ErrorCode.NONE
    assert _answer(plain[:-1] + b"!") is ErrorCode.CORRUPT_MESSAGE
    assert _answer(plain[:8] + bytes(4) + plain[12:]) is ErrorCode.CORRUPT_MESSAGE
    assert _answer(packed + packed) is ErrorCode.INVALID_RECORD
    assert _answer(plain + build_message_set(numbered, magic=0)) is ErrorCode.INVALID_RECORD
    assert _answer(plain + build_batch(PLAIN)) is ErrorCode.INVALID_RECORD
    assert _answer(plain, max_message_bytes=30) is ErrorCode.MESSAGE_TOO_LARGE
    assert _answer(plain, segment_bytes=100) is ErrorCode.RECORD_LIST_TOO_LARGE
    assert _answer(_wrapped(plain, codec=6)) is ErrorCode.UNKNOWN_SERVER_ERROR
    late = build_message_set([Record(0, NOW_MS + 11, None, b"v")], magic=1)
    assert _answer(late, timestamp_after_max_ms=10) is ErrorCode.INVALID_TIMESTAMP
    assert _answer(late, needs_keys=True) is ErrorCode.INVALID_RECORD
    appended = build_message_set(numbered, magic=1, log_append_time_ms=NOW_MS)
    assert _answer(appended, is_log_append_time=True) is ErrorCode.INVALID_TIMESTAMP
    mixed = _wrapped(build_message_set(PLAIN[:1], magic=0))
    assert _answer(mixed) is ErrorCode.INVALID_RECORD


@pytest.mark.parametrize("magic", [0, 1])
@pytest.mark.parametrize("codec", OLD_CODECS)
def test_batches_are_sent_to_old_consumers_as_sets(codec: CompressionCodec, magic: int) -> None:
    data = b"".join(
        (
            build_batch(some_records(3), codec=codec, base_offset=10),
            build_end_marker(
                EndMarker(True, 0), producer_id=1, producer_epoch=0, timestamp=1, base_offset=13
            ),
            build_batch(some_records(2), codec=codec, base_offset=14),
            build_batch(some_records(2), base_offset=16)[:-1],
        )
    )
    converted = down_converted(
        data, 0, len(data), to_magic=magic, first_offset=11, budget=ConversionBudget()
    )
    assert isinstance(converted, bytes)
    expected = renumbered(PLAIN[:3], 10) + renumbered(PLAIN[:2], 14)
    if codec is CompressionCodec.NONE:
        expected = expected[1:]
    if magic == 0:
        expected = timeless(expected)
    assert read_message_set(converted, 0, len(converted)) == expected


def test_log_append_time_and_holes_survive_on_the_way_down() -> None:
    builder = BatchBuilder(base_offset=50, log_append_time_ms=NOW_MS, codec=CompressionCodec.LZ4)
    builder.append(b"a", b"1", 1, offset=52)
    builder.append(b"b", None, 2, offset=57)
    batch = builder.build(last_offset=60)
    converted = down_converted(
        batch, 0, len(batch), to_magic=1, first_offset=0, budget=ConversionBudget()
    )
    assert isinstance(converted, bytes)
    assert read_message_set(converted, 0, len(converted)) == [
        Record(52, NOW_MS, b"a", b"1"),
        Record(57, NOW_MS, b"b", None),
    ]
    (wrapper,) = messages_in(converted, 0, len(converted))
    assert isinstance(wrapper, OldMessage)
    assert wrapper.timestamp_type == LOG_APPEND_TIME


def test_zstd_cannot_be_sent_to_old_consumers() -> None:
    batch = build_batch(PLAIN, codec=CompressionCodec.ZSTD)
    answer = down_converted(
        batch, 0, len(batch), to_magic=1, first_offset=0, budget=ConversionBudget()
    )
    assert answer is ErrorCode.UNSUPPORTED_COMPRESSION_TYPE
