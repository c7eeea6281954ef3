"""Groups as an administrator sees them: listed, described, their offsets read, set, removed."""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from barnabas.client.consumer_protocol import read_assignment
from barnabas.client.errors import RequestRefused, code_of
from barnabas.client.retries import RETRIABLE
from barnabas.client.routing import Cluster
from barnabas.client.steps import Operation
from barnabas.client.topics import Verdict, topics_of, verdict_of
from barnabas.formats.wire.api_keys import ApiKey
from barnabas.formats.wire.catalog import Message
from barnabas.formats.wire.generated.delete_groups import DeleteGroupsRequest
from barnabas.formats.wire.generated.describe_groups import DescribeGroupsRequest
from barnabas.formats.wire.generated.list_groups import ListGroupsRequest
from barnabas.formats.wire.generated.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from barnabas.formats.wire.generated.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from barnabas.formats.wire.generated.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
)
from barnabas.model.error_codes import ErrorCode
from barnabas.model.ids import BrokerId, TopicPartition

CONSUMER_PROTOCOL = "consumer"
DEAD = "Dead"
EMPTY = "Empty"


class ListedGroup(NamedTuple):
    """A group in a list; state and type are empty where the broker is too old to say."""

    group_id: str
    protocol_type: str
    state: str
    type: str


class GroupMember(NamedTuple):
    """One member with what it was given."""

    member_id: str
    instance_id: str | None
    client_id: str
    client_host: str
    assignment: tuple[TopicPartition, ...]


class GroupDescription(NamedTuple):
    """A group; one that does not exist is Dead and empty."""

    group_id: str
    state: str
    protocol_type: str
    protocol: str
    coordinator_id: BrokerId
    coordinator_address: str
    members: tuple[GroupMember, ...]


class CommittedOffset(NamedTuple):
    """Where a group would go on in a partition."""

    offset: int
    leader_epoch: int
    metadata: str


def list_groups(cluster: Cluster, states: Sequence[str] = ()) -> Operation[list[ListedGroup]]:
    """The groups of all coordinators, by name."""

    def build(version: int) -> Message:
        return ListGroupsRequest(states_filter=list(states) if version >= 4 else [])

    attempts = cluster.attempts()
    while True:
        yield from attempts.begin()
        responses = yield from cluster.ask_every_broker(ApiKey.LIST_GROUPS, build)
        codes = [code_of(response.body.error_code) for response in responses]
        refusals = [code for code in codes if code is not ErrorCode.NONE]
        if not refusals:
            break
        if refusals[0] not in RETRIABLE or attempts.is_over:
            raise RequestRefused("groups", refusals[0])
        yield from attempts.wait()
    found: dict[str, ListedGroup] = {}
    for response in responses:
        for each in response.body.groups:
            found[each.group_id] = ListedGroup(
                each.group_id, each.protocol_type, each.group_state, each.group_type
            )
    return [found[name] for name in sorted(found)]


def describe_group(cluster: Cluster, group: str) -> Operation[GroupDescription]:
    """State, protocol and members of a group, from its coordinator."""
    response = yield from cluster.ask_coordinator(
        group,
        ApiKey.DESCRIBE_GROUPS,
        lambda version: DescribeGroupsRequest(groups=[group]),
        lambda body: (each.error_code for each in body.groups),
    )
    (told,) = response.body.groups
    code = code_of(told.error_code)
    if code is ErrorCode.GROUP_ID_NOT_FOUND:
        return GroupDescription(group, DEAD, "", "", BrokerId(-1), "", ())
    if code is not ErrorCode.NONE:
        raise RequestRefused(f"group {group}", code)
    coordinator = yield from cluster.find_coordinator(group)
    is_consumer = told.protocol_type == CONSUMER_PROTOCOL
    return GroupDescription(
        group,
        told.group_state,
        told.protocol_type,
        told.protocol_data,
        BrokerId(-1) if coordinator is None else coordinator.id,
        "" if coordinator is None else str(coordinator.address),
        tuple(
            GroupMember(
                each.member_id,
                each.group_instance_id,
                each.client_id,
                each.client_host,
                tuple(read_assignment(each.member_assignment)) if is_consumer else (),
            )
            for each in told.members
        ),
    )


