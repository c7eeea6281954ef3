"""DeleteRecords on a leader without followers: what it moves, refuses, and keeps."""

from typing import Any

import pytest

from barnabas.core.administration.record_deletion import HIGH_WATERMARK, deletion_end
from barnabas.formats.logdir.checkpoints import decode_offset_checkpoint
from barnabas.formats.wire.api_keys import ApiKey
from barnabas.formats.wire.generated.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from barnabas.model.error_codes import ErrorCode
from barnabas.model.errors import DiskLost
from barnabas.model.ids import TopicPartition
from tests.worlds.memory_disk import Fault
from tests.worlds.one_broker import TOPIC, TOPIC_ID, OneLeader
from tests.worlds.virtual_world import plan

E = ErrorCode
DELETE = ("delete",)


@pytest.fixture
def world() -> OneLeader:
    """Five records in partition 0."""
    world = OneLeader()
    world.write(*[b"%d" % number for number in range(5)])
    return world


def request(topic: str, *rows: tuple[int, int], timeout_ms: int = 1000) -> DeleteRecordsRequest:
    partitions = [DeleteRecordsPartition(partition_index=p, offset=offset) for p, offset in rows]
    topics = [DeleteRecordsTopic(name=topic, partitions=partitions)]
    return DeleteRecordsRequest(topics=topics, timeout_ms=timeout_ms)


def delete(world: OneLeader, *rows: tuple[int, int], version: int = 2, **more: Any) -> Any:
    """The answers by partition: low watermark and error."""
    body = request(more.pop("topic", TOPIC), *rows, **more)
    (topic,) = world.asking.call(ApiKey.DELETE_RECORDS, version, body).topics
    return {one.partition_index: (one.low_watermark, one.error_code) for one in topic.partitions}


@pytest.mark.parametrize(
    ("offset", "policy", "end"),
    [
        (HIGH_WATERMARK, DELETE, 7),
        (0, DELETE, 0),
        (7, ("compact", "delete"), 7),
        (8, DELETE, E.OFFSET_OUT_OF_RANGE),
        (-2, DELETE, E.OFFSET_OUT_OF_RANGE),
        (3, ("compact",), E.POLICY_VIOLATION),
        (3, (), E.POLICY_VIOLATION),
    ],
)
def test_up_to_where_records_may_be_deleted(
    offset: int, policy: tuple[str, ...], end: int | ErrorCode
) -> None:
    assert deletion_end(offset, 7, policy) == end


@pytest.mark.parametrize("version", range(3))
def test_a_log_begins_at_the_offset_and_never_goes_back(world: OneLeader, version: int) -> None:
    assert delete(world, (0, 2), version=version) == {0: (2, E.NONE)}
    assert delete(world, (0, 1), version=version) == {0: (2, E.NONE)}
    assert world.log().log_start_offset == 2
    assert world.fetch(1).error_code == E.OFFSET_OUT_OF_RANGE
    assert world.fetch(2).log_start_offset == 2
    assert delete(world, (0, HIGH_WATERMARK)) == {0: (5, E.NONE)}


def test_without_time_it_is_answered_when_it_is_durable(world: OneLeader) -> None:
    assert delete(world, (0, 2), (1, 0), timeout_ms=0) == {0: (2, E.NONE), 1: (0, E.NONE)}
    path = "/logs/log-start-offset-checkpoint"
    kept = decode_offset_checkpoint(world.host.disk.read_file(path))
    assert kept == {TopicPartition(TOPIC, 0): 2}


def test_what_was_deleted_stays_deleted_after_a_kill(world: OneLeader) -> None:
    assert delete(world, (0, 3)) == {0: (3, E.NONE)}
    world.host.kill()
    world.run(20_000)
    world.host.start()
    log = world.broker.logs.log(TopicPartition(TOPIC, 0))
    assert log is not None
    assert (log.log_start_offset, log.log_end_offset) == (3, 5)


def test_what_is_refused(world: OneLeader) -> None:
    assert delete(world, (0, 6), (1, -2)) == {
        0: (-1, E.OFFSET_OUT_OF_RANGE), 1: (-1, E.OFFSET_OUT_OF_RANGE),
    }  # fmt: skip
    assert delete(world, (7, 0)) == {7: (-1, E.UNKNOWN_TOPIC_OR_PARTITION)}
    unknown = delete(world, (0, 0), topic="nosuch")
    assert unknown == {0: (-1, E.UNKNOWN_TOPIC_OR_PARTITION)}
    assert delete(world, (0, 1), (0, 2)) == {0: (2, E.NONE)}, "the last one counts"
    world.broker.topic_configs.apply(TOPIC, {"cleanup.policy": "compact"}, world.now_ms)
    assert delete(world, (0, 3)) == {0: (-1, E.POLICY_VIOLATION)}
    followed = {1: plan(2, 1, (1, 2), (1, 2))}
    world.tell_metadata(1, TOPIC, TOPIC_ID, followed, [1, 2])
    world.tell_leader(1, TOPIC, TOPIC_ID, followed)
    assert delete(world, (1, 0)) == {1: (-1, E.NOT_LEADER_OR_FOLLOWER)}
    world.broker.replicas.take_offline(world.partition(2), "gone", world.now_ms)
    assert delete(world, (2, 0)) == {2: (-1, E.KAFKA_STORAGE_ERROR)}


def test_an_internal_topic_keeps_its_records(world: OneLeader) -> None:
    decision = {0: plan(1, 0, (1,), (1,))}
    world.tell_metadata(1, "__consumer_offsets", TOPIC_ID, decision, [1])
    refused = delete(world, (0, 0), topic="__consumer_offsets")
    assert refused == {0: (-1, E.INVALID_TOPIC_EXCEPTION)}


def test_a_beginning_that_cannot_be_kept_is_a_storage_error(world: OneLeader) -> None:
    disk = world.host.disk
    disk.plan(len(disk.trace) + 1, Fault.FAIL)
    assert delete(world, (0, 2)) == {0: (-1, E.KAFKA_STORAGE_ERROR)}
    assert world.partition().is_offline
    assert delete(world, (0, 2)) == {0: (-1, E.KAFKA_STORAGE_ERROR)}


def test_a_write_that_is_under_way_is_no_proof(world: OneLeader) -> None:
    """Deletions of one turn: the second is answered by a checkpoint that knows of it."""
    clients = [world.client(1), world.client(1)]
    numbers = [
        client.send(ApiKey.DELETE_RECORDS, 2, request(TOPIC, (0, offset)))
        for client, offset in zip(clients, (2, 4), strict=True)
    ]
    seen: list[int] = []

    def is_answered() -> bool:
        for client, number in zip(clients, numbers, strict=True):
            if number in client.answers:
                path = "/logs/log-start-offset-checkpoint"
                kept = decode_offset_checkpoint(world.host.disk.read_file(path))
                (topic,) = client.answers[number].topics
                assert kept[TopicPartition(TOPIC, 0)] >= topic.partitions[0].low_watermark
                seen.append(topic.partitions[0].low_watermark)
        return all(n in c.answers for c, n in zip(clients, numbers, strict=True))

    world.run_until(is_answered)
    assert max(seen) == 4


def test_a_lost_directory_keeps_nobody_waiting(world: OneLeader) -> None:
    log = world.log()
    world.broker.logs.manager.on_log_failed(log, DiskLost("/logs", "gone"))
    told: list[object] = []
    world.broker.logs.manager.keep_log_starts("/logs", told.append)
    assert [type(error) for error in told] == [DiskLost]
