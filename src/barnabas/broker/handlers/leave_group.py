"""LeaveGroup: members go without waiting for the end of their sessions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from barnabas.broker.connections import Request
from barnabas.core.coordinator.group.requests import LeaveAsked, LeaveResult, LeavingMember
from barnabas.formats.wire.generated.leave_group import (
    LeaveGroupRequest,
    LeaveGroupResponse,
    MemberResponse,
)
from barnabas.model.error_codes import ErrorCode

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker

FIRST_VERSION_WITH_MANY: Final = 3


def handle(broker: Broker, request: Request, body: LeaveGroupRequest, now_ms: int) -> None:
    """Take it to the group; before version 3 it is one member, whose error is the answer's."""
    has_many = request.api_version >= FIRST_VERSION_WITH_MANY
    members = tuple(LeavingMember(one.member_id, one.group_instance_id) for one in body.members)
    if not has_many:
        members = (LeavingMember(body.member_id, None),)

    def answer(result: LeaveResult) -> None:
        response = LeaveGroupResponse(error_code=result.error)
        if has_many:
            response.members = [
                MemberResponse(
                    member_id=left.member_id,
                    group_instance_id=left.group_instance_id,
                    error_code=left.error,
                )
                for left in result.members
            ]
        elif result.error == ErrorCode.NONE and result.members:
            response.error_code = result.members[0].error
        broker.answer(request, response)

    broker.groups.leave(LeaveAsked(body.group_id, members), answer, now_ms)
