"""OffsetCommit: where a group is in the partitions that it reads."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from barnabas.broker.connections import Request
from barnabas.core.coordinator.group.requests import CommitAsked, CommitResult, PartitionCommit
from barnabas.formats.wire.generated.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from barnabas.model.error_codes import ErrorCode
from barnabas.model.ids import TopicPartition

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker

VERSION_OF_OLD_CONSUMERS: Final = 0
"""They keep their offsets in the metadata store, and no coordinator knows of them."""


def handle(broker: Broker, request: Request, body: OffsetCommitRequest, now_ms: int) -> None:
    """Take the offsets of partitions that exist to the group, and wait until they are kept."""
    commits: list[PartitionCommit] = []
    for topic in body.topics:
        for partition in topic.partitions:
            if broker.metadata_cache.contains(topic.name, partition.partition_index):
                commits.append(
                    PartitionCommit(
                        TopicPartition(topic.name, partition.partition_index),
                        partition.committed_offset,
                        partition.committed_leader_epoch,
                        partition.committed_metadata,
                        partition.commit_timestamp,
                    )
                )

    def answer(result: CommitResult) -> None:
        broker.answer(request, _response(body, result.errors))

    if not commits and body.topics:
        # A commit without topics is a member's sign of life, one of unknown topics is not.
        answer(CommitResult({}))
    elif request.api_version == VERSION_OF_OLD_CONSUMERS:
        broker.old_offsets.commit(body.group_id, commits, answer)
    else:
        asked = CommitAsked(
            group_id=body.group_id,
            generation_id=body.generation_id_or_member_epoch,
            member_id=body.member_id,
            group_instance_id=body.group_instance_id,
            commits=tuple(commits),
            retention_ms=body.retention_time_ms,
        )
        broker.groups.commit_offsets(asked, answer, now_ms)


def _response(
    body: OffsetCommitRequest, errors: dict[TopicPartition, ErrorCode]
) -> OffsetCommitResponse:
    """Every partition that was named, those that do not exist with the error for that."""
    return OffsetCommitResponse(
        topics=[
            OffsetCommitResponseTopic(
                name=topic.name,
                partitions=[
                    OffsetCommitResponsePartition(
                        partition_index=partition.partition_index,
                        error_code=errors.get(
                            TopicPartition(topic.name, partition.partition_index),
                            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
                        ),
                    )
                    for partition in topic.partitions
                ],
            )
            for topic in body.topics
        ]
    )
