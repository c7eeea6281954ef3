"""The in-sync replicas of a led partition: committed, or a change to them under way.

A change is proposed by the leader and committed by the controller. Between the two nobody knows
whether it holds, so what must be safe either way counts the larger set: the maximal isr.
"""

from dataclasses import dataclass

from barnabas.model.epochs import LeaderEpoch, PartitionEpoch
from barnabas.model.ids import BrokerId


@dataclass(frozen=True, slots=True)
class CommittedIsr:
    """What the controller last decided, and nothing else."""

    isr: tuple[BrokerId, ...]

    @property
    def maximal_isr(self) -> tuple[BrokerId, ...]:
        return self.isr


@dataclass(frozen=True, slots=True)
class PendingExpansion:
    """One follower is proposed as in sync; it counts already, for it may be one at any moment."""

    new_replica: BrokerId
    committed: CommittedIsr

    @property
    def isr(self) -> tuple[BrokerId, ...]:
        return self.committed.isr

    @property
    def maximal_isr(self) -> tuple[BrokerId, ...]:
        return (*self.committed.isr, self.new_replica)


@dataclass(frozen=True, slots=True)
class PendingShrink:
    """Followers are proposed as out of sync; they count still, for they may yet be elected."""

    out_of_sync: tuple[BrokerId, ...]
    committed: CommittedIsr

    @property
    def isr(self) -> tuple[BrokerId, ...]:
        return self.committed.isr

    @property
    def maximal_isr(self) -> tuple[BrokerId, ...]:
        return self.committed.isr


IsrState = CommittedIsr | PendingExpansion | PendingShrink


@dataclass(frozen=True, slots=True)
class IsrChange:
    """What a leader asks of the controller: this isr, if the partition is still at these epochs."""

    isr: tuple[BrokerId, ...]
    leader_epoch: LeaderEpoch
    partition_epoch: PartitionEpoch
