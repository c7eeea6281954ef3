"""Committed offsets: who may commit, what is told, and when they are forgotten."""

import struct

import pytest

from barnabas.core.coordinator.group.offsets import GroupOffsets
from barnabas.core.coordinator.group.requests import (
    CommitResult,
    FetchedOffset,
    PartitionCommit,
    Protocol,
)
from barnabas.core.coordinator.group.settings import GroupSettings
from barnabas.formats.internal_topics.consumer_offsets import (
    CommittedOffset,
    decode_committed_offset,
)
from barnabas.model.error_codes import ErrorCode
from barnabas.model.ids import TopicPartition
from tests.behaviours import behaviour
from tests.worlds.group_world import EPOCH_MS, GroupWorld

NONE = ErrorCode.NONE
T0, T1, U0 = TopicPartition("t", 0), TopicPartition("t", 1), TopicPartition("u", 0)
WEEK_MS = 10_080 * 60_000
CHECK_MS = 600_000


def subscription(*topics: str) -> tuple[Protocol, ...]:
    """What a consumer of these tells of itself."""
    named = b"".join(struct.pack(">h", len(topic)) + topic.encode() for topic in topics)
    return (Protocol("range", struct.pack(">hi", 3, len(topics)) + named + struct.pack(">i", -1)),)


# -- who may commit --------------------------------------------------------------------------------


def test_anybody_commits_to_a_group_without_members():
    world = GroupWorld()
    assert world.commit({T0: 5}) is NONE
    assert world.commit({T0: 6}, group_id="") is NONE
    assert world.committed() == {T0: 5}
    described = world.shard.describe("g")
    assert (described.state, described.protocol_type) == ("Empty", "")


def test_members_commit_in_their_generation_only():
    world = GroupWorld()
    first, second = world.stable_group(instances=("i", "j"))
    nobody = first._replace(member_id="x")
    assert world.commit({T0: 5}, first) is NONE
    assert world.commit({T0: 5}, first._replace(generation_id=0)) is ErrorCode.ILLEGAL_GENERATION
    assert world.commit({T0: 5}, first._replace(generation_id=-1)) is ErrorCode.ILLEGAL_GENERATION
    assert world.commit({T0: 5}, nobody) is ErrorCode.UNKNOWN_MEMBER_ID
    assert world.commit({T0: 5}) is ErrorCode.UNKNOWN_MEMBER_ID
    assert world.commit({T0: 5}, first, group_id="other") is ErrorCode.ILLEGAL_GENERATION
    # An instance says who it is even before it has an id.
    nameless = world.ask_commit(
        {T0: 5}, nobody._replace(member_id="", generation_id=-1), instance="k"
    )
    assert world.answer(nameless, CommitResult).errors == {T0: ErrorCode.UNKNOWN_MEMBER_ID}
    nameless = world.ask_commit(
        {T0: 5}, first._replace(member_id="", generation_id=-1), instance="i"
    )
    assert world.answer(nameless, CommitResult).errors == {T0: ErrorCode.FENCED_INSTANCE_ID}
    fenced = world.ask_commit({T0: 5}, first, instance="j")
    assert world.answer(fenced, CommitResult).errors == {T0: ErrorCode.FENCED_INSTANCE_ID}
    assert world.commit({T0: 5}, second) is NONE


def test_generation_zero_is_that_of_a_member():
    world = GroupWorld()
    (member,) = world.stable_group(1)
    world.leave((member.member_id, None))
    first = member._replace(generation_id=0)
    assert world.commit({T0: 5}, first) is ErrorCode.UNKNOWN_MEMBER_ID
    assert world.commit({T0: 5}, first, group_id="other") is ErrorCode.ILLEGAL_GENERATION


def test_members_of_a_group_that_emptied_do_not_commit():
    world = GroupWorld()
    (member,) = world.stable_group(1)
    world.leave((member.member_id, None))
    assert world.commit({T0: 5}, member) is ErrorCode.UNKNOWN_MEMBER_ID
    assert world.commit({T0: 5}) is NONE


