"""Moves partitions along the arrows of their table: first leaders, elections, losses.

`move_partitions` goes through a whole group and flushes once. Only the way to ONLINE needs the
store: a NEW partition gets its first state, any other a new leader.
"""

from collections.abc import Iterable, Mapping, Sequence

from barnabas.core.controller.context import ControllerContext
from barnabas.core.controller.effects import (
    ConditionalWrite,
    PartitionMoved,
    Procedure,
    Tell,
    Wanted,
    WriteResult,
)
from barnabas.core.controller.elections import (
    elect_offline_leader,
    has_live_in_sync_replica,
    initial_state,
)
from barnabas.core.controller.partition_states import PartitionState
from barnabas.core.controller.state_nodes import (
    CHANGED_UNDER_US,
    StateWrite,
    create_state,
    read_states,
    set_state,
    write_states,
)
from barnabas.core.controller.topic_configs import read_unclean_election_enabled
from barnabas.core.image.cluster_image import PartitionStateWritten
from barnabas.formats.znodes.topics import partition_path, partitions_path
from barnabas.model.ids import TopicPartition
from barnabas.model.partition import LeaderAndIsr
from barnabas.model.znode import Create, StoreError


def move_partitions(
    context: ControllerContext, partitions: Iterable[TopicPartition], target: PartitionState
) -> Procedure[list[TopicPartition]]:
    """Move each partition to `target` where its table allows it.

    The result is the partitions that had a leader before and got another: the elections that
    succeeded. First leaders do not count, as in Kafka.
    """
    wanted = sorted(partitions)
    if not wanted:
        return []
    context.batch.begin()
    valid = context.valid_partitions(wanted, target)
    elected: list[TopicPartition] = []
    if target is PartitionState.ONLINE:
        new = [one for one in valid if context.partition_state(one) is PartitionState.NEW]
        leaderless = [
            one for one in valid if context.partition_state(one) is not PartitionState.NEW
        ]
        yield from _initialise(context, new)
        elected = yield from _elect(context, leaderless)
    else:
        for partition in valid:
            context.cross_partition(partition, target)
    context.flush()
    return elected


def bring_online(
    context: ControllerContext, topics: Iterable[str] | None = None
) -> Procedure[list[TopicPartition]]:
    """Try again for every partition without a leader, of all topics or of these (P3)."""
    names = sorted(context.image.topics) if topics is None else list(topics)
    waiting = [
        partition
        for name in names
        if not context.is_queued_for_deletion(name)
        for partition in context.image.partitions_of(name)
        if context.partition_state(partition) in (PartitionState.OFFLINE, PartitionState.NEW)
    ]
    return (yield from move_partitions(context, waiting, PartitionState.ONLINE))


# -- first leaders -------------------------------------------------------------------------------


def _initialise(
    context: ControllerContext, partitions: Sequence[TopicPartition]
) -> Procedure[None]:
    """Create the states of partitions that never had one, with their parents (P2-P5)."""
    pending = list(partitions)
    while pending:
        states: dict[TopicPartition, ConditionalWrite] = {}
        for partition in pending:
            write = _first_state(context, partition)
            if write is not None:
                states[partition] = write
        if not states:
            return
        containers = _containers(context, states)
        answer = yield Wanted(writes=(*containers, *states.values()))
        above, results = answer.writes[: len(containers)], answer.writes[len(containers) :]
        was_cut = any(result.error is StoreError.CONNECTION_LOSS for result in (*above, *results))
        pending = yield from _settle_first_states(context, states, results, was_cut)


def _first_state(context: ControllerContext, partition: TopicPartition) -> ConditionalWrite | None:
    state = initial_state(context.live_replicas(partition), context.image.controller_epoch)
    if state is None:
        replicas = context.image.assignment(partition).replicas
        context.fail_partition(
            partition, PartitionState.ONLINE, f"none of its replicas {list(replicas)} is live"
        )
        return None
    write = create_state(partition, state)
    written = write.change.state
    return ConditionalWrite(
        write.operations,
        write.change,
        PartitionMoved(partition, PartitionState.NEW, PartitionState.ONLINE),
        (Tell(written.isr, context.leader_and_isr_entry(partition, written, is_new=True)),),
    )


