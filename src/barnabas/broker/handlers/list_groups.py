"""ListGroups: the groups that this broker coordinates."""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.broker.connections import Request
from barnabas.formats.wire.generated.list_groups import (
    ListedGroup,
    ListGroupsRequest,
    ListGroupsResponse,
)

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker


def handle(
    broker: Broker, request: Request, body: ListGroupsRequest, now_ms: int
) -> ListGroupsResponse:
    """Answer at once; an error says that groups may be missing."""
    error, groups = broker.groups.list_groups(body.states_filter, body.types_filter)
    return ListGroupsResponse(
        error_code=error,
        groups=[
            ListedGroup(
                group_id=group.group_id,
                protocol_type=group.protocol_type,
                group_state=group.state.value,
                group_type=group.group_type,
            )
            for group in groups
        ],
    )
