"""What a leader accepts from a producer, what it answers to the rest, what it changes on the way.

Hot: compiled by mypyc where a compiler is there. The order of the checks is Kafka's, because it
decides which answer a batch gets that is wrong in two ways:

1. `read_produced`: what is wrong whoever leads the partition (before the leader is looked up);
2. `check_batch`: the batch by its header and checksum;
3. `admit`: the records, and the batch as it will be written: its latest timestamp, its codec.
"""

from typing import Final

from librt.strings import read_i32_be

from barnabas.formats.batches.bounded_output import DEFAULT_LIMITS, DecompressionLimits
from barnabas.formats.batches.header import (
    CREATE_TIME,
    CURRENT_MAGIC,
    HEADER_SIZE,
    LOG_APPEND_TIME,
    LOG_OVERHEAD,
    MAGIC_AT,
    NO_TIMESTAMP,
    BatchHeader,
    has_valid_crc,
    with_timestamp_type,
)
from barnabas.formats.batches.reader import plain_records
from barnabas.formats.batches.record_checks import (
    LARGEST_INT64,
    LISTED_MAX,
    SMALLEST_INT64,
    RecordsSummary,
    check_records,
)
from barnabas.formats.batches.rewriting import rebuilt_batch
from barnabas.model.error_codes import ErrorCode
from barnabas.model.errors import CorruptBatch, DecompressedTooLarge

FIRST_VERSION_OF_BATCHES: Final = 3
"""From this version of Produce on exactly one batch of magic 2 is expected per partition."""
FIRST_VERSION_OF_ZSTD: Final = 7
RECORDS_MAX: Final = 500_000
"""In all batches of one request, which are walked while others wait; a few hundred bytes may hold
as many, and no producer sends so many at once."""
REWRITTEN_RECORD_COST: Final = 25
"""A record that is written anew, as those of old formats are, takes as long as so many walked."""
DECOMPRESSED_BYTES_MAX: Final = 32 * 1024 * 1024
"""Out of all batches of one request; one alone may be as large as its topic's messages."""
RECOMPRESSED_BYTE_COST: Final = 8
"""Compressing takes as long as decompressing so much more."""
SMALLEST_LENGTH: Final = 14
"""The length field of the smallest message of magic 0."""
ZSTD: Final = 4
KEEP_CODEC: Final = -1
"""compression.type=producer: the log keeps the producer's codec."""
UNBOUNDED_MS: Final = LARGEST_INT64
"""message.timestamp.before.max.ms and message.timestamp.after.max.ms when not set."""


class Rejection:
    """An answer to a producer whose batch is not taken."""

    __slots__ = ("error_code", "message", "record_errors")

    def __init__(
        self,
        error_code: ErrorCode,
        message: str,
        record_errors: list[tuple[int, str]] | None = None,
    ) -> None:
        self.error_code: ErrorCode = error_code
        self.message: str = message
        self.record_errors: list[tuple[int, str]] = record_errors or []
        """Index in the batch and what is wrong with the record (Produce 8 and later)."""


class WorkBudget:
    """What the judging of one request may still cost, however many batches are in it."""

    __slots__ = ("bytes_left", "is_untouched", "records_left")

    def __init__(self) -> None:
        self.records_left: int = RECORDS_MAX
        self.bytes_left: int = DECOMPRESSED_BYTES_MAX
        self.is_untouched: bool = True
        """Whether nothing was decompressed yet."""

    def pay_for_compressing(self, plain_bytes: int, max_message_bytes: int) -> bool:
        """Whether there is enough; for a batch no larger than its topic's any rest will do."""
        cost = plain_bytes * RECOMPRESSED_BYTE_COST
        if cost > self.bytes_left and (self.bytes_left <= 0 or plain_bytes > max_message_bytes):
            return False
        self.bytes_left -= cost
        return True


