"""Produce: judge what came, give it its offsets; it is answered when it is written and replicated.

Hot: compiled by mypyc where a compiler is there, interpreted otherwise. Nothing is written here:
batches are staged in their logs until the end of the turn, and the answer waits with them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from barnabas.broker.connections import Request
from barnabas.broker.partition import Partition
from barnabas.broker.produce_answers import finish_produce
from barnabas.broker.purgatory import WHEN_WRITTEN, PendingProduce
from barnabas.core.administration.topic_names import INTERNAL_TOPICS
from barnabas.formats.batches.admission import (
    AdmittedBatch,
    Rejection,
    admit,
    check_batch,
    read_produced,
)
from barnabas.formats.batches.conversion import admit_message_set
from barnabas.formats.batches.header import BatchHeader
from barnabas.formats.codec.records import RecordsSpan
from barnabas.formats.wire.generated.produce import (
    BatchIndexAndErrorMessage,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
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
    response = ProduceResponse(responses=[])
    pending = PendingProduce(request, response, body.acks, body.timeout_ms)
    intake = _Intake(broker, request, pending, body.transactional_id, now_ms)
    for topic_data in body.topic_data:
        answers: list[PartitionProduceResponse] = []
        for data in topic_data.partition_data:
            answers.append(intake.take(topic_data.name, data.index, data.records))
        response.responses.append(
            TopicProduceResponse(name=topic_data.name, partition_responses=answers)
        )
    if pending.waiting_count == 0:
        finish_produce(broker, pending, now_ms)


class _Intake:
    """One request on its way into the logs."""

    __slots__ = (
        "_broker",
        "_now_ms",
        "_pending",
        "_request",
        "_transactional_id",
        "_version",
        "_wall_ms",
    )

    def __init__(
        self,
        broker: Broker,
        request: Request,
        pending: PendingProduce,
        transactional_id: str | None,
        now_ms: int,
    ) -> None:
        self._broker = broker
        self._request = request
        self._version: int = request.api_version
        self._pending = pending
        self._transactional_id = transactional_id
        self._now_ms: int = now_ms
        self._wall_ms: int = broker.wall_clock.epoch_ms()

    def take(self, topic: str, index: int, records: object) -> PartitionProduceResponse:
        """Stage one partition's batch, or say why not; Kafka's order of checks."""
        broker = self._broker
        if not broker.metadata_cache.contains(topic, index):
            return _refused(index, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        if not isinstance(records, RecordsSpan):
            return _refused(index, ErrorCode.INVALID_RECORD)
        produced = read_produced(records.data, records.start, records.end, self._version)
        if isinstance(produced, Rejection):
            return _rejected(index, produced, _UNKNOWN_OFFSET)
        acks = self._pending.acks
        if acks != ACKS_ALL and acks != 1 and acks != 0:
            return _refused(index, ErrorCode.INVALID_REQUIRED_ACKS)
        if topic in INTERNAL_TOPICS and self._request.client_id != ADMIN_CLIENT_ID:
            return _refused(index, ErrorCode.INVALID_TOPIC_EXCEPTION)
        partition = broker.replicas.find(topic, index)
        if partition is None:
            return _refused(index, broker.replicas.absence(topic, index))
        if partition.is_offline:
            return _refused(index, ErrorCode.KAFKA_STORAGE_ERROR)
        leader, log = partition.leader, partition.log
        if leader is None or log is None:
            return _refused(index, ErrorCode.NOT_LEADER_OR_FOLLOWER)
        if acks == ACKS_ALL and leader.is_under_min_isr():
            return _refused(index, ErrorCode.NOT_ENOUGH_REPLICAS, log.log_start_offset)
        admitted = self._admit(partition, records, produced)
        if admitted is None:
            return _taken(index, _UNKNOWN_OFFSET, -1, log.log_start_offset)
        if isinstance(admitted, Rejection):
            return _rejected(index, admitted, log.log_start_offset)
        return self._append(partition, log, admitted)

    def _admit(
        self, partition: Partition, records: RecordsSpan, produced: BatchHeader | None
    ) -> AdmittedBatch | Rejection | None:
        """The batch as it will stand in the log; None when there is nothing to append."""
        data, start, rules = records.data, records.start, partition.rules
        if produced is None:
            return admit_message_set(data, start, records.end, rules, self._wall_ms)
        refused = check_batch(data, produced, start, rules)
        if refused is not None:
            return refused
        if produced.is_transactional:
            return self._transactional()
        return admit(data, produced, start, rules, self._wall_ms)

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
        replicas = self._broker.replicas
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
            return _refused(partition.index, ErrorCode.KAFKA_STORAGE_ERROR)
        if result.error != _NONE:
            return _refused(partition.index, result.error, result.log_start_offset)
        answer = _taken(
            partition.index, result.base_offset, result.log_append_time, result.log_start_offset
        )
        required_offset = WHEN_WRITTEN
        if self._pending.acks == ACKS_ALL:
            required_offset = result.last_offset + 1
        replicas.note_appended(partition)
        replicas.purgatory.expect(partition.room, self._pending, answer, required_offset)
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
