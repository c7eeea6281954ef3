"""The Disk on files of this machine."""

import errno
import os
import resource
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from barnabas.model.errors import (
    DiskError,
    DiskFull,
    DiskLost,
    FileMissing,
    LogDirectoryRefused,
    TooManyOpenFiles,
)
from barnabas.node import real_disk
from barnabas.node.real_disk import IOV_MAX, JOIN_BYTES_MAX, WORKERS_MAX, RealDisk
from barnabas.storage.disk import DiskJob
from tests.tools import go_without


@pytest.fixture
def disk() -> Iterator[RealDisk]:
    made = RealDisk(lambda job: job.done(job))
    yield made
    made.stop()


def test_parts_are_written_at_the_end_in_order(disk: RealDisk, tmp_path: Path) -> None:
    path = tmp_path / "file"
    file = disk.open(str(path), create=True)
    disk.append(file, [b"one"])
    disk.append(file, [b"two", bytearray(b"three"), memoryview(b"four")])
    many = [b"%d" % (number % 10) for number in range(3 * IOV_MAX + 7)]
    large = [b"x" * JOIN_BYTES_MAX, *many, b"y" * 5]
    disk.append(file, large)
    expected = b"onetwothreefour" + b"".join(large)
    assert path.read_bytes() == expected
    assert disk.size(file) == len(expected)
    assert disk.read(file, 3, 8) == b"twothree"
    assert disk.read(file, len(expected) - 3, 100) == b"yyy"
    assert disk.read(file, len(expected), 10) == b""
    target = bytearray(6)
    assert disk.read_into(file, 0, memoryview(target)) == 6
    assert target == b"onetwo"
    assert disk.read_into(file, len(expected) - 2, memoryview(target)) == 2
    disk.close(file)


@pytest.mark.parametrize("step", [1, 7, 1000])
def test_short_writes_are_completed(
    disk: RealDisk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: int
) -> None:
    """The kernel may take less than it was given."""
    path = tmp_path / "file"
    file = disk.open(str(path), create=True)
    write_one, write_many = os.pwrite, os.pwritev

    def short(descriptor: int, data: bytes, position: int) -> int:
        return write_one(descriptor, bytes(data)[:step], position)

    def short_many(descriptor: int, parts: list[bytes], position: int) -> int:
        return write_many(descriptor, [b"".join(parts)[: step * 50]], position)

    monkeypatch.setattr(real_disk.os, "pwrite", short)
    monkeypatch.setattr(real_disk.os, "pwritev", short_many)
    parts = [bytes([65 + number % 26]) * (number % 40) for number in range(300)]
    disk.append(file, parts)
    disk.append(file, [b"z" * JOIN_BYTES_MAX, b"end"])
    monkeypatch.undo()
    assert path.read_bytes() == b"".join(parts) + b"z" * JOIN_BYTES_MAX + b"end"


@pytest.mark.parametrize(
    ("number", "kind"),
    [(errno.ENOSPC, DiskFull), (errno.EDQUOT, DiskFull), (errno.EIO, DiskLost)],
)
def test_refusals_have_their_own_errors(
    disk: RealDisk,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    number: int,
    kind: type[DiskError],
) -> None:
    file = disk.open(str(tmp_path / "file"), create=True)
    disk.append(file, [b"kept"])

    def refuse(*args: object) -> int:
        raise OSError(number, os.strerror(number))

    for name in ("pwrite", "pwritev", "fdatasync", "ftruncate", "pread"):
        monkeypatch.setattr(real_disk.os, name, refuse)
    for operation in (
        lambda: disk.append(file, [b"x"]),
        lambda: disk.append(file, [b"x" * JOIN_BYTES_MAX, b"y"]),
        lambda: disk.sync(file),
        lambda: disk.truncate(file, 0),
        lambda: disk.read(file, 0, 1),
    ):
        with pytest.raises(kind) as refused:
            operation()
        assert str(tmp_path / "file") in str(refused.value)
    monkeypatch.undo()
    assert disk.size(file) == 4


