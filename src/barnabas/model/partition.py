"""What is decided about one partition: who holds it, who leads it, who is in sync."""

from dataclasses import dataclass, replace
from enum import IntEnum

from barnabas.model.epochs import (
    INITIAL_LEADER_EPOCH,
    INITIAL_PARTITION_EPOCH,
    ControllerEpoch,
    LeaderEpoch,
    PartitionEpoch,
)
from barnabas.model.ids import BrokerId

NO_LEADER = BrokerId(-1)
LEADER_DURING_DELETE = BrokerId(-2)
"""Told in UpdateMetadata about a topic being deleted (D10)."""


class LeaderRecoveryState(IntEnum):
    """Whether the leader was elected out of the in-sync replicas."""

    RECOVERED = 0
    RECOVERING = 1


@dataclass(frozen=True, slots=True)
class LeaderAndIsr:
    """The content of a partition's state znode and the version it was read or written at."""

    leader: BrokerId
    isr: tuple[BrokerId, ...]
    controller_epoch: ControllerEpoch
    leader_epoch: LeaderEpoch = INITIAL_LEADER_EPOCH
    leader_recovery_state: LeaderRecoveryState = LeaderRecoveryState.RECOVERED
    partition_epoch: PartitionEpoch = INITIAL_PARTITION_EPOCH

    def at_version(self, partition_epoch: PartitionEpoch) -> "LeaderAndIsr":
        """The same state as it stands after a write that gave it this version."""
        return replace(self, partition_epoch=partition_epoch)


@dataclass(frozen=True, slots=True)
class ReplicaAssignment:
    """The replicas of a partition in the order of preference, and a reassignment under way."""

    replicas: tuple[BrokerId, ...]
    adding_replicas: tuple[BrokerId, ...] = ()
    removing_replicas: tuple[BrokerId, ...] = ()

    @property
    def is_being_reassigned(self) -> bool:
        return bool(self.adding_replicas or self.removing_replicas)

    @property
    def target_replicas(self) -> tuple[BrokerId, ...]:
        """What is left once the reassignment is complete."""
        return tuple(replica for replica in self.replicas if replica not in self.removing_replicas)
