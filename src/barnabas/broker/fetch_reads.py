"""One partition of a fetch: fenced, compared with the reader's epochs, and read.

Hot: compiled by mypyc where a compiler is there, interpreted otherwise. The fetch of a follower is
its acknowledgement: what it asks for tells how far its log reaches. It is noted after the reading,
so that the answer carries the watermark as it was before, as Kafka's does.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from barnabas.broker.fetch_sessions import FetchedPartition
from barnabas.broker.partition import Partition
from barnabas.core.replication.divergence import (
    FollowerPosition,
    diverges,
    is_out_of_range,
)
from barnabas.formats.wire.generated.fetch import (
    AbortedTransaction,
    EpochEndOffset,
    PartitionData,
)
from barnabas.model.epochs import LeaderEpoch
from barnabas.model.error_codes import ErrorCode
from barnabas.model.errors import CorruptBatch, DiskError
from barnabas.model.ids import NO_BROKER, NO_TOPIC_ID, BrokerId
from barnabas.storage.aborted_transactions import aborted_transactions
from barnabas.storage.disk import FileSlice
from barnabas.storage.partition_log import PartitionLog

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker

READ_UNCOMMITTED: Final = 0
READ_COMMITTED: Final = 1
_UNKNOWN: Final = -1
_NO_RECORDS: Final = b""
_NONE: Final = int(ErrorCode.NONE)


class PartitionReader:
    """How one fetch reads: who asks, up to where, and with which rights."""

    __slots__ = (
        "_broker",
        "is_from_follower",
        "is_hasty",
        "is_leader_needed",
        "is_read_committed",
        "replica_id",
    )

    def __init__(
        self, broker: Broker, replica_id: int, *, is_leader_needed: bool, isolation_level: int
    ) -> None:
        self._broker = broker
        self.is_hasty: bool = True
        """Whether to leave cold records to a job (`ColdRead`)."""
        self.is_from_follower: bool = replica_id >= 0
        self.replica_id = BrokerId(replica_id) if self.is_from_follower else NO_BROKER
        self.is_leader_needed: bool = is_leader_needed or self.is_from_follower
        """Consumers may read from followers from Fetch 11 on (KIP-392)."""
        self.is_read_committed: bool = (
            isolation_level == READ_COMMITTED and not self.is_from_follower
        )

    def read(
        self,
        asked: FetchedPartition,
        limit_bytes: int,
        must_return_one: bool,
        is_acknowledgement: bool,
        now_ms: int,
    ) -> PartitionData:
        """Read at most `limit_bytes`; `is_acknowledgement` when the request just came."""
        replicas = self._broker.replicas
        topic = asked.topic or ""
        partition = replicas.find(topic, asked.partition)
        if partition is None:
            return failed(asked, replicas.absence(topic, asked.partition))
        error = self._check(partition, asked)
        log = partition.log
        if error != _NONE or log is None:
            return failed(asked, error)
        if partition.is_dirty:
            replicas.write_out(partition, now_ms)
        try:
            answer = self._read_log(partition, log, asked, limit_bytes, must_return_one)
        except DiskError as problem:
            replicas.take_offline(partition, problem.reason, now_ms)
            return failed(asked, ErrorCode.KAFKA_STORAGE_ERROR)
        except CorruptBatch:
            # Damage in the middle of a file: other offsets of the partition are still good.
            return failed(asked, ErrorCode.CORRUPT_MESSAGE)
        leader = partition.leader
        if (
            is_acknowledgement
            and self.is_from_follower
            and leader is not None
            and answer.error_code == _NONE
            and answer.diverging_epoch.epoch < 0
            and leader.note_follower_fetch(self.replica_id, asked.fetch_offset, now_ms)
        ):
            replicas.note_watermark_moved(partition, now_ms)
        return answer

    def _check(self, partition: Partition, asked: FetchedPartition) -> int:
        """Whether this broker may answer for the partition at all; Kafka's order of checks."""
        if partition.is_offline:
            return ErrorCode.KAFKA_STORAGE_ERROR
        if asked.topic_id != NO_TOPIC_ID:
            topic_id = partition.topic_id
            if topic_id != NO_TOPIC_ID and topic_id != asked.topic_id:
                return ErrorCode.INCONSISTENT_TOPIC_ID
        error = partition.check_leader_epoch(asked.current_leader_epoch)
        if error != _NONE:
            return error
        leader = partition.leader
        if partition.log is None or (leader is None and self.is_leader_needed):
            return ErrorCode.NOT_LEADER_OR_FOLLOWER
        if (
            self.is_from_follower
            and leader is not None
            and leader.follower(self.replica_id) is None
        ):
            # Not an assigned replica as far as this leader knows; the asker may know more.
            if asked.current_leader_epoch >= 0:
                return ErrorCode.UNKNOWN_LEADER_EPOCH
            return ErrorCode.NOT_LEADER_OR_FOLLOWER
        return _NONE

    def _read_log(
        self,
        partition: Partition,
        log: PartitionLog,
        asked: FetchedPartition,
        limit_bytes: int,
        must_return_one: bool,
    ) -> PartitionData:
        offset = asked.fetch_offset
        high_watermark = log.high_watermark
        last_stable_offset = log.last_stable_offset
        log_start_offset = log.log_start_offset
        if asked.last_fetched_epoch >= 0:
            position = FollowerPosition(offset, asked.last_fetched_epoch)
            own = partition.end_offset_for_epoch(asked.last_fetched_epoch)
            if is_out_of_range(position, own, log_start_offset):
                return failed(asked, ErrorCode.OFFSET_OUT_OF_RANGE)
            if diverges(position, own):
                return PartitionData(
                    partition_index=asked.partition,
                    high_watermark=high_watermark,
                    last_stable_offset=last_stable_offset,
                    log_start_offset=log_start_offset,
                    diverging_epoch=EpochEndOffset(LeaderEpoch(own.epoch), own.end_offset),
                    aborted_transactions=None,
                    records=_NO_RECORDS,
                )
        if self.is_from_follower:
            upper_offset = log.log_end_offset
        elif self.is_read_committed:
            upper_offset = last_stable_offset
        else:
            upper_offset = high_watermark
        max_bytes = asked.max_bytes if asked.max_bytes < limit_bytes else limit_bytes
        records = log.read(offset, max_bytes, upper_offset, must_return_one, self.is_hasty)
        if records is None:
            return failed(asked, ErrorCode.OFFSET_OUT_OF_RANGE)
        aborted: list[AbortedTransaction] | None = None
        if self.is_read_committed:
            aborted = _aborted_transactions(log, offset, records)
        return PartitionData(
            partition_index=asked.partition,
            high_watermark=high_watermark,
            last_stable_offset=last_stable_offset,
            log_start_offset=log_start_offset,
            aborted_transactions=aborted,
            records=records,
        )


def _aborted_transactions(
    log: PartitionLog, offset: int, records: bytes | FileSlice
) -> list[AbortedTransaction]:
    """Of which producers a read_committed consumer must leave out records, and from where."""
    size_bytes = len(records) if isinstance(records, bytes) else records.size_bytes
    if size_bytes == 0:
        return []
    return [
        AbortedTransaction(producer_id=aborted.producer_id, first_offset=aborted.first_offset)
        for aborted in aborted_transactions(log, offset, size_bytes)
    ]


def failed(asked: FetchedPartition, error: int) -> PartitionData:
    """A partition that cannot be read, and why."""
    return failed_partition(asked.partition, error)


def failed_partition(index: int, error: int) -> PartitionData:
    """The same by its number alone."""
    return PartitionData(
        partition_index=index,
        error_code=error,
        high_watermark=_UNKNOWN,
        aborted_transactions=None,
        records=_NO_RECORDS,
    )


def release_records(answer: PartitionData) -> None:
    """Give back the file of an answer that will not be sent."""
    records = answer.records
    if isinstance(records, FileSlice):
        records.disk.release(records.file)
    answer.records = _NO_RECORDS
