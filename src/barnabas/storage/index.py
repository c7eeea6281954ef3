"""The two sparse indexes of a segment: offset to position, and timestamp to offset.

Entries are kept in memory until a handful has gathered, or the segment is flushed, rolled or
closed: what a crash takes from an index is rebuilt from the log, which is read anyway from the
recovery point on. Files of JVM brokers may end in zeroes, because they are allocated ahead.
"""

from typing import Final

from barnabas.formats.logdir.index_entries import (
    OFFSET_ENTRY_SIZE,
    RELATIVE_OFFSET_MAX,
    TIME_ENTRY_SIZE,
    OffsetEntry,
    TimeEntry,
    decode_offset_entry,
    decode_time_entry,
    encode_offset_entry,
    encode_time_entry,
)
from barnabas.storage.disk import FileId
from barnabas.storage.open_files import OpenFiles

NO_TIMESTAMP: Final = -1
PENDING_BYTES_MAX: Final = 768
"""Entries gathered in memory before they are written: 96 offset or 64 time entries."""
BLOCK_BYTES: Final = 4080
"""What a look-up reads at once; a multiple of both entry sizes."""


class EntryFile:
    """A file of entries of one size, sorted by the big-endian number each begins with."""

    __slots__ = ("_count", "_files", "_pending", "entry_size", "key_size", "path")

    def __init__(self, files: OpenFiles, path: str, entry_size: int, key_size: int) -> None:
        self._files = files
        self.path = path
        self.entry_size = entry_size
        self.key_size = key_size
        self._count = -1
        """Entries in the file; -1 until they were counted."""
        self._pending = bytearray()

    def rebind(self, files: OpenFiles) -> None:
        self._files = files

    def begin(self) -> None:
        """There is no file yet; the first entries that are written, or a sync, make it."""
        self._count = 0

    def count(self) -> int:
        if self._count < 0:
            self._count = self._count_in_file()
        return self._count + len(self._pending) // self.entry_size

    def _count_in_file(self) -> int:
        """The entries of the file without the zeroes that were allocated ahead."""
        disk = self._files.disk
        file = self._files.get(self.path, create=True)
        size = self.entry_size
        high = disk.size(file) // size
        zero = bytes(size)
        whole = high * size
        if high == 0 or self._files.read(file, whole - size, size, whole) != zero:
            return high
        if high == 1 and size == TIME_ENTRY_SIZE:
            return high  # A first record of timestamp 0, and nothing allocated ahead.
        low = 0
        while low < high:
            middle = (low + high) // 2
            if self._files.read(file, middle * size, size, whole) == zero:
                high = middle
            else:
                low = middle + 1
        return low

    def entry(self, number: int) -> bytes:
        """The bytes of one entry, counted from 0."""
        size = self.entry_size
        total = self.count()
        in_file = self._count
        if number >= in_file:
            at = (number - in_file) * size
            return bytes(self._pending[at : at + size])
        if number >= total or number < 0:
            raise IndexError(f"{self.path}: entry {number} of {total}")
        return self._read(self._files.get(self.path), number * size, size)

    def append(self, entry: bytes) -> None:
        self._pending += entry
        if len(self._pending) >= PENDING_BYTES_MAX:
            self.write_out()

    def write_out(self) -> None:
        """Bring what is kept in memory to the file."""
        if not self._pending:
            return
        if self._count < 0:
            self._count = self._count_in_file()
        disk = self._files.disk
        file = self._files.get(self.path, create=True)
        disk.write_at(file, self._count * self.entry_size, self._pending)
        self._count += len(self._pending) // self.entry_size
        self._pending = bytearray()

    def find(self, key: int) -> bytes | None:
        """The last entry whose key is not above `key`; None when all are above or there is none."""
        total = self.count()
        in_file = self._count
        size = self.entry_size
        if total == 0:
            return None
        if total > in_file and self._key(bytes(self._pending), 0) <= key:
            return self._last_not_above(bytes(self._pending), key)
        if in_file == 0:
            return None
        file = self._files.get(self.path)
        per_block = BLOCK_BYTES // size
        low, high = 0, (in_file - 1) // per_block
        while low < high:
            middle = (low + high + 1) // 2
            first = self._read(file, middle * per_block * size, size)
            if self._key(first, 0) <= key:
                low = middle
            else:
                high = middle - 1
        number = min(per_block, in_file - low * per_block)
        block = self._read(file, low * per_block * size, number * size)
        if self._key(block, 0) > key:
            return None
        return self._last_not_above(block, key)

    def _read(self, file: FileId, position: int, size_bytes: int) -> bytes:
        return self._files.read(file, position, size_bytes, self._count * self.entry_size)

    def _key(self, data: bytes, at: int) -> int:
        return int.from_bytes(data[at : at + self.key_size], "big", signed=True)

    def _last_not_above(self, block: bytes, key: int) -> bytes:
        """The last entry of the block not above `key`; the first one is known not to be."""
        size = self.entry_size
        low, high = 0, len(block) // size - 1
        while low < high:
            middle = (low + high + 1) // 2
            if self._key(block, middle * size) <= key:
                low = middle
            else:
                high = middle - 1
        return block[low * size : (low + 1) * size]

    def count_below(self, key: int) -> int:
        """How many entries have a key below `key`."""
        low, high = 0, self.count()
        while low < high:
            middle = (low + high) // 2
            if self._key(self.entry(middle), 0) < key:
                low = middle + 1
            else:
                high = middle
        return low

    def truncate(self, count: int) -> None:
        """Keep the first `count` entries, in memory and in the file."""
        total = self.count()
        if count >= total:
            count = total
        if count < self._count:
            disk = self._files.disk
            file = self._files.get(self.path, create=True)
            disk.truncate(file, count * self.entry_size)
            self._count = count
            self._pending = bytearray()
        else:
            del self._pending[(count - self._count) * self.entry_size :]

    def trim(self) -> None:
        """Write everything out and cut the file to its entries."""
        self.write_out()
        count = self.count()
        disk = self._files.disk
        file = self._files.get(self.path, create=True)
        if disk.size(file) != count * self.entry_size:
            disk.truncate(file, count * self.entry_size)

    def reset(self) -> None:
        """Forget every entry, those of a corrupt file included."""
        disk = self._files.disk
        file = self._files.get(self.path, create=True)
        if disk.size(file):
            disk.truncate(file, 0)
        self._count = 0
        self._pending = bytearray()


