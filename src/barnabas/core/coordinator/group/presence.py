"""Heartbeat and LeaveGroup: members that are there, and members that go."""

from barnabas.core.coordinator.group.group import Group
from barnabas.core.coordinator.group.group_states import GroupState
from barnabas.core.coordinator.group.rebalances import Rebalances
from barnabas.core.coordinator.group.requests import (
    UNKNOWN_MEMBER_ID,
    HeartbeatAsked,
    LeaveAsked,
    LeaveResult,
    LeavingMember,
    LeftMember,
)
from barnabas.core.coordinator.outcome import Outcome
from barnabas.model.error_codes import ErrorCode


def heartbeat(
    rebalances: Rebalances, group: Group, asked: HeartbeatAsked, now_ms: int
) -> ErrorCode:
    """The session begins anew; during a rebalance the member is told to join it."""
    error = group.check_member(asked.member_id, asked.group_instance_id)
    if error is not ErrorCode.NONE:
        return error
    if asked.generation_id != group.generation_id:
        return ErrorCode.ILLEGAL_GENERATION
    rebalances.keep_session(group, group.members[asked.member_id], now_ms)
    if group.state is GroupState.PREPARING_REBALANCE:
        return ErrorCode.REBALANCE_IN_PROGRESS
    return ErrorCode.NONE


def leave(
    rebalances: Rebalances, group: Group, asked: LeaveAsked, outcome: Outcome, now_ms: int
) -> LeaveResult:
    """Each member by its id, or a static one by its instance alone."""
    left = tuple(
        LeftMember(
            leaving.member_id,
            leaving.group_instance_id,
            _leave(rebalances, group, leaving, outcome, now_ms),
        )
        for leaving in asked.members
    )
    return LeaveResult(ErrorCode.NONE, left)


def _leave(
    rebalances: Rebalances,
    group: Group,
    leaving: LeavingMember,
    outcome: Outcome,
    now_ms: int,
) -> ErrorCode:
    member_id, instance_id = leaving
    if member_id == UNKNOWN_MEMBER_ID:
        known_id = None if instance_id is None else group.static_members.get(instance_id)
        if known_id is None:
            return ErrorCode.UNKNOWN_MEMBER_ID
        member_id = known_id
    elif member_id not in group.pending_members:
        error = group.check_member(member_id, instance_id)
        if error is not ErrorCode.NONE:
            return error
    rebalances.remove_member(group, member_id, f"member {member_id} left", outcome, now_ms)
    return ErrorCode.NONE


def unknown_members(asked: LeaveAsked) -> LeaveResult:
    """There is no such group, so nobody could leave it."""
    return LeaveResult(
        ErrorCode.NONE,
        tuple(
            LeftMember(member_id, instance_id, ErrorCode.UNKNOWN_MEMBER_ID)
            for member_id, instance_id in asked.members
        ),
    )
