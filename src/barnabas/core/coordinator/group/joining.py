"""JoinGroup: who may enter a group, under which id, and whether that begins a rebalance."""

import random
from collections.abc import Callable

from barnabas.core.coordinator.group.append_errors import group_write_error
from barnabas.core.coordinator.group.group import Group
from barnabas.core.coordinator.group.group_states import GroupState
from barnabas.core.coordinator.group.members import Member, protocol_bytes
from barnabas.core.coordinator.group.rebalances import Rebalances, group_write
from barnabas.core.coordinator.group.requests import UNKNOWN_MEMBER_ID, JoinAsked, JoinResult
from barnabas.core.coordinator.group.settings import GROUP_PROTOCOLS_FACTOR, GroupSettings
from barnabas.core.coordinator.outcome import Outcome, Waiter
from barnabas.formats.internal_topics.consumer_offsets import GroupMetadata
from barnabas.model.error_codes import ErrorCode

Again = Callable[[JoinAsked, Waiter, int], Outcome]
"""Judges a join anew, because the group has changed while it was on its way."""

_MEMBER_ID_PREFIX_BYTES_MAX = 32_000


class Joining:
    """Takes joins that were found to be for a group of this shard."""

    def __init__(self, rebalances: Rebalances, source: random.Random, again: Again) -> None:
        self._rebalances = rebalances
        self._settings: GroupSettings = rebalances.settings
        self._source = source
        self._again = again

    def join(
        self, group: Group, asked: JoinAsked, waiter: Waiter, outcome: Outcome, now_ms: int
    ) -> None:
        if not self._accepts(group, asked):
            self._rebalances.forget_member(group, asked.member_id, outcome)
            outcome.answer(waiter, JoinResult(ErrorCode.GROUP_MAX_SIZE_REACHED, UNKNOWN_MEMBER_ID))
        elif group.is_being_removed:
            outcome.answer(waiter, JoinResult(ErrorCode.COORDINATOR_NOT_AVAILABLE, asked.member_id))
        elif not group.supports(asked.protocol_type, asked.protocols):
            outcome.answer(
                waiter, JoinResult(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, asked.member_id)
            )
        elif asked.member_id == UNKNOWN_MEMBER_ID:
            self._join_without_id(group, asked, waiter, outcome, now_ms)
        elif asked.member_id in group.pending_members:
            self._join_with_given_id(group, asked, waiter, outcome, now_ms)
        else:
            self._join_again(group, asked, waiter, outcome, now_ms)
        self._rebalances.check_joined(group, outcome, now_ms)

    def _accepts(self, group: Group, asked: JoinAsked) -> bool:
        """Whether there is room: for one more member, and for what it tells of itself."""
        member = group.members.get(asked.member_id)
        told_bytes = 0 if member is None else member.protocol_bytes
        asked_bytes = protocol_bytes(asked.protocols)
        bytes_max = GROUP_PROTOCOLS_FACTOR * self._settings.message_size_max
        if group.protocol_bytes - told_bytes + asked_bytes > bytes_max:
            return False
        if (
            asked.requires_member_id
            and asked.member_id == UNKNOWN_MEMBER_ID
            and len(group.pending_members) >= self._settings.pending_members_max
        ):
            return False
        members_max = self._settings.members_max
        match group.state:
            case GroupState.EMPTY | GroupState.DEAD:
                return True
            case GroupState.PREPARING_REBALANCE:
                is_waiting = member is not None and member.join_waiter is not None
                return is_waiting or group.awaiting_join_count < members_max
            case GroupState.COMPLETING_REBALANCE | GroupState.STABLE:
                return member is not None or len(group.members) < members_max

    def _join_without_id(
        self, group: Group, asked: JoinAsked, waiter: Waiter, outcome: Outcome, now_ms: int
    ) -> None:
        instance_id = asked.group_instance_id
        if instance_id is not None:
            member_id = self._new_member_id(instance_id)
            if instance_id in group.static_members:
                self._replace_static(group, member_id, asked, waiter, outcome, now_ms)
                return
        else:
            member_id = self._new_member_id(asked.client_id)
            if asked.requires_member_id:
                timeout_ms = asked.session_timeout_ms
                self._rebalances.add_pending(group, member_id, timeout_ms, now_ms)
                outcome.answer(waiter, JoinResult(ErrorCode.MEMBER_ID_REQUIRED, member_id))
                return
        member = Member.joining(asked, member_id)
        self._rebalances.add_member(group, member, waiter, outcome, now_ms)

    def _new_member_id(self, prefix: str) -> str:
        drawn = bytearray(self._source.randbytes(16))
        drawn[6] = drawn[6] & 0x0F | 0x40
        drawn[8] = drawn[8] & 0x3F | 0x80
        text = drawn.hex()
        uuid = f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"
        kept = prefix.encode()[:_MEMBER_ID_PREFIX_BYTES_MAX].decode(errors="ignore")
        return f"{kept}-{uuid}"

    def _join_with_given_id(
        self, group: Group, asked: JoinAsked, waiter: Waiter, outcome: Outcome, now_ms: int
    ) -> None:
        if asked.group_instance_id is not None:
            # No id is ever given out for a static member to come back with.
            outcome.answer(waiter, JoinResult(ErrorCode.UNKNOWN_SERVER_ERROR, asked.member_id))
            return
        member = Member.joining(asked, asked.member_id)
        self._rebalances.add_member(group, member, waiter, outcome, now_ms)

    def _join_again(
        self, group: Group, asked: JoinAsked, waiter: Waiter, outcome: Outcome, now_ms: int
    ) -> None:
        error = group.check_member(asked.member_id, asked.group_instance_id)
        if error is not ErrorCode.NONE:
            outcome.answer(waiter, JoinResult(error, asked.member_id))
            return
        member = group.members[asked.member_id]
        is_leader = group.leader_id == member.member_id
        has_changed = not member.matches(asked.protocols)
        match group.state:
            case GroupState.PREPARING_REBALANCE:
                is_answered = False
            case GroupState.COMPLETING_REBALANCE:
                # It may have missed the answer to its first join.
                is_answered = not has_changed
            case _:
                # The leader joins again when it wants to assign anew.
                is_answered = not has_changed and not is_leader
        if is_answered:
            outcome.answer(waiter, self._rebalances.joined(group, member))
            return
        told = "tells something else" if has_changed else "joins again"
        cause = f"member {member.member_id} {told}"
        self._rebalances.update_member(group, member, asked, waiter, cause, outcome, now_ms)

    # -- static members --------------------------------------------------------------------------

    def _replace_static(
        self,
        group: Group,
        member_id: str,
        asked: JoinAsked,
        waiter: Waiter,
        outcome: Outcome,
        now_ms: int,
    ) -> None:
        """The instance came back as another process; when nothing else changes nobody is moved."""
        member = group.members[group.static_members[asked.group_instance_id or ""]]
        if group.state is GroupState.STABLE:
            selected = group.select_protocol_with(member, asked.protocols)
            if selected == group.protocol_name:
                self._replicate_replacement(group, member, member_id, asked, waiter, outcome)
                return
        self._rebalances.rename_static(group, member, member_id, asked, outcome)
        self._rebalances.keep_session(group, member, now_ms)
        self._rebalances.await_join(group, member, waiter, outcome)
        cause = f"static member {asked.group_instance_id} came back as {member_id}"
        self._rebalances.prepare_if_possible(group, cause, outcome, now_ms)

    def _replicate_replacement(
        self,
        group: Group,
        member: Member,
        member_id: str,
        asked: JoinAsked,
        waiter: Waiter,
        outcome: Outcome,
    ) -> None:
        """The new id holds once it is replicated; one at a time, so that log and memory agree."""
        if group.is_replacing_member:
            outcome.answer(
                waiter, JoinResult(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, UNKNOWN_MEMBER_ID)
            )
            return
        group.is_replacing_member = True
        generation_id, old_id = group.generation_id, member.member_id

        def then(error: ErrorCode, now_ms: int) -> Outcome:
            group.is_replacing_member = False
            is_as_written = (
                group.state is GroupState.STABLE
                and group.generation_id == generation_id
                and group.members.get(old_id) is member
            )
            if error is not ErrorCode.NONE:
                failed = Outcome()
                failed.answer(waiter, _replacement_failed(group, group_write_error(error)))
                return failed
            if not is_as_written:
                return self._again(asked, waiter, now_ms)
            return self._replaced(group, member, member_id, asked, waiter, now_ms)

        outcome.writes.append(
            group_write(group.group_id, _with_replacement(group, member, member_id, asked), then)
        )

    def _replaced(
        self,
        group: Group,
        member: Member,
        member_id: str,
        asked: JoinAsked,
        waiter: Waiter,
        now_ms: int,
    ) -> Outcome:
        outcome = Outcome()
        old_leader_id = group.leader_id or ""
        self._rebalances.rename_static(group, member, member_id, asked, outcome)
        self._rebalances.keep_session(group, member, now_ms)
        if asked.can_skip_assignment:
            # A leader hears who is there, and that all of it is assigned already.
            result = self._rebalances.joined(group, member)
            result = result._replace(skip_assignment=group.leader_id == member_id)
        else:
            # The old id, so that an older client does not take itself for the leader.
            result = self._rebalances.joined(group, member, tells_members=False)
            result = result._replace(leader_id=old_leader_id)
        outcome.answer(waiter, result)
        return outcome


def _with_replacement(
    group: Group, member: Member, member_id: str, asked: JoinAsked
) -> GroupMetadata:
    """The generation as it is, with the member under its new id and with what it tells now."""
    name = group.protocol_name or ""
    metadata = group.metadata_of(
        known.as_written(known.member_id, known.protocols, name, known.assignment)
        if known is not member
        else member.as_written(member_id, asked.protocols, name, member.assignment)._replace(
            rebalance_timeout_ms=asked.rebalance_timeout_ms,
            session_timeout_ms=asked.session_timeout_ms,
        )
        for known in group.members.values()
    )
    is_leader = group.leader_id == member.member_id
    return metadata._replace(leader_id=member_id) if is_leader else metadata


def _replacement_failed(group: Group, error: ErrorCode) -> JoinResult:
    return JoinResult(
        error,
        UNKNOWN_MEMBER_ID,
        group.generation_id,
        group.protocol_type,
        group.protocol_name,
        group.leader_id or "",
    )
