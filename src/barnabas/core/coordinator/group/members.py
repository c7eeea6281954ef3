"""A member of a group: who it is, how it can be assigned, and whether it waits."""

from collections.abc import Collection, Sequence

from barnabas.core.coordinator.group.requests import (
    DescribedMember,
    JoinAsked,
    JoinedMember,
    Protocol,
)
from barnabas.core.coordinator.outcome import Waiter
from barnabas.formats.internal_topics.consumer_offsets import MemberMetadata
from barnabas.model.invariant import invariant


class Member:
    """One member; `join_waiter` and `sync_waiter` are set while it waits for an answer."""

    __slots__ = (
        "assignment",
        "client_host",
        "client_id",
        "group_instance_id",
        "is_new",
        "join_waiter",
        "member_id",
        "protocol_type",
        "protocols",
        "rebalance_timeout_ms",
        "session_timeout_ms",
        "sync_waiter",
    )

    def __init__(
        self,
        member_id: str,
        group_instance_id: str | None,
        client_id: str,
        client_host: str,
        protocol_type: str,
    ) -> None:
        self.member_id = member_id
        self.group_instance_id = group_instance_id
        self.client_id = client_id
        self.client_host = client_host
        self.protocol_type = protocol_type
        self.protocols: tuple[Protocol, ...] = ()
        self.rebalance_timeout_ms = 0
        self.session_timeout_ms = 0
        self.assignment = b""
        self.is_new = False
        """Until its first generation begins; its first join does not wait without a limit."""
        self.join_waiter: Waiter | None = None
        self.sync_waiter: Waiter | None = None

    @classmethod
    def joining(cls, asked: JoinAsked, member_id: str) -> "Member":
        member = cls(
            member_id,
            asked.group_instance_id,
            asked.client_id,
            asked.client_host,
            asked.protocol_type,
        )
        member.protocols = asked.protocols
        member.rebalance_timeout_ms = asked.rebalance_timeout_ms
        member.session_timeout_ms = asked.session_timeout_ms
        member.is_new = True
        return member

    @classmethod
    def loaded(
        cls, metadata: MemberMetadata, protocol_type: str, protocol_name: str | None
    ) -> "Member":
        """As it was written; of its protocols only the one that was chosen is known."""
        member = cls(
            metadata.member_id,
            metadata.group_instance_id,
            metadata.client_id,
            metadata.client_host,
            protocol_type,
        )
        member.protocols = (Protocol(protocol_name or "", metadata.subscription),)
        member.rebalance_timeout_ms = metadata.rebalance_timeout_ms
        member.session_timeout_ms = metadata.session_timeout_ms
        member.assignment = metadata.assignment
        return member

    @property
    def is_static(self) -> bool:
        return self.group_instance_id is not None

    @property
    def is_kept_by_waiting(self) -> bool:
        """Whether its session cannot expire: it asked, and we have not answered yet."""
        if self.is_new:
            return False
        return self.join_waiter is not None or self.sync_waiter is not None

    @property
    def protocol_bytes(self) -> int:
        return protocol_bytes(self.protocols)

    def matches(self, protocols: Sequence[Protocol]) -> bool:
        """Whether it would join as it did before."""
        return tuple(protocols) == self.protocols

    def metadata_for(self, protocol_name: str) -> bytes:
        for name, metadata in self.protocols:
            if name == protocol_name:
                return metadata
        invariant(False, f"{self.member_id} does not know {protocol_name}")
        return b""

    def vote(self, candidates: Collection[str]) -> str:
        """The candidate that it named first."""
        for name, _ in self.protocols:
            if name in candidates:
                return name
        invariant(False, f"{self.member_id} knows none of {sorted(candidates)}")
        return ""

    def as_joined(self, protocol_name: str) -> JoinedMember:
        return JoinedMember(
            self.member_id, self.group_instance_id, self.metadata_for(protocol_name)
        )

    def as_described(self, protocol_name: str | None) -> DescribedMember:
        """With what it was assigned, once that stands."""
        return DescribedMember(
            self.member_id,
            self.group_instance_id,
            self.client_id,
            self.client_host,
            b"" if protocol_name is None else self.metadata_for(protocol_name),
            b"" if protocol_name is None else self.assignment,
        )

    def as_written(
        self, member_id: str, protocols: Sequence[Protocol], protocol_name: str, assignment: bytes
    ) -> MemberMetadata:
        """What the log keeps, under the id and with the protocols that it is to have by then."""
        subscription = next(metadata for name, metadata in protocols if name == protocol_name)
        return MemberMetadata(
            member_id,
            self.group_instance_id,
            self.client_id,
            self.client_host,
            self.rebalance_timeout_ms,
            self.session_timeout_ms,
            subscription,
            assignment,
        )


def protocol_bytes(protocols: Sequence[Protocol]) -> int:
    """What a member's protocols weigh."""
    return sum(len(name) + len(metadata) for name, metadata in protocols)
