"""From one generation of a group to the next: who is waited for, for how long, who is dropped."""

from collections.abc import Callable

from barnabas.core.coordinator.group.group import Group
from barnabas.core.coordinator.group.group_states import GroupState
from barnabas.core.coordinator.group.members import Member
from barnabas.core.coordinator.group.requests import (
    UNKNOWN_MEMBER_ID,
    JoinAsked,
    JoinResult,
    SyncResult,
)
from barnabas.core.coordinator.group.settings import (
    NEW_MEMBER_JOIN_TIMEOUT_MS,
    REBALANCE_RETRY_MIN_MS,
    GroupSettings,
)
from barnabas.core.coordinator.outcome import CoordinatorRecord, Outcome, Waiter, Write
from barnabas.core.coordinator.timers import Timed, TimerKey, Timers
from barnabas.formats.internal_topics.consumer_offsets import (
    GroupKey,
    GroupMetadata,
    encode_group_key,
    encode_group_metadata,
)
from barnabas.model.error_codes import ErrorCode
from barnabas.model.invariant import invariant

CAN_REBALANCE = (GroupState.EMPTY, GroupState.COMPLETING_REBALANCE, GroupState.STABLE)


def nothing_follows(error: ErrorCode, now_ms: int) -> Outcome:
    """What hangs on a write that nobody waits for."""
    return Outcome()


def group_write(
    group_id: str, metadata: GroupMetadata, then: Callable[[ErrorCode, int], Outcome]
) -> Write:
    """The write of a generation."""
    key = encode_group_key(GroupKey(group_id))
    return Write((CoordinatorRecord(key, encode_group_metadata(metadata)),), then)


