"""Any byte changed in a batch gives CorruptBatch or values, never another exception."""

import contextlib

import pytest
from crc32c import crc32c
from hypothesis import given
from hypothesis import strategies as st

from barnabas.formats.batches.bounded_output import DecompressionLimits
from barnabas.formats.batches.builder import append_varint, build_batch
from barnabas.formats.batches.compression import CompressionCodec
from barnabas.formats.batches.header import BatchHeader, read_header
from barnabas.formats.batches.reader import Record, batches_in, read_batch, read_records
from barnabas.formats.batches.record_checks import check_records
from barnabas.model.errors import CorruptBatch
from tests.unit.formats.batches.batch_samples import NOW_MS, codecs, records, some_records

LIMITS = DecompressionLimits(output_bytes_max=1 << 20)


@pytest.mark.parametrize("codec", list(CompressionCodec))
def test_every_byte_and_several_changes(codec: CompressionCodec) -> None:
    batch = build_batch(some_records(3), codec=codec)
    for position in range(len(batch)):
        for mask in (0x01, 0x80, 0xFF):
            broken = bytearray(batch)
            broken[position] ^= mask
            changed = bytes(broken)
            if position >= 16:
                with pytest.raises(CorruptBatch):
                    read_batch(changed, 0, len(changed), limits=LIMITS)
            with contextlib.suppress(CorruptBatch):
                header = read_header(changed, 0, len(changed))
                read_records(changed, header, 0, limits=LIMITS)


@given(records(max_size=3), codecs, st.data())
def test_changes_behind_a_fitting_checksum(
    given_records: list[Record], codec: CompressionCodec, data: st.DataObject
) -> None:
    batch = bytearray(build_batch(given_records, codec=codec))
    for _ in range(data.draw(st.integers(1, 3))):
        batch[data.draw(st.integers(21, len(batch) - 1))] = data.draw(st.integers(0, 255))
    batch[17:21] = crc32c(batch[21:]).to_bytes(4, "big")
    with contextlib.suppress(CorruptBatch):
        read_batch(bytes(batch), 0, len(batch), limits=LIMITS)


@given(st.binary(max_size=400))
def test_garbage_is_no_batch(garbage: bytes) -> None:
    with contextlib.suppress(CorruptBatch):
        for position, header in batches_in(garbage, 0, len(garbage)):
            read_records(garbage, header, position, limits=LIMITS)


@given(st.binary(max_size=60), st.integers(0, 6))
def test_reader_and_checks_agree_on_what_records_are(garbage: bytes, count: int) -> None:
    """What the walk accepts can be read, what it refuses cannot, and both see the same."""
    header = BatchHeader(build_batch(some_records(1)), 0)
    header.record_count = count
    header.size_bytes = 61 + len(garbage)
    data = bytes(61) + garbage
    read: list[Record] | None = None
    with contextlib.suppress(CorruptBatch):
        read = read_records(data, header, 0)
    try:
        summary = check_records(
            data, 61, len(data), count, header.base_timestamp, True, NOW_MS - 50, NOW_MS + 50
        )
    except CorruptBatch:
        assert read is None
        return
    assert read is not None
    assert (summary.keyless or []) == [n for n, record in enumerate(read) if record.key is None]
    assert summary.max_timestamp == max([-1, *(record.timestamp for record in read)])
    assert summary.min_timestamp == min([-1, *(record.timestamp for record in read)])
    assert summary.are_offsets_consecutive == all(
        record.offset == header.base_offset + n for n, record in enumerate(read)
    )
    assert (summary.out_of_time or []) == [
        n
        for n, record in enumerate(read)
        if record.timestamp != -1 and not NOW_MS - 50 <= record.timestamp <= NOW_MS + 50
    ]


def _record(*, key: int = -1, value: int = -1, headers: int = 0, tail: bytes = b"") -> bytes:
    """One record by its lengths, whatever really stands in it."""
    body = bytearray(1)
    for number in (0, 0, key, value, headers):
        append_varint(body, number)
    body += tail
    length = bytearray()
    append_varint(length, len(body))
    return bytes(length + body)


@pytest.mark.parametrize(
    "record",
    [
        _record(key=1),
        _record(value=1),
        _record(key=2**31 - 1),
        _record(headers=-1),
        _record(headers=1),
        _record(headers=2**31 - 1),
        _record(tail=b"!"),
        _record(headers=1, tail=b"\x01\x01"),
        _record(headers=1, tail=b"\x00\x02"),
        _record(headers=1, tail=b"\x02"),
        b"\x00",
        b"\x01",
        b"\x7e" + bytes(10),
        b"\xff\xff\xff\xff\x0f",
        b"\x0c\0\0\0\x80\x80\x80",
    ],
)
def test_lengths_that_lie_are_refused_by_both(record: bytes) -> None:
    data = bytes(61) + record
    header = BatchHeader(build_batch(some_records(1)), 0)
    header.size_bytes = len(data)
    with pytest.raises(CorruptBatch):
        read_records(data, header, 0)
    with pytest.raises(CorruptBatch):
        check_records(data, 61, len(data), 1, 0, False, 0, 0)


def test_the_smallest_record_is_taken_by_both() -> None:
    data = bytes(61) + _record()
    header = BatchHeader(build_batch(some_records(1)), 0)
    header.size_bytes = len(data)
    assert len(read_records(data, header, 0)) == 1
    assert check_records(data, 61, len(data), 1, 0, False, 0, 0).keyless == [0]
