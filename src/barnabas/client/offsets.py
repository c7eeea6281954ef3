"""Offsets of partitions: at their ends, and by time."""

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from barnabas.client.errors import code_of
from barnabas.client.routing import Build, Cluster
from barnabas.client.steps import Operation, Response
from barnabas.client.topics import topics_of
from barnabas.formats.wire.api_keys import ApiKey
from barnabas.formats.wire.catalog import Message
from barnabas.formats.wire.generated.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from barnabas.model.error_codes import ErrorCode
from barnabas.model.ids import NO_BROKER, TopicPartition

LATEST: Final = -1
EARLIEST: Final = -2
MAX_TIMESTAMP: Final = -3
NO_OFFSET: Final = -1
CONSUMER: Final = NO_BROKER
"""The replica id of those who are none."""


class FoundOffset(NamedTuple):
    """Where a partition has what was asked for; -1 when it has nothing so young."""

    offset: int
    timestamp: int


def list_offsets(
    cluster: Cluster, asked: Mapping[TopicPartition, int]
) -> Operation[dict[TopicPartition, FoundOffset]]:
    """The offset of the first record at or after a time, or at an end (`EARLIEST`, `LATEST`)."""

    def request_for(places: Sequence[TopicPartition]) -> tuple[ApiKey, Build]:
        def build(version: int) -> Message:
            return ListOffsetsRequest(
                replica_id=CONSUMER,
                topics=[
                    ListOffsetsTopic(
                        name=topic,
                        partitions=[
                            ListOffsetsPartition(
                                partition_index=place.partition, timestamp=asked[place]
                            )
                            for place in places
                            if place.topic == topic
                        ],
                    )
                    for topic in topics_of(places)
                ],
            )

        return ApiKey.LIST_OFFSETS, build

    def read(response: Response) -> dict[TopicPartition, tuple[ErrorCode, Message]]:
        return {
            TopicPartition(topic.name, each.partition_index): (
                code_of(each.error_code),
                _read_found(each, response.version),
            )
            for topic in response.body.topics
            for each in topic.partitions
        }

    return (yield from cluster.ask_leaders(asked, request_for, read))


def _read_found(each: Message, version: int) -> FoundOffset:
    if version == 0:
        return FoundOffset(each.old_style_offsets[0] if each.old_style_offsets else NO_OFFSET, -1)
    return FoundOffset(each.offset, each.timestamp)
