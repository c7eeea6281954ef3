"""DescribeProducers: the producers that a led partition knows of."""

from typing import Any

import pytest

from barnabas.formats.wire.api_keys import ApiKey
from barnabas.formats.wire.generated.describe_producers import (
    DescribeProducersRequest,
    TopicRequest,
)
from barnabas.model.error_codes import ErrorCode
from tests.worlds.one_broker import TOPIC, TOPIC_ID, OneLeader
from tests.worlds.requests import batch
from tests.worlds.virtual_world import plan

E = ErrorCode


@pytest.fixture
def world() -> OneLeader:
    return OneLeader()


def ask(world: OneLeader, *topics: tuple[str, list[int]]) -> Any:
    asked = [TopicRequest(name=name, partition_indexes=indexes) for name, indexes in topics]
    body = DescribeProducersRequest(topics=asked)
    return world.asking.call(ApiKey.DESCRIBE_PRODUCERS, 0, body).topics


def test_each_producer_with_its_last_batch(world: OneLeader) -> None:
    world.write(b"without an id")
    for sequence in (0, 1):
        data = batch([b"v"], producer_id=7, producer_epoch=2, base_sequence=sequence)
        assert world.produce(data).error_code == E.NONE
    (topic,) = ask(world, (TOPIC, [0, 1]))
    known, unknown = topic.partitions
    (producer,) = known.active_producers
    assert (producer.producer_id, producer.producer_epoch) == (7, 2)
    assert (producer.last_sequence, producer.last_timestamp) == (1, 1_700_000_000_000)
    assert (producer.coordinator_epoch, producer.current_txn_start_offset) == (-1, -1)
    assert (unknown.error_code, unknown.error_message, unknown.active_producers) == (0, None, [])


def test_a_partition_is_told_of_once_however_often_it_is_named(world: OneLeader) -> None:
    (topic,) = ask(world, (TOPIC, [0, 0]), (TOPIC, [0, 1]))
    assert [one.partition_index for one in topic.partitions] == [0, 1]


def test_what_is_not_here_or_cannot_be(world: OneLeader) -> None:
    here, absent, wrong = ask(world, (TOPIC, [9]), ("nosuch", [0]), ("no such", [0]))
    assert here.partitions[0].error_code == E.UNKNOWN_TOPIC_OR_PARTITION
    assert absent.partitions[0].error_code == E.UNKNOWN_TOPIC_OR_PARTITION
    assert absent.partitions[0].error_message == ("This server does not host this topic-partition.")
    assert wrong.partitions[0].error_code == E.INVALID_TOPIC_EXCEPTION


def test_only_the_leader_tells(world: OneLeader) -> None:
    followed = {0: plan(2, 1, (1, 2), (1, 2))}
    world.tell_metadata(1, TOPIC, TOPIC_ID, followed, [1, 2])
    world.tell_leader(1, TOPIC, TOPIC_ID, followed)
    world.broker.replicas.take_offline(world.partition(1), "gone", world.now_ms)
    (topic,) = ask(world, (TOPIC, [0, 1]))
    assert [one.error_code for one in topic.partitions] == [
        E.NOT_LEADER_OR_FOLLOWER, E.KAFKA_STORAGE_ERROR,
    ]  # fmt: skip
