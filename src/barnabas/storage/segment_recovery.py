"""One segment read from its start: checksums, indexes anew, epochs and producers told.

Runs away from the loop: it touches nothing but what it is given.
"""

from typing import Final

from barnabas.formats.batches.header import CURRENT_MAGIC, BatchHeader
from barnabas.formats.logdir.index_entries import RELATIVE_OFFSET_MAX
from barnabas.model.errors import CorruptBatch
from barnabas.storage.batch_walk import header_at, is_intact
from barnabas.storage.disk import Disk
from barnabas.storage.leader_epochs import LeaderEpochs
from barnabas.storage.producer_loading import note_batch
from barnabas.storage.producer_state import ProducerState
from barnabas.storage.segment import Segment

CHUNK_BYTES: Final = 1 << 20
BATCH_BYTES_MAX: Final = 1 << 30
"""No batch is taken for one that claims more; a torn length must not cost memory."""


class BatchScanner:
    """Batches of a file, one after the other, read in large pieces."""

    __slots__ = (
        "_at",
        "_chunk",
        "_disk",
        "_segment",
        "_size_bytes",
        "complaint",
        "data",
        "position",
        "start",
    )

    def __init__(self, disk: Disk, segment: Segment, size_bytes: int) -> None:
        self._disk = disk
        self._segment = segment
        self._size_bytes = size_bytes
        self._chunk = b""
        self._at = 0
        self.position: int = 0
        """Where in the file the next batch begins; all before it is sound."""
        self.data: bytes = b""
        self.start: int = 0
        """The batch last returned is data[start:start + header.size_bytes]."""
        self.complaint: str = ""

    def next(self, expected_offset: int) -> BatchHeader | None:
        """The next batch if it is whole, intact and not behind `expected_offset`."""
        left = self._size_bytes - self.position
        if left <= 0:
            return None
        try:
            header = self._header()
        except CorruptBatch as error:
            self.complaint = str(error)
            return None
        if header is None or header.size_bytes > left or header.size_bytes > BATCH_BYTES_MAX:
            self.complaint = f"half a batch of {left} bytes"
            return None
        self._fill(header.size_bytes)
        self.data = self._chunk
        self.start = self.position - self._at
        relative = header.last_offset - self._segment.base_offset
        if header.base_offset < expected_offset or header.last_offset_delta < 0:
            self.complaint = f"offset {header.base_offset} where {expected_offset} was expected"
            return None
        if relative > RELATIVE_OFFSET_MAX:
            self.complaint = f"offset {header.last_offset} does not fit the segment"
            return None
        if not is_intact(self.data, header, self.start):
            self.complaint = f"a wrong checksum at offset {header.base_offset}"
            return None
        self.position += header.size_bytes
        return header

    def _header(self) -> BatchHeader | None:
        self._fill(64)
        return header_at(self._chunk, self.position - self._at)

    def _fill(self, size_bytes: int) -> None:
        """Have so many bytes from the position on, if the file has them."""
        if self.position + size_bytes > self._at + len(self._chunk):
            file = self._segment.file()
            wanted = max(size_bytes, CHUNK_BYTES)
            self._chunk = self._disk.read(file, self.position, wanted)
            self._at = self.position


def recover_segment(
    disk: Disk, segment: Segment, producers: ProducerState, epochs: LeaderEpochs
) -> str:
    """Rebuild what belongs to the segment out of its batches, up to the first that is not sound.

    Why it ends there; nothing when the whole file is sound. `producers` are as of the segment's
    base offset before, as of its end afterwards. The file itself is not cut here.
    """
    segment.offset_index.reset()
    segment.time_index.reset()
    segment.forget_aborted()
    scanner = BatchScanner(disk, segment, segment.size_bytes)
    segment.begin_rebuild()
    next_offset = segment.base_offset
    while True:
        header = scanner.next(next_offset)
        if header is None:
            break
        try:
            aborted = note_batch(producers, scanner.data, header, scanner.start)
        except CorruptBatch as error:
            scanner.complaint = str(error)
            break
        if header.magic >= CURRENT_MAGIC and header.partition_leader_epoch > epochs.latest_epoch:
            epochs.assign(header.partition_leader_epoch, header.base_offset)
        segment.note_append(header.last_offset, header.max_timestamp, header.size_bytes)
        if aborted is not None:
            segment.add_aborted_transaction(aborted)
        next_offset = header.next_offset
    return scanner.complaint


def cut_segment(disk: Disk, segment: Segment) -> int:
    """Drop from the file what was not sound, complete the indexes; the bytes dropped."""
    file = segment.file()
    dropped = disk.size(file) - segment.size_bytes
    if dropped:
        disk.truncate(file, segment.size_bytes)
    segment.is_sync_wanted = True
    segment.finish()
    return dropped
