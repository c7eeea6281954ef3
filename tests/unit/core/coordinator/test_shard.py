"""A shard from loading to resignation, and what tools are shown of its groups."""

import random

from barnabas.core.coordinator.group.group_states import GroupState
from barnabas.core.coordinator.group.requests import (
    CommitAsked,
    CommitResult,
    DescribedMember,
    GroupDescription,
    GroupListing,
    HeartbeatAsked,
    JoinAsked,
    LeaveAsked,
    PartitionCommit,
    SyncAsked,
)
from barnabas.core.coordinator.group.settings import GroupSettings
from barnabas.core.coordinator.outcome import CoordinatorRecord, Outcome
from barnabas.core.coordinator.shard import GroupShard
from barnabas.formats.internal_topics.consumer_offsets import (
    CommittedOffset,
    GroupKey,
    GroupMetadata,
    MemberMetadata,
    OffsetKey,
    encode_committed_offset,
    encode_group_key,
    encode_group_metadata,
    encode_offset_key,
)
from barnabas.model.error_codes import ErrorCode
from barnabas.model.ids import TopicPartition
from tests.worlds.group_world import RANGE, GroupWorld

NONE = ErrorCode.NONE
T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)
JOIN = JoinAsked("g", "", None, "c", "/h", 10_000, 60_000, "consumer", RANGE, False, False)
SYNC = SyncAsked("g", 1, "m", None, None, None, {})
HEARTBEAT = HeartbeatAsked("g", 1, "m", None)
COMMIT = CommitAsked("g", -1, "", None, (PartitionCommit(T0, 5),))


def new_shard() -> GroupShard:
    return GroupShard(GroupSettings(), random.Random(1), lambda: 0)


def error_of(outcome: Outcome) -> ErrorCode:
    """The error of the one answer."""
    ((_, result),) = outcome.answers
    if isinstance(result, CommitResult):
        (error,) = result.errors.values()
        return error
    assert hasattr(result, "error")
    return result.error


def errors_of(shard: GroupShard) -> dict[str, ErrorCode]:
    """What each question is answered at once."""
    ((_, deleted),) = shard.delete_groups(["g"], "w", 0).answers
    assert hasattr(deleted, "errors")
    return {
        "join": error_of(shard.join(JOIN, "w", 0)),
        "sync": error_of(shard.sync(SYNC, "w", 0)),
        "heartbeat": shard.heartbeat(HEARTBEAT, 0),
        "leave": error_of(shard.leave(LeaveAsked("g", ()), "w", 0)),
        "commit": error_of(shard.commit_offsets(COMMIT, "w", 0)),
        "fetch": shard.fetch_offsets("g", (T0,)).error,
        "delete offsets": error_of(shard.delete_offsets("g", (T0,), "w", 0)),
        "delete groups": deleted.errors["g"],
        "describe": shard.describe("g").error,
    }


def offset_record(group_id: str, partition: TopicPartition, offset: int) -> CoordinatorRecord:
    return CoordinatorRecord(
        encode_offset_key(OffsetKey(group_id, partition)),
        encode_committed_offset(CommittedOffset(offset, -1, "", 1)),
    )


def member(member_id: str, instance: str | None = None) -> MemberMetadata:
    return MemberMetadata(member_id, instance, "c", "/h", 60_000, 10_000, b"r", b"own")


def group_record(group_id: str, *members: MemberMetadata, generation: int = 4) -> CoordinatorRecord:
    metadata = GroupMetadata("consumer", generation, "range", "a", 1, members)
    return CoordinatorRecord(encode_group_key(GroupKey(group_id)), encode_group_metadata(metadata))


# -- life ------------------------------------------------------------------------------------------


def test_while_it_loads_members_stay_and_everybody_else_comes_again():
    shard = new_shard()
    errors = errors_of(shard)
    # They join again, or just go on.
    assert errors.pop("sync") is ErrorCode.REBALANCE_IN_PROGRESS
    assert errors.pop("heartbeat") is NONE
    assert set(errors.values()) == {ErrorCode.COORDINATOR_LOAD_IN_PROGRESS}
    assert shard.is_loading
    shard.finish_loading(0)
    assert not shard.is_loading
    assert error_of(shard.sync(SYNC, "w", 0)) is ErrorCode.UNKNOWN_MEMBER_ID


def test_after_resignation_everybody_is_sent_elsewhere():
    shard = new_shard()
    shard.finish_loading(0)
    shard.resign(0)
    assert set(errors_of(shard).values()) == {ErrorCode.NOT_COORDINATOR}
    assert shard.next_deadline_ms() is None
    assert shard.list_groups() == []


