"""Static members: an instance that comes back as another process keeps its place."""

import pytest

from barnabas.core.coordinator.group.requests import Protocol
from barnabas.model.error_codes import ErrorCode
from tests.worlds.group_world import RANGE, GroupWorld, error_of, state

ROUND_ROBIN = (Protocol("roundrobin", b"b"),)
BOTH = (*RANGE, *ROUND_ROBIN)


def test_a_static_member_comes_back_under_a_new_id_and_nobody_is_moved():
    world = GroupWorld(replicates=True)
    first, second = world.stable_group(instances=("i", "j"))
    world.replicates = False
    waiter = world.ask_join(instance="j")
    # Nothing holds before it is replicated.
    assert waiter not in world.answers
    assert world.heartbeat(second, instance="j") is ErrorCode.NONE
    world.replicate()
    back = world.joined(waiter)
    assert (back.error, back.generation_id, back.leader_id) == (
        ErrorCode.NONE,
        1,
        first.member_id,
    )
    assert back.member_id.startswith("j-") and back.member_id != second.member_id
    assert state(world) == "Stable"
    assert world.synced(world.ask_sync(back, instance="j")).assignment == b"1"
    assert world.heartbeat(second, instance="j") is ErrorCode.FENCED_INSTANCE_ID
    assert world.heartbeat(second) is ErrorCode.UNKNOWN_MEMBER_ID
    assert error_of(world, world.ask_join(member_id=second.member_id, instance="j")) is (
        ErrorCode.FENCED_INSTANCE_ID
    )
    before = world.shard.describe("g")
    world.reload()
    assert world.shard.describe("g") == before


@pytest.mark.parametrize(("version", "skips"), [(8, False), (9, True)])
def test_a_leader_that_comes_back_may_skip_the_assignment_from_version_9_on(
    version: int, skips: bool
):
    world = GroupWorld()
    first, _ = world.stable_group(instances=("i", "j"))
    back = world.joined(world.ask_join(instance="i", version=version))
    assert back.skip_assignment == skips
    assert back.leader_id == (back.member_id if skips else first.member_id)
    assert len(back.members) == (2 if skips else 0)
    assert world.synced(world.ask_sync(back, instance="i")).assignment == b"0"


def test_a_replacement_that_was_lost_changes_nothing():
    world = GroupWorld()
    first, second = world.stable_group(instances=("i", "j"))
    world.replicates = False
    waiter = world.ask_join(instance="j")
    again = world.ask_join(instance="i")
    assert error_of(world, again) is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    world.lose(ErrorCode.NOT_ENOUGH_REPLICAS)
    lost = world.joined(waiter)
    assert (lost.error, lost.member_id) == (ErrorCode.COORDINATOR_NOT_AVAILABLE, "")
    assert (lost.generation_id, lost.leader_id) == (1, first.member_id)
    assert world.heartbeat(second, instance="j") is ErrorCode.NONE
    retried = world.ask_join(instance="j")
    world.replicate()
    assert error_of(world, retried) is ErrorCode.NONE


def test_a_replacement_that_was_lost_told_nothing_of_what_the_instance_knows():
    world = GroupWorld()
    waiters = [world.ask_join(instance=instance, protocols=BOTH) for instance in ("i", "j")]
    world.advance(0)
    members = [world.joined(waiter) for waiter in waiters]
    for member, instance in zip(members, ("i", "j"), strict=True):
        world.ask_sync(member, {}, instance=instance)
    world.replicates = False
    world.ask_join(instance="j", protocols=RANGE)
    world.lose(ErrorCode.NOT_ENOUGH_REPLICAS)
    # Both still know the other protocol, so who knows that one alone may join.
    assert world.ask_join(protocols=ROUND_ROBIN) not in world.answers


