"""What members and tools ask of a group, and what they are told; apart from any wire format."""

from typing import NamedTuple

from barnabas.core.coordinator.group.group_states import GroupState
from barnabas.model.error_codes import ErrorCode
from barnabas.model.ids import TopicPartition

UNKNOWN_MEMBER_ID = ""
"""The id of whoever has none yet."""

NO_GENERATION = -1
NO_OFFSET = -1
CLASSIC_GROUP_TYPE = "classic"
DEFAULT_RETENTION_MS = -1
DEFAULT_TIMESTAMP = -1


class Protocol(NamedTuple):
    """A way of assigning that a member knows, and what it tells of itself for it."""

    name: str
    metadata: bytes


class JoinAsked(NamedTuple):
    """JoinGroup."""

    group_id: str
    member_id: str
    group_instance_id: str | None
    client_id: str
    client_host: str
    session_timeout_ms: int
    rebalance_timeout_ms: int
    """The session time-out in version 0, which has no field for it."""
    protocol_type: str
    protocols: tuple[Protocol, ...]
    requires_member_id: bool
    """From version 4 on, for members without an instance id: they join again with the id given."""
    can_skip_assignment: bool
    """From version 9 on."""


class JoinedMember(NamedTuple):
    """A member as its leader is told of it."""

    member_id: str
    group_instance_id: str | None
    metadata: bytes


class JoinResult(NamedTuple):
    error: ErrorCode
    member_id: str
    generation_id: int = NO_GENERATION
    protocol_type: str | None = None
    protocol_name: str | None = None
    """Null on the wire from version 7 on, empty before."""
    leader_id: str = ""
    skip_assignment: bool = False
    members: tuple[JoinedMember, ...] = ()
    """Told to the leader alone."""


class SyncAsked(NamedTuple):
    """SyncGroup; protocol type and name are None before version 5."""

    group_id: str
    generation_id: int
    member_id: str
    group_instance_id: str | None
    protocol_type: str | None
    protocol_name: str | None
    assignments: dict[str, bytes]


class SyncResult(NamedTuple):
    error: ErrorCode
    protocol_type: str | None = None
    protocol_name: str | None = None
    assignment: bytes = b""


class HeartbeatAsked(NamedTuple):
    """Heartbeat; it is answered at once with an error code."""

    group_id: str
    generation_id: int
    member_id: str
    group_instance_id: str | None


class LeavingMember(NamedTuple):
    member_id: str
    group_instance_id: str | None


class LeaveAsked(NamedTuple):
    """LeaveGroup; before version 3 there is one member, and its error is that of the answer."""

    group_id: str
    members: tuple[LeavingMember, ...]


class LeftMember(NamedTuple):
    member_id: str
    group_instance_id: str | None
    error: ErrorCode


class LeaveResult(NamedTuple):
    error: ErrorCode
    members: tuple[LeftMember, ...] = ()


class PartitionCommit(NamedTuple):
    """What is to be noted of one partition."""

    partition: TopicPartition
    offset: int
    leader_epoch: int = -1
    metadata: str | None = None
    commit_timestamp: int = DEFAULT_TIMESTAMP
    """Told in version 1 alone."""


class CommitAsked(NamedTuple):
    """OffsetCommit; a consumer outside any group's protocol has generation -1 and no member id."""

    group_id: str
    generation_id: int
    member_id: str
    group_instance_id: str | None
    commits: tuple[PartitionCommit, ...]
    retention_ms: int = DEFAULT_RETENTION_MS
    """Told in versions 2 to 4 alone."""


class CommitResult(NamedTuple):
    errors: dict[TopicPartition, ErrorCode]
    """For each partition asked for, in the order of asking."""


class FetchedOffset(NamedTuple):
    offset: int = NO_OFFSET
    leader_epoch: int = -1
    metadata: str = ""
    error: ErrorCode = ErrorCode.NONE


class FetchOffsetsResult(NamedTuple):
    error: ErrorCode
    """Of the whole group; before version 2 it stands at every partition."""
    offsets: dict[TopicPartition, FetchedOffset]


class DeleteOffsetsResult(NamedTuple):
    error: ErrorCode
    errors: dict[TopicPartition, ErrorCode]
    """Empty when there is an error of the whole."""


class DeleteGroupsResult(NamedTuple):
    errors: dict[str, ErrorCode]


class DescribedMember(NamedTuple):
    member_id: str
    group_instance_id: str | None
    client_id: str
    client_host: str
    metadata: bytes
    assignment: bytes


class GroupDescription(NamedTuple):
    error: ErrorCode
    group_id: str
    state: str = ""
    protocol_type: str = ""
    protocol_name: str = ""
    members: tuple[DescribedMember, ...] = ()


class GroupListing(NamedTuple):
    group_id: str
    protocol_type: str
    state: GroupState
    group_type: str = CLASSIC_GROUP_TYPE
