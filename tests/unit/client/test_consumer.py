"""A consumer moves over what it has read, and finds its way when it cannot read."""

import random

import pytest

from barnabas.client.consumer import Consumer
from barnabas.client.errors import RequestRefused
from barnabas.client.retries import RetryPolicy
from barnabas.client.routing import Cluster
from barnabas.formats.batches.builder import build_batch
from barnabas.formats.batches.compression import CompressionCodec
from barnabas.formats.batches.control import EndMarker, build_end_marker
from barnabas.formats.batches.old_magic import build_message_set
from barnabas.formats.batches.reader import Record
from barnabas.formats.codec.records import RecordsSpan
from barnabas.formats.wire.api_keys import ApiKey
from barnabas.formats.wire.catalog import Message
from barnabas.formats.wire.generated.fetch import (
    FetchableTopicResponse,
    FetchResponse,
    PartitionData,
)
from barnabas.formats.wire.generated.list_offsets import (
    ListOffsetsPartitionResponse,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from barnabas.model.error_codes import ErrorCode
from barnabas.model.ids import TopicPartition
from tests.unit.client.scripted import ONE, Scripted

PLACE = TopicPartition("t", 0)


def _answer(data: bytes, code: ErrorCode = ErrorCode.NONE) -> Message:
    partition = PartitionData(
        partition_index=0,
        error_code=code,
        high_watermark=99,
        records=RecordsSpan(data, 0, len(data)),
    )
    return FetchResponse(responses=[FetchableTopicResponse(topic="t", partitions=[partition])])


def _batch(base: int, count: int, codec: CompressionCodec = CompressionCodec.NONE) -> bytes:
    records = [Record(0, 5, b"k", f"{base + at}".encode()) for at in range(count)]
    return build_batch(records, codec=codec, base_offset=base)


def _consumer(position: int, reset_to: int | None = -2) -> Consumer:
    cluster = Cluster([ONE], random.Random(1), RetryPolicy(timeout_ms=5_000))
    return Consumer(cluster, {PLACE: position}, reset_to=reset_to)


@pytest.mark.parametrize("codec", list(CompressionCodec))
def test_records_before_the_position_are_left_out(codec: CompressionCodec):
    world, consumer = Scripted(), _consumer(12)
    world.answers(ONE, ApiKey.FETCH, _answer(_batch(10, 4, codec) + _batch(14, 2, codec)))
    (fetched,) = world.run(consumer.poll(100))
    assert [record.offset for record in fetched.records] == [12, 13, 14, 15]
    assert consumer.positions == {PLACE: 16}


def test_a_batch_that_is_cut_at_the_end_waits_for_the_next_fetch():
    world, consumer = Scripted(), _consumer(0)
    world.answers(ONE, ApiKey.FETCH, _answer(_batch(0, 2) + _batch(2, 2)[:-3]))
    world.run(consumer.poll(100))
    assert consumer.positions == {PLACE: 2}


def test_control_records_are_passed_over():
    world, consumer = Scripted(), _consumer(0)
    marker = build_end_marker(EndMarker(True, 0), producer_id=1, producer_epoch=0, timestamp=1)
    world.answers(ONE, ApiKey.FETCH, _answer(marker + _batch(1, 1)))
    (fetched,) = world.run(consumer.poll(100))
    assert [record.offset for record in fetched.records] == [1]


def test_messages_of_old_formats_are_read():
    world, consumer = Scripted(), _consumer(1)
    records = [Record(at, 5, None, b"x") for at in range(3)]
    world.answers(ONE, ApiKey.FETCH, _answer(build_message_set(records, magic=1)))
    (fetched,) = world.run(consumer.poll(100))
    assert [record.offset for record in fetched.records] == [1, 2]
    assert consumer.positions == {PLACE: 3}


def _out_of_range(world: Scripted) -> None:
    world.answers(
        ONE, ApiKey.FETCH, _answer(b"", ErrorCode.OFFSET_OUT_OF_RANGE), _answer(_batch(7, 1))
    )
    partition = ListOffsetsPartitionResponse(
        partition_index=0, error_code=0, offset=7, timestamp=-1
    )
    topic = ListOffsetsTopicResponse(name="t", partitions=[partition])
    world.answers(ONE, ApiKey.LIST_OFFSETS, ListOffsetsResponse(topics=[topic]))


def test_a_position_out_of_range_is_reset():
    world, consumer = Scripted(), _consumer(3)
    _out_of_range(world)
    (fetched,) = world.run(consumer.poll(100))
    assert [record.offset for record in fetched.records] == [7]


def test_or_it_is_an_error():
    world, consumer = Scripted(), _consumer(3, reset_to=None)
    _out_of_range(world)
    with pytest.raises(RequestRefused):
        world.run(consumer.poll(100))


def test_a_leader_that_moved_is_looked_up_again():
    world, consumer = Scripted(), _consumer(0)
    moved = _answer(b"", ErrorCode.NOT_LEADER_OR_FOLLOWER)
    world.answers(ONE, ApiKey.FETCH, moved, _answer(_batch(0, 1)))
    assert world.run(consumer.poll(100))
    assert sum(api_key is ApiKey.METADATA for _, api_key, _ in world.asked) == 2


def test_nothing_new_is_an_empty_answer_and_not_an_error():
    world, consumer = Scripted(), _consumer(0)
    world.answers(ONE, ApiKey.FETCH, _answer(b""))
    assert world.run(consumer.poll(100)) == []