def test_who_waits_at_a_resignation_is_sent_elsewhere():
    world = GroupWorld(replicates=False)
    waiters = [world.ask_join(), world.ask_join()]
    world.advance(0)
    joined = [world.joined(waiter) for waiter in waiters]
    syncing = world.ask_sync(joined[1])
    storing = world.ask_sync(joined[0], {})
    joining = world.ask_join("h")
    committing = world.ask_commit({T0: 5}, group_id="k")
    world.take(world.shard.resign(world.now_ms))
    assert world.synced(syncing).error is ErrorCode.NOT_COORDINATOR
    assert world.synced(storing).error is ErrorCode.NOT_COORDINATOR
    assert world.joined(joining).error is ErrorCode.NOT_COORDINATOR
    # What was on its way is answered by what becomes of it.
    assert committing not in world.answers
    world.lose(ErrorCode.NOT_LEADER_OR_FOLLOWER)
    world.lose(ErrorCode.NOT_LEADER_OR_FOLLOWER)
    result = world.answer(committing, CommitResult)
    assert result.errors == {T0: ErrorCode.NOT_COORDINATOR}


def test_a_replacement_and_a_deletion_that_end_after_the_resignation_are_answered():
    world = GroupWorld()
    world.stable_group(instances=("i",))
    world.commit({T0: 5}, group_id="h")
    world.replicates = False
    replacing = world.ask_join(instance="i")
    deleting = world.waiter()
    world.take(world.shard.delete_groups(["h"], deleting, 0))
    world.take(world.shard.resign(0))
    world.replicate()
    assert world.joined(replacing).error is ErrorCode.NOT_COORDINATOR
    assert deleting in world.answers


# -- loading ---------------------------------------------------------------------------------------


def test_the_last_record_of_a_key_counts_and_one_without_a_value_removes():
    shard = new_shard()
    shard.load([offset_record("g", T0, 1), offset_record("g", T1, 2), group_record("g")])
    shard.load([offset_record("g", T0, 3), offset_record("h", T0, 4), group_record("k")])
    shard.load(
        [
            CoordinatorRecord(encode_offset_key(OffsetKey("g", T1)), None),
            CoordinatorRecord(encode_offset_key(OffsetKey("none", T1)), None),
            CoordinatorRecord(encode_group_key(GroupKey("k")), None),
            CoordinatorRecord(encode_group_key(GroupKey("none")), None),
        ]
    )
    shard.finish_loading(0)
    assert {g.group_id: g.state for g in shard.list_groups()} == {
        "g": GroupState.EMPTY,
        "h": GroupState.EMPTY,
    }
    offsets = shard.fetch_offsets("g", None).offsets
    assert {partition: value.offset for partition, value in offsets.items()} == {T0: 3}
    assert shard.offsets_count == 2
    assert shard.describe("g").protocol_type == "consumer"
    assert shard.describe("h").protocol_type == ""


def test_offsets_of_transactions_count_from_their_commit_on():
    shard = new_shard()
    shard.load([offset_record("g", T0, 1)])
    shard.load([offset_record("g", T0, 2), offset_record("g", T1, 2)], producer_id=7)
    shard.load([offset_record("h", T0, 3)], producer_id=8)
    shard.load([offset_record("k", T0, 4)], producer_id=9)
    shard.load_marker(8, is_commit=False)
    shard.load_marker(7, is_commit=True)
    shard.load_marker(6, is_commit=True)
    shard.finish_loading(0)
    offsets = shard.fetch_offsets("g", None).offsets
    assert {partition: value.offset for partition, value in offsets.items()} == {T0: 2, T1: 2}
    assert shard.groups_count == 1


def test_records_that_cannot_be_read_are_left_out_and_counted():
    shard = new_shard()
    key = encode_group_key(GroupKey("g"))
    shard.load(
        [
            CoordinatorRecord(b"\x00\x03new", b"..."),
            CoordinatorRecord(b"", b""),
            CoordinatorRecord(key, b"\x00\x09"),
            group_record("h", member("a"), member("a")),
            group_record("k", member("a", "i"), member("b", "i")),
            offset_record("g", T0, 1),
        ]
    )
    shard.finish_loading(0)
    assert shard.ignored_records == (5, "a key of version 3")
    assert [group.group_id for group in shard.list_groups()] == ["g"]


def test_members_that_were_loaded_have_a_whole_session():
    shard = new_shard()
    shard.load([group_record("g", member("a"), member("b"))])
    shard.finish_loading(1_000)
    assert shard.next_deadline_ms() == 11_000
    assert shard.heartbeat(HeartbeatAsked("g", 4, "b", None), 10_999) is NONE
    assert [story.target for story in shard.tick(11_000).stories] == [
        GroupState.PREPARING_REBALANCE
    ]
    assert [m.member_id for m in shard.describe("g").members] == ["b"]


