"""What producers are answered: every refusal, and what is changed in a batch that is taken."""

import struct
from collections.abc import Callable

import pytest
from crc32c import crc32c
from hypothesis import given
from hypothesis import strategies as st

from barnabas.formats.batches.admission import (
    AdmittedBatch,
    ProduceRules,
    Rejection,
    WorkBudget,
    admit,
    check_batch,
    read_produced,
)
from barnabas.formats.batches.bounded_output import DecompressionLimits
from barnabas.formats.batches.builder import BatchBuilder, build_batch
from barnabas.formats.batches.compression import CompressionCodec
from barnabas.formats.batches.control import EndMarker, build_end_marker
from barnabas.formats.batches.header import (
    CREATE_TIME,
    LOG_APPEND_TIME,
    BatchHeader,
    has_valid_crc,
)
from barnabas.formats.batches.old_magic import build_message_set
from barnabas.formats.batches.reader import Record, read_batch, read_records
from barnabas.model.error_codes import ErrorCode
from tests.unit.formats.batches.batch_samples import (
    NOW_MS,
    codecs,
    records,
    renumbered,
    some_records,
)

VERSION = 9
RECORDS = some_records(4)


def rules(**changes: object) -> ProduceRules:
    chosen: dict[str, object] = {"max_message_bytes": 1_048_588, "segment_bytes": 1 << 30}
    return ProduceRules(**(chosen | changes))  # type: ignore[arg-type]


def produce(
    data: bytes, version: int = VERSION, topic: ProduceRules | None = None, wall_ms: int = NOW_MS
) -> AdmittedBatch | Rejection | None:
    """All three steps, for data that stands in the middle of a request."""
    topic = topic or rules()
    frame = b"before" + data + b"after"
    header = read_produced(frame, 6, 6 + len(data), version)
    if header is None or isinstance(header, Rejection):
        return header
    return check_batch(frame, header, 6, topic) or admit(
        frame, header, 6, topic, wall_ms, WorkBudget()
    )


def answer(data: bytes, version: int = VERSION, topic: ProduceRules | None = None) -> ErrorCode:
    result = produce(data, version, topic)
    assert result is not None
    return result.error_code if isinstance(result, Rejection) else ErrorCode.NONE


def taken(data: bytes, topic: ProduceRules | None = None, wall_ms: int = NOW_MS) -> AdmittedBatch:
    result = produce(data, topic=topic, wall_ms=wall_ms)
    assert isinstance(result, AdmittedBatch), result
    assert has_valid_crc(result.data, result.header, result.start)
    return result


def changed(batch: bytes, position: int, layout: str, value: int) -> bytes:
    """The batch with another value in a field, and a checksum that fits."""
    copy = bytearray(batch)
    struct.pack_into(">" + layout, copy, position, value)
    struct.pack_into(">I", copy, 17, crc32c(copy[21:]))
    return bytes(copy)


BATCH = build_batch(RECORDS)


@given(records(), codecs, st.integers(0, 2**31 - 1))
def test_a_good_batch_is_taken_as_it_is(
    given_records: list[Record], codec: CompressionCodec, sequence: int
) -> None:
    batch = build_batch(given_records, codec=codec, producer_id=7, base_sequence=sequence)
    result = taken(batch)
    assert result.start == 6
    assert result.data[6 : 6 + result.header.size_bytes] == batch


