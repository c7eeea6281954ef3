"""The states of a replica as the controller sees it, and why they change."""

from enum import IntEnum
from typing import Final

from barnabas.model.transitions import Arrow, TransitionTable


class ReplicaState(IntEnum):
    """Where one replica stands in its life; the numbers are Kafka's (K2)."""

    NEW = 1
    ONLINE = 2
    OFFLINE = 3
    DELETION_STARTED = 4
    DELETION_SUCCESSFUL = 5
    DELETION_INELIGIBLE = 6
    NON_EXISTENT = 7


_NEW = ReplicaState.NEW
_ONLINE = ReplicaState.ONLINE
_OFFLINE = ReplicaState.OFFLINE
_STARTED = ReplicaState.DELETION_STARTED
_SUCCESSFUL = ReplicaState.DELETION_SUCCESSFUL
_INELIGIBLE = ReplicaState.DELETION_INELIGIBLE
_NON_EXISTENT = ReplicaState.NON_EXISTENT

LEADER_AND_ISR: Final = "LeaderAndIsr"
UPDATE_METADATA: Final = "UpdateMetadata"
STOP_REPLICA: Final = "StopReplica"

_TOLD = (LEADER_AND_ISR, UPDATE_METADATA)
_TAKEN = (LEADER_AND_ISR, UPDATE_METADATA, STOP_REPLICA)
_STOPPED = (STOP_REPLICA,)

REPLICA: Final = TransitionTable(
    name="REPLICA",
    initial=_NON_EXISTENT,
    meanings={
        _NON_EXISTENT: "the controller knows nothing of the replica",
        _NEW: "assigned, and told to its broker if the partition has a leader already",
        _ONLINE: "part of its partition; its broker is there",
        _OFFLINE: "its broker or its log directory is gone, or it was told to stop",
        _STARTED: "its broker was told to delete it and has not answered",
        _SUCCESSFUL: "its broker said that it is deleted",
        _INELIGIBLE: "it cannot be deleted for now: its broker is gone or answered an error",
    },
    arrows=(
        Arrow(_NON_EXISTENT, _NEW, "its partition was created or it was added to one", _TOLD),
        Arrow(_NEW, _ONLINE, "its partition has been told its replicas"),
        Arrow(_ONLINE, _ONLINE, "a new controller tells it its state", _TOLD),
        Arrow(_OFFLINE, _ONLINE, "its broker came back", _TOLD),
        Arrow(_INELIGIBLE, _ONLINE, "its broker came back before its deletion resumed", _TOLD),
        Arrow(_NEW, _OFFLINE, "its broker was lost before it was online, or it is deleted", _TAKEN),
        Arrow(_ONLINE, _OFFLINE, "its broker or directory was lost, or it is deleted", _TAKEN),
        Arrow(_OFFLINE, _OFFLINE, "lost again, or deleted while it was lost", _TAKEN),
        Arrow(_INELIGIBLE, _OFFLINE, "its deletion is tried again, or dead at start", _TAKEN),
        Arrow(_OFFLINE, _STARTED, "its topic is deleted", _STOPPED),
        Arrow(_STARTED, _SUCCESSFUL, "its broker answered the deletion without an error"),
        Arrow(_STARTED, _INELIGIBLE, "its broker answered an error or was lost"),
        Arrow(_OFFLINE, _INELIGIBLE, "its topic is deleted while its broker is gone"),
        Arrow(_SUCCESSFUL, _NON_EXISTENT, "all replicas of its topic are deleted"),
    ),
)
