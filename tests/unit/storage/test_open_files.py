"""Which files stay open, and what becomes of those that are wanted again."""

import pytest

from barnabas.model.config import TopicConfig
from barnabas.model.errors import TooManyOpenFiles
from barnabas.model.ids import TopicPartition
from barnabas.storage.disk import FileSlice
from barnabas.storage.open_files import CLOSED, OpenFiles
from tests.worlds.log_world import LogWorld, bytes_of, produce, read_all, records_in
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


# Logs with few files


def test_thousands_of_partitions_need_few_open_files() -> None:
    """Every one is written to, flushed, rolled and read; the kernel grants no more than told."""
    world = LogWorld(topic=TopicConfig(segment_bytes=200))
    world.memory.open_files_max = 60
    world.start()
    world.memory.files_limit = 80
    keys = [TopicPartition("many", number) for number in range(1200)]
    for round_number in range(2):
        for key in keys:
            produce(world.log(key), b"%d" % round_number * 100, timestamp=world.wall_ms)
        for key in keys:
            world.manager.flush(world.log(key))
        for _ in range(1200):
            if world.manager.next_deadline_ms() == world.now_ms:
                world.settle()
    assert not world.lost
    assert all(world.log(key).recovery_point == 2 for key in keys)
    assert all(len(read_all(world.log(key))) == 2 for key in keys)
    world.stop()
    assert world.memory.open_count == 0
    world.memory.files_limit = None
    world.start()
    assert not world.recovered
    assert all(world.log(key).log_end_offset == 2 for key in keys)


def test_whatever_else_is_open_a_log_makes_room_for_another() -> None:
    world = LogWorld()
    world.start()
    keys = [TopicPartition("many", number) for number in range(40)]
    for key in keys:
        produce(world.log(key), b"x")
    world.memory.files_limit = world.memory.open_count
    late = TopicPartition("late", 0)
    produce(world.log(late), b"y")
    for key in keys:
        produce(world.log(key), b"z")
    assert not world.lost
    assert [value for _, value in read_all(world.log(keys[0]))] == [b"x", b"z"]


def test_large_reads_are_copied_when_files_are_short() -> None:
    world = LogWorld()
    world.memory.open_files_max = 20
    world.start()
    held: list[FileSlice] = []
    keys = [TopicPartition("many", number) for number in range(60)]
    for key in keys:
        produce(world.log(key), b"x" * 40_000)
    for key in keys:
        read = world.log(key).read(0, 1 << 20, 1, True)
        if isinstance(read, FileSlice):
            held.append(read)
        else:
            assert read is not None
            assert len(records_in(read)) == 1
    assert len(held) == 5
    assert world.memory.open_count <= 20
    assert [len(records_in(bytes_of(one))) for one in held] == [1] * len(held)
