"""Topics come, grow and vanish: their partitions are created and brought online (C15, M8, M9)."""

from collections.abc import Iterable, Sequence

from barnabas.core.controller.context import ControllerContext
from barnabas.core.controller.effects import (
    ConditionalWrite,
    Procedure,
    Wanted,
    WriteFailed,
    ZnodeIgnored,
)
from barnabas.core.controller.partition_machine import move_partitions
from barnabas.core.controller.partition_states import PartitionState
from barnabas.core.controller.replica_machine import move_replicas
from barnabas.core.controller.replica_states import ReplicaState
from barnabas.core.controller.state_nodes import CHANGED_UNDER_US
from barnabas.core.image.cluster_image import TopicImage, TopicWritten
from barnabas.formats.znodes.topics import (
    TOPICS_PATH,
    TopicAssignment,
    partitions_path,
    topic_path,
)
from barnabas.model.errors import DecodeError
from barnabas.model.ids import NO_TOPIC_ID, TopicPartition
from barnabas.model.znode import GetChildren, GetData, Outcome, SetData, StoreError


def changed(context: ControllerContext) -> Procedure[None]:
    """Topics have come or gone: forget the latter, create the partitions of the former (C15)."""
    names = yield from list_topics()
    there = frozenset(names)
    gone = [topic for topic in sorted(context.image.topics) if topic not in there]
    new = [topic for topic in names if topic not in context.image.topics]
    found = yield from read_topics(context, new)
    for topic in gone:
        context.forget_topic(topic)
    context.image.topics.update(found)
    yield from assign_topic_ids(context, found)
    created = [one for topic in sorted(found) for one in context.image.partitions_of(topic)]
    yield from create_partitions(context, created)


def list_topics() -> Procedure[list[str]]:
    """The names of all topics; their list is watched from now on."""
    answer = yield Wanted(reads=(GetChildren(TOPICS_PATH, watch=True),))
    return sorted(answer.reads[0].children)


def read_topics(
    context: ControllerContext, topics: Sequence[str]
) -> Procedure[dict[str, TopicImage]]:
    """What the znodes of these topics hold; each is watched from now on."""
    if not topics:
        return {}
    answer = yield Wanted(reads=tuple(GetData(topic_path(one), watch=True) for one in topics))
    found: dict[str, TopicImage] = {}
    for topic, outcome in zip(topics, answer.reads, strict=True):
        image = _topic_image(context, topic, outcome)
        if image is not None:
            found[topic] = image
    return found


def _topic_image(context: ControllerContext, topic: str, outcome: Outcome) -> TopicImage | None:
    """A topic's znode; None when it is gone again or makes no sense."""
    path = topic_path(topic)
    if outcome.error is StoreError.NO_NODE:
        return None
    if not outcome.is_ok or outcome.stat is None:
        context.stories.append(ZnodeIgnored(path, outcome.error.name))
        return None
    try:
        assignment = TopicAssignment.from_bytes(path, outcome.data)
    except DecodeError as problem:
        context.stories.append(ZnodeIgnored(path, str(problem)))
        return None
    return TopicImage(assignment.topic_id, outcome.stat.version, dict(assignment.partitions))


def assign_topic_ids(context: ControllerContext, topics: Iterable[str]) -> Procedure[None]:
    """Give an id to each of these topics that an older version created without one."""
    pending = [topic for topic in topics if context.image.topic_id(topic) == NO_TOPIC_ID]
    while pending:
        writes = [_id_write(context, topic) for topic in pending]
        answer = yield Wanted(writes=tuple(writes))
        lost: list[str] = []
        for topic, write, result in zip(pending, writes, answer.writes, strict=True):
            if result.is_committed:
                context.apply(write)
            elif result.error in CHANGED_UNDER_US:
                lost.append(topic)
            else:
                context.stories.append(WriteFailed(topic_path(topic), result.error))
        found = yield from read_topics(context, lost)
        context.image.topics.update(found)
        pending = [topic for topic in found if context.image.topic_id(topic) == NO_TOPIC_ID]


def _id_write(context: ControllerContext, topic: str) -> ConditionalWrite:
    known = context.image.topics[topic]
    topic_id = context.new_topic_id()
    content = TopicAssignment(topic_id, known.assignments)
    return ConditionalWrite(
        (SetData(topic_path(topic), content.to_bytes(), known.version),),
        TopicWritten(topic, topic_id, known.version + 1, known.assignments),
    )


def create_partitions(
    context: ControllerContext, partitions: Sequence[TopicPartition]
) -> Procedure[None]:
    """Take new partitions and their replicas through NEW to ONLINE (P6)."""
    yield from move_partitions(context, partitions, PartitionState.NEW)
    yield from move_replicas(context, context.image.replicas_of(partitions), ReplicaState.NEW)
    yield from move_partitions(context, partitions, PartitionState.ONLINE)
    yield from move_replicas(context, context.image.replicas_of(partitions), ReplicaState.ONLINE)


def modified(context: ControllerContext, topic: str) -> Procedure[None]:
    """A topic's znode was written: create the partitions that are new, or take them back (M8)."""
    known = context.image.topics.get(topic)
    if known is None:
        return
    found = (yield from read_topics(context, [topic])).get(topic)
    if found is None:
        return
    known.version = found.version
    added = [
        TopicPartition(topic, number)
        for number in sorted(found.assignments)
        if not context.image.assignment(TopicPartition(topic, number)).replicas
    ]
    if context.is_queued_for_deletion(topic):
        if added:
            yield from _restore(context, topic, found)
        return
    for partition in added:
        context.image.set_assignment(partition, found.assignments[partition.partition])
    yield from create_partitions(context, added)


def _restore(context: ControllerContext, topic: str, found: TopicImage) -> Procedure[None]:
    """Undo the growth of a topic that is being deleted: its deletion knows nothing of it (M9)."""
    answer = yield Wanted(reads=(GetChildren(partitions_path(topic)),))
    existing = frozenset(answer.reads[0].children)
    known = context.image.topics[topic]
    kept = {
        number: known.assignments[number]
        for number in sorted(found.assignments)
        if str(number) in existing and number in known.assignments
    }
    content = TopicAssignment(known.topic_id, kept)
    write = ConditionalWrite((SetData(topic_path(topic), content.to_bytes(), found.version),))
    settled = yield Wanted(writes=(write,))
    (result,) = settled.writes
    # Whether it was written or somebody else was quicker: the znode's watch tells of it.
    if not result.is_committed and result.error not in CHANGED_UNDER_US:
        context.stories.append(WriteFailed(topic_path(topic), result.error))
