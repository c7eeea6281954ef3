"""The Disk port on files: positional writes that are complete or fail, locks, a pool for jobs."""

import errno
import fcntl
import os
import shutil
import struct
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from itertools import count
from queue import SimpleQueue
from typing import TypeVar

from barnabas.model.errors import (
    DiskError,
    DiskFull,
    DiskLost,
    FileMissing,
    LogDirectoryInUse,
    TooManyOpenFiles,
)
from barnabas.model.invariant import invariant
from barnabas.storage.disk import Buffer, DiskJob, FileId, FileStatus

IOV_MAX = 1024
JOIN_BYTES_MAX = 65536
"""Up to this size one copy and a plain write cost less than a gathered write of many parts."""
WORKERS_MAX = 3
OPEN_FILES_MAX = 256
"""What is safe where nobody has asked how many there may be."""
SPARES = 6
"""Descriptors for what opens a file only to close it again; removing a tree needs a few."""
RWF_NOWAIT: int = getattr(os, "RWF_NOWAIT", 0)
"""Read what is in the page cache and nothing else; 0 where the system has no such thing."""
FILE_MODE = 0o644
DIRECTORY_MODE = 0o755

HELD_BY_THIS_PROCESS: set[str] = set()
"""Locked paths, whichever `RealDisk` has them: a record lock keeps out other processes alone."""

T = TypeVar("T")

_FLOCK = struct.Struct("hhqqi")
_NO_SPACE = (errno.ENOSPC, errno.EDQUOT)
_NOT_SUPPORTED = (errno.EOPNOTSUPP, errno.ENOSYS, errno.EINVAL)
_NO_DESCRIPTOR = (errno.EMFILE, errno.ENFILE)


def to_disk_error(path: str, error: OSError) -> DiskError:
    """The operating error that stands for what the kernel said."""
    reason = os.strerror(error.errno) if error.errno is not None else str(error)
    if error.errno in _NO_SPACE:
        return DiskFull(path, reason)
    if error.errno == errno.ENOENT:
        return FileMissing(path, reason)
    if error.errno in _NO_DESCRIPTOR:
        return TooManyOpenFiles(path, reason)
    return DiskLost(path, reason)


class OpenFile:
    """A descriptor, where its file ends, and how many hold it open."""

    __slots__ = ("descriptor", "end", "holders", "path")

    def __init__(self, path: str, descriptor: int, end: int) -> None:
        self.path = path
        self.descriptor = descriptor
        self.end = end
        self.holders = 1


