"""Partition states in the store: decided on the image, written on condition, read again when lost.

A write that was refused because the znode changed is decided again on what is there now. If what
is there is what was to be written, the write was done and only its answer was lost.
"""

from collections.abc import Iterable
from typing import NamedTuple, Protocol

from barnabas.core.controller.context import ControllerContext
from barnabas.core.controller.effects import ConditionalWrite, Procedure, Wanted
from barnabas.core.image.cluster_image import PartitionStateWritten
from barnabas.formats.znodes import partition_states
from barnabas.model.epochs import INITIAL_PARTITION_EPOCH, PartitionEpoch
from barnabas.model.errors import DecodeError
from barnabas.model.ids import TopicPartition
from barnabas.model.partition import LeaderAndIsr
from barnabas.model.znode import Create, GetData, Outcome, SetData, StoreError, Write

CHANGED_UNDER_US = frozenset(
    {
        StoreError.BAD_VERSION,
        StoreError.NO_NODE,
        StoreError.NODE_EXISTS,
        StoreError.NOT_EMPTY,
        StoreError.CONNECTION_LOSS,
    }
)
"""Refusals after which it makes sense to look again; any other is final."""


class Decider(Protocol):
    """What is to become of the states of a group of partitions."""

    def decide(self, partition: TopicPartition, state: LeaderAndIsr) -> ConditionalWrite | None:
        """The write that this state needs; None when the partition is dealt with without one."""
        ...

    def note_missing(self, partition: TopicPartition) -> None:
        """The znode is not there."""
        ...

    def note_failed(self, partition: TopicPartition, reason: str) -> None:
        """The partition cannot be dealt with."""
        ...


class StateWrite(NamedTuple):
    """The operation on one state znode, and the state it leaves behind."""

    operations: tuple[Write, ...]
    change: PartitionStateWritten


def set_state(partition: TopicPartition, known: LeaderAndIsr, wanted: LeaderAndIsr) -> StateWrite:
    """Replace a state on condition that the known one is still there."""
    path = partition_states.state_path(partition.topic, partition.partition)
    data = partition_states.to_bytes(wanted)
    written = wanted.at_version(PartitionEpoch(known.partition_epoch + 1))
    return StateWrite(
        (SetData(path, data, known.partition_epoch),), PartitionStateWritten(partition, written)
    )


def create_state(partition: TopicPartition, wanted: LeaderAndIsr) -> StateWrite:
    """Write the first state of a partition."""
    path = partition_states.state_path(partition.topic, partition.partition)
    written = wanted.at_version(INITIAL_PARTITION_EPOCH)
    return StateWrite(
        (Create(path, partition_states.to_bytes(wanted)),),
        PartitionStateWritten(partition, written),
    )


def write_states(
    context: ControllerContext, partitions: Iterable[TopicPartition], decider: Decider
) -> Procedure[None]:
    """Decide and write until every partition is settled one way or the other."""
    pending = list(partitions)
    while pending:
        writes: dict[TopicPartition, ConditionalWrite] = {}
        for partition in pending:
            write = decider.decide(partition, context.image.partition_states[partition])
            if write is not None:
                writes[partition] = write
        if not writes:
            return
        answer = yield Wanted(writes=tuple(writes.values()))
        lost: list[TopicPartition] = []
        for (partition, write), result in zip(writes.items(), answer.writes, strict=True):
            if result.is_committed:
                context.apply(write)
            elif result.error in CHANGED_UNDER_US:
                lost.append(partition)
            else:
                decider.note_failed(partition, f"the store refused its state: {result.error.name}")
        pending = yield from _look_again(context, lost, writes, decider)


def _look_again(
    context: ControllerContext,
    lost: list[TopicPartition],
    writes: dict[TopicPartition, ConditionalWrite],
    decider: Decider,
) -> Procedure[list[TopicPartition]]:
    """Read the states of lost writes; the partitions that are to be decided again."""
    if not lost:
        return []
    states = yield from read_states(lost)
    pending: list[TopicPartition] = []
    for partition, found in zip(lost, states, strict=True):
        write = writes[partition]
        if isinstance(found, str):
            decider.note_failed(partition, found)
        elif found is None:
            decider.note_missing(partition)
        elif found.controller_epoch > context.image.controller_epoch:
            decider.note_failed(partition, written_by_another(found))
        elif write.change == PartitionStateWritten(partition, found):
            context.apply(write)
        else:
            context.image.partition_states[partition] = found
            pending.append(partition)
    return pending


def written_by_another(state: LeaderAndIsr) -> str:
    """Why a state of a later controller is left alone (R16)."""
    return f"its state was written by the controller of epoch {state.controller_epoch}"


def read_states(
    partitions: Iterable[TopicPartition],
) -> Procedure[list[LeaderAndIsr | str | None]]:
    """The states in the store, None where there is none, a text where it cannot be read."""
    reads = tuple(
        GetData(partition_states.state_path(partition.topic, partition.partition))
        for partition in partitions
    )
    if not reads:
        return []
    answer = yield Wanted(reads=reads)
    return [
        _state_of(read.path, outcome) for read, outcome in zip(reads, answer.reads, strict=True)
    ]


def _state_of(path: str, outcome: Outcome) -> LeaderAndIsr | str | None:
    if outcome.error is StoreError.NO_NODE:
        return None
    if not outcome.is_ok or outcome.stat is None:
        return f"its state cannot be read: {outcome.error.name}"
    try:
        return partition_states.from_bytes(path, outcome.data, outcome.stat.version)
    except DecodeError as problem:
        return f"its state cannot be read: {problem}"
