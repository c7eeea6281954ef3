"""Producing: records into batches by partition, each batch again until it is acknowledged, once.

A partition has one batch in flight, so that what is asked again never overtakes what follows it;
sequence numbers let the broker drop a batch that it has already.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from barnabas.client.errors import ClientError, RequestRefused, code_of
from barnabas.client.metadata import BrokerNode, TopicMetadata
from barnabas.client.partitioner import partition_of
from barnabas.client.retries import RETRIABLE
from barnabas.client.routing import Attempts, Cluster
from barnabas.client.steps import Failure, Operation, Request, Response
from barnabas.client.topics import topics_of
from barnabas.formats.batches.builder import BatchBuilder
from barnabas.formats.batches.compression import CompressionCodec
from barnabas.formats.batches.header import NO_PRODUCER_EPOCH, increment_sequence
from barnabas.formats.wire.api_keys import ApiKey
from barnabas.formats.wire.catalog import Message
from barnabas.formats.wire.generated.init_producer_id import InitProducerIdRequest
from barnabas.formats.wire.generated.produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from barnabas.model.error_codes import ErrorCode
from barnabas.model.ids import NO_PRODUCER_ID, ProducerId, TopicPartition

BATCH_BYTES_MAX = 1_000_000
"""Of records before they are compressed: below the message.max.bytes that brokers start with."""
REQUEST_BYTES_MAX = 8_000_000
ALL_REPLICAS = -1
ACKNOWLEDGED = frozenset({ErrorCode.NONE, ErrorCode.DUPLICATE_SEQUENCE_NUMBER})
"""A duplicate is in the log: its first copy was acknowledged, and that answer was lost."""
UNKNOWN_OFFSET = -1


class NewRecord(NamedTuple):
    """A record to be sent; without a partition its key decides, or chance for all of a call."""

    timestamp: int
    value: bytes | None
    key: bytes | None = None
    headers: Sequence[tuple[str, bytes | None]] = ()
    partition: int | None = None


class Acknowledged(NamedTuple):
    """Where a record is; -1 as offset where the broker could not or was not to tell."""

    place: TopicPartition
    offset: int


class _Batch(NamedTuple):
    place: TopicPartition
    positions: list[int]
    """Of its records among those of the call."""
    builder: BatchBuilder
    data: bytes


class Producer:
    """One producer: its id, and the next sequence number of every partition."""

    def __init__(
        self,
        cluster: Cluster,
        *,
        acks: int = ALL_REPLICAS,
        codec: CompressionCodec = CompressionCodec.NONE,
        is_idempotent: bool = True,
    ) -> None:
        """Idempotence needs acks of all replicas; without it a retry may duplicate records."""
        self._cluster = cluster
        self._acks = acks
        self._codec = codec
        self._is_idempotent = is_idempotent and acks == ALL_REPLICAS
        self._producer_id = NO_PRODUCER_ID
        self._producer_epoch = NO_PRODUCER_EPOCH
        self._sequences: dict[TopicPartition, int] = {}

    def send(
        self, topic: str, records: Sequence[NewRecord], *, may_create: bool = False
    ) -> Operation[list[Acknowledged]]:
        """Send records and wait until they are acknowledged; where each of them is, in order.

        The caller bounds what is sent at once: everything of a call is in memory.
        """
        if self._is_idempotent and self._producer_id == NO_PRODUCER_ID:
            yield from self._begin()
        described = yield from self._find(topic, may_create)
        waiting = self._into_batches(described, records)
        done: list[Acknowledged] = [Acknowledged(TopicPartition(topic, -1), -1)] * len(records)
        while waiting:
            first: dict[TopicPartition, _Batch] = {}
            size_bytes = 0
            for batches in waiting.values():
                if size_bytes < REQUEST_BYTES_MAX:
                    batch = self._numbered(batches[0])
                    first[batch.place] = batch
                    size_bytes += len(batch.data)
            try:
                base_offsets = yield from self._send_until_acknowledged(first)
            except ClientError:
                # What was not acknowledged may be in the log all the same, under its number.
                self._producer_id = NO_PRODUCER_ID
                self._sequences.clear()
                raise
            for place, batch in first.items():
                base = base_offsets[place]
                for index, position in enumerate(batch.positions):
                    offset = UNKNOWN_OFFSET if base < 0 else base + index
                    done[position] = Acknowledged(place, offset)
                self._note_sent(batch)
                del waiting[place][0]
                if not waiting[place]:
                    del waiting[place]
        return done

    def _begin(self) -> Operation[None]:
        attempts = self._cluster.attempts()
        while True:
            yield from attempts.begin()
            response = yield from self._cluster.ask_any(
                ApiKey.INIT_PRODUCER_ID,
                lambda version: InitProducerIdRequest(
                    transactional_id=None, transaction_timeout_ms=0
                ),
            )
            code = code_of(response.body.error_code)
            if code is ErrorCode.NONE:
                self._producer_id = ProducerId(response.body.producer_id)
                self._producer_epoch = response.body.producer_epoch
                return
            if code not in RETRIABLE or attempts.is_over:
                raise RequestRefused("a producer id", code)
            yield from attempts.wait()

    def _find(self, topic: str, may_create: bool) -> Operation[TopicMetadata]:
        attempts = self._cluster.attempts()
        while True:
            yield from attempts.begin()
            known = self._cluster.known.topics.get(topic)
            if known is None or known.code is not ErrorCode.NONE or not known.partitions:
                told = yield from self._cluster.describe([topic], may_create=may_create)
                known = told.topics[topic]
            if known.code is ErrorCode.NONE and known.partitions:
                return known
            is_final = known.code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION and not may_create
            if is_final or known.code not in RETRIABLE or attempts.is_over:
                raise RequestRefused(f"topic {topic}", known.code)
            yield from attempts.wait()

    def _into_batches(
        self, topic: TopicMetadata, records: Sequence[NewRecord]
    ) -> dict[TopicPartition, list[_Batch]]:
        count = len(topic.partitions)
        sticky = self._cluster.chance.randrange(count)
        found: dict[TopicPartition, list[_Batch]] = {}
        for position, record in enumerate(records):
            partition = record.partition
            if partition is None:
                partition = sticky if record.key is None else partition_of(record.key, count)
            elif not 0 <= partition < count:
                raise RequestRefused(
                    f"topic {topic.name}",
                    ErrorCode.INVALID_PARTITIONS,
                    f"it has no partition {partition}, only 0 to {count - 1}",
                )
            place = TopicPartition(topic.name, partition)
            batches = found.setdefault(place, [])
            filled = batches[-1].builder.size_bytes if batches else BATCH_BYTES_MAX
            if filled + _size_of(record) > BATCH_BYTES_MAX:
                batches.append(_Batch(place, [], BatchBuilder(codec=self._codec), b""))
            batch = batches[-1]
            batch.builder.append(record.key, record.value, record.timestamp, record.headers)
            batch.positions.append(position)
        return found

    def _numbered(self, batch: _Batch) -> _Batch:
        """The bytes of a batch; they stay the same however often it is sent."""
        if not self._is_idempotent:
            return batch._replace(data=batch.builder.build())
        return batch._replace(
            data=batch.builder.build(
                producer_id=self._producer_id,
                producer_epoch=self._producer_epoch,
                base_sequence=self._sequences.get(batch.place, 0),
            )
        )

    def _note_sent(self, batch: _Batch) -> None:
        sequence = self._sequences.get(batch.place, 0)
        self._sequences[batch.place] = increment_sequence(sequence, len(batch.positions))

    def _send_until_acknowledged(
        self, batches: dict[TopicPartition, _Batch]
    ) -> Operation[dict[TopicPartition, int]]:
        """The base offset of each; again to whoever leads by then for what failed."""
        attempts = self._cluster.attempts()
        left = dict(batches)
        done: dict[TopicPartition, int] = {}
        while left:
            yield from attempts.begin()
            leaders = yield from self._cluster.find_leaders(left)
            asked = list(leaders.items())
            requests = [self._request(node, places, left, attempts) for node, places in asked]
            code, message = ErrorCode.LEADER_NOT_AVAILABLE, None
            answers = yield from self._cluster.exchange(attempts, requests)
            for (node, places), answer in zip(asked, answers, strict=True):
                if isinstance(answer, Failure):
                    self._cluster.give_up_on(node, answer, attempts)
                    code, message = ErrorCode.NETWORK_EXCEPTION, answer.reason
                    continue
                for place, told, said, offset in _verdicts(answer, places):
                    if told in ACKNOWLEDGED:
                        done[place] = offset
                        del left[place]
                    elif told in RETRIABLE:
                        code, message = told, said
                    else:
                        raise RequestRefused(f"partition {place}", told, said)
            if left:
                place = min(left)
                if attempts.is_over:
                    raise RequestRefused(f"partition {place}", code, message)
                self._cluster.forget({each.topic for each in left})
                yield from attempts.wait()
        return done

    def _request(
        self,
        node: BrokerNode,
        places: Sequence[TopicPartition],
        batches: dict[TopicPartition, _Batch],
        attempts: Attempts,
    ) -> Request:
        def build(version: int) -> Message:
            return ProduceRequest(
                acks=self._acks,
                timeout_ms=attempts.left_ms,
                topic_data=[
                    TopicProduceData(
                        name=topic,
                        partition_data=[
                            PartitionProduceData(index=place.partition, records=batches[place].data)
                            for place in places
                            if place.topic == topic
                        ],
                    )
                    for topic in topics_of(places)
                ],
            )

        return Request(
            node.address, ApiKey.PRODUCE, build, attempts.left_ms, is_answered=self._acks != 0
        )


def _size_of(record: NewRecord) -> int:
    return 32 + len(record.key or b"") + len(record.value or b"")


def _verdicts(
    response: Response, places: Sequence[TopicPartition]
) -> Iterable[tuple[TopicPartition, ErrorCode, str | None, int]]:
    if response.body is None:
        return [(place, ErrorCode.NONE, None, UNKNOWN_OFFSET) for place in places]
    return [
        (
            TopicPartition(topic.name, each.index),
            code_of(each.error_code),
            each.error_message,
            each.base_offset,
        )
        for topic in response.body.responses
        for each in topic.partition_responses
    ]