class SpareDescriptors:
    """Given back to the kernel when it has no other left, for as long as one operation takes."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._descriptors: list[int] = []
        self._refill()

    def _refill(self) -> None:
        # With none to be had, the next operation in need fails as any other would.
        with suppress(OSError):
            while len(self._descriptors) < SPARES:
                self._descriptors.append(os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC))

    def close(self) -> None:
        while self._descriptors:
            os.close(self._descriptors.pop())

    def attempt(self, operation: Callable[[], T]) -> T:
        """Do it; once more with the spare descriptors if there are no others."""
        try:
            return operation()
        except OSError as error:
            if error.errno not in _NO_DESCRIPTOR:
                raise
        with self._lock:
            self.close()
            try:
                return operation()
            finally:
                self._refill()


class RealDisk:
    """Files of this machine.

    `on_done` gets every finished job; it is called on a worker's thread and must hand the job
    to the loop, whose `on_disk_done` calls `job.done`.
    """

    def __init__(
        self, on_done: Callable[[DiskJob], None], open_files_max: int = OPEN_FILES_MAX
    ) -> None:
        self._on_done = on_done
        self._open_files_max = open_files_max
        self._retained_count: int = 0
        self._can_tell_cached: bool = RWF_NOWAIT != 0
        self._spares = SpareDescriptors()
        self._files: dict[FileId, OpenFile] = {}
        self._next_file = count(1)
        """Jobs open files too, on their own threads."""
        self._locks: dict[str, int] = {}
        self._jobs: SimpleQueue[DiskJob | None] = SimpleQueue()
        self._workers: list[threading.Thread] = []
        self._unfinished = threading.Condition()
        self._unfinished_count = 0

    # Open files

    @property
    def open_files_max(self) -> int:
        return self._open_files_max

    @property
    def retained_count(self) -> int:
        return self._retained_count

    def open(self, path: str, *, create: bool = False) -> FileId:
        flags = os.O_RDWR | os.O_CLOEXEC | (os.O_CREAT if create else 0)
        try:
            descriptor = os.open(path, flags, FILE_MODE)
            end = os.fstat(descriptor).st_size
        except OSError as error:
            raise to_disk_error(path, error) from error
        file = FileId(next(self._next_file))
        self._files[file] = OpenFile(path, descriptor, end)
        return file

    def close(self, file: FileId) -> None:
        self._let_go(file)

    def retain(self, file: FileId) -> None:
        self._files[file].holders += 1
        self._retained_count += 1

    def release(self, file: FileId) -> None:
        self._retained_count -= 1
        self._let_go(file)

    def _let_go(self, file: FileId) -> None:
        opened = self._files[file]
        opened.holders -= 1
        if opened.holders == 0:
            del self._files[file]
            try:
                os.close(opened.descriptor)
            except OSError as error:
                raise to_disk_error(opened.path, error) from error

    def descriptor(self, file: FileId) -> int:
        """The number the kernel knows the file by, for sendfile."""
        return self._files[file].descriptor

    def size(self, file: FileId) -> int:
        return self._files[file].end

    def append(self, file: FileId, parts: Sequence[Buffer]) -> None:
        opened = self._files[file]
        if len(parts) == 1:
            self._write(opened, opened.end, parts[0])
            return
        size_bytes = 0
        for part in parts:
            size_bytes += len(part)
        if size_bytes <= JOIN_BYTES_MAX:
            self._write(opened, opened.end, b"".join(parts))
            return
        self._write_parts(opened, list(parts), size_bytes)

    def write_at(self, file: FileId, position: int, data: Buffer) -> None:
        self._write(self._files[file], position, data)

    def _write(self, opened: OpenFile, position: int, data: Buffer) -> None:
        size_bytes = len(data)
        try:
            written = os.pwrite(opened.descriptor, data, position)
            while written < size_bytes:
                step = os.pwrite(opened.descriptor, memoryview(data)[written:], position + written)
                written += step
        except OSError as error:
            raise to_disk_error(opened.path, error) from error
        opened.end = max(opened.end, position + size_bytes)

    def _write_parts(self, opened: OpenFile, parts: list[Buffer], size_bytes: int) -> None:
        """One gathered write, or as many as the kernel's limits and short writes make of it."""
        position = opened.end
        first = 0
        try:
            while first < len(parts):
                written = os.pwritev(opened.descriptor, parts[first : first + IOV_MAX], position)
                position += written
                while first < len(parts) and written >= len(parts[first]):
                    written -= len(parts[first])
                    first += 1
                if written:
                    parts[first] = memoryview(parts[first])[written:]
        except OSError as error:
            raise to_disk_error(opened.path, error) from error
        invariant(
            position == opened.end + size_bytes, f"{opened.path}: a gathered write lost bytes"
        )
        opened.end = position

    def read(self, file: FileId, position: int, size_bytes: int) -> bytes:
        opened = self._files[file]
        try:
            data = os.pread(opened.descriptor, size_bytes, position)
            if len(data) == size_bytes or not data:
                return data
            pieces = [data]
            read_bytes = len(data)
            while read_bytes < size_bytes:
                data = os.pread(opened.descriptor, size_bytes - read_bytes, position + read_bytes)
                if not data:
                    break
                pieces.append(data)
                read_bytes += len(data)
        except OSError as error:
            raise to_disk_error(opened.path, error) from error
        return b"".join(pieces)

    def read_cached(self, file: FileId, position: int, size_bytes: int) -> bytes | None:
        opened = self._files[file]
        size_bytes = min(size_bytes, opened.end - position)
        if not self._can_tell_cached or size_bytes <= 0:
            return self.read(file, position, max(size_bytes, 0))
        target = bytearray(size_bytes)
        try:
            found = os.preadv(opened.descriptor, [target], position, RWF_NOWAIT)
        except BlockingIOError:
            return None
        except OSError as error:
            if error.errno not in _NOT_SUPPORTED:
                raise to_disk_error(opened.path, error) from error
            self._can_tell_cached = False
            return self.read(file, position, size_bytes)
        return bytes(target) if found == size_bytes else None

    def read_into(self, file: FileId, position: int, target: memoryview) -> int:
        opened = self._files[file]
        read_bytes = 0
        try:
            while read_bytes < len(target):
                step = os.preadv(opened.descriptor, [target[read_bytes:]], position + read_bytes)
                if step == 0:
                    break
                read_bytes += step
        except OSError as error:
            raise to_disk_error(opened.path, error) from error
        return read_bytes

    def truncate(self, file: FileId, size_bytes: int) -> None:
        opened = self._files[file]
        try:
            os.ftruncate(opened.descriptor, size_bytes)
        except OSError as error:
            raise to_disk_error(opened.path, error) from error
        opened.end = size_bytes

    def sync(self, file: FileId) -> None:
        opened = self._files[file]
        try:
            os.fdatasync(opened.descriptor)
        except OSError as error:
            raise to_disk_error(opened.path, error) from error

    # Whole files and directories

    def read_file(self, path: str) -> bytes:
        try:
            return self._spares.attempt(lambda: _read_file(path))
        except OSError as error:
            raise to_disk_error(path, error) from error

    def write_file(self, path: str, data: bytes) -> None:
        self.replace_file(path, data, is_synced=True)
        self.sync_directory(os.path.dirname(path))

    def replace_file(self, path: str, data: bytes, *, is_synced: bool) -> None:
        temporary = path + ".tmp"
        try:
            self._spares.attempt(lambda: _write_file(temporary, data, is_synced))
            os.replace(temporary, path)
        except OSError as error:
            raise to_disk_error(path, error) from error

    def exists(self, path: str) -> bool:
        return os.path.lexists(path)

    def status(self, path: str) -> FileStatus:
        try:
            found = os.stat(path)
        except OSError as error:
            raise to_disk_error(path, error) from error
        return FileStatus(found.st_size, found.st_mtime_ns // 1_000_000)

    def list_directory(self, path: str) -> list[str]:
        try:
            return self._spares.attempt(lambda: _list_directory(path))
        except OSError as error:
            raise to_disk_error(path, error) from error

    def make_directory(self, path: str) -> None:
        try:
            os.makedirs(path, DIRECTORY_MODE, exist_ok=True)
        except OSError as error:
            raise to_disk_error(path, error) from error

    def rename(self, source: str, target: str) -> None:
        try:
            os.rename(source, target)
        except OSError as error:
            raise to_disk_error(source, error) from error

    def remove_file(self, path: str) -> None:
        try:
            os.unlink(path)
        except OSError as error:
            raise to_disk_error(path, error) from error

    def remove_directory(self, path: str) -> None:
        try:
            self._spares.attempt(lambda: shutil.rmtree(path))
        except OSError as error:
            raise to_disk_error(path, error) from error

    def sync_directory(self, path: str) -> None:
        try:
            self._spares.attempt(lambda: _sync_directory(path or "."))
        except OSError as error:
            raise to_disk_error(path, error) from error

    def total_bytes(self, path: str) -> int:
        found = _file_system(path)
        return found.f_blocks * found.f_frsize

    def free_bytes(self, path: str) -> int:
        found = _file_system(path)
        return found.f_bavail * found.f_frsize

    # Locks

    def lock(self, path: str) -> None:
        """A POSIX record lock, which is what a JVM broker takes on the same file.

        Such a lock does not keep its own process out and is lost when any descriptor of the
        file is closed, so the paths this process holds are remembered by their real name.
        """
        real_path = os.path.realpath(path)
        if real_path in HELD_BY_THIS_PROCESS:
            raise LogDirectoryInUse(f"{path} is already locked by this process ({os.getpid()})")
        try:
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, FILE_MODE)
        except OSError as error:
            raise to_disk_error(path, error) from error
        try:
            fcntl.lockf(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            holder = _lock_holder(descriptor) or "another process"
            os.close(descriptor)
            if error.errno in (errno.EACCES, errno.EAGAIN):
                raise LogDirectoryInUse(f"{path} is already locked by {holder}") from error
            raise to_disk_error(path, error) from error
        self._locks[real_path] = descriptor
        HELD_BY_THIS_PROCESS.add(real_path)

    def lock_holder(self, path: str) -> str | None:
        # To close a descriptor of a file would give back a lock this process has on it.
        if os.path.realpath(path) in HELD_BY_THIS_PROCESS:
            return f"this process ({os.getpid()})"
        try:
            descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            return None
        try:
            return _lock_holder(descriptor)
        finally:
            os.close(descriptor)

    def unlock(self, path: str) -> None:
        real_path = os.path.realpath(path)
        descriptor = self._locks.pop(real_path)
        HELD_BY_THIS_PROCESS.discard(real_path)
        try:
            os.unlink(path)
        except FileNotFoundError:
            pass
        except OSError as error:
            raise to_disk_error(path, error) from error
        finally:
            os.close(descriptor)

    # Jobs

    def run(self, job: DiskJob) -> None:
        with self._unfinished:
            self._unfinished_count += 1
        self._jobs.put(job)
        if len(self._workers) < WORKERS_MAX:
            worker = threading.Thread(
                target=self._work, name=f"disk-{len(self._workers)}", daemon=True
            )
            self._workers.append(worker)
            worker.start()

    def _work(self) -> None:
        while True:
            job = self._jobs.get()
            if job is None:
                return
            try:
                job.result = job.work()
            except Exception as error:
                job.error = error
            with self._unfinished:
                self._unfinished_count -= 1
                self._unfinished.notify_all()
            self._on_done(job)

    def finish_jobs(self) -> None:
        with self._unfinished:
            while self._unfinished_count:
                self._unfinished.wait()

    def stop(self) -> None:
        """Finish the jobs that were handed over, then end the workers."""
        for _ in self._workers:
            self._jobs.put(None)
        for worker in self._workers:
            worker.join()
        self._workers.clear()
        self._spares.close()


def _read_file(path: str) -> bytes:
    with open(path, "rb") as source:
        return source.read()


def _write_file(path: str, data: bytes, is_synced: bool) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, FILE_MODE)
    try:
        written = 0
        while written < len(data):
            written += os.write(descriptor, memoryview(data)[written:])
        if is_synced:
            os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _list_directory(path: str) -> list[str]:
    with os.scandir(path) as entries:
        return sorted(_marked_name(entry) for entry in entries)


def _sync_directory(path: str) -> None:
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _marked_name(entry: os.DirEntry[str]) -> str:
    if entry.is_symlink():
        return entry.name + "@"
    return entry.name + "/" if entry.is_dir(follow_symlinks=False) else entry.name


def _lock_holder(descriptor: int) -> str | None:
    """Who holds a lock that this process would not get, in words; None when nobody does."""
    question = _FLOCK.pack(fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0)
    try:
        answer = _FLOCK.unpack(fcntl.fcntl(descriptor, fcntl.F_GETLK, question))
    except OSError:
        return None
    pid = answer[4]
    if answer[0] == fcntl.F_UNLCK:
        return None
    if pid <= 0:
        return "another process"
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as source:
            command = source.read(200).replace(b"\0", b" ").decode("utf-8", "replace").strip()
    except OSError:
        return f"process {pid}"
    return f"process {pid} ({command})"


def _file_system(path: str) -> os.statvfs_result:
    try:
        return os.statvfs(path)
    except OSError as error:
        raise to_disk_error(path, error) from error