def test_during_a_rebalance_members_commit_until_the_next_generation_begins():
    world = GroupWorld()
    first, second = world.stable_group(2)
    rejoined = world.ask_join(member_id=first.member_id)
    assert world.commit({T0: 5}, second) is NONE
    world.ask_join(member_id=second.member_id)
    new = world.joined(rejoined)
    assert world.commit({T0: 6}, new) is ErrorCode.REBALANCE_IN_PROGRESS
    assert world.committed() == {T0: 5}


def test_a_commit_keeps_the_session():
    world = GroupWorld()
    (member,) = world.stable_group(1)
    for number in range(5):
        world.advance(9_000)
        assert world.commit({T0: number}, member) is NONE


# -- what is written and told ----------------------------------------------------------------------


def test_an_offset_is_told_once_it_is_replicated():
    world = GroupWorld(replicates=False)
    waiter = world.ask_commit({T0: 5, T1: 6}, metadata="m")
    assert waiter not in world.answers
    # Until then nothing is there to be seen.
    assert (world.committed(), world.shard.describe("g").state) == ({}, "Dead")
    assert world.shard.list_groups() == []
    fetched = world.shard.fetch_offsets("g", (T0, U0), require_stable=True).offsets
    assert fetched == {
        T0: FetchedOffset(error=ErrorCode.UNSTABLE_OFFSET_COMMIT),
        U0: FetchedOffset(),
    }
    assert world.shard.fetch_offsets("g", (T0,)).offsets == {T0: FetchedOffset()}
    world.replicate()
    assert world.answer(waiter, CommitResult).errors == {T0: NONE, T1: NONE}
    fetched = world.shard.fetch_offsets("g", (T0, U0), require_stable=True).offsets
    assert fetched == {T0: FetchedOffset(5, 5, "m"), U0: FetchedOffset()}
    assert world.committed() == {T0: 5, T1: 6}
    assert world.shard.fetch_offsets("none", (T0,)).offsets == {T0: FetchedOffset()}
    assert world.shard.fetch_offsets("none", None).offsets == {}


@pytest.mark.parametrize(
    ("lost", "told"),
    [
        (ErrorCode.NETWORK_EXCEPTION, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS),
        (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.COORDINATOR_NOT_AVAILABLE),
        (ErrorCode.NOT_ENOUGH_REPLICAS, ErrorCode.COORDINATOR_NOT_AVAILABLE),
        (ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND, ErrorCode.COORDINATOR_NOT_AVAILABLE),
        (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.NOT_COORDINATOR),
        (ErrorCode.KAFKA_STORAGE_ERROR, ErrorCode.NOT_COORDINATOR),
        (ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.INVALID_COMMIT_OFFSET_SIZE),
        (ErrorCode.RECORD_LIST_TOO_LARGE, ErrorCode.INVALID_COMMIT_OFFSET_SIZE),
        (ErrorCode.INVALID_FETCH_SIZE, ErrorCode.INVALID_COMMIT_OFFSET_SIZE),
        (ErrorCode.REQUEST_TIMED_OUT, ErrorCode.REQUEST_TIMED_OUT),
    ],
)
def test_a_commit_that_was_lost_leaves_the_offset_as_it_was(lost: ErrorCode, told: ErrorCode):
    world = GroupWorld()
    world.commit({T0: 5})
    world.replicates = False
    waiter = world.ask_commit({T0: 9})
    world.lose(lost)
    assert world.answer(waiter, CommitResult).errors == {T0: told}
    assert world.committed() == {T0: 5}
    assert world.shard.fetch_offsets("g", (T0,), require_stable=True).offsets[T0].offset == 5


def test_a_newer_commit_that_is_lost_at_once_does_not_take_an_older_one_along():
    world = GroupWorld(replicates=False)
    older, newer = world.ask_commit({T0: 5}), world.ask_commit({T0: 6})
    lost = world.writes.pop()
    world.take(lost.then(ErrorCode.NOT_ENOUGH_REPLICAS, 0))
    world.replicate()
    assert world.answer(older, CommitResult).errors == {T0: NONE}
    assert world.answer(newer, CommitResult).errors == {T0: ErrorCode.COORDINATOR_NOT_AVAILABLE}
    assert world.committed() == {T0: 5}