def fetch_offsets(cluster: Cluster, group: str) -> Operation[dict[TopicPartition, CommittedOffset]]:
    """Everything that a group has committed."""

    def build(version: int) -> Message:
        if version >= 8:
            return OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group_id=group, topics=None)])
        return OffsetFetchRequest(group_id=group, topics=None)

    response = yield from cluster.ask_coordinator(
        group, ApiKey.OFFSET_FETCH, build, lambda body: [_group_of(body).error_code]
    )
    told = _group_of(response.body)
    code = code_of(told.error_code)
    if code is ErrorCode.GROUP_ID_NOT_FOUND:
        return {}
    if code is not ErrorCode.NONE:
        raise RequestRefused(f"offsets of group {group}", code)
    found: dict[TopicPartition, CommittedOffset] = {}
    for topic in told.topics:
        for each in topic.partitions:
            if each.error_code == ErrorCode.NONE and each.committed_offset >= 0:
                found[TopicPartition(topic.name, each.partition_index)] = CommittedOffset(
                    each.committed_offset, each.committed_leader_epoch, each.metadata or ""
                )
    return found


def _group_of(body: Message) -> Message:
    """Since version 8 groups are in a list."""
    return body.groups[0] if body.groups else body


def commit_offsets(
    cluster: Cluster, group: str, offsets: Mapping[TopicPartition, int]
) -> Operation[dict[TopicPartition, Verdict]]:
    """Set what a group without members has committed."""

    def build(version: int) -> Message:
        return OffsetCommitRequest(
            group_id=group,
            topics=[
                OffsetCommitRequestTopic(
                    name=topic,
                    partitions=[
                        OffsetCommitRequestPartition(
                            partition_index=place.partition,
                            committed_offset=offset,
                            committed_metadata="",
                        )
                        for place, offset in offsets.items()
                        if place.topic == topic
                    ],
                )
                for topic in topics_of(offsets)
            ],
        )

    response = yield from cluster.ask_coordinator(
        group, ApiKey.OFFSET_COMMIT, build, _partition_codes
    )
    return _verdicts(response.body.topics)


def delete_offsets(
    cluster: Cluster, group: str, places: Iterable[TopicPartition]
) -> Operation[dict[TopicPartition, Verdict]]:
    """Remove what a group has committed for some partitions."""
    wanted = sorted(places)

    def build(version: int) -> Message:
        return OffsetDeleteRequest(
            group_id=group,
            topics=[
                OffsetDeleteRequestTopic(
                    name=topic,
                    partitions=[
                        OffsetDeleteRequestPartition(partition_index=place.partition)
                        for place in wanted
                        if place.topic == topic
                    ],
                )
                for topic in topics_of(wanted)
            ],
        )

    response = yield from cluster.ask_coordinator(
        group, ApiKey.OFFSET_DELETE, build, lambda body: [body.error_code]
    )
    code = code_of(response.body.error_code)
    if code is not ErrorCode.NONE:
        raise RequestRefused(f"offsets of group {group}", code)
    return _verdicts(response.body.topics)


def delete_group(cluster: Cluster, group: str) -> Operation[Verdict]:
    """Remove a group without members, and its offsets."""
    response = yield from cluster.ask_coordinator(
        group,
        ApiKey.DELETE_GROUPS,
        lambda version: DeleteGroupsRequest(groups_names=[group]),
        lambda body: (each.error_code for each in body.results),
    )
    (told,) = response.body.results
    return verdict_of(told.error_code, None)


def _partition_codes(body: Message) -> list[int]:
    return [each.error_code for topic in body.topics for each in topic.partitions]


def _verdicts(topics: Sequence[Message]) -> dict[TopicPartition, Verdict]:
    return {
        TopicPartition(topic.name, each.partition_index): verdict_of(each.error_code, None)
        for topic in topics
        for each in topic.partitions
    }
