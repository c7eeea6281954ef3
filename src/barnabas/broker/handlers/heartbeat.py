"""Heartbeat: a member lives, and is told when its group gathers anew."""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.broker.connections import Request
from barnabas.core.coordinator.group.requests import HeartbeatAsked
from barnabas.formats.wire.generated.heartbeat import HeartbeatRequest, HeartbeatResponse

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker


def handle(
    broker: Broker, request: Request, body: HeartbeatRequest, now_ms: int
) -> HeartbeatResponse:
    """Answer at once; the member's session begins anew."""
    asked = HeartbeatAsked(
        group_id=body.group_id,
        generation_id=body.generation_id,
        member_id=body.member_id,
        group_instance_id=body.group_instance_id,
    )
    return HeartbeatResponse(error_code=broker.groups.heartbeat(asked, now_ms))
