"""A producer numbers its batches, asks again with the same bytes, and starts over when in doubt."""

import random

import pytest

from barnabas.client.errors import RequestRefused
from barnabas.client.partitioner import partition_of
from barnabas.client.producer import BATCH_BYTES_MAX, NewRecord, Producer
from barnabas.client.retries import RetryPolicy
from barnabas.client.routing import Cluster
from barnabas.client.steps import Failure, FailureKind
from barnabas.formats.batches.compression import CompressionCodec
from barnabas.formats.batches.header import read_header
from barnabas.formats.batches.reader import read_batch
from barnabas.formats.wire.api_keys import ApiKey
from barnabas.formats.wire.catalog import Message
from barnabas.formats.wire.generated.init_producer_id import InitProducerIdResponse
from barnabas.formats.wire.generated.produce import (
    PartitionProduceResponse,
    ProduceResponse,
    TopicProduceResponse,
)
from barnabas.model.error_codes import ErrorCode
from tests.unit.client.scripted import ONE, TWO, Scripted

LOST = Failure(FailureKind.LOST, "gone")


class _Leaders:
    """Both brokers' logs: every produce is kept, and answered with the next code of the list."""

    def __init__(self) -> None:
        self.world = Scripted()
        self.batches: list[tuple[int, bytes]] = []
        self.codes: list[ErrorCode | Failure] = []
        self.producer_ids = 0
        for address in (ONE, TWO):
            self.world.serve(address, ApiKey.PRODUCE, self._produce)
            self.world.serve(address, ApiKey.INIT_PRODUCER_ID, self._init)
        self.cluster = Cluster([ONE], random.Random(1), RetryPolicy(timeout_ms=5_000))

    def _init(self, version: int, body: Message) -> Message:
        self.producer_ids += 1
        return InitProducerIdResponse(error_code=0, producer_id=self.producer_ids, producer_epoch=0)

    def _produce(self, version: int, body: Message) -> Message | Failure:
        (topic,) = body.topic_data
        for each in topic.partition_data:
            self.batches.append((each.index, bytes(each.records)))
        code = self.codes.pop(0) if self.codes else ErrorCode.NONE
        if isinstance(code, Failure):
            return code
        return ProduceResponse(
            responses=[
                TopicProduceResponse(
                    name="t",
                    partition_responses=[
                        PartitionProduceResponse(index=each.index, error_code=code, base_offset=40)
                        for each in topic.partition_data
                    ],
                )
            ]
        )


def _numbers(batch: bytes) -> tuple[int, int, int]:
    header = read_header(batch, 0, len(batch))
    return header.producer_id, header.base_sequence, header.record_count


def test_sequences_go_on_where_they_ended():
    leaders = _Leaders()
    producer = Producer(leaders.cluster)
    for count in (3, 2):
        records = [NewRecord(1, b"x", partition=0)] * count
        done = leaders.world.run(producer.send("t", records))
        assert [each.offset for each in done] == list(range(40, 40 + count))
    assert [_numbers(batch) for _, batch in leaders.batches] == [(1, 0, 3), (1, 3, 2)]


@pytest.mark.parametrize("why", [LOST, ErrorCode.NOT_LEADER_OR_FOLLOWER])
def test_what_is_asked_again_has_the_same_bytes(why: ErrorCode | Failure):
    leaders = _Leaders()
    leaders.codes = [why, why]
    leaders.world.run(Producer(leaders.cluster).send("t", [NewRecord(1, b"x", partition=1)]))
    assert len(leaders.batches) == 3
    assert len(set(leaders.batches)) == 1


def test_a_duplicate_is_an_acknowledgement():
    leaders = _Leaders()
    leaders.codes = [LOST, ErrorCode.DUPLICATE_SEQUENCE_NUMBER]
    assert leaders.world.run(Producer(leaders.cluster).send("t", [NewRecord(1, b"x", b"k")]))


def test_after_a_failure_the_producer_is_another_one():
    leaders = _Leaders()
    leaders.codes = [ErrorCode.MESSAGE_TOO_LARGE]
    producer = Producer(leaders.cluster)
    records = [NewRecord(1, b"x", partition=0)]
    with pytest.raises(RequestRefused) as raised:
        leaders.world.run(producer.send("t", records))
    assert raised.value.code is ErrorCode.MESSAGE_TOO_LARGE
    leaders.world.run(producer.send("t", records))
    assert [_numbers(batch)[:2] for _, batch in leaders.batches] == [(1, 0), (2, 0)]


def test_keys_decide_and_the_rest_goes_together():
    leaders = _Leaders()
    records = [NewRecord(1, b"x", f"k{at}".encode()) for at in range(20)]
    done = leaders.world.run(Producer(leaders.cluster).send("t", records))
    assert [each.place.partition for each in done] == [
        partition_of(record.key or b"", 2) for record in records
    ]
    done = leaders.world.run(Producer(leaders.cluster).send("t", [NewRecord(1, b"x")] * 9))
    assert len({each.place for each in done}) == 1


def test_batches_are_bounded_and_in_order():
    leaders = _Leaders()
    records = [NewRecord(1, bytes(BATCH_BYTES_MAX // 3), partition=0)] * 7
    producer = Producer(leaders.cluster, codec=CompressionCodec.ZSTD)
    leaders.world.run(producer.send("t", records))
    assert [_numbers(batch)[1:] for _, batch in leaders.batches] == [(0, 2), (2, 2), (4, 2), (6, 1)]


def test_without_idempotence_nothing_is_numbered():
    leaders = _Leaders()
    producer = Producer(leaders.cluster, acks=1)
    leaders.world.run(producer.send("t", [NewRecord(7, b"x", b"k", [("h", b"v")], 0)]))
    ((_, batch),) = leaders.batches
    assert _numbers(batch)[:2] == (-1, -1)
    (record,) = read_batch(batch, 0, len(batch))
    assert (record.timestamp, record.key, record.value) == (7, b"k", b"x")
    assert leaders.producer_ids == 0


def test_a_partition_that_is_not_there_is_refused_before_anything_is_sent():
    leaders = _Leaders()
    with pytest.raises(RequestRefused):
        leaders.world.run(Producer(leaders.cluster).send("t", [NewRecord(1, b"x", partition=2)]))
    assert leaders.batches == []
