"""A partition as its leader sees it: how far the followers are, and how far all of them are.

Hot: compiled by mypyc where a compiler is there, interpreted otherwise. Numbers in, numbers out.

The high watermark is the offset below which every replica that may be elected holds every record.
It is the smallest log end over the maximal isr (a proposed change to the isr counts both ways)
and over followers that have kept up lately and are about to be let in. It never goes back while
this broker leads, and it stands still while the isr is smaller than min.insync.replicas, so that
a record exposed to consumers is on as many replicas as the topic promises.
"""

from typing import Final, Protocol

from barnabas.core.replication.isr import (
    CommittedIsr,
    IsrChange,
    IsrState,
    PendingExpansion,
    PendingShrink,
)
from barnabas.model.epochs import LeaderEpoch, PartitionEpoch
from barnabas.model.ids import BrokerId
from barnabas.model.invariant import invariant

UNKNOWN_OFFSET: Final = -1
NEVER_MS: Final = -(1 << 62)
"""Longer ago than any lag that is allowed."""


class LiveBrokers(Protocol):
    """Who is there, as the controller last told; asked when a watermark may move."""

    def is_alive(self, broker_id: BrokerId) -> bool: ...


class FollowerProgress:
    """How far one follower of a led partition is, as its fetches tell."""

    __slots__ = (
        "broker_id",
        "last_caught_up_ms",
        "last_fetch_leader_end_offset",
        "last_fetch_ms",
        "log_end_offset",
        "log_start_offset",
    )

    def __init__(self, broker_id: BrokerId) -> None:
        self.broker_id = broker_id
        self.log_end_offset: int = UNKNOWN_OFFSET
        """Everything below it is in the follower's log: it is the offset that it asked for."""
        self.log_start_offset: int = UNKNOWN_OFFSET
        """Where the follower's log begins, as its last fetch said."""
        self.last_fetch_ms: int = NEVER_MS
        self.last_fetch_leader_end_offset: int = UNKNOWN_OFFSET
        """The leader's log end when the follower last fetched: what it could have had."""
        self.last_caught_up_ms: int = NEVER_MS
        """The last moment at which the follower held all that the leader held then."""

    def note_fetch(self, offset: int, leader_end_offset: int, now_ms: int) -> None:
        """The follower asks for `offset`: it holds all below it.

        Reaching what was the leader's end at the fetch before counts as having been caught up
        then: under steady traffic a follower is never at the very end.
        """
        if offset >= leader_end_offset:
            self.last_caught_up_ms = max(self.last_caught_up_ms, now_ms)
        elif offset >= self.last_fetch_leader_end_offset:
            self.last_caught_up_ms = max(self.last_caught_up_ms, self.last_fetch_ms)
        self.log_end_offset = offset
        self.last_fetch_ms = now_ms
        if leader_end_offset > self.last_fetch_leader_end_offset:
            self.last_fetch_leader_end_offset = leader_end_offset

    def begin_epoch(self, is_in_sync: bool, leader_end_offset: int, now_ms: int) -> None:
        """The leader stays and its epoch is new: the lag is counted from now (L15)."""
        moment_ms = now_ms if is_in_sync else NEVER_MS
        self.last_caught_up_ms = moment_ms
        self.last_fetch_ms = moment_ms
        self.last_fetch_leader_end_offset = leader_end_offset

    def is_caught_up(self, leader_end_offset: int, now_ms: int, lag_max_ms: int) -> bool:
        return (
            self.log_end_offset == leader_end_offset
            or now_ms - self.last_caught_up_ms <= lag_max_ms
        )


