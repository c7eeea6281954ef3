"""A Disk in memory that fails the n-th operation, tears it, loses power, or is full."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from enum import Enum
from functools import lru_cache
from typing import NamedTuple

from barnabas.model.errors import (
    DiskFull,
    DiskLost,
    FileMissing,
    LogDirectoryInUse,
    TooManyOpenFiles,
)
from barnabas.storage.disk import Buffer, DiskJob, FileId, FileStatus
from tests.worlds.page_cache import PageCache

NAME_BYTES_MAX = 255
"""As on every file system that a log directory is likely to be on."""


class Fault(Enum):
    """What becomes of the operation that was chosen to fail."""

    FAIL = "nothing is done and the operation is refused"
    TEAR = "half of a write is done, then it is refused"
    FULL = "half of a write is done, then there is no space"
    POWER_CUT = "half of a write is done, then nothing works until the machine is restarted"


class Node:
    """A file's bytes as read now, and as they come back after a power loss."""

    __slots__ = ("data", "modified_ms", "synced")

    def __init__(self) -> None:
        self.data = bytearray()
        self.synced = b""
        self.modified_ms = 0


class Directory:
    """Names as listed now, and as they come back after a power loss."""

    __slots__ = ("entries", "synced")

    def __init__(self) -> None:
        self.entries: dict[str, Node | Directory] = {}
        self.synced: dict[str, Node | Directory] = {}


class NameChange(NamedTuple):
    """A name that was given, or taken away when there is no child."""

    directory: Directory
    name: str
    child: Node | Directory | None


class OpenFile:
    __slots__ = ("holders", "node", "path")

    def __init__(self, path: str, node: Node) -> None:
        self.path = path
        self.node = node
        self.holders = 1


