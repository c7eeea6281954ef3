"""Brokers come, go and bounce: what happens to their replicas, and who is told (N12, Q7)."""

from collections.abc import Iterable, Mapping, Sequence

from barnabas.core.controller import deletion
from barnabas.core.controller.context import ControllerContext
from barnabas.core.controller.effects import (
    CloseChannel,
    OpenChannel,
    Procedure,
    Wanted,
    ZnodeIgnored,
)
from barnabas.core.controller.partition_machine import bring_online, move_partitions
from barnabas.core.controller.partition_states import PartitionState
from barnabas.core.controller.replica_machine import move_replicas
from barnabas.core.controller.replica_states import ReplicaState
from barnabas.core.image.cluster_image import RegisteredBroker, Replica
from barnabas.formats.znodes.brokers import BROKER_IDS_PATH, BrokerRegistration, broker_path
from barnabas.model.epochs import BrokerEpoch
from barnabas.model.error_codes import ErrorCode
from barnabas.model.errors import DecodeError
from barnabas.model.ids import BrokerId, TopicPartition
from barnabas.model.znode import GetChildren, GetData, Outcome, StoreError


def read_brokers(context: ControllerContext) -> Procedure[dict[BrokerId, RegisteredBroker]]:
    """All registered brokers by id; they and their list are watched from now on."""
    listed = yield Wanted(reads=(GetChildren(BROKER_IDS_PATH, watch=True),))
    ids = sorted(BrokerId(int(name)) for name in listed.reads[0].children if name.isdecimal())
    if not ids:
        return {}
    answer = yield Wanted(reads=tuple(GetData(broker_path(one), watch=True) for one in ids))
    found: dict[BrokerId, RegisteredBroker] = {}
    for broker_id, outcome in zip(ids, answer.reads, strict=True):
        broker = _registered(context, broker_id, outcome)
        if broker is not None:
            found[broker_id] = broker
    return found


def _registered(
    context: ControllerContext, broker_id: BrokerId, outcome: Outcome
) -> RegisteredBroker | None:
    """The broker behind a registration; None when it is gone again or makes no sense."""
    path = broker_path(broker_id)
    if outcome.error is StoreError.NO_NODE:
        return None
    if not outcome.is_ok or outcome.stat is None:
        context.stories.append(ZnodeIgnored(path, outcome.error.name))
        return None
    try:
        registration = BrokerRegistration.from_bytes(path, outcome.data)
    except DecodeError as problem:
        context.stories.append(ZnodeIgnored(path, str(problem)))
        return None
    return RegisteredBroker(broker_id, BrokerEpoch(outcome.stat.czxid), registration)


def changed(context: ControllerContext) -> Procedure[None]:
    """Compare the registrations with the brokers known so far, and deal with each difference."""
    now = yield from read_brokers(context)
    before = context.image.brokers
    started = [broker for one, broker in now.items() if one not in before]
    bounced = [
        broker for one, broker in now.items() if one in before and broker.epoch > before[one].epoch
    ]
    gone = [one for one in sorted(before) if one not in now]
    for broker in started:
        context.effects.append(OpenChannel(broker))
    for broker in bounced:
        context.effects.append(CloseChannel(broker.broker_id))
        context.effects.append(OpenChannel(broker))
    for broker_id in gone:
        context.effects.append(CloseChannel(broker_id))
    if started:
        yield from _start(context, started)
    if bounced:
        yield from _fail(context, [broker.broker_id for broker in bounced])
        yield from _start(context, bounced)
    if gone:
        yield from _fail(context, gone)


def modified(context: ControllerContext, broker_id: BrokerId) -> Procedure[None]:
    """A broker wrote its registration anew: tell everybody where it listens now."""
    answer = yield Wanted(reads=(GetData(broker_path(broker_id), watch=True),))
    known = context.image.brokers.get(broker_id)
    found = _registered(context, broker_id, answer.reads[0])
    if known is None or found is None or found.epoch != known.epoch:
        return
    before, after = known.registration, found.registration
    if before.listeners != after.listeners or before.features != after.features:
        context.image.brokers[broker_id] = found
        context.effects.append(OpenChannel(found))
        tell_brokers(context, context.image.live_broker_ids())


