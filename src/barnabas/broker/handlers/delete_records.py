"""DeleteRecords: the leader lets a log begin later, up to its high watermark (KIP-107)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.broker.connections import Request
from barnabas.broker.record_deletions import DeletionResult
from barnabas.formats.wire.generated.delete_records import (
    DeleteRecordsPartitionResult,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopicResult,
)
from barnabas.model.ids import TopicPartition

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker


def handle(broker: Broker, request: Request, body: DeleteRecordsRequest, now_ms: int) -> None:
    """Answer when it is done; a partition that is named twice counts as named last."""
    wishes = {
        TopicPartition(topic.name, one.partition_index): one.offset
        for topic in body.topics
        for one in topic.partitions
    }

    def on_deleted(results: dict[TopicPartition, DeletionResult]) -> None:
        topics: dict[str, DeleteRecordsTopicResult] = {}
        for key in wishes:
            low_watermark, error = results[key]
            topic = topics.setdefault(key.topic, DeleteRecordsTopicResult(name=key.topic))
            topic.partitions.append(
                DeleteRecordsPartitionResult(
                    partition_index=key.partition, low_watermark=low_watermark, error_code=error
                )
            )
        broker.answer(request, DeleteRecordsResponse(topics=list(topics.values())))

    broker.record_deletions.delete(wishes, body.timeout_ms, request.connection, on_deleted, now_ms)
