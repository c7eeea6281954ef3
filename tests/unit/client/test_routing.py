"""Who is asked, who is asked next, and when it is given up."""

import random

import pytest

from barnabas.client.errors import BrokerUnreachable, ClusterUnreachable, RequestRefused
from barnabas.client.groups import describe_group, list_groups
from barnabas.client.offsets import LATEST, list_offsets
from barnabas.client.retries import RetryPolicy
from barnabas.client.routing import Cluster
from barnabas.client.steps import Failure, FailureKind
from barnabas.client.topics import NewTopic, create_topics
from barnabas.formats.wire.api_keys import ApiKey
from barnabas.formats.wire.catalog import Message
from barnabas.formats.wire.generated.create_topics import (
    CreatableTopicResult,
    CreateTopicsResponse,
)
from barnabas.formats.wire.generated.describe_groups import (
    DescribedGroup,
    DescribeGroupsResponse,
)
from barnabas.formats.wire.generated.find_coordinator import Coordinator, FindCoordinatorResponse
from barnabas.formats.wire.generated.list_groups import ListedGroup, ListGroupsResponse
from barnabas.formats.wire.generated.list_offsets import (
    ListOffsetsPartitionResponse,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from barnabas.model.error_codes import ErrorCode
from barnabas.model.ids import TopicPartition
from tests.unit.client.scripted import ONE, REFUSED, TWO, Scripted

LOST = Failure(FailureKind.LOST, "gone")


def _cluster(*bootstrap: object, timeout_ms: int = 30_000) -> Cluster:
    addresses = bootstrap or (ONE,)
    return Cluster(addresses, random.Random(1), RetryPolicy(timeout_ms=timeout_ms))  # pyright: ignore


def _created(code: ErrorCode) -> Message:
    return CreateTopicsResponse(
        topics=[CreatableTopicResult(name="n", error_code=code, error_message=None)]
    )


def _offsets(version: int, body: Message) -> Message:
    return _listed([(each.partition_index, 0) for each in body.topics[0].partitions])


def _listed(rows: list[tuple[int, int]]) -> Message:
    return ListOffsetsResponse(
        topics=[
            ListOffsetsTopicResponse(
                name="t",
                partitions=[
                    ListOffsetsPartitionResponse(
                        partition_index=index, error_code=code, offset=10 + index, timestamp=-1
                    )
                    for index, code in rows
                ],
            )
        ]
    )


def test_the_first_address_that_answers_is_enough():
    world = Scripted()
    del world.served[ONE, ApiKey.METADATA]
    told = world.run(_cluster(ONE, TWO).describe(None))
    assert sorted(told.brokers) == [1, 2]


def test_nobody_there_is_told_with_tries_time_and_each_reason():
    world = Scripted()
    world.served.clear()
    with pytest.raises(ClusterUnreachable) as raised:
        world.run(_cluster(ONE, TWO).describe(None))
    assert raised.value.tries == 3
    assert [reason[0] for reason in raised.value.reasons] == [ONE, TWO]
    assert 240 <= raised.value.elapsed_ms <= 400


def test_a_cluster_that_answered_before_is_waited_for_until_the_end():
    world, cluster = Scripted(), _cluster()
    world.run(cluster.describe())
    serve = world.served[ONE, ApiKey.METADATA]
    refusals = [REFUSED] * 6
    for address in (ONE, TWO):
        world.serve(
            address, ApiKey.METADATA, lambda *asked: refusals.pop() if refusals else serve(*asked)
        )
    assert sorted(world.run(cluster.describe()).brokers) == [1, 2]
    world.served.clear()
    with pytest.raises(ClusterUnreachable) as raised:
        world.run(cluster.describe())
    assert raised.value.elapsed_ms >= 30_000


def test_the_controller_is_found_anew_when_it_has_moved():
    world = Scripted()
    world.answers(TWO, ApiKey.CREATE_TOPICS, _created(ErrorCode.NONE))

    def moved(version: int, body: Message) -> Message:
        world.controller_id = 2
        return _created(ErrorCode.NOT_CONTROLLER)

    world.serve(ONE, ApiKey.CREATE_TOPICS, moved)
    verdicts = world.run(create_topics(_cluster(), [NewTopic("n")]))
    assert verdicts["n"].is_ok
    assert world.count(ONE, ApiKey.CREATE_TOPICS) == world.count(TWO, ApiKey.CREATE_TOPICS) == 1


def test_a_refusal_that_stays_is_not_asked_again():
    world = Scripted()
    world.answers(ONE, ApiKey.CREATE_TOPICS, _created(ErrorCode.TOPIC_ALREADY_EXISTS))
    verdicts = world.run(create_topics(_cluster(), [NewTopic("n")]))
    assert verdicts["n"].code is ErrorCode.TOPIC_ALREADY_EXISTS
    assert world.count(ONE, ApiKey.CREATE_TOPICS) == 1


def test_an_advertised_address_where_nobody_listens_is_told_soon():
    world = Scripted()
    with pytest.raises(BrokerUnreachable) as raised:
        world.run(create_topics(_cluster(TWO), [NewTopic("n")]))
    assert (raised.value.broker_id, raised.value.address, raised.value.tries) == (1, ONE, 3)


def test_each_leader_is_asked_for_its_own():
    world = Scripted()
    for address in (ONE, TWO):
        world.serve(address, ApiKey.LIST_OFFSETS, _offsets)
    asked = {TopicPartition("t", at): LATEST for at in (0, 1)}
    found = world.run(list_offsets(_cluster(), asked))
    assert {place.partition: each.offset for place, each in found.items()} == {0: 10, 1: 11}
    assert world.count(ONE, ApiKey.LIST_OFFSETS) == world.count(TWO, ApiKey.LIST_OFFSETS) == 1


def test_a_leader_that_moved_is_asked_where_it_went():
    world = Scripted()
    world.serve(TWO, ApiKey.LIST_OFFSETS, _offsets)

    def moved(version: int, body: Message) -> Message:
        world.leaders["t"] = [2, 2]
        return _listed([(0, ErrorCode.NOT_LEADER_OR_FOLLOWER)])

    world.serve(ONE, ApiKey.LIST_OFFSETS, moved)
    asked = {TopicPartition("t", at): LATEST for at in (0, 1)}
    assert len(world.run(list_offsets(_cluster(), asked))) == 2
    assert world.count(TWO, ApiKey.LIST_OFFSETS) == 2


def test_a_leader_that_answered_before_is_waited_for_until_the_end():
    world = Scripted()
    world.serve(TWO, ApiKey.LIST_OFFSETS, _offsets)
    world.answers(ONE, ApiKey.LIST_OFFSETS, *[LOST] * 6, _listed([(0, 0)]))
    asked = {TopicPartition("t", 0): LATEST}
    assert world.run(list_offsets(_cluster(), asked))
    assert world.count(ONE, ApiKey.LIST_OFFSETS) == 7


def test_waiting_grows_and_ends_with_the_time_of_the_operation():
    world = Scripted()
    world.answers(ONE, ApiKey.LIST_OFFSETS, _listed([(0, ErrorCode.OFFSET_NOT_AVAILABLE)]))
    with pytest.raises(RequestRefused) as raised:
        world.run(list_offsets(_cluster(timeout_ms=5_000), {TopicPartition("t", 0): LATEST}))
    assert raised.value.code is ErrorCode.OFFSET_NOT_AVAILABLE
    waits_ms = [pause for pause in world.pauses_ms if pause > 0]
    assert 80 <= waits_ms[0] <= 120
    assert max(world.pauses_ms) <= 1_200
    assert 5_000 <= world.now_ms - 1_000 <= 5_100


@pytest.mark.parametrize("max_version", [3, 4])
def test_a_coordinator_is_found_and_found_again(max_version: int):
    world = Scripted(max_version)
    codes = [ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.NONE]

    def find(version: int, body: Message) -> Message:
        code = codes.pop(0) if len(codes) > 1 else codes[0]
        if version >= 4:
            (key,) = body.coordinator_keys
            assert key == "g"
            row = Coordinator(key=key, node_id=2, host="two", port=9092, error_code=code)
            return FindCoordinatorResponse(coordinators=[row])
        assert body.key == "g"
        return FindCoordinatorResponse(error_code=code, node_id=2, host="two", port=9092)

    for address in (ONE, TWO):
        world.serve(address, ApiKey.FIND_COORDINATOR, find)
    group = DescribedGroup(error_code=0, group_id="g", group_state="Stable")
    world.answers(TWO, ApiKey.DESCRIBE_GROUPS, DescribeGroupsResponse(groups=[group]))
    told = world.run(describe_group(_cluster(), "g"))
    assert (told.state, told.coordinator_id) == ("Stable", 2)


def test_groups_are_asked_of_every_broker_until_all_have_loaded_theirs():
    world = Scripted()

    def listed(code: ErrorCode, *groups: str) -> Message:
        rows = [ListedGroup(group_id=group, protocol_type="consumer") for group in groups]
        return ListGroupsResponse(error_code=code, groups=rows)

    loading = listed(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
    world.answers(ONE, ApiKey.LIST_GROUPS, loading, listed(ErrorCode.NONE, "b"))
    world.answers(TWO, ApiKey.LIST_GROUPS, listed(ErrorCode.NONE, "c", "a"))
    found = world.run(list_groups(_cluster()))
    assert [group.group_id for group in found] == ["a", "b", "c"]
