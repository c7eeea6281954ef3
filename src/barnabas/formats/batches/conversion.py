"""Between magic 2 and the older ones: what old producers write, what old consumers are sent."""

from collections.abc import Sequence
from itertools import islice
from typing import Final

from barnabas.formats.batches.admission import (
    KEEP_CODEC,
    REWRITTEN_RECORD_COST,
    AdmittedBatch,
    ProduceRules,
    Rejection,
    WorkBudget,
    check_size,
    timestamp_bounds,
    too_much_work,
    unknown_codec,
)
from barnabas.formats.batches.bounded_output import DEFAULT_LIMITS, DecompressionLimits
from barnabas.formats.batches.builder import BatchBuilder
from barnabas.formats.batches.compression import CompressionCodec, codec_of
from barnabas.formats.batches.header import (
    LOG_APPEND_TIME,
    NO_TIMESTAMP,
    BatchHeader,
)
from barnabas.formats.batches.old_magic import (
    OldMessage,
    build_message_set,
    inner_messages,
    messages_in,
)
from barnabas.formats.batches.reader import batches_in, plain_records, records_from, records_in
from barnabas.model.error_codes import ErrorCode
from barnabas.model.errors import CorruptBatch

CONVERTED_BYTES_MAX: Final = 1024 * 1024
"""Uncompressed, in one answer to an old consumer, and what one large batch brings to it."""
CONVERTED_RECORDS_MAX: Final = 10_000
"""The same in records, which cost more than their bytes."""


