"""JoinGroup: who enters, under which id, and when a generation begins."""

import uuid

import pytest

from barnabas.core.coordinator.group.requests import JoinAsked, Protocol
from barnabas.core.coordinator.group.settings import GroupSettings
from barnabas.model.error_codes import ErrorCode
from tests.worlds.group_world import RANGE, GroupWorld, error_of, state

ROUND_ROBIN = (Protocol("roundrobin", b"b"),)
BOTH = (*RANGE, *ROUND_ROBIN)


# -- ids -------------------------------------------------------------------------------------------


def test_from_version_4_on_a_member_comes_back_with_the_id_it_was_given():
    world = GroupWorld()
    refused = world.joined(world.ask_join(version=4))
    assert refused.error is ErrorCode.MEMBER_ID_REQUIRED
    assert refused.generation_id == -1
    assert refused.member_id.startswith("client-")
    assert len(refused.member_id) == len("client-") + 36
    assert state(world) == "Empty"
    waiter = world.ask_join(member_id=refused.member_id, version=4)
    world.advance(0)
    joined = world.joined(waiter)
    assert (joined.error, joined.member_id) == (ErrorCode.NONE, refused.member_id)
    assert (joined.generation_id, joined.leader_id) == (1, refused.member_id)
    assert (joined.protocol_type, joined.protocol_name) == ("consumer", "range")


@pytest.mark.parametrize(("waits_ms", "is_known"), [(6_999, True), (7_000, False)])
def test_an_id_that_was_given_is_forgotten_when_it_is_not_used(waits_ms: int, is_known: bool):
    world = GroupWorld()
    given = world.joined(world.ask_join(version=4, session_ms=7_000)).member_id
    world.advance(waits_ms)
    waiter = world.ask_join(member_id=given, version=4)
    if not is_known:
        assert error_of(world, waiter) is ErrorCode.UNKNOWN_MEMBER_ID
        return
    world.advance(0)
    joined = world.joined(waiter)
    # Now it is a member's, and lives as long as that.
    for _ in range(3):
        assert world.heartbeat(joined) is ErrorCode.NONE
        world.advance(5_000)


def test_a_rebalance_waits_for_ids_that_were_given_out():
    world = GroupWorld()
    (first,) = world.stable_group(1)
    given = world.joined(world.ask_join(version=4)).member_id
    rejoined = world.ask_join(member_id=first.member_id)
    assert rejoined not in world.answers
    late = world.ask_join(member_id=given, version=4)
    assert world.joined(rejoined).generation_id == world.joined(late).generation_id == 2


def test_an_id_of_nobody_is_unknown_with_and_without_the_group():
    world = GroupWorld()
    assert error_of(world, world.ask_join(member_id="x")) is ErrorCode.UNKNOWN_MEMBER_ID
    assert world.shard.groups_count == 0
    world.stable_group(1)
    assert error_of(world, world.ask_join(member_id="x")) is ErrorCode.UNKNOWN_MEMBER_ID


def test_ids_are_drawn_from_the_chance_that_was_handed_in():
    first, second = (GroupWorld() for _ in range(2))
    worlds = (first, second) * 40
    ids = [world.joined(world.ask_join(version=4)).member_id for world in worlds]
    assert ids[::2] == ids[1::2]
    assert len(set(ids)) == 40
    drawn = [uuid.UUID(member_id.removeprefix("client-")) for member_id in ids]
    assert {(one.version, one.variant) for one in drawn} == {(4, uuid.RFC_4122)}


def test_an_id_is_never_too_long_for_its_field():
    world = GroupWorld()
    waiter = world.waiter()
    asked = JoinAsked(
        *("g", "", None, "\u00e9" * 16_383, "/h", 10_000, 60_000, "consumer", RANGE),
        requires_member_id=True,
        can_skip_assignment=False,
    )
    world.take(world.shard.join(asked, waiter, 0))
    member_id = world.joined(waiter).member_id
    assert member_id.startswith("\u00e9" * 16_000 + "-")
    assert len(member_id.encode()) == 32_000 + 37


