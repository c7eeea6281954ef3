"""A segment of a log: the batches from its base offset on, and what finds them again.

Hot: compiled by mypyc where a compiler is there. Sizes, positions and index entries run ahead of
the file while the log keeps batches in memory until the end of the turn (`PartitionLog.write_out`).
"""

from typing import Final

from barnabas.formats.batches.header import HEADER_SIZE, BatchHeader
from barnabas.formats.logdir.index_entries import RELATIVE_OFFSET_MAX
from barnabas.formats.logdir.names import (
    DELETED_FILE_SUFFIX,
    LOG_SUFFIX,
    OFFSET_INDEX_SUFFIX,
    TIME_INDEX_SUFFIX,
    TRANSACTION_INDEX_SUFFIX,
    segment_file_name,
)
from barnabas.formats.logdir.transaction_index import (
    AbortedTransaction,
    decode_aborted_transactions,
    encode_aborted_transaction,
)
from barnabas.storage.batch_walk import header_at
from barnabas.storage.disk import FileId
from barnabas.storage.index import NO_TIMESTAMP, OffsetIndex, TimeIndex
from barnabas.storage.open_files import OpenFiles

WALK_BYTES: Final = 16384
"""What a walk over batches reads at once."""
UNKNOWN: Final = -2


class BatchPlace:
    """Where a batch stands in its segment."""

    __slots__ = ("header", "position")

    def __init__(self, position: int, header: BatchHeader) -> None:
        self.position: int = position
        self.header: BatchHeader = header


