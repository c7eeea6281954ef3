"""The states of a partition as the controller sees it, and why they change."""

from enum import IntEnum
from typing import Final

from barnabas.core.controller.replica_states import LEADER_AND_ISR, UPDATE_METADATA
from barnabas.model.transitions import Arrow, TransitionTable


class PartitionState(IntEnum):
    """Whether a partition has a leader; the numbers are Kafka's (K3)."""

    NEW = 0
    ONLINE = 1
    OFFLINE = 2
    NON_EXISTENT = 3


_NEW = PartitionState.NEW
_ONLINE = PartitionState.ONLINE
_OFFLINE = PartitionState.OFFLINE
_NON_EXISTENT = PartitionState.NON_EXISTENT

_TOLD = (LEADER_AND_ISR, UPDATE_METADATA)

PARTITION: Final = TransitionTable(
    name="PARTITION",
    initial=_NON_EXISTENT,
    meanings={
        _NON_EXISTENT: "never created, or deleted",
        _NEW: "has replicas, but never had a leader",
        _ONLINE: "has a leader",
        _OFFLINE: "had a leader, which is gone",
    },
    arrows=(
        Arrow(_NON_EXISTENT, _NEW, "its topic was created or grew"),
        Arrow(_NEW, _ONLINE, "its first leader is its first live replica", _TOLD),
        Arrow(_ONLINE, _ONLINE, "another leader was elected while one was there", _TOLD),
        Arrow(_OFFLINE, _ONLINE, "a replica that may lead is there again", _TOLD),
        Arrow(_NEW, _OFFLINE, "its topic is deleted before it had a leader"),
        Arrow(_ONLINE, _OFFLINE, "its leader is gone, or its topic is deleted"),
        Arrow(_OFFLINE, _OFFLINE, "its leader is still gone, or its topic is deleted"),
        Arrow(_OFFLINE, _NON_EXISTENT, "its topic is deleted"),
    ),
)
