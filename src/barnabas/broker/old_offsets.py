"""Offsets of consumers from before coordinators: OffsetCommit and OffsetFetch in version 0.

They stand in the metadata store, a node for each partition, where ZooKeeper's own consumers of
old looked for them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from barnabas.core.coordinator.group.requests import CommitResult, FetchedOffset, PartitionCommit
from barnabas.model.error_codes import ErrorCode
from barnabas.model.ids import TopicPartition
from barnabas.model.znode import Create, GetData, SetData, StoreAnswer, StoreError

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker

PARTITIONS_MAX = 1000
"""Nodes that one commit may write: each is a round trip to the store."""


class OldOffsets:
    """Reads and writes /consumers/GROUP/offsets/TOPIC/PARTITION."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker

    def commit(
        self,
        group_id: str,
        commits: Sequence[PartitionCommit],
        answer: Callable[[CommitResult], None],
    ) -> None:
        """Write the offsets; `answer` when the store has taken or refused every one.

        Of a partition named twice the last offset counts.
        """
        errors: dict[TopicPartition, ErrorCode] = {}
        metadata_max = self._broker.config.offset_metadata_max_bytes
        wanted: list[PartitionCommit] = []
        for commit in {commit.partition: commit for commit in commits}.values():
            errors[commit.partition] = ErrorCode.NONE
            if commit.metadata is not None and len(commit.metadata) > metadata_max:
                errors[commit.partition] = ErrorCode.OFFSET_METADATA_TOO_LARGE
            elif not _can_be_named(group_id) or len(wanted) == PARTITIONS_MAX:
                errors[commit.partition] = ErrorCode.UNKNOWN_SERVER_ERROR
            else:
                wanted.append(commit)
        left = dict.fromkeys(commit.partition for commit in wanted)

        def on_written(key: TopicPartition, is_written: bool) -> None:
            if not is_written:
                errors[key] = ErrorCode.UNKNOWN_SERVER_ERROR
            left.pop(key, None)
            if not left:
                answer(CommitResult(errors))

        if not wanted:
            answer(CommitResult(errors))
        for commit in wanted:
            path = _path(group_id, commit.partition)
            self._write(commit.partition, path, str(commit.offset).encode(), on_written)

    def _write(
        self,
        key: TopicPartition,
        path: str,
        data: bytes,
        then: Callable[[TopicPartition, bool], None],
    ) -> None:
        metadata = self._broker.metadata

        def on_set(answer: StoreAnswer, now_ms: int) -> None:
            if answer.outcomes[0].error is StoreError.NO_NODE:
                # Above it what is missing; what is there already stays as it is.
                nodes = [Create(parent) for parent in _parents(path)]
                metadata.submit([*nodes, Create(path, data)], on_created)
            else:
                then(key, answer.is_ok)

        def on_created(answer: StoreAnswer, now_ms: int) -> None:
            then(key, answer.outcomes[-1].error is StoreError.OK)

        metadata.submit([SetData(path, data)], on_set)

    def fetch(
        self,
        group_id: str,
        partitions: Sequence[TopicPartition],
        answer: Callable[[dict[TopicPartition, FetchedOffset]], None],
    ) -> None:
        """Read the offsets; what is not there is unknown to whoever asks."""
        found: dict[TopicPartition, FetchedOffset] = {}
        wanted: list[TopicPartition] = []
        for key in dict.fromkeys(partitions):
            is_known = self._broker.metadata_cache.contains(key.topic, key.partition)
            found[key] = FetchedOffset(error=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
            if is_known and _can_be_named(group_id) and len(wanted) < PARTITIONS_MAX:
                wanted.append(key)
        if not wanted:
            answer(found)
            return

        def on_read(answered: StoreAnswer, now_ms: int) -> None:
            for key, outcome in zip(wanted, answered.outcomes, strict=False):
                data = outcome.data or b""
                if outcome.is_ok and data.isdigit():
                    found[key] = FetchedOffset(int(data))
            answer(found)

        self._broker.metadata.submit([GetData(_path(group_id, key)) for key in wanted], on_read)


def _can_be_named(group_id: str) -> bool:
    """Whether the group can be a node: a name with a slash would be another path."""
    return bool(group_id) and "/" not in group_id and "\0" not in group_id and group_id[0] != "."


def _path(group_id: str, key: TopicPartition) -> str:
    return f"/consumers/{group_id}/offsets/{key.topic}/{key.partition}"


def _parents(path: str) -> list[str]:
    """Every node above a path, from the second one on: /consumers is always there."""
    names = path.split("/")
    return ["/".join(names[:length]) for length in range(3, len(names))]
