"""DescribeGroups: the state of groups and who their members are."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from barnabas.broker.connections import Request
from barnabas.core.coordinator.group.requests import GroupDescription
from barnabas.formats.wire.generated.describe_groups import (
    DescribedGroup,
    DescribedGroupMember,
    DescribeGroupsRequest,
    DescribeGroupsResponse,
)
from barnabas.model.error_codes import ErrorCode

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker

GROUP_OPERATIONS: Final = 1 << 3 | 1 << 6 | 1 << 8
"""Read, Delete and Describe: everything, since nobody is refused anything yet."""


def handle(
    broker: Broker, request: Request, body: DescribeGroupsRequest, now_ms: int
) -> DescribeGroupsResponse:
    """Answer at once."""
    described = [_described(broker.groups.describe(group_id)) for group_id in body.groups]
    if body.include_authorized_operations:
        for group in described:
            if group.error_code == ErrorCode.NONE:
                group.authorized_operations = GROUP_OPERATIONS
    return DescribeGroupsResponse(groups=described)


def _described(group: GroupDescription) -> DescribedGroup:
    return DescribedGroup(
        error_code=group.error,
        group_id=group.group_id,
        group_state=group.state,
        protocol_type=group.protocol_type,
        protocol_data=group.protocol_name,
        members=[
            DescribedGroupMember(
                member_id=member.member_id,
                group_instance_id=member.group_instance_id,
                client_id=member.client_id,
                client_host=member.client_host,
                member_metadata=member.metadata,
                member_assignment=member.assignment,
            )
            for member in group.members
        ],
    )