def test_offsets_are_stable_when_the_last_of_several_commits_is_replicated():
    world = GroupWorld(replicates=False)
    for offset in (5, 6, 7):
        world.ask_commit({T0: offset})
    for _ in range(2):
        world.replicate(1)
        fetched = world.shard.fetch_offsets("g", None, require_stable=True).offsets
        assert fetched[T0].error is ErrorCode.UNSTABLE_OFFSET_COMMIT
    world.replicate(1)
    fetched = world.shard.fetch_offsets("g", None, require_stable=True).offsets
    assert fetched == {T0: FetchedOffset(7, 5, "")}


def test_metadata_that_is_too_long_is_refused_for_its_partition_alone():
    world = GroupWorld(GroupSettings(offset_metadata_length_max=4))
    # Java counts two for what is outside the first plane.
    assert world.commit({T0: 5}, metadata="\U0001f600\U0001f600") is NONE
    assert world.commit({T0: 6}, metadata="\U0001f600\U0001f600a") is (
        ErrorCode.OFFSET_METADATA_TOO_LARGE
    )
    assert len(world.log) == 1
    asked = (PartitionCommit(T0, 7, metadata="12345"), PartitionCommit(T1, 8, metadata=None))
    waiter = world.waiter()
    commit = world.commit_asked(asked)
    world.take(world.shard.commit_offsets(commit, waiter, 0))
    assert world.answer(waiter, CommitResult).errors == {
        T0: ErrorCode.OFFSET_METADATA_TOO_LARGE,
        T1: NONE,
    }
    assert world.committed() == {T0: 5, T1: 8}


def test_of_a_partition_that_is_named_twice_the_last_word_counts():
    world = GroupWorld()
    waiter = world.waiter()
    commit = world.commit_asked((PartitionCommit(T0, 7), PartitionCommit(T0, 8)))
    world.take(world.shard.commit_offsets(commit, waiter, 0))
    assert (world.committed(), len(world.log)) == ({T0: 8}, 1)
    too_long = PartitionCommit(T0, 10, metadata="x" * 4_097)
    waiter = world.waiter()
    commit = world.commit_asked((PartitionCommit(T0, 9), too_long))
    world.take(world.shard.commit_offsets(commit, waiter, 0))
    assert world.answer(waiter, CommitResult).errors == {T0: ErrorCode.OFFSET_METADATA_TOO_LARGE}
    assert world.committed() == {T0: 8}


def test_a_group_has_a_bounded_number_of_offsets():
    world = GroupWorld(GroupSettings(offsets_max=2))
    full = ErrorCode.INVALID_COMMIT_OFFSET_SIZE
    assert world.commit({T0: 1}) is NONE
    waiter = world.ask_commit({T1: 1, U0: 1})
    assert world.answer(waiter, CommitResult).errors == {T1: NONE, U0: full}
    assert world.commit({T0: 2, T1: 2}) is NONE
    assert world.committed() == {T0: 2, T1: 2}


def test_a_shard_has_a_bounded_number_of_groups():
    world = GroupWorld(GroupSettings(groups_max=2))
    assert world.commit({T0: 1}) is world.commit({T0: 1}, group_id="h") is NONE
    assert world.commit({T0: 1}, group_id="k") is ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert world.joined(world.ask_join("k")).error is ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert world.commit({T0: 2}) is NONE


def test_commits_carry_the_time_of_day_and_their_own_expiry():
    world = GroupWorld()
    world.advance(10)
    world.commit({T0: 5})
    world.commit({T0: 5}, retention_ms=1_000)
    world.commit({T0: 5}, retention_ms=2**63 - 1)
    world.ask_commit({T0: 5}, commit_timestamp=77)
    now = EPOCH_MS + 10
    assert [decode_committed_offset(record.value or b"") for record in world.log] == [
        CommittedOffset(5, 5, "", now),
        CommittedOffset(5, -1, "", now, now + 1_000),
        CommittedOffset(5, -1, "", now, 2**63 - 1),
        CommittedOffset(5, 5, "", 77),
    ]


