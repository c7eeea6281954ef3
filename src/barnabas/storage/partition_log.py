"""The log of one partition: append, write out, read, cut.

Hot: compiled by mypyc where a compiler is there. Batches of one turn of the loop are staged in
memory and reach the file with one write in `write_out`; offsets, sizes and producers run ahead
until then. A write that fails takes the log back to what was written and ends its use: the
directory is not trusted any more.
"""

from bisect import bisect_right
from contextlib import suppress
from typing import Final

from barnabas.formats.batches.control import read_end_marker
from barnabas.formats.batches.header import (
    CURRENT_MAGIC,
    LOG_APPEND_TIME_FLAG,
    BatchHeader,
    stamp,
)
from barnabas.formats.batches.reader import read_records
from barnabas.formats.logdir.names import LOG_SUFFIX
from barnabas.formats.logdir.producer_snapshot import encode_producer_snapshot
from barnabas.formats.logdir.transaction_index import AbortedTransaction
from barnabas.model.config import TopicConfig
from barnabas.model.error_codes import ErrorCode
from barnabas.model.errors import CorruptBatch, DiskError, DiskLost
from barnabas.model.ids import NO_TOPIC_ID, TopicId, TopicPartition
from barnabas.model.invariant import invariant
from barnabas.storage.append_result import AppendResult
from barnabas.storage.batch_walk import header_at, why_not_next
from barnabas.storage.disk import FileId, FileSlice
from barnabas.storage.flushing import flush_now
from barnabas.storage.leader_epochs import EpochEnd, LeaderEpochs
from barnabas.storage.log_cuts import restart_log, truncate_log
from barnabas.storage.log_owner import LogOwner
from barnabas.storage.open_files import CLOSED, OpenedFile, OpenFiles
from barnabas.storage.producer_state import ProducerState
from barnabas.storage.recent_batches import RecentBatches
from barnabas.storage.segment import Segment

SLICE_BYTES_MIN: Final = 32768
"""From this size on a read is handed out as a piece of the file, not copied."""
NO_TIMESTAMP: Final = -1

NONE: Final = ErrorCode.NONE
OFFSET_OUT_OF_RANGE: Final = ErrorCode.OFFSET_OUT_OF_RANGE
MESSAGE_TOO_LARGE: Final = ErrorCode.MESSAGE_TOO_LARGE
RECORD_LIST_TOO_LARGE: Final = ErrorCode.RECORD_LIST_TOO_LARGE


