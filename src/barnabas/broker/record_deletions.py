"""DeleteRecords at work: logs begin later, durably, here and on every live follower.

A request is answered when it is durable here where each log begins and the followers' fetches say
that theirs begin there too; or when its time is over. The files go with retention, later.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple

from barnabas.broker.connections import Connection
from barnabas.broker.deadlines import Deadline
from barnabas.broker.partition import Partition
from barnabas.core.administration.record_deletion import deletion_end
from barnabas.core.administration.topic_names import INTERNAL_TOPICS
from barnabas.model.error_codes import ErrorCode
from barnabas.model.errors import DiskError
from barnabas.model.ids import TopicPartition
from barnabas.storage.partition_log import PartitionLog

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker
    from barnabas.broker.metadata_cache import CacheUpdate

PARKED_DELETIONS_MAX: Final = 10_000
"""Above it a request that would wait is answered REQUEST_TIMED_OUT; what it did stays done."""
UNKNOWN_LOW_WATERMARK: Final = -1


class DeletionResult(NamedTuple):
    """What became of one partition: below which offset no live replica holds a record."""

    low_watermark: int
    error: int


Deleted = Callable[[dict[TopicPartition, DeletionResult]], None]


class RecordDeletions:
    """All DeleteRecords that wait."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._parked: dict[_Deletion, None] = {}
        broker.metadata_cache.on_update(self._on_metadata)

    def delete(
        self,
        wishes: Mapping[TopicPartition, int],
        timeout_ms: int,
        connection: Connection,
        then: Deleted,
        now_ms: int,
    ) -> None:
        """Let each log begin at its offset; `then` comes when that is so, or perhaps at once."""
        if len(self._parked) >= PARKED_DELETIONS_MAX:
            timeout_ms = 0
        deletion = _Deletion(self._broker, connection, then, self._forget)
        self._parked[deletion] = None
        deletion.begin(wishes, timeout_ms, now_ms)

    def note_closed(self, connection: Connection) -> None:
        """Nobody waits on a connection that is gone."""
        for deletion in list(self._parked):
            if deletion.connection is connection:
                deletion.give_up()

    @property
    def parked_count(self) -> int:
        return len(self._parked)

    def _forget(self, deletion: _Deletion) -> None:
        self._parked.pop(deletion, None)

    def _on_metadata(self, update: CacheUpdate, now_ms: int) -> None:
        """A follower that is gone is waited for no more."""
        for deletion in list(self._parked):
            deletion.look_again()


