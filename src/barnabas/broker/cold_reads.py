"""Records that only the device has: brought into memory in a job, so that nobody else waits."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Final

from barnabas.model.errors import DiskError
from barnabas.storage.disk import ColdRead, Disk, DiskJob

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker

UNDER_WAY_MAX: Final = 256
"""Above it a reader has to wait for the device with everybody else."""
AHEAD_BYTES: Final = 1 << 20
"""So much is brought in at least: what follows is asked for next."""
CHUNK_BYTES: Final = 1 << 18

BroughtIn = Callable[[bool, int], None]
"""Takes whether the disk did it, and the time."""


class ColdReads:
    """The jobs that read for the sake of the page cache."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._under_way = 0

    def begin(self, cold: list[ColdRead], then: BroughtIn) -> bool:
        """Bring all of it in, then call `then`; False when there is no room for another job.

        Its files are held until then, whatever becomes of their log.
        """
        disk = self._broker.disk
        is_short = disk.retained_count >= disk.open_files_max // 4
        if self._under_way >= UNDER_WAY_MAX or is_short:
            return False
        self._under_way += 1
        for one in cold:
            disk.retain(one.file)
        work = partial(_read_through, disk, cold)
        disk.run(DiskJob("cold reads", work, partial(self._note_done, cold, then)))
        return True

    def _note_done(self, cold: list[ColdRead], then: BroughtIn, job: DiskJob) -> None:
        self._under_way -= 1
        for one in cold:
            self._broker.disk.release(one.file)
        if job.error is not None and not isinstance(job.error, DiskError):
            raise job.error
        then(job.error is None, self._broker.now_ms)


def _read_through(disk: Disk, cold: list[ColdRead]) -> None:
    """Runs away from the loop."""
    for one in cold:
        position = one.position
        end = position + max(one.size_bytes, AHEAD_BYTES)
        while position < end and disk.read(one.file, position, min(CHUNK_BYTES, end - position)):
            position += CHUNK_BYTES