def test_a_full_device_is_a_full_disk(disk: RealDisk) -> None:
    if not os.path.exists("/dev/full"):
        go_without("no /dev/full here")
    file = disk.open("/dev/full")
    with pytest.raises(DiskFull):
        disk.append(file, [b"x"])


def test_what_is_not_there_is_missing(disk: RealDisk, tmp_path: Path) -> None:
    path = str(tmp_path / "nothing")
    for operation in (
        lambda: disk.open(path),
        lambda: disk.read_file(path),
        lambda: disk.status(path),
        lambda: disk.remove_file(path),
        lambda: disk.rename(path, path + "2"),
        lambda: disk.list_directory(path),
    ):
        with pytest.raises(FileMissing):
            operation()
    assert not disk.exists(path)


def test_a_file_closed_under_a_holder_stays_open_for_it(disk: RealDisk, tmp_path: Path) -> None:
    first = disk.open(str(tmp_path / "first"), create=True)
    disk.append(first, [b"first"])
    disk.retain(first)
    descriptor = disk.descriptor(first)
    disk.close(first)
    second = disk.open(str(tmp_path / "second"), create=True)
    disk.append(second, [b"other"])
    assert disk.descriptor(second) != descriptor
    assert disk.read(first, 0, 5) == b"first"
    disk.release(first)
    with pytest.raises(KeyError):
        disk.read(first, 0, 5)
    third = disk.open(str(tmp_path / "first"))
    assert third not in (first, second)


def test_a_whole_file_is_replaced_at_once(disk: RealDisk, tmp_path: Path) -> None:
    path = tmp_path / "checkpoint"
    disk.write_file(str(path), b"first")
    inode = path.stat().st_ino
    disk.write_file(str(path), b"")
    assert path.read_bytes() == b""
    assert path.stat().st_ino != inode
    assert [one.name for one in tmp_path.iterdir()] == ["checkpoint"]


def test_directories_list_what_they_hold_and_of_what_kind(disk: RealDisk, tmp_path: Path) -> None:
    disk.make_directory(str(tmp_path / "b" / "c"))
    disk.make_directory(str(tmp_path / "b"))
    (tmp_path / "a").write_bytes(b"12345")
    (tmp_path / "link").symlink_to(tmp_path / "b")
    assert disk.list_directory(str(tmp_path)) == ["a", "b/", "link@"]
    status = disk.status(str(tmp_path / "a"))
    assert status.size_bytes == 5
    assert abs(status.modified_ms - os.stat(tmp_path / "a").st_mtime * 1000) < 2
    disk.sync_directory(str(tmp_path))
    disk.remove_directory(str(tmp_path / "b"))
    disk.remove_file(str(tmp_path / "link"))
    assert disk.list_directory(str(tmp_path)) == ["a"]
    assert disk.total_bytes(str(tmp_path)) >= disk.free_bytes(str(tmp_path)) > 0


def test_cutting_moves_the_end(disk: RealDisk, tmp_path: Path) -> None:
    file = disk.open(str(tmp_path / "file"), create=True)
    disk.append(file, [b"0123456789"])
    disk.truncate(file, 4)
    disk.append(file, [b"ab"])
    disk.write_at(file, 1, b"XY")
    disk.write_at(file, 5, b"12345")
    assert disk.size(file) == 10
    assert (tmp_path / "file").read_bytes() == b"0XY3a12345"
    disk.sync(file)


