"""The groups and offsets of one partition of `__consumer_offsets`, while it is led here.

    shard = GroupShard(settings, source, epoch_ms)
    shard.load(records) ...          # batch after batch, from the start of the log to its end
    outcome = shard.finish_loading(now_ms)
    outcome = shard.join(asked, waiter, now_ms)

Each call that changes anything returns an `Outcome`: answers to give, and writes to append in
order, whose `then` returns the next one. Reads and heartbeats are answered at once. `now_ms` is
for time-outs; timestamps in records are the time of day, which `epoch_ms` tells.
"""

import random
from collections.abc import Callable, Collection, Iterable
from enum import Enum

from barnabas.core.coordinator.group import commits, presence
from barnabas.core.coordinator.group.descriptions import describe, listing
from barnabas.core.coordinator.group.group import Group
from barnabas.core.coordinator.group.group_states import GroupState
from barnabas.core.coordinator.group.joining import Joining
from barnabas.core.coordinator.group.offsets import expired_offsets
from barnabas.core.coordinator.group.rebalances import Rebalances
from barnabas.core.coordinator.group.removals import Done, Removal, is_left_empty
from barnabas.core.coordinator.group.requests import (
    UNKNOWN_MEMBER_ID,
    CommitAsked,
    DeleteGroupsResult,
    DeleteOffsetsResult,
    FetchOffsetsResult,
    GroupDescription,
    GroupListing,
    HeartbeatAsked,
    JoinAsked,
    JoinResult,
    LeaveAsked,
    LeaveResult,
    SyncAsked,
    SyncResult,
)
from barnabas.core.coordinator.group.settings import GroupSettings
from barnabas.core.coordinator.group.syncing import sync
from barnabas.core.coordinator.loading import NO_PRODUCER, LoadedPartition
from barnabas.core.coordinator.outcome import CoordinatorRecord, Outcome, Waiter
from barnabas.core.coordinator.timers import Timed, TimerKey, Timers
from barnabas.model.error_codes import ErrorCode
from barnabas.model.ids import TopicPartition
from barnabas.model.invariant import invariant

_EXPIRY = TimerKey(Timed.EXPIRY)


class _Life(Enum):
    LOADING = "loading"
    ACTIVE = "active"
    RESIGNED = "resigned"