class Rebalances:
    """Moves groups along the arrows of their table; `epoch_ms` tells the time of day."""

    def __init__(
        self, settings: GroupSettings, timers: Timers, epoch_ms: Callable[[], int]
    ) -> None:
        self.settings = settings
        self.epoch_ms = epoch_ms
        self._timers = timers

    # -- members ---------------------------------------------------------------------------------

    def keep_session(self, group: Group, member: Member, now_ms: int) -> None:
        """It was heard of: its session begins anew."""
        self._timers.set(
            TimerKey(Timed.SESSION, group.group_id, member.member_id),
            now_ms + member.session_timeout_ms,
        )

    def add_pending(self, group: Group, member_id: str, timeout_ms: int, now_ms: int) -> None:
        """An id was given out; it must be used in time."""
        group.pending_members[member_id] = None
        key = TimerKey(Timed.PENDING_JOIN, group.group_id, member_id)
        self._timers.set(key, now_ms + timeout_ms)

    def add_member(
        self, group: Group, member: Member, waiter: Waiter, outcome: Outcome, now_ms: int
    ) -> None:
        group_id, member_id = group.group_id, member.member_id
        self._timers.cancel(TimerKey(Timed.PENDING_JOIN, group_id, member_id))
        if group.state is GroupState.PREPARING_REBALANCE and group.generation_id == 0:
            group.has_new_members = True
        group.add(member)
        group.await_join(member, waiter)
        key = TimerKey(Timed.SESSION, group_id, member_id)
        self._timers.set(key, now_ms + NEW_MEMBER_JOIN_TIMEOUT_MS)
        self.prepare_if_possible(group, f"member {member_id} is new", outcome, now_ms)

    def update_member(
        self,
        group: Group,
        member: Member,
        asked: JoinAsked,
        waiter: Waiter,
        cause: str,
        outcome: Outcome,
        now_ms: int,
    ) -> None:
        """The member joins anew, with what it tells of itself now."""
        group.update(member, asked)
        self.await_join(group, member, waiter, outcome)
        self.prepare_if_possible(group, cause, outcome, now_ms)

    def await_join(self, group: Group, member: Member, waiter: Waiter, outcome: Outcome) -> None:
        """Let it wait for the next generation; an older join of the same member is sent back."""
        older = group.take_join_waiter(member)
        if older is not None:
            outcome.answer(older, JoinResult(ErrorCode.REBALANCE_IN_PROGRESS, member.member_id))
        group.await_join(member, waiter)

    def rename_static(
        self, group: Group, member: Member, member_id: str, asked: JoinAsked, outcome: Outcome
    ) -> None:
        """The instance is another process now: who waits in its old name is fenced."""
        self._answer_waiting(group, member, ErrorCode.FENCED_INSTANCE_ID, member.member_id, outcome)
        self._timers.cancel(TimerKey(Timed.SESSION, group.group_id, member.member_id))
        group.rename(member, member_id)
        group.update(member, asked)

    def remove_member(
        self, group: Group, member_id: str, cause: str, outcome: Outcome, now_ms: int
    ) -> None:
        """Drop a member, or an id that was given out, and see what that means for the others."""
        was_member = member_id in group.members
        self.forget_member(group, member_id, outcome)
        if was_member and group.is_in(GroupState.STABLE, GroupState.COMPLETING_REBALANCE):
            self.prepare(group, cause, outcome, now_ms)
        else:
            self.check_joined(group, outcome, now_ms)

    def forget_member(self, group: Group, member_id: str, outcome: Outcome) -> None:
        """Drop a member; whoever waits in its name learns that it is unknown."""
        member = group.members.get(member_id)
        if member is not None:
            self._answer_waiting(
                group, member, ErrorCode.UNKNOWN_MEMBER_ID, UNKNOWN_MEMBER_ID, outcome
            )
        group.remove(member_id)
        self._timers.cancel(TimerKey(Timed.SESSION, group.group_id, member_id))
        self._timers.cancel(TimerKey(Timed.PENDING_JOIN, group.group_id, member_id))

    def _answer_waiting(
        self, group: Group, member: Member, error: ErrorCode, member_id: str, outcome: Outcome
    ) -> None:
        joining = group.take_join_waiter(member)
        if joining is not None:
            outcome.answer(joining, JoinResult(error, member_id))
        syncing, member.sync_waiter = member.sync_waiter, None
        if syncing is not None:
            outcome.answer(syncing, SyncResult(error))

    # -- rebalances ------------------------------------------------------------------------------

    def prepare_if_possible(self, group: Group, cause: str, outcome: Outcome, now_ms: int) -> None:
        if group.is_in(*CAN_REBALANCE):
            self.prepare(group, cause, outcome, now_ms)

    def prepare(self, group: Group, cause: str, outcome: Outcome, now_ms: int) -> None:
        """Ask all members to join anew, and wait for them."""
        if group.state is GroupState.COMPLETING_REBALANCE:
            self.lose_assignment(group, ErrorCode.REBALANCE_IN_PROGRESS, outcome, now_ms)
        group.pending_sync.clear()
        self._timers.cancel(TimerKey(Timed.SYNC, group.group_id))
        was_empty = group.state is GroupState.EMPTY
        group.cross(GroupState.PREPARING_REBALANCE, cause, self.epoch_ms(), outcome)
        if was_empty:
            delay_ms = self.settings.initial_delay_ms
            group.initial_delay_left_ms = max(group.rebalance_timeout_ms - delay_ms, 0)
            self._timers.set(TimerKey(Timed.INITIAL_DELAY, group.group_id), now_ms + delay_ms)
        else:
            key = TimerKey(Timed.REBALANCE, group.group_id)
            self._timers.set(key, now_ms + group.rebalance_timeout_ms)
            self.check_joined(group, outcome, now_ms)

    def check_joined(self, group: Group, outcome: Outcome, now_ms: int) -> None:
        """Begin the next generation when nobody is waited for any more."""
        if (
            group.state is GroupState.PREPARING_REBALANCE
            and group.initial_delay_left_ms is None
            and group.has_all_joined
        ):
            self._complete_join(group, outcome, now_ms)

    def _complete_join(self, group: Group, outcome: Outcome, now_ms: int) -> None:
        """Go on with those who joined; static members keep their place until their session ends."""
        key = TimerKey(Timed.REBALANCE, group.group_id)
        self._timers.cancel(key)
        absent = [m for m in group.members.values() if m.join_waiter is None and not m.is_static]
        for member in absent:
            self.forget_member(group, member.member_id, outcome)
        if not group.elect_joined_leader() and group.members:
            wait_ms = max(group.rebalance_timeout_ms, REBALANCE_RETRY_MIN_MS)
            self._timers.set(key, now_ms + wait_ms)
            return
        group.begin_generation()
        if not group.members:
            group.cross(GroupState.EMPTY, "nobody joined", self.epoch_ms(), outcome)
            outcome.writes.append(
                group_write(group.group_id, group.as_written({}), nothing_follows)
            )
            return
        cause = f"{len(group.members)} members, led by {group.leader_id}"
        group.cross(GroupState.COMPLETING_REBALANCE, cause, self.epoch_ms(), outcome)
        for member in group.members.values():
            waiter = group.take_join_waiter(member)
            if waiter is not None:
                outcome.answer(waiter, self.joined(group, member))
            self.keep_session(group, member, now_ms)
            member.is_new = False
            group.pending_sync[member.member_id] = None
        sync_key = TimerKey(Timed.SYNC, group.group_id)
        self._timers.set(sync_key, now_ms + group.rebalance_timeout_ms)

    def joined(self, group: Group, member: Member, *, tells_members: bool = True) -> JoinResult:
        """The generation as a member is told of it."""
        is_leader = group.leader_id == member.member_id
        return JoinResult(
            ErrorCode.NONE,
            member.member_id,
            group.generation_id,
            group.protocol_type,
            group.protocol_name,
            group.leader_id or "",
            members=group.joined_members() if is_leader and tells_members else (),
        )

    # -- assignments -----------------------------------------------------------------------------

    def note_synced(self, group: Group, member: Member) -> None:
        group.pending_sync.pop(member.member_id, None)
        if not group.pending_sync:
            self._timers.cancel(TimerKey(Timed.SYNC, group.group_id))

    def tell_assignment(self, group: Group, outcome: Outcome, now_ms: int) -> None:
        """All who wait for it get it."""
        for member in group.members.values():
            result = SyncResult(
                ErrorCode.NONE, group.protocol_type, group.protocol_name, member.assignment
            )
            self._answer_sync(group, member, result, outcome, now_ms)

    def lose_assignment(
        self, group: Group, error: ErrorCode, outcome: Outcome, now_ms: int
    ) -> None:
        """Nothing is assigned in this generation; all who wait for it are told why."""
        invariant(group.state is GroupState.COMPLETING_REBALANCE, f"{group.group_id}: too late")
        for member in group.members.values():
            member.assignment = b""
            self._answer_sync(group, member, SyncResult(error), outcome, now_ms)

    def _answer_sync(
        self, group: Group, member: Member, result: SyncResult, outcome: Outcome, now_ms: int
    ) -> None:
        waiter, member.sync_waiter = member.sync_waiter, None
        if waiter is not None:
            outcome.answer(waiter, result)
            self.keep_session(group, member, now_ms)

    # -- time ------------------------------------------------------------------------------------

    def on_due(self, group: Group, key: TimerKey, outcome: Outcome, now_ms: int) -> None:
        """A deadline of the group has come."""
        match key.what:
            case Timed.SESSION:
                self._on_session_over(group, key.member_id, outcome, now_ms)
            case Timed.PENDING_JOIN:
                cause = f"{key.member_id} was never used"
                self.remove_member(group, key.member_id, cause, outcome, now_ms)
            case Timed.INITIAL_DELAY:
                self._on_initial_delay_over(group, outcome, now_ms)
            case Timed.REBALANCE:
                self._complete_join(group, outcome, now_ms)
            case Timed.SYNC:
                self._on_sync_over(group, outcome, now_ms)
            case Timed.EXPIRY:
                invariant(False, "expiry is the shard's")

    def _on_session_over(self, group: Group, member_id: str, outcome: Outcome, now_ms: int) -> None:
        member = group.members[member_id]
        if not member.is_kept_by_waiting:
            cause = f"the session of {member_id} is over"
            self.remove_member(group, member_id, cause, outcome, now_ms)

    def _on_initial_delay_over(self, group: Group, outcome: Outcome, now_ms: int) -> None:
        """Prolonged while somebody new came, but not beyond the rebalance time-out."""
        left_ms = group.initial_delay_left_ms or 0
        if group.has_new_members and left_ms:
            group.has_new_members = False
            delay_ms = min(self.settings.initial_delay_ms, left_ms)
            group.initial_delay_left_ms = left_ms - delay_ms
            self._timers.set(TimerKey(Timed.INITIAL_DELAY, group.group_id), now_ms + delay_ms)
            return
        group.has_new_members = False
        group.initial_delay_left_ms = None
        self._complete_join(group, outcome, now_ms)

    def _on_sync_over(self, group: Group, outcome: Outcome, now_ms: int) -> None:
        """Whoever joined and did not ask for its assignment is gone."""
        absent = list(group.pending_sync)
        for member_id in absent:
            self.forget_member(group, member_id, outcome)
        cause = f"no sync from {len(absent)} members"
        self.prepare(group, cause, outcome, now_ms)
