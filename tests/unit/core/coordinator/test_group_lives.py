"""A group from its first member to its last, through a restart of its coordinator."""

from barnabas.core.coordinator.group.requests import UNKNOWN_MEMBER_ID
from barnabas.model.error_codes import ErrorCode
from barnabas.model.ids import TopicPartition
from tests.worlds.group_world import GroupWorld

T0 = TopicPartition("t", 0)


def test_two_members_join_sync_commit_and_leave():
    world = GroupWorld()
    first, second = world.stable_group(2)
    assert first.generation_id == second.generation_id == 1
    assert [member.member_id for member in first.members] == [first.member_id, second.member_id]
    assert second.members == ()
    assert world.synced("waiter 3").assignment == b"0"
    assert world.synced("waiter 4").assignment == b"1"
    assert world.commit({T0: 7}, second) is ErrorCode.NONE
    assert world.committed() == {T0: 7}
    assert world.heartbeat(first) is ErrorCode.NONE
    left = world.leave((first.member_id, None), (second.member_id, None), ("nobody", None))
    assert [member.error for member in left.members] == [
        ErrorCode.NONE,
        ErrorCode.NONE,
        ErrorCode.UNKNOWN_MEMBER_ID,
    ]
    world.advance(60_000)
    assert world.shard.describe("g").state == "Empty"
    assert world.committed() == {T0: 7}


def test_a_killed_coordinator_knows_its_groups_again():
    world = GroupWorld()
    first, second = world.stable_group(2)
    world.commit({T0: 7}, second)
    before = world.shard.describe("g")
    world.reload()
    assert world.shard.describe("g") == before
    assert world.committed() == {T0: 7}
    assert world.heartbeat(second) is ErrorCode.NONE
    assert world.synced(world.ask_sync(second)).assignment == b"1"
    assert world.commit({T0: 8}, first) is ErrorCode.NONE
    # Who is not heard of any more is gone when the session is over.
    world.advance(20_000)
    world.advance(60_000)
    assert world.shard.describe("g").state == "Empty"
    assert world.joined(world.ask_join(member_id=first.member_id)).error is (
        ErrorCode.UNKNOWN_MEMBER_ID
    )
    assert UNKNOWN_MEMBER_ID == ""
