"""Deletes topics: the queue, its halts and retries, and the steps of one deletion (D4-D15).

A topic is queued by its marker. Its replicas are stopped, then told to delete themselves; once all
have said so, its znodes go. Whatever stands in the way (a broker that is gone, a directory that
fails) makes the topic ineligible until something changes. All of it is derived again from the
markers by a new controller.
"""

from collections.abc import Iterable, Sequence

from barnabas.core.controller.context import ControllerContext
from barnabas.core.controller.effects import (
    DeletionMarkersDropped,
    Procedure,
    TopicDeleted,
    TopicDeletionHalted,
    Wanted,
)
from barnabas.core.controller.partition_machine import move_partitions
from barnabas.core.controller.partition_states import PartitionState
from barnabas.core.controller.replica_machine import move_replicas
from barnabas.core.controller.replica_states import ReplicaState
from barnabas.core.controller.znode_trees import remove_trees
from barnabas.core.image.cluster_image import Replica
from barnabas.formats.znodes.admin import DELETE_TOPICS_PATH, delete_topic_path
from barnabas.formats.znodes.configs import config_path, topic_entity
from barnabas.formats.znodes.topics import topic_path
from barnabas.model.znode import GetChildren


def read_markers() -> Procedure[list[str]]:
    """The topics that are to be deleted, watched from now on."""
    answer = yield Wanted(reads=(GetChildren(DELETE_TOPICS_PATH, watch=True),))
    return sorted(answer.reads[0].children)


def requested(context: ControllerContext) -> Procedure[None]:
    """Markers have come or gone: drop what makes no sense, queue the rest (D4-D6)."""
    marked = yield from read_markers()
    unknown = [topic for topic in marked if topic not in context.image.topics]
    yield from drop_markers(context, unknown)
    known = [topic for topic in marked if topic in context.image.topics]
    if context.settings.delete_topic_enable:
        queue(context, known)
        yield from resume(context)
    else:
        yield from drop_markers(context, known)


def drop_markers(context: ControllerContext, topics: Sequence[str]) -> Procedure[None]:
    """Take back the requests to delete these topics."""
    if topics:
        context.stories.append(DeletionMarkersDropped(tuple(topics)))
        yield from remove_trees(context, [delete_topic_path(topic) for topic in topics])


def queue(context: ControllerContext, topics: Iterable[str]) -> None:
    """Remember that these topics are to be deleted."""
    for topic in topics:
        context.image.topics_to_be_deleted.setdefault(topic)


def halt(context: ControllerContext, topics: Iterable[str], reason: str) -> None:
    """Let queued topics wait; a topic that is not queued has nothing to wait for (D8)."""
    for topic in dict.fromkeys(topics):
        if context.is_queued_for_deletion(topic):
            context.topics_ineligible_for_deletion[topic] = reason
            context.stories.append(TopicDeletionHalted(topic, reason))


def resume_topics(context: ControllerContext, topics: Iterable[str]) -> Procedure[None]:
    """What these topics waited for may be over: try them again (D15)."""
    queued = [topic for topic in topics if context.is_queued_for_deletion(topic)]
    if queued:
        for topic in queued:
            context.topics_ineligible_for_deletion.pop(topic, None)
        yield from resume(context)


def fail_replicas(context: ControllerContext, replicas: Iterable[Replica]) -> Procedure[None]:
    """Replicas could not be deleted: their topics wait (D13, D15)."""
    failed = [replica for replica in replicas if context.is_queued_for_deletion(replica.topic)]
    if failed:
        yield from move_replicas(context, failed, ReplicaState.DELETION_INELIGIBLE)
        halt(context, (replica.topic for replica in failed), "a replica could not be deleted")
        yield from resume(context)


def complete_replicas(context: ControllerContext, replicas: Iterable[Replica]) -> Procedure[None]:
    """Brokers said that these replicas are deleted (D13)."""
    deleted = [replica for replica in replicas if context.is_queued_for_deletion(replica.topic)]
    yield from move_replicas(context, deleted, ReplicaState.DELETION_SUCCESSFUL)
    yield from resume(context)


def resume(context: ControllerContext) -> Procedure[None]:
    """Look at every queued topic: finish it, try its failed replicas again, or start it (D9)."""
    failed: list[Replica] = []
    startable: list[str] = []
    for topic in list(context.image.topics_to_be_deleted):
        replicas = context.image.replicas_of(context.image.partitions_of(topic))
        states = [context.replica_state(replica) for replica in replicas]
        if all(state is ReplicaState.DELETION_SUCCESSFUL for state in states):
            yield from _complete(context, topic)
            continue
        if ReplicaState.DELETION_STARTED in states:
            continue
        failed.extend(context.replicas_in(topic, ReplicaState.DELETION_INELIGIBLE))
        if topic not in context.topics_ineligible_for_deletion:
            startable.append(topic)
    yield from move_replicas(context, failed, ReplicaState.OFFLINE)
    if startable:
        yield from _start(context, startable)


def _start(context: ControllerContext, topics: Sequence[str]) -> Procedure[None]:
    """Take the partitions out of the metadata, then delete the replicas (D10)."""
    unseen = [topic for topic in topics if topic not in context.topics_with_deletion_started]
    partitions = [one for topic in unseen for one in context.image.partitions_of(topic)]
    yield from move_partitions(context, partitions, PartitionState.OFFLINE)
    yield from move_partitions(context, partitions, PartitionState.NON_EXISTENT)
    for topic in unseen:
        context.topics_with_deletion_started.setdefault(topic)
    context.batch.begin()
    context.tell_metadata(
        context.image.live_broker_ids(),
        [partition for topic in topics for partition in context.image.partitions_of(topic)],
    )
    context.flush()
    yield from _delete_replicas(context, topics)


def _delete_replicas(context: ControllerContext, topics: Sequence[str]) -> Procedure[None]:
    """Stop and delete what is live; what is not makes its topic wait (D11)."""
    replicas = [
        replica
        for topic in topics
        for replica in context.image.replicas_of(context.image.partitions_of(topic))
    ]
    dead: list[Replica] = []
    to_delete: list[Replica] = []
    for replica in replicas:
        if not context.is_online(replica.broker_id, replica.topic_partition):
            dead.append(replica)
        elif context.replica_state(replica) is not ReplicaState.DELETION_SUCCESSFUL:
            to_delete.append(replica)
    yield from move_replicas(context, dead, ReplicaState.DELETION_INELIGIBLE)
    yield from move_replicas(context, to_delete, ReplicaState.OFFLINE)
    yield from move_replicas(context, to_delete, ReplicaState.DELETION_STARTED)
    halt(context, (replica.topic for replica in dead), "replicas are offline")


def _complete(context: ControllerContext, topic: str) -> Procedure[None]:
    """All replicas are deleted: forget them, remove the znodes, forget the topic (D14)."""
    deleted = context.replicas_in(topic, ReplicaState.DELETION_SUCCESSFUL)
    yield from move_replicas(context, deleted, ReplicaState.NON_EXISTENT)
    roots = (topic_path(topic), config_path(topic_entity(topic)), delete_topic_path(topic))
    is_removed = yield from remove_trees(context, roots)
    if is_removed:
        context.forget_topic(topic)
        context.stories.append(TopicDeleted(topic))