REFUSALS: dict[str, tuple[Callable[[], bytes], ErrorCode]] = {
    "nothing": (lambda: b"", ErrorCode.INVALID_RECORD),
    "a few bytes": (lambda: bytes(11), ErrorCode.INVALID_RECORD),
    "a cut batch": (lambda: BATCH[:-1], ErrorCode.INVALID_RECORD),
    "a cut header": (lambda: BATCH[:16], ErrorCode.INVALID_RECORD),
    "length 13": (lambda: BATCH[:8] + b"\0\0\0\x0d" + BATCH[12:], ErrorCode.CORRUPT_MESSAGE),
    "negative length": (lambda: BATCH[:8] + b"\xff" * 4 + BATCH[12:], ErrorCode.CORRUPT_MESSAGE),
    "length 14": (lambda: BATCH[:8] + b"\0\0\0\x0e" + BATCH[12:], ErrorCode.CORRUPT_MESSAGE),
    "magic 3": (lambda: BATCH[:16] + b"\x03" + BATCH[17:], ErrorCode.CORRUPT_MESSAGE),
    "magic -1": (lambda: BATCH[:16] + b"\xff" + BATCH[17:], ErrorCode.CORRUPT_MESSAGE),
    "magic 1": (
        lambda: build_message_set(renumbered(RECORDS, 0), magic=1),
        ErrorCode.INVALID_RECORD,
    ),
    "two batches": (lambda: BATCH + BATCH, ErrorCode.INVALID_RECORD),
    "an impossible second": (lambda: BATCH + bytes(30), ErrorCode.CORRUPT_MESSAGE),
    "base offset": (lambda: changed(BATCH, 0, "q", 1), ErrorCode.INVALID_RECORD),
    "crc": (lambda: BATCH[:-1] + b"!", ErrorCode.CORRUPT_MESSAGE),
    "codec 5": (lambda: changed(BATCH, 21, "h", 5), ErrorCode.UNKNOWN_SERVER_ERROR),
    "no records": (lambda: changed(BATCH, 57, "i", 0), ErrorCode.INVALID_RECORD),
    "negative count": (lambda: changed(BATCH, 57, "i", -1), ErrorCode.INVALID_RECORD),
    "count too small": (lambda: changed(BATCH, 57, "i", 3), ErrorCode.INVALID_RECORD),
    "last offset delta": (lambda: changed(BATCH, 23, "i", 4), ErrorCode.INVALID_RECORD),
    "negative delta": (lambda: changed(BATCH, 23, "i", -1), ErrorCode.INVALID_RECORD),
    "both too large": (
        lambda: changed(changed(BATCH, 57, "i", 5), 23, "i", 4),
        ErrorCode.INVALID_RECORD,
    ),
    "both too small": (
        lambda: changed(changed(BATCH, 57, "i", 3), 23, "i", 2),
        ErrorCode.INVALID_RECORD,
    ),
    "control": (
        lambda: build_end_marker(
            EndMarker(True, 0), producer_id=1, producer_epoch=0, timestamp=NOW_MS
        ),
        ErrorCode.INVALID_RECORD,
    ),
    "no sequence": (
        lambda: build_batch(RECORDS, producer_id=9, producer_epoch=0),
        ErrorCode.INVALID_RECORD,
    ),
    "gzip that is none": (lambda: changed(BATCH, 21, "h", 1), ErrorCode.INVALID_RECORD),
    "log append time without a time": (
        lambda: build_batch(RECORDS, log_append_time_ms=-1),
        ErrorCode.INVALID_TIMESTAMP,
    ),
}


@pytest.mark.parametrize("name", REFUSALS)
def test_what_is_refused(name: str) -> None:
    make, code = REFUSALS[name]
    assert answer(make()) is code


def test_bytes_after_the_batch_that_are_no_batch_are_left() -> None:
    result = taken(BATCH + BATCH[:-3])
    assert result.data[result.start : result.start + result.header.size_bytes] == BATCH
    assert answer(BATCH + bytes(11)) is ErrorCode.NONE


@pytest.mark.parametrize("version", [3, 6, 7, 11])
def test_zstd_needs_produce_7(version: int) -> None:
    batch = build_batch(RECORDS, codec=CompressionCodec.ZSTD)
    expected = ErrorCode.NONE if version >= 7 else ErrorCode.UNSUPPORTED_COMPRESSION_TYPE
    assert answer(batch, version) is expected


@pytest.mark.parametrize("version", [0, 1, 2])
def test_early_versions_carry_message_sets_but_are_not_held_to_it(version: int) -> None:
    old = build_message_set(renumbered(RECORDS, 0), magic=1)
    assert produce(old, version) is None
    assert produce(b"", version) is None
    assert answer(BATCH, version) is ErrorCode.NONE
    assert answer(build_batch(RECORDS, codec=CompressionCodec.ZSTD), version) is ErrorCode.NONE
    assert answer(BATCH + BATCH, version) is ErrorCode.INVALID_RECORD


def test_sizes_are_limited_by_message_and_by_segment() -> None:
    size = len(BATCH)
    assert answer(BATCH, topic=rules(max_message_bytes=size)) is ErrorCode.NONE
    assert answer(BATCH, topic=rules(max_message_bytes=size - 1)) is ErrorCode.MESSAGE_TOO_LARGE
    assert answer(BATCH, topic=rules(segment_bytes=size - 1)) is ErrorCode.RECORD_LIST_TOO_LARGE
    grown = rules(max_message_bytes=500, codec=0)
    packed = build_batch([Record(0, NOW_MS, b"k", bytes(1000))], codec=CompressionCodec.ZSTD)
    assert answer(packed, topic=grown) is ErrorCode.MESSAGE_TOO_LARGE


