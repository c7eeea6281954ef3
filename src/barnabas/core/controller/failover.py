"""The first thing a new controller does: read everything, tell everybody, continue what was begun.

The order is Kafka's (N2): feature node, notifications that nobody will read any more, the image,
channels, deletions under way, the list of live brokers, replica machine, partition machine,
deletions. Brokers need the list before they can make sense of a LeaderAndIsr.
"""

from barnabas.core.controller import brokers, deletion, topics
from barnabas.core.controller.context import ControllerContext
from barnabas.core.controller.effects import (
    ConditionalWrite,
    OpenChannel,
    Procedure,
    Wanted,
    WriteFailed,
    ZnodeIgnored,
)
from barnabas.core.controller.partition_machine import bring_online
from barnabas.core.controller.partition_states import PartitionState
from barnabas.core.controller.replica_machine import move_replicas
from barnabas.core.controller.replica_states import ReplicaState
from barnabas.core.controller.state_nodes import CHANGED_UNDER_US, read_states
from barnabas.core.controller.znode_trees import remove_trees
from barnabas.core.image.cluster_image import Replica
from barnabas.formats.znodes.features import FEATURE_PATH, FeatureStatus, FinalizedFeatures
from barnabas.formats.znodes.notifications import ISR_CHANGES_PATH, LOG_DIR_EVENTS_PATH
from barnabas.formats.znodes.partition_states import state_path
from barnabas.model.errors import DecodeError
from barnabas.model.partition import LeaderAndIsr
from barnabas.model.znode import Create, GetChildren, GetData, Outcome, SetData, StoreError


def take_over(context: ControllerContext) -> Procedure[None]:
    """Everything between winning the election and the first event."""
    yield from _write_features(context)
    yield from _remove_notifications(context, LOG_DIR_EVENTS_PATH)
    yield from _remove_notifications(context, ISR_CHANGES_PATH)
    yield from _read_image(context)
    for broker_id in context.image.live_broker_ids():
        context.effects.append(OpenChannel(context.image.brokers[broker_id]))
    yield from _resume_queue(context)
    brokers.tell_brokers(context, context.image.live_broker_ids())
    yield from _start_replicas(context)
    yield from _start_partitions(context)
    yield from deletion.resume(context)


def _write_features(context: ControllerContext) -> Procedure[None]:
    """See to it that features are switched on; a cluster on ZooKeeper finalises none itself."""
    while True:
        answer = yield Wanted(reads=(GetData(FEATURE_PATH),))
        write = _feature_write(context, answer.reads[0])
        if write is None:
            return
        settled = yield Wanted(writes=(write,))
        error = settled.writes[0].error
        if error in CHANGED_UNDER_US:
            continue
        if error is not StoreError.OK:
            context.stories.append(WriteFailed(FEATURE_PATH, error))
        return


def _feature_write(context: ControllerContext, found: Outcome) -> ConditionalWrite | None:
    if found.error is StoreError.NO_NODE:
        nothing = FinalizedFeatures(FeatureStatus.ENABLED, {})
        return ConditionalWrite((Create(FEATURE_PATH, nothing.to_bytes()),))
    if not found.is_ok or found.stat is None:
        return None
    try:
        known = FinalizedFeatures.from_bytes(FEATURE_PATH, found.data)
    except DecodeError as problem:
        context.stories.append(ZnodeIgnored(FEATURE_PATH, str(problem)))
        return None
    if known.status is FeatureStatus.ENABLED:
        return None
    enabled = FinalizedFeatures(FeatureStatus.ENABLED, {})
    return ConditionalWrite((SetData(FEATURE_PATH, enabled.to_bytes(), found.stat.version),))


def _remove_notifications(context: ControllerContext, path: str) -> Procedure[None]:
    """Drop what was told to the controller before: everything is read anew anyway."""
    answer = yield Wanted(reads=(GetChildren(path),))
    names = sorted(answer.reads[0].children)
    if names:
        yield from remove_trees(context, [f"{path}/{name}" for name in names])


def _read_image(context: ControllerContext) -> Procedure[None]:
    """Brokers, topics and partition states; what can change without us is watched from now on."""
    context.image.brokers.update((yield from brokers.read_brokers(context)))
    names = yield from topics.list_topics()
    context.image.topics.update((yield from topics.read_topics(context, names)))
    yield from topics.assign_topic_ids(context, sorted(context.image.topics))
    partitions = list(context.image.partitions())
    states = yield from read_states(partitions)
    for partition, state in zip(partitions, states, strict=True):
        if isinstance(state, LeaderAndIsr):
            context.image.partition_states[partition] = state
        elif state is not None:
            context.stories.append(ZnodeIgnored(state_path(*partition), state))


def _resume_queue(context: ControllerContext) -> Procedure[None]:
    """Queue the deletions under way; those with a dead replica wait for it (D6, D11)."""
    marked = yield from deletion.read_markers()
    if not context.settings.delete_topic_enable:
        yield from deletion.drop_markers(context, marked)
        return
    known = [topic for topic in marked if topic in context.image.topics]
    unknown = [topic for topic in marked if topic not in context.image.topics]
    yield from deletion.drop_markers(context, unknown)
    deletion.queue(context, known)
    waiting = [
        topic
        for topic in known
        if not all(
            context.is_online(replica.broker_id, replica.topic_partition)
            for replica in context.image.replicas_of(context.image.partitions_of(topic))
        )
    ]
    deletion.halt(context, waiting, "replicas are offline")


def _start_replicas(context: ControllerContext) -> Procedure[None]:
    """Live replicas are online, dead ones ineligible to be on the safe side; then tell (R22)."""
    online: list[Replica] = []
    offline: list[Replica] = []
    for replica in context.image.replicas_of(context.image.partitions()):
        if context.is_online(replica.broker_id, replica.topic_partition):
            context.replica_states[replica] = ReplicaState.ONLINE
            online.append(replica)
        else:
            context.replica_states[replica] = ReplicaState.DELETION_INELIGIBLE
            offline.append(replica)
    yield from move_replicas(context, online, ReplicaState.ONLINE)
    yield from move_replicas(context, offline, ReplicaState.OFFLINE)


def _start_partitions(context: ControllerContext) -> Procedure[None]:
    """What has a live leader is online; the rest is new or offline, and tried at once (P3)."""
    for partition in context.image.partitions():
        state = context.image.partition_states.get(partition)
        if state is None:
            context.partition_states[partition] = PartitionState.NEW
        elif context.is_online(state.leader, partition):
            context.partition_states[partition] = PartitionState.ONLINE
        else:
            context.partition_states[partition] = PartitionState.OFFLINE
    yield from bring_online(context)
