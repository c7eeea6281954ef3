"""Offsets of a log by time: the earliest, the first as young, the youngest."""

from typing import Final, NamedTuple

from barnabas.formats.batches.header import CURRENT_MAGIC, BatchHeader
from barnabas.formats.batches.old_magic import read_message_set
from barnabas.formats.batches.reader import read_records
from barnabas.model.errors import DiskError
from barnabas.storage.leader_epochs import NO_EPOCH
from barnabas.storage.partition_log import PartitionLog
from barnabas.storage.segment import BatchPlace, Segment

NO_TIMESTAMP: Final = -1


class TimedOffset(NamedTuple):
    """An offset, the timestamp of its record where it was asked for, and its leader epoch."""

    timestamp: int
    offset: int
    leader_epoch: int


def earliest_offset(log: PartitionLog) -> TimedOffset:
    """The start of the log, and the epoch known to hold there."""
    return TimedOffset(
        NO_TIMESTAMP, log.log_start_offset, log.leader_epochs.epoch_at(log.log_start_offset)
    )


def offset_for_time(log: PartitionLog, timestamp: int) -> TimedOffset | None:
    """The first record, by offset, that is at least as young; None when there is none."""
    log.check_usable()
    log.write_out()
    try:
        for segment in log.segments:
            if segment.largest_timestamp() >= timestamp:
                return _first_as_young(log, segment, timestamp)
    except DiskError as error:
        log.fail(error)
        raise
    return None


def _first_as_young(log: PartitionLog, segment: Segment, timestamp: int) -> TimedOffset | None:
    start = max(segment.time_index.offset_before(timestamp), log.log_start_offset)
    place = segment.batch_at(segment.offset_index.position_before(start))
    while place is not None:
        header = place.header
        if header.max_timestamp >= timestamp:
            for offset, record_timestamp in _records_of(log, segment, place):
                if record_timestamp >= timestamp and offset >= log.log_start_offset:
                    return TimedOffset(record_timestamp, offset, _epoch_of(header))
        place = segment.batch_at(place.position + header.size_bytes)
    return None


def youngest_record(log: PartitionLog) -> TimedOffset | None:
    """The record with the highest timestamp, the first of them; None in an empty log."""
    log.check_usable()
    log.write_out()
    try:
        youngest: Segment | None = None
        for segment in log.segments:
            segment.ensure_max_timestamp()
            if youngest is None or segment.max_timestamp > youngest.max_timestamp:
                youngest = segment
        if youngest is None:
            return None
        position = youngest.offset_index.position_before(youngest.offset_of_max_timestamp)
        place = youngest.batch_at(position)
        while place is not None:
            if place.header.max_timestamp == youngest.max_timestamp:
                return _youngest_of(log, youngest, place)
            place = youngest.batch_at(place.position + place.header.size_bytes)
    except DiskError as error:
        log.fail(error)
        raise
    return None


def _youngest_of(log: PartitionLog, segment: Segment, place: BatchPlace) -> TimedOffset | None:
    header = place.header
    for offset, timestamp in _records_of(log, segment, place):
        if timestamp == header.max_timestamp:
            return TimedOffset(timestamp, offset, _epoch_of(header))
    return None


def _records_of(log: PartitionLog, segment: Segment, place: BatchPlace) -> list[tuple[int, int]]:
    """Offset and timestamp of every record of a batch."""
    header = place.header
    data = log.files.disk.read(segment.file(), place.position, header.size_bytes)
    if header.magic < CURRENT_MAGIC:
        return [(one.offset, one.timestamp) for one in read_message_set(data, 0, len(data))]
    return [(record.offset, record.timestamp) for record in read_records(data, header, 0)]


def _epoch_of(header: BatchHeader) -> int:
    return header.partition_leader_epoch if header.magic >= CURRENT_MAGIC else NO_EPOCH