def test_the_order_of_refusals_is_kafkas() -> None:
    """Of two wrong things the one that Kafka looks at first decides the answer."""
    large = rules(max_message_bytes=10)
    assert answer(changed(BATCH, 0, "q", 1)[:-1] + b"!", topic=large) is ErrorCode.INVALID_RECORD
    assert answer(BATCH[:-1] + b"!", topic=large) is ErrorCode.MESSAGE_TOO_LARGE
    broken_codec = changed(BATCH, 21, "h", 5)
    assert answer(broken_codec[:-1] + b"!") is ErrorCode.CORRUPT_MESSAGE
    assert answer(changed(broken_codec, 57, "i", 0)) is ErrorCode.UNKNOWN_SERVER_ERROR


def test_a_compacted_topic_names_the_records_without_a_key() -> None:
    mixed = [record._replace(key=None if n in (1, 3) else b"k") for n, record in enumerate(RECORDS)]
    for codec in (CompressionCodec.NONE, CompressionCodec.LZ4):
        result = produce(build_batch(mixed, codec=codec), topic=rules(needs_keys=True))
        assert isinstance(result, Rejection)
        assert result.error_code is ErrorCode.INVALID_RECORD
        assert [index for index, _ in result.record_errors] == [1, 3]
        assert answer(build_batch(mixed, codec=codec)) is ErrorCode.NONE
    empty_key = [record._replace(key=b"") for record in RECORDS]
    assert answer(build_batch(empty_key), topic=rules(needs_keys=True)) is ErrorCode.NONE


def test_timestamps_are_held_to_both_bounds() -> None:
    bounded = rules(timestamp_before_max_ms=1000, timestamp_after_max_ms=2000)

    def at(*offsets_ms: int) -> AdmittedBatch | Rejection | None:
        batch = build_batch([Record(0, NOW_MS + offset, b"k", b"v") for offset in offsets_ms])
        return produce(batch, topic=bounded, wall_ms=NOW_MS)

    assert isinstance(at(-1000, 0, 2000), AdmittedBatch)
    early, late = at(0, -1001), at(2001, 0)
    assert isinstance(early, Rejection)
    assert isinstance(late, Rejection)
    assert early.error_code is late.error_code is ErrorCode.INVALID_TIMESTAMP
    assert [index for index, _ in early.record_errors] == [1]
    assert [index for index, _ in late.record_errors] == [0]
    timeless = build_batch([Record(0, -1, b"k", b"v")])
    assert answer(timeless, topic=bounded) is ErrorCode.NONE
    bounded = rules(timestamp_before_max_ms=1000, is_log_append_time=True)
    assert isinstance(at(-5000, 5000), AdmittedBatch)


def test_of_a_keyless_and_late_record_the_key_is_named_first() -> None:
    both = rules(needs_keys=True, timestamp_after_max_ms=10)
    batch = build_batch([Record(0, NOW_MS + 99, None, b"v"), Record(0, NOW_MS + 99, b"k", b"v")])
    result = produce(batch, topic=both)
    assert isinstance(result, Rejection)
    assert result.error_code is ErrorCode.INVALID_TIMESTAMP
    assert [index for index, _ in result.record_errors] == [0, 1]
    assert "key" in result.record_errors[0][1]
    assert answer(build_batch([Record(0, NOW_MS + 99, None, b"v")]), topic=both) is (
        ErrorCode.INVALID_RECORD
    )


@pytest.mark.parametrize("codec", [CompressionCodec.NONE, CompressionCodec.SNAPPY])
def test_the_brokers_time_is_written_where_the_topic_wants_it(codec: CompressionCodec) -> None:
    batch = build_batch(RECORDS, codec=codec, is_transactional=True, producer_id=4, base_sequence=0)
    result = taken(batch, topic=rules(is_log_append_time=True), wall_ms=NOW_MS + 77)
    assert result.header.timestamp_type == LOG_APPEND_TIME
    assert result.header.max_timestamp == NOW_MS + 77
    assert result.header.is_transactional
    assert result.header.compression_codec == codec
    times = {r.timestamp for r in read_records(result.data, result.header, result.start)}
    assert times == {NOW_MS + 77}