# -- what is refused -------------------------------------------------------------------------------


@pytest.mark.parametrize(("session_ms", "is_allowed"), [(5_999, False), (6_000, True)])
def test_session_time_outs_have_a_least_and_a_greatest_value(session_ms: int, is_allowed: bool):
    world = GroupWorld(GroupSettings(initial_delay_ms=0, session_timeout_max_ms=6_000))
    waiter = world.ask_join(session_ms=session_ms)
    refused = world.ask_join(session_ms=6_001)
    world.advance(0)
    expected = ErrorCode.NONE if is_allowed else ErrorCode.INVALID_SESSION_TIMEOUT
    assert error_of(world, waiter) is expected
    assert error_of(world, refused) is ErrorCode.INVALID_SESSION_TIMEOUT


def test_a_group_needs_a_name_and_a_protocol():
    world = GroupWorld()
    assert error_of(world, world.ask_join("")) is ErrorCode.INVALID_GROUP_ID
    for waiter in (world.ask_join(protocols=()), world.ask_join(protocol_type="")):
        assert error_of(world, waiter) is ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    assert world.shard.groups_count == 0


def test_members_share_a_type_and_a_protocol():
    world = GroupWorld()
    (first,) = world.stable_group(1)
    for waiter in (
        world.ask_join(protocols=ROUND_ROBIN),
        world.ask_join(protocol_type="connect"),
        world.ask_join(member_id=first.member_id, protocols=ROUND_ROBIN),
    ):
        assert error_of(world, waiter) is ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    assert state(world) == "Stable"


def test_a_group_is_full_at_its_greatest_size():
    world = GroupWorld(GroupSettings(initial_delay_ms=0, members_max=2))
    first, second = world.stable_group(2)
    refused = world.joined(world.ask_join())
    assert (refused.error, refused.member_id) == (ErrorCode.GROUP_MAX_SIZE_REACHED, "")
    assert state(world) == "Stable"
    # Whoever is in may join again.
    rejoined = [world.ask_join(member_id=member.member_id) for member in (first, second)]
    assert [error_of(world, waiter) for waiter in rejoined] == [ErrorCode.NONE, ErrorCode.NONE]


def test_during_a_rebalance_the_first_to_join_are_those_who_stay():
    world = GroupWorld(GroupSettings(initial_delay_ms=0, members_max=2))
    first, second = world.stable_group(2)
    rejoined = world.ask_join(member_id=first.member_id)
    newcomer = world.ask_join()
    assert newcomer not in world.answers
    late = world.joined(world.ask_join(member_id=second.member_id))
    assert (late.error, late.member_id) == (ErrorCode.GROUP_MAX_SIZE_REACHED, "")
    # With that nobody is waited for any more.
    assert error_of(world, rejoined) is error_of(world, newcomer) is ErrorCode.NONE
    assert world.heartbeat(second) is ErrorCode.UNKNOWN_MEMBER_ID


def test_ids_that_were_given_out_are_bounded():
    world = GroupWorld(GroupSettings(initial_delay_ms=0, pending_members_max=2))
    given = [world.joined(world.ask_join(version=4)) for _ in range(3)]
    assert [result.error for result in given] == [
        *(ErrorCode.MEMBER_ID_REQUIRED,) * 2,
        ErrorCode.GROUP_MAX_SIZE_REACHED,
    ]
    # Whoever has one uses it, and makes room with that.
    world.ask_join(member_id=given[0].member_id, version=4)
    assert error_of(world, world.ask_join(version=4)) is ErrorCode.MEMBER_ID_REQUIRED