class PartitionLog:
    """One partition's log in one log directory, opened by `recovery` or made by the manager."""

    __slots__ = (
        "_active",
        "_active_file",
        "_flush_messages",
        "_recent",
        "_segment_bytes",
        "_segment_ms",
        "_staged",
        "_written_bytes",
        "_written_end_offset",
        "are_small_files_unsynced",
        "config",
        "directory",
        "files",
        "flush_generation",
        "high_watermark",
        "is_directory_sync_wanted",
        "is_flushing",
        "is_lost",
        "is_metadata_dirty",
        "is_parent_sync_wanted",
        "last_flush_ms",
        "leader_epochs",
        "log_end_offset",
        "log_start_offset",
        "max_message_bytes",
        "owner",
        "producer_expiration_ms",
        "producers",
        "recovery_point",
        "segments",
        "snapshots",
        "topic_id",
        "topic_partition",
        "unwritten_snapshots",
    )

    def __init__(
        self,
        topic_partition: TopicPartition,
        directory: str,
        files: OpenFiles,
        owner: LogOwner,
        config: TopicConfig,
        segments: list[Segment],
        log_end_offset: int,
        log_start_offset: int,
        recovery_point: int,
        leader_epochs: LeaderEpochs,
        producers: ProducerState,
        snapshots: list[int],
        producer_expiration_ms: int,
    ) -> None:
        self.topic_partition = topic_partition
        self.directory: str = directory
        self.files = files
        self.owner = owner
        self.segments = segments
        """By base offset; the last one is active."""
        self.log_end_offset: int = log_end_offset
        """The offset of the next record, staged ones counted."""
        self.log_start_offset: int = log_start_offset
        """Never decreases but when the whole log is dropped; what is below is not to be read."""
        self.recovery_point: int = recovery_point
        """All records below are durable, and so is what finds them."""
        self.high_watermark: int = log_start_offset
        """Kept for replication, which decides it; never above the end of the log."""
        self.leader_epochs = leader_epochs
        self.producers = producers
        self.snapshots = snapshots
        """Offsets of the producer snapshots, ascending, those still unwritten counted."""
        self.producer_expiration_ms: int = producer_expiration_ms
        self.unwritten_snapshots: dict[int, bytes] = {}
        """Snapshots taken at a roll; a flush writes them."""
        self.topic_id: TopicId = NO_TOPIC_ID
        self.is_metadata_dirty: bool = False
        """Whether the topic id is not in partition.metadata yet."""
        self.are_small_files_unsynced: bool = False
        """Whether topic id and epochs were written while nothing of the log was durable."""
        self.is_parent_sync_wanted: bool = False
        """Whether the directory was just made and its own name is not durable yet."""
        self.is_directory_sync_wanted: bool = False
        """Whether names in the directory changed since it was last synced."""
        self.is_lost: bool = False
        self.is_flushing: bool = False
        self.flush_generation: int = 0
        """Grows with every cut, so that a flush begun before it proves nothing after it."""
        self.last_flush_ms: int = 0
        self._staged: list[bytes | memoryview] = []
        self._written_end_offset: int = log_end_offset
        self._active: Segment = segments[-1]
        self._active_file: OpenedFile = files.opened(self._active.path(LOG_SUFFIX))
        """Kept, so that a write need not look it up; the budget may close it all the same."""
        self._written_bytes: int = self._active.size_bytes
        self._recent = RecentBatches(log_end_offset)
        self.configure(config)

    def configure(self, config: TopicConfig) -> None:
        """Work by these settings from now on."""
        self.config = config
        self._segment_bytes: int = config.segment_bytes
        self._segment_ms: int = config.segment_ms
        self._flush_messages: int = config.flush_messages
        self.max_message_bytes: int = config.max_message_bytes

    @property
    def log_directory(self) -> str:
        """The log directory it is in: what a failure takes offline."""
        return self.directory.rpartition("/")[0]

    @property
    def active_segment(self) -> Segment:
        return self._active

    @property
    def size_bytes(self) -> int:
        """Of all segments, staged batches counted."""
        total = 0
        for segment in self.segments:
            total += segment.size_bytes
        return total

    # Offsets

    @property
    def last_stable_offset(self) -> int:
        """Up to here a read_committed reader may read: nothing below is undecided."""
        first_unstable = self.producers.first_unstable_offset
        if first_unstable < 0:
            return self.high_watermark
        return min(max(first_unstable, self.log_start_offset), self.high_watermark)

    def set_high_watermark(self, offset: int) -> int:
        """Take over what replication decided, kept within the log; the watermark then held."""
        offset = max(self.log_start_offset, min(offset, self.log_end_offset))
        if offset != self.high_watermark:
            self.high_watermark = offset
            self.producers.note_replicated(offset)
        return offset

    def end_offset_for_epoch(self, epoch: int) -> EpochEnd:
        """The largest epoch not above `epoch` and where it ends; undefined when unknown."""
        return self.leader_epochs.end_offset_for(epoch, self.log_end_offset)

    def assign_leader_epoch(self, epoch: int, start_offset: int) -> None:
        """Note that records from an offset on are of this epoch; told again it changes nothing."""
        self.leader_epochs.assign(epoch, start_offset)
        if self.leader_epochs.is_dirty:
            self.owner.on_log_work(self)

    def set_topic_id(self, topic_id: TopicId) -> None:
        """The id under which the topic is known from now on; it never changes in a log's life."""
        if self.topic_id == topic_id:
            return
        invariant(
            self.topic_id == NO_TOPIC_ID,
            f"{self.topic_partition}: topic id {topic_id.hex()} where {self.topic_id.hex()} was",
        )
        self.topic_id = topic_id
        self.is_metadata_dirty = True
        self.owner.on_log_work(self)

    # Appending

    def append_as_leader(
        self,
        data: bytes,
        start: int,
        end: int,
        header: BatchHeader,
        leader_epoch: int,
        wall_ms: int,
    ) -> AppendResult:
        """Give the batch data[start:end] its offsets and stage it, unless its producer forbids.

        The batch was admitted: its shape, checksum, records and timestamps are right for the
        topic (formats.batches.admission).
        """
        self.check_usable()
        size_bytes = header.size_bytes
        if size_bytes != end - start:
            invariant(False, "a batch that does not fill the bytes it came in")
        if size_bytes > self.max_message_bytes and not header.is_control:
            return self._refused(MESSAGE_TOO_LARGE)
        if size_bytes > self._segment_bytes:
            return self._refused(RECORD_LIST_TOO_LARGE)
        base_offset = self.log_end_offset
        last_offset = base_offset + header.last_offset_delta
        if leader_epoch != self.leader_epochs.latest_epoch:
            self.assign_leader_epoch(leader_epoch, base_offset)
        if self._must_roll(size_bytes, last_offset, header.max_timestamp, wall_ms):
            self.roll(base_offset, wall_ms)
        if header.producer_id >= 0:
            if header.is_control:
                error = self._check_marker(data, start, header)
            else:
                duplicate = self.producers.find_duplicate(header)
                if duplicate is not None:
                    return AppendResult(
                        NONE,
                        duplicate.first_offset,
                        duplicate.last_offset,
                        duplicate.timestamp,
                        self.log_start_offset,
                        True,
                    )
                error = self.producers.check(header)
            if error != NONE:
                return self._refused(error)
        stamp(self._staged, data, header, start, base_offset, leader_epoch)
        self._note_staged(header, data, start, base_offset, last_offset)
        log_append_time = NO_TIMESTAMP
        if header.attributes & LOG_APPEND_TIME_FLAG:
            log_append_time = header.max_timestamp
        return AppendResult(
            NONE, base_offset, last_offset, log_append_time, self.log_start_offset, False
        )

    def _refused(self, error: ErrorCode) -> AppendResult:
        return AppendResult(error, -1, -1, NO_TIMESTAMP, self.log_start_offset, False)

    def append_as_follower(self, data: bytes, start: int, end: int, wall_ms: int) -> int:
        """Stage one or many batches as the leader wrote them; the log end offset after them.

        Each begins at the end of the log or after it (compaction leaves gaps). `CorruptBatch`
        for anything else: then nothing of the batch in question is staged. A piece of a batch at
        the end, as a fetch cuts it, is left out.
        """
        self.check_usable()
        position = start
        run_start = start
        while position < end:
            header = header_at(data, position)
            if header is None or header.size_bytes > end - position:
                break
            refusal = why_not_next(data, header, position, self.log_end_offset)
            if refusal:
                self._stage_run(data, run_start, position)
                raise CorruptBatch(f"{self.topic_partition}: {refusal}")
            base_offset = header.base_offset
            if header.magic < CURRENT_MAGIC:
                self.leader_epochs.clear()
            elif header.partition_leader_epoch != self.leader_epochs.latest_epoch:
                self.assign_leader_epoch(header.partition_leader_epoch, base_offset)
            last_offset = base_offset + header.last_offset_delta
            if self._must_roll(header.size_bytes, last_offset, header.max_timestamp, wall_ms):
                self._stage_run(data, run_start, position)
                run_start = position
                self.roll(base_offset, wall_ms)
            self._note_staged(header, data, position, base_offset, last_offset)
            position += header.size_bytes
        self._stage_run(data, run_start, position)
        return self.log_end_offset

    def _stage_run(self, data: bytes, start: int, end: int) -> None:
        if end > start:
            self._staged.append(memoryview(data)[start:end])

    def _note_staged(
        self, header: BatchHeader, data: bytes, start: int, base_offset: int, last_offset: int
    ) -> None:
        """Let everything that knows of batches know of this one."""
        position = self._active.size_bytes
        try:
            self._active.note_append(last_offset, header.max_timestamp, header.size_bytes)
        except DiskError as error:
            self.fail(error)
            raise
        self._recent.note(last_offset, position)
        if header.producer_id >= 0:
            if header.is_control:
                self._note_control(header, data, start, base_offset)
            else:
                self.producers.note_batch(header, base_offset, header.max_timestamp)
        self.log_end_offset = last_offset + 1

    def _check_marker(self, data: bytes, start: int, header: BatchHeader) -> ErrorCode:
        """A coordinator's marker must be of an epoch that is not fenced."""
        for record in read_records(data, header, start):
            marker = read_end_marker(record)
            if marker is not None:
                return self.producers.check_marker(
                    header.producer_id, header.producer_epoch, marker.coordinator_epoch
                )
        return NONE

    def _note_control(self, header: BatchHeader, data: bytes, start: int, base_offset: int) -> None:
        """Keep the end of a transaction; an empty control batch is a cleaned one."""
        for record in read_records(data, header, start):
            marker = read_end_marker(record)
            if marker is not None:
                aborted = self.producers.note_marker(
                    header,
                    marker.is_commit,
                    marker.coordinator_epoch,
                    base_offset,
                    record.timestamp,
                )
                if aborted is not None:
                    self._add_aborted(aborted)
            break
        self.producers.note_replicated(self.high_watermark)

    def _add_aborted(self, aborted: AbortedTransaction) -> None:
        try:
            self.is_directory_sync_wanted |= not self._active.has_aborted
            self._active.add_aborted_transaction(aborted)
        except DiskError as error:
            self.fail(error)
            raise

    def write_out(self) -> None:
        """Bring what is staged to the file, in one write; `DiskError` ends the log's use."""
        staged = self._staged
        if not staged:
            return
        self.check_usable()
        try:
            self.files.disk.append(self._open_active(), staged)
        except DiskError as error:
            self.fail(error)
            raise
        self._staged = []
        self._written_bytes = self._active.size_bytes
        self._written_end_offset = self.log_end_offset
        if self.log_end_offset - self.recovery_point >= self._flush_messages:
            flush_now(self, self.last_flush_ms)

    def _open_active(self) -> FileId:
        """The file of the active segment, opened again if the budget had it closed."""
        opened = self._active_file
        if opened.file == CLOSED:
            opened = self._active_file = self.files.opened(self._active.path(LOG_SUFFIX))
        opened.is_used = True
        return opened.file

    def fail(self, error: DiskError) -> None:
        """Go back to what was written and be used no more; half a write is cut off if it can be."""
        if self.is_lost:
            return
        self.is_lost = True
        self._staged = []
        self.log_end_offset = self._written_end_offset
        self.high_watermark = min(self.high_watermark, self.log_end_offset)
        self._active.size_bytes = self._written_bytes
        with suppress(DiskError):
            # If this fails too, the next start finds the half write by its checksum.
            self.files.disk.truncate(self._open_active(), self._written_bytes)
        self.owner.on_log_failed(self, error)

    def check_usable(self) -> None:
        if self.is_lost:
            raise DiskLost(self.directory, "the log directory is offline")

    # Rolling

    def _must_roll(
        self, size_bytes: int, last_offset: int, max_timestamp: int, wall_ms: int
    ) -> bool:
        """Whether a batch belongs into a new segment: size, age, offsets or a full index."""
        segment = self._active
        if segment.size_bytes > self._segment_bytes - size_bytes:
            return True
        if segment.size_bytes > 0:
            first_timestamp = segment.load_first_timestamp()
            if first_timestamp >= 0:
                waited_ms = max_timestamp - first_timestamp
            else:
                waited_ms = wall_ms - segment.created_ms
            if waited_ms > self._segment_ms - segment.roll_jitter_ms:
                return True
        return not segment.has_room_for(last_offset)

    def roll(self, base_offset: int, wall_ms: int) -> None:
        """Finish the active segment and begin one at `base_offset` or the end of the log."""
        self.check_usable()
        self.write_out()
        base_offset = max(base_offset, self.log_end_offset)
        active = self._active
        if active.base_offset == base_offset:
            invariant(active.size_bytes == 0, f"{self.directory}: a second segment {base_offset}")
            # An empty segment whose index has no room at all; a new one would be the same.
            return
        try:
            active.finish()
            self.take_snapshot(base_offset)
            segment = self.create_segment(base_offset, wall_ms)
        except DiskError as error:
            self.fail(error)
            raise
        self.segments.append(segment)
        self.activate(segment)
        self.owner.on_log_work(self)

    def create_segment(self, base_offset: int, wall_ms: int) -> Segment:
        """A new, empty segment with its files; whatever had their names is overwritten."""
        config = self.config
        segment = Segment(
            self.files,
            self.directory,
            base_offset,
            0,
            config.index_interval_bytes,
            config.segment_index_bytes,
            wall_ms,
        )
        segment.roll_jitter_ms = self.owner.draw_roll_jitter_ms(config)
        segment.create_files()
        self.is_directory_sync_wanted = True
        return segment

    def activate(self, segment: Segment) -> None:
        """Append to this segment from now on."""
        self._active = segment
        self._active_file = self.files.opened(segment.path(LOG_SUFFIX))
        self._written_bytes = segment.size_bytes
        self._written_end_offset = self.log_end_offset
        self._recent.forget(self.log_end_offset)

    def take_snapshot(self, offset: int) -> None:
        """Keep what is known of producers up to the offset, to be written by the next flush."""
        if offset <= (self.snapshots[-1] if self.snapshots else self.log_start_offset):
            return
        self.snapshots.append(offset)
        self.unwritten_snapshots[offset] = encode_producer_snapshot(self.producers.to_snapshot())

    # Reading

    def read(
        self,
        offset: int,
        max_bytes: int,
        upper_offset: int,
        must_return_one: bool,
        is_hasty: bool = False,
    ) -> FileSlice | bytes | None:
        """Whole batches from the one that contains `offset` on, all below `upper_offset`.

        At most `max_bytes`, of one segment; the last batch may be cut off. With `must_return_one`
        the first batch comes whole even if it is larger, else nothing comes then. None when the
        offset is outside the log. A `FileSlice` holds its file: who gets it must release it.
        In haste it is `ColdRead` when the device would have to be waited for; what was appended
        last is in memory, and is not asked for.
        """
        if offset < self.log_start_offset or offset > self.log_end_offset:
            return None
        if offset >= upper_offset:
            return b""
        self.check_usable()
        if self._staged:
            self.write_out()
        if is_hasty and offset < self._recent.floor_offset:
            return self._read_in_haste(offset, max_bytes, upper_offset, must_return_one)
        try:
            return self._read_segments(offset, max_bytes, upper_offset, must_return_one)
        except DiskError as error:
            self.fail(error)
            raise

    def _read_in_haste(
        self, offset: int, max_bytes: int, upper_offset: int, must_return_one: bool
    ) -> FileSlice | bytes | None:
        self.files.is_hasty = True
        try:
            return self.read(offset, max_bytes, upper_offset, must_return_one)
        finally:
            self.files.is_hasty = False

    def _read_segments(
        self, offset: int, max_bytes: int, upper_offset: int, must_return_one: bool
    ) -> FileSlice | bytes:
        number = self.segment_number(offset)
        last_number = len(self.segments) - 1
        while number <= last_number:
            segment = self.segments[number]
            start, size_bytes = self.find_position(segment, offset)
            if start >= 0:
                limit = segment.size_bytes
                if number == last_number:
                    if upper_offset < self.log_end_offset:
                        limit = self._position_of(segment, upper_offset)
                elif upper_offset < self.segments[number + 1].base_offset:
                    limit = self._position_of(segment, upper_offset)
                if size_bytes > max_bytes:
                    if not must_return_one:
                        return b""
                    max_bytes = size_bytes
                return self._bytes_of(segment, start, min(limit - start, max_bytes))
            number += 1
        return b""

    def _bytes_of(self, segment: Segment, position: int, size_bytes: int) -> FileSlice | bytes:
        if size_bytes <= 0:
            return b""
        disk = self.files.disk
        file = self._open_active() if segment is self._active else segment.file()
        if size_bytes < SLICE_BYTES_MIN or self.files.is_short:
            return self.files.read(file, position, size_bytes)
        self.files.check_cached(file, position, size_bytes)
        disk.retain(file)
        return FileSlice(disk, file, position, size_bytes)

    def segment_number(self, offset: int) -> int:
        """The segment whose base offset is the greatest not above `offset`."""
        if offset >= self._active.base_offset:
            return len(self.segments) - 1
        return max(bisect_right(self.segments, offset, key=_base_offset_of) - 1, 0)

    def find_position(self, segment: Segment, offset: int) -> tuple[int, int]:
        """Position and size of the first batch that ends at or after `offset`; (-1, 0): none."""
        recent = self._recent
        if segment is self._active and offset >= recent.floor_offset:
            return recent.find(offset, segment.size_bytes)
        place = segment.find(offset)
        if place is None:
            return -1, 0
        return place.position, place.header.size_bytes

    def _position_of(self, segment: Segment, offset: int) -> int:
        """Where the batch begins that contains `offset` or follows it; the end if none does."""
        position, _ = self.find_position(segment, offset)
        return segment.size_bytes if position < 0 else position

    # Cutting

    def truncate_to(self, offset: int, wall_ms: int) -> bool:
        """Drop the records from `offset` on; whether there were any."""
        return truncate_log(self, offset, wall_ms)

    def truncate_fully_and_start_at(self, offset: int, wall_ms: int) -> None:
        """Drop every record; the log begins and ends at `offset` then."""
        restart_log(self, offset, wall_ms)

    def delete_records_before(self, offset: int) -> ErrorCode:
        """Let the log begin at `offset`, which must be replicated; going back is not possible."""
        if offset > self.high_watermark:
            return OFFSET_OUT_OF_RANGE
        if offset > self.log_start_offset:
            self.log_start_offset = offset
            self.leader_epochs.truncate_from_start(offset)
            self.producers.note_replicated(offset)
            self.owner.on_log_work(self)
        return NONE


def _base_offset_of(segment: Segment) -> int:
    return segment.base_offset
