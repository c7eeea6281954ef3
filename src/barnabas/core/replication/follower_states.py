"""The states of a partition that this broker follows, and why they change."""

from enum import Enum
from typing import Final

from barnabas.model.transitions import Arrow, TransitionTable


class FollowerState(Enum):
    """Where the replication of one followed partition stands."""

    STOPPED = "stopped"
    TRUNCATING = "truncating"
    FETCHING = "fetching"
    LOCATING = "locating"
    DELAYED = "delayed"
    FAILED = "failed"


_STOPPED = FollowerState.STOPPED
_TRUNCATING = FollowerState.TRUNCATING
_FETCHING = FollowerState.FETCHING
_LOCATING = FollowerState.LOCATING
_DELAYED = FollowerState.DELAYED
_FAILED = FollowerState.FAILED

_TAKEN_AWAY = "the partition is led here now, stopped, or follows in a newer leader epoch"

FOLLOWER: Final = TransitionTable(
    name="FOLLOWER",
    initial=_STOPPED,
    meanings={
        _STOPPED: "no fetcher holds the partition",
        _TRUNCATING: "the log is being cut to where it may agree with the leader's",
        _FETCHING: "the leader is asked for records from the log's end on",
        _LOCATING: "the log ends outside the leader's: the leader is asked where its own lies",
        _DELAYED: "left out of fetches for a while after an error",
        _FAILED: "given up until the next LeaderAndIsr",
    },
    arrows=(
        Arrow(_STOPPED, _FETCHING, "LeaderAndIsr named a leader; the log has epochs", ("Fetch",)),
        Arrow(_STOPPED, _TRUNCATING, "LeaderAndIsr named a leader; the log has no epochs"),
        Arrow(_TRUNCATING, _FETCHING, "the log was cut", ("Fetch",)),
        Arrow(_TRUNCATING, _FAILED, "the disk refused the cut"),
        Arrow(_FETCHING, _TRUNCATING, "the leader answered with a diverging epoch"),
        Arrow(_FETCHING, _LOCATING, "OFFSET_OUT_OF_RANGE", ("ListOffsets",)),
        Arrow(_FETCHING, _DELAYED, "an error of the leader or of the link; a corrupt batch"),
        Arrow(_FETCHING, _FAILED, "fenced in this very epoch; what came cannot be appended"),
        Arrow(_LOCATING, _TRUNCATING, "the leader's log ends earlier or begins later"),
        Arrow(_LOCATING, _FETCHING, "the leader's log reaches past ours by now", ("Fetch",)),
        Arrow(_LOCATING, _DELAYED, "an error of the leader or of the link"),
        Arrow(_LOCATING, _FAILED, "fenced in this very epoch"),
        Arrow(_DELAYED, _FETCHING, "the backoff is over", ("Fetch",)),
        Arrow(_TRUNCATING, _STOPPED, _TAKEN_AWAY),
        Arrow(_FETCHING, _STOPPED, _TAKEN_AWAY),
        Arrow(_LOCATING, _STOPPED, _TAKEN_AWAY),
        Arrow(_DELAYED, _STOPPED, _TAKEN_AWAY),
        Arrow(_FAILED, _STOPPED, _TAKEN_AWAY),
    ),
)
