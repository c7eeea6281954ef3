"""What the controller wants done: conditional writes with what hangs on them, reads, requests.

A request leaves and a crossing happens only after the write that it hangs on was committed; so
nothing ever has to be undone.
"""

from collections.abc import Generator
from dataclasses import dataclass
from typing import NamedTuple, TypeVar

from barnabas.core.controller.partition_states import PartitionState
from barnabas.core.controller.replica_states import ReplicaState
from barnabas.core.controller.request_batch import ControlRequest, LeaderAndIsrEntry
from barnabas.core.image.cluster_image import (
    ImageChange,
    RegisteredBroker,
    Replica,
)
from barnabas.model.ids import BrokerId, TopicPartition
from barnabas.model.znode import Outcome as StoreOutcome
from barnabas.model.znode import Read, StoreError, Write

# -- stories: what is published ------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ReplicaMoved:
    """A replica crossed an arrow of its table (R23)."""

    replica: Replica
    source: ReplicaState
    target: ReplicaState


@dataclass(frozen=True, slots=True)
class ReplicaMoveRefused:
    """A replica was to cross where there is no arrow; it stays where it is (R6)."""

    replica: Replica
    source: ReplicaState
    target: ReplicaState
    expected: tuple[ReplicaState, ...]
    """The states from which the target can be entered."""


@dataclass(frozen=True, slots=True)
class ReplicaMoveFailed:
    """A replica could not cross although there is an arrow; it stays where it is."""

    replica: Replica
    source: ReplicaState
    target: ReplicaState
    reason: str


@dataclass(frozen=True, slots=True)
class ReplicaAdopted:
    """A replica came online that was in no assignment; it was appended to its partition's (R10)."""

    replica: Replica


@dataclass(frozen=True, slots=True)
class PartitionMoved:
    """A partition crossed an arrow of its table (R23)."""

    partition: TopicPartition
    source: PartitionState
    target: PartitionState


@dataclass(frozen=True, slots=True)
class PartitionMoveRefused:
    """A partition was to cross where there is no arrow; it stays where it is."""

    partition: TopicPartition
    source: PartitionState
    target: PartitionState
    expected: tuple[PartitionState, ...]


@dataclass(frozen=True, slots=True)
class PartitionMoveFailed:
    """A partition could not cross although there is an arrow; it stays where it is."""

    partition: TopicPartition
    source: PartitionState
    target: PartitionState
    reason: str


@dataclass(frozen=True, slots=True)
class RequestsDropped:
    """A broker that is not there was to be told something; it is told all when it comes (Q10)."""

    broker_id: BrokerId


@dataclass(frozen=True, slots=True)
class TopicDeletionHalted:
    """A deletion waits until its cause is gone (D8, D11)."""

    topic: str
    reason: str


@dataclass(frozen=True, slots=True)
class TopicDeleted:
    """The last replica was deleted and the topic's znodes are gone (D14)."""

    topic: str


@dataclass(frozen=True, slots=True)
class DeletionMarkersDropped:
    """Topics were to be deleted that are not there, or deletion is switched off (D5, D6)."""

    topics: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ZnodeIgnored:
    """A znode that somebody else wrote cannot be read; the controller goes on without it."""

    path: str
    reason: str


@dataclass(frozen=True, slots=True)
class WriteFailed:
    """A write outside the two machines was refused and is not tried again."""

    path: str
    error: StoreError


Crossing = ReplicaMoved | PartitionMoved
Story = (
    ReplicaMoved
    | ReplicaMoveRefused
    | ReplicaMoveFailed
    | ReplicaAdopted
    | PartitionMoved
    | PartitionMoveRefused
    | PartitionMoveFailed
    | RequestsDropped
    | TopicDeletionHalted
    | TopicDeleted
    | DeletionMarkersDropped
    | ZnodeIgnored
    | WriteFailed
)

# -- what is asked of the store ------------------------------------------------------------------


class Tell(NamedTuple):
    """A LeaderAndIsr entry and who shall get it."""

    broker_ids: tuple[BrokerId, ...]
    entry: LeaderAndIsrEntry


@dataclass(frozen=True, slots=True)
class ConditionalWrite:
    """Operations that hold together and, under the check of the controller epoch, all or nothing.

    `change` is what the image takes over, `crossing` what happens and `tells` who is told, each
    once the write was committed and not before.
    """

    operations: tuple[Write, ...]
    change: ImageChange | None = None
    crossing: Crossing | None = None
    tells: tuple[Tell, ...] = ()


class WriteResult(NamedTuple):
    """What became of one write: OK, or the reason of the operation that was refused."""

    error: StoreError

    @property
    def is_committed(self) -> bool:
        return self.error is StoreError.OK


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a procedure needs of the store before it can go on: writes or reads, not both."""

    writes: tuple[ConditionalWrite, ...] = ()
    reads: tuple[Read, ...] = ()


@dataclass(frozen=True, slots=True)
class StoreAnswered:
    """The answers to one `Wanted`, in its order."""

    writes: tuple[WriteResult, ...] = ()
    reads: tuple[StoreOutcome, ...] = ()


Returned = TypeVar("Returned")
Procedure = Generator[Wanted, StoreAnswered, Returned]
"""Steps that follow each other, with a round trip to the store between two of them."""

# -- what leaves ---------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class OpenChannel:
    """A broker is there: open a channel, or learn its new end points if it has one."""

    broker: RegisteredBroker


@dataclass(frozen=True, slots=True)
class CloseChannel:
    """A broker is gone, or another process took its id: drop what it was not told yet (Q9)."""

    broker_id: BrokerId


Effect = OpenChannel | CloseChannel | ControlRequest


@dataclass(frozen=True, slots=True)
class Outcome:
    """What one event, or one answer of the store, leads to.

    Effects are released at once and in order; `wanted` is answered by the next `StoreAnswered`.
    Without `wanted` the event is dealt with and the next one may come.
    """

    wanted: Wanted | None
    effects: tuple[Effect, ...]
    stories: tuple[Story, ...]
