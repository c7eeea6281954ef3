"""OffsetFetch: where groups are in the partitions that they read."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Final

from barnabas.broker.connections import Request
from barnabas.core.coordinator.group.requests import FetchedOffset, FetchOffsetsResult
from barnabas.formats.wire.generated.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartition,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopic,
    OffsetFetchResponseTopics,
)
from barnabas.model.epochs import LeaderEpoch
from barnabas.model.error_codes import ErrorCode
from barnabas.model.ids import TopicPartition

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker

VERSION_OF_OLD_CONSUMERS: Final = 0
FIRST_VERSION_WITH_GROUP_ERROR: Final = 2
FIRST_VERSION_WITH_MANY: Final = 8

AskedTopics = Sequence[OffsetFetchRequestTopic] | Sequence[OffsetFetchRequestTopics]


def handle(
    broker: Broker, request: Request, body: OffsetFetchRequest, now_ms: int
) -> OffsetFetchResponse | None:
    """Answer at once, but for the oldest version, whose offsets are in the metadata store."""
    version = request.api_version
    if version >= FIRST_VERSION_WITH_MANY:
        return OffsetFetchResponse(
            groups=[
                _group(group.group_id, _fetch(broker, group.group_id, group.topics, body))
                for group in body.groups
            ]
        )
    if version == VERSION_OF_OLD_CONSUMERS:

        def answer(offsets: dict[TopicPartition, FetchedOffset]) -> None:
            broker.answer(request, OffsetFetchResponse(topics=_topics(offsets)))

        broker.old_offsets.fetch(body.group_id, _partitions(body.topics or ()), answer)
        return None
    result = _fetch(broker, body.group_id, body.topics, body)
    offsets = result.offsets
    if result.error != ErrorCode.NONE and version < FIRST_VERSION_WITH_GROUP_ERROR:
        refused = FetchedOffset(error=result.error)
        offsets = dict.fromkeys(_partitions(body.topics or ()), refused)
    return OffsetFetchResponse(error_code=result.error, topics=_topics(offsets))


def _fetch(
    broker: Broker, group_id: str, topics: AskedTopics | None, body: OffsetFetchRequest
) -> FetchOffsetsResult:
    """Of the partitions named; of all that the group has committed when none are."""
    partitions = None if topics is None else tuple(_partitions(topics))
    return broker.groups.fetch_offsets(group_id, partitions, body.require_stable)


def _partitions(topics: AskedTopics) -> list[TopicPartition]:
    return [
        TopicPartition(topic.name, index) for topic in topics for index in topic.partition_indexes
    ]


def _by_topic(
    offsets: dict[TopicPartition, FetchedOffset],
) -> Iterable[tuple[str, list[tuple[int, FetchedOffset]]]]:
    by_topic: dict[str, list[tuple[int, FetchedOffset]]] = {}
    for key, offset in offsets.items():
        by_topic.setdefault(key.topic, []).append((key.partition, offset))
    return by_topic.items()


def _topics(offsets: dict[TopicPartition, FetchedOffset]) -> list[OffsetFetchResponseTopic]:
    return [
        OffsetFetchResponseTopic(
            name=name,
            partitions=[
                OffsetFetchResponsePartition(
                    partition_index=index,
                    committed_offset=fetched.offset,
                    committed_leader_epoch=LeaderEpoch(fetched.leader_epoch),
                    metadata=fetched.metadata,
                    error_code=fetched.error,
                )
                for index, fetched in found
            ],
        )
        for name, found in _by_topic(offsets)
    ]


def _group(group_id: str, result: FetchOffsetsResult) -> OffsetFetchResponseGroup:
    return OffsetFetchResponseGroup(
        group_id=group_id,
        error_code=result.error,
        topics=[
            OffsetFetchResponseTopics(
                name=name,
                partitions=[
                    OffsetFetchResponsePartitions(
                        partition_index=index,
                        committed_offset=fetched.offset,
                        committed_leader_epoch=LeaderEpoch(fetched.leader_epoch),
                        metadata=fetched.metadata,
                        error_code=fetched.error,
                    )
                    for index, fetched in found
                ],
            )
            for name, found in _by_topic(result.offsets)
        ],
    )
