"""Where two logs part: the examples of KIP-101, KIP-279 and the recordings."""

import pytest

from barnabas.core.replication.divergence import (
    UNDEFINED_EPOCH_END,
    EpochEnd,
    FollowerPosition,
    OutOfRange,
    Truncation,
    after_leader_end,
    after_leader_start,
    diverges,
    is_out_of_range,
    truncation_point,
)
from tests.behaviours import behaviour


@behaviour("F19")
def test_recording_t_a_tail_of_three_is_cut_to_where_the_old_epoch_ended() -> None:
    """Old leader at 7 in epoch 0; the new one ended epoch 0 at 4."""
    own = EpochEnd(epoch=0, end_offset=4)
    position = FollowerPosition(fetch_offset=7, last_fetched_epoch=0)
    assert diverges(position, own)
    assert not is_out_of_range(position, own, log_start_offset=0)
    assert truncation_point(own, EpochEnd(0, 7), 7, 7) == Truncation(4, True)


@behaviour("F19")
def test_recording_t2_the_leader_never_had_the_followers_epoch() -> None:
    """Follower: epochs 1 from 0, 2 from 3, end 7; leader: 1 from 0, 4 from 3."""
    own = EpochEnd(epoch=1, end_offset=3)
    assert diverges(FollowerPosition(7, 2), own)
    assert truncation_point(own, EpochEnd(1, 3), 7, 7) == Truncation(3, True)


@behaviour("F19")
def test_an_epoch_unknown_to_the_follower_is_approached_step_by_step() -> None:
    """KIP-279: the follower's largest smaller epoch ends first, then it asks again."""
    leader = EpochEnd(epoch=3, end_offset=30)
    assert truncation_point(leader, EpochEnd(2, 20), 40, 40) == Truncation(20, False)


def test_equal_logs_do_not_diverge() -> None:
    assert not diverges(FollowerPosition(7, 2), EpochEnd(2, 7))
    assert not diverges(FollowerPosition(5, 1), EpochEnd(1, 9))


def test_a_smaller_epoch_or_an_earlier_end_diverges() -> None:
    assert diverges(FollowerPosition(5, 2), EpochEnd(1, 9))
    assert diverges(FollowerPosition(5, 2), EpochEnd(2, 4))


@pytest.mark.parametrize(
    ("position", "own", "start"),
    [
        (FollowerPosition(5, 2), UNDEFINED_EPOCH_END, 0),
        (FollowerPosition(5, 2), EpochEnd(2, -1), 0),
        (FollowerPosition(5, 2), EpochEnd(-1, 9), 0),
        (FollowerPosition(5, 2), EpochEnd(2, 9), 6),
    ],
)
def test_a_position_that_cannot_be_compared_is_out_of_range(
    position: FollowerPosition, own: EpochEnd, start: int
) -> None:
    assert is_out_of_range(position, own, start)


def test_a_follower_never_cuts_beyond_its_own_end() -> None:
    assert truncation_point(EpochEnd(1, 50), EpochEnd(1, 50), 8, 8) == Truncation(8, True)
    assert truncation_point(EpochEnd(1, 50), UNDEFINED_EPOCH_END, 8, 8) == Truncation(8, True)
    assert truncation_point(EpochEnd(3, 50), EpochEnd(2, 20), 8, 8) == Truncation(8, False)


def test_a_leader_that_knows_nothing_leaves_the_fetch_offset() -> None:
    assert truncation_point(UNDEFINED_EPOCH_END, EpochEnd(1, 5), 8, 6) == Truncation(6, True)


@behaviour("F13", "F14", "F17")
def test_worked_example_one_the_leaders_log_is_shorter() -> None:
    """Old leader at 1000, new leader at 800: cut to 800, and go on."""
    assert after_leader_end(800, 1000) == OutOfRange(800, truncate_to=800, restart_at=None)


@behaviour("F15", "F17")
def test_worked_example_two_the_follower_was_away_for_long() -> None:
    """The follower ends at 10, the leader holds [100, 800]: begin anew at 100."""
    assert after_leader_end(800, 10) is None
    assert after_leader_start(100, 10) == OutOfRange(100, truncate_to=None, restart_at=100)


@behaviour("F16", "F17")
def test_worked_example_three_the_leader_grew_past_the_follower_meanwhile() -> None:
    """800 became 1100 before the question: fetch on from 1000, cut nothing."""
    assert after_leader_end(1100, 1000) is None
    assert after_leader_end(1000, 1000) is None
    assert after_leader_start(1000, 1000) == OutOfRange(1000, truncate_to=None, restart_at=None)
    assert after_leader_start(0, 1000) == OutOfRange(1000, truncate_to=None, restart_at=None)
