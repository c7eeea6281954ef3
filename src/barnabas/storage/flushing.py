"""Making a log durable: what to sync and write, in which order, and what is known then.

A plan is made on the loop, carried out anywhere, and settled on the loop. What it covers is
durable only when everything before it in the order is: the files of the log directory that tell
about records must never tell more than the records that are there.
"""

from typing import TYPE_CHECKING

from barnabas.formats.logdir.checkpoints import encode_epoch_checkpoint
from barnabas.formats.logdir.names import (
    LEADER_EPOCH_FILE,
    LOG_SUFFIX,
    OFFSET_INDEX_SUFFIX,
    PARTITION_METADATA_FILE,
    TIME_INDEX_SUFFIX,
    TRANSACTION_INDEX_SUFFIX,
)
from barnabas.formats.logdir.partition_metadata import encode_partition_metadata
from barnabas.model.errors import DiskError
from barnabas.storage.disk import Disk, FileId
from barnabas.storage.producer_loading import snapshot_path

if TYPE_CHECKING:
    from barnabas.storage.partition_log import PartitionLog

INDEX_SUFFIXES = (OFFSET_INDEX_SUFFIX, TIME_INDEX_SUFFIX)


class FlushPlan:
    """What one log needs to be durable up to an offset; holds its files open until settled."""

    __slots__ = (
        "_disk",
        "_files",
        "_generation",
        "_writes",
        "directories",
        "error",
        "log",
        "target_offset",
    )

    def __init__(self, log: "PartitionLog") -> None:
        self.log = log
        self.target_offset: int = log.recovery_point
        self.directories: list[str] = []
        self.error: DiskError | None = None
        """Why it could not be carried out."""
        self._disk: Disk = log.files.disk
        self._files: list[FileId] = []
        self._writes: list[tuple[str, bytes]] = []
        self._generation: int = log.flush_generation

    def add_segments(self, *, with_active: bool) -> None:
        """Cover what was written or cut since the last time, in all segments or all but one."""
        log = self.log
        self.target_offset = log.log_end_offset if with_active else log.active_segment.base_offset
        for segment in log.segments:
            if not segment.is_sync_wanted or (segment is log.active_segment and not with_active):
                continue
            for suffix in INDEX_SUFFIXES:
                self._hold(segment.path(suffix))
            if segment.has_aborted:
                self._hold(segment.path(TRANSACTION_INDEX_SUFFIX))
            self._hold(segment.path(LOG_SUFFIX))
            segment.offset_index.entries.write_out()
            segment.time_index.entries.write_out()
            segment.is_sync_wanted = False

    def _hold(self, path: str) -> None:
        file = self.log.files.get(path, create=True)
        self._disk.retain(file)
        self._files.append(file)

    def add_small_files(self) -> None:
        """Cover the files that memory is ahead of, and the names of new ones."""
        log = self.log
        for offset in sorted(log.unwritten_snapshots):
            if offset <= self.target_offset:
                path = snapshot_path(log.directory, offset)
                self._writes.append((path, log.unwritten_snapshots.pop(offset)))
        if log.is_metadata_dirty:
            log.is_metadata_dirty = False
            path = f"{log.directory}/{PARTITION_METADATA_FILE}"
            self._writes.append((path, encode_partition_metadata(log.topic_id)))
        if log.leader_epochs.is_dirty:
            log.leader_epochs.is_dirty = False
            path = f"{log.directory}/{LEADER_EPOCH_FILE}"
            self._writes.append((path, encode_epoch_checkpoint(log.leader_epochs.entries())))
        if log.is_directory_sync_wanted:
            log.is_directory_sync_wanted = False
            self.directories.append(log.directory)
        if log.is_parent_sync_wanted:
            log.is_parent_sync_wanted = False
            self.directories.append(log.log_directory)

    @property
    def is_empty(self) -> bool:
        return not (self._files or self._writes or self.directories)

    def carry_out(self) -> None:
        """Sync and write, on whatever thread; `DiskError` when the disk refuses."""
        for path, data in self._writes:
            self._disk.write_file(path, data)
        for file in self._files:
            self._disk.sync(file)
        for directory in self.directories:
            self._disk.sync_directory(directory)

    def settle(self, now_ms: int, is_done: bool) -> None:
        """Back on the loop: let go of the files, and believe what was done unless it was cut."""
        for file in self._files:
            self._disk.release(file)
        self._files.clear()
        log = self.log
        if not is_done:
            return
        log.last_flush_ms = now_ms
        if log.flush_generation == self._generation and self.target_offset > log.recovery_point:
            log.recovery_point = self.target_offset


def plan_flush(log: "PartitionLog", *, with_active: bool) -> FlushPlan:
    """What makes the log durable to its end, or to where its active segment begins."""
    plan = FlushPlan(log)
    try:
        if with_active:
            log.write_out()
        plan.add_segments(with_active=with_active)
        plan.add_small_files()
    except DiskError as error:
        plan.settle(0, False)
        log.fail(error)
        raise
    return plan


def flush_now(log: "PartitionLog", now_ms: int) -> None:
    """Make all of the log durable before returning, as on a clean stop."""
    if log.is_flushing:
        # Two writers of one small file would get into each other's way.
        log.files.disk.finish_jobs()
    plan = plan_flush(log, with_active=True)
    try:
        plan.carry_out()
    except DiskError as error:
        plan.settle(now_ms, False)
        log.fail(error)
        raise
    plan.settle(now_ms, True)


def close_log(log: "PartitionLog", now_ms: int) -> None:
    """Complete the indexes, keep the producers, flush, and give back the files."""
    log.write_out()
    try:
        log.active_segment.finish()
    except DiskError as error:
        log.fail(error)
        raise
    log.take_snapshot(log.log_end_offset)
    flush_now(log, now_ms)
    release_files(log)


def release_files(log: "PartitionLog") -> None:
    """Close every file of the log; it is not to be used any more."""
    log.is_lost = True
    for segment in log.segments:
        segment.close()
