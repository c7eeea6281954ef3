"""The order in which RealDisk makes things durable: data before its name, a name by its directory.

A power loss cannot be had in a test. What can be seen is what the kernel was asked for and what it
found at that moment; that the memory disk keeps the same promises stands in
tests/model/test_disks_agree.py.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest

from barnabas.node.real_disk import RealDisk
from tests.worlds.kernel_calls import OPEN, RENAME, SYNC, SYNC_DIRECTORY, KernelCall, KernelCalls


@pytest.fixture
def disk() -> Iterator[RealDisk]:
    made = RealDisk(lambda job: job.done(job))
    yield made
    made.stop()


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    made = tmp_path / "logs"
    made.mkdir()
    return made


@pytest.fixture
def kernel(logs: Path, monkeypatch: pytest.MonkeyPatch) -> KernelCalls:
    return KernelCalls(logs.parent, monkeypatch)


def test_a_whole_file_is_synced_before_it_has_its_name_and_the_name_after(
    disk: RealDisk, kernel: KernelCalls, logs: Path
) -> None:
    (logs / "file").write_bytes(b"old")
    disk.write_file(str(logs / "file"), b"new" * 1000)
    assert kernel.calls == [
        KernelCall(OPEN, "logs/file.tmp"),
        KernelCall(SYNC, "logs/file.tmp", b"new" * 1000),
        KernelCall(RENAME, "logs/file.tmp", "logs/file"),
        KernelCall(OPEN, "logs"),
        KernelCall(SYNC_DIRECTORY, "logs", ["file"]),
    ]


@pytest.mark.parametrize("is_synced", [True, False])
def test_a_file_to_be_replaced_durably_is_synced_before_the_rename(
    disk: RealDisk, kernel: KernelCalls, logs: Path, is_synced: bool
) -> None:
    disk.replace_file(str(logs / "file"), b"new", is_synced=is_synced)
    synced = [KernelCall(SYNC, "logs/file.tmp", b"new")] if is_synced else []
    assert kernel.without_opens() == [
        *synced,
        KernelCall(RENAME, "logs/file.tmp", "logs/file"),
    ]


def test_an_open_file_is_synced_with_all_that_was_written_and_cut(
    disk: RealDisk, kernel: KernelCalls, logs: Path
) -> None:
    file = disk.open(str(logs / "file"), create=True)
    disk.append(file, [b"one", b"two"])
    assert kernel.without_opens() == []
    disk.sync(file)
    disk.truncate(file, 4)
    disk.write_at(file, 1, b"X")
    disk.sync(file)
    assert kernel.without_opens() == [
        KernelCall(SYNC, "logs/file", b"onetwo"),
        KernelCall(SYNC, "logs/file", b"oXet"),
    ]
    disk.close(file)


def test_a_directory_is_synced_with_the_names_in_it(
    disk: RealDisk, kernel: KernelCalls, logs: Path
) -> None:
    disk.make_directory(str(logs / "t-0"))
    disk.close(disk.open(str(logs / "t-0" / "a"), create=True))
    disk.close(disk.open(str(logs / "t-0" / "b"), create=True))
    disk.rename(str(logs / "t-0" / "a"), str(logs / "t-0" / "c"))
    disk.remove_file(str(logs / "t-0" / "b"))
    disk.sync_directory(str(logs / "t-0"))
    disk.sync_directory(str(logs))
    assert kernel.without_opens() == [
        KernelCall(RENAME, "logs/t-0/a", "logs/t-0/c"),
        KernelCall(SYNC_DIRECTORY, "logs/t-0", ["c"]),
        KernelCall(SYNC_DIRECTORY, "logs", ["t-0"]),
    ]
