"""DescribeProducers: the producers with an id that a led partition knows of (KIP-664)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.broker.connections import Request
from barnabas.core.administration.topic_names import find_fault
from barnabas.formats.wire.generated.describe_producers import (
    DescribeProducersRequest,
    DescribeProducersResponse,
    PartitionResponse,
    ProducerState,
    TopicRequest,
    TopicResponse,
)
from barnabas.model.error_codes import ErrorCode, bounded_message
from barnabas.model.ids import ProducerId

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker

NOT_HERE = "This server does not host this topic-partition."


def handle(
    broker: Broker, request: Request, body: DescribeProducersRequest, now_ms: int
) -> DescribeProducersResponse:
    """Answer from memory; a partition that is named again in a topic is told of once."""
    return DescribeProducersResponse(
        topics=[
            TopicResponse(name=topic.name, partitions=_describe_topic(broker, topic, now_ms))
            for topic in _merged(body.topics)
        ]
    )


def _merged(topics: list[TopicRequest]) -> list[TopicRequest]:
    """Each topic once with each index once: a short question must not make a long answer."""
    indexes: dict[str, dict[int, None]] = {}
    for topic in topics:
        indexes.setdefault(topic.name, {}).update(dict.fromkeys(topic.partition_indexes))
    return [
        TopicRequest(name=name, partition_indexes=list(asked)) for name, asked in indexes.items()
    ]


def _describe_topic(broker: Broker, topic: TopicRequest, now_ms: int) -> list[PartitionResponse]:
    fault = find_fault(topic.name)
    if fault is not None:
        error, message = ErrorCode.INVALID_TOPIC_EXCEPTION, bounded_message(fault)
    elif broker.metadata_cache.topic(topic.name) is None:
        error, message = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, NOT_HERE
    else:
        return [_describe(broker, topic.name, index, now_ms) for index in topic.partition_indexes]
    return [
        PartitionResponse(partition_index=index, error_code=error, error_message=message)
        for index in topic.partition_indexes
    ]


def _describe(broker: Broker, topic: str, index: int, now_ms: int) -> PartitionResponse:
    partition = broker.replicas.find(topic, index)
    if partition is None:
        return _failed(index, broker.replicas.absence(topic, index))
    # Producers run ahead of what is written until the end of the turn.
    broker.replicas.write_out(partition, now_ms)
    log = partition.log
    if partition.is_offline:
        return _failed(index, ErrorCode.KAFKA_STORAGE_ERROR)
    if not partition.is_leader or log is None:
        return _failed(index, ErrorCode.NOT_LEADER_OR_FOLLOWER)
    return PartitionResponse(
        partition_index=index,
        active_producers=[
            ProducerState(
                producer_id=ProducerId(entry.producer_id),
                producer_epoch=entry.producer_epoch,
                last_sequence=entry.batches[-1].last_sequence if entry.batches else -1,
                last_timestamp=entry.last_timestamp,
                coordinator_epoch=entry.coordinator_epoch,
                current_txn_start_offset=entry.transaction_first_offset,
            )
            for entry in log.producers.producers()
        ],
    )


def _failed(index: int, error: ErrorCode) -> PartitionResponse:
    return PartitionResponse(partition_index=index, error_code=error)