def test_a_replacement_is_judged_anew_when_the_group_has_moved_on_meanwhile():
    world = GroupWorld()
    first, second = world.stable_group(instances=("i", "j"))
    world.replicates = False
    waiter = world.ask_join(instance="j")
    world.ask_join(member_id=first.member_id, instance="i")
    world.replicate()
    assert error_of(world, waiter) is ErrorCode.NONE
    assert world.joined(waiter).generation_id == 2
    assert world.heartbeat(second, instance="j") is ErrorCode.FENCED_INSTANCE_ID


def test_a_replacement_that_changes_the_protocol_begins_a_rebalance():
    world = GroupWorld()
    waiters = [
        world.ask_join(instance="i", protocols=BOTH),
        world.ask_join(instance="j", protocols=(*ROUND_ROBIN, *RANGE)),
    ]
    world.advance(0)
    first, second = (world.joined(waiter) for waiter in waiters)
    world.ask_sync(first, {}, instance="i")
    world.ask_sync(second, instance="j")
    assert (state(world), first.protocol_name) == ("Stable", "range")
    world.ask_join(instance="i", protocols=(*ROUND_ROBIN, *RANGE))
    assert state(world) == "PreparingRebalance"


def test_a_static_member_that_waits_is_fenced_by_its_successor():
    world = GroupWorld()
    older = world.ask_join(instance="i")
    newer = world.ask_join(instance="i")
    fenced = world.joined(older)
    assert fenced.error is ErrorCode.FENCED_INSTANCE_ID
    world.advance(0)
    assert [member.group_instance_id for member in world.joined(newer).members] == ["i"]


def test_a_successor_of_a_newcomer_waits_no_longer_than_its_session():
    world = GroupWorld()
    (first,) = world.stable_group(1)
    world.ask_join(instance="i")
    newer = world.ask_join(instance="i")
    world.heartbeat(first)
    world.advance(9_999)
    assert newer not in world.answers
    world.heartbeat(first)
    world.advance(1)
    assert error_of(world, newer) is ErrorCode.UNKNOWN_MEMBER_ID


def test_a_successor_while_the_assignment_is_awaited_begins_a_rebalance():
    world = GroupWorld()
    waiters = [world.ask_join(instance="i"), world.ask_join(instance="j")]
    world.advance(0)
    second = world.joined(waiters[1])
    synced = world.ask_sync(second, instance="j")
    world.ask_join(instance="j")
    assert world.synced(synced).error is ErrorCode.FENCED_INSTANCE_ID
    assert state(world) == "PreparingRebalance"


def test_static_members_keep_their_place_until_their_session_is_over():
    world = GroupWorld()
    first, second = world.stable_group(instances=("i", "j"))
    rejoined = world.ask_join(member_id=first.member_id, instance="i")
    for _ in range(7):
        world.heartbeat(second, instance="j")
        world.advance(9_000)
    joined = world.joined(rejoined)
    assert [member.member_id for member in joined.members] == [
        first.member_id,
        second.member_id,
    ]


def test_a_static_leader_that_did_not_join_again_leads_no_more():
    world = GroupWorld()
    first, second = world.stable_group(instances=("i", None))
    rejoined = world.ask_join(member_id=second.member_id, protocols=(Protocol("range", b"other"),))
    for _ in range(7):
        world.heartbeat(first, instance="i")
        world.advance(9_000)
    joined = world.joined(rejoined)
    assert (joined.error, joined.leader_id) == (ErrorCode.NONE, second.member_id)
    assert [member.member_id for member in joined.members] == [first.member_id, second.member_id]


def test_an_instance_that_left_comes_back_as_a_new_member():
    world = GroupWorld()
    first, _ = world.stable_group(instances=("i", "j"))
    world.leave(("", "i"))
    world.ask_join(instance="i")
    described = world.shard.describe("g")
    assert described.state == "PreparingRebalance"
    assert [member.group_instance_id for member in described.members] == ["j", "i"]
    assert world.heartbeat(first, instance="i") is ErrorCode.FENCED_INSTANCE_ID


