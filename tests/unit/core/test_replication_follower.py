"""The follower's side of a partition: every arrow of its table, and what errors do."""

import pytest

from barnabas.core.replication.divergence import (
    EpochEnd,
    FollowerPosition,
    OutOfRange,
    Truncation,
    after_leader_end,
    after_leader_start,
)
from barnabas.core.replication.follower import PartitionFollower
from barnabas.core.replication.follower_states import FOLLOWER, FollowerState
from barnabas.model.epochs import LeaderEpoch
from barnabas.model.error_codes import ErrorCode
from barnabas.model.ids import NO_TOPIC_ID, BrokerId, TopicId
from barnabas.model.invariant import InvariantViolated
from tests.behaviours import behaviour

TOPIC_ID = TopicId(b"\x01" * 16)


def following(
    *, log_end_offset: int = 7, high_watermark: int = 4, latest_epoch: int = 0
) -> PartitionFollower:
    follower = PartitionFollower(BrokerId(2), LeaderEpoch(3), TOPIC_ID)
    follower.start(log_end_offset, high_watermark, latest_epoch)
    return follower


@behaviour("L21")
def test_a_log_with_epochs_starts_to_fetch_at_its_end() -> None:
    follower = following()
    assert follower.state is FollowerState.FETCHING
    assert follower.poll_fetch(0) == FollowerPosition(7, 0)


@behaviour("L21")
def test_a_log_without_epochs_is_cut_to_its_watermark_first() -> None:
    follower = following(latest_epoch=-1)
    assert follower.state is FollowerState.TRUNCATING
    assert follower.fetch_offset == 4
    assert follower.poll_fetch(0) is None
    follower.note_truncated(4, -1)
    assert follower.poll_fetch(0) == FollowerPosition(4, -1)


@behaviour("F9")
def test_what_was_appended_moves_offset_epoch_and_lag() -> None:
    follower = following()
    follower.note_fetched(next_offset=10, last_epoch=2, leader_high_watermark=15)
    assert (follower.fetch_offset, follower.last_fetched_epoch, follower.lag) == (10, 2, 5)
    follower.note_fetched(next_offset=10, last_epoch=-1, leader_high_watermark=8)
    assert (follower.fetch_offset, follower.last_fetched_epoch, follower.lag) == (10, 2, 0)


@behaviour("F8")
def test_only_an_answer_to_what_is_wanted_now_counts() -> None:
    follower = following()
    assert follower.is_answer_current(7, 3)
    assert not follower.is_answer_current(6, 3)
    assert not follower.is_answer_current(7, 2)
    follower.note_delayed(100)
    assert not follower.is_answer_current(7, 3)


@behaviour("F19")
def test_a_diverging_epoch_crosses_truncating_and_comes_back() -> None:
    follower = following()
    assert follower.note_diverging(EpochEnd(0, 4), EpochEnd(0, 7), 7) == Truncation(4, True)
    assert follower.poll_fetch(0) is None
    follower.note_truncated(4, 0)
    assert follower.crossings == [
        (FollowerState.STOPPED, FollowerState.FETCHING),
        (FollowerState.FETCHING, FollowerState.TRUNCATING),
        (FollowerState.TRUNCATING, FollowerState.FETCHING),
    ]


@behaviour("F20")
@pytest.mark.parametrize(
    "error",
    [
        ErrorCode.UNKNOWN_LEADER_EPOCH,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.INCONSISTENT_TOPIC_ID,
        ErrorCode.KAFKA_STORAGE_ERROR,
    ],
)
def test_errors_that_pass_delay_the_partition(error: ErrorCode) -> None:
    follower = following()
    follower.note_error(error, asked_epoch=3, until_ms=1000)
    assert follower.poll_fetch(999) is None
    assert follower.poll_fetch(1000) == FollowerPosition(7, 0)


@behaviour("F20")
def test_fenced_in_our_own_epoch_waits_for_the_controller() -> None:
    follower = following()
    follower.note_error(ErrorCode.FENCED_LEADER_EPOCH, asked_epoch=3, until_ms=1000)
    assert follower.state is FollowerState.FAILED
    assert follower.poll_fetch(10**9) is None


@behaviour("F20")
def test_fenced_in_an_epoch_that_is_not_ours_any_more_is_tried_again() -> None:
    follower = following()
    follower.note_error(ErrorCode.FENCED_LEADER_EPOCH, asked_epoch=2, until_ms=1000)
    assert follower.state is FollowerState.DELAYED


@behaviour("F13", "F14")
def test_a_leader_with_a_shorter_log_makes_the_follower_cut() -> None:
    follower = following(log_end_offset=1000)
    follower.note_error(ErrorCode.OFFSET_OUT_OF_RANGE, asked_epoch=3, until_ms=1000)
    assert follower.state is FollowerState.LOCATING
    decision = after_leader_end(800, 1000)
    assert decision is not None
    follower.note_located(decision, 800, 0)
    assert follower.state is FollowerState.TRUNCATING
    assert follower.lag == 0
    follower.note_truncated(800, 0)
    assert follower.poll_fetch(0) == FollowerPosition(800, 0)


@behaviour("F15")
def test_a_leader_whose_log_begins_later_makes_the_follower_begin_anew() -> None:
    follower = following(log_end_offset=10)
    follower.note_out_of_range()
    follower.note_located(after_leader_start(100, 10), 800, 0)
    assert follower.state is FollowerState.TRUNCATING
    assert (follower.fetch_offset, follower.lag) == (100, 700)


@behaviour("F16")
def test_a_leader_that_grew_meanwhile_is_fetched_from_again_without_a_cut() -> None:
    follower = following(log_end_offset=1000)
    follower.note_out_of_range()
    follower.note_located(OutOfRange(1010, None, None), 1100, 2)
    assert follower.state is FollowerState.FETCHING
    assert (follower.fetch_offset, follower.lag) == (1010, 90)
    assert follower.last_fetched_epoch == 2


def test_a_crossing_that_is_not_in_the_table_is_a_bug() -> None:
    follower = following(latest_epoch=-1)
    with pytest.raises(InvariantViolated):
        follower.note_delayed(5)


def test_every_state_can_be_left_by_the_controller() -> None:
    for state in FollowerState:
        if state is not FollowerState.STOPPED:
            assert FOLLOWER.allows(state, FollowerState.STOPPED)


def test_a_topic_id_can_be_withdrawn() -> None:
    follower = following()
    assert follower.has_topic_id
    follower.topic_id = NO_TOPIC_ID
    assert not follower.has_topic_id
