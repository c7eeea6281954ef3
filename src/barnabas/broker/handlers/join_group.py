"""JoinGroup: a member asks to be one, and waits until the group has gathered."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from barnabas.broker.connections import Request
from barnabas.core.coordinator.group.requests import JoinAsked, JoinResult, Protocol
from barnabas.formats.wire.generated.join_group import (
    JoinGroupRequest,
    JoinGroupResponse,
    JoinGroupResponseMember,
)

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker

FIRST_VERSION_WITH_REBALANCE_TIMEOUT: Final = 1
FIRST_VERSION_WITH_NULL_PROTOCOL: Final = 7
FIRST_VERSION_THAT_REQUIRES_AN_ID: Final = 4
FIRST_VERSION_THAT_SKIPS_ASSIGNMENT: Final = 9


def handle(broker: Broker, request: Request, body: JoinGroupRequest, now_ms: int) -> None:
    """Take the member's wish to the group; the answer may come a rebalance later."""
    version = request.api_version
    has_own_timeout = version >= FIRST_VERSION_WITH_REBALANCE_TIMEOUT
    asked = JoinAsked(
        group_id=body.group_id,
        member_id=body.member_id,
        group_instance_id=body.group_instance_id,
        client_id=request.client_id or "",
        client_host="/" + request.connection.peer_host,
        session_timeout_ms=body.session_timeout_ms,
        rebalance_timeout_ms=(
            body.rebalance_timeout_ms if has_own_timeout else body.session_timeout_ms
        ),
        protocol_type=body.protocol_type,
        protocols=tuple(Protocol(one.name, one.metadata) for one in body.protocols),
        requires_member_id=(
            version >= FIRST_VERSION_THAT_REQUIRES_AN_ID and body.group_instance_id is None
        ),
        can_skip_assignment=version >= FIRST_VERSION_THAT_SKIPS_ASSIGNMENT,
    )

    def answer(result: JoinResult) -> None:
        broker.answer(request, _response(result, version))

    broker.groups.join(asked, answer, now_ms)


def _response(result: JoinResult, version: int) -> JoinGroupResponse:
    protocol_name = result.protocol_name
    if protocol_name is None and version < FIRST_VERSION_WITH_NULL_PROTOCOL:
        protocol_name = ""
    return JoinGroupResponse(
        error_code=result.error,
        generation_id=result.generation_id,
        protocol_type=result.protocol_type,
        protocol_name=protocol_name,
        leader=result.leader_id,
        skip_assignment=result.skip_assignment,
        member_id=result.member_id,
        members=[
            JoinGroupResponseMember(
                member_id=member.member_id,
                group_instance_id=member.group_instance_id,
                metadata=member.metadata,
            )
            for member in result.members
        ],
    )
