"""Cutting a log: at its end by replication, at its start by retention, or whole."""

from bisect import bisect_right
from typing import TYPE_CHECKING

from barnabas.model.errors import DiskError
from barnabas.model.invariant import invariant
from barnabas.storage.producer_loading import (
    load_latest_snapshot,
    replay_producers,
    snapshot_path,
)
from barnabas.storage.segment import Segment

if TYPE_CHECKING:
    from barnabas.storage.partition_log import PartitionLog


def truncate_log(log: "PartitionLog", offset: int, wall_ms: int) -> bool:
    """Drop the records from `offset` on; whether there were any."""
    log.check_usable()
    log.write_out()
    if offset >= log.log_end_offset:
        if offset == log.log_end_offset:
            log.leader_epochs.truncate_from_end(offset)
        return False
    if offset < log.segments[0].base_offset:
        restart_log(log, offset, wall_ms)
        return True
    try:
        _begin_cut(log, offset)
        _drop_segments(log, bisect_right(log.segments, offset, key=_base_offset_of))
        active = log.segments[-1]
        active.truncate_to(offset)
        if active.size_bytes == 0:
            active.created_ms = wall_ms
        log.log_end_offset = offset
        log.activate(active)
        log.leader_epochs.truncate_from_end(offset)
        _reload_producers(log, wall_ms)
    except DiskError as error:
        log.fail(error)
        raise
    log.set_high_watermark(log.high_watermark)
    log.owner.on_log_work(log)
    return True


def restart_log(log: "PartitionLog", offset: int, wall_ms: int) -> None:
    """Drop every record; the log begins and ends at `offset` then."""
    log.check_usable()
    log.write_out()
    try:
        _begin_cut(log, offset)
        _drop_segments(log, 0)
        log.log_end_offset = offset
        log.log_start_offset = offset
        log.segments.append(log.create_segment(offset, wall_ms))
        log.activate(log.segments[-1])
        log.leader_epochs.clear()
        log.producers.clear()
        _forget_snapshots(log, 0, 0)
    except DiskError as error:
        log.fail(error)
        raise
    log.high_watermark = offset
    log.owner.on_log_work(log)


def delete_oldest_segments(log: "PartitionLog", count: int) -> None:
    """Drop the first segments, not the active one; the log begins behind them."""
    log.check_usable()
    invariant(count < len(log.segments), f"{log.directory}: the active segment must stay")
    end = log.segments[count].base_offset
    log.delete_records_before(end)
    paths: list[str] = []
    try:
        for segment in log.segments[:count]:
            paths += segment.mark_deleted()
        del log.segments[:count]
        _forget_snapshots(log, end, log.log_end_offset + 1)
    except DiskError as error:
        log.fail(error)
        raise
    log.is_directory_sync_wanted = True
    log.owner.on_files_deleted(log, paths)


def _begin_cut(log: "PartitionLog", offset: int) -> None:
    """No flush under way counts any more, nor a recovery point or a start above the cut."""
    if log.is_flushing:
        # It may be writing a snapshot that the cut takes away.
        log.files.disk.finish_jobs()
    log.flush_generation += 1
    if log.recovery_point > offset or log.log_start_offset > offset:
        log.recovery_point = min(log.recovery_point, offset)
        log.log_start_offset = min(log.log_start_offset, offset)
        log.owner.on_cut(log)


def _drop_segments(log: "PartitionLog", first: int) -> None:
    """Rename the files of all segments from a number on, and make that durable.

    The last ones go first, so that the log has no hole whenever this is interrupted; a cut
    inside the segment that stays must not be durable before these are gone.
    """
    dropped = log.segments[first:]
    if not dropped:
        return
    paths: list[str] = []
    for segment in reversed(dropped):
        paths += segment.mark_deleted()
    del log.segments[first:]
    log.files.disk.sync_directory(log.directory)
    log.owner.on_files_deleted(log, paths)


def _reload_producers(log: "PartitionLog", wall_ms: int) -> None:
    """After a cut: the producers as they were at the new end of the log."""
    disk = log.files.disk
    _forget_snapshots(log, log.log_start_offset + 1, log.log_end_offset + 1)
    _write_snapshots(log)
    known_to = load_latest_snapshot(
        disk,
        log.directory,
        log.snapshots,
        log.producers,
        log.log_end_offset,
        wall_ms,
        log.producer_expiration_ms,
    )
    if known_to is None:
        known_to = log.log_start_offset
    replay_producers(disk, log.segments, log.producers, known_to, log.log_end_offset)


def _write_snapshots(log: "PartitionLog") -> None:
    """Write the snapshots that only memory has."""
    for offset in sorted(log.unwritten_snapshots):
        path = snapshot_path(log.directory, offset)
        log.files.disk.write_file(path, log.unwritten_snapshots.pop(offset))


def _forget_snapshots(log: "PartitionLog", first: int, end: int) -> None:
    """Remove the producer snapshots whose offset is not in [first, end)."""
    disk = log.files.disk
    for offset in log.snapshots:
        if first <= offset < end:
            continue
        if log.unwritten_snapshots.pop(offset, None) is None:
            path = snapshot_path(log.directory, offset)
            if disk.exists(path):
                disk.remove_file(path)
                log.is_directory_sync_wanted = True
    log.snapshots = [offset for offset in log.snapshots if first <= offset < end]


def _base_offset_of(segment: Segment) -> int:
    return segment.base_offset
