"""OffsetDelete: a group forgets where it was in topics that none of its members reads."""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.broker.connections import Request
from barnabas.core.coordinator.group.requests import DeleteOffsetsResult
from barnabas.formats.wire.generated.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteResponse,
    OffsetDeleteResponsePartition,
    OffsetDeleteResponseTopic,
)
from barnabas.model.error_codes import ErrorCode
from barnabas.model.ids import TopicPartition

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker


def handle(broker: Broker, request: Request, body: OffsetDeleteRequest, now_ms: int) -> None:
    """Take those of partitions that exist to the group."""
    asked = [
        TopicPartition(topic.name, partition.partition_index)
        for topic in body.topics
        for partition in topic.partitions
    ]
    cache = broker.metadata_cache
    known = tuple(key for key in asked if cache.contains(key.topic, key.partition))

    def answer(result: DeleteOffsetsResult) -> None:
        response = OffsetDeleteResponse(error_code=result.error)
        if result.error == ErrorCode.NONE:
            response.topics = [
                OffsetDeleteResponseTopic(
                    name=topic.name,
                    partitions=[
                        OffsetDeleteResponsePartition(
                            partition_index=partition.partition_index,
                            error_code=result.errors.get(
                                TopicPartition(topic.name, partition.partition_index),
                                ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
                            ),
                        )
                        for partition in topic.partitions
                    ],
                )
                for topic in body.topics
            ]
        broker.answer(request, response)

    broker.groups.delete_offsets(body.group_id, known, answer, now_ms)