class OffsetIndex:
    """Where batches of a segment begin, about one entry per `index.interval.bytes`."""

    __slots__ = ("_last", "base_offset", "entries", "entries_max")

    def __init__(self, files: OpenFiles, path: str, base_offset: int, size_bytes_max: int) -> None:
        self.base_offset = base_offset
        self.entries = EntryFile(files, path, OFFSET_ENTRY_SIZE, 4)
        self.entries_max = size_bytes_max // OFFSET_ENTRY_SIZE
        self._last: OffsetEntry | None = None

    @property
    def is_full(self) -> bool:
        return self.entries.count() >= self.entries_max

    def last(self) -> OffsetEntry:
        """The last entry; the start of the segment when there is none."""
        last = self._last
        if last is None:
            count = self.entries.count()
            if count == 0:
                last = OffsetEntry(self.base_offset, 0)
            else:
                last = decode_offset_entry(self.base_offset, self.entries.entry(count - 1))
            self._last = last
        return last

    def append(self, offset: int, position: int) -> None:
        self.entries.append(encode_offset_entry(self.base_offset, offset, position))
        self._last = OffsetEntry(offset, position)

    def position_before(self, offset: int) -> int:
        """A position from which walking forward meets the batch with that offset."""
        relative = offset - self.base_offset
        found = self.entries.find(min(relative, RELATIVE_OFFSET_MAX))
        return 0 if found is None else decode_offset_entry(self.base_offset, found).position

    def offset_at_or_after(self, position: int) -> int | None:
        """The offset of the first entry at or behind a position; None past the last entry."""
        low, high = 0, self.entries.count()
        while low < high:
            middle = (low + high) // 2
            entry = decode_offset_entry(self.base_offset, self.entries.entry(middle))
            if entry.position < position:
                low = middle + 1
            else:
                high = middle
        if low == self.entries.count():
            return None
        return decode_offset_entry(self.base_offset, self.entries.entry(low)).offset

    def truncate_to(self, offset: int) -> None:
        """Drop the entries of batches that end at or after `offset`."""
        self.entries.truncate(self.entries.count_below(offset - self.base_offset))
        self._last = None

    def reset(self) -> None:
        self.entries.reset()
        self._last = None


class TimeIndex:
    """The highest timestamp up to an offset, at the same places as the offset index."""

    __slots__ = ("_last", "base_offset", "entries", "entries_max")

    def __init__(self, files: OpenFiles, path: str, base_offset: int, size_bytes_max: int) -> None:
        self.base_offset = base_offset
        self.entries = EntryFile(files, path, TIME_ENTRY_SIZE, 8)
        self.entries_max = size_bytes_max // TIME_ENTRY_SIZE
        self._last: TimeEntry | None = None

    @property
    def is_full(self) -> bool:
        """The last place is kept for the entry that closing the segment adds."""
        return self.entries.count() >= self.entries_max - 1

    def last(self) -> TimeEntry:
        """The last entry; no timestamp at the start of the segment when there is none."""
        last = self._last
        if last is None:
            count = self.entries.count()
            if count == 0:
                last = TimeEntry(NO_TIMESTAMP, self.base_offset)
            else:
                last = decode_time_entry(self.base_offset, self.entries.entry(count - 1))
            self._last = last
        return last

    def append(self, timestamp: int, offset: int) -> None:
        """Add an entry unless nothing younger came since the last one."""
        if timestamp > self.last().timestamp:
            self.entries.append(encode_time_entry(self.base_offset, timestamp, offset))
            self._last = TimeEntry(timestamp, offset)

    def offset_before(self, timestamp: int) -> int:
        """An offset before which no record is as young as `timestamp`."""
        found = self.entries.find(timestamp)
        return (
            self.base_offset if found is None else decode_time_entry(self.base_offset, found).offset
        )

    def truncate_to(self, offset: int) -> None:
        """Drop the entries about `offset` and what follows; offsets never fall within the file."""
        low, high = 0, self.entries.count()
        while low < high:
            middle = (low + high) // 2
            entry = decode_time_entry(self.base_offset, self.entries.entry(middle))
            if entry.offset < offset:
                low = middle + 1
            else:
                high = middle
        self.entries.truncate(low)
        self._last = None

    def reset(self) -> None:
        self.entries.reset()
        self._last = None
