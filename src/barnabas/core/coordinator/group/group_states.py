"""The states of a consumer group of the classic protocol, and why they change."""

from enum import Enum
from typing import Final

from barnabas.model.transitions import Arrow, TransitionTable


class GroupState(Enum):
    """Where the rebalancing of a group stands; the values are the names that tools show."""

    EMPTY = "Empty"
    PREPARING_REBALANCE = "PreparingRebalance"
    COMPLETING_REBALANCE = "CompletingRebalance"
    STABLE = "Stable"
    DEAD = "Dead"


_EMPTY = GroupState.EMPTY
_PREPARING = GroupState.PREPARING_REBALANCE
_COMPLETING = GroupState.COMPLETING_REBALANCE
_STABLE = GroupState.STABLE
_DEAD = GroupState.DEAD

_RESIGNED = "this broker is no longer the group's coordinator"

GROUP: Final = TransitionTable(
    name="GROUP",
    initial=_EMPTY,
    meanings={
        _EMPTY: "no member; there may be offsets, until they expire",
        _PREPARING: "members are asked to join anew; whoever joined waits for the others",
        _COMPLETING: "a generation was made; its members wait for what the leader assigns",
        _STABLE: "the assignment is replicated, and members work on it",
        _DEAD: "removed, or coordinated elsewhere; whoever holds it asks again",
    },
    arrows=(
        Arrow(_EMPTY, _PREPARING, "the first member joins"),
        Arrow(_PREPARING, _COMPLETING, "all members joined, or the rebalance time-out is over"),
        Arrow(_PREPARING, _EMPTY, "no member is left"),
        Arrow(_COMPLETING, _STABLE, "the leader's assignment is replicated"),
        Arrow(
            _COMPLETING,
            _PREPARING,
            "a member comes, goes or changes; the assignment was lost or is not told in time",
        ),
        Arrow(
            _STABLE,
            _PREPARING,
            "a member comes, goes or changes, the leader joins again, or a sync is missing",
        ),
        Arrow(_EMPTY, _DEAD, "deleted, or its last offset expired; " + _RESIGNED),
        Arrow(_PREPARING, _DEAD, _RESIGNED),
        Arrow(_COMPLETING, _DEAD, _RESIGNED),
        Arrow(_STABLE, _DEAD, _RESIGNED),
    ),
)
