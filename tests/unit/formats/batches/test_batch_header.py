"""The header of a batch: every field, checksum, stamping, and what cannot be a batch."""

import struct

import pytest
from crc32c import crc32c
from hypothesis import given
from hypothesis import strategies as st

from barnabas.formats.batches.builder import build_batch
from barnabas.formats.batches.header import (
    COPY_BYTES_MAX,
    CREATE_TIME,
    HEADER_SIZE,
    LOG_APPEND_TIME,
    BatchHeader,
    check_crc,
    has_valid_crc,
    increment_sequence,
    read_header,
    read_header_alone,
    stamp,
    with_timestamp_type,
)
from barnabas.formats.batches.reader import read_batch
from barnabas.model.errors import CorruptBatch
from tests.unit.formats.batches.batch_samples import NOW_MS, renumbered, some_records

LAYOUT = struct.Struct(">qiibIhiqqqhii")

fields = st.tuples(
    st.integers(-(2**63), 2**63 - 1),
    st.just(49),
    st.integers(-(2**31), 2**31 - 1),
    st.just(2),
    st.integers(0, 2**32 - 1),
    st.integers(-(2**15), 2**15 - 1),
    st.integers(-(2**31), 2**31 - 1),
    st.integers(-(2**63), 2**63 - 1),
    st.integers(-(2**63), 2**63 - 1),
    st.integers(-(2**63), 2**63 - 1),
    st.integers(-(2**15), 2**15 - 1),
    st.integers(-(2**31), 2**31 - 1),
    st.integers(-(2**31), 2**31 - 1),
)


@given(fields, st.binary(max_size=5))
def test_every_field_is_read_wherever_the_batch_stands(
    values: tuple[int, ...], before: bytes
) -> None:
    data = before + LAYOUT.pack(*values)
    header = read_header(data, len(before), len(data))
    assert (
        header.base_offset,
        header.size_bytes - 12,
        header.partition_leader_epoch,
        header.magic,
        header.crc,
        header.attributes,
        header.last_offset_delta,
        header.base_timestamp,
        header.max_timestamp,
        header.producer_id,
        header.producer_epoch,
        header.base_sequence,
        header.record_count,
    ) == values


def _header(**changes: int) -> BatchHeader:
    header = BatchHeader(build_batch(some_records(3)), 0)
    for name, value in changes.items():
        setattr(header, name, value)
    return header


def test_attributes_are_named() -> None:
    plain = _header(attributes=0)
    assert plain.compression_codec == 0
    assert plain.timestamp_type == CREATE_TIME
    assert not (plain.is_transactional or plain.is_control or plain.has_delete_horizon)
    full = _header(attributes=0x7C)
    assert full.compression_codec == 4
    assert full.timestamp_type == LOG_APPEND_TIME
    assert full.is_transactional
    assert full.is_control
    assert full.has_delete_horizon


@pytest.mark.parametrize(
    ("base", "delta", "last"),
    [
        (-1, 5, -1),
        (0, 0, 0),
        (7, 3, 10),
        (2**31 - 1, 0, 2**31 - 1),
        (2**31 - 1, 1, 0),
        (2**31 - 2, 4, 2),
    ],
)
def test_sequences_start_again_at_zero(base: int, delta: int, last: int) -> None:
    assert _header(base_sequence=base, last_offset_delta=delta).last_sequence == last
    if base >= 0:
        assert increment_sequence(base, delta) == last


def test_offsets_of_a_batch() -> None:
    header = _header(base_offset=100, last_offset_delta=2)
    assert (header.last_offset, header.next_offset) == (102, 103)


@pytest.mark.parametrize("cut", [0, 11, 17, HEADER_SIZE - 1, HEADER_SIZE, -1])
def test_a_batch_that_is_not_all_there_is_refused(cut: int) -> None:
    batch = build_batch(some_records(2))
    with pytest.raises(CorruptBatch):
        read_header(batch, 0, cut if cut >= 0 else len(batch) - 1)


def test_a_header_can_be_read_without_its_records() -> None:
    batch = build_batch(some_records(2))
    assert read_header_alone(batch, 0, HEADER_SIZE).size_bytes == len(batch)