class PartitionLeader:
    """The leader's side of one partition in one or more successive leader epochs."""

    __slots__ = (
        "_min_insync_replicas",
        "broker_id",
        "epoch_start_offset",
        "followers",
        "has_enough_replicas",
        "high_watermark",
        "is_under_min_isr",
        "isr_state",
        "leader_epoch",
        "live_brokers",
        "log_end_offset",
        "maximal_isr",
        "partition_epoch",
        "replica_lag_time_max_ms",
    )

    def __init__(
        self,
        broker_id: BrokerId,
        live_brokers: LiveBrokers,
        min_insync_replicas: int,
        replica_lag_time_max_ms: int,
        log_end_offset: int,
        high_watermark: int,
    ) -> None:
        self.broker_id = broker_id
        self.live_brokers = live_brokers
        self._min_insync_replicas: int = min_insync_replicas
        self.replica_lag_time_max_ms: int = replica_lag_time_max_ms
        self.log_end_offset: int = log_end_offset
        self.high_watermark: int = high_watermark
        self.leader_epoch: LeaderEpoch = LeaderEpoch(-1)
        self.partition_epoch: PartitionEpoch = PartitionEpoch(0)
        self.epoch_start_offset: int = log_end_offset
        """The log end when the leader epoch began; all later records carry that epoch."""
        self.followers: list[FollowerProgress] = []
        """Every assigned replica but this one, in the order of the assignment."""
        self.isr_state: IsrState = CommittedIsr((broker_id,))
        self.maximal_isr: tuple[BrokerId, ...] = (broker_id,)
        """That of `isr_state`, kept because every append asks for it."""
        self.is_under_min_isr: bool = False
        """The committed isr is smaller than min.insync.replicas: acks=all is refused."""
        self.has_enough_replicas: bool = True
        """What was acknowledged by the maximal isr is on as many replicas as the topic promises."""

    def begin_epoch(
        self,
        leader_epoch: LeaderEpoch,
        partition_epoch: PartitionEpoch,
        replicas: tuple[BrokerId, ...],
        isr: tuple[BrokerId, ...],
        now_ms: int,
    ) -> bool:
        """Take up a leader epoch as LeaderAndIsr tells it; True when the watermark moved."""
        invariant(
            leader_epoch > self.leader_epoch,
            f"leader epoch {leader_epoch} begins after {self.leader_epoch}",
        )
        is_new_leader = self.leader_epoch < 0
        known = {follower.broker_id: follower for follower in self.followers}
        self.followers = []
        for replica in replicas:
            if replica == self.broker_id:
                continue
            follower = known.get(replica)
            if follower is None:
                follower = FollowerProgress(replica)
            if not is_new_leader:
                follower.begin_epoch(replica in isr, self.log_end_offset, now_ms)
            elif replica in isr:
                follower.last_caught_up_ms = now_ms
            self.followers.append(follower)
        self.leader_epoch = leader_epoch
        self.partition_epoch = partition_epoch
        self.epoch_start_offset = self.log_end_offset
        self._set_isr_state(CommittedIsr(isr))
        return self.maybe_advance(now_ms)

    def note_append(self, log_end_offset: int, now_ms: int) -> bool:
        """Records were written up to `log_end_offset`; True when the watermark moved."""
        self.log_end_offset = log_end_offset
        if not self.followers:
            # A sole replica: what it holds, all replicas hold.
            if log_end_offset > self.high_watermark:
                self.high_watermark = log_end_offset
                return True
            return False
        return self.maybe_advance(now_ms)

    def follower(self, broker_id: BrokerId) -> FollowerProgress | None:
        """The progress of an assigned follower; None for anyone else."""
        for follower in self.followers:
            if follower.broker_id == broker_id:
                return follower
        return None

    def note_follower_fetch(self, broker_id: BrokerId, offset: int, now_ms: int) -> bool:
        """A follower asks for `offset`, which acknowledges all below; True: the watermark moved."""
        follower = self.follower(broker_id)
        invariant(follower is not None, f"broker {broker_id} is no follower of this partition")
        if follower is None:
            return False
        before = follower.log_end_offset
        follower.note_fetch(offset, self.log_end_offset, now_ms)
        return before != offset and self.maybe_advance(now_ms)

    def note_follower_log_start(self, broker_id: BrokerId, offset: int) -> bool:
        """A follower's log begins there; True when that is news."""
        follower = self.follower(broker_id)
        if follower is None or follower.log_start_offset == offset:
            return False
        follower.log_start_offset = offset
        return True

    def low_watermark(self, log_start_offset: int) -> int:
        """Below it no live replica holds a record any more; the leader's log begins as given."""
        lowest = log_start_offset
        for follower in self.followers:
            if follower.log_start_offset < lowest and self.live_brokers.is_alive(
                follower.broker_id
            ):
                lowest = follower.log_start_offset
        return lowest

    def maybe_advance(self, now_ms: int) -> bool:
        """Move the watermark to where all that count are; True when it moved."""
        if self.is_under_min_isr:
            return False
        log_end_offset = self.log_end_offset
        new_high_watermark = log_end_offset
        for follower in self.followers:
            end_offset = follower.log_end_offset
            if end_offset < new_high_watermark and (
                follower.broker_id in self.maximal_isr
                or self._is_about_to_join(follower, log_end_offset, now_ms)
            ):
                new_high_watermark = end_offset
        if new_high_watermark > self.high_watermark:
            self.high_watermark = new_high_watermark
            return True
        return False

    def _is_about_to_join(
        self, follower: FollowerProgress, leader_end_offset: int, now_ms: int
    ) -> bool:
        """Whether the watermark should wait for a follower that keeps up but is not in the isr.

        Without this a watermark that moves with every append could keep such a follower, always
        one append behind it, out of the isr for ever.
        """
        return follower.is_caught_up(
            leader_end_offset, now_ms, self.replica_lag_time_max_ms
        ) and self.live_brokers.is_alive(follower.broker_id)

    @property
    def min_insync_replicas(self) -> int:
        """As the topic asks; what is held to is never more than there are replicas."""
        return self._min_insync_replicas

    def set_min_insync_replicas(self, count: int) -> None:
        """The topic asks for so many from now on."""
        self._min_insync_replicas = count
        self._count_isr()

    def _count_isr(self) -> None:
        """Settle what every produce asks: who asks is many, what changes it is rare."""
        needed = min(self._min_insync_replicas, len(self.followers) + 1)
        self.is_under_min_isr = len(self.isr_state.isr) < needed
        self.has_enough_replicas = needed <= len(self.maximal_isr)

    @property
    def isr(self) -> tuple[BrokerId, ...]:
        """The committed one."""
        return self.isr_state.isr

    def _set_isr_state(self, state: IsrState) -> None:
        self.isr_state = state
        self.maximal_isr = state.maximal_isr
        self._count_isr()

    # --- changes of the isr -------------------------------------------------------------

    def poll_isr_change(self, now_ms: int) -> IsrChange | None:
        """The change that is due, if any; it is pending until one of the `note_isr_*` calls.

        A follower that came back is let in first; then those that fell behind are left out. Only
        one change is under way at a time.
        """
        if not isinstance(self.isr_state, CommittedIsr):
            return None
        committed = self.isr_state
        for follower in self.followers:
            if self._may_join(follower, committed):
                self._set_isr_state(PendingExpansion(follower.broker_id, committed))
                return self._change(self.maximal_isr)
        late = tuple(
            broker_id
            for broker_id in committed.isr
            if broker_id != self.broker_id and self._is_out_of_sync(broker_id, now_ms)
        )
        if late:
            self._set_isr_state(PendingShrink(late, committed))
            return self._change(tuple(b for b in committed.isr if b not in late))
        return None

    def _change(self, isr: tuple[BrokerId, ...]) -> IsrChange:
        return IsrChange(isr, self.leader_epoch, self.partition_epoch)

    def _may_join(self, follower: FollowerProgress, committed: CommittedIsr) -> bool:
        """In sync is who holds all that was exposed *and* all from before this epoch.

        The second half matters just after an election, when the watermark may lie before records
        of an older epoch that only the leader holds.
        """
        return (
            follower.broker_id not in committed.isr
            and follower.log_end_offset >= self.high_watermark
            and follower.log_end_offset >= self.epoch_start_offset
            and self.live_brokers.is_alive(follower.broker_id)
        )

    def _is_out_of_sync(self, broker_id: BrokerId, now_ms: int) -> bool:
        follower = self.follower(broker_id)
        return follower is None or not follower.is_caught_up(
            self.log_end_offset, now_ms, self.replica_lag_time_max_ms
        )

    def note_isr_committed(
        self,
        leader_epoch: LeaderEpoch,
        partition_epoch: PartitionEpoch,
        isr: tuple[BrokerId, ...],
        now_ms: int,
    ) -> bool:
        """The controller answered with the partition's state; True when the watermark moved.

        An answer about another leader epoch, or about a state older than the one known, is stale.
        """
        if leader_epoch != self.leader_epoch or partition_epoch < self.partition_epoch:
            return False
        self.partition_epoch = partition_epoch
        self._set_isr_state(CommittedIsr(isr))
        return self.maybe_advance(now_ms)

    def note_isr_refused(self) -> None:
        """The controller did not even try: the isr is certainly still the committed one.

        For every other refusal the pending state stays, which is the safe side, until LeaderAndIsr
        tells what holds.
        """
        state = self.isr_state
        if not isinstance(state, CommittedIsr):
            self._set_isr_state(state.committed)
