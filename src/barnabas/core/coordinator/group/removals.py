"""Offsets are removed, and with the last of them the group: by request, by age, by a lost topic."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from barnabas.core.coordinator.group.append_errors import commit_error
from barnabas.core.coordinator.group.group import Group
from barnabas.core.coordinator.group.group_states import GroupState
from barnabas.core.coordinator.outcome import CoordinatorRecord, Outcome, Write
from barnabas.formats.internal_topics.consumer_offsets import (
    GroupKey,
    OffsetKey,
    encode_group_key,
    encode_offset_key,
)
from barnabas.model.error_codes import ErrorCode
from barnabas.model.ids import TopicPartition

Done = Callable[[ErrorCode, Outcome], None]
"""Takes the error that clients are told and the outcome to answer into."""

RECORD_OVERHEAD_BYTES: Final = 32
"""At most, of a record in a batch, beside its key."""


@dataclass(slots=True)
class Removal:
    """One group's tombstones: batch after batch, that of the group itself in the last."""

    group: Group
    partitions: list[TopicPartition]
    is_whole: bool
    """Nothing is left of the group afterwards."""
    batch_size_max: int
    on_dead: Callable[[Group, Outcome], None]
    done: Done

    def proceed(self, outcome: Outcome) -> None:
        """Hand out the next batch, or end when there is nothing to write."""
        batch, records = self._next_batch()
        del self.partitions[: len(batch)]
        group = self.group
        if self.is_whole and not self.partitions and group.generation_id > 0:
            records.append(CoordinatorRecord(encode_group_key(GroupKey(group.group_id)), None))
        if not records:
            self._end(ErrorCode.NONE, outcome)
            return
        sequence = group.offsets.begin_write()

        def then(error: ErrorCode, now_ms: int) -> Outcome:
            followed = Outcome()
            if error is not ErrorCode.NONE:
                self._end(commit_error(error), followed)
                return followed
            group.offsets.remove(batch, sequence)
            if self.partitions:
                self.proceed(followed)
            else:
                self._end(ErrorCode.NONE, followed)
            return followed

        outcome.writes.append(Write(tuple(records), then))

    def _next_batch(self) -> tuple[list[TopicPartition], list[CoordinatorRecord]]:
        batch: list[TopicPartition] = []
        records: list[CoordinatorRecord] = []
        size = 0
        for partition in self.partitions:
            key = encode_offset_key(OffsetKey(self.group.group_id, partition))
            size += len(key) + RECORD_OVERHEAD_BYTES
            if size > self.batch_size_max and batch:
                break
            batch.append(partition)
            records.append(CoordinatorRecord(key, None))
        return batch, records

    def _end(self, error: ErrorCode, outcome: Outcome) -> None:
        if self.is_whole:
            self.group.is_being_removed = False
            if error is ErrorCode.NONE and self.group.state is GroupState.EMPTY:
                self.on_dead(self.group, outcome)
        self.done(error, outcome)


def is_left_empty(group: Group, partitions: list[TopicPartition]) -> bool:
    """Whether nothing is left of a group when these offsets are gone."""
    gone = set(partitions)
    return (
        group.state is GroupState.EMPTY
        and not group.pending_members
        and not group.is_being_removed
        and all(partition in gone for partition in group.offsets.all_partitions())
    )