class _Deletion:
    """One request until it is answered (a `purgatory.ParkedDeletion`)."""

    def __init__(
        self,
        broker: Broker,
        connection: Connection,
        then: Deleted,
        forget: Callable[[_Deletion], None],
    ) -> None:
        self.connection = connection
        self._broker = broker
        self._then = then
        self._forget = forget
        self._results: dict[TopicPartition, DeletionResult] = {}
        self._waiting: dict[TopicPartition, int] = {}
        """Where the followers' logs must begin."""
        self._unwritten = 1
        """Directories that do not tell durably where logs begin, and one while it is begun."""
        self._deadline: Deadline | None = None

    def begin(self, wishes: Mapping[TopicPartition, int], timeout_ms: int, now_ms: int) -> None:
        """Move the beginning of all logs, then have that durable."""
        moved: dict[str, list[TopicPartition]] = {}
        for key, offset in wishes.items():
            log = self._delete(key, offset, now_ms)
            if log is not None:
                moved.setdefault(log.log_directory, []).append(key)
        self._unwritten += len(moved)
        for directory, keys in moved.items():
            self._broker.logs.manager.keep_log_starts(directory, partial(self._note_kept, keys))
        if self._waiting and timeout_ms > 0:
            self._deadline = self._broker.deadlines.at(now_ms + timeout_ms, self._expire)
        else:
            self._expire(now_ms)
        self._unwritten -= 1
        self._finish_if_done()

    def _delete(self, key: TopicPartition, offset: int, now_ms: int) -> PartitionLog | None:
        """The log that begins at the offset now; None when it does not, and why is noted."""
        partition = self._leader_of(key, now_ms)
        if not isinstance(partition, Partition):
            self._fail(key, partition)
            return None
        log, leader = partition.log, partition.leader
        if log is None or leader is None:
            self._fail(key, ErrorCode.NOT_LEADER_OR_FOLLOWER)
            return None
        end = deletion_end(offset, log.high_watermark, log.config.cleanup_policy)
        if isinstance(end, ErrorCode):
            self._fail(key, end)
            return None
        log.delete_records_before(end)
        low_watermark = leader.low_watermark(log.log_start_offset)
        self._results[key] = DeletionResult(low_watermark, ErrorCode.NONE)
        if low_watermark < end:
            self._waiting[key] = end
            partition.room.deletions[self] = None
        return log

    def _leader_of(self, key: TopicPartition, now_ms: int) -> Partition | ErrorCode:
        """The partition, with all that was taken in of it written; or why it is not for us."""
        replicas = self._broker.replicas
        if not self._broker.metadata_cache.contains(key.topic, key.partition):
            return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        if key.topic in INTERNAL_TOPICS:
            return ErrorCode.INVALID_TOPIC_EXCEPTION
        partition = replicas.find(key.topic, key.partition)
        if partition is None:
            return replicas.absence(key.topic, key.partition)
        replicas.write_out(partition, now_ms)
        return ErrorCode.KAFKA_STORAGE_ERROR if partition.is_offline else partition

    # -- what happens meanwhile --------------------------------------------------------------

    def note_log_start_moved(self, topic: str, index: int, now_ms: int) -> None:
        """A follower's log begins elsewhere: it may be the last one that was waited for."""
        self._look_at(TopicPartition(topic, index))
        self._finish_if_done()

    def dismiss(self, topic: str, index: int, error: int, now_ms: int) -> None:
        """This broker leads the partition no more: nobody can say where the others are."""
        self._fail(TopicPartition(topic, index), error)
        self._finish_if_done()

    def look_again(self) -> None:
        """Brokers came or went: only live followers are waited for."""
        for key in list(self._waiting):
            self._look_at(key)
        self._finish_if_done()

    def _look_at(self, key: TopicPartition) -> None:
        end = self._waiting.get(key)
        partition = self._broker.replicas.find(key.topic, key.partition)
        if end is None or partition is None or partition.leader is None:
            return
        low_watermark = partition.leader.low_watermark(partition.log_start_offset)
        self._results[key] = DeletionResult(low_watermark, ErrorCode.NONE)
        if low_watermark >= end:
            self._stop_waiting(key)

    def _note_kept(self, keys: list[TopicPartition], error: DiskError | None) -> None:
        if error is not None:
            for key in keys:
                self._fail(key, ErrorCode.KAFKA_STORAGE_ERROR)
        self._unwritten -= 1
        self._finish_if_done()

    def _expire(self, now_ms: int) -> None:
        """Time is over: the followers may or may not have followed."""
        for key in list(self._waiting):
            low_watermark = self._results[key].low_watermark
            self._results[key] = DeletionResult(low_watermark, ErrorCode.REQUEST_TIMED_OUT)
            self._stop_waiting(key)
        self._finish_if_done()

    def give_up(self) -> None:
        """Answer nobody."""
        self._then = _ignore
        self._unwritten = 0
        for key in list(self._waiting):
            self._stop_waiting(key)
        self._finish_if_done()

    # -- the end -----------------------------------------------------------------------------

    def _fail(self, key: TopicPartition, error: int) -> None:
        self._results[key] = DeletionResult(UNKNOWN_LOW_WATERMARK, error)
        self._stop_waiting(key)

    def _stop_waiting(self, key: TopicPartition) -> None:
        if self._waiting.pop(key, None) is None:
            return
        partition = self._broker.replicas.find(key.topic, key.partition)
        if partition is not None:
            partition.room.deletions.pop(self, None)

    def _finish_if_done(self) -> None:
        if self._waiting or self._unwritten > 0:
            return
        if self._deadline is not None:
            self._deadline.cancel()
        self._forget(self)
        then, self._then = self._then, _ignore
        then(self._results)


def _ignore(_results: dict[TopicPartition, DeletionResult]) -> None:
    """Nobody is left to be answered."""
