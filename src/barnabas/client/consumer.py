"""Consuming without a group: positions by partition, records fetched from their leaders."""

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from barnabas.client.errors import RequestRefused, code_of
from barnabas.client.metadata import BrokerNode
from barnabas.client.offsets import CONSUMER, EARLIEST, list_offsets
from barnabas.client.retries import RETRIABLE
from barnabas.client.routing import Attempts, Cluster
from barnabas.client.steps import Failure, Operation, Request
from barnabas.client.topics import topics_of
from barnabas.formats.batches.header import MAGIC_AT
from barnabas.formats.batches.old_magic import read_message_set
from barnabas.formats.batches.reader import Record, batches_in, read_batch
from barnabas.formats.wire.api_keys import ApiKey
from barnabas.formats.wire.catalog import Message
from barnabas.formats.wire.generated.fetch import FetchPartition, FetchRequest, FetchTopic
from barnabas.model.error_codes import ErrorCode
from barnabas.model.ids import TopicPartition

LAST_VERSION_WITH_NAMES = 12
FETCH_BYTES_MAX = 16 * 1024 * 1024
PARTITION_BYTES_MAX = 1024 * 1024
MAGIC_OF_BATCHES = 2


class Fetched(NamedTuple):
    """The records that one poll brought from a partition, and how far it is readable."""

    place: TopicPartition
    records: list[Record]
    high_watermark: int
    bytes_fetched: int = 0


class Consumer:
    """Where each partition goes on; `poll` moves the positions over what it returns."""

    def __init__(
        self,
        cluster: Cluster,
        positions: Mapping[TopicPartition, int],
        *,
        reset_to: int | None = EARLIEST,
    ) -> None:
        """A position out of range goes to `reset_to` (`EARLIEST`, `LATEST`); None: an error."""
        self._cluster = cluster
        self.positions = dict(positions)
        self._reset_to = reset_to
        self._turn = 0

    def poll(self, max_wait_ms: int) -> Operation[list[Fetched]]:
        """Ask every leader once, and again while nothing comes for reasons that pass."""
        attempts = self._cluster.attempts()
        while True:
            yield from attempts.begin()
            leaders = yield from self._cluster.find_leaders(self.positions)
            asked = list(leaders.items())
            requests = [
                self._request(node, places, max_wait_ms, attempts) for node, places in asked
            ]
            fetched: list[Fetched] = []
            code = None if len(asked) else ErrorCode.LEADER_NOT_AVAILABLE
            answers = yield from self._cluster.exchange(attempts, requests)
            for (node, _), answer in zip(asked, answers, strict=True):
                if isinstance(answer, Failure):
                    self._cluster.give_up_on(node, answer, attempts)
                    code = ErrorCode.NETWORK_EXCEPTION
                    self._cluster.forget(topics_of(self.positions))
                    continue
                code = (yield from self._take(answer.body, fetched)) or code
            if fetched or code is None:
                return fetched
            if attempts.is_over:
                raise RequestRefused("fetching", code)
            yield from attempts.wait()

    def _request(
        self,
        node: BrokerNode,
        places: Sequence[TopicPartition],
        max_wait_ms: int,
        attempts: Attempts,
    ) -> Request:
        # The first partition of a request is the one that is sure to get bytes.
        self._turn += 1
        shift = self._turn % len(places)
        turned = [*places[shift:], *places[:shift]]

        def build(version: int) -> Message:
            return FetchRequest(
                replica_id=CONSUMER,
                max_wait_ms=max_wait_ms,
                min_bytes=1,
                max_bytes=FETCH_BYTES_MAX,
                topics=[
                    FetchTopic(
                        topic=topic,
                        partitions=[
                            FetchPartition(
                                partition=place.partition,
                                fetch_offset=self.positions[place],
                                partition_max_bytes=PARTITION_BYTES_MAX,
                            )
                            for place in turned
                            if place.topic == topic
                        ],
                    )
                    for topic in dict.fromkeys(place.topic for place in turned)
                ],
            )

        timeout_ms = max_wait_ms + attempts.left_ms
        return Request(node.address, ApiKey.FETCH, build, timeout_ms, LAST_VERSION_WITH_NAMES)

    def _take(self, body: Message, fetched: list[Fetched]) -> Operation[ErrorCode | None]:
        """Note what came; a code that passes, when one came."""
        passing: ErrorCode | None = None
        if body.error_code != ErrorCode.NONE:
            raise RequestRefused("fetching", code_of(body.error_code))
        for topic in body.responses:
            for each in topic.partitions:
                place = TopicPartition(topic.topic, each.partition_index)
                code = code_of(each.error_code)
                if code is ErrorCode.OFFSET_OUT_OF_RANGE:
                    passing = code
                    yield from self._reset(place)
                elif code in RETRIABLE:
                    passing = code
                    self._cluster.forget([place.topic])
                elif code is not ErrorCode.NONE:
                    raise RequestRefused(f"partition {place}", code)
                else:
                    self._take_records(place, each, fetched)
        return passing

    def _take_records(self, place: TopicPartition, each: Message, fetched: list[Fetched]) -> None:
        span = each.records
        if span is None or span.size_bytes == 0:
            return
        position = self.positions[place]
        records: list[Record] = []
        for batch, next_offset in _record_batches(span.data, span.start, span.end):
            records += [record for record in batch if record.offset >= position]
            self.positions[place] = max(self.positions[place], next_offset)
        # Batches of control records alone, or compacted ones, move the position without records.
        fetched.append(Fetched(place, records, each.high_watermark, span.size_bytes))

    def _reset(self, place: TopicPartition) -> Operation[None]:
        if self._reset_to is None:
            raise RequestRefused(
                f"partition {place}",
                ErrorCode.OFFSET_OUT_OF_RANGE,
                f"it has no offset {self.positions[place]}",
            )
        found = yield from list_offsets(self._cluster, {place: self._reset_to})
        self.positions[place] = found[place].offset


def _record_batches(data: bytes, start: int, end: int) -> Iterator[tuple[list[Record], int]]:
    """The records of each batch, without control records, and the offset behind the batch."""
    if end - start > MAGIC_AT and data[start + MAGIC_AT] < MAGIC_OF_BATCHES:
        records = read_message_set(data, start, end)
        yield records, (records[-1].offset + 1 if records else 0)
        return
    for position, header in batches_in(data, start, end):
        next_offset = header.base_offset + header.last_offset_delta + 1
        if header.is_control:
            yield [], next_offset
        else:
            yield read_batch(data, position, position + header.size_bytes), next_offset
