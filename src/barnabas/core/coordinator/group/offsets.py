"""The offsets of a group: committed ones, those on their way, and which may be forgotten."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING

from barnabas.core.coordinator.group.group_states import GroupState
from barnabas.formats.internal_topics.consumer_offsets import NO_TIMESTAMP, CommittedOffset
from barnabas.model.ids import TopicPartition

if TYPE_CHECKING:
    from barnabas.core.coordinator.group.group import Group


class GroupOffsets:
    """Writes are numbered as they are handed out; an older one never undoes a newer one."""

    __slots__ = ("_applied", "_pending", "_sequence", "committed")

    def __init__(self) -> None:
        self.committed: dict[TopicPartition, CommittedOffset] = {}
        self._applied: dict[TopicPartition, int] = {}
        """The write that each committed offset came with; those that were loaded have none."""
        self._pending: dict[TopicPartition, list[int]] = {}
        """The writes on their way for each partition."""
        self._sequence = 0

    @property
    def has_pending(self) -> bool:
        return bool(self._pending)

    @property
    def count(self) -> int:
        return len(self.committed) + len(self._pending)

    def is_pending(self, partition: TopicPartition) -> bool:
        return partition in self._pending

    def has(self, partition: TopicPartition) -> bool:
        """Whether there is an offset, or one on its way."""
        return partition in self.committed or partition in self._pending

    def all_partitions(self) -> list[TopicPartition]:
        """With offsets, or with one on its way."""
        return list(dict.fromkeys([*self.committed, *self._pending]))

    def begin_write(self) -> int:
        """The number of a write that is handed out now."""
        self._sequence += 1
        return self._sequence

    def note_pending(self, partitions: Iterable[TopicPartition], sequence: int) -> None:
        for partition in partitions:
            self._pending.setdefault(partition, []).append(sequence)

    def apply(self, offsets: Mapping[TopicPartition, CommittedOffset], sequence: int) -> None:
        """They are replicated; a partition whose offsets were removed since stays without."""
        for partition, offset in offsets.items():
            if sequence not in self._pending.get(partition, ()):
                continue
            if self._applied.get(partition, 0) < sequence:
                self.committed[partition] = offset
                self._applied[partition] = sequence
        self.drop_pending(offsets, sequence)

    def drop_pending(self, partitions: Iterable[TopicPartition], sequence: int) -> None:
        """Their write has ended."""
        for partition in partitions:
            self._keep_pending(partition, lambda other: other != sequence)

    def remove(self, partitions: Iterable[TopicPartition], sequence: int) -> None:
        """Their tombstones are replicated; what was written after these stays."""
        for partition in partitions:
            if self._applied.get(partition, 0) < sequence:
                self.committed.pop(partition, None)
                self._applied.pop(partition, None)
            self._keep_pending(partition, lambda other: other > sequence)

    def _keep_pending(self, partition: TopicPartition, keeps: Callable[[int], bool]) -> None:
        kept = [sequence for sequence in self._pending.get(partition, ()) if keeps(sequence)]
        if kept:
            self._pending[partition] = kept
        else:
            self._pending.pop(partition, None)


def expired_offsets(group: Group, epoch_ms: int, retention_ms: int) -> list[TopicPartition]:
    """What may be forgotten: no offset of a group in use, none of a topic that is consumed."""
    if group.protocol_type is None:
        base_timestamp = NO_TIMESTAMP
        consumed: frozenset[str] = frozenset()
    elif group.state is GroupState.EMPTY:
        # Since it is empty, however old the commits are.
        base_timestamp = group.state_timestamp
        consumed = frozenset()
    elif (
        group.is_consumer_group
        and group.subscribed_topics is not None
        and group.state is GroupState.STABLE
    ):
        base_timestamp = NO_TIMESTAMP
        consumed = group.subscribed_topics
    else:
        return []
    return [
        partition
        for partition, offset in group.offsets.committed.items()
        if partition.topic not in consumed
        and not group.offsets.is_pending(partition)
        and _is_over(offset, base_timestamp, epoch_ms, retention_ms)
    ]


def _is_over(
    offset: CommittedOffset, base_timestamp: int, epoch_ms: int, retention_ms: int
) -> bool:
    if offset.expire_timestamp != NO_TIMESTAMP:
        return epoch_ms >= offset.expire_timestamp
    if base_timestamp == NO_TIMESTAMP:
        base_timestamp = offset.commit_timestamp
    return epoch_ms - base_timestamp >= retention_ms
