"""Which segments a log need not keep: below its start, above its size, older than its time."""

from barnabas.model.errors import DiskError
from barnabas.storage.log_cuts import delete_oldest_segments
from barnabas.storage.partition_log import PartitionLog


def apply_retention(log: PartitionLog, wall_ms: int) -> int:
    """Drop what the topic's settings do not keep; the number of segments dropped.

    A compacted topic keeps all but what is below the start of the log, unless it also deletes.
    """
    try:
        dropped = _drop(log, _below_start(log), wall_ms)
        if "delete" in log.config.cleanup_policy:
            dropped += _drop(log, _above_size(log), wall_ms)
            dropped += _drop(log, _older_than_retention(log, wall_ms), wall_ms)
    except DiskError as error:
        log.fail(error)
        raise
    return dropped


def _drop(log: PartitionLog, count: int, wall_ms: int) -> int:
    """Drop the first segments; a new one is begun when none would be left."""
    if count == 0:
        return 0
    if count == len(log.segments):
        log.roll(log.log_end_offset, wall_ms)
    delete_oldest_segments(log, count)
    return count


def _may_go(log: PartitionLog, number: int) -> bool:
    """Whether all of a segment is replicated; the active one only goes if it holds something."""
    segments = log.segments
    if number + 1 < len(segments):
        return log.high_watermark >= segments[number + 1].base_offset
    return log.high_watermark >= log.log_end_offset and segments[number].size_bytes > 0


def _below_start(log: PartitionLog) -> int:
    segments = log.segments
    count = 0
    while (
        count + 1 < len(segments)
        and segments[count + 1].base_offset <= log.log_start_offset
        and _may_go(log, count)
    ):
        count += 1
    return count


def _above_size(log: PartitionLog) -> int:
    """Segments that can go while what is left is still as large as may be kept."""
    limit = log.config.retention_bytes
    if limit < 0:
        return 0
    excess = log.size_bytes - limit
    segments = log.segments
    count = 0
    while count < len(segments) and _may_go(log, count):
        excess -= segments[count].size_bytes
        if excess < 0:
            break
        count += 1
    return count


def _older_than_retention(log: PartitionLog, wall_ms: int) -> int:
    """Segments whose youngest record is past its time, up to the first that is not."""
    limit = log.config.retention_ms
    if limit < 0:
        return 0
    segments = log.segments
    count = 0
    while (
        count < len(segments)
        and _may_go(log, count)
        and wall_ms - segments[count].largest_timestamp() > limit
    ):
        count += 1
    return count
