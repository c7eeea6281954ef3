"""The leader's side of a partition: watermark, isr changes, epochs."""

import pytest

from barnabas.core.replication.isr import CommittedIsr, IsrChange, PendingExpansion, PendingShrink
from barnabas.core.replication.leader import NEVER_MS, FollowerProgress, PartitionLeader
from barnabas.model.epochs import LeaderEpoch, PartitionEpoch
from barnabas.model.ids import BrokerId
from barnabas.model.invariant import InvariantViolated
from tests.behaviours import behaviour

LAG_MAX_MS = 30_000


class Live:
    def __init__(self, *broker_ids: int) -> None:
        self.broker_ids = set(broker_ids)

    def is_alive(self, broker_id: BrokerId) -> bool:
        return broker_id in self.broker_ids


def leader_of(
    replicas: tuple[int, ...],
    isr: tuple[int, ...],
    *,
    log_end_offset: int = 0,
    high_watermark: int = 0,
    min_isr: int = 1,
    live: Live | None = None,
    leader_epoch: int = 0,
    now_ms: int = 1000,
) -> PartitionLeader:
    leader = PartitionLeader(
        BrokerId(replicas[0]),
        live or Live(*replicas),
        min_isr,
        LAG_MAX_MS,
        log_end_offset,
        high_watermark,
    )
    begin(leader, leader_epoch, replicas, isr, now_ms)
    return leader


def begin(
    leader: PartitionLeader,
    leader_epoch: int,
    replicas: tuple[int, ...],
    isr: tuple[int, ...],
    now_ms: int,
) -> bool:
    return leader.begin_epoch(
        LeaderEpoch(leader_epoch),
        PartitionEpoch(leader_epoch),
        tuple(BrokerId(r) for r in replicas),
        tuple(BrokerId(r) for r in isr),
        now_ms,
    )


def fetch(leader: PartitionLeader, broker_id: int, offset: int, now_ms: int) -> bool:
    return leader.note_follower_fetch(BrokerId(broker_id), offset, now_ms)


def test_a_sole_replica_exposes_what_it_wrote() -> None:
    leader = leader_of((1,), (1,))
    assert leader.note_append(5, 1001)
    assert leader.high_watermark == 5
    assert not leader.note_append(5, 1002)


def test_the_request_of_a_follower_is_its_acknowledgement() -> None:
    leader = leader_of((1, 2), (1, 2))
    assert not leader.note_append(3, 1001)
    assert not fetch(leader, 2, 0, 1002)
    assert fetch(leader, 2, 3, 1003)
    assert leader.high_watermark == 3


def test_the_slowest_member_of_the_isr_decides() -> None:
    leader = leader_of((1, 2, 3), (1, 2, 3))
    leader.note_append(10, 1001)
    fetch(leader, 2, 10, 1002)
    assert leader.high_watermark == 0
    assert fetch(leader, 3, 4, 1003)
    assert leader.high_watermark == 4


def test_a_replica_out_of_the_isr_that_is_far_behind_is_not_waited_for() -> None:
    leader = leader_of((1, 2, 3), (1, 2))
    leader.note_append(10, 1001)
    assert fetch(leader, 2, 10, 1002)
    assert leader.high_watermark == 10


def test_a_replica_that_keeps_up_is_waited_for_before_it_is_in_the_isr() -> None:
    live = Live(1, 2)
    leader = leader_of((1, 2), (1,), live=live)
    fetch(leader, 2, 0, 1000)
    assert not leader.note_append(5, 1001)
    live.broker_ids.discard(2)
    assert leader.maybe_advance(1002)
    assert leader.high_watermark == 5


def test_waiting_for_such_a_replica_ends_with_the_lag_that_is_allowed() -> None:
    leader = leader_of((1, 2), (1,))
    fetch(leader, 2, 0, 1000)
    assert not leader.note_append(5, 1000 + LAG_MAX_MS)
    assert leader.maybe_advance(1001 + LAG_MAX_MS)


def test_under_min_insync_replicas_nothing_new_is_exposed() -> None:
    leader = leader_of((1, 2, 3), (1,), min_isr=2)
    assert leader.is_under_min_isr
    assert not leader.note_append(5, 1001)
    assert leader.high_watermark == 0


def test_enough_replicas_are_as_many_as_asked_for_a_proposed_one_counts() -> None:
    leader = leader_of((1, 2, 3), (1,), min_isr=2)
    assert not leader.has_enough_replicas
    fetch(leader, 2, 0, 1000)
    leader.poll_isr_change(1001)
    assert leader.is_under_min_isr
    assert leader.has_enough_replicas