class ProduceRules:
    """What a topic's config asks of what is appended to its partitions."""

    __slots__ = (
        "codec",
        "codec_level",
        "is_log_append_time",
        "is_time_bounded",
        "limits",
        "max_message_bytes",
        "needs_keys",
        "segment_bytes",
        "timestamp_after_max_ms",
        "timestamp_before_max_ms",
    )

    def __init__(
        self,
        *,
        max_message_bytes: int,
        segment_bytes: int,
        codec: int = KEEP_CODEC,
        codec_level: int | None = None,
        is_log_append_time: bool = False,
        timestamp_before_max_ms: int = UNBOUNDED_MS,
        timestamp_after_max_ms: int = UNBOUNDED_MS,
        needs_keys: bool = False,
        limits: DecompressionLimits = DEFAULT_LIMITS,
    ) -> None:
        self.max_message_bytes: int = max_message_bytes
        self.segment_bytes: int = segment_bytes
        self.codec: int = codec
        self.codec_level: int | None = codec_level
        self.is_log_append_time: bool = is_log_append_time
        self.timestamp_before_max_ms: int = timestamp_before_max_ms
        self.timestamp_after_max_ms: int = timestamp_after_max_ms
        self.is_time_bounded: bool = not is_log_append_time and (
            timestamp_before_max_ms != UNBOUNDED_MS or timestamp_after_max_ms != UNBOUNDED_MS
        )
        """Whether there is anything to compare timestamps with."""
        self.needs_keys: bool = needs_keys
        """cleanup.policy contains compact."""
        self.limits: DecompressionLimits = limits


class AdmittedBatch:
    """A batch that may be appended, at its place in `data`, which is not always the request."""

    __slots__ = ("data", "header", "start")

    def __init__(self, data: bytes, header: BatchHeader, start: int) -> None:
        self.data: bytes = data
        self.header: BatchHeader = header
        self.start: int = start


def read_produced(
    data: bytes, start: int, end: int, produce_version: int
) -> BatchHeader | Rejection | None:
    """The one batch produced to a partition; None when it is a message set of an old magic.

    Bytes after it that are no whole batch are left out, as Kafka does.
    """
    size_bytes = whole_batch_size(data, start, end)
    if size_bytes < 0:
        return _corrupt_length()
    if produce_version < FIRST_VERSION_OF_BATCHES:
        if size_bytes == 0 or data[start + MAGIC_AT] < CURRENT_MAGIC:
            return None
    elif size_bytes == 0:
        return _invalid("no record batch for the partition")
    elif data[start + MAGIC_AT] != CURRENT_MAGIC:
        return _invalid("this version of Produce takes batches of magic 2 alone")
    if size_bytes < HEADER_SIZE:
        return _corrupt_length()
    header = BatchHeader(data, start)
    if (
        header.compression_codec == ZSTD
        and FIRST_VERSION_OF_BATCHES <= produce_version < FIRST_VERSION_OF_ZSTD
    ):
        return Rejection(
            ErrorCode.UNSUPPORTED_COMPRESSION_TYPE,
            f"zstd needs Produce {FIRST_VERSION_OF_ZSTD} or later",
        )
    if end - start != size_bytes:
        next_size_bytes = whole_batch_size(data, start + size_bytes, end)
        if next_size_bytes < 0:
            return _corrupt_length()
        if next_size_bytes > 0:
            return _invalid("more than one record batch for the partition")
    return header


def whole_batch_size(data: bytes, start: int, end: int) -> int:
    """The size of the batch or message at `start`, 0 if it is not all there, -1 if it is none."""
    if end - start < LOG_OVERHEAD:
        return 0
    length: int = read_i32_be(data, start + 8)
    if length < SMALLEST_LENGTH:
        return -1
    if end - start <= MAGIC_AT:
        return 0
    if data[start + MAGIC_AT] > CURRENT_MAGIC:
        return -1
    if LOG_OVERHEAD + length > end - start:
        return 0
    return LOG_OVERHEAD + length


def check_batch(
    data: bytes, header: BatchHeader, start: int, rules: ProduceRules
) -> Rejection | None:
    """What is wrong with the batch itself; None if nothing is."""
    if header.base_offset != 0:
        return _invalid(f"the base offset is {header.base_offset}, a producer's is 0")
    if header.size_bytes > rules.max_message_bytes:
        return Rejection(
            ErrorCode.MESSAGE_TOO_LARGE,
            f"{header.size_bytes} bytes, max.message.bytes is {rules.max_message_bytes}",
        )
    if not has_valid_crc(data, header, start):
        return Rejection(ErrorCode.CORRUPT_MESSAGE, "the checksum of the batch is wrong")
    if header.compression_codec > ZSTD:
        return unknown_codec(header.compression_codec)
    if header.record_count <= 0 or header.record_count > RECORDS_MAX:
        return _invalid(f"a batch of {header.record_count} records")
    if header.last_offset_delta != header.record_count - 1:
        return _invalid(
            f"a batch of {header.record_count} records whose last offset delta is "
            f"{header.last_offset_delta}"
        )
    if header.is_control:
        return _invalid("clients may not write control batches")
    if header.producer_id >= 0 and header.base_sequence < 0:
        return _invalid(
            f"sequence {header.base_sequence} in a batch of producer {header.producer_id}"
        )
    return None


