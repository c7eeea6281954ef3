"""Version 2 batches out of records, for producers, coordinators and the cleaner."""

from collections.abc import Iterable

from barnabas.formats.batches.compression import CompressionCodec, compress
from barnabas.formats.batches.header import (
    CONTROL_FLAG,
    DELETE_HORIZON_FLAG,
    HEADER_SIZE,
    LOG_APPEND_TIME_FLAG,
    NO_LEADER_EPOCH,
    NO_PRODUCER_EPOCH,
    NO_SEQUENCE,
    NO_TIMESTAMP,
    TRANSACTIONAL_FLAG,
    encode_batch,
)
from barnabas.formats.batches.reader import Record
from barnabas.model.ids import NO_PRODUCER_ID
from barnabas.model.invariant import invariant

OFFSET_DELTA_MAX = 0x7FFF_FFFF

Headers = Iterable[tuple[str, bytes | None]]


def append_varint(target: bytearray, value: int) -> None:
    """Write a zigzag varint; the value fits 64 bits."""
    raw = (value << 1) ^ (value >> 63)
    while raw > 0x7F:
        target.append((raw & 0x7F) | 0x80)
        raw >>= 7
    target.append(raw)


def append_nullable_bytes(target: bytearray, value: bytes | None) -> None:
    if value is None:
        target.append(1)
    else:
        append_varint(target, len(value))
        target += value


class BatchBuilder:
    """Records are appended and then built into one batch, once who produces it is known."""

    def __init__(
        self,
        *,
        codec: CompressionCodec = CompressionCodec.NONE,
        level: int | None = None,
        base_offset: int = 0,
        delete_horizon_ms: int | None = None,
        log_append_time_ms: int | None = None,
        base_timestamp: int | None = None,
    ) -> None:
        """With `log_append_time_ms` all records carry that time, whatever theirs is.

        Without a delete horizon or base timestamp the latter is the first record's.
        """
        self.record_count = 0
        self.max_timestamp = NO_TIMESTAMP
        self._codec = codec
        self._level = level
        self._base_offset = base_offset
        self._delete_horizon_ms = delete_horizon_ms
        self._log_append_time_ms = log_append_time_ms
        self._base_timestamp = base_timestamp if delete_horizon_ms is None else delete_horizon_ms
        self._last_offset = base_offset - 1
        self._records = bytearray()

    @property
    def size_bytes(self) -> int:
        """What the batch would be now, not compressed."""
        return HEADER_SIZE + len(self._records)

    def plain_records(self) -> bytes:
        """The records so far, without a header and not compressed."""
        return bytes(self._records)

    def append(
        self,
        key: bytes | None,
        value: bytes | None,
        timestamp: int,
        headers: Headers = (),
        offset: int | None = None,
    ) -> None:
        """Add a record; without an offset it follows the one before."""
        offset = self._last_offset + 1 if offset is None else offset
        offset_delta = offset - self._base_offset
        invariant(
            self._last_offset < offset and offset_delta <= OFFSET_DELTA_MAX,
            f"offset {offset} after {self._last_offset}, base offset {self._base_offset}",
        )
        if self._base_timestamp is None:
            self._base_timestamp = timestamp
        body = bytearray(1)
        append_varint(body, timestamp - self._base_timestamp)
        append_varint(body, offset_delta)
        append_nullable_bytes(body, key)
        append_nullable_bytes(body, value)
        pairs = tuple(headers)
        append_varint(body, len(pairs))
        for header_key, header_value in pairs:
            append_nullable_bytes(body, header_key.encode("utf-8", "surrogateescape"))
            append_nullable_bytes(body, header_value)
        append_varint(self._records, len(body))
        self._records += body
        self._last_offset = offset
        self.record_count += 1
        self.max_timestamp = max(self.max_timestamp, timestamp)

    def build(
        self,
        *,
        producer_id: int = NO_PRODUCER_ID,
        producer_epoch: int = NO_PRODUCER_EPOCH,
        base_sequence: int = NO_SEQUENCE,
        is_transactional: bool = False,
        is_control: bool = False,
        leader_epoch: int = NO_LEADER_EPOCH,
        last_offset: int | None = None,
    ) -> bytes:
        """The batch; `last_offset` keeps the place of records that compaction removed."""
        invariant(
            self._base_timestamp is not None or last_offset is not None,
            "a batch without records needs the last offset that it stands for",
        )
        attributes = int(self._codec)
        max_timestamp = self.max_timestamp
        if self._log_append_time_ms is not None:
            attributes |= LOG_APPEND_TIME_FLAG
            max_timestamp = self._log_append_time_ms
        if is_transactional:
            attributes |= TRANSACTIONAL_FLAG
        if is_control:
            attributes |= CONTROL_FLAG
        if self._delete_horizon_ms is not None:
            attributes |= DELETE_HORIZON_FLAG
        last_offset = self._last_offset if last_offset is None else last_offset
        base_timestamp = self._base_timestamp
        return encode_batch(
            base_offset=self._base_offset,
            partition_leader_epoch=leader_epoch,
            attributes=attributes,
            last_offset_delta=last_offset - self._base_offset,
            base_timestamp=NO_TIMESTAMP if base_timestamp is None else base_timestamp,
            max_timestamp=max_timestamp,
            producer_id=producer_id,
            producer_epoch=producer_epoch,
            base_sequence=base_sequence,
            record_count=self.record_count,
            records=compress(self._codec, bytes(self._records), level=self._level),
        )


def build_batch(
    records: Iterable[Record],
    *,
    codec: CompressionCodec = CompressionCodec.NONE,
    level: int | None = None,
    base_offset: int = 0,
    log_append_time_ms: int | None = None,
    producer_id: int = NO_PRODUCER_ID,
    producer_epoch: int = NO_PRODUCER_EPOCH,
    base_sequence: int = NO_SEQUENCE,
    is_transactional: bool = False,
    leader_epoch: int = NO_LEADER_EPOCH,
) -> bytes:
    """One batch of these records, numbered from `base_offset` on; their own offsets are not read.

    A simple batch in a test or of a client: `build_batch([Record(0, now_ms, key, value)])`.
    """
    builder = BatchBuilder(
        codec=codec,
        level=level,
        base_offset=base_offset,
        log_append_time_ms=log_append_time_ms,
    )
    for record in records:
        builder.append(record.key, record.value, record.timestamp, record.headers)
    return builder.build(
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        base_sequence=base_sequence,
        is_transactional=is_transactional,
        leader_epoch=leader_epoch,
    )
