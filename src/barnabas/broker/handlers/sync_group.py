"""SyncGroup: the leader hands in who gets what, every member is told its part."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from barnabas.broker.connections import Request
from barnabas.core.coordinator.group.requests import SyncAsked, SyncResult
from barnabas.formats.wire.generated.sync_group import SyncGroupRequest, SyncGroupResponse
from barnabas.model.error_codes import ErrorCode

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker

FIRST_VERSION_WITH_PROTOCOL: Final = 5


def handle(
    broker: Broker, request: Request, body: SyncGroupRequest, now_ms: int
) -> SyncGroupResponse | None:
    """Take it to the group; the answer waits for the leader's, and for its being kept."""
    has_protocol = body.protocol_type is not None and body.protocol_name is not None
    if request.api_version >= FIRST_VERSION_WITH_PROTOCOL and not has_protocol:
        return SyncGroupResponse(error_code=ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
    asked = SyncAsked(
        group_id=body.group_id,
        generation_id=body.generation_id,
        member_id=body.member_id,
        group_instance_id=body.group_instance_id,
        protocol_type=body.protocol_type,
        protocol_name=body.protocol_name,
        assignments={one.member_id: one.assignment for one in body.assignments},
    )

    def answer(result: SyncResult) -> None:
        broker.answer(
            request,
            SyncGroupResponse(
                error_code=result.error,
                protocol_type=result.protocol_type,
                protocol_name=result.protocol_name,
                assignment=result.assignment,
            ),
        )

    broker.groups.sync(asked, answer, now_ms)
    return None
