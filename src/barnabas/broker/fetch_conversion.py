"""Fetch answers for clients that cannot read the log's format: converted, or refused."""

from __future__ import annotations

import struct
from typing import Final

from barnabas.broker.fetch_reads import release_records
from barnabas.broker.fetch_sessions import FetchedPartition
from barnabas.broker.partition import Partition
from barnabas.formats.batches.compression import CompressionCodec
from barnabas.formats.batches.conversion import (
    CONVERTED_BYTES_MAX,
    ConversionBudget,
    down_converted,
)
from barnabas.formats.batches.header import HEADER_SIZE, LOG_OVERHEAD
from barnabas.formats.wire.generated.fetch import PartitionData
from barnabas.model.error_codes import ErrorCode
from barnabas.model.errors import CorruptBatch, DiskError
from barnabas.storage.disk import FileSlice

FIRST_VERSION_OF_ZSTD: Final = 10
FIRST_VERSION_OF_MAGIC_1: Final = 2
FIRST_VERSION_OF_MAGIC_2: Final = 4
LAST_VERSION_WITHOUT_STORAGE_ERROR: Final = 5

_OVERSIZED: Final = struct.pack(">qi", -1, 2**31 - 1 - 12)
"""The head of a message larger than any buffer: an old consumer reads it as "fetch more bytes"."""


def convert(
    partition: Partition | None,
    asked: FetchedPartition,
    answer: PartitionData,
    version: int,
    is_from_follower: bool,
    budget: ConversionBudget,
) -> PartitionData:
    """The answer as a client of this version of Fetch can read it; all of it has one budget."""
    if (
        answer.error_code == ErrorCode.KAFKA_STORAGE_ERROR
        and version <= LAST_VERSION_WITHOUT_STORAGE_ERROR
    ):
        answer.error_code = ErrorCode.NOT_LEADER_OR_FOLLOWER
    if partition is None or partition.log is None or version >= FIRST_VERSION_OF_ZSTD:
        return answer
    if partition.rules.codec == CompressionCodec.ZSTD:
        return _refused(asked, answer, ErrorCode.UNSUPPORTED_COMPRESSION_TYPE)
    if version >= FIRST_VERSION_OF_MAGIC_2:
        return answer
    if not is_from_follower and not partition.log.config.message_downconversion_enable:
        return _refused(asked, answer, ErrorCode.UNSUPPORTED_VERSION)
    if answer.error_code == ErrorCode.NONE:
        return _down_converted(asked, answer, version, budget)
    return answer


def _down_converted(
    asked: FetchedPartition, answer: PartitionData, version: int, budget: ConversionBudget
) -> PartitionData:
    """The same records in magic 0 or 1.

    When there are records but not one that can be sent, an old consumer would ask for the same
    offset for ever; it is told of a message larger than its buffer, which makes it complain.
    Where the budget was spent before, there is nothing for now, as if the request were full.
    """
    if budget.is_spent:
        release_records(answer)
        return answer
    try:
        data = _bytes_of(answer)
    except DiskError:
        return _refused(asked, answer, ErrorCode.NOT_LEADER_OR_FOLLOWER)
    is_something_there = bool(data) or asked.fetch_offset < answer.high_watermark
    try:
        converted = down_converted(
            data,
            0,
            len(data),
            to_magic=1 if version >= FIRST_VERSION_OF_MAGIC_1 else 0,
            first_offset=asked.fetch_offset,
            budget=budget,
        )
    except CorruptBatch:
        return _refused(asked, answer, ErrorCode.CORRUPT_MESSAGE)
    if isinstance(converted, ErrorCode):
        return _refused(asked, answer, converted)
    answer.records = converted or (_OVERSIZED if is_something_there else b"")
    return answer


def _bytes_of(answer: PartitionData) -> bytes:
    """No more than may be converted at once, unless the first batch alone is more."""
    records = answer.records
    if not isinstance(records, FileSlice):
        return records if isinstance(records, bytes) else b""
    try:
        wanted = min(records.size_bytes, CONVERTED_BYTES_MAX)
        data = records.disk.read(records.file, records.position, wanted)
        if len(data) >= HEADER_SIZE:
            first = LOG_OVERHEAD + int.from_bytes(data[8:LOG_OVERHEAD], "big", signed=True)
            if wanted < first <= records.size_bytes:
                data = records.disk.read(records.file, records.position, first)
        return data
    finally:
        release_records(answer)


def _refused(asked: FetchedPartition, answer: PartitionData, error: ErrorCode) -> PartitionData:
    release_records(answer)
    return PartitionData(
        partition_index=asked.partition, error_code=error, high_watermark=-1, records=b""
    )