def test_a_lock_keeps_this_process_and_others_out_and_names_who_has_it(
    disk: RealDisk, tmp_path: Path
) -> None:
    path = str(tmp_path / ".lock")
    disk.lock(path)
    with pytest.raises(LogDirectoryRefused, match=str(os.getpid())):
        RealDisk(lambda job: None).lock(path)
    program = (
        "import sys\n"
        "from barnabas.node.real_disk import RealDisk\n"
        "from barnabas.model.errors import LogDirectoryRefused\n"
        "try:\n"
        "    RealDisk(lambda job: None).lock(sys.argv[1])\n"
        "except LogDirectoryRefused as refused:\n"
        "    print(refused)\n"
    )
    command = [sys.executable, "-c", program, path]
    told = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert f"process {os.getpid()}" in told
    disk.unlock(path)
    assert not os.path.exists(path)
    told = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert told == ""
    disk.lock(path)
    disk.unlock(path)


def test_jobs_run_on_a_few_threads_and_come_back_with_result_or_error(tmp_path: Path) -> None:
    done: list[DiskJob] = []
    threads: set[int] = set()
    disk = RealDisk(done.append)

    def work() -> int:
        threads.add(threading.get_ident())
        return 7

    def refuse() -> None:
        raise DiskLost("path", "reason")

    jobs = [DiskJob("work", work, lambda job: None) for _ in range(50)]
    jobs.append(DiskJob("refuse", refuse, lambda job: None))
    for job in jobs:
        disk.run(job)
    disk.finish_jobs()
    assert all(job.result == 7 for job in jobs[:-1])
    assert isinstance(jobs[-1].error, DiskLost)
    disk.stop()
    assert sorted(map(id, done)) == sorted(map(id, jobs))
    assert threading.get_ident() not in threads
    assert len(threads) <= WORKERS_MAX


def test_waiting_for_jobs_waits_for_all_of_them() -> None:
    disk = RealDisk(lambda job: None)
    begin = threading.Event()
    order: list[str] = []

    def slow() -> None:
        begin.wait()
        order.append("job")

    disk.run(DiskJob("slow", slow, lambda job: None))
    waiter = threading.Thread(target=lambda: (disk.finish_jobs(), order.append("waited")))
    waiter.start()
    begin.set()
    waiter.join()
    assert order == ["job", "waited"]
    disk.stop()


def test_without_a_descriptor_left_small_files_are_still_written(tmp_path: Path) -> None:
    disk = RealDisk(lambda job: None)
    disk.make_directory(str(tmp_path / "tree" / "below"))
    kept = disk.open(str(tmp_path / "kept"), create=True)
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    highest = max(int(name) for name in os.listdir("/proc/self/fd"))
    # Every number up to the limit is taken then.
    fillers = [os.dup(0) for _ in range(highest)]
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(fillers) + 1, hard))
    try:
        with pytest.raises(TooManyOpenFiles):
            disk.open(str(tmp_path / "other"), create=True)
        disk.write_file(str(tmp_path / "small"), b"content")
        assert disk.read_file(str(tmp_path / "small")) == b"content"
        disk.remove_directory(str(tmp_path / "tree"))
        assert disk.list_directory(str(tmp_path)) == ["kept", "small"]
        disk.close(kept)
        disk.close(disk.open(str(tmp_path / "other"), create=True))
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        for filler in fillers:
            os.close(filler)
    disk.stop()


def test_what_is_in_memory_is_read_without_waiting(tmp_path: Path) -> None:
    disk = RealDisk(lambda job: None)
    path = tmp_path / "file"
    file = disk.open(str(path), create=True)
    data = os.urandom(300_000)
    disk.append(file, [data])
    assert disk.read_cached(file, 1000, 5000) == data[1000:6000]
    assert disk.read_cached(file, 299_000, 5000) == data[299_000:]
    assert disk.read_cached(file, 300_000, 10) == b""
    disk.sync(file)
    descriptor = disk.descriptor(file)
    os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
    # Whether it is gone now is for the file system to say; never is it something else.
    assert disk.read_cached(file, 200_000, 5000) in (None, data[200_000:205_000])
    assert disk.read(file, 200_000, 5000) == data[200_000:205_000]
    assert disk.read_cached(file, 200_000, 5000) == data[200_000:205_000]
    disk.close(file)
    disk.stop()
