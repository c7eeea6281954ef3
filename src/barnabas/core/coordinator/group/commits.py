"""OffsetCommit and OffsetFetch: who may commit what and when, and what is told of it."""

from barnabas.core.coordinator.group.append_errors import commit_error
from barnabas.core.coordinator.group.group import Group
from barnabas.core.coordinator.group.group_states import GroupState
from barnabas.core.coordinator.group.rebalances import Rebalances
from barnabas.core.coordinator.group.requests import (
    DEFAULT_RETENTION_MS,
    DEFAULT_TIMESTAMP,
    UNKNOWN_MEMBER_ID,
    CommitAsked,
    CommitResult,
    FetchedOffset,
    PartitionCommit,
)
from barnabas.core.coordinator.outcome import CoordinatorRecord, Outcome, Waiter, Write
from barnabas.formats.internal_topics.consumer_offsets import (
    NO_TIMESTAMP,
    CommittedOffset,
    OffsetKey,
    encode_committed_offset,
    encode_offset_key,
)
from barnabas.model.config import UNLIMITED
from barnabas.model.error_codes import ErrorCode
from barnabas.model.ids import TopicPartition


def commit(
    rebalances: Rebalances,
    group: Group,
    asked: CommitAsked,
    waiter: Waiter,
    outcome: Outcome,
    now_ms: int,
) -> None:
    error = commit_refusal(group, asked)
    if error is ErrorCode.NONE and group.state is GroupState.COMPLETING_REBALANCE:
        # Whose partitions these will be is being decided.
        error = ErrorCode.REBALANCE_IN_PROGRESS
    if error is not ErrorCode.NONE:
        outcome.answer(waiter, refused_commit(asked, error))
        return
    member = group.members.get(asked.member_id)
    if member is not None:
        rebalances.keep_session(group, member, now_ms)
    errors, offsets = _judged(rebalances, group, asked)
    if not offsets:
        outcome.answer(waiter, CommitResult(errors))
        return
    sequence = group.offsets.begin_write()
    group.offsets.note_pending(offsets, sequence)

    def then(append_error: ErrorCode, now_ms: int) -> Outcome:
        followed = Outcome()
        if append_error is ErrorCode.NONE:
            group.offsets.apply(offsets, sequence)
        else:
            group.offsets.drop_pending(offsets, sequence)
        told = commit_error(append_error)
        result = {p: told if p in offsets else error for p, error in errors.items()}
        followed.answer(waiter, CommitResult(result))
        return followed

    records = tuple(
        CoordinatorRecord(
            encode_offset_key(OffsetKey(group.group_id, partition)),
            encode_committed_offset(offset),
        )
        for partition, offset in offsets.items()
    )
    outcome.writes.append(Write(records, then))


def refused_commit(asked: CommitAsked, error: ErrorCode) -> CommitResult:
    """The same error for all that was asked for."""
    return CommitResult({commit.partition: error for commit in asked.commits})


def commit_refusal(group: Group, asked: CommitAsked) -> ErrorCode:
    """Members commit in their generation; anybody else while the group has no members."""
    if group.is_being_removed:
        return ErrorCode.COORDINATOR_NOT_AVAILABLE
    is_empty = group.state is GroupState.EMPTY
    if asked.generation_id < 0 and is_empty:
        return ErrorCode.NONE
    is_member = (
        asked.generation_id >= 0
        or asked.member_id != UNKNOWN_MEMBER_ID
        or asked.group_instance_id is not None
    )
    if not is_member:
        return ErrorCode.UNKNOWN_MEMBER_ID
    error = group.check_member(asked.member_id, asked.group_instance_id)
    if error is not ErrorCode.NONE:
        return error
    if asked.generation_id != group.generation_id:
        return ErrorCode.ILLEGAL_GENERATION
    return ErrorCode.NONE


def _judged(
    rebalances: Rebalances, group: Group, asked: CommitAsked
) -> tuple[dict[TopicPartition, ErrorCode], dict[TopicPartition, CommittedOffset]]:
    """What each partition is answered as far as that is known, and what is to be written."""
    epoch_ms = rebalances.epoch_ms()
    expires = asked.retention_ms != DEFAULT_RETENTION_MS
    expire_timestamp = min(epoch_ms + asked.retention_ms, UNLIMITED) if expires else NO_TIMESTAMP
    settings = rebalances.settings
    room = settings.offsets_max - group.offsets.count
    errors: dict[TopicPartition, ErrorCode] = {}
    offsets: dict[TopicPartition, CommittedOffset] = {}
    for told in asked.commits:
        partition = told.partition
        # Of a partition that is named twice the last word counts.
        offsets.pop(partition, None)
        if _utf16_length(told.metadata or "") > settings.offset_metadata_length_max:
            errors[partition] = ErrorCode.OFFSET_METADATA_TOO_LARGE
        elif len(offsets) >= room and not group.offsets.has(partition):
            errors[partition] = ErrorCode.INVALID_COMMIT_OFFSET_SIZE
        else:
            errors[partition] = ErrorCode.NONE
            offsets[partition] = _to_be_committed(told, epoch_ms, expire_timestamp)
    return errors, offsets


def _to_be_committed(
    told: PartitionCommit, epoch_ms: int, expire_timestamp: int
) -> CommittedOffset:
    has_timestamp = told.commit_timestamp != DEFAULT_TIMESTAMP
    return CommittedOffset(
        told.offset,
        told.leader_epoch,
        told.metadata or "",
        told.commit_timestamp if has_timestamp else epoch_ms,
        expire_timestamp,
    )


def _utf16_length(text: str) -> int:
    return len(text) + sum(1 for character in text if character > "\uffff")


def fetched_offsets(
    group: Group | None, partitions: tuple[TopicPartition, ...] | None, *, require_stable: bool
) -> dict[TopicPartition, FetchedOffset]:
    """What is committed; without `partitions` for all that have an offset."""
    if partitions is None:
        partitions = () if group is None else tuple(group.offsets.committed)
    return {
        partition: _fetched(group, partition, require_stable=require_stable)
        for partition in partitions
    }


def _fetched(
    group: Group | None, partition: TopicPartition, *, require_stable: bool
) -> FetchedOffset:
    if group is None:
        return FetchedOffset()
    if require_stable and group.offsets.is_pending(partition):
        return FetchedOffset(error=ErrorCode.UNSTABLE_OFFSET_COMMIT)
    committed = group.offsets.committed.get(partition)
    if committed is None:
        return FetchedOffset()
    return FetchedOffset(committed.offset, committed.leader_epoch, committed.metadata)
