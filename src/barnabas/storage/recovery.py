"""Loading a log from its directory: at once after a clean stop, with recovery after any other.

Runs away from the loop but for a new log: it touches nothing but what it is given.
"""

from collections.abc import Callable
from typing import Final, NamedTuple

from barnabas.formats.logdir.checkpoints import decode_epoch_checkpoint
from barnabas.formats.logdir.index_entries import OFFSET_ENTRY_SIZE, TIME_ENTRY_SIZE
from barnabas.formats.logdir.names import (
    LEADER_EPOCH_FILE,
    LOG_SUFFIX,
    OFFSET_INDEX_SUFFIX,
    PARTITION_METADATA_FILE,
    TIME_INDEX_SUFFIX,
    TRANSACTION_INDEX_SUFFIX,
    parse_segment_file_name,
    parse_snapshot_file_name,
    segment_file_name,
)
from barnabas.formats.logdir.partition_metadata import decode_partition_metadata
from barnabas.formats.logdir.producer_snapshot import encode_producer_snapshot
from barnabas.formats.logdir.transaction_index import ENTRY_SIZE as ABORTED_ENTRY_SIZE
from barnabas.model.config import TopicConfig
from barnabas.model.errors import CorruptBatch, DecodeError, DiskLost, LogDirectoryRefused
from barnabas.model.ids import NO_TOPIC_ID, TopicId, TopicPartition
from barnabas.storage.disk import Disk
from barnabas.storage.leader_epochs import LeaderEpochs
from barnabas.storage.leftovers import clear_leftovers, remove_orphan_indexes
from barnabas.storage.open_files import OpenFiles
from barnabas.storage.producer_loading import (
    load_latest_snapshot,
    replay_producers,
    snapshot_path,
)
from barnabas.storage.producer_state import ProducerState
from barnabas.storage.segment import Segment
from barnabas.storage.segment_recovery import cut_segment, recover_segment

FILES_MAX: Final = 16
"""Open files of one log while it is loaded."""


INDEX_ENTRY_SIZES: Final = (
    (OFFSET_INDEX_SUFFIX, OFFSET_ENTRY_SIZE),
    (TIME_INDEX_SUFFIX, TIME_ENTRY_SIZE),
    (TRANSACTION_INDEX_SUFFIX, ABORTED_ENTRY_SIZE),
)


class LoadRequest(NamedTuple):
    """Which log to load, and what the checkpoints of its log directory say about it."""

    topic_partition: TopicPartition
    directory: str
    config: TopicConfig
    recovery_point: int
    log_start_offset: int
    is_clean: bool
    """Whether the log directory was left by a clean stop."""
    wall_ms: int
    producer_expiration_ms: int


class SegmentRecovered(NamedTuple):
    """Progress: one of the segments that were not flushed was read."""

    topic_partition: TopicPartition
    base_offset: int
    size_bytes: int
    segment_number: int
    segment_count: int
    complaint: str
    """Why the log was cut in this segment; empty when it was not."""


class LoadedLog:
    """A log as found, to be taken over by a `PartitionLog` on the loop."""

    __slots__ = (
        "leader_epochs",
        "log_end_offset",
        "log_start_offset",
        "producers",
        "recovery_point",
        "request",
        "segments",
        "snapshots",
        "topic_id",
    )

    def __init__(self, request: LoadRequest) -> None:
        self.request = request
        self.segments: list[Segment] = []
        self.leader_epochs = LeaderEpochs()
        self.producers = ProducerState()
        self.snapshots: list[int] = []
        self.log_start_offset = 0
        self.log_end_offset = 0
        self.recovery_point = 0
        self.topic_id: TopicId = NO_TOPIC_ID


Progress = Callable[[SegmentRecovered], None]


