"""Where two logs part: decided by leader epochs, on the leader's side and on the follower's.

Within one leader epoch there is one writer, so two logs that hold the same epoch at an offset hold
the same record there. A follower therefore tells the epoch of its last record with each fetch; a
leader whose own log ended that epoch earlier, or never had it, answers with the epoch and offset
up to which they may agree, and the follower cuts there, at once or step by step.
"""

from typing import Final, NamedTuple

NO_EPOCH: Final = -1
UNDEFINED_OFFSET: Final = -1


class EpochEnd(NamedTuple):
    """The largest epoch of a log that is not above a wanted one, and the offset after its end."""

    epoch: int
    end_offset: int


UNDEFINED_EPOCH_END: Final = EpochEnd(NO_EPOCH, UNDEFINED_OFFSET)


class FollowerPosition(NamedTuple):
    """What a fetch says of the log of the one who fetches."""

    fetch_offset: int
    last_fetched_epoch: int
    """The epoch of the record before `fetch_offset`; NO_EPOCH when it does not tell."""


def is_out_of_range(position: FollowerPosition, own: EpochEnd, log_start_offset: int) -> bool:
    """Whether nothing can be said about the position: then the follower must ask for the ends.

    `own` is what the leader's log knows of the position's epoch.
    """
    return (
        own.epoch == NO_EPOCH
        or own.end_offset == UNDEFINED_OFFSET
        or position.fetch_offset < log_start_offset
    )


def diverges(position: FollowerPosition, own: EpochEnd) -> bool:
    """Whether the follower holds records that the leader's log does not."""
    return own.epoch < position.last_fetched_epoch or own.end_offset < position.fetch_offset


class Truncation(NamedTuple):
    """Cut the log to this end; unless complete, the next fetch may find another difference."""

    offset: int
    is_complete: bool


def truncation_point(
    leader: EpochEnd, own: EpochEnd, log_end_offset: int, fetch_offset: int
) -> Truncation:
    """Where a follower cuts when the leader answered with an epoch and its end.

    `own` is what the follower's log knows of that same epoch. When the follower never had it, it
    cuts to the end of the largest smaller epoch that it has and asks again: any later record of it
    is one the leader cannot have. It never cuts beyond its own end.
    """
    if leader.end_offset == UNDEFINED_OFFSET:
        return Truncation(fetch_offset, is_complete=True)
    if leader.epoch == NO_EPOCH or own.epoch == NO_EPOCH:
        return Truncation(min(leader.end_offset, log_end_offset), is_complete=True)
    if own.epoch != leader.epoch:
        return Truncation(min(own.end_offset, log_end_offset), is_complete=False)
    return Truncation(min(own.end_offset, leader.end_offset, log_end_offset), is_complete=True)


class OutOfRange(NamedTuple):
    """What a follower does once it knows the leader's ends."""

    fetch_offset: int
    truncate_to: int | None
    """Cut the log to this end."""
    restart_at: int | None
    """Drop everything and let the log begin here."""


def after_leader_end(leader_end_offset: int, log_end_offset: int) -> OutOfRange | None:
    """A log longer than the leader's is cut to it; None: the leader's start must be asked for.

    The leader's log can be shorter after an unclean election; the difference is normally found by
    epochs first. Never is it a reason to stop (F14).
    """
    if leader_end_offset < log_end_offset:
        return OutOfRange(leader_end_offset, leader_end_offset, None)
    return None


def after_leader_start(leader_start_offset: int, log_end_offset: int) -> OutOfRange:
    """A log that ends before the leader's begins is useless; else fetching goes on at its end."""
    if leader_start_offset > log_end_offset:
        return OutOfRange(leader_start_offset, None, leader_start_offset)
    return OutOfRange(log_end_offset, None, None)
