"""Records out of batches: headers, null keys and values, both kinds of timestamp."""

from collections.abc import Iterator
from typing import NamedTuple

from barnabas.formats.batches.bounded_output import DEFAULT_LIMITS, DecompressionLimits
from barnabas.formats.batches.compression import CompressionCodec, codec_of, decompress
from barnabas.formats.batches.header import (
    HEADER_SIZE,
    LOG_APPEND_TIME,
    LOG_OVERHEAD,
    MAGIC_AT,
    BatchHeader,
    check_crc,
    increment_sequence,
    read_header,
)
from barnabas.formats.batches.record_checks import (
    SMALLEST_RECORD_BYTES,
    read_varint,
    read_varlong,
    skip_records_below,
)
from barnabas.model.errors import CorruptBatch


class RecordHeader(NamedTuple):
    """A header; bytes of the key that are not UTF-8 are kept as lone surrogates."""

    key: str
    value: bytes | None


class Record(NamedTuple):
    """One record; `sequence` is -1 where the producer is not idempotent."""

    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: tuple[RecordHeader, ...] = ()
    sequence: int = -1


def batches_in(data: bytes, start: int, end: int) -> Iterator[tuple[int, BatchHeader]]:
    """Position and header of every whole batch; one that is cut at the end is left out.

    What a fetch returned may end in the middle of a batch. `CorruptBatch` for anything else that
    is not a batch; checksums are not looked at.
    """
    position = start
    while end - position > MAGIC_AT:
        length = int.from_bytes(data[position + 8 : position + 12], "big", signed=True)
        size_bytes = LOG_OVERHEAD + length
        if size_bytes >= HEADER_SIZE and size_bytes > end - position:
            return
        header = read_header(data, position, end)
        yield position, header
        position += header.size_bytes


def read_batch(
    data: bytes, start: int, end: int, *, limits: DecompressionLimits = DEFAULT_LIMITS
) -> list[Record]:
    """The records of the batch at `start`, its checksum verified."""
    header = read_header(data, start, end)
    check_crc(data, header, start)
    return read_records(data, header, start, limits=limits)


def plain_records(
    data: bytes, header: BatchHeader, start: int, *, limits: DecompressionLimits = DEFAULT_LIMITS
) -> tuple[bytes, int, int]:
    """The uncompressed records of a batch: bytes, where they begin and where they end."""
    records_at = start + HEADER_SIZE
    records_end = start + header.size_bytes
    codec = codec_of(header.compression_codec)
    if codec is CompressionCodec.NONE:
        return data, records_at, records_end
    plain = decompress(codec, memoryview(data)[records_at:records_end], limits=limits)
    return plain, 0, len(plain)


def read_records(
    data: bytes, header: BatchHeader, start: int, *, limits: DecompressionLimits = DEFAULT_LIMITS
) -> list[Record]:
    """The records of the batch at `start`; control records are records too."""
    plain, position, end = plain_records(data, header, start, limits=limits)
    return records_in(plain, position, end, header)


def records_in(plain: bytes, position: int, end: int, header: BatchHeader) -> list[Record]:
    """All records of a batch, which fill plain[position:end]."""
    _check_count(header, end - position)
    records: list[Record] = []
    for _ in range(header.record_count):
        record, position = record_at(plain, position, end, header)
        records.append(record)
    if position != end:
        raise CorruptBatch("bytes are left after the last record of a batch")
    return records


def records_from(
    plain: bytes,
    position: int,
    end: int,
    header: BatchHeader,
    first_offset: int,
    records_max: int,
    bytes_max: int,
) -> list[Record]:
    """Some records of a batch from an offset on: one at least, and then up to the limits."""
    _check_count(header, end - position)
    index, position = skip_records_below(
        plain, position, end, header.record_count, first_offset - header.base_offset
    )
    records: list[Record] = []
    last_start = position + bytes_max
    while (
        index < header.record_count
        and len(records) < records_max
        and (not records or position < last_start)
    ):
        record, position = record_at(plain, position, end, header)
        records.append(record)
        index += 1
    return records


def _check_count(header: BatchHeader, size_bytes: int) -> None:
    count = header.record_count
    if count < 0 or count * SMALLEST_RECORD_BYTES > size_bytes:
        raise CorruptBatch(f"{count} records cannot be in {size_bytes} bytes")


def record_at(
    data: bytes, position: int, batch_end: int, header: BatchHeader
) -> tuple[Record, int]:
    """The record at `position` of uncompressed records, and the position after it."""
    length, position = read_varint(data, position, batch_end)
    if length < 0 or length > batch_end - position:
        raise CorruptBatch("a record reaches past the end of its batch")
    end = position + length
    timestamp_delta, position = read_varlong(data, position + 1, end)
    offset_delta, position = read_varint(data, position, end)
    key, position = _read_nullable_bytes(data, position, end)
    value, position = _read_nullable_bytes(data, position, end)
    headers, position = _read_headers(data, position, end)
    if position != end:
        raise CorruptBatch("a record is longer than what is in it")
    if header.timestamp_type == LOG_APPEND_TIME:
        timestamp = header.max_timestamp
    else:
        timestamp = header.base_timestamp + timestamp_delta
    sequence = -1
    if header.base_sequence >= 0:
        sequence = increment_sequence(header.base_sequence, offset_delta)
    offset = header.base_offset + offset_delta
    return Record(offset, timestamp, key, value, headers, sequence), position


def _read_nullable_bytes(data: bytes, position: int, end: int) -> tuple[bytes | None, int]:
    length, position = read_varint(data, position, end)
    if length < 0:
        return None, position
    if length > end - position:
        raise CorruptBatch("a field reaches past the end of its record")
    return data[position : position + length], position + length


def _read_headers(data: bytes, position: int, end: int) -> tuple[tuple[RecordHeader, ...], int]:
    count, position = read_varint(data, position, end)
    if count == 0:
        return (), position
    if count < 0 or count > end - position:
        raise CorruptBatch(f"a record with {count} headers in {end - position} bytes")
    headers: list[RecordHeader] = []
    for _ in range(count):
        key, position = _read_nullable_bytes(data, position, end)
        if key is None:
            raise CorruptBatch("a header's key is null")
        value, position = _read_nullable_bytes(data, position, end)
        headers.append(RecordHeader(key.decode("utf-8", "surrogateescape"), value))
    return tuple(headers), position
