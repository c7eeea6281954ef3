"""What an interrupted broker or cleaner left in a log's directory."""

from barnabas.model.config import TopicConfig
from tests.worlds.log_world import LogWorld, produce, read_all
from tests.worlds.memory_disk import MemoryDisk

DIRECTORY = "/logs/topic-0"


def world_with_segments() -> LogWorld:
    """Twelve records in four segments of three, stopped cleanly."""
    world = LogWorld(topic=TopicConfig(segment_bytes=230))
    world.start()
    for number in range(12):
        produce(world.log(), b"%02d" % number)
    assert [one.base_offset for one in world.log().segments] == [0, 3, 6, 9]
    world.stop()
    return world


def segment(disk: MemoryDisk, base: int, suffix: str = ".log") -> bytes:
    return disk.read_file(f"{DIRECTORY}/{base:020d}{suffix}")


def place(disk: MemoryDisk, base: int, suffix: str, data: bytes) -> None:
    disk.place(f"{DIRECTORY}/{base:020d}{suffix}", data)


def values(world: LogWorld) -> list[bytes | None]:
    return [value for _, value in read_all(world.log())]


ALL = [b"%02d" % number for number in range(12)]


def leftovers(world: LogWorld) -> list[str]:
    marks = (".deleted", ".cleaned", ".swap", ".tmp")
    return [name for name in world.memory.snapshot("/logs") if name.endswith(marks)]


def test_deleted_and_temporary_files_are_removed() -> None:
    world = world_with_segments()
    place(world.memory, 0, ".log.deleted", b"x")
    place(world.memory, 3, ".snapshot.deleted", b"x")
    world.memory.place(f"{DIRECTORY}/leader-epoch-checkpoint.tmp", b"0\n")
    world.start()
    assert leftovers(world) == []
    assert values(world) == ALL


def test_an_unfinished_cleaning_is_dropped() -> None:
    world = world_with_segments()
    for suffix in (".log.cleaned", ".index.cleaned"):
        place(world.memory, 0, suffix, b"half")
    world.start()
    assert leftovers(world) == []
    assert values(world) == ALL


def test_a_finished_cleaning_takes_the_place_of_what_it_was_made_of() -> None:
    """Segments 0 and 3 were joined, without the records 1 and 4."""
    world = world_with_segments()
    first, second = segment(world.memory, 0), segment(world.memory, 3)
    size = len(first) // 3
    joined = first[:size] + first[2 * size :] + second[:size] + second[2 * size :]
    place(world.memory, 0, ".log.swap", joined)
    place(world.memory, 0, ".index.swap", b"")
    place(world.memory, 0, ".timeindex.swap", segment(world.memory, 3, ".timeindex"))
    world.start()
    assert leftovers(world) == []
    assert [one.base_offset for one in world.log().segments] == [0, 6, 9]
    assert [offset for offset, _ in read_all(world.log())] == [0, 2, 3, 5, *range(6, 12)]


def test_a_swap_whose_set_was_not_complete_is_dropped() -> None:
    """A segment was being split in two: one half is named, the other is not yet."""
    world = world_with_segments()
    whole = segment(world.memory, 3)
    size = len(whole) // 3
    place(world.memory, 4, ".log.swap", whole[size:])
    place(world.memory, 3, ".log.cleaned", whole[:size])
    world.start()
    assert leftovers(world) == []
    assert values(world) == ALL


def test_indexes_without_a_log_are_removed() -> None:
    world = world_with_segments()
    for suffix in (".index", ".timeindex", ".txnindex"):
        place(world.memory, 77, suffix, bytes(24))
    world.start()
    assert not [name for name in world.memory.snapshot("/logs") if "0077." in name]
    assert values(world) == ALL


def test_a_log_that_ends_before_its_start_begins_anew_there() -> None:
    world = world_with_segments()
    world.memory.place("/logs/log-start-offset-checkpoint", b"0\n1\ntopic 0 40\n")
    world.start()
    log = world.log()
    assert (log.log_start_offset, log.log_end_offset) == (40, 40)
    assert [one.base_offset for one in log.segments] == [40]
    assert produce(log, b"x").base_offset == 40


def test_an_empty_directory_is_an_empty_log() -> None:
    world = LogWorld()
    world.memory.make_directory(DIRECTORY)
    world.start()
    assert world.log().log_end_offset == 0
    assert produce(world.log(), b"x").base_offset == 0


def test_snapshots_that_belong_to_no_segment_are_removed_but_the_last() -> None:
    world = world_with_segments()
    snapshot = segment(world.memory, 3, ".snapshot")
    for offset in (1, 4, 13):
        place(world.memory, offset, ".snapshot", snapshot)
    world.start()
    left = [name for name in world.memory.snapshot(DIRECTORY) if name.endswith(".snapshot")]
    assert [int(name[:20]) for name in left] == [3, 6, 9]
    world.stop()
    left = [name for name in world.memory.snapshot(DIRECTORY) if name.endswith(".snapshot")]
    assert [int(name[:20]) for name in left] == [3, 6, 9, 12]


def test_a_damaged_snapshot_is_passed_over_and_the_producers_are_read_again() -> None:
    world = world_with_segments()
    place(world.memory, 12, ".snapshot", b"damaged")
    world.start()
    assert values(world) == ALL
    assert not world.lost
    assert world.log().snapshots[-1] == 12