@pytest.mark.parametrize("length", [-1, 0, 48, -(2**31)])
def test_a_length_that_cannot_hold_the_header_is_refused(length: int) -> None:
    batch = bytearray(build_batch(some_records(2)))
    batch[8:12] = struct.pack(">i", length)
    with pytest.raises(CorruptBatch):
        read_header(bytes(batch), 0, len(batch))


@pytest.mark.parametrize("magic", [0, 1, 3, 255])
def test_other_magic_is_refused(magic: int) -> None:
    batch = bytearray(build_batch(some_records(2)))
    batch[16] = magic
    with pytest.raises(CorruptBatch, match=f"magic {magic}"):
        read_header(bytes(batch), 0, len(batch))


@pytest.mark.parametrize("value_bytes", [10, COPY_BYTES_MAX * 2])
def test_the_checksum_covers_attributes_to_the_end(value_bytes: int) -> None:
    batch = b"before" + build_batch(some_records(1, value_bytes))
    header = read_header(batch, 6, len(batch))
    assert header.crc == crc32c(batch[6 + 21 :])
    check_crc(batch, header, 6)
    for position in range(len(batch) - 6):
        if position < 16 or position in (17, 18, 19, 20):
            continue
        broken = bytearray(batch)
        broken[6 + position] ^= 0x10
        assert has_valid_crc(bytes(broken), header, 6) == (position == 16), position
        if position > 16 + 80:
            break
    with pytest.raises(CorruptBatch, match="crc"):
        check_crc(batch[:-1] + b"!", header, 6)


@pytest.mark.parametrize("value_bytes", [10, COPY_BYTES_MAX - 200, COPY_BYTES_MAX, 100_000])
def test_stamping_changes_offset_and_leader_epoch_alone(value_bytes: int) -> None:
    given_records = some_records(1, value_bytes)
    data = b"frame" + build_batch(given_records, base_sequence=5, producer_id=9) + b"rest"
    header = read_header(data, 5, len(data))
    parts: list[bytes | memoryview] = [b"already there"]
    stamp(parts, data, header, 5, 2**40, 77)
    assert parts[0] == b"already there"
    assert len(parts) == (2 if header.size_bytes <= COPY_BYTES_MAX else 3)
    written = b"".join(parts[1:])
    stamped = read_header(written, 0, len(written))
    assert (stamped.base_offset, stamped.partition_leader_epoch) == (2**40, 77)
    assert written[16:] == data[5 + 16 : 5 + header.size_bytes]
    assert written[8:12] == data[13:17]
    assert read_batch(written, 0, len(written)) == renumbered(given_records, 2**40, 5)


def test_a_large_batch_is_not_copied_when_it_is_stamped() -> None:
    data = build_batch(some_records(1, 1_000_000))
    parts: list[bytes | memoryview] = []
    stamp(parts, data, read_header(data, 0, len(data)), 0, 1, 1)
    assert len(parts[0]) == 16
    assert isinstance(parts[1], memoryview)
    assert parts[1].obj is data


@pytest.mark.parametrize("timestamp_type", [CREATE_TIME, LOG_APPEND_TIME])
def test_the_timestamp_type_is_rewritten_with_a_new_checksum(timestamp_type: int) -> None:
    given_records = some_records(4)
    original = build_batch(given_records, is_transactional=True, producer_id=3, base_sequence=0)
    data = b"ab" + original
    header = read_header(data, 2, len(data))
    changed = with_timestamp_type(data, header, 2, timestamp_type, NOW_MS + 5000)
    rewritten = read_header(changed, 0, len(changed))
    assert rewritten.timestamp_type == timestamp_type
    assert rewritten.max_timestamp == NOW_MS + 5000
    assert rewritten.is_transactional
    times = [record.timestamp for record in read_batch(changed, 0, len(changed))]
    if timestamp_type == LOG_APPEND_TIME:
        assert times == [NOW_MS + 5000] * 4
    else:
        assert times == [record.timestamp for record in given_records]
    back = with_timestamp_type(changed, rewritten, 0, CREATE_TIME, header.max_timestamp)
    assert back == original