def test_what_members_tell_of_themselves_is_bounded():
    world = GroupWorld(GroupSettings(initial_delay_ms=0, message_size_max=100))
    world.stable_group(1)
    (member,) = world.stable_group(1, group_id="h", protocols=(Protocol("range", bytes(1_000)),))
    # 1,600 bytes in all: of each member its last words, and nothing of those who left.
    for size, is_allowed in ((590, True), (591, False)):
        waiter = world.ask_join("h", protocols=(Protocol("range", bytes(size)),))
        assert (waiter in world.answers) == (not is_allowed)
        if is_allowed:
            world.ask_join("h", member_id=member.member_id)
            world.leave((world.joined(waiter).member_id, None), group_id="h")
            changed = (Protocol("range", bytes(1_000)),)
            world.ask_join("h", member_id=member.member_id, protocols=changed)
    assert error_of(world, waiter) is ErrorCode.GROUP_MAX_SIZE_REACHED


# -- when a generation begins ----------------------------------------------------------------------


def test_an_empty_group_waits_for_more_members_but_not_longer_than_the_rebalance_time_out():
    world = GroupWorld(GroupSettings(initial_delay_ms=3_000))
    first = world.ask_join(rebalance_ms=10_000)
    for _ in range(3):
        world.advance(2_999)
        assert first not in world.answers
        world.ask_join(rebalance_ms=10_000)
        world.advance(1)
    assert first not in world.answers
    world.advance(999)
    assert first not in world.answers
    world.advance(1)
    assert len(world.joined(first).members) == 4


def test_the_delay_is_not_prolonged_when_nobody_came():
    world = GroupWorld(GroupSettings(initial_delay_ms=3_000))
    first = world.ask_join()
    world.advance(2_999)
    assert first not in world.answers
    world.advance(1)
    assert world.joined(first).generation_id == 1


def test_who_does_not_join_again_in_time_is_dropped():
    world = GroupWorld()
    first, second = world.stable_group(2)
    newcomer = world.ask_join(rebalance_ms=20_000)
    rejoined = world.ask_join(member_id=first.member_id, rebalance_ms=20_000)
    for _ in range(6):
        # Its session lives on, and it is told to join.
        assert world.heartbeat(second) is ErrorCode.REBALANCE_IN_PROGRESS
        world.advance(9_999)
    assert rejoined not in world.answers
    world.advance(6)
    joined = world.joined(rejoined)
    assert [member.member_id for member in joined.members] == [
        first.member_id,
        world.joined(newcomer).member_id,
    ]
    assert world.heartbeat(second) is ErrorCode.UNKNOWN_MEMBER_ID


def test_another_leads_when_the_leader_did_not_join_again():
    world = GroupWorld()
    first, second = world.stable_group(2)
    world.ask_join(member_id=second.member_id, protocols=(Protocol("range", b"other"),))
    world.heartbeat(first)
    for _ in range(7):
        world.heartbeat(first)
        world.advance(9_000)
    described = world.shard.describe("g")
    assert [member.member_id for member in described.members] == [second.member_id]


def test_a_waiting_join_never_expires_but_a_first_join_does():
    world = GroupWorld()
    (first,) = world.stable_group(1)
    newcomer = world.ask_join(rebalance_ms=600_000)
    for _ in range(33):
        world.heartbeat(first)
        world.advance(9_000)
    assert newcomer not in world.answers
    world.heartbeat(first)
    world.advance(3_000)
    # Five minutes after it came: the connection it came on is long gone.
    gone = world.joined(newcomer)
    assert (gone.error, gone.member_id) == (ErrorCode.UNKNOWN_MEMBER_ID, "")
    rejoined = world.ask_join(member_id=first.member_id, rebalance_ms=600_000)
    assert world.joined(rejoined).generation_id == 2


def test_members_that_wait_are_not_dropped_while_others_take_their_time():
    world = GroupWorld()
    first, second = world.stable_group(2)
    rejoined = world.ask_join(member_id=first.member_id)
    for _ in range(5):
        world.heartbeat(second)
        world.advance(9_000)
    assert rejoined not in world.answers
    world.ask_join(member_id=second.member_id)
    assert error_of(world, rejoined) is ErrorCode.NONE


