"""Consumer groups over the wire: gathered, kept in the log, read back, gone with their topic."""

from typing import Any

import pytest

from barnabas.core.administration.topic_names import GROUP_TOPIC
from barnabas.core.coordinator.partitions import coordinator_partition
from barnabas.formats.wire.api_keys import ApiKey
from barnabas.formats.wire.generated.find_coordinator import FindCoordinatorRequest
from barnabas.formats.wire.generated.heartbeat import HeartbeatRequest
from barnabas.formats.wire.generated.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from barnabas.formats.wire.generated.list_groups import ListGroupsRequest
from barnabas.formats.wire.generated.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from barnabas.formats.wire.generated.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
)
from barnabas.formats.wire.generated.sync_group import (
    SyncGroupRequest,
    SyncGroupRequestAssignment,
)
from barnabas.model.error_codes import ErrorCode
from barnabas.model.ids import TopicPartition
from tests.behaviours import behaviour
from tests.worlds.cluster_world import ClusterWorld
from tests.worlds.virtual_world import Client

E = ErrorCode
PARTITIONS = 4
SETTINGS = {
    "offsets.topic.num.partitions": str(PARTITIONS),
    "offsets.topic.replication.factor": "1",
    "group.initial.rebalance.delay.ms": "0",
}


@pytest.fixture
def world() -> ClusterWorld:
    """One broker with a topic t of two partitions."""
    world = ClusterWorld()
    world.add_brokers(1, **{key.replace(".", "_"): value for key, value in SETTINGS.items()})
    assert world.create("t", 2, 1).error_code == E.NONE
    return world


def find(world: ClusterWorld, *keys: str, version: int = 4, key_type: int = 0) -> Any:
    body = FindCoordinatorRequest(key_type=key_type)
    if version >= 4:
        body.coordinator_keys = list(keys)
    else:
        body.key = keys[0]
    return world.client(1).call(ApiKey.FIND_COORDINATOR, version, body)


def await_coordinator(world: ClusterWorld, group: str = "g") -> None:
    find(world, group)
    world.run(1000)
    [found] = find(world, group).coordinators
    assert found.error_code == E.NONE, ErrorCode(found.error_code)


class Member:
    """A consumer that speaks the classic protocol by hand."""

    def __init__(self, world: ClusterWorld, group: str = "g") -> None:
        self.world = world
        self.group = group
        self.client: Client = world.client(1)
        self.member_id = ""
        self.generation = -1
        self.answer: Any = None

    def join(self) -> "Member":
        """Join, with the id that the first answer gives; the answer may still be open."""
        body = JoinGroupRequest(
            group_id=self.group,
            session_timeout_ms=10_000,
            rebalance_timeout_ms=20_000,
            member_id=self.member_id,
            protocol_type="consumer",
            protocols=[JoinGroupRequestProtocol(name="range", metadata=b"meta")],
        )
        answer = self.client.call(ApiKey.JOIN_GROUP, 9, body)
        self.member_id = answer.member_id
        if answer.error_code == E.MEMBER_ID_REQUIRED:
            return self.join()
        assert answer.error_code == E.NONE, ErrorCode(answer.error_code)
        self.generation = answer.generation_id
        return self

    def sync(self, assignments: dict[str, bytes]) -> Any:
        body = SyncGroupRequest(
            group_id=self.group,
            generation_id=self.generation,
            member_id=self.member_id,
            protocol_type="consumer",
            protocol_name="range",
            assignments=[
                SyncGroupRequestAssignment(member_id=member_id, assignment=assignment)
                for member_id, assignment in assignments.items()
            ],
        )
        return self.client.call(ApiKey.SYNC_GROUP, 5, body)

    def heartbeat(self) -> ErrorCode:
        body = HeartbeatRequest(
            group_id=self.group, generation_id=self.generation, member_id=self.member_id
        )
        return ErrorCode(self.client.call(ApiKey.HEARTBEAT, 4, body).error_code)