def test_a_producer_may_not_set_log_append_time_where_the_broker_does() -> None:
    batch = build_batch(RECORDS, log_append_time_ms=NOW_MS)
    result = produce(batch, topic=rules(is_log_append_time=True))
    assert isinstance(result, Rejection)
    assert result.error_code is ErrorCode.INVALID_TIMESTAMP
    assert len(result.record_errors) == len(RECORDS)


def test_log_append_time_of_a_producer_becomes_create_time() -> None:
    result = taken(build_batch(RECORDS, log_append_time_ms=NOW_MS + 3))
    assert result.header.timestamp_type == CREATE_TIME
    assert result.header.max_timestamp == NOW_MS + 3


@pytest.mark.parametrize("claimed", [NOW_MS + 10_000_000, -1, 0])
def test_a_wrong_latest_timestamp_is_put_right(claimed: int) -> None:
    result = taken(changed(BATCH, 35, "q", claimed))
    assert result.data[result.start :][: len(BATCH)] == BATCH


@pytest.mark.parametrize("source", list(CompressionCodec))
@pytest.mark.parametrize("target", list(CompressionCodec))
def test_the_topics_codec_is_used(source: CompressionCodec, target: CompressionCodec) -> None:
    batch = build_batch(
        RECORDS, codec=source, producer_id=4, producer_epoch=1, base_sequence=8, leader_epoch=-1
    )
    result = taken(batch, topic=rules(codec=int(target)))
    assert result.header.compression_codec == target
    whole = result.data[result.start : result.start + result.header.size_bytes]
    assert read_batch(whole, 0, len(whole)) == renumbered(RECORDS, 0, 8)
    if source is target:
        assert whole == batch


@pytest.mark.parametrize("codec", [CompressionCodec.NONE, CompressionCodec.GZIP])
def test_offset_deltas_out_of_order_are_put_right(codec: CompressionCodec) -> None:
    builder = BatchBuilder(codec=codec)
    for number, record in enumerate(RECORDS):
        builder.append(
            record.key, record.value, record.timestamp, record.headers, offset=number * 2 + 1
        )
    gaps = changed(builder.build(), 23, "i", len(RECORDS) - 1)
    result = taken(gaps)
    whole = result.data[result.start : result.start + result.header.size_bytes]
    assert read_batch(whole, 0, len(whole)) == renumbered(RECORDS, 0)
    if codec is CompressionCodec.NONE:
        assert whole == BATCH


def test_times_before_1970_are_kept_but_not_built_anew() -> None:
    early = changed(changed(BATCH, 27, "q", -(2**63)), 35, "q", -1)
    result = taken(early)
    assert result.data[result.start :][: len(early)] == early
    assert answer(early, topic=rules(codec=3)) is ErrorCode.INVALID_TIMESTAMP
    too_late = changed(BATCH, 27, "q", 2**63 - 2)
    assert answer(too_late) is ErrorCode.INVALID_RECORD


def test_a_bomb_is_an_invalid_record() -> None:
    bomb = build_batch([Record(0, NOW_MS, b"k", bytes(200_000))], codec=CompressionCodec.ZSTD)
    limits = DecompressionLimits(output_bytes_max=100_000)
    assert answer(bomb, topic=rules(limits=limits)) is ErrorCode.INVALID_RECORD


@given(records(max_size=3), codecs, st.data())
def test_any_changed_byte_is_judged(
    given_records: list[Record], codec: CompressionCodec, data: st.DataObject
) -> None:
    """With the checksum made to fit: an answer or a batch that can be read, nothing else."""
    batch = bytearray(build_batch(given_records, codec=codec))
    batch[data.draw(st.integers(0, len(batch) - 1))] ^= data.draw(st.integers(1, 255))
    if data.draw(st.booleans()) and len(batch) > 21:
        batch[17:21] = crc32c(batch[21:]).to_bytes(4, "big")
    result = produce(bytes(batch), data.draw(st.integers(0, 11)))
    if isinstance(result, AdmittedBatch):
        read = read_records(result.data, result.header, result.start)
        assert len(read) == result.header.record_count
        assert [record.offset for record in read] == list(range(len(read)))
        assert result.header.max_timestamp == max(-1, *(record.timestamp for record in read))


def test_headers_of_batches_can_be_changed_by_tests() -> None:
    """`changed` itself: the checksum follows."""
    batch = changed(BATCH, 43, "q", 55)
    assert has_valid_crc(batch, BatchHeader(batch, 0), 0)
