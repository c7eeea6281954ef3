"""A shard of groups without a broker: a log that can fail, virtual time, answers by waiter."""

import random
from collections import deque
from typing import TypeVar

from barnabas.core.coordinator.group.requests import (
    CommitAsked,
    CommitResult,
    DeleteGroupsResult,
    DeleteOffsetsResult,
    HeartbeatAsked,
    JoinAsked,
    JoinResult,
    LeaveAsked,
    LeaveResult,
    LeavingMember,
    PartitionCommit,
    Protocol,
    SyncAsked,
    SyncResult,
)
from barnabas.core.coordinator.group.settings import GroupSettings
from barnabas.core.coordinator.outcome import CoordinatorRecord, GroupMoved, Outcome, Write
from barnabas.core.coordinator.shard import GroupShard
from barnabas.model.error_codes import ErrorCode
from barnabas.model.ids import TopicPartition

EPOCH_MS = 1_700_000_000_000
"""The time of day when the virtual clock shows 0."""

RANGE = (Protocol("range", b"r"),)
Expected = TypeVar("Expected")


class GroupWorld:
    """One shard at a time; `replicate` and `lose` end the writes on their way, oldest first."""

    def __init__(self, settings: GroupSettings | None = None, *, replicates: bool = True) -> None:
        self.settings = settings or GroupSettings(initial_delay_ms=0)
        self.replicates = replicates
        """Whether writes succeed at once."""
        self.now_ms = 0
        self.log: list[CoordinatorRecord] = []
        self.writes: deque[Write] = deque()
        self.answers: dict[object, object] = {}
        self.stories: list[GroupMoved] = []
        self.source = random.Random(1)
        self._waiters = 0
        self.shard = self._new_shard()
        self.take(self.shard.finish_loading(0))

    def _new_shard(self) -> GroupShard:
        return GroupShard(self.settings, self.source, self.epoch_ms)

    def epoch_ms(self) -> int:
        return EPOCH_MS + self.now_ms

    def reload(self) -> None:
        """The broker was killed: another shard reads the log; who waited waits for nothing."""
        self.writes.clear()
        self.shard = self._new_shard()
        self.shard.load(self.log)
        self.take(self.shard.finish_loading(self.now_ms))

    # -- what follows from a call ----------------------------------------------------------------

    def take(self, outcome: Outcome) -> None:
        for waiter, result in outcome.answers:
            assert waiter not in self.answers, f"{waiter} is answered twice: {result}"
            self.answers[waiter] = result
        self.stories += outcome.stories
        self.writes += outcome.writes
        if self.replicates:
            self.replicate()

    def replicate(self, count: int = 1_000_000) -> None:
        while self.writes and count:
            count -= 1
            write = self.writes.popleft()
            self.log += write.records
            self.take(write.then(ErrorCode.NONE, self.now_ms))

    def lose(self, error: ErrorCode = ErrorCode.NOT_ENOUGH_REPLICAS) -> None:
        """The oldest write fails."""
        self.take(self.writes.popleft().then(error, self.now_ms))

    def advance(self, milliseconds: int) -> None:
        """Let time pass, from deadline to deadline."""
        end_ms = self.now_ms + milliseconds
        while (when_ms := self.shard.next_deadline_ms()) is not None and when_ms <= end_ms:
            self.now_ms = max(self.now_ms, when_ms)
            self.take(self.shard.tick(self.now_ms))
        self.now_ms = end_ms

    def waiter(self) -> str:
        self._waiters += 1
        return f"waiter {self._waiters}"

    def answer(self, waiter: object, kind: type[Expected]) -> Expected:
        result = self.answers[waiter]
        assert isinstance(result, kind)
        return result

    # -- asking ----------------------------------------------------------------------------------

    def ask_join(
        self,
        group_id: str = "g",
        *,
        member_id: str = "",
        instance: str | None = None,
        protocols: tuple[Protocol, ...] = RANGE,
        protocol_type: str = "consumer",
        session_ms: int = 10_000,
        rebalance_ms: int = 60_000,
        version: int = 3,
    ) -> str:
        """A JoinGroup; who waits for its answer."""
        waiter = self.waiter()
        asked = JoinAsked(
            group_id,
            member_id,
            instance,
            "client",
            "/127.0.0.1",
            session_ms,
            rebalance_ms,
            protocol_type,
            protocols,
            requires_member_id=version >= 4 and instance is None,
            can_skip_assignment=version >= 9,
        )
        self.take(self.shard.join(asked, waiter, self.now_ms))
        return waiter

    def ask_sync(
        self,
        joined: JoinResult,
        assignments: dict[str, bytes] | None = None,
        *,
        group_id: str = "g",
        instance: str | None = None,
        generation: int | None = None,
        names: tuple[str | None, str | None] = (None, None),
    ) -> str:
        waiter = self.waiter()
        asked = SyncAsked(
            group_id,
            joined.generation_id if generation is None else generation,
            joined.member_id,
            instance,
            *names,
            assignments or {},
        )
        self.take(self.shard.sync(asked, waiter, self.now_ms))
        return waiter

    def heartbeat(
        self, joined: JoinResult, group_id: str = "g", instance: str | None = None
    ) -> ErrorCode:
        asked = HeartbeatAsked(group_id, joined.generation_id, joined.member_id, instance)
        return self.shard.heartbeat(asked, self.now_ms)

    def leave(self, *members: tuple[str, str | None], group_id: str = "g") -> LeaveResult:
        waiter = self.waiter()
        asked = LeaveAsked(group_id, tuple(LeavingMember(*member) for member in members))
        self.take(self.shard.leave(asked, waiter, self.now_ms))
        return self.answer(waiter, LeaveResult)

    def ask_commit(
        self,
        offsets: dict[TopicPartition, int],
        joined: JoinResult | None = None,
        *,
        group_id: str = "g",
        instance: str | None = None,
        metadata: str = "",
        retention_ms: int = -1,
        commit_timestamp: int = -1,
    ) -> str:
        waiter = self.waiter()
        asked = CommitAsked(
            group_id,
            -1 if joined is None else joined.generation_id,
            "" if joined is None else joined.member_id,
            instance,
            tuple(
                PartitionCommit(partition, offset, 5, metadata, commit_timestamp)
                for partition, offset in offsets.items()
            ),
            retention_ms,
        )
        self.take(self.shard.commit_offsets(asked, waiter, self.now_ms))
        return waiter

    def commit_asked(
        self, commits: tuple[PartitionCommit, ...], group_id: str = "g"
    ) -> CommitAsked:
        """Of a consumer outside any group's protocol."""
        return CommitAsked(group_id, -1, "", None, commits)

    def commit(
        self,
        offsets: dict[TopicPartition, int],
        joined: JoinResult | None = None,
        *,
        group_id: str = "g",
        metadata: str = "",
        retention_ms: int = -1,
    ) -> ErrorCode:
        """The error that all partitions of a commit share."""
        waiter = self.ask_commit(
            offsets, joined, group_id=group_id, metadata=metadata, retention_ms=retention_ms
        )
        (error,) = set(self.answer(waiter, CommitResult).errors.values())
        return error

    def committed(self, group_id: str = "g") -> dict[TopicPartition, int]:
        fetched = self.shard.fetch_offsets(group_id, None).offsets
        return {partition: value.offset for partition, value in fetched.items()}

    def delete_offsets(
        self, *partitions: TopicPartition, group_id: str = "g"
    ) -> DeleteOffsetsResult:
        waiter = self.waiter()
        self.take(self.shard.delete_offsets(group_id, partitions, waiter, self.now_ms))
        return self.answer(waiter, DeleteOffsetsResult)

    def delete_groups(self, *group_ids: str) -> dict[str, ErrorCode]:
        waiter = self.waiter()
        self.take(self.shard.delete_groups(group_ids, waiter, self.now_ms))
        return self.answer(waiter, DeleteGroupsResult).errors

    # -- whole steps -----------------------------------------------------------------------------

    def joined(self, waiter: object) -> JoinResult:
        return self.answer(waiter, JoinResult)

    def synced(self, waiter: object) -> SyncResult:
        return self.answer(waiter, SyncResult)

    def stable_group(
        self,
        count: int = 2,
        *,
        group_id: str = "g",
        instances: tuple[str | None, ...] = (),
        protocols: tuple[Protocol, ...] = RANGE,
    ) -> list[JoinResult]:
        """Members that joined at once, with b"0", b"1" ... assigned; the leader is the first."""
        instances = instances or (None,) * count
        waiters = [
            self.ask_join(group_id, instance=instance, protocols=protocols)
            for instance in instances
        ]
        self.advance(60_000 if self.settings.initial_delay_ms else 0)
        members = [self.joined(waiter) for waiter in waiters]
        assert all(member.error is ErrorCode.NONE for member in members)
        assigned = {m.member_id: str(number).encode() for number, m in enumerate(members)}
        for member, instance in zip(members, instances, strict=True):
            told = assigned if member.member_id == member.leader_id else {}
            self.ask_sync(member, told, group_id=group_id, instance=instance)
        assert self.shard.describe(group_id).state == "Stable"
        return members


def error_of(world: GroupWorld, waiter: object) -> ErrorCode:
    """Of the answer to a JoinGroup."""
    return world.joined(waiter).error


def state(world: GroupWorld, group_id: str = "g") -> str:
    return world.shard.describe(group_id).state
