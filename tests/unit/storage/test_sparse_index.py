"""The offset index and the time index of a segment."""

from hypothesis import given
from hypothesis import strategies as st

from barnabas.formats.logdir.index_entries import encode_offset_entry
from barnabas.storage.index import PENDING_BYTES_MAX, OffsetIndex, TimeIndex
from barnabas.storage.open_files import OpenFiles
from tests.worlds.memory_disk import MemoryDisk

PATH = "/i/00000000000000000100.index"
BASE = 100


def files() -> OpenFiles:
    disk = MemoryDisk()
    disk.make_directory("/i")
    return OpenFiles(disk, 10)


STEPS = st.lists(st.tuples(st.integers(1, 5), st.integers(1, 5000)), max_size=400)


@given(STEPS, st.booleans())
def test_an_offset_is_found_at_the_last_entry_not_above_it(
    steps: list[tuple[int, int]], is_written: bool
) -> None:
    index = OffsetIndex(files(), PATH, BASE, 1 << 20)
    entries: list[tuple[int, int]] = []
    offset, position = BASE, 0
    for by_offset, by_position in steps:
        offset += by_offset
        position += by_position
        index.append(offset, position)
        entries.append((offset, position))
    if is_written:
        index.entries.write_out()
    assert index.entries.count() == len(entries)
    for wanted in {BASE, BASE + 1, offset, offset + 1, *(one for one, _ in entries[::7])}:
        below = [position for one, position in entries if one <= wanted]
        assert index.position_before(wanted) == (below[-1] if below else 0)
    for wanted in {0, 1, position, position + 1, *(one for _, one in entries[::7])}:
        behind = [one for one, position in entries if position >= wanted]
        assert index.offset_at_or_after(wanted) == (behind[0] if behind else None)


@given(STEPS, st.integers(0, 800))
def test_a_cut_index_has_the_entries_below_the_cut(
    steps: list[tuple[int, int]], relative: int
) -> None:
    opened = files()
    index = OffsetIndex(opened, PATH, BASE, 1 << 20)
    offset, position = BASE, 0
    entries: list[tuple[int, int]] = []
    for by_offset, by_position in steps:
        offset += by_offset
        position += by_position
        index.append(offset, position)
        entries.append((offset, position))
    index.truncate_to(BASE + relative)
    kept = [one for one in entries if one[0] < BASE + relative]
    assert index.entries.count() == len(kept)
    assert tuple(index.last()) == (kept[-1] if kept else (BASE, 0))
    index.entries.trim()
    data = opened.disk.read_file(PATH)
    assert data == b"".join(encode_offset_entry(BASE, *one) for one in kept)
    again = OffsetIndex(opened, PATH, BASE, 1 << 20)
    assert again.entries.count() == len(kept)


@given(st.integers(0, 700), st.integers(1, 5000))
def test_a_file_allocated_ahead_is_read_to_its_last_entry(count: int, zeroes: int) -> None:
    opened = files()
    real = b"".join(encode_offset_entry(BASE, BASE + 1 + n, 10 + n) for n in range(count))
    opened.disk.write_file(PATH, real + bytes(8 * zeroes))
    index = OffsetIndex(opened, PATH, BASE, 1 << 20)
    assert index.entries.count() == count
    index.append(BASE + 1 + count, 10 + count)
    assert index.position_before(BASE + 1 + count) == 10 + count
    index.entries.trim()
    assert opened.disk.status(PATH).size_bytes == 8 * (count + 1)


@given(
    st.lists(st.tuples(st.integers(0, 40), st.integers(0, 5)), max_size=200), st.integers(0, 3000)
)
def test_a_timestamp_is_found_at_the_last_entry_not_above_it(
    steps: list[tuple[int, int]], wanted: int
) -> None:
    index = TimeIndex(files(), PATH, BASE, 1 << 20)
    kept: list[tuple[int, int]] = []
    timestamp, offset = 0, BASE
    for by_timestamp, by_offset in steps:
        timestamp += by_timestamp
        offset += by_offset
        index.append(timestamp, offset)
        if timestamp > (kept[-1][0] if kept else -1):
            kept.append((timestamp, offset))
    assert index.entries.count() == len(kept)
    below = [one for at, one in kept if at <= wanted]
    assert index.offset_before(wanted) == (below[-1] if below else BASE)
    index.truncate_to(BASE + wanted // 10)
    left = [one for one in kept if one[1] < BASE + wanted // 10]
    assert tuple(index.last()) == (left[-1] if left else (-1, BASE))


def test_entries_reach_the_file_in_bounded_portions() -> None:
    opened = files()
    index = OffsetIndex(opened, PATH, BASE, 1 << 20)
    for number in range(1000):
        index.append(BASE + 1 + number, number + 1)
    written = opened.disk.status(PATH).size_bytes
    assert 8000 - PENDING_BYTES_MAX <= written <= 8000


def test_an_index_is_full_at_its_size_and_a_time_index_keeps_one_place() -> None:
    index = OffsetIndex(files(), PATH, BASE, 80)
    times = TimeIndex(files(), PATH, BASE, 120)
    for number in range(9):
        assert not index.is_full
        assert not times.is_full
        index.append(BASE + 1 + number, number + 1)
        times.append(number, BASE + number)
    assert times.is_full
    assert not index.is_full
    index.append(BASE + 20, 20)
    assert index.is_full


def test_a_first_record_of_timestamp_zero_is_an_entry() -> None:
    opened = files()
    index = TimeIndex(opened, PATH, BASE, 1 << 20)
    index.append(0, BASE)
    index.entries.trim()
    again = TimeIndex(opened, PATH, BASE, 1 << 20)
    assert again.last() == (0, BASE)
    ahead = files()
    ahead.disk.write_file(PATH, bytes(12 * 50))
    assert TimeIndex(ahead, PATH, BASE, 1 << 20).last() == (-1, BASE)
