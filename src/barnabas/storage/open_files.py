"""The budget of open files: the least recently used ones are closed and opened again on demand."""

from barnabas.storage.disk import Disk, FileId


class OpenFiles:
    """Files of one Disk by path.

    A pinned file (the log of an active segment) stays open; it counts, but is never chosen for
    closing. A `FileSlice` under way holds its file by itself, so closing here is always safe.
    """

    __slots__ = ("_by_path", "_pinned", "disk", "files_max")

    def __init__(self, disk: Disk, files_max: int) -> None:
        self.disk = disk
        self.files_max = files_max
        self._by_path: dict[str, FileId] = {}
        """Not pinned, least recently used first."""
        self._pinned: dict[str, FileId] = {}

    def __len__(self) -> int:
        return len(self._by_path) + len(self._pinned)

    def get(self, path: str, *, create: bool = False) -> FileId:
        """The open file of that path; valid until another path is asked for."""
        pinned = self._pinned.get(path)
        if pinned is not None:
            return pinned
        file = self._by_path.pop(path, None)
        if file is None:
            file = self.disk.open(path, create=create)
        self._by_path[path] = file
        if len(self._by_path) > 1 and len(self) > self.files_max:
            self._close_oldest()
        return file

    def pin(self, path: str, *, create: bool = False) -> FileId:
        """The open file of that path, kept open until `close`."""
        file = self.get(path, create=create)
        if path in self._by_path:
            self._pinned[path] = self._by_path.pop(path)
        return file

    def unpin(self, path: str) -> None:
        """Let the budget decide about this file from now on."""
        file = self._pinned.pop(path, None)
        if file is not None:
            self._by_path[path] = file

    def close(self, path: str) -> None:
        """Close it if it is open, as before a rename or a removal."""
        file = self._by_path.pop(path, None)
        if file is None:
            file = self._pinned.pop(path, None)
        if file is not None:
            self.disk.close(file)

    def _close_oldest(self) -> None:
        path = next(iter(self._by_path))
        self.disk.close(self._by_path.pop(path))
