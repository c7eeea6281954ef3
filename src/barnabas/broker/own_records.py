"""Records that this broker itself appends: like a produce with acks=all, told to a room of its own.

Coordinators keep their state in internal topics. What they append takes the way of a client's
batch: staged, written at the end of the turn, replicated, released by the watermark.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from barnabas.broker.purgatory import PendingProduce, Replicated
from barnabas.formats.batches.builder import BatchBuilder
from barnabas.formats.batches.compression import CompressionCodec
from barnabas.formats.batches.header import BatchHeader
from barnabas.formats.wire.generated.produce import (
    PartitionProduceResponse,
    ProduceResponse,
    TopicProduceResponse,
)
from barnabas.model.error_codes import ErrorCode
from barnabas.model.errors import DiskError
from barnabas.model.ids import TopicPartition

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker

ACKS_ALL = -1

KeyAndValue = tuple[bytes, bytes | None]


def append_own(
    broker: Broker,
    key: TopicPartition,
    records: Sequence[KeyAndValue],
    *,
    codec: CompressionCodec,
    timeout_ms: int,
    then: Replicated,
    now_ms: int,
) -> None:
    """Append one batch; `then(error, now_ms)` once it is replicated, or at once when it is not."""
    replicas = broker.replicas
    partition = replicas.find(key.topic, key.partition)
    if partition is None:
        then(replicas.absence(key.topic, key.partition), now_ms)
        return
    leader, log = partition.leader, partition.log
    if leader is None or log is None:
        is_lost = partition.is_offline
        then(ErrorCode.KAFKA_STORAGE_ERROR if is_lost else ErrorCode.NOT_LEADER_OR_FOLLOWER, now_ms)
        return
    if leader.is_under_min_isr:
        then(ErrorCode.NOT_ENOUGH_REPLICAS, now_ms)
        return
    wall_ms = replicas.wall_ms(now_ms)
    data = _batch_of(records, codec, wall_ms)
    try:
        result = log.append_as_leader(
            data, 0, len(data), BatchHeader(data, 0), partition.leader_epoch, wall_ms
        )
    except DiskError as problem:
        replicas.take_offline(partition, problem.reason, now_ms)
        then(ErrorCode.KAFKA_STORAGE_ERROR, now_ms)
        return
    if result.error != ErrorCode.NONE:
        then(result.error, now_ms)
        return
    answer = PartitionProduceResponse(index=key.partition, base_offset=result.base_offset)
    response = ProduceResponse(
        responses=[TopicProduceResponse(name=key.topic, partition_responses=[answer])]
    )
    pending = PendingProduce(None, response, ACKS_ALL, timeout_ms, then)
    replicas.note_appended(partition)
    partition.room.this_turn.append((result.last_offset + 1, pending, answer))


def _batch_of(records: Sequence[KeyAndValue], codec: CompressionCodec, wall_ms: int) -> bytes:
    builder = BatchBuilder(codec=codec)
    for key, value in records:
        builder.append(key, value, wall_ms)
    return builder.build()
