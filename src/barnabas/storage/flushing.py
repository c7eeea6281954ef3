"""Making a log durable: what to sync and write, in which order, and what is known then.

A plan is made on the loop, carried out anywhere, and settled on the loop. What it covers is
durable only when everything before it in the order is: the files of the log directory that tell
about records must never tell more than the records that are there.
"""

from collections.abc import Sequence
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
from barnabas.model.ids import NO_TOPIC_ID
from barnabas.storage.disk import Disk, FileId
from barnabas.storage.producer_loading import snapshot_path

if TYPE_CHECKING:
    from barnabas.storage.partition_log import PartitionLog

FILES_PER_PLAN_MAX = 16
"""No further segment is begun with so many files; one has up to four."""
INDEX_SUFFIXES = (OFFSET_INDEX_SUFFIX, TIME_INDEX_SUFFIX)


class FlushPlan:
    """What one log needs to be durable up to an offset; holds its files open until settled."""

    __slots__ = (
        "_disk",
        "_files",
        "_generation",
        "_writes",
        "directory",
        "error",
        "is_durable",
        "is_partial",
        "log",
        "parent",
        "target_offset",
        "with_active",
    )

    def __init__(self, log: "PartitionLog") -> None:
        self.log = log
        self.target_offset: int = log.recovery_point
        self.directory: str | None = None
        """The log's own, when names in it have to become durable."""
        self.parent: str | None = None
        """The log directory, when the name of the log's own has to."""
        self.with_active: bool = False
        self.is_partial: bool = False
        """Whether there was more to flush than one plan takes."""
        self.is_durable: bool = True
        """Nothing is synced while no record of the log is promised to survive the power."""
        self.error: DiskError | None = None
        """Why it could not be carried out."""
        self._disk: Disk = log.files.disk
        self._files: list[FileId] = []
        self._writes: list[tuple[str, bytes]] = []
        self._generation: int = log.flush_generation

    def add_segments(self, *, with_active: bool) -> None:
        """Cover what was written or cut since the last time, in all segments or all but one.

        A log with many of them is flushed in parts, each of which holds a few files.
        """
        log = self.log
        self.with_active = with_active
        self.target_offset = log.log_end_offset if with_active else log.active_segment.base_offset
        for segment in log.segments:
            if not segment.is_sync_wanted or (segment is log.active_segment and not with_active):
                continue
            if len(self._files) >= FILES_PER_PLAN_MAX:
                self.target_offset = segment.base_offset
                self.is_partial = True
                return
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
        """Cover the files that memory is ahead of, and the names of new ones.

        A log of which nothing is durable needs its epochs no more than that after a power loss:
        they are only put there, and written again with its first record to be synced. A topic id
        is confirmed to the controller, and is durable from then on.
        """
        log = self.log
        self.is_durable = (
            log.is_metadata_dirty
            or bool(self._files)
            or log.recovery_point > log.segments[0].base_offset
        )
        if self.is_durable and log.are_small_files_unsynced:
            log.are_small_files_unsynced = False
            log.is_metadata_dirty = log.topic_id != NO_TOPIC_ID
            log.leader_epochs.is_dirty = True
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
        if self._writes:
            log.is_directory_sync_wanted = True
        if self.is_durable:
            self._add_names()
        elif self._writes:
            log.are_small_files_unsynced = True

    def _add_names(self) -> None:
        log = self.log
        if log.is_directory_sync_wanted:
            log.is_directory_sync_wanted = False
            self.directory = log.directory
        if log.is_parent_sync_wanted:
            log.is_parent_sync_wanted = False
            self.parent = log.log_directory

    @property
    def file_count(self) -> int:
        """How many files it holds open."""
        return len(self._files)

    @property
    def is_empty(self) -> bool:
        return not (self._files or self._writes or self.directory or self.parent)

    def carry_out(self) -> None:
        """Write and sync, on whatever thread; `DiskError` when the disk refuses.

        All but the name of the log's directory, which many logs have in common.
        """
        for path, data in self._writes:
            self._disk.replace_file(path, data, is_synced=self.is_durable)
        for file in self._files:
            self._disk.sync(file)
        if self.directory is not None:
            self._disk.sync_directory(self.directory)

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


def carry_out_all(plans: Sequence[FlushPlan]) -> None:
    """Carry out plans on whatever thread; each knows its error, the others go on."""
    parents: dict[str, list[FlushPlan]] = {}
    for plan in plans:
        try:
            plan.carry_out()
        except DiskError as error:
            plan.error = error
        if plan.parent is not None:
            parents.setdefault(plan.parent, []).append(plan)
    for parent, sharing in parents.items():
        try:
            sharing[0].log.files.disk.sync_directory(parent)
        except DiskError as error:
            for plan in sharing:
                plan.error = plan.error or error


def flush_now(log: "PartitionLog", now_ms: int) -> None:
    """Make all of the log durable before returning, as on a clean stop."""
    if log.is_flushing:
        # Two writers of one small file would get into each other's way.
        log.files.disk.finish_jobs()
    is_more = True
    while is_more:
        plan = plan_flush(log, with_active=True)
        is_more = plan.is_partial
        carry_out_all([plan])
        plan.settle(now_ms, plan.error is None)
        if plan.error is not None:
            log.fail(plan.error)
            raise plan.error


def prepare_close(log: "PartitionLog") -> None:
    """Complete the indexes and keep the producers: what is flushed then needs no recovery."""
    log.write_out()
    try:
        log.active_segment.finish()
    except DiskError as error:
        log.fail(error)
        raise
    log.take_snapshot(log.log_end_offset)


def release_files(log: "PartitionLog") -> None:
    """Close every file of the log; it is not to be used any more."""
    log.is_lost = True
    for segment in log.segments:
        segment.close()