def admit_message_set(
    data: bytes, start: int, end: int, rules: ProduceRules, wall_ms: int, budget: WorkBudget
) -> AdmittedBatch | Rejection | None:
    """A set of an old magic as the one batch of magic 2 that is written for it.

    None when there is no whole message in it: then nothing is appended, and that is no error.
    """
    messages_max = max(0, budget.records_left // REWRITTEN_RECORD_COST)
    try:
        outer = list(islice(messages_in(data, start, end), messages_max + 1))
    except CorruptBatch as error:
        return Rejection(ErrorCode.CORRUPT_MESSAGE, str(error))
    if not outer:
        return None
    budget.records_left -= len(outer) * REWRITTEN_RECORD_COST
    if len(outer) > messages_max:
        return too_much_work()
    refused = _check_outer(outer, rules)
    if refused is not None:
        return refused
    codec = codec_of(outer[-1].codec_number)
    messages = outer
    if codec is CompressionCodec.NONE:
        refused = _check_bare(outer, rules, wall_ms)
    else:
        opened = _open_wrapper(outer[0], rules, budget)
        if isinstance(opened, Rejection):
            return opened
        messages = opened
        refused = _check_messages(messages, outer[0], rules, wall_ms)
    if refused is not None:
        return refused
    written_codec = codec if rules.codec == KEEP_CODEC else codec_of(rules.codec)
    if written_codec is not CompressionCodec.NONE and not budget.pay_for_compressing(
        sum(message.size_bytes for message in messages), rules.max_message_bytes
    ):
        return too_much_work()
    builder = BatchBuilder(
        codec=written_codec,
        level=rules.codec_level,
        log_append_time_ms=wall_ms if rules.is_log_append_time else None,
    )
    for message in messages:
        builder.append(message.key, message.value, message.timestamp)
    batch = builder.build()
    refused = check_size(len(batch), rules)
    if refused is not None:
        return refused
    return AdmittedBatch(batch, BatchHeader(batch, 0), 0)


def _open_wrapper(
    wrapper: OldMessage, rules: ProduceRules, budget: WorkBudget
) -> list[OldMessage] | Rejection:
    """The messages of a compressed one; `size_bytes` of each tells what was decompressed."""
    messages_max = budget.records_left // REWRITTEN_RECORD_COST
    if messages_max <= 0 or budget.bytes_left <= 0:
        return too_much_work()
    limits = rules.limits
    room = max(budget.bytes_left, rules.max_message_bytes)
    limits = limits._replace(output_bytes_max=min(room, limits.output_bytes_max))
    at_most = limits.allowed_bytes(wrapper.size_bytes)
    budget.records_left -= messages_max * REWRITTEN_RECORD_COST
    budget.bytes_left -= at_most
    try:
        messages = inner_messages(wrapper, limits=limits, messages_max=messages_max)
    except CorruptBatch as error:
        return Rejection(ErrorCode.INVALID_RECORD, str(error))
    budget.records_left += (messages_max - len(messages)) * REWRITTEN_RECORD_COST
    budget.bytes_left += at_most - sum(message.size_bytes for message in messages)
    return messages


def _check_outer(outer: Sequence[OldMessage], rules: ProduceRules) -> Rejection | None:
    is_compressed = False
    for message in outer:
        if message.size_bytes > rules.max_message_bytes:
            return Rejection(
                ErrorCode.MESSAGE_TOO_LARGE,
                f"{message.size_bytes} bytes, max.message.bytes is {rules.max_message_bytes}",
            )
        if not message.has_valid_crc:
            return Rejection(ErrorCode.CORRUPT_MESSAGE, "the checksum of a message is wrong")
        if message.codec_number > CompressionCodec.ZSTD:
            return unknown_codec(message.codec_number)
        is_compressed = is_compressed or message.codec_number != CompressionCodec.NONE
    if is_compressed and len(outer) > 1:
        return Rejection(ErrorCode.INVALID_RECORD, "other messages beside a compressed one")
    return None


def _check_bare(outer: Sequence[OldMessage], rules: ProduceRules, wall_ms: int) -> Rejection | None:
    """Every message that is in no wrapper is a batch of its own: the first bad one decides."""
    for message in outer:
        if message.magic != outer[0].magic:
            return Rejection(ErrorCode.INVALID_RECORD, "messages of different magic")
        refused = _check_messages((message,), message, rules, wall_ms)
        if refused is not None:
            return refused
    return None


def _check_messages(
    messages: Sequence[OldMessage], outer: OldMessage, rules: ProduceRules, wall_ms: int
) -> Rejection | None:
    """Kafka's checks of single records; a wrong checksum inside a wrapper ends them at once."""
    earliest, latest = timestamp_bounds(rules, wall_ms)
    errors: list[tuple[int, str]] = []
    is_any_out_of_time = False
    for index, message in enumerate(messages):
        if message.magic != outer.magic:
            errors.append((index, "the magic is not that of the message around it"))
        elif not message.has_valid_crc:
            return Rejection(ErrorCode.CORRUPT_MESSAGE, "the checksum of a message is wrong")
        elif rules.needs_keys and message.key is None:
            errors.append((index, "a compacted topic takes no record without a key"))
        elif not _is_in_time(message, outer, rules, earliest, latest):
            is_any_out_of_time = True
            errors.append((index, "the timestamp is out of range, or the producer set its type"))
    if not errors:
        return None
    code = ErrorCode.INVALID_TIMESTAMP if is_any_out_of_time else ErrorCode.INVALID_RECORD
    return Rejection(code, f"{len(errors)} invalid records", errors)


def _is_in_time(
    message: OldMessage, outer: OldMessage, rules: ProduceRules, earliest: int, latest: int
) -> bool:
    if not rules.is_log_append_time and message.timestamp != NO_TIMESTAMP:
        # A batch is always built for it, and there is none for a time before 1970.
        return max(0, earliest) <= message.timestamp <= latest
    return outer.timestamp_type != LOG_APPEND_TIME


class ConversionBudget:
    """What one answer may still convert: each record becomes an object, and others wait."""

    __slots__ = ("bytes_left", "records_left")

    def __init__(self) -> None:
        self.bytes_left = CONVERTED_BYTES_MAX
        self.records_left = CONVERTED_RECORDS_MAX

    @property
    def is_spent(self) -> bool:
        return self.bytes_left <= 0 or self.records_left <= 0


def down_converted(
    data: bytes,
    start: int,
    end: int,
    *,
    to_magic: int,
    first_offset: int,
    budget: ConversionBudget,
    limits: DecompressionLimits = DEFAULT_LIMITS,
) -> bytes | ErrorCode:
    """Whole batches of data[start:end] for a consumer that reads magic 0 or 1.

    It ends with the batch that spends the budget; its consumer asks for the rest. Control batches
    and headers are left out. Uncompressed messages below `first_offset` are left out too: in the
    old formats a fetch begins with the message that was asked for, and there are clients that
    count on it. zstd is UNSUPPORTED_COMPRESSION_TYPE: old clients cannot read it.
    """
    parts: list[bytes] = []
    for position, header in batches_in(data, start, end):
        if parts and budget.is_spent:
            break
        if header.is_control:
            continue
        codec = codec_of(header.compression_codec)
        if codec is CompressionCodec.ZSTD:
            return ErrorCode.UNSUPPORTED_COMPRESSION_TYPE
        plain, plain_at, plain_end = plain_records(data, header, position, limits=limits)
        budget.bytes_left -= plain_end - plain_at
        if (
            header.record_count > CONVERTED_RECORDS_MAX
            or plain_end - plain_at > CONVERTED_BYTES_MAX
        ):
            # Too large for one answer: as much as fits, from the record that was asked for.
            records = records_from(
                plain,
                plain_at,
                plain_end,
                header,
                first_offset,
                CONVERTED_RECORDS_MAX,
                CONVERTED_BYTES_MAX,
            )
        else:
            records = records_in(plain, plain_at, plain_end, header)
            if codec is CompressionCodec.NONE:
                records = [record for record in records if record.offset >= first_offset]
        budget.records_left -= len(records)
        is_appended = header.timestamp_type == LOG_APPEND_TIME
        converted = build_message_set(
            records,
            magic=to_magic,
            codec=codec,
            log_append_time_ms=header.max_timestamp if is_appended else None,
        )
        if converted:
            parts.append(converted)
    return b"".join(parts)