def admit(
    data: bytes,
    header: BatchHeader,
    start: int,
    rules: ProduceRules,
    wall_ms: int,
    budget: WorkBudget,
) -> AdmittedBatch | Rejection:
    """The batch as it will be written, once `check_batch` found nothing.

    It is the producer's own bytes unless the topic wants another codec or the broker's time, or
    the producer claimed a wrong latest timestamp or left its records' offsets out of order.
    Decompresses a compressed batch, within the limits of the rules and of the request's budget.
    """
    budget.records_left -= header.record_count
    if budget.records_left < 0:
        return too_much_work()
    is_time_bounded = rules.is_time_bounded
    earliest, latest = timestamp_bounds(rules, wall_ms) if is_time_bounded else (0, 0)
    plain = data
    plain_at = start + HEADER_SIZE
    plain_end = start + header.size_bytes
    try:
        if header.compression_codec != 0:
            decompressed = _decompress(data, header, start, rules, budget)
            if isinstance(decompressed, Rejection):
                return decompressed
            plain, plain_at, plain_end = decompressed, 0, len(decompressed)
        summary = check_records(
            plain,
            plain_at,
            plain_end,
            header.record_count,
            header.base_timestamp,
            is_time_bounded,
            earliest,
            latest,
        )
    except CorruptBatch as error:
        return _invalid(str(error))
    refused = check_summary(header, summary, rules, earliest, latest)
    if refused is not None:
        return refused
    timestamp_type = CREATE_TIME
    max_timestamp = summary.max_timestamp
    if rules.is_log_append_time:
        timestamp_type = LOG_APPEND_TIME
        max_timestamp = wall_ms
    elif header.timestamp_type == LOG_APPEND_TIME:
        max_timestamp = header.max_timestamp
    codec = header.compression_codec if rules.codec == KEEP_CODEC else rules.codec
    if codec != header.compression_codec or not summary.are_offsets_consecutive:
        return _rebuild(
            plain[plain_at:plain_end], header, summary, rules, budget, timestamp_type, max_timestamp
        )
    if header.timestamp_type != timestamp_type or header.max_timestamp != max_timestamp:
        written = with_timestamp_type(data, header, start, timestamp_type, max_timestamp)
        return check_size(len(written), rules) or AdmittedBatch(written, BatchHeader(written, 0), 0)
    return check_size(header.size_bytes, rules) or AdmittedBatch(data, header, start)


def _rebuild(
    plain: bytes,
    header: BatchHeader,
    summary: RecordsSummary,
    rules: ProduceRules,
    budget: WorkBudget,
    timestamp_type: int,
    max_timestamp: int,
) -> AdmittedBatch | Rejection:
    """The batch in its topic's codec, or with its offsets in order."""
    refused = _check_rebuildable(header, summary)
    if refused is not None:
        return refused
    if not summary.are_offsets_consecutive or header.timestamp_type == LOG_APPEND_TIME:
        budget.records_left -= header.record_count * REWRITTEN_RECORD_COST
    if budget.records_left < 0 or not budget.pay_for_compressing(
        len(plain), rules.max_message_bytes
    ):
        return too_much_work()
    written = rebuilt_batch(
        plain,
        header,
        header.compression_codec if rules.codec == KEEP_CODEC else rules.codec,
        rules.codec_level,
        timestamp_type,
        max_timestamp,
        summary.are_offsets_consecutive,
    )
    return check_size(len(written), rules) or AdmittedBatch(written, BatchHeader(written, 0), 0)


def _decompress(
    data: bytes, header: BatchHeader, start: int, rules: ProduceRules, budget: WorkBudget
) -> bytes | Rejection:
    """The records of a compressed batch; what comes out of it counts, also when it is broken."""
    limits = rules.limits
    allowed = limits.allowed_bytes(header.size_bytes - HEADER_SIZE)
    room = budget.bytes_left
    if budget.is_untouched:
        budget.is_untouched = False
        room = max(room, rules.max_message_bytes)
    if room <= 0:
        return too_much_work()
    if room < allowed:
        limits = limits._replace(output_bytes_max=room)
    at_most = min(room, allowed)
    budget.bytes_left -= at_most
    try:
        plain, _, size_bytes = plain_records(data, header, start, limits=limits)
    except DecompressedTooLarge:
        if room < allowed:
            return too_much_work()
        raise
    budget.bytes_left += at_most - size_bytes
    return plain


