"""SyncGroup: the leader's assignment is replicated, then everybody gets his part of it."""

from barnabas.core.coordinator.group.append_errors import group_write_error
from barnabas.core.coordinator.group.group import Group
from barnabas.core.coordinator.group.group_states import GroupState
from barnabas.core.coordinator.group.rebalances import Rebalances, group_write
from barnabas.core.coordinator.group.requests import SyncAsked, SyncResult
from barnabas.core.coordinator.outcome import Outcome, Waiter
from barnabas.model.error_codes import ErrorCode


def sync(
    rebalances: Rebalances,
    group: Group,
    asked: SyncAsked,
    waiter: Waiter,
    outcome: Outcome,
    now_ms: int,
) -> None:
    error = _refusal(group, asked)
    if error is not ErrorCode.NONE:
        outcome.answer(waiter, SyncResult(error))
        return
    member = group.members[asked.member_id]
    rebalances.note_synced(group, member)
    if group.state is GroupState.STABLE:
        outcome.answer(
            waiter,
            SyncResult(ErrorCode.NONE, group.protocol_type, group.protocol_name, member.assignment),
        )
        rebalances.keep_session(group, member, now_ms)
        return
    if member.sync_waiter is not None:
        outcome.answer(member.sync_waiter, SyncResult(ErrorCode.REBALANCE_IN_PROGRESS))
    member.sync_waiter = waiter
    if group.leader_id == member.member_id:
        _replicate(rebalances, group, asked.assignments, outcome)


def _refusal(group: Group, asked: SyncAsked) -> ErrorCode:
    error = group.check_member(asked.member_id, asked.group_instance_id)
    if error is not ErrorCode.NONE:
        return error
    if asked.generation_id != group.generation_id:
        return ErrorCode.ILLEGAL_GENERATION
    if asked.protocol_type is not None and asked.protocol_type != group.protocol_type:
        return ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    if asked.protocol_name is not None and asked.protocol_name != group.protocol_name:
        return ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    if group.state is GroupState.PREPARING_REBALANCE:
        return ErrorCode.REBALANCE_IN_PROGRESS
    return ErrorCode.NONE


def _replicate(
    rebalances: Rebalances, group: Group, told: dict[str, bytes], outcome: Outcome
) -> None:
    """Once in a generation: a second assignment could differ from the one on its way."""
    generation_id = group.generation_id
    if group.storing_generation == generation_id:
        return
    group.storing_generation = generation_id
    assignments = {member_id: told.get(member_id, b"") for member_id in group.members}

    def then(error: ErrorCode, now_ms: int) -> Outcome:
        followed = Outcome()
        is_awaited = group.state is GroupState.COMPLETING_REBALANCE
        if not is_awaited or group.generation_id != generation_id:
            return followed
        if error is not ErrorCode.NONE:
            rebalances.lose_assignment(group, group_write_error(error), followed, now_ms)
            rebalances.prepare(group, f"the assignment was lost: {error.name}", followed, now_ms)
            return followed
        for member in group.members.values():
            member.assignment = assignments[member.member_id]
        rebalances.tell_assignment(group, followed, now_ms)
        group.cross(
            GroupState.STABLE,
            "the assignment is replicated",
            rebalances.epoch_ms(),
            followed,
        )
        return followed

    outcome.writes.append(group_write(group.group_id, group.as_written(assignments), then))
