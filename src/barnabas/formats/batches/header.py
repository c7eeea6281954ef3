"""The 61 bytes before the records of a version 2 batch: read, checked, stamped with an offset.

Hot: compiled by mypyc where a compiler is there, interpreted otherwise. A batch stays where it
was received: it is named by `(data, start)` and its header, and only what a broker decides
(base offset and leader epoch, both outside the checksum) is written anew in front of it.

    offset size field                       offset size field
         0    8 base offset                     27    8 base timestamp
         8    4 length of what follows          35    8 max timestamp
        12    4 partition leader epoch          43    8 producer id
        16    1 magic                           51    2 producer epoch
        17    4 crc of all that follows it      53    4 base sequence
        21    2 attributes                      57    4 record count
        23    4 last offset delta               61      records
"""

from typing import Final

from librt.strings import (
    BytesWriter,
    read_i16_be,
    read_i32_be,
    read_i64_be,
    write_i16_be,
    write_i32_be,
    write_i64_be,
)

from barnabas.formats.checksum import crc32c
from barnabas.model.errors import CorruptBatch

HEADER_SIZE: Final = 61
LOG_OVERHEAD: Final = 12
"""Base offset and length, which the length does not count."""
MAGIC_AT: Final = 16
CRC_AT: Final = 17
ATTRIBUTES_AT: Final = 21
"""Where what the checksum covers begins."""
PRODUCER_ID_AT: Final = 43
CURRENT_MAGIC: Final = 2

NO_LEADER_EPOCH: Final = -1
NO_PRODUCER_EPOCH: Final = -1
NO_SEQUENCE: Final = -1
NO_TIMESTAMP: Final = -1

CODEC_MASK: Final = 0x07
LOG_APPEND_TIME_FLAG: Final = 0x08
TRANSACTIONAL_FLAG: Final = 0x10
CONTROL_FLAG: Final = 0x20
DELETE_HORIZON_FLAG: Final = 0x40
KNOWN_ATTRIBUTES: Final = 0x7F

CREATE_TIME: Final = 0
LOG_APPEND_TIME: Final = 1

COPY_BYTES_MAX: Final = 4096
"""Up to this size a copy is cheaper than a view of the bytes."""


class BatchHeader:
    """What a batch says of itself; numbers only, nothing is judged here."""

    __slots__ = (
        "attributes",
        "base_offset",
        "base_sequence",
        "base_timestamp",
        "crc",
        "last_offset_delta",
        "magic",
        "max_timestamp",
        "partition_leader_epoch",
        "producer_epoch",
        "producer_id",
        "record_count",
        "size_bytes",
    )

    def __init__(self, data: bytes, start: int) -> None:
        """Read the 61 bytes at `start`, which must be there."""
        crc: int = read_i32_be(data, start + 17)
        if crc < 0:
            crc += 0x1_0000_0000
        self.base_offset: int = read_i64_be(data, start)
        self.size_bytes: int = read_i32_be(data, start + 8) + LOG_OVERHEAD
        """The whole batch, from its base offset to its last record."""
        self.partition_leader_epoch: int = read_i32_be(data, start + 12)
        self.magic: int = data[start + MAGIC_AT]
        self.crc: int = crc
        self.attributes: int = read_i16_be(data, start + 21)
        self.last_offset_delta: int = read_i32_be(data, start + 23)
        self.base_timestamp: int = read_i64_be(data, start + 27)
        self.max_timestamp: int = read_i64_be(data, start + 35)
        self.producer_id: int = read_i64_be(data, start + 43)
        self.producer_epoch: int = read_i16_be(data, start + 51)
        self.base_sequence: int = read_i32_be(data, start + 53)
        self.record_count: int = read_i32_be(data, start + 57)

    @property
    def last_offset(self) -> int:
        return self.base_offset + self.last_offset_delta

    @property
    def next_offset(self) -> int:
        return self.base_offset + self.last_offset_delta + 1

    @property
    def last_sequence(self) -> int:
        """The sequence of the last record, -1 for a batch without sequences."""
        if self.base_sequence == NO_SEQUENCE:
            return NO_SEQUENCE
        return increment_sequence(self.base_sequence, self.last_offset_delta)

    @property
    def compression_codec(self) -> int:
        return self.attributes & CODEC_MASK

    @property
    def timestamp_type(self) -> int:
        """CREATE_TIME or LOG_APPEND_TIME."""
        return LOG_APPEND_TIME if self.attributes & LOG_APPEND_TIME_FLAG else CREATE_TIME

    @property
    def is_transactional(self) -> bool:
        return self.attributes & TRANSACTIONAL_FLAG != 0

    @property
    def is_control(self) -> bool:
        return self.attributes & CONTROL_FLAG != 0

    @property
    def has_delete_horizon(self) -> bool:
        """Whether the base timestamp is the time from which tombstones may be dropped."""
        return self.attributes & DELETE_HORIZON_FLAG != 0

    @property
    def has_producer_id(self) -> bool:
        return self.producer_id >= 0


def increment_sequence(sequence: int, increment: int) -> int:
    """The sequence `increment` records later; after 2^31 - 1 comes 0."""
    return (sequence + increment) & 0x7FFF_FFFF


