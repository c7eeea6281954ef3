"""A batch built anew around its own records: another codec, or offsets put in order."""

from barnabas.formats.batches.builder import BatchBuilder
from barnabas.formats.batches.compression import codec_of, compress
from barnabas.formats.batches.header import (
    LOG_APPEND_TIME,
    LOG_APPEND_TIME_FLAG,
    TRANSACTIONAL_FLAG,
    BatchHeader,
    encode_batch,
)
from barnabas.formats.batches.reader import record_at


def rebuilt_batch(
    plain: bytes,
    header: BatchHeader,
    codec: int,
    level: int | None,
    timestamp_type: int,
    max_timestamp: int,
    are_offsets_consecutive: bool,
) -> bytes:
    """The batch of `header` with its uncompressed records in `codec`, numbered 0, 1, 2 ..."""
    if not are_offsets_consecutive or header.timestamp_type == LOG_APPEND_TIME:
        plain = _written_anew(plain, header)
    attributes = (header.attributes & TRANSACTIONAL_FLAG) | codec
    if timestamp_type == LOG_APPEND_TIME:
        attributes |= LOG_APPEND_TIME_FLAG
    return encode_batch(
        base_offset=header.base_offset,
        partition_leader_epoch=header.partition_leader_epoch,
        attributes=attributes,
        last_offset_delta=header.record_count - 1,
        base_timestamp=header.base_timestamp,
        max_timestamp=max_timestamp,
        producer_id=header.producer_id,
        producer_epoch=header.producer_epoch,
        base_sequence=header.base_sequence,
        record_count=header.record_count,
        records=compress(codec_of(codec), plain, level=level),
    )


def _written_anew(plain: bytes, header: BatchHeader) -> bytes:
    """The same records with offset deltas 0, 1, 2 ... and the timestamps that they are read with.

    Not every client writes the first; a producer that claims LogAppendTime leaves others behind.
    """
    builder = BatchBuilder(base_timestamp=header.base_timestamp)
    position = 0
    for _ in range(header.record_count):
        record, position = record_at(plain, position, len(plain), header)
        builder.append(record.key, record.value, record.timestamp, record.headers)
    return builder.plain_records()
