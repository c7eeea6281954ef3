"""Which files stay open, and what becomes of those that are wanted again."""

import pytest

from barnabas.model.errors import TooManyOpenFiles
from barnabas.storage.open_files import CLOSED, OpenFiles
from tests.worlds.memory_disk import MemoryDisk


def files_of(count: int, *, files_max: int = 4) -> tuple[MemoryDisk, OpenFiles]:
    disk = MemoryDisk()
    disk.make_directory("/d")
    files = OpenFiles(disk, files_max)
    for number in range(count):
        files.get(f"/d/{number}", create=True)
    return disk, files


def test_the_least_recently_used_is_closed() -> None:
    disk, files = files_of(3)
    kept = files.opened("/d/0")
    second = files.opened("/d/1")
    files.get("/d/0")
    files.get("/d/2")
    files.get("/d/3", create=True)
    assert second.file == CLOSED
    assert kept.file != CLOSED
    assert disk.open_count == len(files) == 3


def test_one_that_is_in_use_is_passed_over_once() -> None:
    _, files = files_of(3)
    active = files.opened("/d/0")
    files.get("/d/1")
    files.get("/d/2")
    active.is_used = True
    files.get("/d/3", create=True)
    assert active.file != CLOSED
    for number in (4, 5, 6):
        files.get(f"/d/{number}", create=True)
    assert active.file == CLOSED
    again = files.opened("/d/0")
    assert again is not active
    assert again.file != CLOSED


def test_all_in_use_does_not_keep_another_from_being_opened() -> None:
    disk, files = files_of(3)
    for number in range(3):
        files.opened(f"/d/{number}").is_used = True
    files.get("/d/3", create=True)
    assert disk.open_count == 3


def test_a_refusal_closes_others_until_it_is_granted() -> None:
    disk, files = files_of(3)
    disk.files_limit = 2
    held = files.get("/d/2")
    disk.retain(held)
    files.get("/d/3", create=True)
    assert disk.open_count == 2
    disk.files_limit = 1
    with pytest.raises(TooManyOpenFiles):
        files.get("/d/4", create=True)
    disk.release(held)
    disk.files_limit = 2
    files.get("/d/4", create=True)
