"""Logs on their way out: renamed off the loop, after what is being written into them.

A log is known no more from the moment it is to go. Its directory is renamed once no flush of it is
under way; the renames of one log directory and the checkpoints that forget its logs are one job.
"""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

from barnabas.model.errors import DiskError
from barnabas.model.ids import TopicPartition
from barnabas.storage.checkpoints import CHECKPOINT_FILES, Checkpoints
from barnabas.storage.disk import Disk
from barnabas.storage.flush_queue import FlushQueue
from barnabas.storage.log_dirs import LogDirectory
from barnabas.storage.partition_log import PartitionLog

Refused = dict[TopicPartition, DiskError]


class LeavingLog(NamedTuple):
    """A log and the path that its directory is to have."""

    log: PartitionLog
    target: str


class Retirement:
    """The logs of one request; `then` learns the errors of those that could not be retired."""

    def __init__(
        self,
        disk: Disk,
        flushes: FlushQueue,
        checkpoints: Checkpoints,
        on_renamed: Callable[[str], None],
        then: Callable[[Refused], None],
    ) -> None:
        self._disk = disk
        self._flushes = flushes
        self._checkpoints = checkpoints
        self._on_renamed = on_renamed
        self._then = then
        self.errors: Refused = {}
        self._groups: list[tuple[LogDirectory, list[LeavingLog]]] = []
        self._open_count = 0

    def add(self, directory: LogDirectory, leaving: LeavingLog) -> None:
        """Have it go with the others of its log directory."""
        for known, logs in self._groups:
            if known is directory:
                logs.append(leaving)
                return
        self._groups.append((directory, [leaving]))

    def begin(self) -> None:
        """`then` is called when all is done: at once, when there is nothing to do."""
        self._open_count = len(self._groups)
        if not self._groups:
            self._then(self.errors)
        for directory, logs in self._groups:
            self._await_flushes(directory, logs)

    def _await_flushes(self, directory: LogDirectory, logs: list[LeavingLog]) -> None:
        waiting = len(logs)

        def note_idle() -> None:
            nonlocal waiting
            waiting -= 1
            if not waiting:
                self._checkpoints.write_then(
                    directory,
                    CHECKPOINT_FILES,
                    partial(self._settle, logs),
                    partial(self._rename, directory, logs),
                )

        for leaving in logs:
            self._flushes.hold(leaving.log, note_idle)

    def _rename(self, directory: LogDirectory, logs: list[LeavingLog]) -> None:
        """Runs away from the loop."""
        for leaving in logs:
            self._disk.rename(leaving.log.directory, leaving.target)
        self._disk.sync_directory(directory.path)

    def _settle(self, logs: list[LeavingLog], error: DiskError | None) -> None:
        for log, target in logs:
            self._flushes.let_go(log)
            if error is not None:
                self.errors[log.topic_partition] = error
            else:
                self._on_renamed(target)
        self._open_count -= 1
        if not self._open_count:
            self._then(self.errors)
