"""OffsetForLeaderEpoch: where a leader epoch ends in the leader's log (KIP-101, KIP-279)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.broker.connections import Request
from barnabas.formats.wire.generated.offset_for_leader_epoch import (
    EpochEndOffset,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderPartition,
    OffsetForLeaderTopicResult,
)
from barnabas.model.epochs import LeaderEpoch
from barnabas.model.error_codes import ErrorCode

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker


def handle(
    broker: Broker, request: Request, body: OffsetForLeaderEpochRequest, now_ms: int
) -> OffsetForLeaderEpochResponse:
    """Only the leader answers; an epoch that it does not know is answered with -1 and -1."""
    return OffsetForLeaderEpochResponse(
        topics=[
            OffsetForLeaderTopicResult(
                topic=topic.topic,
                partitions=[
                    _end_of(broker, topic.topic, asked, now_ms) for asked in topic.partitions
                ],
            )
            for topic in body.topics
        ]
    )


def _end_of(
    broker: Broker, topic: str, asked: OffsetForLeaderPartition, now_ms: int
) -> EpochEndOffset:
    partition = broker.replicas.find(topic, asked.partition)
    if partition is None:
        return _failed(asked, broker.replicas.absence(topic, asked.partition))
    if partition.is_offline:
        return _failed(asked, ErrorCode.KAFKA_STORAGE_ERROR)
    error = partition.check_leader_epoch(asked.current_leader_epoch)
    if error != ErrorCode.NONE:
        return _failed(asked, error)
    broker.replicas.write_out(partition, now_ms)
    if not partition.is_leader or partition.log is None:
        return _failed(asked, ErrorCode.NOT_LEADER_OR_FOLLOWER)
    end = partition.end_offset_for_epoch(asked.leader_epoch)
    return EpochEndOffset(
        partition=asked.partition, leader_epoch=LeaderEpoch(end.epoch), end_offset=end.end_offset
    )


def _failed(asked: OffsetForLeaderPartition, error: ErrorCode) -> EpochEndOffset:
    return EpochEndOffset(partition=asked.partition, error_code=error)
