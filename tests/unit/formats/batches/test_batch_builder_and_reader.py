"""Batches that are built are read back: every codec, nulls, headers, holes, control records."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.formats.batches.builder import BatchBuilder, append_varint, build_batch
from barnabas.formats.batches.compression import CompressionCodec
from barnabas.formats.batches.control import (
    ControlType,
    EndMarker,
    build_end_marker,
    control_type_of,
    read_end_marker,
)
from barnabas.formats.batches.header import LOG_APPEND_TIME, read_header
from barnabas.formats.batches.reader import (
    Record,
    RecordHeader,
    batches_in,
    read_batch,
    read_records,
)
from barnabas.formats.batches.record_checks import read_varint, read_varlong
from barnabas.model.errors import CorruptBatch
from barnabas.model.invariant import InvariantViolated
from tests.unit.formats.batches.batch_samples import (
    NOW_MS,
    codecs,
    records,
    renumbered,
    some_records,
)


@given(records(), codecs, st.integers(0, 2**60), st.integers(-1, 2**31 - 1))
def test_what_is_built_is_read(
    given_records: list[Record], codec: CompressionCodec, base_offset: int, sequence: int
) -> None:
    batch = build_batch(
        given_records, codec=codec, base_offset=base_offset, base_sequence=sequence, leader_epoch=4
    )
    header = read_header(batch, 0, len(batch))
    assert header.size_bytes == len(batch)
    assert header.compression_codec == codec
    assert header.partition_leader_epoch == 4
    assert header.record_count == len(given_records) == header.last_offset_delta + 1
    assert header.max_timestamp == max(record.timestamp for record in given_records)
    assert read_batch(batch, 0, len(batch)) == renumbered(given_records, base_offset, sequence)


@given(st.integers(-(2**31), 2**31 - 1), st.binary(max_size=2))
def test_varints_of_32_bits(value: int, before: bytes) -> None:
    target = bytearray(before)
    append_varint(target, value)
    assert read_varint(bytes(target), len(before), len(target)) == (value, len(target))
    with pytest.raises(CorruptBatch):
        read_varint(bytes(target), len(before), len(target) - 1)


@given(st.integers(-(2**63), 2**63 - 1) | st.sampled_from([2**62, -(2**62), 2**63 - 1, -(2**63)]))
def test_varints_of_64_bits(value: int) -> None:
    target = bytearray()
    append_varint(target, value)
    assert len(target) <= 10
    assert read_varlong(bytes(target), 0, len(target)) == (value, len(target))


def test_varints_that_do_not_end_are_refused() -> None:
    with pytest.raises(CorruptBatch, match="five"):
        read_varint(b"\xff" * 12, 0, 12)
    with pytest.raises(CorruptBatch, match="ten"):
        read_varlong(b"\xff" * 12, 0, 12)


def test_header_keys_that_are_not_utf8_survive() -> None:
    record = Record(
        0, NOW_MS, None, b"v", (RecordHeader(b"\xff\xfe".decode("utf-8", "surrogateescape"), b""),)
    )
    batch = build_batch([record])
    assert b"\xff\xfe" in batch
    assert build_batch(read_batch(batch, 0, len(batch))) == batch


def test_log_append_time_stands_for_every_record() -> None:
    batch = build_batch(some_records(3), log_append_time_ms=NOW_MS + 99)
    assert read_header(batch, 0, len(batch)).timestamp_type == LOG_APPEND_TIME
    assert {record.timestamp for record in read_batch(batch, 0, len(batch))} == {NOW_MS + 99}


def test_a_compacted_batch_keeps_offsets_horizon_and_last_offset() -> None:
    builder = BatchBuilder(
        base_offset=1000, delete_horizon_ms=NOW_MS + 86_400_000, codec=CompressionCodec.ZSTD
    )
    builder.append(b"a", b"1", NOW_MS, offset=1003)
    builder.append(b"b", None, NOW_MS + 7, offset=1010)
    batch = builder.build(producer_id=5, producer_epoch=1, base_sequence=40, last_offset=1020)
    header = read_header(batch, 0, len(batch))
    assert header.has_delete_horizon
    assert header.base_timestamp == NOW_MS + 86_400_000
    assert (header.base_offset, header.last_offset) == (1000, 1020)
    assert header.last_sequence == 60
    assert read_batch(batch, 0, len(batch)) == [
        Record(1003, NOW_MS, b"a", b"1", (), 43),
        Record(1010, NOW_MS + 7, b"b", None, (), 50),
    ]


def test_a_batch_without_records_stands_for_its_offsets() -> None:
    batch = BatchBuilder(base_offset=10).build(producer_id=5, base_sequence=0, last_offset=14)
    header = read_header(batch, 0, len(batch))
    assert (header.last_offset, header.last_sequence, header.record_count) == (14, 4, 0)
    assert read_batch(batch, 0, len(batch)) == []
    with pytest.raises(InvariantViolated):
        BatchBuilder().build()


@pytest.mark.parametrize("offset", [9, 10, 12 + 2**31])
def test_offsets_grow_and_stay_near_the_base(offset: int) -> None:
    builder = BatchBuilder(base_offset=10)
    builder.append(None, b"v", NOW_MS, offset=10)
    with pytest.raises(InvariantViolated):
        builder.append(None, b"v", NOW_MS, offset=offset)


def test_the_size_so_far_is_that_of_the_uncompressed_batch() -> None:
    builder = BatchBuilder()
    assert builder.size_bytes == 61
    for record in some_records(5):
        builder.append(record.key, record.value, record.timestamp, record.headers)
    assert builder.size_bytes == len(builder.build())


def test_batches_are_found_one_after_another_until_the_cut_one() -> None:
    first, second = build_batch(some_records(2)), build_batch(some_records(5), base_offset=2)
    data = b"xy" + first + second + first[:-1]
    found = list(batches_in(data, 2, len(data)))
    assert [position for position, _ in found] == [2, 2 + len(first)]
    assert [header.base_offset for _, header in found] == [0, 2]
    assert list(batches_in(data, 2, 2 + len(first) + 16)) != []
    assert list(batches_in(b"", 0, 0)) == []


def test_bytes_between_batches_are_not_passed_over() -> None:
    batch = build_batch(some_records(2))
    with pytest.raises(CorruptBatch):
        list(batches_in(batch + b"\0" * 40 + batch, 0, 2 * len(batch) + 40))


@pytest.mark.parametrize("count", [-1, 0, 1, 3, 2**31 - 1])
def test_a_count_that_is_not_the_records_is_refused(count: int) -> None:
    batch = build_batch(some_records(2))
    header = read_header(batch, 0, len(batch))
    header.record_count = count
    with pytest.raises(CorruptBatch):
        read_records(batch, header, 0)


@pytest.mark.parametrize("is_commit", [True, False])
def test_end_markers(is_commit: bool) -> None:
    marker = EndMarker(is_commit, coordinator_epoch=12)
    batch = build_end_marker(
        marker, producer_id=1000, producer_epoch=3, timestamp=NOW_MS, base_offset=7, leader_epoch=2
    )
    header = read_header(batch, 0, len(batch))
    assert header.is_control
    assert header.is_transactional
    assert (header.producer_id, header.producer_epoch, header.base_sequence) == (1000, 3, -1)
    (record,) = read_batch(batch, 0, len(batch))
    assert record.offset == 7
    assert read_end_marker(record) == marker


def test_other_control_records_are_recognised_and_left() -> None:
    def control(key: bytes | None, value: bytes | None = None) -> Record:
        return Record(0, NOW_MS, key, value)

    assert control_type_of(control(b"\0\0\0\2")) is ControlType.LEADER_CHANGE
    assert control_type_of(control(b"\0\1\0\1more")) is ControlType.COMMIT
    assert control_type_of(control(b"\0\0\0\x63")) is ControlType.UNKNOWN
    assert read_end_marker(control(b"\0\0\0\2")) is None
    for key in (None, b"", b"\0\0\0", b"\xff\xff\0\0"):
        with pytest.raises(CorruptBatch):
            control_type_of(control(key))
    for value in (None, b"\0\0\0\0\0", b"\xff\xff\0\0\0\0"):
        with pytest.raises(CorruptBatch):
            read_end_marker(control(b"\0\0\0\1", value))
