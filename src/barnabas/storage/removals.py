"""Files and directories that were renamed for removal, and when each may go."""

from functools import partial
from heapq import heappop, heappush

from barnabas.model.errors import DiskError, FileMissing
from barnabas.storage.disk import Disk, DiskJob

REMOVED_AT_ONCE_MAX = 256


class Removals:
    """Removes what is due, off the loop; what is lost on the way is found at the next start."""

    __slots__ = ("_disk", "_due", "_sequence", "failures")

    def __init__(self, disk: Disk) -> None:
        self._disk = disk
        self._due: list[tuple[int, int, str, bool]] = []
        self._sequence = 0
        self.failures: list[DiskError] = []
        """Refusals that nobody has looked at yet."""

    def __len__(self) -> int:
        return len(self._due)

    def add(self, due_ms: int, path: str, *, is_directory: bool) -> None:
        self._sequence += 1
        heappush(self._due, (due_ms, self._sequence, path, is_directory))

    def next_deadline_ms(self) -> int | None:
        return self._due[0][0] if self._due else None

    def start(self, now_ms: int) -> None:
        """Hand everything that is due to the disk, in bounded portions."""
        while self._due and self._due[0][0] <= now_ms:
            portion: list[tuple[str, bool]] = []
            while self._due and self._due[0][0] <= now_ms and len(portion) < REMOVED_AT_ONCE_MAX:
                _, _, path, is_directory = heappop(self._due)
                portion.append((path, is_directory))
            self._disk.run(DiskJob("remove", partial(self._remove, portion), self._note_removed))

    def _remove(self, portion: list[tuple[str, bool]]) -> None:
        for path, is_directory in portion:
            try:
                if is_directory:
                    self._disk.remove_directory(path)
                else:
                    self._disk.remove_file(path)
            except FileMissing:
                continue

    def _note_removed(self, job: DiskJob) -> None:
        if isinstance(job.error, DiskError):
            self.failures.append(job.error)
        elif job.error is not None:
            raise job.error
