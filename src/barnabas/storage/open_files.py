"""The budget of open files: the least recently used ones are closed and opened again on demand.

Hot: compiled by mypyc where a compiler is there.
"""

from collections import OrderedDict
from typing import Final

from barnabas.model.errors import TooManyOpenFiles
from barnabas.storage.disk import ColdRead, Disk, FileId

CLOSED: Final = FileId(-1)


class OpenedFile:
    """What a file is open under; who keeps this looks whether it still is before each use."""

    __slots__ = ("file", "is_used")

    def __init__(self, file: FileId) -> None:
        self.file = file
        """CLOSED once the budget asked for it, or whoever removes the file."""
        self.is_used: bool = False
        """Set by who uses it without asking for its path: it is passed over once in closing."""


class OpenFiles:
    """Files of one Disk by path.

    A `FileSlice` or a flush under way holds its file by itself, so closing here is always safe;
    a quarter of the budget is left for those.
    """

    __slots__ = ("_by_path", "_held_max", "_kept_max", "disk", "is_hasty")

    def __init__(self, disk: Disk, files_max: int) -> None:
        self.disk = disk
        self._held_max: int = files_max // 4
        self._kept_max: int = max(files_max - self._held_max, 1)
        self.is_hasty: bool = False
        """Whether reads are for somebody who does not wait for the device: `ColdRead` then."""
        self._by_path: OrderedDict[str, OpenedFile] = OrderedDict()
        """Least recently used first."""

    def __len__(self) -> int:
        return len(self._by_path)

    @property
    def is_short(self) -> bool:
        """Whether so many files are held that nothing should hold another one if it need not."""
        return self.disk.retained_count >= self._held_max

    def get(self, path: str, *, create: bool = False) -> FileId:
        """The open file of that path; valid until another path is asked for."""
        return self.opened(path, create=create).file

    def opened(self, path: str, *, create: bool = False) -> OpenedFile:
        """The same, to be kept: its `file` tells when it was closed."""
        opened = self._by_path.get(path)
        if opened is not None:
            self._by_path.move_to_end(path)
            return opened
        while len(self._by_path) >= self._kept_max:
            self._close_oldest()
        opened = OpenedFile(self._open(path, create))
        self._by_path[path] = opened
        return opened

    def read(self, file: FileId, position: int, size_bytes: int, whole_bytes: int = 0) -> bytes:
        """Up to `size_bytes`; when they are cold, the first `whole_bytes` should come with them."""
        if not self.is_hasty:
            return self.disk.read(file, position, size_bytes)
        data = self.disk.read_cached(file, position, size_bytes)
        if data is None:
            if whole_bytes:
                raise ColdRead(file, 0, whole_bytes)
            raise ColdRead(file, position, size_bytes)
        return data

    def check_cached(self, file: FileId, position: int, size_bytes: int) -> None:
        """`ColdRead` in haste when the first or the last byte is cold."""
        if self.is_hasty:
            disk = self.disk
            last = position + size_bytes - 1
            if (
                disk.read_cached(file, position, 1) is None
                or disk.read_cached(file, last, 1) is None
            ):
                raise ColdRead(file, position, size_bytes)

    def _open(self, path: str, create: bool) -> FileId:
        """Whatever else this process has open, a file of ours makes room for another one."""
        while True:
            try:
                return self.disk.open(path, create=create)
            except TooManyOpenFiles:
                if not self._by_path:
                    raise
                self._close_oldest()

    def close(self, path: str) -> None:
        """Close it if it is open, as before a rename or a removal."""
        opened = self._by_path.pop(path, None)
        if opened is not None:
            self._close(opened)

    def _close_oldest(self) -> None:
        path, opened = self._by_path.popitem(last=False)
        while opened.is_used:
            opened.is_used = False
            self._by_path[path] = opened
            path, opened = self._by_path.popitem(last=False)
        self._close(opened)

    def _close(self, opened: OpenedFile) -> None:
        file = opened.file
        opened.file = CLOSED
        self.disk.close(file)
