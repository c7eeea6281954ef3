"""Produce: judge what came, give it its offsets; it is answered when it is written and replicated.

Hot: compiled by mypyc where a compiler is there, interpreted otherwise. Nothing is written here:
batches are staged in their logs until the end of the turn, and the answer waits with them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from barnabas.broker.connections import Request
from barnabas.broker.metadata_cache import CachedTopic
from barnabas.broker.partition import Partition
from barnabas.broker.produce_answers import finish_produce
from barnabas.broker.purgatory import WHEN_WRITTEN, PendingProduce
from barnabas.broker.replicas import Replicas
from barnabas.core.administration.topic_names import INTERNAL_TOPICS
from barnabas.formats.batches.admission import (
    AdmittedBatch,
    Rejection,
    WorkBudget,
    admit,
    check_batch,
    read_produced,
)
from barnabas.formats.batches.conversion import admit_message_set
from barnabas.formats.codec.records import RecordsSpan
from barnabas.formats.wire.generated.produce import (
    BatchIndexAndErrorMessage,
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
    TopicProduceResponse,
)
from barnabas.model.error_codes import ErrorCode
from barnabas.model.errors import DiskError
from barnabas.storage.partition_log import PartitionLog

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker

ADMIN_CLIENT_ID: Final = "__admin_client"
"""The one client that may write to internal topics."""
ACKS_ALL: Final = -1

_NONE: Final = int(ErrorCode.NONE)
_UNKNOWN_OFFSET: Final = -1
_NOTHING_HOSTED: Final[dict[int, Partition]] = {}

_WITHOUT_START_OFFSET: Final = (
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.MESSAGE_TOO_LARGE,
    ErrorCode.RECORD_LIST_TOO_LARGE,
    ErrorCode.CORRUPT_MESSAGE,
    ErrorCode.KAFKA_STORAGE_ERROR,
)
"""Errors with which Kafka does not tell where the log starts."""


def handle(broker: Broker, request: Request, body: ProduceRequest, now_ms: int) -> None:
    """Take in all partitions; the answer leaves at the end of the turn or when replicated."""
    responses: list[TopicProduceResponse] = []
    pending = PendingProduce(
        request, ProduceResponse(responses=responses), body.acks, body.timeout_ms
    )
    intake = _Intake(broker.replicas, request, pending, body.transactional_id, now_ms)
    for topic_data in _named_once(body.topic_data):
        topic = topic_data.name
        intake.begin_topic(topic)
        answers: list[PartitionProduceResponse] = []
        for data in topic_data.partition_data:
            answer = intake.take(data.index, data.records)
            if answer.error_code != _NONE:
                pending.has_error = True
            answers.append(answer)
        responses.append(TopicProduceResponse(name=topic, partition_responses=answers))
    pending.waiting_count -= 1
    if pending.waiting_count == 0:
        finish_produce(broker, pending, now_ms)


def _named_once(asked: list[TopicProduceData]) -> list[TopicProduceData]:
    """Each topic and partition once: of one that is named again the last batch counts."""
    if len(asked) == 1 and len(asked[0].partition_data) == 1:
        return asked
    by_topic: dict[str, dict[int, PartitionProduceData]] = {}
    for topic in asked:
        partitions = by_topic.get(topic.name)
        if partitions is None:
            partitions = by_topic[topic.name] = {}
        for data in topic.partition_data:
            partitions[data.index] = data
    return [
        TopicProduceData(name=name, partition_data=list(partitions.values()))
        for name, partitions in by_topic.items()
    ]


class _Intake:
    """One request on its way into the logs."""

    __slots__ = (
        "_acks",
        "_budget",
        "_hosted",
        "_known",
        "_may_write",
        "_now_ms",
        "_pending",
        "_replicas",
        "_request",
        "_topic",
        "_transactional_id",
        "_version",
        "_wall_ms",
    )

    def __init__(
        self,
        replicas: Replicas,
        request: Request,
        pending: PendingProduce,
        transactional_id: str | None,
        now_ms: int,
    ) -> None:
        self._replicas = replicas
        self._request = request
        self._pending = pending
        self._acks: int = pending.acks
        self._version: int = request.api_version
        self._transactional_id = transactional_id
        self._wall_ms: int = replicas.wall_ms(now_ms)
        self._now_ms: int = now_ms
        self._budget = WorkBudget()
        self._topic = ""
        self._known: CachedTopic | None = None
        self._hosted: dict[int, Partition] = _NOTHING_HOSTED
        self._may_write = False
        """Whether acks are ones that exist, and the topic is not one of the broker's own."""

    def begin_topic(self, topic: str) -> None:
        """The partitions that follow are of this topic."""
        self._topic = topic
        self._known = self._replicas.metadata_cache.topic(topic)
        self._hosted = self._replicas.of_topic(topic)
        self._may_write = -1 <= self._acks <= 1 and (
            topic not in INTERNAL_TOPICS or self._request.client_id == ADMIN_CLIENT_ID
        )

    def take(self, index: int, records: object) -> PartitionProduceResponse:
        """Stage one partition's batch, or say why not; Kafka's order of checks."""
        known = self._known
        if known is None or index not in known.partitions:
            return _refused(index, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        if not isinstance(records, RecordsSpan):
            return _refused(index, ErrorCode.INVALID_RECORD)
        data, start = records.data, records.start
        produced = read_produced(data, start, records.end, self._version)
        if isinstance(produced, Rejection):
            return _rejected(index, produced, _UNKNOWN_OFFSET)
        partition = self._hosted.get(index)
        if partition is None or not self._may_write:
            return self._refuse(index, partition)
        leader, log = partition.leader, partition.log
        if leader is None:
            return self._refuse(index, partition)
        if leader.is_under_min_isr and self._acks == ACKS_ALL:
            return _refused(index, ErrorCode.NOT_ENOUGH_REPLICAS, partition.log_start_offset)
        rules, wall_ms = partition.rules, self._wall_ms
        admitted: AdmittedBatch | Rejection | None
        if produced is None:
            admitted = admit_message_set(data, start, records.end, rules, wall_ms, self._budget)
        else:
            admitted = check_batch(data, produced, start, rules)
            if admitted is None:
                if produced.is_transactional:
                    admitted = self._transactional()
                else:
                    admitted = admit(data, produced, start, rules, wall_ms, self._budget)
        if isinstance(admitted, Rejection):
            return _rejected(index, admitted, partition.log_start_offset)
        if admitted is None or log is None:
            return _taken(index, _UNKNOWN_OFFSET, -1, partition.log_start_offset)
        return self._append(partition, log, admitted)

    def _refuse(self, index: int, partition: Partition | None) -> PartitionProduceResponse:
        """Why nobody may write here, the first reason first."""
        if not -1 <= self._acks <= 1:
            return _refused(index, ErrorCode.INVALID_REQUIRED_ACKS)
        if not self._may_write:
            return _refused(index, ErrorCode.INVALID_TOPIC_EXCEPTION)
        if partition is None:
            return _refused(index, self._replicas.absence(self._topic, index))
        if partition.is_offline:
            return _refused(index, ErrorCode.KAFKA_STORAGE_ERROR)
        return _refused(index, ErrorCode.NOT_LEADER_OR_FOLLOWER)

    def _transactional(self) -> Rejection:
        """No coordinator is here that could have begun a transaction (InitProducerId says so)."""
        if self._transactional_id is None:
            return Rejection(
                ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
                "a transactional batch without a transactional id",
            )
        return Rejection(
            ErrorCode.INVALID_TXN_STATE, "the partition was not added to a transaction"
        )

    def _append(
        self, partition: Partition, log: PartitionLog, admitted: AdmittedBatch
    ) -> PartitionProduceResponse:
        header = admitted.header
        start = admitted.start
        index = partition.index
        replicas = self._replicas
        try:
            result = log.append_as_leader(
                admitted.data,
                start,
                start + header.size_bytes,
                header,
                partition.leader_epoch,
                self._wall_ms,
            )
        except DiskError as error:
            replicas.take_offline(partition, error.reason, self._now_ms)
            return _refused(index, ErrorCode.KAFKA_STORAGE_ERROR)
        if result.error != _NONE:
            return _refused(index, result.error, result.log_start_offset)
        answer = _taken(index, result.base_offset, result.log_append_time, result.log_start_offset)
        if not partition.is_dirty:
            replicas.note_appended(partition)
        pending = self._pending
        pending.waiting_count += 1
        required_offset = result.last_offset + 1 if self._acks == ACKS_ALL else WHEN_WRITTEN
        partition.room.this_turn.append((required_offset, pending, answer))
        return answer


def _taken(
    index: int, base_offset: int, log_append_time_ms: int, log_start_offset: int
) -> PartitionProduceResponse:
    return PartitionProduceResponse(
        index=index,
        base_offset=base_offset,
        log_append_time_ms=log_append_time_ms,
        log_start_offset=log_start_offset,
    )


def _refused(
    index: int, error: ErrorCode, log_start_offset: int = _UNKNOWN_OFFSET
) -> PartitionProduceResponse:
    if error in _WITHOUT_START_OFFSET:
        log_start_offset = _UNKNOWN_OFFSET
    return PartitionProduceResponse(
        index=index,
        error_code=error,
        base_offset=_UNKNOWN_OFFSET,
        log_start_offset=log_start_offset,
    )


def _rejected(index: int, rejection: Rejection, log_start_offset: int) -> PartitionProduceResponse:
    answer = _refused(index, rejection.error_code, log_start_offset)
    answer.error_message = rejection.message
    answer.record_errors = [
        BatchIndexAndErrorMessage(batch_index=number, batch_index_error_message=text)
        for number, text in rejection.record_errors
    ]
    return answer