def test_an_older_write_never_undoes_a_newer_one():
    offsets = GroupOffsets()
    old, new = CommittedOffset(1, -1, "", 0), CommittedOffset(2, -1, "", 0)
    first, second = offsets.begin_write(), offsets.begin_write()
    offsets.note_pending([T0, T1], first)
    offsets.note_pending([T0], second)
    offsets.apply({T0: new}, second)
    offsets.apply({T0: old, T1: old}, first)
    assert offsets.committed == {T0: new, T1: old}
    assert not offsets.has_pending


def test_tombstones_remove_what_was_written_before_them_and_nothing_else():
    offsets = GroupOffsets()
    value = CommittedOffset(1, -1, "", 0)
    before, tombstones, after = (offsets.begin_write() for _ in range(3))
    offsets.note_pending([T0, T1], before)
    offsets.note_pending([T0], after)
    offsets.apply({T0: value}, after)
    offsets.remove([T0, T1], tombstones)
    # Of the write before them only the answer is late.
    offsets.apply({T0: value, T1: value}, before)
    assert offsets.committed == {T0: value}
    assert not offsets.has_pending
    offsets.remove([T0], offsets.begin_write())
    assert (offsets.committed, offsets.count) == ({}, 0)


# -- removal ---------------------------------------------------------------------------------------


def test_offsets_of_a_group_without_members_can_be_deleted_and_with_the_last_the_group():
    world = GroupWorld()
    world.commit({T0: 5, T1: 6})
    deleted = world.delete_offsets(T0, U0)
    assert (deleted.error, deleted.errors) == (NONE, {T0: NONE, U0: NONE})
    assert world.committed() == {T1: 6}
    assert world.delete_offsets(T1).errors == {T1: NONE}
    assert world.shard.groups_count == 0
    assert world.delete_offsets(T1).error is ErrorCode.GROUP_ID_NOT_FOUND
    assert world.delete_offsets(T1, group_id="").error is ErrorCode.INVALID_GROUP_ID
    world.reload()
    assert world.shard.groups_count == 0


def test_offsets_of_a_topic_that_a_member_reads_stay():
    world = GroupWorld()
    (member,) = world.stable_group(1, protocols=subscription("t"))
    world.commit({T0: 5, U0: 6}, member)
    deleted = world.delete_offsets(T0, U0)
    assert deleted.errors == {T0: ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC, U0: NONE}
    assert world.committed() == {T0: 5}
    world.reload()
    assert world.delete_offsets(T0, U0).errors == deleted.errors


def test_what_a_member_reads_without_telling_stays_too():
    world = GroupWorld()
    (member,) = world.stable_group(1)
    world.commit({T0: 5}, member)
    assert world.delete_offsets(T0).errors == {T0: ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC}


def test_groups_of_another_kind_must_be_empty():
    world = GroupWorld()
    world.ask_join(protocol_type="connect")
    assert world.delete_offsets(T0).error is ErrorCode.NON_EMPTY_GROUP


def test_a_deletion_holds_when_its_tombstones_are_replicated_and_only_then():
    world = GroupWorld()
    world.commit({T0: 5})
    world.replicates = False
    waiter = world.waiter()
    world.take(world.shard.delete_offsets("g", (T0,), waiter, 0))
    assert (waiter in world.answers, world.committed()) == (False, {T0: 5})
    # Whoever comes meanwhile asks again, and is served by a new group.
    assert world.commit({T0: 6}) is ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert world.joined(world.ask_join()).error is ErrorCode.COORDINATOR_NOT_AVAILABLE
    world.lose(ErrorCode.NOT_ENOUGH_REPLICAS)
    assert world.committed() == {T0: 5}
    world.replicates = True
    assert world.commit({T0: 6}) is NONE


