"""Record batches made by hand, right in every field unless a test says otherwise."""

import gzip
import struct
import time
import zlib
from collections.abc import Sequence
from typing import NamedTuple

import cramjam
import crc32c
import lz4.frame

from tests.e2e.raw_wire import to_varint

HEADER_SIZE = 61
CRC_AT = 17
ATTRIBUTES_AT = 21
CODECS = {"none": 0, "gzip": 1, "snappy": 2, "lz4": 3, "zstd": 4}


class Record(NamedTuple):
    """One record; the deltas are those of its place unless given."""

    value: bytes | None = b"value"
    key: bytes | None = b"key"
    timestamp_delta: int = 0
    offset_delta: int | None = None
    headers: tuple[tuple[bytes, bytes | None], ...] = ()


def wall_ms() -> int:
    """Now, as records carry it."""
    return int(time.time() * 1000)


def record_bytes(record: Record, place: int) -> bytes:
    """One record with its length in front."""
    offset_delta = place if record.offset_delta is None else record.offset_delta
    body = b"\x00" + to_varint(record.timestamp_delta) + to_varint(offset_delta)
    body += _sized(record.key) + _sized(record.value)
    body += to_varint(len(record.headers))
    for name, value in record.headers:
        body += _sized(name) + _sized(value)
    return to_varint(len(body)) + body


def _sized(value: bytes | None) -> bytes:
    return to_varint(-1) if value is None else to_varint(len(value)) + value


def compressed(codec: str, plain: bytes) -> bytes:
    """In the framing that Kafka's clients use."""
    if codec == "gzip":
        return gzip.compress(plain)
    if codec == "snappy":
        block = bytes(cramjam.snappy.compress_raw(plain))
        return b"\x82SNAPPY\x00" + struct.pack(">iii", 1, 1, len(block)) + block
    if codec == "lz4":
        return lz4.frame.compress(plain)
    if codec == "zstd":
        return bytes(cramjam.zstd.compress(plain))
    return plain


def batch(
    records: Sequence[Record] = (Record(),),
    *,
    codec: str = "none",
    payload: bytes | None = None,
    base_offset: int = 0,
    partition_leader_epoch: int = -1,
    magic: int = 2,
    attributes: int = 0,
    last_offset_delta: int | None = None,
    base_timestamp: int | None = None,
    max_timestamp: int | None = None,
    producer_id: int = -1,
    producer_epoch: int = -1,
    base_sequence: int = -1,
    record_count: int | None = None,
    length: int | None = None,
    crc: int | None = None,
) -> bytes:
    """A batch of magic 2; `payload` stands for the records as they are to be on the wire."""
    count = len(records) if record_count is None else record_count
    first_ms = wall_ms() if base_timestamp is None else base_timestamp
    latest_ms = first_ms + max((record.timestamp_delta for record in records), default=0)
    if payload is None:
        plain = b"".join(record_bytes(record, n) for n, record in enumerate(records))
        payload = compressed(codec, plain)
    covered = struct.pack(
        ">hiqqqhii",
        attributes | CODECS[codec],
        count - 1 if last_offset_delta is None else last_offset_delta,
        first_ms,
        latest_ms if max_timestamp is None else max_timestamp,
        producer_id,
        producer_epoch,
        base_sequence,
        count,
    )
    covered += payload
    return (
        struct.pack(
            ">qiibI",
            base_offset,
            len(covered) + 9 if length is None else length,
            partition_leader_epoch,
            magic,
            crc32c.crc32c(covered) if crc is None else crc,
        )
        + covered
    )


def with_right_crc(data: bytes) -> bytes:
    """The same batch with the checksum that its bytes ask for."""
    if len(data) < HEADER_SIZE:
        return data
    checksum = struct.pack(">I", crc32c.crc32c(data[ATTRIBUTES_AT:]))
    return data[:CRC_AT] + checksum + data[ATTRIBUTES_AT:]


def message(
    value: bytes,
    magic: int = 1,
    offset: int = 0,
    crc: int | None = None,
    attributes: int = 0,
) -> bytes:
    """One message of the sets that came before batches; with a codec `value` is a set of them."""
    body = struct.pack(">bb", magic, attributes)
    if magic == 1:
        body += struct.pack(">q", wall_ms())
    body += struct.pack(">i", 3) + b"key" + struct.pack(">i", len(value)) + value
    checksum = zlib.crc32(body) if crc is None else crc
    return struct.pack(">qiI", offset, len(body) + 4, checksum) + body


class StoredBatch(NamedTuple):
    """What a fetched batch says in its header."""

    base_offset: int
    size_bytes: int
    partition_leader_epoch: int
    magic: int
    codec: int
    record_count: int


def stored_batches(data: bytes | None) -> list[StoredBatch]:
    """The whole batches in what a Fetch answered, each with a right checksum."""
    found: list[StoredBatch] = []
    position = 0
    data = data or b""
    while len(data) - position >= HEADER_SIZE:
        base_offset, length, epoch, magic, crc = struct.unpack_from(">qiibI", data, position)
        end = position + 12 + length
        if end > len(data):
            break
        assert crc32c.crc32c(data[position + ATTRIBUTES_AT : end]) == crc
        (attributes,) = struct.unpack_from(">h", data, position + ATTRIBUTES_AT)
        (count,) = struct.unpack_from(">i", data, position + 57)
        found.append(StoredBatch(base_offset, length + 12, epoch, magic, attributes & 7, count))
        position = end
    return found