def tell_brokers(
    context: ControllerContext,
    broker_ids: Iterable[BrokerId],
    partitions: Iterable[TopicPartition] = (),
) -> None:
    """Send these brokers the list of live brokers, and the state of these partitions with it."""
    context.batch.begin()
    context.tell_metadata(broker_ids, partitions)
    context.flush()


def _start(context: ControllerContext, brokers: Sequence[RegisteredBroker]) -> Procedure[None]:
    """Brokers are there: the others learn of them, they learn all, their replicas come online."""
    existing = context.image.live_broker_ids()
    for broker in brokers:
        context.image.brokers[broker.broker_id] = broker
    ids = [broker.broker_id for broker in brokers]
    tell_brokers(context, existing)
    tell_brokers(
        context,
        ids,
        [
            partition
            for partition in context.image.partitions()
            if not context.is_queued_for_deletion(partition.topic)
        ],
    )
    replicas = context.image.replicas_on(ids)
    yield from move_replicas(context, replicas, ReplicaState.ONLINE)
    yield from bring_online(context)
    topics = dict.fromkeys(replica.topic for replica in replicas)
    yield from deletion.resume_topics(context, topics)


def _fail(context: ControllerContext, broker_ids: Sequence[BrokerId]) -> Procedure[None]:
    """Brokers are gone: their replicas go offline."""
    for broker_id in broker_ids:
        context.replicas_on_offline_dirs.pop(broker_id, None)
        context.image.brokers.pop(broker_id, None)
    yield from replicas_lost(context, context.image.replicas_on(broker_ids))


def replicas_lost(context: ControllerContext, replicas: Sequence[Replica]) -> Procedure[None]:
    """Elect new leaders for what they led, then take them offline; their deletions have failed."""
    deleting = [one for one in replicas if context.is_queued_for_deletion(one.topic)]
    others = [one for one in replicas if not context.is_queued_for_deletion(one.topic)]
    leaderless = [
        partition
        for partition, state in context.image.partition_states.items()
        if not context.is_online(state.leader, partition)
        and not context.is_queued_for_deletion(partition.topic)
    ]
    yield from move_partitions(context, leaderless, PartitionState.OFFLINE)
    elected = yield from bring_online(context)
    yield from move_replicas(context, others, ReplicaState.OFFLINE)
    yield from deletion.fail_replicas(context, deleting)
    if not others and not elected:
        tell_brokers(context, context.image.live_broker_ids())


def leader_and_isr_answered(
    context: ControllerContext,
    broker_id: BrokerId,
    partition_errors: Mapping[TopicPartition, ErrorCode],
) -> Procedure[None]:
    """A broker answered for its replicas: those on failed directories go offline (Q7).

    Any other error of a partition is of no consequence: STALE_CONTROLLER_EPOCH says that the
    broker knew as much already.
    """
    if broker_id not in context.image.brokers:
        return
    offline = context.replicas_on_offline_dirs.setdefault(broker_id, {})
    lost: list[TopicPartition] = []
    for partition, error in partition_errors.items():
        if error is ErrorCode.NONE:
            offline.pop(partition, None)
        elif error is ErrorCode.KAFKA_STORAGE_ERROR and partition not in offline:
            offline[partition] = None
            lost.append(partition)
    if lost:
        yield from replicas_lost(context, [Replica(*one, broker_id) for one in sorted(lost)])


def stop_replica_answered(
    context: ControllerContext,
    broker_id: BrokerId,
    deletion_errors: Mapping[TopicPartition, ErrorCode],
) -> Procedure[None]:
    """A broker answered for replicas that it was to delete with their topic (Q8, D13)."""
    ours = {
        partition: error
        for partition, error in deletion_errors.items()
        if partition.topic in context.topics_with_deletion_started
    }
    failed = [Replica(*one, broker_id) for one in sorted(ours) if ours[one] is not ErrorCode.NONE]
    deleted = [Replica(*one, broker_id) for one in sorted(ours) if ours[one] is ErrorCode.NONE]
    yield from deletion.fail_replicas(context, failed)
    if deleted:
        yield from deletion.complete_replicas(context, deleted)
