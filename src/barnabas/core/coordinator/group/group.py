"""A consumer group: its generation, its members, and which protocol they can agree on."""

from collections import Counter
from collections.abc import Iterable

from barnabas.core.coordinator.group.group_states import GROUP, GroupState
from barnabas.core.coordinator.group.members import Member
from barnabas.core.coordinator.group.offsets import GroupOffsets
from barnabas.core.coordinator.group.requests import (
    JoinAsked,
    JoinedMember,
    Protocol,
)
from barnabas.core.coordinator.outcome import GroupMoved, Outcome, Waiter
from barnabas.formats.internal_topics.consumer_offsets import GroupMetadata, MemberMetadata
from barnabas.formats.internal_topics.consumer_subscription import (
    CONSUMER_PROTOCOL_TYPE,
    subscribed_topics,
)
from barnabas.model.error_codes import ErrorCode
from barnabas.model.errors import DecodeError
from barnabas.model.invariant import invariant


class Group:
    """One group; it keeps its own books, and others decide when what happens."""

    def __init__(self, group_id: str, state_timestamp: int) -> None:
        self.group_id = group_id
        self.state = GROUP.initial
        self.state_timestamp = state_timestamp
        """Time of day; -1 when the record it came from did not tell."""
        self.protocol_type: str | None = None
        self.protocol_name: str | None = None
        self.generation_id = 0
        self.leader_id: str | None = None
        self.members: dict[str, Member] = {}
        self.static_members: dict[str, str] = {}
        """Member ids by instance id."""
        self.pending_members: dict[str, None] = {}
        """Ids that were given out and not used yet."""
        self.pending_sync: dict[str, None] = {}
        """Who did not sync in this generation yet."""
        self.awaiting_join_count = 0
        self.protocol_bytes = 0
        self.subscribed_topics: frozenset[str] | None = None
        """What its members consume; None when it cannot be told."""
        self.initial_delay_left_ms: int | None = None
        """While the first members gather: by how much that may be prolonged."""
        self.has_new_members = False
        """Whether somebody came since the delay began or was prolonged."""
        self.storing_generation = -1
        """The last generation whose assignment was handed out to be replicated."""
        self.is_replacing_member = False
        """A static member's new id is being replicated."""
        self.is_being_removed = False
        """Tombstones for all that is left of it are being replicated."""
        self.offsets = GroupOffsets()
        self._protocol_counts: Counter[str] = Counter()

    # -- state -----------------------------------------------------------------------------------

    def is_in(self, *states: GroupState) -> bool:
        return self.state in states

    def cross(self, target: GroupState, cause: str, state_timestamp: int, outcome: Outcome) -> None:
        """Enter a state along an arrow of the table."""
        source = self.state
        invariant(
            GROUP.allows(source, target),
            f"group {self.group_id}: no arrow from {source.name} to {target.name}",
        )
        self.state = target
        self.state_timestamp = state_timestamp
        outcome.stories.append(GroupMoved(self.group_id, self.generation_id, source, target, cause))

    @property
    def is_consumer_group(self) -> bool:
        return self.protocol_type == CONSUMER_PROTOCOL_TYPE

    @property
    def is_known(self) -> bool:
        """Whether there is anything to show: somebody came, or something was written."""
        return bool(
            self.state is not GroupState.EMPTY
            or self.generation_id > 0
            or self.protocol_type is not None
            or self.pending_members
            or self.offsets.committed
        )

    @property
    def rebalance_timeout_ms(self) -> int:
        """The longest of its members'."""
        return max((member.rebalance_timeout_ms for member in self.members.values()), default=0)

    # -- members ---------------------------------------------------------------------------------

    def add(self, member: Member) -> None:
        instance_id = member.group_instance_id
        if instance_id is not None:
            invariant(
                instance_id not in self.static_members,
                f"group {self.group_id}: instance {instance_id} is there twice",
            )
            self.static_members[instance_id] = member.member_id
        if not self.members:
            self.protocol_type = member.protocol_type
        invariant(
            self.protocol_type == member.protocol_type,
            f"group {self.group_id}: {member.protocol_type} is not {self.protocol_type}",
        )
        if self.leader_id is None:
            self.leader_id = member.member_id
        self.members[member.member_id] = member
        self._count_protocols(member, 1)
        self.pending_members.pop(member.member_id, None)

    def remove(self, member_id: str) -> None:
        """Take a member, or an id that was only given out, from all books."""
        member = self.members.pop(member_id, None)
        if member is not None:
            invariant(
                member.join_waiter is None and member.sync_waiter is None,
                f"group {self.group_id}: {member_id} is removed while it waits",
            )
            self._count_protocols(member, -1)
            if member.group_instance_id is not None:
                del self.static_members[member.group_instance_id]
        if self.leader_id == member_id:
            self.leader_id = next(iter(self.members), None)
        self.pending_members.pop(member_id, None)
        self.pending_sync.pop(member_id, None)

    def rename(self, member: Member, member_id: str) -> None:
        """A static member came back under a new id; it keeps its place and its assignment."""
        old_id = member.member_id
        invariant(member.group_instance_id is not None, f"{old_id} is not static")
        # The order of members stays, so that it is the same after the log was read again.
        self.members = {
            member_id if known is member else known_id: known
            for known_id, known in self.members.items()
        }
        member.member_id = member_id
        self.static_members[member.group_instance_id or ""] = member_id
        if self.leader_id == old_id:
            self.leader_id = member_id
        if old_id in self.pending_sync:
            del self.pending_sync[old_id]
            self.pending_sync[member_id] = None

    def update(self, member: Member, asked: JoinAsked) -> None:
        """What the member told when it joined again."""
        self.set_protocols(member, asked.protocols)
        member.rebalance_timeout_ms = asked.rebalance_timeout_ms
        member.session_timeout_ms = asked.session_timeout_ms

    def set_protocols(self, member: Member, protocols: tuple[Protocol, ...]) -> None:
        self._count_protocols(member, -1)
        member.protocols = protocols
        self._count_protocols(member, 1)

    def await_join(self, member: Member, waiter: Waiter) -> None:
        if member.join_waiter is None:
            self.awaiting_join_count += 1
        member.join_waiter = waiter

    def take_join_waiter(self, member: Member) -> Waiter | None:
        """Who waits for the member's join, once."""
        waiter, member.join_waiter = member.join_waiter, None
        if waiter is not None:
            self.awaiting_join_count -= 1
        return waiter

    @property
    def has_all_joined(self) -> bool:
        return self.awaiting_join_count == len(self.members) and not self.pending_members

    def elect_joined_leader(self) -> bool:
        """Keep a leader that joined, or take the first who did; False when nobody did."""
        if self.leader_id is None:
            return False
        if self.members[self.leader_id].join_waiter is not None:
            return True
        for member_id, member in self.members.items():
            if member.join_waiter is not None:
                self.leader_id = member_id
                return True
        return False

    def check_member(self, member_id: str, group_instance_id: str | None) -> ErrorCode:
        """Whether it is who it says, or was replaced, or is not known."""
        if group_instance_id is not None:
            current_id = self.static_members.get(group_instance_id)
            if current_id is None:
                return ErrorCode.UNKNOWN_MEMBER_ID
            if current_id != member_id:
                return ErrorCode.FENCED_INSTANCE_ID
        if member_id not in self.members:
            return ErrorCode.UNKNOWN_MEMBER_ID
        return ErrorCode.NONE

    # -- protocols -------------------------------------------------------------------------------

    def supports(self, protocol_type: str, protocols: Iterable[Protocol]) -> bool:
        """Whether a member with these could be assigned together with those who are there."""
        if self.state is GroupState.EMPTY:
            return protocol_type != "" and any(True for _ in protocols)
        if self.protocol_type != protocol_type:
            return False
        count = len(self.members)
        return any(self._protocol_counts[protocol.name] == count for protocol in protocols)

    def select_protocol(self) -> str:
        """Of those that all members know the one that most of them named first."""
        count = len(self.members)
        invariant(count > 0, f"group {self.group_id}: nobody votes")
        candidates = {name for name, known in self._protocol_counts.items() if known == count}
        votes = Counter(member.vote(candidates) for member in self.members.values())
        return votes.most_common(1)[0][0]

    def select_protocol_with(self, member: Member, protocols: tuple[Protocol, ...]) -> str:
        """What would be selected if the member had these."""
        kept = member.protocols
        self.set_protocols(member, protocols)
        selected = self.select_protocol()
        self.set_protocols(member, kept)
        return selected

    def _count_protocols(self, member: Member, change: int) -> None:
        # A name that a member tells twice is one that it knows, not two that know it.
        for name in dict.fromkeys(protocol.name for protocol in member.protocols):
            self._protocol_counts[name] += change
            if self._protocol_counts[name] == 0:
                del self._protocol_counts[name]
        self.protocol_bytes += change * member.protocol_bytes

    # -- generations -----------------------------------------------------------------------------

    def begin_generation(self) -> None:
        """Count on, and agree on a protocol if there is anybody."""
        self.generation_id += 1
        self.protocol_name = self.select_protocol() if self.members else None
        self.subscribed_topics = self._told_subscriptions()

    def is_subscribed_to(self, topic: str) -> bool:
        """When it cannot be told it is taken to be, so that nothing is lost."""
        return self.subscribed_topics is None or topic in self.subscribed_topics

    def _told_subscriptions(self) -> frozenset[str] | None:
        if not self.is_consumer_group:
            return None
        if not self.members:
            return frozenset()
        if self.protocol_name is None:
            return None
        topics: set[str] = set()
        try:
            for member in self.members.values():
                topics |= subscribed_topics(member.metadata_for(self.protocol_name))
        except DecodeError:
            return None
        return frozenset(topics)

    def joined_members(self) -> tuple[JoinedMember, ...]:
        """What the leader is told, so that it can assign."""
        name = self.protocol_name or ""
        return tuple(member.as_joined(name) for member in self.members.values())

    # -- records ---------------------------------------------------------------------------------

    def as_written(self, assignments: dict[str, bytes]) -> GroupMetadata:
        """This generation with these assignments; who is not named in them gets nothing."""
        name = self.protocol_name or ""
        return self.metadata_of(
            member.as_written(
                member.member_id, member.protocols, name, assignments.get(member.member_id, b"")
            )
            for member in self.members.values()
        )

    def metadata_of(self, members: Iterable[MemberMetadata]) -> GroupMetadata:
        return GroupMetadata(
            self.protocol_type or "",
            self.generation_id,
            self.protocol_name,
            self.leader_id,
            self.state_timestamp,
            tuple(members),
        )

    @classmethod
    def loaded(cls, group_id: str, metadata: GroupMetadata) -> "Group":
        """As it was written: stable, or empty. `DecodeError` when it contradicts itself."""
        ids = [member.member_id for member in metadata.members]
        instances = [member.group_instance_id for member in metadata.members]
        named = [instance for instance in instances if instance is not None]
        if len(set(ids)) != len(ids) or len(set(named)) != len(named):
            raise DecodeError(f"group {group_id} was written with one member twice")
        group = cls(group_id, metadata.state_timestamp)
        group.generation_id = metadata.generation_id
        group.protocol_name = metadata.protocol_name
        for written in metadata.members:
            group.add(Member.loaded(written, metadata.protocol_type, metadata.protocol_name))
        group.protocol_type = metadata.protocol_type or None
        if metadata.leader_id in group.members:
            group.leader_id = metadata.leader_id
        if group.members:
            group.state = GroupState.STABLE
        group.subscribed_topics = group._told_subscriptions()
        return group