def one_topic(offsets: dict[int, int]) -> OffsetCommitRequestTopic:
    return OffsetCommitRequestTopic(
        name="t",
        partitions=[
            OffsetCommitRequestPartition(
                partition_index=index, committed_offset=offset, committed_metadata=None
            )
            for index, offset in offsets.items()
        ],
    )


def commit(
    world: ClusterWorld, offsets: dict[int, int], group: str = "g", version: int = 9, **how: Any
) -> dict[int, ErrorCode]:
    body = OffsetCommitRequest(group_id=group, topics=[one_topic(offsets)], **how)
    [topic] = world.client(1).call(ApiKey.OFFSET_COMMIT, version, body).topics
    return {one.partition_index: ErrorCode(one.error_code) for one in topic.partitions}


def committed(world: ClusterWorld, group: str = "g") -> dict[int, int]:
    """All that the group ever committed of t."""
    body = OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group_id=group, topics=None)])
    [answer] = world.client(1).call(ApiKey.OFFSET_FETCH, 8, body).groups
    assert answer.error_code == E.NONE, ErrorCode(answer.error_code)
    return {
        one.partition_index: one.committed_offset
        for topic in answer.topics
        for one in topic.partitions
    }


@behaviour("C5", "C9")
def test_the_topic_of_groups_is_created_when_somebody_asks_for_a_coordinator(
    world: ClusterWorld,
) -> None:
    [asked] = find(world, "g").coordinators
    assert (asked.error_code, asked.node_id) == (E.COORDINATOR_NOT_AVAILABLE, -1)
    world.run(1000)
    assert world.data(f"/config/topics/{GROUP_TOPIC}")["config"] == {
        "compression.type": "producer",
        "cleanup.policy": "compact",
        "segment.bytes": "104857600",
    }
    assert len(world.data(f"/brokers/topics/{GROUP_TOPIC}")["partitions"]) == PARTITIONS
    found = find(world, "g", "another").coordinators
    assert [(one.key, one.error_code, one.node_id) for one in found] == [
        ("g", E.NONE, 1),
        ("another", E.NONE, 1),
    ]
    old = find(world, "g", version=2)
    assert (old.error_code, old.node_id, old.error_message) == (E.NONE, 1, "NONE")


def test_a_coordinator_of_transactions_is_refused_with_a_reason(world: ClusterWorld) -> None:
    answer = find(world, "tx", version=3, key_type=1)
    assert answer.error_code == E.INVALID_REQUEST
    assert "no transactions" in answer.error_message
    [answer] = find(world, "tx", key_type=1).coordinators
    assert (answer.error_code, answer.key) == (E.INVALID_REQUEST, "tx")
    assert world.children("/brokers/topics") == ["t"]


def test_a_group_gathers_and_lives_on_heartbeats(world: ClusterWorld) -> None:
    await_coordinator(world)
    member = Member(world).join()
    assert member.generation == 1
    assert member.sync({member.member_id: b"mine"}).assignment == b"mine"
    for _ in range(5):
        world.run(4_000)
        assert member.heartbeat() == E.NONE
    world.run(11_000)
    assert member.heartbeat() == E.UNKNOWN_MEMBER_ID


@behaviour("L25")
def test_groups_and_offsets_are_there_again_after_a_crash(world: ClusterWorld) -> None:
    await_coordinator(world)
    member = Member(world).join()
    member.sync({member.member_id: b"mine"})
    how = {"generation_id_or_member_epoch": member.generation, "member_id": member.member_id}
    assert commit(world, {0: 17, 1: 4}, **how) == {0: E.NONE, 1: E.NONE}
    assert commit(world, {0: 18}, **how) == {0: E.NONE}
    world.crash(1)
    world.restart(1)
    world.run_until_controlled()
    world.run(1000)
    assert committed(world) == {0: 18, 1: 4}
    [group] = world.client(1).call(ApiKey.LIST_GROUPS, 5, ListGroupsRequest()).groups
    assert (group.group_id, group.group_state, group.group_type) == ("g", "Stable", "classic")
    again = Member(world)
    again.member_id, again.generation = member.member_id, member.generation
    assert again.heartbeat() == E.NONE