def test_min_insync_replicas_asks_no_more_than_there_are_replicas() -> None:
    leader = leader_of((1,), (1,), min_isr=3)
    assert not leader.is_under_min_isr
    assert leader.note_append(5, 1001)
    assert leader.has_enough_replicas


def test_the_watermark_never_goes_back() -> None:
    leader = leader_of((1, 2), (1, 2))
    leader.note_append(5, 1001)
    fetch(leader, 2, 5, 1002)
    assert not fetch(leader, 2, 2, 1003)
    assert leader.high_watermark == 5


def test_a_stranger_cannot_acknowledge() -> None:
    leader = leader_of((1, 2), (1, 2))
    with pytest.raises(InvariantViolated):
        fetch(leader, 9, 0, 1001)


@behaviour("L15")
def test_a_new_leader_counts_its_followers_from_now_and_knows_nothing_of_their_logs() -> None:
    leader = leader_of((1, 2, 3), (1, 2), log_end_offset=7, high_watermark=4)
    assert leader.epoch_start_offset == 7
    in_sync, other = leader.followers
    assert (in_sync.last_caught_up_ms, in_sync.log_end_offset) == (1000, -1)
    assert other.last_caught_up_ms < 0
    assert leader.high_watermark == 4


@behaviour("L14", "L15")
def test_a_leader_that_stays_keeps_what_it_knows_of_its_followers_logs() -> None:
    leader = leader_of((1, 2, 3), (1, 2, 3))
    leader.note_append(9, 1001)
    fetch(leader, 2, 9, 1002)
    fetch(leader, 3, 6, 1002)
    moved = begin(leader, 1, (1, 2, 3, 4), (1, 2), 5000)
    assert [f.log_end_offset for f in leader.followers] == [9, 6, -1]
    assert leader.followers[0].last_caught_up_ms == 5000
    assert leader.follower(BrokerId(3)).last_caught_up_ms < 0
    assert leader.epoch_start_offset == 9
    assert moved
    assert leader.high_watermark == 9


def test_a_leader_epoch_never_goes_back() -> None:
    leader = leader_of((1, 2), (1, 2), leader_epoch=3)
    with pytest.raises(InvariantViolated):
        begin(leader, 3, (1, 2), (1, 2), 2000)


class TestProgress:
    """When a follower counts as having been caught up."""

    def test_at_the_leaders_end_it_is_now(self) -> None:
        progress = FollowerProgress(BrokerId(2))
        progress.note_fetch(10, 10, 100)
        assert progress.last_caught_up_ms == 100

    def test_where_the_leader_was_at_the_fetch_before_it_was_then(self) -> None:
        progress = FollowerProgress(BrokerId(2))
        progress.note_fetch(0, 10, 100)
        progress.note_fetch(10, 20, 200)
        assert progress.last_caught_up_ms == 100

    def test_short_of_that_it_was_not(self) -> None:
        progress = FollowerProgress(BrokerId(2))
        progress.note_fetch(0, 10, 100)
        progress.note_fetch(9, 20, 200)
        assert progress.last_caught_up_ms == NEVER_MS

    def test_a_fetch_of_an_epoch_that_is_over_does_not_count(self) -> None:
        progress = FollowerProgress(BrokerId(2))
        progress.note_fetch(0, 10, 100)
        progress.begin_epoch(False, 10, 500)
        progress.note_fetch(10, 20, 600)
        assert progress.last_caught_up_ms == NEVER_MS


