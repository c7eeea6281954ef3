"""The aborted transactions that a read_committed reader is told of with what it reads."""

from barnabas.formats.logdir.transaction_index import AbortedTransaction
from barnabas.model.errors import CorruptBatch, DecodeError, DiskError
from barnabas.storage.partition_log import PartitionLog


def aborted_transactions(
    log: PartitionLog, offset: int, size_bytes: int
) -> list[AbortedTransaction]:
    """Those that overlap what was read: so many bytes, beginning at `offset`.

    The end of what was read is known as exactly as the offset index tells it. `CorruptBatch`
    when a transaction index is damaged.
    """
    if not any(segment.has_aborted for segment in log.segments):
        return []
    try:
        return _collect(log, offset, size_bytes)
    except DecodeError as error:
        raise CorruptBatch(f"{log.topic_partition}: {error}") from error
    except DiskError as error:
        log.fail(error)
        raise


def _collect(log: PartitionLog, offset: int, size_bytes: int) -> list[AbortedTransaction]:
    number = log.segment_number(offset)
    position, _ = log.find_position(log.segments[number], offset)
    while position < 0 and number + 1 < len(log.segments):
        number += 1
        position, _ = log.find_position(log.segments[number], offset)
    upper_offset = None
    if position >= 0:
        upper_offset = log.segments[number].offset_index.offset_at_or_after(position + size_bytes)
    if upper_offset is None:
        is_last = number + 1 == len(log.segments)
        upper_offset = log.log_end_offset if is_last else log.segments[number + 1].base_offset
    found: list[AbortedTransaction] = []
    for segment in log.segments[number:]:
        for aborted in segment.aborted_transactions():
            if aborted.last_offset >= offset and aborted.first_offset < upper_offset:
                found.append(aborted)
            if aborted.last_stable_offset >= upper_offset:
                return found
    return found
