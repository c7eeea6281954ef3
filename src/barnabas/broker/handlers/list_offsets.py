"""ListOffsets: offsets of a partition by time, or at its ends."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from barnabas.broker.connections import Request
from barnabas.broker.partition import Partition
from barnabas.formats.logdir.names import LOG_SUFFIX
from barnabas.formats.wire.generated.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from barnabas.model.epochs import LeaderEpoch
from barnabas.model.error_codes import ErrorCode
from barnabas.model.errors import CorruptBatch, DiskError
from barnabas.model.ids import TopicPartition
from barnabas.storage.offset_queries import (
    TimedOffset,
    earliest_offset,
    offset_for_time,
    youngest_record,
)
from barnabas.storage.partition_log import PartitionLog

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker

LATEST: Final = -1
EARLIEST: Final = -2
MAX_TIMESTAMP: Final = -3
EARLIEST_LOCAL: Final = -4
"""What is not in tiered storage, which is everything here."""
LATEST_TIERED: Final = -5

FIRST_VERSION_OF: Final = {
    LATEST: 1,
    EARLIEST: 1,
    MAX_TIMESTAMP: 7,
    EARLIEST_LOCAL: 8,
    LATEST_TIERED: 9,
}
FIRST_VERSION_WITH_LEADER_EPOCHS: Final = 4
FIRST_VERSION_OF_OFFSET_NOT_AVAILABLE: Final = 5
READ_UNCOMMITTED: Final = 0
READ_COMMITTED: Final = 1
CONSUMER: Final = -1
DEBUGGING_CONSUMER: Final = -2
"""May ask a follower."""

_NOTHING: Final = TimedOffset(-1, -1, -1)


def handle(
    broker: Broker, request: Request, body: ListOffsetsRequest, now_ms: int
) -> ListOffsetsResponse:
    """Answer every partition; one that is asked for twice is asked for wrongly."""
    query = _Query(broker, request.api_version, body, now_ms)
    return ListOffsetsResponse(
        topics=[
            ListOffsetsTopicResponse(
                name=topic.name,
                partitions=[query.answer(topic.name, asked) for asked in topic.partitions],
            )
            for topic in body.topics
        ]
    )


class _Query:
    """One request's way of asking: who asks, at which version, what may be seen."""

    def __init__(self, broker: Broker, version: int, body: ListOffsetsRequest, now_ms: int) -> None:
        self._broker = broker
        self._version = version
        self._is_from_consumer = body.replica_id == CONSUMER
        self._is_leader_needed = body.replica_id != DEBUGGING_CONSUMER
        self._is_known_isolation = body.isolation_level in (READ_UNCOMMITTED, READ_COMMITTED)
        self._is_read_committed = body.isolation_level == READ_COMMITTED
        self._now_ms = now_ms
        counts: dict[TopicPartition, int] = {}
        for topic in body.topics:
            for asked in topic.partitions:
                key = TopicPartition(topic.name, asked.partition_index)
                counts[key] = counts.get(key, 0) + 1
        self._counts = counts

    def answer(self, topic: str, asked: ListOffsetsPartition) -> ListOffsetsPartitionResponse:
        if not self._is_known_isolation:
            return self._failed(asked, ErrorCode.UNKNOWN_SERVER_ERROR)
        if not self._is_known_timestamp(asked.timestamp):
            return self._failed(asked, ErrorCode.UNSUPPORTED_VERSION)
        if self._version > 0 and self._counts[TopicPartition(topic, asked.partition_index)] > 1:
            return self._failed(asked, ErrorCode.INVALID_REQUEST)
        replicas = self._broker.replicas
        partition = replicas.find(topic, asked.partition_index)
        if partition is None:
            return self._failed(asked, replicas.absence(topic, asked.partition_index))
        error = self._check(partition, asked)
        log = partition.log
        if error != ErrorCode.NONE or log is None:
            return self._failed(asked, error)
        replicas.write_out(partition, self._now_ms)
        try:
            if self._version == 0:
                return self._offsets_before(log, asked)
            return self._find(partition, log, asked)
        except CorruptBatch:
            return self._failed(asked, ErrorCode.CORRUPT_MESSAGE)
        except DiskError as problem:
            replicas.take_offline(partition, problem.reason, self._now_ms)
            return self._failed(asked, ErrorCode.KAFKA_STORAGE_ERROR)

    def _is_known_timestamp(self, timestamp: int) -> bool:
        """Negative ones are not times but names, which came one after the other."""
        if self._version == 0:
            return timestamp >= EARLIEST
        return timestamp >= 0 or self._version >= FIRST_VERSION_OF.get(timestamp, 1 << 15)

    def _check(self, partition: Partition, asked: ListOffsetsPartition) -> ErrorCode:
        if partition.is_offline:
            return ErrorCode.KAFKA_STORAGE_ERROR
        error = partition.check_leader_epoch(asked.current_leader_epoch)
        if error != ErrorCode.NONE:
            return error
        if partition.log is None or (self._is_leader_needed and not partition.is_leader):
            return ErrorCode.NOT_LEADER_OR_FOLLOWER
        return ErrorCode.NONE

    def _find(
        self, partition: Partition, log: PartitionLog, asked: ListOffsetsPartition
    ) -> ListOffsetsPartitionResponse:
        timestamp = asked.timestamp
        if timestamp in (EARLIEST, EARLIEST_LOCAL):
            return self._found(asked, earliest_offset(log))
        end_offset = self._end_offset(log)
        if timestamp == LATEST:
            if self._is_behind_its_epoch(partition, log):
                return self._not_available(asked)
            return self._found(asked, TimedOffset(-1, end_offset, partition.leader_epoch))
        if timestamp == LATEST_TIERED:
            return self._found(asked, _NOTHING)
        if timestamp == MAX_TIMESTAMP:
            found = youngest_record(log)
        else:
            found = offset_for_time(log, timestamp)
        if found is not None and found.offset < end_offset:
            return self._found(asked, found)
        if self._is_behind_its_epoch(partition, log):
            return self._not_available(asked)
        return self._found(asked, _NOTHING)

    def _end_offset(self, log: PartitionLog) -> int:
        """Up to where the asker may see."""
        if not self._is_from_consumer:
            return log.log_end_offset
        return log.last_stable_offset if self._is_read_committed else log.high_watermark

    def _is_behind_its_epoch(self, partition: Partition, log: PartitionLog) -> bool:
        """A leader whose watermark is below its epoch's start may yet have exposed more before.

        Its answer could let a consumer's position go back (KIP-207).
        """
        leader = partition.leader
        return (
            self._is_from_consumer
            and leader is not None
            and leader.epoch_start_offset > log.high_watermark
        )

    def _not_available(self, asked: ListOffsetsPartition) -> ListOffsetsPartitionResponse:
        if self._version >= FIRST_VERSION_OF_OFFSET_NOT_AVAILABLE:
            return self._failed(asked, ErrorCode.OFFSET_NOT_AVAILABLE)
        return self._failed(asked, ErrorCode.LEADER_NOT_AVAILABLE)

    def _found(
        self, asked: ListOffsetsPartition, found: TimedOffset
    ) -> ListOffsetsPartitionResponse:
        response = ListOffsetsPartitionResponse(
            partition_index=asked.partition_index, timestamp=found.timestamp, offset=found.offset
        )
        if self._version >= FIRST_VERSION_WITH_LEADER_EPOCHS:
            response.leader_epoch = LeaderEpoch(found.leader_epoch)
        return response

    def _failed(
        self, asked: ListOffsetsPartition, error: ErrorCode
    ) -> ListOffsetsPartitionResponse:
        return ListOffsetsPartitionResponse(partition_index=asked.partition_index, error_code=error)

    def _offsets_before(
        self, log: PartitionLog, asked: ListOffsetsPartition
    ) -> ListOffsetsPartitionResponse:
        """Version 0: where segments begin whose files were last changed before the time."""
        offsets = segment_offsets_before(
            log, asked.timestamp, asked.max_num_offsets, self._broker.wall_clock.epoch_ms()
        )
        high_watermark = log.high_watermark
        if self._is_from_consumer and any(offset > high_watermark for offset in offsets):
            offsets = [high_watermark] + [one for one in offsets if one <= high_watermark]
        return ListOffsetsPartitionResponse(
            partition_index=asked.partition_index, old_style_offsets=offsets
        )


def segment_offsets_before(
    log: PartitionLog, timestamp: int, count_max: int, wall_ms: int
) -> list[int]:
    """At most so many segment starts, latest first, of segments no younger than the time."""
    disk = log.files.disk
    starts = [
        (
            max(segment.base_offset, log.log_start_offset),
            disk.status(segment.path(LOG_SUFFIX)).modified_ms,
        )
        for segment in log.segments
    ]
    if log.active_segment.size_bytes > 0:
        starts.append((log.log_end_offset, wall_ms))
    last = len(starts) - 1
    if timestamp == EARLIEST:
        last = 0
    elif timestamp != LATEST:
        while last >= 0 and starts[last][1] > timestamp:
            last -= 1
    chosen = [offset for offset, _ in starts[: last + 1]]
    return sorted(chosen[max(0, len(chosen) - max(0, count_max)) :], reverse=True)
