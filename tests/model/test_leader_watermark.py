"""The leader's watermark against a brute-force reading of its definition."""

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from barnabas.core.replication.isr import CommittedIsr, PendingExpansion
from barnabas.core.replication.leader import PartitionLeader
from barnabas.model.epochs import LeaderEpoch, PartitionEpoch
from barnabas.model.ids import BrokerId

ME = BrokerId(1)
OTHERS = [BrokerId(b) for b in (2, 3, 4)]
LAG_MAX_MS = 100


class Live:
    def __init__(self) -> None:
        self.broker_ids = set(OTHERS)

    def is_alive(self, broker_id: BrokerId) -> bool:
        return broker_id in self.broker_ids


class Watermark(RuleBasedStateMachine):
    """Keeps every fetch and append that ever was and recomputes the watermark from them."""

    @initialize(
        min_isr=st.integers(1, 4),
        isr=st.sets(st.sampled_from(OTHERS)),
        log_end=st.integers(0, 5),
    )
    def start(self, min_isr: int, isr: set[BrokerId], log_end: int) -> None:
        self.now_ms = 1000
        self.live = Live()
        self.log_end = log_end
        self.leader = PartitionLeader(ME, self.live, min_isr, LAG_MAX_MS, log_end, 0)
        self.min_isr = min_isr
        self.epoch = 0
        self.partition_epoch = 0
        self.exposed = 0
        self.ends: dict[BrokerId, int] = {}
        self.caught_up_ms: dict[BrokerId, int] = {}
        self.last_fetch: dict[BrokerId, tuple[int, int]] = {}
        self.begin_epoch(isr)

    def expect(self) -> None:
        """The definition, over everything remembered."""
        committed = self.leader.isr_state.isr
        state = self.leader.isr_state
        counted = set(committed)
        if isinstance(state, PendingExpansion):
            counted.add(state.new_replica)
        if len(committed) < min(self.min_isr, 4):
            return
        for other in OTHERS:
            end = self.ends.get(other, -1)
            caught_up = end == self.log_end or (
                other in self.caught_up_ms and self.now_ms - self.caught_up_ms[other] <= LAG_MAX_MS
            )
            if caught_up and self.live.is_alive(other):
                counted.add(other)
        smallest = min(self.log_end if b == ME else self.ends.get(b, -1) for b in counted)
        self.exposed = max(self.exposed, smallest)

    def begin_epoch(self, isr: set[BrokerId]) -> None:
        for other in OTHERS:
            if other in isr:
                self.caught_up_ms[other] = self.now_ms
                self.last_fetch[other] = (self.now_ms, self.log_end if self.epoch else -1)
            else:
                self.caught_up_ms.pop(other, None)
                self.last_fetch[other] = (-(10**9), self.log_end if self.epoch else -1)
        members = (ME, *sorted(isr))
        self.leader.begin_epoch(
            LeaderEpoch(self.epoch),
            PartitionEpoch(self.partition_epoch),
            (ME, *OTHERS),
            members,
            self.now_ms,
        )
        self.epoch += 1
        self.partition_epoch += 1
        self.expect()

    @rule(count=st.integers(1, 5))
    def append(self, count: int) -> None:
        self.log_end += count
        self.leader.note_append(self.log_end, self.now_ms)
        self.expect()

    @rule(other=st.sampled_from(OTHERS), back=st.integers(0, 4))
    def fetch(self, other: BrokerId, back: int) -> None:
        offset = max(0, self.log_end - back)
        fetched_ms, fetched_end = self.last_fetch[other]
        if offset >= self.log_end:
            self.caught_up_ms[other] = self.now_ms
        elif offset >= fetched_end and fetched_ms > 0:
            self.caught_up_ms[other] = max(self.caught_up_ms.get(other, 0), fetched_ms)
        self.last_fetch[other] = (self.now_ms, max(fetched_end, self.log_end))
        before = self.ends.get(other, -1)
        self.ends[other] = offset
        self.leader.note_follower_fetch(other, offset, self.now_ms)
        if before != offset:
            self.expect()

    @rule(ms=st.integers(1, 80))
    def wait(self, ms: int) -> None:
        self.now_ms += ms

    @rule(other=st.sampled_from(OTHERS))
    def die_or_return(self, other: BrokerId) -> None:
        self.live.broker_ids ^= {other}

    @rule()
    def propose(self) -> None:
        before = self.leader.isr_state
        change = self.leader.poll_isr_change(self.now_ms)
        if change is not None:
            assert isinstance(before, CommittedIsr)
            assert ME in change.isr
            assert set(change.isr) != set(before.isr)
            assert not isinstance(self.leader.isr_state, CommittedIsr)

    @rule(is_accepted=st.booleans())
    def controller_answers(self, is_accepted: bool) -> None:
        state = self.leader.isr_state
        if isinstance(state, CommittedIsr):
            return
        if not is_accepted:
            self.leader.note_isr_refused()
            return
        if isinstance(state, PendingExpansion):
            isr = state.maximal_isr
        else:
            isr = tuple(b for b in state.isr if b not in state.out_of_sync)
        self.partition_epoch += 1
        self.leader.note_isr_committed(
            self.leader.leader_epoch, PartitionEpoch(self.partition_epoch), isr, self.now_ms
        )
        self.expect()

    @rule(isr=st.sets(st.sampled_from(OTHERS)))
    def leader_and_isr(self, isr: set[BrokerId]) -> None:
        self.begin_epoch(isr)

    @invariant()
    def watermark_is_as_defined(self) -> None:
        if hasattr(self, "leader"):
            assert self.leader.high_watermark == self.exposed

    @invariant()
    def every_counted_replica_holds_what_is_exposed(self) -> None:
        """I5 as far as the leader knows: it grows only up to what the maximal isr holds."""
        if hasattr(self, "leader"):
            assert self.leader.high_watermark <= self.leader.log_end_offset


TestWatermark = Watermark.TestCase
TestWatermark.settings = settings(stateful_step_count=40)
