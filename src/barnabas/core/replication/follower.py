"""A partition as its follower sees it: what to fetch next, and what an answer changes.

The follower only keeps the position and the state; its log is cut and appended to by whoever
drives it, who reports back. A log that knows its epochs starts to fetch at its end, and the leader
finds a difference by the epoch told with the fetch; one without epochs is first cut to its high
watermark, because nothing above it is known to agree with anyone (L21).
"""

from typing import Final

from barnabas.core.replication.divergence import (
    NO_EPOCH,
    EpochEnd,
    FollowerPosition,
    OutOfRange,
    Truncation,
    truncation_point,
)
from barnabas.core.replication.follower_states import FOLLOWER, FollowerState
from barnabas.model.epochs import LeaderEpoch
from barnabas.model.error_codes import ErrorCode
from barnabas.model.ids import NO_TOPIC_ID, BrokerId, TopicId
from barnabas.model.invariant import invariant

UNKNOWN_LAG: Final = -1


class PartitionFollower:
    """One followed partition in one leader epoch."""

    __slots__ = (
        "crossings",
        "delayed_until_ms",
        "fetch_offset",
        "lag",
        "last_fetched_epoch",
        "leader_epoch",
        "leader_id",
        "state",
        "topic_id",
    )

    def __init__(self, leader_id: BrokerId, leader_epoch: LeaderEpoch, topic_id: TopicId) -> None:
        self.leader_id = leader_id
        self.leader_epoch = leader_epoch
        self.topic_id = topic_id
        """NO_TOPIC_ID when the controller withdrew it (L9)."""
        self.state = FollowerState.STOPPED
        self.fetch_offset: int = 0
        """The next record wanted; equal to the log's end except while cutting."""
        self.last_fetched_epoch: int = NO_EPOCH
        """The epoch of the record before `fetch_offset`."""
        self.lag: int = UNKNOWN_LAG
        """Records that the leader had exposed and we did not hold, as of the last answer."""
        self.delayed_until_ms: int = 0
        """When DELAYED ends."""
        self.crossings: list[tuple[FollowerState, FollowerState]] = []
        """Arrows crossed since someone last took them for the event stream."""

    def _cross(self, target: FollowerState) -> None:
        invariant(
            FOLLOWER.allows(self.state, target),
            f"a follower may not go from {self.state.name} to {target.name}",
        )
        self.crossings.append((self.state, target))
        self.state = target

    @property
    def has_topic_id(self) -> bool:
        return self.topic_id != NO_TOPIC_ID

    def start(self, log_end_offset: int, high_watermark: int, latest_epoch: int) -> None:
        """Begin to follow; TRUNCATING wants a cut to `fetch_offset`, which is the watermark."""
        self.last_fetched_epoch = latest_epoch
        if latest_epoch == NO_EPOCH:
            self.fetch_offset = high_watermark
            self._cross(FollowerState.TRUNCATING)
        else:
            self.fetch_offset = log_end_offset
            self._cross(FollowerState.FETCHING)

    def stop(self) -> None:
        """Follow no more."""
        if self.state is not FollowerState.STOPPED:
            self._cross(FollowerState.STOPPED)

    def poll_fetch(self, now_ms: int) -> FollowerPosition | None:
        """What the next fetch asks for this partition; None when it is left out."""
        if self.state is FollowerState.DELAYED and now_ms >= self.delayed_until_ms:
            self._cross(FollowerState.FETCHING)
        if self.state is not FollowerState.FETCHING:
            return None
        return FollowerPosition(self.fetch_offset, self.last_fetched_epoch)

    def is_answer_current(self, asked_offset: int, asked_epoch: int) -> bool:
        """Whether an answer is about what is wanted now (F8).

        The partition may have been taken away and given back while the request was under way.
        """
        return (
            self.state is FollowerState.FETCHING
            and asked_offset == self.fetch_offset
            and asked_epoch == self.leader_epoch
        )

    def note_fetched(self, next_offset: int, last_epoch: int, leader_high_watermark: int) -> None:
        """The answer was appended up to `next_offset`, or held nothing: then it has no epoch."""
        if last_epoch != NO_EPOCH:
            self.last_fetched_epoch = last_epoch
        self.fetch_offset = next_offset
        self.lag = max(0, leader_high_watermark - next_offset)

    def note_diverging(self, leader: EpochEnd, own: EpochEnd, log_end_offset: int) -> Truncation:
        """The logs part: the cut to make; `note_truncated` follows."""
        self._cross(FollowerState.TRUNCATING)
        return truncation_point(leader, own, log_end_offset, self.fetch_offset)

    def note_truncated(self, fetch_offset: int, latest_epoch: int) -> None:
        """The log was cut, or begins anew: fetch from there."""
        self.fetch_offset = fetch_offset
        self.last_fetched_epoch = latest_epoch
        self._cross(FollowerState.FETCHING)

    def note_out_of_range(self) -> None:
        """The leader does not have the offset: ask where its log lies."""
        self._cross(FollowerState.LOCATING)

    def note_located(self, decision: OutOfRange, leader_end_offset: int, latest_epoch: int) -> None:
        """The leader's ends are known; when a cut is due the state is TRUNCATING after this."""
        self.lag = max(0, leader_end_offset - decision.fetch_offset)
        if decision.truncate_to is not None or decision.restart_at is not None:
            self._cross(FollowerState.TRUNCATING)
            self.fetch_offset = decision.fetch_offset
            return
        self.fetch_offset = decision.fetch_offset
        self.last_fetched_epoch = latest_epoch
        self._cross(FollowerState.FETCHING)

    def note_delayed(self, until_ms: int) -> None:
        """Leave the partition out until then."""
        if self.state is not FollowerState.DELAYED:
            self._cross(FollowerState.DELAYED)
            self.delayed_until_ms = until_ms

    def note_failed(self) -> None:
        """Give the partition up until the controller speaks again."""
        self._cross(FollowerState.FAILED)

    def note_error(self, error: int, asked_epoch: int, until_ms: int) -> None:
        """The leader refused: fenced in our own epoch is final, all else passes (F20)."""
        if error == ErrorCode.FENCED_LEADER_EPOCH and asked_epoch == self.leader_epoch:
            self.note_failed()
        elif error == ErrorCode.OFFSET_OUT_OF_RANGE:
            self.note_out_of_range()
        else:
            self.note_delayed(until_ms)