def load_log(
    disk: Disk, request: LoadRequest, progress: Progress, files: OpenFiles | None = None
) -> LoadedLog:
    """Read a log's directory; `DiskError` when it cannot be used.

    With open files of its own, unless the caller is on the loop and hands over the loop's.
    """
    loader = _Loader(disk, request, progress, files or OpenFiles(disk, FILES_MAX))
    try:
        return loader.load()
    except (DecodeError, CorruptBatch) as error:
        raise DiskLost(request.directory, str(error)) from error
    finally:
        loader.close()


class _Loader:
    def __init__(
        self, disk: Disk, request: LoadRequest, progress: Progress, files: OpenFiles
    ) -> None:
        self._disk = disk
        self._request = request
        self._directory = request.directory
        self._progress = progress
        self._files = files
        self._loaded = LoadedLog(request)
        self._unindexed: list[int] = []
        """Segments whose indexes are missing or cannot be right."""
        self._recovered_producers: ProducerState | None = None
        """As of the end of the log, when recovery read it to its end."""

    def load(self) -> LoadedLog:
        loaded = self._loaded
        names = self._disk.list_directory(self._directory)
        for name in names:
            if name.endswith("@"):
                raise LogDirectoryRefused(f"{self._directory}/{name[:-1]} is a symbolic link")
        if clear_leftovers(self._disk, self._directory, names):
            names = self._disk.list_directory(self._directory)
        names = remove_orphan_indexes(self._disk, self._directory, names)
        self._load_segments(names)
        self._load_epochs(names)
        self._load_topic_id(names)
        self._remove_stray_snapshots(names)
        if self._request.is_clean:
            self._rebuild_unindexed()
        else:
            self._recover()
        self._find_end()
        self._load_producers()
        loaded.leader_epochs.truncate_from_end(loaded.log_end_offset)
        loaded.leader_epochs.truncate_from_start(loaded.log_start_offset)
        return loaded

    def close(self) -> None:
        for segment in self._loaded.segments:
            segment.close()

    # What the files tell

    def _load_epochs(self, names: list[str]) -> None:
        if LEADER_EPOCH_FILE in names:
            path = f"{self._directory}/{LEADER_EPOCH_FILE}"
            try:
                entries = decode_epoch_checkpoint(self._disk.read_file(path))
                self._loaded.leader_epochs = LeaderEpochs(entries)
            except DecodeError:
                if not self._is_all_to_be_read():
                    raise
                self._disk.remove_file(path)

    def _load_topic_id(self, names: list[str]) -> None:
        if PARTITION_METADATA_FILE in names:
            path = f"{self._directory}/{PARTITION_METADATA_FILE}"
            try:
                self._loaded.topic_id = decode_partition_metadata(self._disk.read_file(path))
            except DecodeError:
                if not self._is_all_to_be_read():
                    raise
                self._disk.remove_file(path)

    def _is_all_to_be_read(self) -> bool:
        """Whether nothing in the log was durable: small files may be half-written then.

        The batches tell their epochs themselves, and the controller the topic id.
        """
        request, segments = self._request, self._loaded.segments
        start = max([request.log_start_offset, *(one.base_offset for one in segments[:1])])
        return not request.is_clean and (not segments or request.recovery_point <= start)

    def _load_segments(self, names: list[str]) -> None:
        present = set(names)
        for name in names:
            file = parse_segment_file_name(name)
            if file is None or file.suffix != LOG_SUFFIX:
                continue
            size_bytes = self._disk.status(f"{self._directory}/{name}").size_bytes
            segment = self._segment(file.base_offset, size_bytes)
            transactions = segment_file_name(file.base_offset, TRANSACTION_INDEX_SUFFIX)
            segment.has_aborted = transactions in present
            self._loaded.segments.append(segment)
            if not self._has_indexes(file.base_offset, present):
                self._unindexed.append(file.base_offset)

    def _segment(self, base_offset: int, size_bytes: int) -> Segment:
        config = self._request.config
        return Segment(
            self._files,
            self._directory,
            base_offset,
            size_bytes,
            config.index_interval_bytes,
            config.segment_index_bytes,
            self._request.wall_ms,
        )

    def _has_indexes(self, base_offset: int, present: set[str]) -> bool:
        """Whether the indexes are there and of a size that indexes have."""
        for suffix, entry_size in INDEX_ENTRY_SIZES:
            name = segment_file_name(base_offset, suffix)
            if name not in present:
                if suffix == TRANSACTION_INDEX_SUFFIX:
                    continue
                return False
            if self._disk.status(f"{self._directory}/{name}").size_bytes % entry_size:
                return False
        return True

    def _remove_stray_snapshots(self, names: list[str]) -> None:
        """Keep the snapshots of segments, and the last one if it is behind all segments."""
        bases = [segment.base_offset for segment in self._loaded.segments]
        offsets: list[int] = []
        for name in names:
            offset = parse_snapshot_file_name(name)
            if offset is not None:
                offsets.append(offset)
        strays = [offset for offset in offsets if offset not in bases]
        if strays and bases and strays[-1] > bases[-1]:
            strays.pop()
        for offset in strays:
            self._disk.remove_file(snapshot_path(self._directory, offset))
        self._loaded.snapshots = [offset for offset in offsets if offset not in strays]

    # Recovery

    def _rebuild_unindexed(self) -> None:
        """After a clean stop the batches are right; only indexes are made anew."""
        for base_offset in self._unindexed:
            number = self._number_of(base_offset)
            if number is not None:
                self._recover_segments(number, number + 1)
                self._recovered_producers = None

    def _number_of(self, base_offset: int) -> int | None:
        """Where a segment is among those that are left."""
        for number, segment in enumerate(self._loaded.segments):
            if segment.base_offset == base_offset:
                return number
        return None

    def _recover(self) -> None:
        """Read everything that may not have reached the disk; cut at the first bad batch.

        Segments below the recovery point are only read when their indexes are not there.
        """
        segments = self._loaded.segments
        first = len(segments)
        while first > 0 and segments[first - 1].base_offset > self._request.recovery_point:
            first -= 1
        first = max(first - 1, 0)
        durable = [segment.base_offset for segment in segments[:first]]
        self._unindexed = [offset for offset in self._unindexed if offset in durable]
        self._rebuild_unindexed()
        if first < len(segments):
            # The batches are read and tell their epochs themselves. What the file says of them
            # may be of others: a cut is not durable by itself, and those it took may be back.
            self._loaded.leader_epochs.truncate_from_end(segments[first].base_offset)
            self._forget_snapshots_above(segments[first].base_offset)
            self._recovered_producers = self._recover_segments(first, len(segments))

    def _forget_snapshots_above(self, offset: int) -> None:
        """What stands there may tell of records that were cut off since; it is told anew."""
        for snapshot in list(self._loaded.snapshots):
            if snapshot > offset:
                self._disk.remove_file(snapshot_path(self._directory, snapshot))
                self._loaded.snapshots.remove(snapshot)

    def _recover_segments(self, first: int, end: int) -> ProducerState:
        """Read segments one after the other until one is not sound; then the log ends there.

        A gap between two sound ones is no reason to end, as in Kafka: a follower that copied a
        compacted log has such gaps, and nothing tells them from records lost with the power.
        The producers as of the end of the last segment that was read.
        """
        loaded = self._loaded
        segments = loaded.segments
        producers = self._producers_at(first)
        for number in range(first, end):
            segment = segments[number]
            size_bytes = segment.size_bytes
            self._keep_snapshot(segment.base_offset, producers)
            complaint = recover_segment(self._disk, segment, producers, loaded.leader_epochs)
            if complaint:
                # What is behind the cut goes first: it must not be there when this was cut.
                self._drop_segments(number + 1)
            cut_segment(self._disk, segment)
            self._report(segment, size_bytes, number - first + 1, end - first, complaint)
            if complaint:
                break
        return producers

    def _keep_snapshot(self, offset: int, producers: ProducerState) -> None:
        """A snapshot stands at the beginning of every segment, as a roll leaves it."""
        snapshots = self._loaded.snapshots
        if offset in snapshots or offset <= max(snapshots, default=self._request.log_start_offset):
            return
        data = encode_producer_snapshot(producers.to_snapshot())
        self._disk.write_file(snapshot_path(self._directory, offset), data)
        snapshots.append(offset)

    def _producers_at(self, number: int) -> ProducerState:
        """The producers as they were when a segment began."""
        request = self._request
        segments = self._loaded.segments
        base_offset = segments[number].base_offset
        producers = ProducerState()
        known_to = load_latest_snapshot(
            self._disk,
            self._directory,
            self._loaded.snapshots,
            producers,
            base_offset,
            request.wall_ms,
            request.producer_expiration_ms,
        )
        if known_to is None:
            known_to = max(request.log_start_offset, segments[0].base_offset)
        replay_producers(self._disk, segments, producers, known_to, base_offset)
        return producers

    def _report(
        self, segment: Segment, size_bytes: int, number: int, count: int, complaint: str
    ) -> None:
        self._progress(
            SegmentRecovered(
                self._request.topic_partition,
                segment.base_offset,
                size_bytes,
                number,
                count,
                complaint,
            )
        )

    def _drop_segments(self, first: int) -> None:
        """Remove all segments from a number on, the last one first, for good."""
        segments = self._loaded.segments
        dropped = segments[first:]
        if not dropped:
            return
        paths: list[str] = []
        for segment in reversed(dropped):
            paths += segment.mark_deleted()
        self._disk.sync_directory(self._directory)
        for path in paths:
            self._disk.remove_file(path)
        del segments[first:]

    # Ends

    def _find_end(self) -> None:
        """Where the log begins and ends; a log that ends before its beginning is begun anew."""
        loaded = self._loaded
        request = self._request
        segments = loaded.segments
        end = self._end_of_last_segment() if segments else -1
        if end < request.log_start_offset:
            if segments:
                self._drop_segments(0)
                loaded.leader_epochs.clear()
                self._recovered_producers = ProducerState()
            end = request.log_start_offset
        if not segments:
            segment = self._segment(end, 0)
            segment.create_files()
            segments.append(segment)
        loaded.log_end_offset = end
        loaded.log_start_offset = max(request.log_start_offset, segments[0].base_offset)
        loaded.recovery_point = end if request.is_clean else min(request.recovery_point, end)

    def _end_of_last_segment(self) -> int:
        """From the last index entry on; read whole when its files contradict each other."""
        last = self._loaded.segments[-1]
        try:
            end = last.read_next_offset()
        except CorruptBatch:
            end = None
        if end is None:
            count = len(self._loaded.segments)
            self._recover_segments(count - 1, count)
            last = self._loaded.segments[-1]
            end = last.read_next_offset()
        return last.base_offset if end is None else end

    def _load_producers(self) -> None:
        """Snapshot and replay; after a clean stop without any snapshot there was nobody."""
        loaded = self._loaded
        request = self._request
        start, end = loaded.log_start_offset, loaded.log_end_offset
        for offset in list(loaded.snapshots):
            if not start < offset <= end:
                self._disk.remove_file(snapshot_path(self._directory, offset))
                loaded.snapshots.remove(offset)
        if request.is_clean and not loaded.snapshots:
            return
        if self._recovered_producers is not None:
            loaded.producers = self._recovered_producers
            return
        known_to = load_latest_snapshot(
            self._disk,
            self._directory,
            loaded.snapshots,
            loaded.producers,
            end,
            request.wall_ms,
            request.producer_expiration_ms,
        )
        known_to = start if known_to is None else known_to
        replay_producers(self._disk, loaded.segments, loaded.producers, known_to, end)
