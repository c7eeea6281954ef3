"""DeleteRecords of a replicated partition: it waits until the followers' logs begin there, too."""

from typing import Any

import pytest

from barnabas.formats.wire.api_keys import ApiKey
from barnabas.formats.wire.generated.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from barnabas.model.error_codes import ErrorCode
from tests.scenarios.test_two_brokers import TOPIC, TOPIC_ID, TwoBrokers
from tests.worlds.virtual_world import Client, plan

E = ErrorCode


class Deleting(TwoBrokers):
    """Broker 1 leads, and five records are on both."""

    def __init__(self) -> None:
        super().__init__()
        self.decide(plan(1, 0, (1, 2)))
        self.produce(1, *[b"%d" % number for number in range(5)])
        self.run_until(self.is_caught_up)

    def ask(self, offset: int, timeout_ms: int = 10_000) -> tuple[Client, int]:
        partitions = [DeleteRecordsPartition(partition_index=0, offset=offset)]
        topics = [DeleteRecordsTopic(name=TOPIC, partitions=partitions)]
        body = DeleteRecordsRequest(topics=topics, timeout_ms=timeout_ms)
        client = self.client(1)
        return client, client.send(ApiKey.DELETE_RECORDS, 2, body)

    def answer(self, asked: tuple[Client, int]) -> tuple[int, int]:
        client, number = asked
        self.run_until(lambda: number in client.answers)
        (topic,) = client.answers[number].topics
        (one,) = topic.partitions
        assert self.parked == 0
        return one.low_watermark, one.error_code

    @property
    def parked(self) -> int:
        return self.one.broker.record_deletions.parked_count

    @property
    def room(self) -> Any:
        partition = self.one.broker.replicas.find(TOPIC, 0)
        assert partition is not None
        return partition.room


@pytest.fixture
def world() -> Deleting:
    return Deleting()


def test_the_follower_is_waited_for_and_its_fetch_releases(world: Deleting) -> None:
    asked = world.ask(3)
    assert world.answer(asked) == (3, E.NONE)
    assert (world.log(1).log_start_offset, world.log(2).log_start_offset) == (3, 3)
    assert not world.room.deletions


def test_a_follower_that_is_gone_is_waited_for_until_time_is_over(world: Deleting) -> None:
    world.two.kill()
    began_ms = world.now_ms
    asked = world.ask(3, timeout_ms=700)
    low_watermark, error = world.answer(asked)
    assert error == E.REQUEST_TIMED_OUT
    assert low_watermark < 3
    assert 700 <= world.now_ms - began_ms <= 800
    assert world.log(1).log_start_offset == 3, "what was done stays done"
    assert not world.room.deletions


def test_a_follower_known_to_be_dead_is_not_waited_for(world: Deleting) -> None:
    world.two.kill()
    asked = world.ask(3)
    world.run(50)
    assert world.parked == 1
    world.tell_metadata(1, TOPIC, TOPIC_ID, {0: plan(1, 0, (1, 2))}, [1])
    assert world.answer(asked) == (3, E.NONE)


def test_without_time_nobody_waits(world: Deleting) -> None:
    world.two.kill()
    assert world.answer(world.ask(3, timeout_ms=0))[1] == E.REQUEST_TIMED_OUT


def test_a_leader_that_leads_no_more_cannot_say(world: Deleting) -> None:
    world.two.kill()
    asked = world.ask(3)
    world.run(50)
    decision = {0: plan(2, 1, (1, 2))}
    world.tell_metadata(1, TOPIC, TOPIC_ID, decision, [1, 2])
    world.tell_leader(1, TOPIC, TOPIC_ID, decision)
    assert world.answer(asked) == (-1, E.NOT_LEADER_OR_FOLLOWER)


def test_nobody_waits_for_a_connection_that_is_gone(world: Deleting) -> None:
    world.two.kill()
    client, _ = world.ask(3)
    world.run(50)
    assert world.parked == 1
    client.close()
    world.run(50)
    assert world.parked == 0
    assert not world.room.deletions
