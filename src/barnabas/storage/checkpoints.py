"""The three checkpoints of each log directory, written off the loop, one job at a time for each.

What changes the names in a log directory takes its turn among them: a checkpoint must not tell of
a log that left while it was being written.
"""

from collections import deque
from collections.abc import Callable, Iterable, Sequence
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
LogsIn = Callable[[LogDirectory], Iterable[PartitionLog]]
OnFailed = Callable[[LogDirectory, DiskError], None]
Written = Callable[[DiskError | None], None]


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
CHECKPOINT_FILES = tuple(CONTENTS)


class _Turn:
    """Something to be done to a log directory: work of its own, then some checkpoints."""

    __slots__ = ("job", "names", "then", "work")

    def __init__(
        self, names: Sequence[str], work: Callable[[], None] | None, then: Written | None
    ) -> None:
        self.names = names
        self.work = work
        self.then = then
        self.job: DiskJob | None = None
        """There once it is handed to the disk."""


class Checkpoints:
    """Writes checkpoint files; `on_failed` learns when the disk refuses."""

    __slots__ = ("_disk", "_logs_in", "_on_failed", "_turns", "_written")

    def __init__(self, disk: Disk, logs_in: LogsIn, on_failed: OnFailed) -> None:
        self._disk = disk
        self._logs_in = logs_in
        self._on_failed = on_failed
        self._written: dict[_Key, Offsets] = {}
        self._turns: dict[str, deque[_Turn]] = {}
        """By directory, the one under way first; none is kept empty."""

    def write_later(self, directory: LogDirectory, name: str) -> None:
        """Write a checkpoint when its turn comes, unless it says all that already."""
        for turn in self._turns.get(directory.path, ()):
            if turn.job is None and name in turn.names:
                return
        self.write_then(directory, (name,), None)

    def write_then(
        self,
        directory: LogDirectory,
        names: Sequence[str],
        then: Written | None,
        work: Callable[[], None] | None = None,
    ) -> None:
        """Do the work, then have the checkpoints tell what is so when their turn comes.

        `then` learns how it ended: at once when there is nothing to be done.
        """
        turns = self._turns.setdefault(directory.path, deque())
        turns.append(_Turn(names, work, then))
        if len(turns) == 1:
            self._begin_next(directory)

    def _begin_next(self, directory: LogDirectory) -> None:
        """Hand the next turn to the disk; those with nothing to do, or too late, end here."""
        ended: list[_Turn] = []
        turns = self._turns[directory.path]
        while turns and turns[0].job is None:
            turn = turns[0]
            offsets = self._changed(directory, turn.names) if directory.is_online else {}
            if offsets or (turn.work is not None and directory.is_online):
                turn.job = DiskJob(
                    f"checkpoints of {directory.path}",
                    partial(_carry_out, directory, turn.work, offsets),
                    partial(self._note_done, directory, turn, offsets),
                )
                self._disk.run(turn.job)
            else:
                ended.append(turns.popleft())
        if not turns:
            del self._turns[directory.path]
        for turn in ended:
            if turn.then is not None:
                turn.then(directory.error)

    def _changed(self, directory: LogDirectory, names: Sequence[str]) -> dict[str, Offsets]:
        """What the files are to hold, of those that do not hold it yet."""
        logs = list(self._logs_in(directory))
        offsets = {name: CONTENTS[name](logs) for name in names}
        return {
            name: told
            for name, told in offsets.items()
            if self._written.get(_Key(directory.path, name)) != told
        }

    def _note_done(
        self, directory: LogDirectory, turn: _Turn, offsets: dict[str, Offsets], job: DiskJob
    ) -> None:
        turns = self._turns.get(directory.path)
        if not turns or turns[0] is not turn:
            return  # It was taken over before it was delivered.
        turns.popleft()
        error = job.error
        if error is None:
            for name, told in offsets.items():
                self._written[_Key(directory.path, name)] = told
        elif isinstance(error, DiskError):
            self._on_failed(directory, error)
        else:
            raise error
        self._begin_next(directory)
        if turn.then is not None:
            turn.then(error)

    def is_busy(self, directory: LogDirectory) -> bool:
        """Whether a turn of the directory is under way."""
        return directory.path in self._turns

    @property
    def is_any_busy(self) -> bool:
        return bool(self._turns)

    def settle_all(self) -> None:
        """After `Disk.finish_jobs`: take over what was done; its delivery finds nothing left."""
        for turns in list(self._turns.values()):
            job = turns[0].job
            if job is not None:
                job.done(job)

    def write_now(self, directory: LogDirectory, names: Sequence[str]) -> None:
        """Have checkpoints durable before returning; `DiskError` is the caller's."""
        while self.is_busy(directory):
            # Two writers of one file would get into each other's way.
            self._disk.finish_jobs()
            self.settle_all()
        for name, told in self._changed(directory, names).items():
            directory.write_checkpoint(name, told)
            self._written[_Key(directory.path, name)] = told


def _carry_out(
    directory: LogDirectory, work: Callable[[], None] | None, offsets: dict[str, Offsets]
) -> None:
    """Runs away from the loop."""
    if work is not None:
        work()
    for name, told in offsets.items():
        directory.write_checkpoint(name, told)
