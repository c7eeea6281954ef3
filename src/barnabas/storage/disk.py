"""The Disk port: files, directories and background jobs, as the log engine needs them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, NewType, Protocol

FileId = NewType("FileId", int)
"""An open file of one Disk; never reused while a `FileSlice` of it is being sent."""

Buffer = bytes | bytearray | memoryview


class FileStatus(NamedTuple):
    """What is known of a file without opening it."""

    size_bytes: int
    modified_ms: int
    """Time of day of the last change, in milliseconds since 1970."""


@dataclass(frozen=True, slots=True)
class FileSlice:
    """Bytes that a transport may take from an open file without copying them here.

    Whoever makes a slice holds the file open (`retain`) until the transport has let go of it
    (`release`), so that a closed segment's number is never reused under a read.
    """

    disk: "Disk"
    file: FileId
    position: int
    size_bytes: int


@dataclass(slots=True)
class DiskJob:
    """Work that leaves the loop: scans, cold reads, syncs.

    `work` runs elsewhere: it may use the Disk's files and what it was given, nothing that the
    loop changes meanwhile. `done` runs on the loop, through `on_disk_done`.
    """

    name: str
    work: Callable[[], object]
    done: Callable[["DiskJob"], None]
    result: object = None
    error: Exception | None = None


class ColdRead(Exception):
    """Bytes that only the device has were asked for by somebody who does not wait for it."""

    def __init__(self, file: FileId, position: int, size_bytes: int) -> None:
        super().__init__(f"{size_bytes} bytes at {position} of file {file}")
        self.file = file
        self.position = position
        self.size_bytes = size_bytes


class Disk(Protocol):
    """Every refusal is a `DiskError`; a write is complete or raises."""

    @property
    def open_files_max(self) -> int:
        """How many files the logs should have open at most."""
        ...

    @property
    def retained_count(self) -> int:
        """How many times a file is retained at this moment: such files stay open when closed."""
        ...

    def open(self, path: str, *, create: bool = False) -> FileId:
        """Open for reading and writing; `FileMissing` unless it exists or `create` is set.

        `TooManyOpenFiles` when another one has to be closed first.
        """
        ...

    def close(self, file: FileId) -> None:
        """Give the file back once nobody retains it."""
        ...

    def retain(self, file: FileId) -> None:
        """Keep the file open for one more holder."""
        ...

    def release(self, file: FileId) -> None:
        """Undo one `retain`; the last one closes a file whose `close` was asked for."""
        ...

    def size(self, file: FileId) -> int: ...

    def append(self, file: FileId, parts: Sequence[Buffer]) -> None:
        """Write all parts at the end of the file, in order."""
        ...

    def write_at(self, file: FileId, position: int, data: Buffer) -> None: ...

    def read(self, file: FileId, position: int, size_bytes: int) -> bytes:
        """Up to `size_bytes`; shorter only at the end of the file."""
        ...

    def read_cached(self, file: FileId, position: int, size_bytes: int) -> bytes | None:
        """As `read`, but None when the device would have to be waited for.

        Where the system cannot tell, it is waited for.
        """
        ...

    def read_into(self, file: FileId, position: int, target: memoryview) -> int:
        """Fill `target` from the file; the number of bytes read."""
        ...

    def descriptor(self, file: FileId) -> int:
        """What the system knows the open file by, to send from it uncopied; -1 if by nothing."""
        ...

    def truncate(self, file: FileId, size_bytes: int) -> None: ...

    def sync(self, file: FileId) -> None:
        """Make data and size durable; a failure is never retried."""
        ...

    def read_file(self, path: str) -> bytes: ...

    def write_file(self, path: str, data: bytes) -> None:
        """Replace the whole file, durably: temporary file, sync, rename, sync of the directory."""
        ...

    def replace_file(self, path: str, data: bytes, *, is_synced: bool) -> None:
        """Replace the whole file by a rename, its bytes durable first or not; the name becomes
        durable with its directory."""
        ...

    def exists(self, path: str) -> bool: ...

    def status(self, path: str) -> FileStatus:
        """Size and time of the last change; `FileMissing` when there is no such file."""
        ...

    def list_directory(self, path: str) -> list[str]:
        """The names in it, sorted; a directory's ends with a slash, a symbolic link's with an @."""
        ...

    def make_directory(self, path: str) -> None:
        """Make it and its missing parents; an existing one is fine."""
        ...

    def rename(self, source: str, target: str) -> None: ...

    def remove_file(self, path: str) -> None: ...

    def remove_directory(self, path: str) -> None:
        """Remove it and all that is in it."""
        ...

    def sync_directory(self, path: str) -> None:
        """Make creations, renames and removals in it durable."""
        ...

    def lock(self, path: str) -> None:
        """Take the lock file until `unlock`; `LogDirectoryInUse` names who else holds it."""
        ...

    def lock_holder(self, path: str) -> str | None:
        """Who else holds the lock file, in words; None when nobody does or there is none."""
        ...

    def unlock(self, path: str) -> None:
        """Give the lock back and remove its file."""
        ...

    def total_bytes(self, path: str) -> int:
        """The size of the file system that the path is on."""
        ...

    def free_bytes(self, path: str) -> int:
        """What is left of it for this process."""
        ...

    def run(self, job: DiskJob) -> None:
        """Do the job off the loop; the broker's `on_disk_done` gets it back."""
        ...

    def finish_jobs(self) -> None:
        """Wait until the work of all jobs is done, as before a clean stop; nothing else waits."""
        ...