class MemoryDisk:
    """A name is durable only once its directory was synced, data once its file was.

    What was not synced is lost with the power, or any part of it is there: of the names all up
    to some moment, as a journal keeps them; of each file's new bytes any first part.
    """

    def __init__(
        self,
        on_done: Callable[[DiskJob], None] | None = None,
        capacity_bytes: int | None = None,
        open_files_max: int = 100,
    ) -> None:
        self.open_files_max = open_files_max
        self.retained_count = 0
        self.files_limit: int | None = None
        """As many files can be open and no more, as the kernel has it for a process."""
        self._root = Directory()
        self._files: dict[FileId, OpenFile] = {}
        self._next_file = 1
        self._journal: list[tuple[NameChange, ...]] = []
        """Changes of names since their directories were synced, in order; each whole or not."""
        self._locks: list[str] = []
        self._on_done = on_done
        self.capacity_bytes = capacity_bytes
        self.now_ms = 0
        """Time of day that changed files get."""
        self.jobs: list[DiskJob] = []
        """Handed over and not yet run; `run_jobs` delivers them."""
        self._worked: set[int] = set()
        self.memory = PageCache()
        self.waited_for: list[str] = []
        """Files of which cold pages were read by somebody who is no job."""
        self.is_slow = False
        """Jobs stay under way, as with a slow device: what waits for one would never go on."""
        self._is_in_job = False
        self.operations = 0
        """Changes asked for so far; the number a fault is planned at."""
        self.trace: list[str] = []
        self.reads = 0
        self.bytes_read = 0
        self._fault_at = -1
        self._fault = Fault.FAIL
        self.is_dead = False

    # Faults

    def plan(self, operation: int, fault: Fault) -> None:
        """Let the change with this number, counted from the first one ever, end so."""
        self._fault_at = operation
        self._fault = fault

    def cut_power(self, draw: random.Random | None = None) -> None:
        """Lose what was not synced; with `draw`, any part of it may have reached the disk."""
        self.kill_process()
        kept = draw.randint(0, len(self._journal)) if draw is not None else 0
        for changes in self._journal[:kept]:
            for change in changes:
                _make_durable(change)
        self._journal.clear()
        self._lose(self._root, draw)

    def kill_process(self) -> None:
        """Lose what the process held; the page cache stays."""
        self._files.clear()
        self.retained_count = 0
        self._locks.clear()
        self.jobs.clear()
        self._worked.clear()
        self.is_dead = False
        self._fault_at = -1

    def _lose(self, directory: Directory, draw: random.Random | None) -> None:
        """Let everything below be what the disk kept of it."""
        directory.entries = dict(directory.synced)
        for name in sorted(directory.synced):
            child = directory.synced[name]
            if isinstance(child, Directory):
                self._lose(child, draw)
                continue
            data = child.synced
            if draw is not None and draw.random() < 0.5:
                data = _some_of(bytes(child.data), child.synced, draw)
            child.data = bytearray(data)
            child.synced = bytes(data)

    def _rename_in(self, *changes: NameChange) -> None:
        for directory, name, child in changes:
            if child is None:
                del directory.entries[name]
            else:
                directory.entries[name] = child
        self._journal.append(changes)

    def _change(self, what: str, path: str) -> Fault | None:
        """Count one change; the fault it must end with, FAIL having been raised already."""
        self._check_alive(path)
        number = self.operations
        self.operations += 1
        self.trace.append(f"{what} {path}")
        if number != self._fault_at:
            return None
        if self._fault is Fault.FAIL:
            raise DiskLost(path, f"planned failure of operation {number}, {what}")
        return self._fault

    def _end_in(self, fault: Fault | None, path: str) -> None:
        if fault is None:
            return
        if fault is Fault.POWER_CUT:
            self.is_dead = True
            raise DiskLost(path, "the power is gone")
        if fault is Fault.FULL:
            raise DiskFull(path, "planned: no space left")
        raise DiskLost(path, "planned failure half-way")

    def _check_alive(self, path: str) -> None:
        if self.is_dead:
            raise DiskLost(path, "the power is gone")

    # Names

    def _walk(self, path: str) -> Directory | None:
        return self._descend(_names(path))

    def _descend(self, names: tuple[str, ...]) -> Directory | None:
        directory = self._root
        for name in names:
            child = directory.entries.get(name)
            if not isinstance(child, Directory):
                return None
            directory = child
        return directory

    def _parent(self, path: str) -> tuple[Directory, str]:
        names = _names(path)
        parent = self._descend(names[:-1])
        if parent is None:
            raise FileMissing(path, "no such directory")
        return parent, names[-1]

    def _node(self, path: str) -> Node:
        parent, name = self._parent(path)
        node = parent.entries.get(name)
        if node is None:
            raise FileMissing(path, "no such file")
        if isinstance(node, Directory):
            raise DiskLost(path, "is a directory")
        return node

    # Open files

    def open(self, path: str, *, create: bool = False) -> FileId:
        self._check_alive(path)
        parent, name = self._parent(path)
        node = parent.entries.get(name)
        if isinstance(node, Directory):
            raise DiskLost(path, "is a directory")
        if node is None:
            if not create:
                raise FileMissing(path, "no such file")
            fault = self._change("create", path)
            node = Node()
            node.modified_ms = self.now_ms
            self._rename_in(NameChange(parent, name, node))
            self._end_in(fault, path)
        if self.files_limit is not None and len(self._files) >= self.files_limit:
            raise TooManyOpenFiles(path, "planned: too many open files")
        file = FileId(self._next_file)
        self._next_file += 1
        self._files[file] = OpenFile(path, node)
        return file

    def close(self, file: FileId) -> None:
        self._let_go(file)

    def retain(self, file: FileId) -> None:
        self._files[file].holders += 1
        self.retained_count += 1

    def release(self, file: FileId) -> None:
        if file in self._files:
            self.retained_count -= 1
        self._let_go(file)

    def _let_go(self, file: FileId) -> None:
        opened = self._files.get(file)
        if opened is None:
            return
        opened.holders -= 1
        if opened.holders == 0:
            del self._files[file]

    @property
    def open_count(self) -> int:
        return len(self._files)

    def _opened(self, file: FileId) -> OpenFile:
        opened = self._files.get(file)
        if opened is None:
            raise DiskLost(f"file {file}", "it is not open")
        return opened

    def size(self, file: FileId) -> int:
        return len(self._opened(file).node.data)

    def append(self, file: FileId, parts: Sequence[Buffer]) -> None:
        opened = self._opened(file)
        self._write(opened, len(opened.node.data), b"".join(parts))

    def write_at(self, file: FileId, position: int, data: Buffer) -> None:
        self._write(self._opened(file), position, bytes(data))

    def _write(self, opened: OpenFile, position: int, data: bytes) -> None:
        fault = self._change(f"write {len(data)} at {position} of", opened.path)
        node = opened.node
        whole = len(data)
        if fault is not None:
            data = data[: whole // 2]
        if self.capacity_bytes is not None:
            growth = max(0, position + len(data) - len(node.data))
            room = self.capacity_bytes - self.used_bytes()
            if growth > room:
                data = data[: max(0, len(data) - (growth - room))]
        if position > len(node.data):
            node.data.extend(bytes(position - len(node.data)))
        node.data[position : position + len(data)] = data
        self.memory.take(node.data, position, len(data))
        node.modified_ms = self.now_ms
        self._end_in(fault, opened.path)
        if len(data) < whole:
            raise DiskFull(opened.path, "no space left on device")

    def read_cached(self, file: FileId, position: int, size_bytes: int) -> bytes | None:
        data = self._opened(file).node.data
        if not self.memory.holds(data, position, size_bytes):
            return None
        return self.read(file, position, size_bytes)

    def read(self, file: FileId, position: int, size_bytes: int) -> bytes:
        opened = self._opened(file)
        self._check_alive(opened.path)
        content = opened.node.data
        if not (self._is_in_job or self.memory.holds(content, position, size_bytes)):
            self.waited_for.append(opened.path)
        self.memory.take(content, position, size_bytes)
        data = bytes(memoryview(opened.node.data)[position : position + size_bytes])
        self.reads += 1
        self.bytes_read += len(data)
        return data

    def read_into(self, file: FileId, position: int, target: memoryview) -> int:
        data = self.read(file, position, len(target))
        target[: len(data)] = data
        return len(data)

    def descriptor(self, file: FileId) -> int:
        return -1

    def truncate(self, file: FileId, size_bytes: int) -> None:
        opened = self._opened(file)
        fault = self._change(f"truncate to {size_bytes}", opened.path)
        data = opened.node.data
        if size_bytes <= len(data):
            del data[size_bytes:]
        else:
            data.extend(bytes(size_bytes - len(data)))
        opened.node.modified_ms = self.now_ms
        self._end_in(fault, opened.path)

    def _check_may_wait(self, what: str) -> None:
        """Nobody may wait for a slow device but a job."""
        assert self._is_in_job or not self.is_slow, f"the loop waits: {what}"

    def sync(self, file: FileId) -> None:
        self._check_may_wait("sync")
        opened = self._opened(file)
        fault = self._change("sync", opened.path)
        if fault is None:
            opened.node.synced = bytes(opened.node.data)
        self._end_in(fault, opened.path)

    # Whole files and directories

    def read_file(self, path: str) -> bytes:
        self._check_alive(path)
        data = bytes(self._node(path).data)
        self.reads += 1
        self.bytes_read += len(data)
        return data

    def write_file(self, path: str, data: bytes) -> None:
        self.replace_file(path, data, is_synced=True)
        self.sync_directory(path.rpartition("/")[0])

    def replace_file(self, path: str, data: bytes, *, is_synced: bool) -> None:
        temporary = path + ".tmp"
        file = self.open(temporary, create=True)
        self.truncate(file, 0)
        self.append(file, (data,))
        if is_synced:
            self.sync(file)
        self.close(file)
        self.rename(temporary, path)

    def exists(self, path: str) -> bool:
        self._check_alive(path)
        names = _names(path)
        parent = self._descend(names[:-1])
        return parent is not None and (not names or names[-1] in parent.entries)

    def status(self, path: str) -> FileStatus:
        self._check_alive(path)
        node = self._node(path)
        return FileStatus(len(node.data), node.modified_ms)

    def list_directory(self, path: str) -> list[str]:
        self._check_alive(path)
        directory = self._walk(path)
        if directory is None:
            raise FileMissing(path, "no such directory")
        return sorted(
            name + "/" if isinstance(child, Directory) else name
            for name, child in directory.entries.items()
        )

    def make_directory(self, path: str) -> None:
        self._check_alive(path)
        directory = self._root
        walked = ""
        for name in _names(path):
            walked = f"{walked}/{name}"
            child = directory.entries.get(name)
            if child is None:
                fault = self._change("mkdir", walked)
                child = Directory()
                self._rename_in(NameChange(directory, name, child))
                self._end_in(fault, walked)
            if not isinstance(child, Directory):
                raise DiskLost(walked, "not a directory")
            directory = child

    def rename(self, source: str, target: str) -> None:
        self._check_alive(source)
        old_parent, old_name = self._parent(source)
        child = old_parent.entries.get(old_name)
        if child is None:
            raise FileMissing(source, "no such file")
        new_parent, new_name = self._parent(target)
        fault = self._change(f"rename to {target}:", source)
        self._rename_in(
            NameChange(old_parent, old_name, None), NameChange(new_parent, new_name, child)
        )
        self._end_in(fault, source)

    def remove_file(self, path: str) -> None:
        self._check_alive(path)
        self._node(path)
        parent, name = self._parent(path)
        fault = self._change("remove", path)
        self._rename_in(NameChange(parent, name, None))
        self._end_in(fault, path)

    def remove_directory(self, path: str) -> None:
        self._check_alive(path)
        directory = self._walk(path)
        if directory is None:
            raise FileMissing(path, "no such directory")
        for name in sorted(directory.entries):
            if isinstance(directory.entries[name], Directory):
                self.remove_directory(f"{path}/{name}")
            else:
                self.remove_file(f"{path}/{name}")
        parent, name = self._parent(path)
        fault = self._change("rmdir", path)
        self._rename_in(NameChange(parent, name, None))
        self._end_in(fault, path)

    def sync_directory(self, path: str) -> None:
        self._check_may_wait(f"sync {path}")
        self._check_alive(path)
        directory = self._walk(path)
        if directory is None:
            raise FileMissing(path, "no such directory")
        fault = self._change("sync directory", path)
        if fault is None:
            self._commit(directory)
        self._end_in(fault, path)

    def _commit(self, directory: Directory) -> None:
        """Every change that touches the directory is durable, and with it its other half."""
        left: list[tuple[NameChange, ...]] = []
        for changes in self._journal:
            if any(change.directory is directory for change in changes):
                for change in changes:
                    _make_durable(change)
            else:
                left.append(changes)
        self._journal = left

    def lock(self, path: str) -> None:
        if path in self._locks:
            raise LogDirectoryInUse(f"{path} is already locked by this process")
        self.close(self.open(path, create=True))
        self._locks.append(path)

    def lock_holder(self, path: str) -> str | None:
        return "this process" if path in self._locks else None

    def unlock(self, path: str) -> None:
        self._locks.remove(path)
        self.remove_file(path)

    def total_bytes(self, path: str) -> int:
        return 1 << 41 if self.capacity_bytes is None else self.capacity_bytes

    def free_bytes(self, path: str) -> int:
        if self.capacity_bytes is None:
            return 1 << 40
        return self.capacity_bytes - self.used_bytes()

    def used_bytes(self) -> int:
        return _content_bytes(self._root)

    # Jobs

    def run(self, job: DiskJob) -> None:
        self.jobs.append(job)

    def finish_jobs(self) -> None:
        """Do all the work; what was done is still to be delivered."""
        self._check_may_wait("finish_jobs")
        for job in self.jobs:
            if id(job) not in self._worked:
                self._worked.add(id(job))
                self._do(job)

    def _do(self, job: DiskJob) -> None:
        self._is_in_job = True
        try:
            job.result = job.work()
        except Exception as error:
            job.error = error
        finally:
            self._is_in_job = False

    def run_jobs(self) -> int:
        """Do the work handed over so far and deliver it; how many jobs there were."""
        if self.is_slow:
            return 0
        self.finish_jobs()
        jobs = self.jobs
        self.jobs = []
        self._worked.clear()
        for job in jobs:
            if self._on_done is not None:
                self._on_done(job)
            else:
                job.done(job)
        return len(jobs)

    # What tests look at

    def snapshot(self, path: str) -> dict[str, bytes]:
        """Every file below `path` with its content, by its path from there."""
        directory = self._walk(path)
        found: dict[str, bytes] = {}
        if directory is not None:
            _collect(directory, "", found)
        return found

    def place(self, path: str, data: bytes) -> None:
        """Put a durable file there, as if it had always been."""
        names = _names(path)
        directory = self._root
        for name in names[:-1]:
            child = directory.entries.setdefault(name, Directory())
            directory.synced[name] = child
            assert isinstance(child, Directory)
            directory = child
        node = Node()
        node.data = bytearray(data)
        node.synced = bytes(data)
        node.modified_ms = self.now_ms
        directory.entries[names[-1]] = node
        directory.synced[names[-1]] = node


def _make_durable(change: NameChange) -> None:
    if change.child is None:
        change.directory.synced.pop(change.name, None)
    else:
        change.directory.synced[change.name] = change.child


@lru_cache(4096)
def _names(path: str) -> tuple[str, ...]:
    names = tuple(name for name in path.split("/") if name)
    if len(path) > NAME_BYTES_MAX and any(len(name) > NAME_BYTES_MAX for name in names):
        raise DiskLost(path, "a name of it is too long")
    return names


def _some_of(data: bytes, synced: bytes, draw: random.Random) -> bytes:
    """What a disk may show of writes it was never asked to keep."""
    if data[: len(synced)] != synced:
        return data if draw.random() < 0.5 else synced
    reached = draw.randint(len(synced), len(data))
    kept = data[:reached]
    if draw.random() < 0.3:
        kept += bytes(len(data) - reached)
    return kept


def _content_bytes(directory: Directory) -> int:
    return sum(
        _content_bytes(child) if isinstance(child, Directory) else len(child.data)
        for child in directory.entries.values()
    )


def _collect(directory: Directory, prefix: str, found: dict[str, bytes]) -> None:
    for name in sorted(directory.entries):
        if isinstance(child := directory.entries[name], Directory):
            _collect(child, f"{prefix}{name}/", found)
        else:
            found[prefix + name] = bytes(child.data)
