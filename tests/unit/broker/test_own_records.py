"""What a broker appends of its own: told when it is replicated, or why it was not appended."""

from collections.abc import Iterator

import pytest

from barnabas.broker.own_records import append_own
from barnabas.formats.batches.compression import CompressionCodec
from barnabas.model.error_codes import ErrorCode
from barnabas.model.ids import TopicPartition
from tests.worlds.one_broker import TOPIC, OneLeader
from tests.worlds.requests import values_of


@pytest.fixture
def world() -> Iterator[OneLeader]:
    yield OneLeader()


def append(world: OneLeader, value: bytes, told: list[int], index: int = 0) -> None:
    append_own(
        world.broker,
        TopicPartition(TOPIC, index),
        [(b"key", value), (b"other", None)],
        codec=CompressionCodec.GZIP,
        timeout_ms=5000,
        then=lambda error, now_ms: told.append(error),
        now_ms=world.now_ms,
    )


def test_it_is_told_when_the_watermark_has_passed_and_not_before(world: OneLeader) -> None:
    told: list[int] = []
    append(world, b"state", told)
    assert told == []
    world.broker.end_turn(world.now_ms)
    assert told == [ErrorCode.NONE]
    assert world.log().high_watermark == 2
    assert values_of(world.fetch()) == [b"state", None]


def test_who_is_told_may_append_again_in_the_same_turn(world: OneLeader) -> None:
    told: list[int] = []

    def again(error: int, now_ms: int) -> None:
        told.append(error)
        append(world, b"second", told)

    append_own(
        world.broker,
        TopicPartition(TOPIC, 0),
        [(b"key", b"first")],
        codec=CompressionCodec.NONE,
        timeout_ms=5000,
        then=again,
        now_ms=world.now_ms,
    )
    world.broker.end_turn(world.now_ms)
    assert told == [ErrorCode.NONE, ErrorCode.NONE]
    assert world.log().log_end_offset == world.log().high_watermark == 3


def test_a_partition_that_is_not_here_or_not_led_is_told_at_once(world: OneLeader) -> None:
    told: list[int] = []
    append(world, b"x", told, index=7)
    assert told == [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]
    partition = world.partition(1)
    partition.leader = None
    append(world, b"x", told, index=1)
    assert told[1:] == [ErrorCode.NOT_LEADER_OR_FOLLOWER]
    partition.is_offline = True
    append(world, b"x", told, index=1)
    assert told[2:] == [ErrorCode.KAFKA_STORAGE_ERROR]


def test_too_large_a_batch_is_refused() -> None:
    told: list[int] = []
    world = OneLeader({"max.message.bytes": "100"})
    append(world, bytes(range(256)) * 8, told)
    assert told == [ErrorCode.MESSAGE_TOO_LARGE]


def test_a_failing_disk_is_told_like_any_other_answer(world: OneLeader) -> None:
    told: list[int] = []
    append(world, b"x", told)
    world.broker.replicas.take_offline(world.partition(), "the disk failed", world.now_ms)
    assert told == [ErrorCode.KAFKA_STORAGE_ERROR]