class TestIsrChanges:
    """Decided here; sent and committed elsewhere."""

    def test_a_follower_that_reached_the_watermark_and_the_epoch_start_is_proposed(self) -> None:
        leader = leader_of((1, 2), (1,))
        leader.note_append(5, 1001)
        fetch(leader, 2, 5, 1002)
        assert leader.poll_isr_change(1003) == IsrChange((1, 2), LeaderEpoch(0), PartitionEpoch(0))
        assert leader.isr_state == PendingExpansion(BrokerId(2), CommittedIsr((BrokerId(1),)))
        assert leader.poll_isr_change(1004) is None

    def test_reaching_the_watermark_is_not_enough_before_the_epoch_start(self) -> None:
        leader = leader_of((1, 2), (1,), log_end_offset=10, high_watermark=4)
        leader.high_watermark = 4
        fetch(leader, 2, 6, 1001)
        leader.high_watermark = 4
        assert leader.poll_isr_change(1002) is None
        fetch(leader, 2, 10, 1003)
        assert leader.poll_isr_change(1004) is not None

    def test_reaching_the_epoch_start_is_not_enough_before_the_watermark(self) -> None:
        leader = leader_of((1, 2), (1,))
        leader.note_append(8, 1001)
        fetch(leader, 2, 7, 1002)
        assert leader.high_watermark == 8
        assert leader.poll_isr_change(1003) is None

    def test_a_dead_follower_is_not_proposed(self) -> None:
        leader = leader_of((1, 2), (1,), live=Live(1))
        fetch(leader, 2, 0, 1001)
        assert leader.poll_isr_change(1002) is None

    def test_a_follower_silent_for_longer_than_allowed_is_left_out(self) -> None:
        leader = leader_of((1, 2, 3), (1, 2, 3))
        leader.note_append(5, 1001)
        fetch(leader, 3, 5, 1002)
        assert leader.poll_isr_change(1000 + LAG_MAX_MS) is None
        change = leader.poll_isr_change(1001 + LAG_MAX_MS)
        assert change is not None
        assert change.isr == (1, 3)
        assert leader.isr_state == PendingShrink((BrokerId(2),), CommittedIsr((1, 2, 3)))

    def test_a_follower_at_the_end_of_an_idle_log_is_in_sync_for_ever(self) -> None:
        leader = leader_of((1, 2), (1, 2))
        leader.note_append(5, 1001)
        fetch(leader, 2, 5, 1002)
        assert leader.poll_isr_change(10 * LAG_MAX_MS) is None

    def test_a_follower_always_one_append_behind_is_in_sync(self) -> None:
        leader = leader_of((1, 2), (1, 2))
        now_ms = 1000
        for end in range(1, 20):
            now_ms += LAG_MAX_MS // 2
            leader.note_append(end, now_ms)
            fetch(leader, 2, end - 1, now_ms + 1)
            assert leader.poll_isr_change(now_ms + 2) is None

    def test_while_an_expansion_is_under_way_the_watermark_waits_for_both(self) -> None:
        leader = leader_of((1, 2), (1,))
        fetch(leader, 2, 0, 1000)
        leader.poll_isr_change(1001)
        later = 1001 + 2 * LAG_MAX_MS
        assert not leader.note_append(5, later)
        assert leader.high_watermark == 0
        assert fetch(leader, 2, 5, later + 1)

    def test_while_a_shrink_is_under_way_the_watermark_waits_for_all(self) -> None:
        leader = leader_of((1, 2), (1, 2))
        leader.note_append(5, 1001)
        later = 1001 + 2 * LAG_MAX_MS
        assert leader.poll_isr_change(later) is not None
        assert not leader.maybe_advance(later)
        assert leader.note_isr_committed(
            LeaderEpoch(0), PartitionEpoch(1), (BrokerId(1),), later + 1
        )
        assert leader.high_watermark == 5
        assert leader.partition_epoch == 1

    def test_a_commit_that_left_the_partition_epoch_as_it_was_settles_the_change(self) -> None:
        leader = leader_of((1, 2), (1,))
        fetch(leader, 2, 0, 1000)
        leader.poll_isr_change(1001)
        one_and_two = (BrokerId(1), BrokerId(2))
        leader.note_isr_committed(LeaderEpoch(0), PartitionEpoch(0), one_and_two, 1002)
        assert leader.isr_state == CommittedIsr(one_and_two)

    @pytest.mark.parametrize(("leader_epoch", "partition_epoch"), [(0, 1), (2, 1), (1, 0)])
    def test_a_stale_commit_changes_nothing(self, leader_epoch: int, partition_epoch: int) -> None:
        leader = leader_of((1, 2), (1,), leader_epoch=1)
        fetch(leader, 2, 0, 1000)
        leader.poll_isr_change(1001)
        pending = leader.isr_state
        assert not leader.note_isr_committed(
            LeaderEpoch(leader_epoch), PartitionEpoch(partition_epoch), (BrokerId(1),), 1002
        )
        assert leader.isr_state is pending

    def test_a_change_that_was_not_attempted_is_taken_back(self) -> None:
        leader = leader_of((1, 2), (1,))
        fetch(leader, 2, 0, 1000)
        leader.poll_isr_change(1001)
        leader.note_isr_refused()
        assert leader.isr_state == CommittedIsr((BrokerId(1),))
        assert leader.maximal_isr == (1,)

    def test_a_new_epoch_forgets_a_change_under_way(self) -> None:
        leader = leader_of((1, 2), (1,))
        fetch(leader, 2, 0, 1000)
        leader.poll_isr_change(1001)
        begin(leader, 1, (1, 2), (1,), 1002)
        assert leader.isr_state == CommittedIsr((BrokerId(1),))
