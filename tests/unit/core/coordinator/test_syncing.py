"""SyncGroup, Heartbeat, LeaveGroup: a generation from its assignment to its end."""

import pytest

from barnabas.core.coordinator.group.requests import JoinResult, LeftMember
from barnabas.core.coordinator.group.settings import GroupSettings
from barnabas.core.coordinator.outcome import GroupMoved
from barnabas.formats.internal_topics.consumer_offsets import decode_group_metadata
from barnabas.model.error_codes import ErrorCode
from tests.worlds.group_world import EPOCH_MS, GroupWorld

NONE = ErrorCode.NONE


def state(world: GroupWorld) -> str:
    return world.shard.describe("g").state


def joined_pair(world: GroupWorld, **asked: str) -> tuple[JoinResult, JoinResult]:
    """Two members of a generation in which nobody synced yet; the first leads."""
    waiters = [world.ask_join(), world.ask_join()]
    world.advance(0)
    first, second = (world.joined(waiter) for waiter in waiters)
    return first, second


def test_nobody_gets_an_assignment_before_it_is_replicated():
    world = GroupWorld(replicates=False)
    first, second = joined_pair(world)
    waiting = [world.ask_sync(second), world.ask_sync(first, {second.member_id: b"all"})]
    assert not any(waiter in world.answers for waiter in waiting)
    assert state(world) == "CompletingRebalance"
    assert world.shard.describe("g").members[1].assignment == b""
    world.replicate()
    results = [world.synced(waiter) for waiter in waiting]
    # Whom the leader did not name gets nothing.
    assert [(result.error, result.assignment) for result in results] == [
        (NONE, b"all"),
        (NONE, b""),
    ]
    assert {(result.protocol_type, result.protocol_name) for result in results} == {
        ("consumer", "range")
    }
    assert state(world) == "Stable"


def test_what_is_written_is_the_whole_generation():
    world = GroupWorld()
    first, second = world.stable_group(2)
    (record,) = world.log
    written = decode_group_metadata(record.value or b"")
    assert (written.protocol_type, written.protocol_name) == ("consumer", "range")
    assert (written.generation_id, written.leader_id) == (1, first.member_id)
    assert written.state_timestamp == EPOCH_MS
    assert [
        (m.member_id, m.client_id, m.client_host, m.session_timeout_ms, m.rebalance_timeout_ms)
        for m in written.members
    ] == [(member.member_id, "client", "/127.0.0.1", 10_000, 60_000) for member in (first, second)]
    assert [(m.subscription, m.assignment) for m in written.members] == [(b"r", b"0"), (b"r", b"1")]


@pytest.mark.parametrize(
    ("lost", "told"),
    [
        (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.COORDINATOR_NOT_AVAILABLE),
        (ErrorCode.NOT_ENOUGH_REPLICAS, ErrorCode.COORDINATOR_NOT_AVAILABLE),
        (ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND, ErrorCode.COORDINATOR_NOT_AVAILABLE),
        (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.NOT_COORDINATOR),
        (ErrorCode.KAFKA_STORAGE_ERROR, ErrorCode.NOT_COORDINATOR),
        (ErrorCode.REQUEST_TIMED_OUT, ErrorCode.REBALANCE_IN_PROGRESS),
        (ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.UNKNOWN_SERVER_ERROR),
        (ErrorCode.RECORD_LIST_TOO_LARGE, ErrorCode.UNKNOWN_SERVER_ERROR),
        (ErrorCode.INVALID_FETCH_SIZE, ErrorCode.UNKNOWN_SERVER_ERROR),
        (ErrorCode.CORRUPT_MESSAGE, ErrorCode.CORRUPT_MESSAGE),
    ],
)
def test_an_assignment_that_was_lost_begins_a_rebalance(lost: ErrorCode, told: ErrorCode):
    world = GroupWorld(replicates=False)
    first, second = joined_pair(world)
    waiting = [world.ask_sync(second), world.ask_sync(first, {second.member_id: b"all"})]
    world.lose(lost)
    for waiter in waiting:
        result = world.synced(waiter)
        assert (result.error, result.assignment, result.protocol_name) == (told, b"", None)
    assert state(world) == "PreparingRebalance"