class Segment:
    """One `.log` file with its indexes."""

    __slots__ = (
        "_files",
        "base_offset",
        "bytes_since_index_entry",
        "created_ms",
        "directory",
        "first_timestamp",
        "has_aborted",
        "index_interval_bytes",
        "is_sync_wanted",
        "max_timestamp",
        "offset_index",
        "offset_of_max_timestamp",
        "roll_jitter_ms",
        "size_bytes",
        "time_index",
    )

    def __init__(
        self,
        files: OpenFiles,
        directory: str,
        base_offset: int,
        size_bytes: int,
        index_interval_bytes: int,
        index_bytes_max: int,
        created_ms: int,
    ) -> None:
        self._files = files
        self.directory: str = directory
        self.base_offset: int = base_offset
        self.size_bytes: int = size_bytes
        """The file and what the log still keeps in memory for it."""
        self.index_interval_bytes: int = index_interval_bytes
        self.bytes_since_index_entry: int = 0
        self.created_ms: int = created_ms
        self.roll_jitter_ms: int = 0
        self.first_timestamp: int = UNKNOWN
        """The max timestamp of the first batch, by which the age of the segment is counted."""
        self.max_timestamp: int = UNKNOWN
        self.offset_of_max_timestamp: int = base_offset
        self.has_aborted: bool = False
        """Whether it has a transaction index, which only an aborted transaction makes."""
        self.is_sync_wanted: bool = False
        """Whether something was written or cut since the last sync."""
        self.offset_index = OffsetIndex(
            files, self.path(OFFSET_INDEX_SUFFIX), base_offset, index_bytes_max
        )
        self.time_index = TimeIndex(
            files, self.path(TIME_INDEX_SUFFIX), base_offset, index_bytes_max
        )

    def rebind(self, files: OpenFiles) -> None:
        """Use the open files of another keeper from now on; none of its own may be open."""
        self._files = files
        self.offset_index.entries.rebind(files)
        self.time_index.entries.rebind(files)

    def path(self, suffix: str) -> str:
        return f"{self.directory}/{segment_file_name(self.base_offset, suffix)}"

    def file(self) -> FileId:
        """The open log file; valid until another file is asked for."""
        return self._files.get(self.path(LOG_SUFFIX))

    def create_files(self) -> None:
        """Make its log file; leftovers with the names of its files are emptied or removed.

        The indexes have nothing to hold yet: a directory of many small topics is made faster.
        """
        disk = self._files.disk
        file = self._files.get(self.path(LOG_SUFFIX), create=True)
        if disk.size(file):
            disk.truncate(file, 0)
        for suffix in (OFFSET_INDEX_SUFFIX, TIME_INDEX_SUFFIX, TRANSACTION_INDEX_SUFFIX):
            if disk.exists(self.path(suffix)):
                disk.remove_file(self.path(suffix))
        self.offset_index.entries.begin()
        self.time_index.entries.begin()
        self.is_sync_wanted = True

    # Appending

    def has_room_for(self, last_offset: int) -> bool:
        """Whether the indexes can hold the offset, relative to the base, and another entry."""
        relative = last_offset - self.base_offset
        return (
            0 <= relative <= RELATIVE_OFFSET_MAX
            and not self.offset_index.is_full
            and not self.time_index.is_full
        )

    def note_append(self, last_offset: int, max_timestamp: int, size_bytes: int) -> None:
        """A batch goes to the end of the segment: count it, and index it when it is time."""
        position = self.size_bytes
        if position == 0:
            self.first_timestamp = max_timestamp
        self.ensure_max_timestamp()
        if max_timestamp > self.max_timestamp:
            self.max_timestamp = max_timestamp
            self.offset_of_max_timestamp = last_offset
        if self.bytes_since_index_entry > self.index_interval_bytes:
            self.offset_index.append(last_offset, position)
            self.time_index.append(self.max_timestamp, self.offset_of_max_timestamp)
            self.bytes_since_index_entry = 0
        self.bytes_since_index_entry += size_bytes
        self.size_bytes = position + size_bytes
        self.is_sync_wanted = True

    def ensure_max_timestamp(self) -> None:
        """Once a segment was closed, its time index tells what there is to know."""
        if self.max_timestamp != UNKNOWN:
            return
        last = self.time_index.last()
        self.max_timestamp = last.timestamp
        self.offset_of_max_timestamp = last.offset

    def load_first_timestamp(self) -> int:
        """The max timestamp of the first batch; -1 when there is none."""
        if self.first_timestamp == UNKNOWN:
            first = self.batch_at(0)
            if first is None:
                return NO_TIMESTAMP
            self.first_timestamp = first.header.max_timestamp
        return self.first_timestamp

    def largest_timestamp(self) -> int:
        """The youngest record's timestamp, else when the file was last changed."""
        self.ensure_max_timestamp()
        if self.max_timestamp >= 0:
            return self.max_timestamp
        return self._files.disk.status(self.path(LOG_SUFFIX)).modified_ms

    def add_aborted_transaction(self, aborted: AbortedTransaction) -> None:
        path = self.path(TRANSACTION_INDEX_SUFFIX)
        file = self._files.get(path, create=True)
        self._files.disk.append(file, (encode_aborted_transaction(aborted),))
        self.has_aborted = True

    def aborted_transactions(self) -> list[AbortedTransaction]:
        """What the transaction index holds."""
        if not self.has_aborted:
            return []
        disk = self._files.disk
        file = self._files.get(self.path(TRANSACTION_INDEX_SUFFIX))
        return decode_aborted_transactions(disk.read(file, 0, disk.size(file)))

    def forget_aborted(self) -> None:
        """Remove the transaction index."""
        if self.has_aborted:
            path = self.path(TRANSACTION_INDEX_SUFFIX)
            self._files.close(path)
            self._files.disk.remove_file(path)
            self.has_aborted = False

    def begin_rebuild(self) -> None:
        """Forget what was known of its batches; they will be noted again from the first on."""
        self.size_bytes = 0
        self.bytes_since_index_entry = 0
        self.first_timestamp = UNKNOWN
        self.max_timestamp = NO_TIMESTAMP
        self.offset_of_max_timestamp = self.base_offset

    # Finding

    def batch_at(self, position: int) -> BatchPlace | None:
        """The header of the batch that begins at a position; None at the end of the segment."""
        if position >= self.size_bytes:
            return None
        data = self._files.read(self.file(), position, HEADER_SIZE)
        header = header_at(data, 0)
        return None if header is None else BatchPlace(position, header)

    def find_batch(self, offset: int, from_position: int) -> BatchPlace | None:
        """The first batch that ends at or after `offset`; None when all end before."""
        file = self.file()
        position = from_position
        block = b""
        block_at = position
        while position < self.size_bytes:
            at = position - block_at
            header = header_at(block, at) if at < len(block) else None
            if header is None:
                block = self._files.read(file, position, WALK_BYTES)
                block_at = position
                header = header_at(block, 0)
                if header is None:
                    return None
            if header.base_offset + header.last_offset_delta >= offset:
                return BatchPlace(position, header)
            position += header.size_bytes
        return None

    def find(self, offset: int) -> BatchPlace | None:
        """The first batch that ends at or after `offset`, by way of the index."""
        return self.find_batch(offset, self.offset_index.position_before(offset))

    def read_next_offset(self) -> int | None:
        """The offset after the last batch, from the last index entry on; None for torn files."""
        last = self.offset_index.last()
        position = last.position
        if position > self.size_bytes:
            return None
        next_offset = self.base_offset
        place = self.find_batch(last.offset, position)
        while place is not None:
            next_offset = place.header.next_offset
            position = place.position + place.header.size_bytes
            place = self.find_batch(next_offset, position)
        return next_offset if position == self.size_bytes else None

    # Cutting, closing

    def truncate_to(self, offset: int) -> int:
        """Drop the batches that end at or after `offset`; the number of bytes dropped."""
        place = self.find(offset)
        self.offset_index.truncate_to(offset)
        self.time_index.truncate_to(offset)
        self._truncate_aborted_transactions(offset)
        dropped = 0
        if place is not None:
            dropped = self.size_bytes - place.position
            self._files.disk.truncate(self.file(), place.position)
            self.size_bytes = place.position
            self.is_sync_wanted = True
        if self.size_bytes == 0:
            self.first_timestamp = UNKNOWN
        self.bytes_since_index_entry = self.size_bytes - self.offset_index.last().position
        self._find_max_timestamp()
        return dropped

    def _find_max_timestamp(self) -> None:
        """After a cut: the last time index entry, and what was appended after it."""
        last = self.time_index.last()
        timestamp, offset = last.timestamp, last.offset
        position = self.offset_index.position_before(last.offset)
        while position < self.size_bytes:
            place = self.batch_at(position)
            if place is None:
                break
            if place.header.max_timestamp > timestamp:
                timestamp, offset = place.header.max_timestamp, place.header.last_offset
            position += place.header.size_bytes
        self.max_timestamp = timestamp
        self.offset_of_max_timestamp = offset

    def _truncate_aborted_transactions(self, offset: int) -> None:
        aborted = self.aborted_transactions()
        kept = [entry for entry in aborted if entry.last_offset < offset]
        if len(kept) < len(aborted):
            path = self.path(TRANSACTION_INDEX_SUFFIX)
            file = self._files.get(path)
            self._files.disk.truncate(file, len(b"".join(map(encode_aborted_transaction, kept))))

    def finish(self) -> None:
        """Nothing will be appended any more: complete the indexes."""
        self.ensure_max_timestamp()
        self.time_index.append(self.max_timestamp, self.offset_of_max_timestamp)
        self.offset_index.entries.trim()
        self.time_index.entries.trim()

    def mark_deleted(self) -> list[str]:
        """Rename its files so that nobody takes them for a segment; their names now."""
        disk = self._files.disk
        renamed: list[str] = []
        for suffix in FILE_SUFFIXES:
            path = self.path(suffix)
            self._files.close(path)
            if disk.exists(path):
                disk.rename(path, path + DELETED_FILE_SUFFIX)
                renamed.append(path + DELETED_FILE_SUFFIX)
        return renamed

    def close(self) -> None:
        """Give back the open files; nothing is written."""
        for suffix in FILE_SUFFIXES:
            self._files.close(self.path(suffix))


FILE_SUFFIXES: Final = (
    LOG_SUFFIX,
    OFFSET_INDEX_SUFFIX,
    TIME_INDEX_SUFFIX,
    TRANSACTION_INDEX_SUFFIX,
)