def _containers(
    context: ControllerContext, partitions: Iterable[TopicPartition]
) -> list[ConditionalWrite]:
    """The nodes above the states: first those of the topics, then those of the partitions (P4).

    One that is there already is as good: what counts is whether the state can be created.
    """
    wanted = list(partitions)
    topics = [
        topic
        for topic in dict.fromkeys(partition.topic for partition in wanted)
        if not _has_states(context, topic)
    ]
    return [
        *(ConditionalWrite((Create(partitions_path(topic)),)) for topic in topics),
        *(ConditionalWrite((Create(partition_path(*partition)),)) for partition in wanted),
    ]


def _has_states(context: ControllerContext, topic: str) -> bool:
    states = context.image.partition_states
    return any(partition in states for partition in context.image.partitions_of(topic))


def _settle_first_states(
    context: ControllerContext,
    states: Mapping[TopicPartition, ConditionalWrite],
    results: Sequence[WriteResult],
    was_cut: bool,
) -> Procedure[list[TopicPartition]]:
    """Take over what was created; the partitions whose creation was lost without a trace.

    When the link was cut between the writes, a state may also lack the nodes above it.
    """
    lost: dict[TopicPartition, StoreError] = {}
    for (partition, write), result in zip(states.items(), results, strict=True):
        if result.is_committed:
            context.apply(write)
        elif result.error in CHANGED_UNDER_US:
            lost[partition] = result.error
        else:
            _fail(context, partition, f"the store refused its state: {result.error.name}")
    found = yield from read_states(lost)
    pending: list[TopicPartition] = []
    for (partition, error), state in zip(lost.items(), found, strict=True):
        if isinstance(state, LeaderAndIsr) and states[partition].change == PartitionStateWritten(
            partition, state
        ):
            context.apply(states[partition])
        elif isinstance(state, LeaderAndIsr):
            _fail(context, partition, "it has a state that this controller did not know of")
        elif state is None and was_cut:
            pending.append(partition)
        else:
            _fail(context, partition, state or f"the store refused its state: {error.name}")
    return pending


def _fail(context: ControllerContext, partition: TopicPartition, reason: str) -> None:
    context.fail_partition(partition, PartitionState.ONLINE, reason)


# -- elections -----------------------------------------------------------------------------------


def _elect(
    context: ControllerContext, partitions: Sequence[TopicPartition]
) -> Procedure[list[TopicPartition]]:
    """Elect leaders for partitions that had one; those that got one."""
    states = context.image.partition_states
    known = [partition for partition in partitions if partition in states]
    for partition in partitions:
        if partition not in states:
            _fail(context, partition, "its leader and isr are not known")
    without_clean_choice = dict.fromkeys(
        partition.topic
        for partition in known
        if not has_live_in_sync_replica(states[partition], context.live_replicas(partition))
    )
    unclean = yield from read_unclean_election_enabled(context, without_clean_choice)
    epochs = {partition: states[partition].leader_epoch for partition in known}
    yield from write_states(context, known, _OfflineElection(context, unclean))
    return [
        one
        for one in known
        if states[one].leader_epoch > epochs[one] and context.is_online(states[one].leader, one)
    ]


class _OfflineElection:
    """Elects a leader for a partition that lost its own, as often as its state has changed."""

    def __init__(self, context: ControllerContext, unclean: Mapping[str, bool]) -> None:
        self._context = context
        self._unclean = unclean

    def decide(self, partition: TopicPartition, state: LeaderAndIsr) -> ConditionalWrite | None:
        context = self._context
        election = elect_offline_leader(
            state,
            context.live_replicas(partition),
            context.image.controller_epoch,
            is_unclean_allowed=self._unclean.get(partition.topic, False),
        )
        if election is None:
            self.note_failed(partition, "no live replica may lead it")
            return None
        written: StateWrite = set_state(partition, state, election.state)
        entry = context.leader_and_isr_entry(partition, written.change.state, is_new=False)
        return ConditionalWrite(
            written.operations,
            written.change,
            PartitionMoved(partition, context.partition_state(partition), PartitionState.ONLINE),
            (Tell(election.recipients, entry),),
        )

    def note_missing(self, partition: TopicPartition) -> None:
        self.note_failed(partition, "it has no state in the store")

    def note_failed(self, partition: TopicPartition, reason: str) -> None:
        _fail(self._context, partition, reason)