class GroupShard:
    """One shard; the broker makes a new one whenever it becomes leader of the partition."""

    def __init__(
        self, settings: GroupSettings, source: random.Random, epoch_ms: Callable[[], int]
    ) -> None:
        self._settings = settings
        self._epoch_ms = epoch_ms
        self._timers = Timers()
        self._rebalances = Rebalances(settings, self._timers, epoch_ms)
        self._joining = Joining(self._rebalances, source, self.join)
        self._groups: dict[str, Group] = {}
        self._life = _Life.LOADING
        self._loaded = LoadedPartition()

    # -- life ------------------------------------------------------------------------------------

    @property
    def is_loading(self) -> bool:
        return self._life is _Life.LOADING

    @property
    def ignored_records(self) -> tuple[int, str]:
        """How many records could not be read, and what was wrong with the first of them."""
        return self._loaded.ignored_records, self._loaded.first_ignored

    @property
    def groups_count(self) -> int:
        return len(self._groups)

    @property
    def offsets_count(self) -> int:
        return sum(len(group.offsets.committed) for group in self._groups.values())

    def load(self, records: Iterable[CoordinatorRecord], producer_id: int = NO_PRODUCER) -> None:
        """The records of one batch, `producer_id` only if it is part of a transaction."""
        self._loaded.take(records, producer_id)

    def load_marker(self, producer_id: int, *, is_commit: bool) -> None:
        """A control batch: the end of a transaction."""
        self._loaded.take_marker(producer_id, is_commit=is_commit)

    def finish_loading(self, now_ms: int) -> Outcome:
        """The log was read to its end: sessions begin anew, and questions are answered."""
        invariant(self._life is _Life.LOADING, "a shard is loaded once")
        outcome = Outcome()
        self._life = _Life.ACTIVE
        for group in self._loaded.groups():
            self._groups[group.group_id] = group
            for member in group.members.values():
                self._rebalances.keep_session(group, member, now_ms)
            if len(group.members) > self._settings.members_max:
                cause = "more members than may be: who joins first stays"
                self._rebalances.prepare(group, cause, outcome, now_ms)
        self._timers.set(_EXPIRY, now_ms + self._settings.expiry_interval_ms)
        return outcome

    def resign(self, now_ms: int) -> Outcome:
        """Another broker leads the partition: whoever waits asks there."""
        outcome = Outcome()
        self._life = _Life.RESIGNED
        self._timers.clear()
        error = ErrorCode.NOT_COORDINATOR
        for group in self._groups.values():
            for member in group.members.values():
                joining = group.take_join_waiter(member)
                if joining is not None:
                    outcome.answer(joining, JoinResult(error, member.member_id))
                syncing, member.sync_waiter = member.sync_waiter, None
                if syncing is not None:
                    outcome.answer(syncing, SyncResult(error))
            group.cross(GroupState.DEAD, "resigned", self._epoch_ms(), outcome)
        self._groups.clear()
        return outcome

    def _refusal(self, group_id: str, *, may_be_empty: bool = False) -> ErrorCode:
        """Why nothing can be said of a group for now, or under that name."""
        if not group_id and not may_be_empty:
            return ErrorCode.INVALID_GROUP_ID
        match self._life:
            case _Life.LOADING:
                return ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
            case _Life.RESIGNED:
                return ErrorCode.NOT_COORDINATOR
            case _Life.ACTIVE:
                return ErrorCode.NONE

    # -- time ------------------------------------------------------------------------------------

    def next_deadline_ms(self) -> int | None:
        """When `tick` is due; None while nothing waits."""
        return self._timers.next_deadline_ms()

    def tick(self, now_ms: int) -> Outcome:
        """All that is over by now."""
        outcome = Outcome()
        while (key := self._timers.take_due(now_ms)) is not None:
            if key == _EXPIRY:
                self._expire_offsets(outcome)
                self._timers.set(_EXPIRY, now_ms + self._settings.expiry_interval_ms)
                continue
            group = self._groups[key.group_id]
            self._rebalances.on_due(group, key, outcome, now_ms)
            self._forget_if_unused(group)
        return outcome

    # -- members ---------------------------------------------------------------------------------

    def join(self, asked: JoinAsked, waiter: Waiter, now_ms: int) -> Outcome:
        outcome = Outcome()
        error = self._refusal(asked.group_id)
        settings = self._settings
        timeouts_ms = settings.session_timeout_min_ms, settings.session_timeout_max_ms
        if error is ErrorCode.NONE:
            if not timeouts_ms[0] <= asked.session_timeout_ms <= timeouts_ms[1]:
                error = ErrorCode.INVALID_SESSION_TIMEOUT
            elif asked.group_id not in self._groups:
                if asked.member_id != UNKNOWN_MEMBER_ID:
                    error = ErrorCode.UNKNOWN_MEMBER_ID
                elif len(self._groups) >= self._settings.groups_max:
                    error = ErrorCode.COORDINATOR_NOT_AVAILABLE
        if error is not ErrorCode.NONE:
            outcome.answer(waiter, JoinResult(error, asked.member_id))
            return outcome
        group = self._group_of(asked.group_id)
        self._joining.join(group, asked, waiter, outcome, now_ms)
        self._forget_if_unused(group)
        return outcome

    def sync(self, asked: SyncAsked, waiter: Waiter, now_ms: int) -> Outcome:
        outcome = Outcome()
        error = self._refusal(asked.group_id)
        group = self._groups.get(asked.group_id)
        if error is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
            # Joining again costs a member nothing, and it is sure to know what it is told.
            error = ErrorCode.REBALANCE_IN_PROGRESS
        elif error is ErrorCode.NONE and group is None:
            error = ErrorCode.UNKNOWN_MEMBER_ID
        if error is not ErrorCode.NONE or group is None:
            outcome.answer(waiter, SyncResult(error))
            return outcome
        sync(self._rebalances, group, asked, waiter, outcome, now_ms)
        return outcome

    def heartbeat(self, asked: HeartbeatAsked, now_ms: int) -> ErrorCode:
        error = self._refusal(asked.group_id)
        if error is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
            # Its session begins when loading ends.
            return ErrorCode.NONE
        if error is not ErrorCode.NONE:
            return error
        group = self._groups.get(asked.group_id)
        if group is None:
            return ErrorCode.UNKNOWN_MEMBER_ID
        return presence.heartbeat(self._rebalances, group, asked, now_ms)

    def leave(self, asked: LeaveAsked, waiter: Waiter, now_ms: int) -> Outcome:
        outcome = Outcome()
        error = self._refusal(asked.group_id)
        group = self._groups.get(asked.group_id)
        if error is not ErrorCode.NONE:
            result = LeaveResult(error)
        elif group is None:
            result = presence.unknown_members(asked)
        else:
            result = presence.leave(self._rebalances, group, asked, outcome, now_ms)
            self._forget_if_unused(group)
        outcome.answer(waiter, result)
        return outcome

    # -- offsets ---------------------------------------------------------------------------------

    def commit_offsets(self, asked: CommitAsked, waiter: Waiter, now_ms: int) -> Outcome:
        outcome = Outcome()
        error = self._refusal(asked.group_id, may_be_empty=True)
        if error is ErrorCode.NONE and asked.group_id not in self._groups:
            if asked.generation_id >= 0:
                error = ErrorCode.ILLEGAL_GENERATION
            elif len(self._groups) >= self._settings.groups_max:
                error = ErrorCode.COORDINATOR_NOT_AVAILABLE
        if error is not ErrorCode.NONE:
            outcome.answer(waiter, commits.refused_commit(asked, error))
            return outcome
        group = self._group_of(asked.group_id)
        commits.commit(self._rebalances, group, asked, waiter, outcome, now_ms)
        self._forget_if_unused(group)
        return outcome

    def fetch_offsets(
        self,
        group_id: str,
        partitions: tuple[TopicPartition, ...] | None,
        *,
        require_stable: bool = False,
    ) -> FetchOffsetsResult:
        """What the group committed; for all partitions it ever did when none are named."""
        error = self._refusal(group_id, may_be_empty=True)
        if error is not ErrorCode.NONE:
            return FetchOffsetsResult(error, {})
        group = self._groups.get(group_id)
        fetched = commits.fetched_offsets(group, partitions, require_stable=require_stable)
        return FetchOffsetsResult(ErrorCode.NONE, fetched)

    def delete_offsets(
        self, group_id: str, partitions: tuple[TopicPartition, ...], waiter: Waiter, now_ms: int
    ) -> Outcome:
        """Refused for topics that a live member reads; NONE also where there was no offset."""
        outcome = Outcome()
        error = self._refusal(group_id)
        group = self._groups.get(group_id)
        if error is ErrorCode.NONE:
            if group is None or not group.is_known:
                error = ErrorCode.GROUP_ID_NOT_FOUND
            elif group.is_being_removed:
                error = ErrorCode.COORDINATOR_NOT_AVAILABLE
            elif group.state is not GroupState.EMPTY and not group.is_consumer_group:
                error = ErrorCode.NON_EMPTY_GROUP
        if error is not ErrorCode.NONE or group is None:
            outcome.answer(waiter, DeleteOffsetsResult(error, {}))
            return outcome
        is_empty = group.state is GroupState.EMPTY
        topics = {partition.topic for partition in partitions}
        kept = {topic for topic in topics if not is_empty and group.is_subscribed_to(topic)}
        subscribed = ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC

        def done(error: ErrorCode, followed: Outcome) -> None:
            errors = {p: subscribed if p.topic in kept else error for p in partitions}
            followed.answer(waiter, DeleteOffsetsResult(ErrorCode.NONE, errors))

        self._remove(group, [p for p in partitions if p.topic not in kept], outcome, done)
        return outcome

    def delete_topic_offsets(self, partitions: Collection[TopicPartition], now_ms: int) -> Outcome:
        """Their topic was deleted: no group keeps offsets of them (D16)."""
        outcome = Outcome()
        for group in list(self._groups.values()):
            self._remove(group, partitions, outcome, _nobody_asked)
        return outcome

    def _expire_offsets(self, outcome: Outcome) -> None:
        epoch_ms, retention_ms = self._epoch_ms(), self._settings.offsets_retention_ms
        for group in list(self._groups.values()):
            expired = expired_offsets(group, epoch_ms, retention_ms)
            self._remove(group, expired, outcome, _nobody_asked)

    def _remove(
        self,
        group: Group,
        partitions: Collection[TopicPartition],
        outcome: Outcome,
        done: Done,
        *,
        is_whole: bool = False,
    ) -> None:
        """Write tombstones for what is there of these; an empty group ends with its last one."""
        there = [p for p in dict.fromkeys(partitions) if group.offsets.has(p)]
        if group.is_being_removed:
            there = []
        is_whole = is_whole or is_left_empty(group, there)
        group.is_being_removed = group.is_being_removed or is_whole
        batch_size_max = self._settings.message_size_max // 2
        Removal(group, there, is_whole, batch_size_max, self._on_dead, done).proceed(outcome)

    def _on_dead(self, group: Group, outcome: Outcome) -> None:
        group.cross(GroupState.DEAD, "nothing is left of it", self._epoch_ms(), outcome)
        for member_id in group.pending_members:
            self._timers.cancel(TimerKey(Timed.PENDING_JOIN, group.group_id, member_id))
        del self._groups[group.group_id]

    # -- groups ----------------------------------------------------------------------------------

    def describe(self, group_id: str) -> GroupDescription:
        error = self._refusal(group_id, may_be_empty=True)
        if error is not ErrorCode.NONE:
            return GroupDescription(error, group_id)
        return describe(group_id, self._groups.get(group_id))

    def list_groups(
        self, states: frozenset[str] = frozenset(), group_types: frozenset[str] = frozenset()
    ) -> list[GroupListing]:
        """Those in one of the states and of one of the types; of all where none are named."""
        found = (listing(group, states, group_types) for group in self._groups.values())
        return [group for group in found if group is not None]

    def delete_groups(self, group_ids: Collection[str], waiter: Waiter, now_ms: int) -> Outcome:
        """Groups without members go, with their offsets; answered when the last one is gone."""
        outcome = Outcome()
        errors: dict[str, ErrorCode] = {}
        removable: list[Group] = []
        for group_id in dict.fromkeys(group_ids):
            group = self._groups.get(group_id)
            errors[group_id] = self._deletion_refusal(group_id, group)
            if errors[group_id] is ErrorCode.NONE and group is not None:
                removable.append(group)
        left = len(removable)

        def done_with(group_id: str) -> Done:
            def done(error: ErrorCode, followed: Outcome) -> None:
                nonlocal left
                errors[group_id] = error
                left -= 1
                if not left:
                    followed.answer(waiter, DeleteGroupsResult(errors))

            return done

        for group in removable:
            partitions = group.offsets.all_partitions()
            self._remove(group, partitions, outcome, done_with(group.group_id), is_whole=True)
        if not removable:
            outcome.answer(waiter, DeleteGroupsResult(errors))
        return outcome

    def _deletion_refusal(self, group_id: str, group: Group | None) -> ErrorCode:
        error = self._refusal(group_id, may_be_empty=True)
        if error is not ErrorCode.NONE:
            return error
        if group is None or not group.is_known:
            return ErrorCode.GROUP_ID_NOT_FOUND
        if group.is_being_removed:
            return ErrorCode.COORDINATOR_NOT_AVAILABLE
        if group.state is not GroupState.EMPTY:
            return ErrorCode.NON_EMPTY_GROUP
        return ErrorCode.NONE

    def _group_of(self, group_id: str) -> Group:
        group = self._groups.get(group_id)
        if group is None:
            group = self._groups[group_id] = Group(group_id, self._epoch_ms())
        return group

    def _forget_if_unused(self, group: Group) -> None:
        """A group that nothing came of takes no room."""
        if not group.is_known and not group.offsets.has_pending:
            self._groups.pop(group.group_id, None)


def _nobody_asked(error: ErrorCode, outcome: Outcome) -> None:
    """Tombstones that were lost are written when they are due again."""
