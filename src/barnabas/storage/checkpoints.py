"""The three checkpoints of each log directory: written when due, changed and not under way.

They are written off the loop, but for those that must be durable before something is cut.
"""

from collections.abc import Callable, Iterable
from functools import partial
from typing import NamedTuple

from barnabas.formats.logdir.names import (
    HIGH_WATERMARK_FILE,
    LOG_START_OFFSET_FILE,
    RECOVERY_POINT_FILE,
)
from barnabas.model.errors import DiskError
from barnabas.model.ids import TopicPartition
from barnabas.storage.disk import Disk, DiskJob
from barnabas.storage.log_dirs import LogDirectory
from barnabas.storage.partition_log import PartitionLog

Offsets = dict[TopicPartition, int]
OnFailed = Callable[[LogDirectory, DiskError], None]


class _Key(NamedTuple):
    directory: str
    name: str


def recovery_points(logs: Iterable[PartitionLog]) -> Offsets:
    return {log.topic_partition: log.recovery_point for log in logs}


def high_watermarks(logs: Iterable[PartitionLog]) -> Offsets:
    return {log.topic_partition: log.high_watermark for log in logs}


def log_start_offsets(logs: Iterable[PartitionLog]) -> Offsets:
    """Only of logs that begin inside their first segment; the others' files tell it."""
    return {
        log.topic_partition: log.log_start_offset
        for log in logs
        if log.log_start_offset > log.segments[0].base_offset
    }


CONTENTS: dict[str, Callable[[Iterable[PartitionLog]], Offsets]] = {
    RECOVERY_POINT_FILE: recovery_points,
    LOG_START_OFFSET_FILE: log_start_offsets,
    HIGH_WATERMARK_FILE: high_watermarks,
}


class Checkpoints:
    """Writes checkpoint files; `on_failed` learns when the disk refuses."""

    __slots__ = ("_disk", "_on_failed", "_under_way", "_written")

    def __init__(self, disk: Disk, on_failed: OnFailed) -> None:
        self._disk = disk
        self._on_failed = on_failed
        self._written: dict[_Key, Offsets] = {}
        self._under_way: dict[_Key, DiskJob] = {}

    def write_later(self, directory: LogDirectory, name: str, logs: Iterable[PartitionLog]) -> None:
        """Hand a checkpoint to the disk unless it says that already or is being written."""
        key = _Key(directory.path, name)
        offsets = CONTENTS[name](logs)
        if key in self._under_way or self._written.get(key) == offsets:
            return
        job = DiskJob(
            f"checkpoint {directory.file(name)}",
            partial(directory.write_checkpoint, name, offsets),
            partial(self._note_written, key, directory, offsets),
        )
        self._under_way[key] = job
        self._disk.run(job)

    def _note_written(
        self, key: _Key, directory: LogDirectory, offsets: Offsets, job: DiskJob
    ) -> None:
        if self._under_way.get(key) is not job:
            return
        del self._under_way[key]
        if isinstance(job.error, DiskError):
            self._on_failed(directory, job.error)
        elif job.error is not None:
            raise job.error
        else:
            self._written[key] = offsets

    def settle_all(self) -> None:
        """After `Disk.finish_jobs`: take over what was done; its delivery finds nothing left."""
        for job in list(self._under_way.values()):
            job.done(job)

    def write_now(self, directory: LogDirectory, name: str, logs: Iterable[PartitionLog]) -> None:
        """Have a checkpoint durable before returning; `DiskError` is the caller's."""
        key = _Key(directory.path, name)
        offsets = CONTENTS[name](logs)
        if self._under_way.pop(key, None) is not None:
            # Two writers of one file would get into each other's way.
            self._disk.finish_jobs()
        elif self._written.get(key) == offsets:
            return
        directory.write_checkpoint(name, offsets)
        self._written[key] = offsets
