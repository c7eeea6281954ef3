"""A log manager at work on some disk: started, stopped, killed and started again by a test."""

import random
from collections.abc import Callable
from dataclasses import replace

from barnabas.formats.batches.builder import BatchBuilder
from barnabas.formats.batches.header import BatchHeader
from barnabas.formats.batches.reader import Record, batches_in, read_records
from barnabas.model.config import BrokerConfig, TopicConfig
from barnabas.model.ids import TopicId, TopicPartition
from barnabas.storage.append_result import AppendResult
from barnabas.storage.disk import Disk, FileSlice
from barnabas.storage.log_events import DirectoryLost
from barnabas.storage.log_manager import LogManager
from barnabas.storage.partition_log import PartitionLog
from barnabas.storage.recovery import SegmentRecovered
from barnabas.storage.retirement import Refused
from tests.worlds.memory_disk import MemoryDisk

CLUSTER_ID = "a-cluster-of-tests-0000"
BROKER_ID = 1
TOPIC_ID = TopicId(bytes(range(16)))
PARTITION = TopicPartition("topic", 0)


class LogWorld:
    """One broker's logs; `pump` delivers what the disk has done."""

    def __init__(
        self,
        disk: Disk | None = None,
        pump: Callable[[], object] | None = None,
        *,
        log_dirs: tuple[str, ...] = ("/logs",),
        topic: TopicConfig | None = None,
        broker: BrokerConfig | None = None,
        seed: int = 1,
    ) -> None:
        if disk is None:
            disk = MemoryDisk()
            pump = disk.run_jobs
        assert pump is not None
        self.disk = disk
        self.pump = pump
        self.topic = topic or TopicConfig()
        self.broker = replace(broker or BrokerConfig(), log_dirs=log_dirs)
        self.random = random.Random(seed)
        self.now_ms = 0
        self.wall_ms = 1_700_000_000_000
        self.recovered: list[SegmentRecovered] = []
        self.complaints: list[str] = []
        self.lost: list[DirectoryLost] = []
        self.opened = 0
        self.refused: Exception | None = None
        self.manager: LogManager = self._new_manager()

    def _new_manager(self) -> LogManager:
        return LogManager(self.disk, self.broker, lambda topic: self.topic, self, self.random)

    @property
    def memory(self) -> MemoryDisk:
        assert isinstance(self.disk, MemoryDisk)
        return self.disk

    def start(self, cluster_id: str = CLUSTER_ID, broker_id: int = BROKER_ID) -> LogManager:
        """A new manager on what the directories hold; open when this returns."""
        self.recovered.clear()
        self.manager = self._new_manager()
        self.manager.directories.inspect()
        self.manager.open(cluster_id, broker_id, self.now_ms, self.wall_ms)
        self.pump()
        return self.manager

    def stop(self) -> None:
        """A clean stop."""
        self.manager.close(self.now_ms, -1)

    def log(self, key: TopicPartition = PARTITION) -> PartitionLog:
        """The partition's log, made if need be."""
        return self.manager.get_or_create(key, TOPIC_ID, True, self.wall_ms)

    def retire(self, *keys: TopicPartition, is_stray: bool = False) -> Refused:
        """Have logs taken out of use; the errors of those that could not be."""
        told: list[Refused] = []
        self.manager.retire(keys, self.now_ms, told.append, is_stray=is_stray)
        for _ in range(8):
            if not told:
                self.pump()
        return told[0]

    def advance(self, by_ms: int) -> None:
        """Let time pass, deadline by deadline."""
        end_ms = self.now_ms + by_ms
        self.pump()
        while True:
            due_ms = self.manager.next_deadline_ms()
            if due_ms is None or due_ms > end_ms:
                break
            step_ms = max(due_ms - self.now_ms, 0)
            self.now_ms += step_ms
            self.wall_ms += step_ms
            self.manager.tick(self.now_ms, self.wall_ms)
            self.pump()
        self.wall_ms += end_ms - self.now_ms
        self.now_ms = end_ms

    def settle(self) -> None:
        """Let the background do what it can do now."""
        self.advance(0)

    # A LogListener

    def on_segment_recovered(self, progress: SegmentRecovered) -> None:
        self.recovered.append(progress)

    def on_log_complaint(self, complaint: str) -> None:
        self.complaints.append(complaint)

    def on_logs_opened(self, now_ms: int) -> None:
        self.opened += 1

    def on_logs_refused(self, error: Exception) -> None:
        self.refused = error

    def on_directory_lost(self, lost: DirectoryLost, now_ms: int) -> None:
        self.lost.append(lost)


def batch_of(
    *values: bytes,
    timestamp: int = 1000,
    producer_id: int = -1,
    producer_epoch: int = -1,
    base_sequence: int = -1,
    is_transactional: bool = False,
    base_offset: int = 0,
    leader_epoch: int = -1,
) -> bytes:
    """A batch as a producer sends it, one record per value, one millisecond apart."""
    builder = BatchBuilder(base_offset=base_offset)
    for number, value in enumerate(values):
        builder.append(None, value, timestamp + number)
    return builder.build(
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        base_sequence=base_sequence,
        is_transactional=is_transactional,
        leader_epoch=leader_epoch,
    )


def append(
    log: PartitionLog, batch: bytes, *, leader_epoch: int = 0, wall_ms: int = 1000
) -> AppendResult:
    """Stage a batch as its leader."""
    header = BatchHeader(batch, 0)
    return log.append_as_leader(batch, 0, len(batch), header, leader_epoch, wall_ms)


def produce(
    log: PartitionLog, *values: bytes, leader_epoch: int = 0, timestamp: int = 1000
) -> AppendResult:
    """Append a batch and let all of the log be readable."""
    result = append(log, batch_of(*values, timestamp=timestamp), leader_epoch=leader_epoch)
    log.write_out()
    log.set_high_watermark(log.log_end_offset)
    return result


def bytes_of(data: FileSlice | bytes | None) -> bytes:
    """What was read, and the file let go of."""
    assert data is not None
    if isinstance(data, bytes):
        return data
    read = data.disk.read(data.file, data.position, data.size_bytes)
    data.disk.release(data.file)
    return read


def records_in(data: bytes) -> list[Record]:
    """The records of the whole batches in what was read."""
    found: list[Record] = []
    for start, header in batches_in(data, 0, len(data)):
        found += read_records(data, header, start)
    return found


def read_all(log: PartitionLog, *, max_bytes: int = 1 << 20) -> list[tuple[int, bytes | None]]:
    """Offset and value of every record, as a consumer that fetches on and on sees them."""
    offset = log.log_start_offset
    found: list[tuple[int, bytes | None]] = []
    while offset < log.log_end_offset:
        read = records_in(bytes_of(log.read(offset, max_bytes, log.log_end_offset, True)))
        fresh = [(one.offset, one.value) for one in read if one.offset >= offset]
        if not fresh:
            break
        found += fresh
        offset = fresh[-1][0] + 1
    return found