def read_header_alone(data: bytes, start: int, end: int) -> BatchHeader:
    """The header at `start` when its records may not be there, as when a file is skimmed."""
    if end - start < HEADER_SIZE:
        raise CorruptBatch(f"{end - start} bytes cannot hold a batch header of {HEADER_SIZE}")
    header = BatchHeader(data, start)
    if header.magic != CURRENT_MAGIC:
        raise CorruptBatch(f"magic {header.magic} where {CURRENT_MAGIC} was expected")
    if header.size_bytes < HEADER_SIZE:
        raise CorruptBatch(f"a batch of {header.size_bytes} bytes is shorter than its header")
    return header


def read_header(data: bytes, start: int, end: int) -> BatchHeader:
    """The header of the batch that begins at `start` and ends at `end` or before."""
    header = read_header_alone(data, start, end)
    if header.size_bytes > end - start:
        raise CorruptBatch(f"a batch of {header.size_bytes} bytes in {end - start} bytes")
    return header


def batch_crc(data: bytes, start: int, size_bytes: int) -> int:
    """CRC-32C of what the checksum of the batch at `start` covers."""
    if size_bytes <= COPY_BYTES_MAX:
        return crc32c(data[start + ATTRIBUTES_AT : start + size_bytes])
    return crc32c(memoryview(data)[start + ATTRIBUTES_AT : start + size_bytes])


def has_valid_crc(data: bytes, header: BatchHeader, start: int) -> bool:
    return batch_crc(data, start, header.size_bytes) == header.crc


def check_crc(data: bytes, header: BatchHeader, start: int) -> None:
    """Raise unless the batch at `start` has the checksum that its header claims."""
    crc = batch_crc(data, start, header.size_bytes)
    if crc != header.crc:
        raise CorruptBatch(
            f"batch at offset {header.base_offset}: crc {crc:08x}, its header says {header.crc:08x}"
        )


def stamp(
    parts: list[bytes | memoryview],
    data: bytes,
    header: BatchHeader,
    start: int,
    base_offset: int,
    leader_epoch: int,
) -> None:
    """Append the batch as it goes to the log, with its offset and leader epoch, to `parts`.

    A small batch becomes one piece, so that a gathered write stays short; of a large one only
    the first 16 bytes are made anew and the rest is a view into `data`.
    """
    size_bytes = header.size_bytes
    writer = BytesWriter()
    write_i64_be(writer, base_offset)
    write_i32_be(writer, size_bytes - LOG_OVERHEAD)
    write_i32_be(writer, leader_epoch)
    if size_bytes <= COPY_BYTES_MAX:
        writer.write(data[start + MAGIC_AT : start + size_bytes])
        parts.append(writer.getvalue())
    else:
        parts.append(writer.getvalue())
        parts.append(memoryview(data)[start + MAGIC_AT : start + size_bytes])


def with_timestamp_type(
    data: bytes, header: BatchHeader, start: int, timestamp_type: int, max_timestamp: int
) -> bytes:
    """A copy of the batch with this type and latest timestamp, and the checksum that follows.

    Under LOG_APPEND_TIME the latest timestamp is that of all records. Attributes without a
    meaning are dropped, as Kafka does here and nowhere else.
    """
    attributes = header.attributes & KNOWN_ATTRIBUTES & ~LOG_APPEND_TIME_FLAG
    if timestamp_type == LOG_APPEND_TIME:
        attributes |= LOG_APPEND_TIME_FLAG
    writer = BytesWriter()
    write_i16_be(writer, attributes)
    write_i32_be(writer, header.last_offset_delta)
    write_i64_be(writer, header.base_timestamp)
    write_i64_be(writer, max_timestamp)
    covered = writer.getvalue()
    rest = memoryview(data)[start + PRODUCER_ID_AT : start + header.size_bytes]
    crc = crc32c(rest, crc32c(covered))
    return b"".join((data[start : start + CRC_AT], crc.to_bytes(4, "big"), covered, rest))


def encode_batch(
    *,
    base_offset: int,
    partition_leader_epoch: int,
    attributes: int,
    last_offset_delta: int,
    base_timestamp: int,
    max_timestamp: int,
    producer_id: int,
    producer_epoch: int,
    base_sequence: int,
    record_count: int,
    records: bytes,
) -> bytes:
    """A whole batch around records that are already in the codec the attributes name."""
    writer = BytesWriter()
    write_i16_be(writer, attributes)
    write_i32_be(writer, last_offset_delta)
    write_i64_be(writer, base_timestamp)
    write_i64_be(writer, max_timestamp)
    write_i64_be(writer, producer_id)
    write_i16_be(writer, producer_epoch)
    write_i32_be(writer, base_sequence)
    write_i32_be(writer, record_count)
    covered = writer.getvalue()
    front = BytesWriter()
    write_i64_be(front, base_offset)
    write_i32_be(front, HEADER_SIZE - LOG_OVERHEAD + len(records))
    write_i32_be(front, partition_leader_epoch)
    front.append(CURRENT_MAGIC)
    crc = crc32c(records, crc32c(covered))
    return b"".join((front.getvalue(), crc.to_bytes(4, "big"), covered, records))
