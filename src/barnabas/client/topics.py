"""Topics as an administrator asks for them: create, grow, delete, cut."""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from barnabas.client.errors import code_of, describe
from barnabas.client.routing import Build, Cluster
from barnabas.client.steps import Operation, Response
from barnabas.formats.wire.api_keys import ApiKey
from barnabas.formats.wire.catalog import Message
from barnabas.formats.wire.generated.create_partitions import (
    CreatePartitionsAssignment,
    CreatePartitionsRequest,
    CreatePartitionsTopic,
)
from barnabas.formats.wire.generated.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from barnabas.formats.wire.generated.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from barnabas.formats.wire.generated.delete_topics import DeleteTopicsRequest, DeleteTopicState
from barnabas.model.error_codes import ErrorCode
from barnabas.model.ids import BrokerId, TopicPartition

BROKER_DEFAULT = -1


class Verdict(NamedTuple):
    """What became of one item of a request."""

    code: ErrorCode
    message: str

    @property
    def is_ok(self) -> bool:
        return self.code is ErrorCode.NONE


class NewTopic(NamedTuple):
    """A topic to be made; -1 leaves a number to the broker."""

    name: str
    partitions: int = BROKER_DEFAULT
    replication_factor: int = BROKER_DEFAULT
    assignments: Sequence[Sequence[BrokerId]] = ()
    """Replicas of each partition; with them the numbers stay -1."""
    configs: Mapping[str, str] = {}


def verdict_of(number: int, message: str | None) -> Verdict:
    """The verdict that a code and a message from the wire are."""
    code = code_of(number)
    if message is None:
        message = "" if code is ErrorCode.NONE else describe(code)
    return Verdict(code, message)


def create_topics(
    cluster: Cluster, topics: Sequence[NewTopic], *, validate_only: bool = False
) -> Operation[dict[str, Verdict]]:
    """Make topics; each has its own verdict."""

    def build(version: int) -> Message:
        request = CreateTopicsRequest(
            topics=[
                CreatableTopic(
                    name=topic.name,
                    num_partitions=topic.partitions,
                    replication_factor=topic.replication_factor,
                    assignments=[
                        CreatableReplicaAssignment(partition_index=index, broker_ids=list(ids))
                        for index, ids in enumerate(topic.assignments)
                    ],
                    configs=[
                        CreatableTopicConfig(name=name, value=value)
                        for name, value in topic.configs.items()
                    ],
                )
                for topic in topics
            ],
            timeout_ms=cluster.policy.request_timeout_ms,
        )
        if validate_only:
            request.validate_only = True
        return request

    response = yield from cluster.ask_controller(
        ApiKey.CREATE_TOPICS, build, lambda body: (each.error_code for each in body.topics)
    )
    return {
        each.name: verdict_of(each.error_code, each.error_message) for each in response.body.topics
    }


def delete_topics(cluster: Cluster, names: Sequence[str]) -> Operation[dict[str, Verdict]]:
    """Delete topics by name."""

    def build(version: int) -> Message:
        request = DeleteTopicsRequest(timeout_ms=cluster.policy.request_timeout_ms)
        if version >= 6:
            request.topics = [DeleteTopicState(name=name) for name in names]
        else:
            request.topic_names = list(names)
        return request

    response = yield from cluster.ask_controller(
        ApiKey.DELETE_TOPICS, build, lambda body: (each.error_code for each in body.responses)
    )
    cluster.forget(names)
    return {
        each.name: verdict_of(each.error_code, each.error_message)
        for each in response.body.responses
    }


def create_partitions(
    cluster: Cluster,
    counts: Mapping[str, int],
    assignments: Sequence[Sequence[BrokerId]] | None = None,
    *,
    validate_only: bool = False,
) -> Operation[dict[str, Verdict]]:
    """Grow topics to so many partitions; `assignments` are those of the new ones, of each topic."""

    def build(version: int) -> Message:
        placed = None
        if assignments is not None:
            placed = [CreatePartitionsAssignment(broker_ids=list(ids)) for ids in assignments]
        return CreatePartitionsRequest(
            topics=[
                CreatePartitionsTopic(name=name, count=count, assignments=placed)
                for name, count in counts.items()
            ],
            timeout_ms=cluster.policy.request_timeout_ms,
            validate_only=validate_only,
        )

    response = yield from cluster.ask_controller(
        ApiKey.CREATE_PARTITIONS, build, lambda body: (each.error_code for each in body.results)
    )
    cluster.forget(counts)
    return {
        each.name: verdict_of(each.error_code, each.error_message) for each in response.body.results
    }


def delete_records(
    cluster: Cluster, before: Mapping[TopicPartition, int]
) -> Operation[dict[TopicPartition, int]]:
    """Cut what is below an offset (-1: all that is acknowledged); the new starts of the logs."""

    def request_for(places: Sequence[TopicPartition]) -> tuple[ApiKey, Build]:
        def build(version: int) -> Message:
            return DeleteRecordsRequest(
                topics=[
                    DeleteRecordsTopic(
                        name=topic,
                        partitions=[
                            DeleteRecordsPartition(partition_index=place.partition, offset=offset)
                            for place, offset in before.items()
                            if place.topic == topic and place in places
                        ],
                    )
                    for topic in topics_of(places)
                ],
                timeout_ms=cluster.policy.request_timeout_ms,
            )

        return ApiKey.DELETE_RECORDS, build

    def read(response: Response) -> dict[TopicPartition, tuple[ErrorCode, Message]]:
        return {
            TopicPartition(topic.name, each.partition_index): (code_of(each.error_code), each)
            for topic in response.body.topics
            for each in topic.partitions
        }

    results = yield from cluster.ask_leaders(before, request_for, read)
    return {place: result.low_watermark for place, result in results.items()}


def topics_of(places: Iterable[TopicPartition]) -> list[str]:
    """The topics of some partitions, each once, sorted."""
    return sorted({place.topic for place in places})
