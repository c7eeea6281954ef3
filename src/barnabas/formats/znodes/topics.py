"""/brokers/topics: which replicas each partition has, and a reassignment under way."""

from collections.abc import Mapping
from dataclasses import dataclass

from barnabas.formats.znodes.json_fields import INT32_MAX, JsonObject, parse_object, to_json
from barnabas.formats.znodes.uuids import uuid_from_text, uuid_text
from barnabas.model.errors import DecodeError
from barnabas.model.ids import NO_TOPIC_ID, BrokerId, TopicId
from barnabas.model.partition import ReplicaAssignment

TOPICS_PATH = "/brokers/topics"
ASSIGNMENT_VERSION = 3


@dataclass(frozen=True, slots=True)
class TopicAssignment:
    """A topic's id and the replicas of its partitions; read at any version, written at 3.

    Version 2 has no topic id, version 1 no reassignment either: `NO_TOPIC_ID` stands for none.
    """

    topic_id: TopicId
    partitions: Mapping[int, ReplicaAssignment]

    def to_bytes(self) -> bytes:
        ordered = sorted(self.partitions.items())
        members: dict[str, object] = {
            "partitions": {str(number): replicas.replicas for number, replicas in ordered}
        }
        if self.topic_id != NO_TOPIC_ID:
            members["topic_id"] = uuid_text(self.topic_id)
        members["adding_replicas"] = {
            str(number): replicas.adding_replicas
            for number, replicas in ordered
            if replicas.adding_replicas
        }
        members["removing_replicas"] = {
            str(number): replicas.removing_replicas
            for number, replicas in ordered
            if replicas.removing_replicas
        }
        members["version"] = ASSIGNMENT_VERSION
        return to_json(members)

    @classmethod
    def from_bytes(cls, path: str, data: bytes | None) -> "TopicAssignment":
        found = parse_object(path, data)
        topic_id = NO_TOPIC_ID
        if "topic_id" in found:
            topic_id = TopicId(uuid_from_text(f"{path}: topic_id", found.text("topic_id")))
        replicas = _replicas_by_partition(found, "partitions")
        adding = _replicas_by_partition(found, "adding_replicas")
        removing = _replicas_by_partition(found, "removing_replicas")
        partitions = {
            number: ReplicaAssignment(
                replicas[number], adding.get(number, ()), removing.get(number, ())
            )
            for number in sorted(replicas)
        }
        return cls(topic_id, partitions)


def topic_path(topic: str) -> str:
    return f"{TOPICS_PATH}/{topic}"


def partitions_path(topic: str) -> str:
    return f"{TOPICS_PATH}/{topic}/partitions"


def partition_path(topic: str, partition: int) -> str:
    return f"{TOPICS_PATH}/{topic}/partitions/{partition}"


def _replicas_by_partition(found: JsonObject, key: str) -> dict[int, tuple[BrokerId, ...]]:
    if key not in found:
        return {}
    by_partition = found.object(key)
    replicas: dict[int, tuple[BrokerId, ...]] = {}
    for text in by_partition.names():
        number = int(text) if text.isascii() and text.isdigit() and len(text) <= 10 else -1
        if not 0 <= number <= INT32_MAX:
            raise DecodeError(
                f"{by_partition.where}: found {text!r}, expected a partition's number"
            )
        replicas[number] = tuple(BrokerId(replica) for replica in by_partition.integers(text))
    return replicas
