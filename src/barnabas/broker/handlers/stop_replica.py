"""StopReplica: the controller takes replicas away; every version's shape on the wire."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from barnabas.broker.connections import Request
from barnabas.broker.control_requests import Sender
from barnabas.broker.replica_stops import ReplicaStop, ToldStop
from barnabas.formats.wire.generated.stop_replica import (
    StopReplicaPartitionError,
    StopReplicaRequest,
    StopReplicaResponse,
)
from barnabas.model.epochs import NO_EPOCH
from barnabas.model.error_codes import ErrorCode
from barnabas.model.ids import TopicPartition

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker

FIRST_VERSION_BY_TOPIC: Final = 1
FIRST_VERSION_WITH_EPOCHS: Final = 3


def handle(broker: Broker, request: Request, body: StopReplicaRequest, now_ms: int) -> None:
    """Queue the request behind those before it; it is answered when the disk is done."""
    broker.control_requests.submit(_StopReplica(broker, request, body), now_ms)


class _StopReplica:
    """One request (a `ControlRequest`)."""

    def __init__(self, broker: Broker, request: Request, body: StopReplicaRequest) -> None:
        self.request = request
        self.sender = Sender(
            "StopReplica",
            body.controller_id,
            body.controller_epoch,
            body.broker_epoch,
            body.is_k_raft_controller,
        )
        self._told = _told_of(body, request.api_version)
        self._stop = ReplicaStop(broker, self._told)

    def partitions(self) -> list[TopicPartition]:
        return [told.topic_partition for told in self._told]

    def refuse(self, error: ErrorCode) -> StopReplicaResponse:
        """No partition is named in the answer of a stale request (L2, S2)."""
        response = StopReplicaResponse(error_code=error)
        if error == ErrorCode.UNKNOWN_SERVER_ERROR:
            self._stop.errors = dict.fromkeys(self.partitions(), error)
            response.partition_errors = self._told_errors()
        return response

    def carry_out(self, done: Callable[[object, int], None], now_ms: int) -> None:
        def answer(done_ms: int) -> None:
            done(StopReplicaResponse(partition_errors=self._told_errors()), done_ms)

        self._stop.carry_out(answer, now_ms)

    def _told_errors(self) -> list[StopReplicaPartitionError]:
        return [
            StopReplicaPartitionError(
                topic_name=key.topic, partition_index=key.partition, error_code=error
            )
            for key, error in self._stop.errors.items()
        ]

    def partition_errors(self, response: object) -> list[tuple[str, str]]:
        return [(str(key), error.name) for key, error in self._stop.errors.items()]


def _told_of(body: StopReplicaRequest, version: int) -> list[ToldStop]:
    """Every partition, wherever the version keeps it; before epochs were told there are none."""
    if version >= FIRST_VERSION_WITH_EPOCHS:
        return [
            ToldStop(
                TopicPartition(topic.topic_name, state.partition_index),
                state.leader_epoch,
                state.delete_partition,
            )
            for topic in body.topic_states
            for state in topic.partition_states
        ]
    if version >= FIRST_VERSION_BY_TOPIC:
        named = [
            TopicPartition(topic.name, index)
            for topic in body.topics
            for index in topic.partition_indexes
        ]
    else:
        named = [
            TopicPartition(entry.topic_name, entry.partition_index)
            for entry in body.ungrouped_partitions
        ]
    return [ToldStop(key, NO_EPOCH, body.delete_partitions) for key in named]