def test_a_second_join_takes_the_place_of_the_first():
    world = GroupWorld()
    first, second = world.stable_group(2)
    older = world.ask_join(member_id=first.member_id)
    newer = world.ask_join(member_id=first.member_id)
    assert error_of(world, older) is ErrorCode.REBALANCE_IN_PROGRESS
    world.ask_join(member_id=second.member_id)
    assert error_of(world, newer) is ErrorCode.NONE


def test_the_time_outs_of_the_last_join_count():
    world = GroupWorld()
    (first,) = world.stable_group(1)
    world.ask_join(member_id=first.member_id, session_ms=20_000, rebalance_ms=5_000)
    world.advance(4_999)
    assert state(world) == "CompletingRebalance"
    second = first._replace(generation_id=2)
    world.ask_sync(second, {})
    world.advance(19_999)
    assert world.heartbeat(second) is ErrorCode.NONE
    newcomer = world.ask_join(rebalance_ms=1)
    world.advance(4_999)
    assert newcomer not in world.answers
    world.advance(1)
    assert world.joined(newcomer).error is ErrorCode.NONE
    assert world.heartbeat(second) is ErrorCode.UNKNOWN_MEMBER_ID


# -- protocols and leaders -------------------------------------------------------------------------


def test_the_protocol_that_most_members_named_first_is_taken_of_those_that_all_know():
    world = GroupWorld()
    other = (Protocol("cooperative", b"c"), *ROUND_ROBIN, *RANGE)
    waiters = [
        world.ask_join(protocols=protocols) for protocols in (BOTH, other, (*ROUND_ROBIN, *RANGE))
    ]
    world.advance(0)
    results = [world.joined(waiter) for waiter in waiters]
    assert {result.protocol_name for result in results} == {"roundrobin"}
    assert [member.metadata for member in results[0].members] == [b"b"] * 3


def test_a_protocol_that_is_named_twice_is_one():
    world = GroupWorld()
    first = world.ask_join(protocols=RANGE * 2)
    second = world.ask_join(protocols=RANGE)
    world.advance(0)
    assert error_of(world, first) is error_of(world, second) is ErrorCode.NONE


def test_in_a_stable_group_only_the_leader_or_a_change_begins_a_rebalance():
    world = GroupWorld()
    first, second = world.stable_group(2)
    same = world.joined(world.ask_join(member_id=second.member_id))
    assert (same.error, same.generation_id, same.members) == (ErrorCode.NONE, 1, ())
    assert state(world) == "Stable"
    changed = world.ask_join(member_id=second.member_id, protocols=(Protocol("range", b"x"),))
    assert (state(world), changed in world.answers) == ("PreparingRebalance", False)
    leader = world.joined(world.ask_join(member_id=first.member_id))
    assert [member.metadata for member in leader.members] == [b"r", b"x"]
    assert leader.generation_id == 2


def test_the_leader_of_a_stable_group_begins_a_rebalance_by_joining():
    world = GroupWorld()
    first, second = world.stable_group(2)
    waiter = world.ask_join(member_id=first.member_id)
    assert (state(world), waiter in world.answers) == ("PreparingRebalance", False)
    assert world.heartbeat(second) is ErrorCode.REBALANCE_IN_PROGRESS


def test_while_the_assignment_is_awaited_the_same_join_gets_the_same_answer():
    world = GroupWorld()
    waiters = [world.ask_join(), world.ask_join()]
    world.advance(0)
    first, second = (world.joined(waiter) for waiter in waiters)
    assert world.joined(world.ask_join(member_id=first.member_id)) == first
    assert world.joined(world.ask_join(member_id=second.member_id)) == second
    synced = world.ask_sync(second)
    world.ask_join(member_id=second.member_id, protocols=(Protocol("range", b"x"),))
    assert world.synced(synced).error is ErrorCode.REBALANCE_IN_PROGRESS
    assert state(world) == "PreparingRebalance"
