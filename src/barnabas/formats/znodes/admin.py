"""/admin: what tools and brokers ask of the controller by writing a node."""

from collections.abc import Mapping, Sequence

from barnabas.formats.znodes.json_fields import JsonObject, parse_object, to_json
from barnabas.model.ids import BrokerId, TopicPartition

DELETE_TOPICS_PATH = "/admin/delete_topics"
REASSIGN_PARTITIONS_PATH = "/admin/reassign_partitions"
PREFERRED_REPLICA_ELECTION_PATH = "/admin/preferred_replica_election"

_VERSION = 1


def delete_topic_path(topic: str) -> str:
    """The node, without data, that asks for a topic's deletion."""
    return f"{DELETE_TOPICS_PATH}/{topic}"


def reassignments_to_bytes(
    targets: Mapping[TopicPartition, Sequence[BrokerId]],
) -> bytes:
    """The replicas that each partition shall have."""
    partitions = [
        {"topic": named.topic, "partition": named.partition, "replicas": list(replicas)}
        for named, replicas in targets.items()
    ]
    return to_json({"version": _VERSION, "partitions": partitions})


def reassignments_from_bytes(
    path: str, data: bytes | None
) -> dict[TopicPartition, tuple[BrokerId, ...]]:
    """The replicas that each partition shall have; of two entries for one the last counts."""
    entries = parse_object(path, data).objects("partitions")
    return {
        _partition(entry): tuple(BrokerId(replica) for replica in entry.integers("replicas"))
        for entry in entries
    }


def partitions_to_bytes(partitions: Sequence[TopicPartition]) -> bytes:
    """A set of partitions, as preferred election and isr notifications hold it."""
    members = [{"topic": named.topic, "partition": named.partition} for named in partitions]
    return to_json({"version": _VERSION, "partitions": members})


def partitions_from_bytes(path: str, data: bytes | None) -> tuple[TopicPartition, ...]:
    """The partitions in the order in which they stand, each once."""
    entries = parse_object(path, data).objects("partitions")
    return tuple(dict.fromkeys(_partition(entry) for entry in entries))


def _partition(entry: JsonObject) -> TopicPartition:
    return TopicPartition(entry.text("topic"), entry.integer("partition"))