def test_an_instance_whose_successor_syncs_in_its_place_has_synced():
    world = GroupWorld()
    waiters = [world.ask_join(instance="i"), world.ask_join(instance="j")]
    world.advance(0)
    first = world.joined(waiters[0])
    world.ask_sync(first, {}, instance="i")
    back = world.joined(world.ask_join(instance="j"))
    world.ask_sync(back, instance="j")
    for _ in range(10):
        assert world.heartbeat(first, instance="i") is ErrorCode.NONE
        assert world.heartbeat(back, instance="j") is ErrorCode.NONE
        world.advance(9_000)


def test_an_instance_whose_successor_does_not_sync_is_dropped():
    world = GroupWorld()
    waiters = [world.ask_join(instance="i"), world.ask_join(instance="j")]
    world.advance(0)
    first = world.joined(waiters[0])
    world.ask_sync(first, {}, instance="i")
    back = world.joined(world.ask_join(instance="j"))
    for _ in range(7):
        world.heartbeat(first, instance="i")
        world.heartbeat(back, instance="j")
        world.advance(9_000)
    assert world.heartbeat(back, instance="j") is ErrorCode.UNKNOWN_MEMBER_ID


def test_no_static_member_ever_has_an_id_to_come_back_with():
    world = GroupWorld()
    given = world.joined(world.ask_join(version=4)).member_id
    refused = world.ask_join(member_id=given, instance="i")
    assert error_of(world, refused) is ErrorCode.UNKNOWN_SERVER_ERROR


def test_a_rebalance_that_nobody_joined_is_tried_again_while_a_static_member_lives():
    world = GroupWorld()
    first, second = world.stable_group(instances=("i", "j"))
    world.ask_join(member_id=first.member_id, instance="i")
    world.leave((first.member_id, "i"))
    for _ in range(20):
        world.heartbeat(second, instance="j")
        world.advance(9_000)
    assert state(world) == "PreparingRebalance"
    rejoined = world.joined(world.ask_join(member_id=second.member_id, instance="j"))
    assert (rejoined.error, rejoined.generation_id) == (ErrorCode.NONE, 2)


def test_a_rebalance_that_was_tried_again_ends_with_those_who_joined_by_then():
    world = GroupWorld()
    first, second, third = world.stable_group(instances=("i", "j", "k"))
    world.leave(("", "k"))
    instances = {"i": first, "j": second}

    def live(milliseconds: int) -> None:
        for _ in range(milliseconds // 6_000):
            for instance, member in instances.items():
                world.heartbeat(member, instance=instance)
            world.advance(6_000)

    live(66_000)
    rejoined = world.ask_join(member_id=second.member_id, instance="j")
    live(48_000)
    assert rejoined not in world.answers
    live(6_000)
    assert world.joined(rejoined).leader_id == second.member_id
    assert third.error is ErrorCode.NONE


def test_who_leaves_is_waited_for_no_longer():
    world = GroupWorld()
    first, second = world.stable_group(2)
    rejoined = world.ask_join(member_id=first.member_id)
    world.leave((second.member_id, None))
    assert world.joined(rejoined).generation_id == 2


def test_what_a_successor_tells_counts():
    world = GroupWorld()
    first, _ = world.stable_group(instances=("i", "j"))
    leader = world.ask_join(member_id=first.member_id, instance="i")
    world.ask_join(instance="j", protocols=(Protocol("range", b"new"),))
    assert [member.metadata for member in world.joined(leader).members] == [b"r", b"new"]


def test_a_rebalance_time_out_of_nothing_does_not_keep_the_broker_busy():
    world = GroupWorld()
    waiter = world.ask_join(instance="i", rebalance_ms=0)
    world.advance(0)
    # Nobody syncs: the static member is dropped at once, and the group is empty again.
    assert error_of(world, waiter) is ErrorCode.NONE
    assert state(world) == "Empty"