def test_a_loaded_group_that_is_too_large_rebalances():
    world = GroupWorld()
    world.stable_group(3)
    world.settings = GroupSettings(members_max=2)
    world.reload()
    assert world.shard.describe("g").state == "PreparingRebalance"


def test_who_led_leads_on():
    shard = new_shard()
    shard.load([group_record("g", member("b"), member("a"))])
    shard.finish_loading(0)
    assert error_of(shard.join(JOIN._replace(member_id="b"), "w", 0)) is NONE
    assert shard.join(JOIN._replace(member_id="a"), "w", 0).answers == []


def test_a_leader_that_is_not_a_member_leads_no_more():
    shard = new_shard()
    shard.load([group_record("g", member("x"), member("y"))])
    shard.finish_loading(0)
    join = JOIN._replace(member_id="x")
    outcome = shard.join(join, "w", 0)
    assert (outcome.answers, shard.describe("g").state) == ([], "PreparingRebalance")


# -- what tools see --------------------------------------------------------------------------------


def test_groups_are_described_with_their_members_and_while_it_stands_their_assignment():
    world = GroupWorld()
    (first,) = world.stable_group(instances=("i",))
    shown = DescribedMember(first.member_id, "i", "client", "/127.0.0.1", b"r", b"0")
    assert world.shard.describe("g") == GroupDescription(
        NONE, "g", "Stable", "consumer", "range", (shown,)
    )
    world.ask_join()
    described = world.shard.describe("g")
    assert (described.state, described.protocol_name) == ("PreparingRebalance", "")
    assert described.members[0] == shown._replace(metadata=b"", assignment=b"")
    assert world.shard.describe("none") == GroupDescription(NONE, "none", "Dead")
    assert world.shard.describe("").error is NONE


def test_groups_are_listed_by_state_and_type_whatever_the_case():
    world = GroupWorld()
    world.stable_group(1)
    world.commit({T0: 5}, group_id="h")
    stable = GroupListing("g", "consumer", GroupState.STABLE)
    empty = GroupListing("h", "", GroupState.EMPTY)
    listed = world.shard.list_groups
    assert listed() == [stable, empty]
    assert stable.group_type == "classic"
    assert listed(frozenset({"STABLE"})) == [stable]
    assert listed(frozenset({"empty", "Dead"})) == [empty]
    assert listed(frozenset({"nonsense"})) == []
    assert listed(frozenset(), frozenset({"Classic"})) == [stable, empty]
    assert listed(frozenset({"Empty"}), frozenset({"consumer", "classic"})) == [empty]
    assert listed(frozenset(), frozenset({"consumer"})) == []


def test_groups_without_members_can_be_deleted():
    world = GroupWorld()
    (joined,) = world.stable_group(1)
    world.commit({T0: 5}, group_id="h")
    assert world.delete_groups("g", "h", "none", "") == {
        "g": ErrorCode.NON_EMPTY_GROUP,
        "h": NONE,
        "none": ErrorCode.GROUP_ID_NOT_FOUND,
        "": ErrorCode.GROUP_ID_NOT_FOUND,
    }
    world.leave((joined.member_id, None))
    assert world.delete_groups("g") == {"g": NONE}
    assert world.shard.groups_count == 0
    world.reload()
    assert world.shard.groups_count == 0
    # Another group of that name begins from nothing.
    waiter = world.ask_join()
    world.advance(0)
    assert world.joined(waiter).generation_id == 1


def test_a_group_with_ids_given_out_can_be_deleted():
    world = GroupWorld()
    given = world.joined(world.ask_join(version=4)).member_id
    assert world.delete_groups("g") == {"g": NONE}
    assert world.joined(world.ask_join(member_id=given)).error is ErrorCode.UNKNOWN_MEMBER_ID
    world.advance(20_000)


def test_a_deletion_is_answered_when_the_last_group_is_gone():
    world = GroupWorld()
    world.commit({T0: 5}, group_id="g")
    world.commit({T0: 5}, group_id="h")
    world.replicates = False
    waiter, second = world.waiter(), world.waiter()
    world.take(world.shard.delete_groups(["g", "h", "none"], waiter, 0))
    world.take(world.shard.delete_groups(["g"], second, 0))
    assert world.answers[second] == ({"g": ErrorCode.COORDINATOR_NOT_AVAILABLE},)
    world.lose(ErrorCode.NOT_ENOUGH_REPLICAS)
    assert waiter not in world.answers
    world.replicate()
    assert world.answers[waiter] == (
        {
            "g": ErrorCode.COORDINATOR_NOT_AVAILABLE,
            "h": NONE,
            "none": ErrorCode.GROUP_ID_NOT_FOUND,
        },
    )
    assert [group.group_id for group in world.shard.list_groups()] == ["g"]