def _check_rebuildable(header: BatchHeader, summary: RecordsSummary) -> Rejection | None:
    """Whether the batch could have been built in the first place."""
    if header.is_transactional and header.producer_id < 0:
        return _invalid("a transactional batch without a producer id")
    if header.producer_id >= 0 and header.producer_epoch < 0:
        return _invalid(f"producer {header.producer_id} without an epoch")
    if summary.min_timestamp < NO_TIMESTAMP:
        return Rejection(ErrorCode.INVALID_TIMESTAMP, "a timestamp before 1970")
    return None


def timestamp_bounds(rules: ProduceRules, wall_ms: int) -> tuple[int, int]:
    """The earliest and latest timestamp that a record may carry; both inclusive."""
    earliest = SMALLEST_INT64
    if rules.timestamp_before_max_ms != UNBOUNDED_MS:
        earliest = wall_ms - rules.timestamp_before_max_ms
    latest = LARGEST_INT64
    if rules.timestamp_after_max_ms != UNBOUNDED_MS:
        latest = wall_ms + rules.timestamp_after_max_ms
    return earliest, latest


def check_summary(
    header: BatchHeader, summary: RecordsSummary, rules: ProduceRules, earliest: int, latest: int
) -> Rejection | None:
    """What the walk over the records found that the topic does not take."""
    keyless = summary.keyless if rules.needs_keys else None
    out_of_time = summary.out_of_time
    if header.timestamp_type == LOG_APPEND_TIME:
        # All records have the batch's timestamp, which a producer should not have set so.
        has_time = header.max_timestamp != NO_TIMESTAMP and not rules.is_log_append_time
        is_inside = not rules.is_time_bounded or earliest <= header.max_timestamp <= latest
        listed = min(header.record_count, LISTED_MAX)
        out_of_time = None if has_time and is_inside else list(range(listed))
    if not keyless and not out_of_time:
        return None
    errors: list[tuple[int, str]] = []
    without_key: set[int] = set(keyless or ())
    for index in keyless or ():
        errors.append((index, "a compacted topic takes no record without a key"))
    late: list[int] = [index for index in out_of_time or () if index not in without_key]
    for index in late:
        errors.append((index, "the timestamp is out of range, or the producer set its type"))
    errors.sort()
    if late:
        return Rejection(ErrorCode.INVALID_TIMESTAMP, f"{len(errors)} invalid records", errors)
    return Rejection(ErrorCode.INVALID_RECORD, f"{len(errors)} invalid records", errors)


def check_size(size_bytes: int, rules: ProduceRules) -> Rejection | None:
    """Whether the batch as it will be written is too large; it may have grown."""
    if size_bytes > rules.max_message_bytes:
        return Rejection(
            ErrorCode.MESSAGE_TOO_LARGE,
            f"{size_bytes} bytes, max.message.bytes is {rules.max_message_bytes}",
        )
    if size_bytes > rules.segment_bytes:
        return Rejection(
            ErrorCode.RECORD_LIST_TOO_LARGE,
            f"{size_bytes} bytes, segment.bytes is {rules.segment_bytes}",
        )
    return None


def unknown_codec(number: int) -> Rejection:
    """Kafka has no code of its own for this: the client is told that the server failed."""
    return Rejection(ErrorCode.UNKNOWN_SERVER_ERROR, f"there is no compression codec {number}")


def too_much_work() -> Rejection:
    """Java's producer splits what is called too large and sends it again."""
    return Rejection(
        ErrorCode.MESSAGE_TOO_LARGE,
        f"a request may carry {RECORDS_MAX} records and {DECOMPRESSED_BYTES_MAX} bytes when "
        "decompressed, fewer where they are written anew: send smaller batches, or fewer at once",
    )


def _invalid(message: str) -> Rejection:
    return Rejection(ErrorCode.INVALID_RECORD, message)


def _corrupt_length() -> Rejection:
    return Rejection(ErrorCode.CORRUPT_MESSAGE, "the length or magic of a batch is impossible")