@behaviour("D16")
def test_offsets_of_a_deleted_topic_are_forgotten(world: ClusterWorld) -> None:
    await_coordinator(world)
    assert commit(world, {0: 17, 1: 4}) == {0: E.NONE, 1: E.NONE}
    assert committed(world) == {0: 17, 1: 4}
    assert world.delete("t").error_code == E.NONE
    world.run(100)
    assert committed(world) == {}
    world.crash(1)
    world.restart(1)
    world.run_until_controlled()
    world.run(1000)
    assert committed(world) == {}


def test_commits_of_what_does_not_exist_are_refused_one_by_one(world: ClusterWorld) -> None:
    await_coordinator(world)
    assert commit(world, {0: 1, 9: 1}) == {0: E.NONE, 9: E.UNKNOWN_TOPIC_OR_PARTITION}
    assert commit(world, {0: 1}, generation_id_or_member_epoch=3, member_id="x") == {
        0: E.UNKNOWN_MEMBER_ID
    }


def test_the_oldest_consumers_keep_their_offsets_in_the_store(world: ClusterWorld) -> None:
    assert commit(world, {0: 12, 9: 1}, version=0) == {0: E.NONE, 9: E.UNKNOWN_TOPIC_OR_PARTITION}
    assert world.data("/consumers/g/offsets/t/0") == 12
    assert commit(world, {0: 13}, version=0) == {0: E.NONE}
    twice = OffsetCommitRequest(group_id="g", topics=[one_topic({0: 14}), one_topic({0: 15})])
    answered = world.client(1).call(ApiKey.OFFSET_COMMIT, 0, twice).topics
    assert [topic.partitions[0].error_code for topic in answered] == [E.NONE, E.NONE]
    assert commit(world, {0: 13}, version=0) == {0: E.NONE}
    body = OffsetFetchRequest(
        group_id="g", topics=[OffsetFetchRequestTopic(name="t", partition_indexes=[0, 1, 7])]
    )
    [topic] = world.client(1).call(ApiKey.OFFSET_FETCH, 0, body).topics
    unknown = (-1, E.UNKNOWN_TOPIC_OR_PARTITION)
    found = [(one.committed_offset, one.error_code) for one in topic.partitions]
    assert found == [(13, E.NONE), unknown, unknown]


@behaviour("L25", "S9")
def test_another_leader_of_the_partition_is_the_groups_coordinator() -> None:
    world = ClusterWorld()
    settings = {key.replace(".", "_"): value for key, value in SETTINGS.items()}
    world.add_brokers(1, 2, **{**settings, "offsets_topic_replication_factor": "2"})
    assert world.create("t", 2, 1).error_code == E.NONE
    find(world, "g")
    world.run(1000)
    index = coordinator_partition("g", PARTITIONS)
    leader = world.hosts[1].broker.metadata_cache.partition(GROUP_TOPIC, index)
    assert leader is not None
    groups = {host: world.hosts[host].broker.groups for host in (1, 2)}
    other = 3 - leader.leader
    body = OffsetFetchRequest(
        groups=[
            OffsetFetchRequestGroup(
                group_id="g",
                topics=[OffsetFetchRequestTopics(name="t", partition_indexes=[0])],
            )
        ]
    )
    errors = {
        host: world.client(host).call(ApiKey.OFFSET_FETCH, 9, body).groups[0].error_code
        for host in (1, 2)
    }
    assert errors == {leader.leader: E.NONE, other: E.NOT_COORDINATOR}
    assert groups[leader.leader].describe("g").error == E.NONE
    # A deleted replica takes its groups along, with no epoch or one that is not older (S9).
    room = groups[leader.leader]
    key = TopicPartition(GROUP_TOPIC, index)
    requests = world.hosts[leader.leader].broker.control_requests
    requests.note_deleted(key, leader.leader_epoch - 1 if leader.leader_epoch else -1, 0)
    if leader.leader_epoch:
        assert room.describe("g").error == E.NONE
        requests.note_deleted(key, -1, 0)
    assert room.describe("g").error == E.NOT_COORDINATOR