def test_an_assignment_that_comes_too_late_is_not_told():
    world = GroupWorld(replicates=False)
    first, second = joined_pair(world)
    synced = world.ask_sync(first, {second.member_id: b"old"})
    rejoined = [world.ask_join(), world.ask_join(member_id=first.member_id)]
    assert world.synced(synced).error is ErrorCode.REBALANCE_IN_PROGRESS
    rejoined.append(world.ask_join(member_id=second.member_id))
    assert world.joined(rejoined[1]).generation_id == 2
    waiting = world.ask_sync(world.joined(rejoined[2]))
    world.replicate()
    assert (state(world), waiting in world.answers) == ("CompletingRebalance", False)
    world.ask_sync(world.joined(rejoined[1]), {second.member_id: b"new"})
    world.replicate()
    assert world.synced(waiting).assignment == b"new"


def test_only_the_first_assignment_of_a_generation_counts():
    world = GroupWorld(replicates=False)
    first, second = joined_pair(world)
    older = world.ask_sync(first, {second.member_id: b"one"})
    newer = world.ask_sync(first, {second.member_id: b"two"})
    assert world.synced(older).error is ErrorCode.REBALANCE_IN_PROGRESS
    assert len(world.writes) == 1
    world.replicate()
    assert world.synced(newer).error is NONE
    assert world.synced(world.ask_sync(second)).assignment == b"one"


def test_a_sync_is_judged_by_member_generation_and_protocol():
    world = GroupWorld()
    first, second = joined_pair(world)

    def error_of(**asked) -> ErrorCode:
        return world.synced(world.ask_sync(first, **asked)).error

    assert error_of(group_id="other") is ErrorCode.UNKNOWN_MEMBER_ID
    assert error_of(group_id="") is ErrorCode.INVALID_GROUP_ID
    assert error_of(generation=7) is ErrorCode.ILLEGAL_GENERATION
    assert error_of(instance="i") is ErrorCode.UNKNOWN_MEMBER_ID
    assert error_of(names=("connect", None)) is ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    assert error_of(names=("consumer", "sticky")) is ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    assert error_of(names=("consumer", "range")) is NONE
    unknown = first._replace(member_id="nobody")
    assert world.synced(world.ask_sync(unknown)).error is ErrorCode.UNKNOWN_MEMBER_ID
    world.ask_join()
    assert error_of() is ErrorCode.REBALANCE_IN_PROGRESS
    assert second.error is NONE


def test_who_does_not_sync_within_the_rebalance_time_out_is_dropped():
    world = GroupWorld()
    first, second = joined_pair(world)
    world.ask_sync(first, {})
    assert state(world) == "Stable"
    for _ in range(6):
        assert world.heartbeat(first) is world.heartbeat(second) is NONE
        world.advance(9_999)
    world.heartbeat(first)
    world.advance(6)
    assert world.heartbeat(second) is ErrorCode.UNKNOWN_MEMBER_ID
    assert world.heartbeat(first) is ErrorCode.REBALANCE_IN_PROGRESS


def test_when_all_have_synced_nobody_is_dropped():
    world = GroupWorld()
    first, second = world.stable_group(2)
    for _ in range(20):
        assert world.heartbeat(first) is world.heartbeat(second) is NONE
        world.advance(9_999)


def test_a_member_that_waits_for_its_assignment_does_not_expire():
    world = GroupWorld(replicates=False)
    first, second = joined_pair(world)
    waiter = world.ask_sync(second)
    for _ in range(4):
        world.heartbeat(first)
        world.advance(9_000)
    assert waiter not in world.answers
    world.ask_sync(first, {second.member_id: b"all"})
    world.replicate()
    assert world.synced(waiter).assignment == b"all"


# -- heartbeats ------------------------------------------------------------------------------------


def test_a_session_ends_without_heartbeats_and_no_sooner():
    world = GroupWorld()
    first, second = world.stable_group(2)
    world.advance(9_999)
    assert world.heartbeat(second) is NONE
    world.advance(1)
    assert world.heartbeat(second) is ErrorCode.REBALANCE_IN_PROGRESS
    assert world.heartbeat(first) is ErrorCode.UNKNOWN_MEMBER_ID
    rejoined = world.joined(world.ask_join(member_id=second.member_id))
    assert (rejoined.generation_id, rejoined.leader_id) == (2, second.member_id)


