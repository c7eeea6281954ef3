"""Producer state of a log as of an offset: the best snapshot, then the batches behind it."""

from collections.abc import Sequence

from barnabas.formats.batches.control import read_end_marker
from barnabas.formats.batches.header import BatchHeader
from barnabas.formats.batches.reader import read_records
from barnabas.formats.logdir.names import PRODUCER_SNAPSHOT_SUFFIX, segment_file_name
from barnabas.formats.logdir.producer_snapshot import decode_producer_snapshot
from barnabas.formats.logdir.transaction_index import AbortedTransaction
from barnabas.model.errors import DecodeError, FileMissing
from barnabas.storage.disk import Disk
from barnabas.storage.producer_state import ProducerState
from barnabas.storage.segment import Segment


def snapshot_path(directory: str, offset: int) -> str:
    return f"{directory}/{segment_file_name(offset, PRODUCER_SNAPSHOT_SUFFIX)}"


def note_batch(
    producers: ProducerState, data: bytes, header: BatchHeader, start: int
) -> AbortedTransaction | None:
    """Let the producers know of a batch that stands in the log; what it aborted, if it did."""
    if header.producer_id < 0:
        return None
    if not header.is_control:
        producers.note_batch(header, header.base_offset, header.max_timestamp)
        return None
    for record in read_records(data, header, start):
        marker = read_end_marker(record)
        if marker is None:
            return None
        return producers.note_marker(
            header,
            marker.is_commit,
            marker.coordinator_epoch,
            header.base_offset,
            record.timestamp,
        )
    return None


def load_latest_snapshot(
    disk: Disk,
    directory: str,
    snapshots: list[int],
    producers: ProducerState,
    not_above: int,
    wall_ms: int,
    expiration_ms: int,
) -> int | None:
    """Load the last readable snapshot not above an offset; the offset it is of, if there is one.

    Unreadable ones are removed, from the directory and from the list.
    """
    for offset in sorted(snapshots, reverse=True):
        if offset > not_above:
            continue
        path = snapshot_path(directory, offset)
        try:
            entries = decode_producer_snapshot(disk.read_file(path))
        except (DecodeError, FileMissing):
            snapshots.remove(offset)
            if disk.exists(path):
                disk.remove_file(path)
            continue
        producers.load(entries, wall_ms, expiration_ms)
        return offset
    producers.clear()
    return None


def replay_producers(
    disk: Disk,
    segments: Sequence[Segment],
    producers: ProducerState,
    from_offset: int,
    end_offset: int,
) -> int:
    """Note the batches of [from_offset, end_offset); how many bytes of headers were walked."""
    walked = 0
    for number, segment in enumerate(segments):
        next_base = segments[number + 1].base_offset if number + 1 < len(segments) else end_offset
        if next_base <= from_offset or segment.base_offset >= end_offset:
            continue
        place = segment.find(from_offset)
        while place is not None and place.header.base_offset < end_offset:
            header = place.header
            if header.producer_id >= 0:
                data = b""
                if header.is_control:
                    data = disk.read(segment.file(), place.position, header.size_bytes)
                note_batch(producers, data, header, 0)
            walked += header.size_bytes
            place = segment.batch_at(place.position + header.size_bytes)
    return walked