@behaviour("D16")
def test_a_deleted_topic_takes_the_offsets_of_all_groups_along():
    world = GroupWorld()
    (member,) = world.stable_group(1)
    world.commit({T0: 5, U0: 6}, member)
    world.commit({T0: 7, T1: 8}, group_id="h")
    world.replicates = False
    world.ask_commit({T1: 9}, member)
    world.take(world.shard.delete_topic_offsets([T0, T1], 0))
    world.replicate()
    assert world.committed() == {U0: 6}
    assert world.shard.describe("h").state == "Dead"
    assert world.shard.describe("g").state == "Stable"
    world.reload()
    assert world.committed() == {U0: 6}
    assert world.shard.describe("h").state == "Dead"


def test_many_tombstones_are_written_in_several_batches():
    world = GroupWorld(GroupSettings(message_size_max=400))
    many = {TopicPartition("t", number): 1 for number in range(20)}
    world.commit(many)
    world.replicates = False
    waiter = world.waiter()
    world.take(world.shard.delete_groups(["g"], waiter, 0))
    batches = 0
    while world.writes:
        assert len(world.writes) == 1 and len(world.writes[0].records) <= 5
        world.replicate(1)
        batches += 1
    assert batches >= 4
    assert waiter in world.answers
    world.reload()
    assert world.shard.groups_count == 0


# -- age -------------------------------------------------------------------------------------------


def expired_after(world: GroupWorld, milliseconds: int) -> bool:
    """Whether the next look after so long finds nothing of T0 any more."""
    world.advance(milliseconds)
    return T0 not in world.committed()


def test_offsets_outside_any_protocol_expire_by_their_age():
    world = GroupWorld()
    world.commit({T0: 5})
    world.advance(CHECK_MS)
    world.commit({T1: 5})
    assert not expired_after(world, WEEK_MS - CHECK_MS - 1)
    assert expired_after(world, 1)
    assert world.committed() == {T1: 5}
    world.advance(CHECK_MS)
    assert world.shard.groups_count == 0
    world.reload()
    assert world.shard.groups_count == 0


def test_offsets_of_a_group_expire_when_it_was_empty_for_long_enough():
    world = GroupWorld()
    (member,) = world.stable_group(1)
    world.commit({T0: 5}, member)
    for _ in range(100):
        world.heartbeat(member)
        world.advance(9_000)
    emptied_ms = world.now_ms
    world.leave((member.member_id, None))
    assert not expired_after(world, WEEK_MS - 1)
    assert expired_after(world, CHECK_MS)
    assert emptied_ms > 0 and world.shard.groups_count == 0
    world.reload()
    assert world.shard.groups_count == 0


@pytest.mark.parametrize(("topic", "expires"), [("t", False), ("u", True)])
def test_a_live_consumer_group_keeps_the_offsets_of_what_it_reads(topic: str, expires: bool):
    world = GroupWorld(GroupSettings(initial_delay_ms=0, offsets_retention_ms=1_000_000))
    (member,) = world.stable_group(1, protocols=subscription(topic))
    world.commit({T0: 5}, member)
    for _ in range(200):
        assert world.heartbeat(member) is NONE
        world.advance(9_000)
    assert (T0 not in world.committed()) == expires
    assert world.shard.describe("g").state == "Stable"


def test_a_live_group_that_does_not_tell_what_it_reads_keeps_all():
    world = GroupWorld(GroupSettings(initial_delay_ms=0, offsets_retention_ms=1_000))
    (member,) = world.stable_group(1)
    world.commit({T0: 5}, member)
    for _ in range(200):
        world.heartbeat(member)
        world.advance(9_000)
    assert world.committed() == {T0: 5}


def test_an_expiry_of_its_own_beats_the_retention():
    world = GroupWorld(GroupSettings(offsets_retention_ms=1_000))
    world.commit({T0: 5}, retention_ms=2 * CHECK_MS)
    assert not expired_after(world, CHECK_MS)
    assert expired_after(world, CHECK_MS)


def test_an_offset_that_is_being_committed_does_not_expire():
    world = GroupWorld(GroupSettings(offsets_retention_ms=1_000))
    world.commit({T0: 5})
    world.replicates = False
    world.ask_commit({T0: 6})
    world.advance(CHECK_MS)
    assert len(world.writes) == 1
    world.replicate()
    assert world.committed() == {T0: 6}