def test_heartbeats_are_judged_by_member_and_generation():
    world = GroupWorld()
    first, second = world.stable_group(instances=("i", "j"))
    assert world.heartbeat(first, "other") is ErrorCode.UNKNOWN_MEMBER_ID
    assert world.heartbeat(first, "") is ErrorCode.INVALID_GROUP_ID
    assert world.heartbeat(first._replace(generation_id=2)) is ErrorCode.ILLEGAL_GENERATION
    assert world.heartbeat(first._replace(member_id="x")) is ErrorCode.UNKNOWN_MEMBER_ID
    assert world.heartbeat(first, instance="j") is ErrorCode.FENCED_INSTANCE_ID
    assert world.heartbeat(first, instance="k") is ErrorCode.UNKNOWN_MEMBER_ID
    assert world.heartbeat(second, instance="j") is NONE


def test_a_heartbeat_while_the_assignment_is_awaited_is_fine():
    world = GroupWorld()
    _, second = joined_pair(world)
    assert world.heartbeat(second) is NONE


# -- leaving ---------------------------------------------------------------------------------------


def test_members_leave_by_id_or_by_instance():
    world = GroupWorld()
    members = world.stable_group(instances=("i", "j", None))
    left = world.leave(
        ("", "i"),
        (members[0].member_id, "j"),
        (members[2].member_id, None),
        ("", None),
        ("", "k"),
        ("x", "k"),
    )
    assert left.error is NONE
    assert left.members == (
        LeftMember("", "i", NONE),
        LeftMember(members[0].member_id, "j", ErrorCode.FENCED_INSTANCE_ID),
        LeftMember(members[2].member_id, None, NONE),
        LeftMember("", None, ErrorCode.UNKNOWN_MEMBER_ID),
        LeftMember("", "k", ErrorCode.UNKNOWN_MEMBER_ID),
        LeftMember("x", "k", ErrorCode.UNKNOWN_MEMBER_ID),
    )
    assert world.heartbeat(members[1], instance="j") is ErrorCode.REBALANCE_IN_PROGRESS
    assert world.leave(("x", None), group_id="other").members == (
        LeftMember("x", None, ErrorCode.UNKNOWN_MEMBER_ID),
    )
    assert world.leave(("x", None), group_id="").error is ErrorCode.INVALID_GROUP_ID


def test_a_member_that_leaves_takes_its_waiting_requests_along():
    world = GroupWorld()
    first, second = joined_pair(world)
    synced = world.ask_sync(second)
    world.leave((second.member_id, None))
    assert world.synced(synced).error is ErrorCode.UNKNOWN_MEMBER_ID
    rejoined = world.ask_join(member_id=first.member_id)
    assert world.joined(rejoined).generation_id == 2
    other = world.ask_join()
    world.ask_join(member_id=first.member_id)
    assert world.joined(other).generation_id == 3


def test_an_id_that_was_given_out_can_be_handed_back():
    world = GroupWorld()
    given = world.joined(world.ask_join(version=4)).member_id
    assert world.leave((given, None)).members[0].error is NONE
    assert world.shard.groups_count == 0
    assert world.shard.next_deadline_ms() == 600_000


def test_a_group_that_everybody_left_is_empty_and_written_so():
    world = GroupWorld(replicates=False)
    waiter = world.ask_join()
    world.advance(0)
    member = world.joined(waiter)
    world.ask_sync(member, {})
    world.replicate()
    world.leave((member.member_id, None))
    assert state(world) == "Empty"
    world.lose()
    assert state(world) == "Empty"
    world.leave((member.member_id, None))
    again = world.ask_join()
    world.advance(0)
    assert world.joined(again).generation_id == 3
    world.leave((world.joined(again).member_id, None))
    world.replicate()
    written = decode_group_metadata(world.log[-1].value or b"")
    assert (written.generation_id, written.members, written.leader_id) == (4, (), None)
    assert (written.protocol_type, written.protocol_name) == ("consumer", None)


def test_the_states_that_a_group_passes_are_told():
    world = GroupWorld(GroupSettings(initial_delay_ms=0))
    (member,) = world.stable_group(1)
    world.leave((member.member_id, None))
    assert all(isinstance(story, GroupMoved) for story in world.stories)
    assert [(story.generation_id, story.target.value) for story in world.stories] == [
        (0, "PreparingRebalance"),
        (1, "CompletingRebalance"),
        (1, "Stable"),
        (1, "PreparingRebalance"),
        (2, "Empty"),
    ]
