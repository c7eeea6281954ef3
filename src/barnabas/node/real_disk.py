"""The Disk port on files: positional writes that are complete or fail, locks, a pool for jobs."""

import errno
import fcntl
import os
import shutil
import struct
import threading
from collections.abc import Callable, Sequence
from itertools import count
from queue import SimpleQueue

from barnabas.model.errors import DiskError, DiskFull, DiskLost, FileMissing, LogDirectoryInUse
from barnabas.model.invariant import invariant
from barnabas.storage.disk import Buffer, DiskJob, FileId, FileStatus

IOV_MAX = 1024
JOIN_BYTES_MAX = 65536
"""Up to this size one copy and a plain write cost less than a gathered write of many parts."""
WORKERS_MAX = 3
FILE_MODE = 0o644
DIRECTORY_MODE = 0o755

HELD_BY_THIS_PROCESS: set[str] = set()
"""Locked paths, whichever `RealDisk` has them: a record lock keeps out other processes alone."""

_FLOCK = struct.Struct("hhqqi")
_NO_SPACE = (errno.ENOSPC, errno.EDQUOT)


def to_disk_error(path: str, error: OSError) -> DiskError:
    """The operating error that stands for what the kernel said."""
    reason = os.strerror(error.errno) if error.errno is not None else str(error)
    if error.errno in _NO_SPACE:
        return DiskFull(path, reason)
    if error.errno == errno.ENOENT:
        return FileMissing(path, reason)
    return DiskLost(path, reason)


class OpenFile:
    """A descriptor, where its file ends, and how many hold it open."""

    __slots__ = ("descriptor", "end", "holders", "path")

    def __init__(self, path: str, descriptor: int, end: int) -> None:
        self.path = path
        self.descriptor = descriptor
        self.end = end
        self.holders = 1


class RealDisk:
    """Files of this machine.

    `on_done` gets every finished job; it is called on a worker's thread and must hand the job
    to the loop, whose `on_disk_done` calls `job.done`.
    """

    def __init__(self, on_done: Callable[[DiskJob], None]) -> None:
        self._on_done = on_done
        self._files: dict[FileId, OpenFile] = {}
        self._next_file = count(1)
        """Jobs open files too, on their own threads."""
        self._locks: dict[str, int] = {}
        self._jobs: SimpleQueue[DiskJob | None] = SimpleQueue()
        self._workers: list[threading.Thread] = []
        self._unfinished = threading.Condition()
        self._unfinished_count = 0

    # Open files

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
        self.release(file)

    def retain(self, file: FileId) -> None:
        self._files[file].holders += 1

    def release(self, file: FileId) -> None:
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
            with open(path, "rb") as source:
                return source.read()
        except OSError as error:
            raise to_disk_error(path, error) from error

    def write_file(self, path: str, data: bytes) -> None:
        self.replace_file(path, data, is_synced=True)
        self.sync_directory(os.path.dirname(path))

    def replace_file(self, path: str, data: bytes, *, is_synced: bool) -> None:
        temporary = path + ".tmp"
        try:
            flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC
            descriptor = os.open(temporary, flags, FILE_MODE)
            try:
                written = 0
                while written < len(data):
                    written += os.write(descriptor, memoryview(data)[written:])
                if is_synced:
                    os.fsync(descriptor)
            finally:
                os.close(descriptor)
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
            with os.scandir(path) as entries:
                return sorted(_marked_name(entry) for entry in entries)
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
            shutil.rmtree(path)
        except OSError as error:
            raise to_disk_error(path, error) from error

    def sync_directory(self, path: str) -> None:
        try:
            descriptor = os.open(path or ".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            try:
                os.fsync(descriptor)
            finally:
                os.close(descriptor)
        except OSError as error:
            raise to_disk_error(path, error) from error

    def free_bytes(self, path: str) -> int:
        try:
            found = os.statvfs(path)
        except OSError as error:
            raise to_disk_error(path, error) from error
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
