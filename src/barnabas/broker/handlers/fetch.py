"""Fetch: read for a consumer or a follower, or let it wait until there is enough to read.

Hot: compiled by mypyc where a compiler is there, interpreted otherwise.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from barnabas.broker.connections import Connection, Request
from barnabas.broker.fetch_conversion import FIRST_VERSION_OF_ZSTD, convert
from barnabas.broker.fetch_reads import (
    READ_COMMITTED,
    READ_UNCOMMITTED,
    PartitionReader,
    failed,
    failed_partition,
    release_records,
)
from barnabas.broker.fetch_sessions import (
    FetchContext,
    FetchedPartition,
    PartitionKey,
    PartitionMap,
    records_size,
)
from barnabas.broker.leader_hints import leader_hint
from barnabas.broker.purgatory import FetchRoom
from barnabas.formats.batches.conversion import ConversionBudget
from barnabas.formats.wire.generated.fetch import (
    FetchableTopicResponse,
    FetchRequest,
    FetchResponse,
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionData,
)
from barnabas.model.error_codes import ErrorCode
from barnabas.model.ids import NO_TOPIC_ID
from barnabas.storage.disk import ColdRead

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker

FIRST_VERSION_WITH_SOFT_LIMITS: Final = 3
"""From here on a first batch above the limits is still returned (KIP-74)."""
FIRST_VERSION_FROM_FOLLOWERS: Final = 11
FIRST_VERSION_WITH_TOPIC_IDS: Final = 13
FIRST_VERSION_WITH_REPLICA_STATE: Final = 15
FIRST_VERSION_WITH_LEADERS: Final = 16

COLD_ROUNDS_MAX: Final = 8
"""An index, a batch to begin with and the records are three."""

_NONE: Final = int(ErrorCode.NONE)

Answers = list[tuple[FetchedPartition, PartitionData]]


def handle(broker: Broker, request: Request, body: FetchRequest, now_ms: int) -> None:
    """Take up the session, read what is asked for, answer or wait."""
    if body.isolation_level != READ_UNCOMMITTED and body.isolation_level != READ_COMMITTED:
        broker.answer(request, _refused(body, ErrorCode.UNKNOWN_SERVER_ERROR))
        return
    version = request.api_version
    uses_topic_ids = version >= FIRST_VERSION_WITH_TOPIC_IDS
    replica_id = body.replica_id
    if version >= FIRST_VERSION_WITH_REPLICA_STATE:
        replica_id = body.replica_state.replica_id
    context = broker.fetch_sessions.begin(
        body.session_id,
        body.session_epoch,
        _asked_partitions(broker, body, uses_topic_ids),
        _forgotten(body, uses_topic_ids),
        is_from_follower=replica_id >= 0,
        uses_topic_ids=uses_topic_ids,
        now_ms=now_ms,
    )
    if context.error != _NONE:
        broker.answer(request, FetchResponse(error_code=context.error))
        return
    fetch = _Fetch(broker, request, body, context, replica_id)
    fetch.begin(now_ms)


def _refused(body: FetchRequest, error: ErrorCode) -> FetchResponse:
    """The whole request is wrong: said of it, and of each partition as old versions have it."""
    response = FetchResponse(error_code=error, session_id=body.session_id, responses=[])
    for topic in body.topics:
        response.responses.append(
            FetchableTopicResponse(
                topic=topic.topic,
                topic_id=topic.topic_id,
                partitions=[failed_partition(one.partition, error) for one in topic.partitions],
            )
        )
    return response


def _asked_partitions(broker: Broker, body: FetchRequest, uses_topic_ids: bool) -> PartitionMap:
    """What the request names, in its order; a partition named twice counts as named last."""
    asked: PartitionMap = {}
    cache = broker.metadata_cache
    for topic in body.topics:
        topic_id = topic.topic_id if uses_topic_ids else NO_TOPIC_ID
        name = cache.topic_name(topic_id) if uses_topic_ids else topic.topic
        for wanted in topic.partitions:
            partition = FetchedPartition(
                name,
                topic_id,
                wanted.partition,
                wanted.fetch_offset,
                wanted.partition_max_bytes,
                wanted.current_leader_epoch,
                wanted.last_fetched_epoch,
                wanted.log_start_offset,
            )
            asked[partition.key()] = partition
    return asked


def _forgotten(body: FetchRequest, uses_topic_ids: bool) -> list[PartitionKey]:
    forgotten: list[PartitionKey] = []
    for topic in body.forgotten_topics_data:
        name: str | bytes = topic.topic_id if uses_topic_ids else topic.topic
        for index in topic.partitions:
            forgotten.append((name, index))
    return forgotten


class _Fetch:
    """One fetch until it is answered."""

    __slots__ = (
        "_broker",
        "_cold_rounds",
        "_context",
        "_is_acknowledgement",
        "_max_bytes",
        "_max_wait_ms",
        "_min_bytes",
        "_readable",
        "_reader",
        "_refused",
        "_request",
        "_until_ms",
    )

    def __init__(
        self,
        broker: Broker,
        request: Request,
        body: FetchRequest,
        context: FetchContext,
        replica_id: int,
    ) -> None:
        self._broker = broker
        self._request = request
        self._context = context
        self._max_wait_ms: int = body.max_wait_ms
        self._max_bytes: int = min(body.max_bytes, broker.config.fetch_max_bytes)
        self._min_bytes: int = min(body.min_bytes, self._max_bytes)
        self._reader = PartitionReader(
            broker,
            replica_id,
            is_leader_needed=request.api_version < FIRST_VERSION_FROM_FOLLOWERS,
            isolation_level=body.isolation_level,
        )
        self._until_ms: int = 0
        """When it is answered with what there is."""
        self._is_acknowledgement: bool = True
        """Until all was read once: what is asked for tells how far a follower is."""
        self._cold_rounds: int = 0
        self._readable: list[FetchedPartition] = []
        self._refused: Answers = []
        """Partitions that nobody here knows; they do not hasten the answer."""

    @property
    def connection(self) -> Connection:
        return self._request.connection

    def begin(self, now_ms: int) -> None:
        """Read at once; wait if that is too little and there is time."""
        self._sort_out()
        if not self._readable:
            self._answer([], now_ms)
            return
        self._until_ms = now_ms + self._max_wait_ms
        self._answer_or_wait(now_ms)

    def _answer_or_wait(self, now_ms: int) -> None:
        answers = self._read(now_ms)
        if answers is None:
            return
        if now_ms >= self._until_ms or self._is_enough(answers):
            self._answer(answers, now_ms)
            return
        self._give_back(answers)
        purgatory = self._broker.replicas.purgatory
        if purgatory.park_fetch(self, self._rooms(), self._until_ms) is None:
            self.expire(now_ms)

    def _sort_out(self) -> None:
        """Set aside what the metadata does not know."""
        cache = self._broker.metadata_cache
        for asked in self._context.partitions.values():
            if asked.topic is None:
                asked.topic = cache.topic_name(asked.topic_id)
            if asked.topic is None:
                self._refuse(asked, ErrorCode.UNKNOWN_TOPIC_ID)
            elif not cache.contains(asked.topic, asked.partition):
                self._refuse(asked, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
            else:
                self._readable.append(asked)

    def _refuse(self, asked: FetchedPartition, error: ErrorCode) -> None:
        answer = failed(asked, error)
        answer.aborted_transactions = []
        self._refused.append((asked, answer))

    def _rooms(self) -> list[FetchRoom]:
        """Where an advance may bring what is missing."""
        rooms: list[FetchRoom] = []
        for asked in self._readable:
            partition = self._broker.replicas.find(asked.topic or "", asked.partition)
            if partition is not None:
                if self._reader.is_from_follower:
                    rooms.append(partition.room.at_log_end)
                else:
                    rooms.append(partition.room.at_high_watermark)
        return rooms

    def _read(self, now_ms: int) -> Answers | None:
        """Read all partitions in order, each within what the ones before it left over.

        None when some of it is not in memory: it is brought there, and the fetch goes on then.
        """
        answers: Answers = []
        cold: list[ColdRead] = []
        limit_bytes = self._max_bytes
        must_return_one = self._request.api_version >= FIRST_VERSION_WITH_SOFT_LIMITS
        for asked in self._readable:
            try:
                answer = self._reader.read(
                    asked, limit_bytes, must_return_one, self._is_acknowledgement, now_ms
                )
            except ColdRead as found:
                cold.append(found)
                must_return_one = False
                limit_bytes = max(0, limit_bytes - asked.max_bytes)
                continue
            size_bytes = records_size(answer)
            if size_bytes > 0:
                must_return_one = False
                limit_bytes = max(0, limit_bytes - size_bytes)
            answers.append((asked, answer))
        if cold:
            self._give_back(answers)
            return self._read_cold(cold, now_ms)
        self._is_acknowledgement = False
        return answers

    def _read_cold(self, cold: list[ColdRead], now_ms: int) -> Answers | None:
        """Have it brought in; what leaves memory as fast as it comes in is waited for."""
        self._cold_rounds += 1
        if self._cold_rounds <= COLD_ROUNDS_MAX and self._broker.cold_reads.begin(
            cold, self.resume
        ):
            return None
        self._reader.is_hasty = False
        return self._read(now_ms)

    def resume(self, is_brought_in: bool, now_ms: int) -> None:
        """What was cold is in memory, or the disk failed: then reading it tells how.

        By now the client may be gone, or the partition be elsewhere: it is read as it is now.
        """
        if self._request.connection.is_closed or not self._broker.logs.manager.is_open:
            return
        self._reader.is_hasty = is_brought_in
        try:
            self._answer_or_wait(now_ms)
        except Exception as bug:
            self._broker.router.fail(self._request, bug, now_ms)

    def _is_enough(self, answers: Answers) -> bool:
        """Enough bytes, or something that the client should hear at once."""
        size_bytes = 0
        for _, answer in answers:
            if answer.error_code != _NONE or answer.diverging_epoch.epoch >= 0:
                return True
            size_bytes += records_size(answer)
        return size_bytes >= self._min_bytes

    def _give_back(self, answers: Answers) -> None:
        for _, answer in answers:
            release_records(answer)

    def try_complete(self, now_ms: int) -> bool:
        """Something moved: answer if it is enough by now, or leave it to what brings it in.

        Nobody's request is being handled here, so the edge that keeps a bug to the connection
        whose fetch met it is drawn here as the router draws it.
        """
        try:
            answers = self._read(now_ms)
            if answers is None:
                return True
            if not self._is_enough(answers):
                self._give_back(answers)
                return False
            self._answer(answers, now_ms)
        except Exception as bug:
            self._broker.router.fail(self._request, bug, now_ms)
        return True

    def expire(self, now_ms: int) -> None:
        """Time is over: answer with what there is."""
        try:
            answers = self._read(now_ms)
            if answers is not None:
                self._answer(answers, now_ms)
        except Exception as bug:
            self._broker.router.fail(self._request, bug, now_ms)

    def _answer(self, answers: Answers, now_ms: int) -> None:
        read = answers + self._refused
        context = self._context
        chosen = context.finish(read, now_ms)
        if context.error != _NONE:
            self._give_back(read)
        version = self._request.api_version
        if version < FIRST_VERSION_OF_ZSTD:
            chosen = self._converted(chosen)
        response = FetchResponse(
            error_code=context.error,
            session_id=context.session_id,
            responses=_by_topic(chosen),
        )
        if version >= FIRST_VERSION_WITH_LEADERS:
            self._tell_leaders(response, chosen)
        self._broker.answer(self._request, response)

    def _converted(self, answers: Answers) -> Answers:
        """What an old client can read, from any partition on: the same one is not always last."""
        budget = ConversionBudget()
        count = len(answers)
        first = self._broker.random.randrange(count) if count > 1 else 0
        for step in range(count):
            at = (first + step) % count
            asked, answer = answers[at]
            partition = self._broker.replicas.find(asked.topic or "", asked.partition)
            is_from_follower = self._reader.is_from_follower
            version = self._request.api_version
            answers[at] = (
                asked,
                convert(partition, asked, answer, version, is_from_follower, budget),
            )
        return answers

    def _tell_leaders(self, response: FetchResponse, answers: Answers) -> None:
        """Name the leader of every partition that is led elsewhere or in another epoch."""
        listener = self._request.connection.listener
        endpoints: dict[int, NodeEndpoint] = {}
        for asked, answer in answers:
            error = answer.error_code
            if error not in (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.FENCED_LEADER_EPOCH):
                continue
            hint = leader_hint(self._broker, asked.topic or "", asked.partition, listener)
            answer.current_leader = LeaderIdAndEpoch(hint.leader_id, hint.leader_epoch)
            node = hint.node
            if node is not None:
                endpoints[node.broker_id] = NodeEndpoint(
                    node_id=node.broker_id, host=node.host, port=node.port, rack=node.rack
                )
        response.node_endpoints = list(endpoints.values())


def _by_topic(answers: Answers) -> list[FetchableTopicResponse]:
    """The answers in their order, neighbours of one topic together."""
    topics: list[FetchableTopicResponse] = []
    last: FetchableTopicResponse | None = None
    for asked, answer in answers:
        name = asked.topic or ""
        if last is None or last.topic != name or last.topic_id != asked.topic_id:
            last = FetchableTopicResponse(topic=name, topic_id=asked.topic_id, partitions=[])
            topics.append(last)
        last.partitions.append(answer)
    return topics
