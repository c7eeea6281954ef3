"""Between magic 2 and the older ones: what old producers write, what old consumers are sent."""

from collections.abc import Sequence

from barnabas.formats.batches.admission import (
    KEEP_CODEC,
    AdmittedBatch,
    ProduceRules,
    Rejection,
    check_size,
    timestamp_bounds,
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
from barnabas.formats.batches.reader import batches_in, read_records
from barnabas.model.error_codes import ErrorCode
from barnabas.model.errors import CorruptBatch


def admit_message_set(
    data: bytes, start: int, end: int, rules: ProduceRules, wall_ms: int
) -> AdmittedBatch | Rejection | None:
    """A set of an old magic as the one batch of magic 2 that is written for it.

    None when there is no whole message in it: then nothing is appended, and that is no error.
    """
    try:
        outer = list(messages_in(data, start, end))
    except CorruptBatch as error:
        return Rejection(ErrorCode.CORRUPT_MESSAGE, str(error))
    if not outer:
        return None
    refused = _check_outer(outer, rules)
    if refused is not None:
        return refused
    codec = codec_of(outer[-1].codec_number)
    messages = outer
    if codec is CompressionCodec.NONE:
        refused = _check_bare(outer, rules, wall_ms)
    else:
        try:
            messages = inner_messages(outer[0], limits=rules.limits)
        except CorruptBatch as error:
            return Rejection(ErrorCode.INVALID_RECORD, str(error))
        refused = _check_messages(messages, outer[0], rules, wall_ms)
    if refused is not None:
        return refused
    builder = BatchBuilder(
        codec=codec if rules.codec == KEEP_CODEC else codec_of(rules.codec),
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


def down_converted(
    data: bytes,
    start: int,
    end: int,
    *,
    to_magic: int,
    first_offset: int,
    limits: DecompressionLimits = DEFAULT_LIMITS,
) -> bytes | ErrorCode:
    """The whole batches of data[start:end] for a consumer that reads magic 0 or 1.

    Control batches and headers are left out. Uncompressed messages below `first_offset` are left
    out too: in the old formats a fetch begins with the message that was asked for, and there are
    clients that count on it. zstd is UNSUPPORTED_COMPRESSION_TYPE: old clients cannot read it.
    """
    parts: list[bytes] = []
    for position, header in batches_in(data, start, end):
        if header.is_control:
            continue
        codec = codec_of(header.compression_codec)
        if codec is CompressionCodec.ZSTD:
            return ErrorCode.UNSUPPORTED_COMPRESSION_TYPE
        records = read_records(data, header, position, limits=limits)
        if codec is CompressionCodec.NONE:
            records = [record for record in records if record.offset >= first_offset]
        is_appended = header.timestamp_type == LOG_APPEND_TIME
        parts.append(
            build_message_set(
                records,
                magic=to_magic,
                codec=codec,
                log_append_time_ms=header.max_timestamp if is_appended else None,
            )
        )
    return b"".join(parts)
