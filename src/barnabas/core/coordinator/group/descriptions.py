"""DescribeGroups and ListGroups: what tools are shown of a group."""

from barnabas.core.coordinator.group.group import Group
from barnabas.core.coordinator.group.group_states import GroupState
from barnabas.core.coordinator.group.requests import (
    CLASSIC_GROUP_TYPE,
    GroupDescription,
    GroupListing,
)
from barnabas.model.error_codes import ErrorCode


def describe(group_id: str, group: Group | None) -> GroupDescription:
    """A group that is not there is shown as dead; assignments only while they stand."""
    if group is None or not group.is_known:
        return GroupDescription(ErrorCode.NONE, group_id, GroupState.DEAD.value)
    protocol_name = group.protocol_name if group.state is GroupState.STABLE else None
    return GroupDescription(
        ErrorCode.NONE,
        group_id,
        group.state.value,
        group.protocol_type or "",
        protocol_name or "",
        tuple(member.as_described(protocol_name) for member in group.members.values()),
    )


def listing(
    group: Group, states: frozenset[str], group_types: frozenset[str]
) -> GroupListing | None:
    """The group, if it is one of those asked for; filters do not mind case, empty ones match."""
    if not group.is_known:
        return None
    if states and group.state.value.lower() not in {state.lower() for state in states}:
        return None
    if group_types and CLASSIC_GROUP_TYPE not in {name.lower() for name in group_types}:
        return None
    return GroupListing(group.group_id, group.protocol_type or "", group.state)
