"""StopReplica: the controller takes replicas away, for now or for good; every version's shape."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final, NamedTuple

from barnabas.broker.connections import Request
from barnabas.broker.control_requests import Sender
from barnabas.formats.wire.generated.stop_replica import (
    StopReplicaPartitionError,
    StopReplicaRequest,
    StopReplicaResponse,
)
from barnabas.model.epochs import EPOCH_DURING_DELETE, NO_EPOCH
from barnabas.model.error_codes import ErrorCode
from barnabas.model.ids import TopicPartition

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker

FIRST_VERSION_BY_TOPIC: Final = 1
FIRST_VERSION_WITH_EPOCHS: Final = 3


class _Stop(NamedTuple):
    """What is to become of one replica."""

    topic_partition: TopicPartition
    leader_epoch: int
    is_deletion: bool


def handle(broker: Broker, request: Request, body: StopReplicaRequest, now_ms: int) -> None:
    """Queue the request behind those before it; it is carried out at once then."""
    broker.control_requests.submit(_StopReplica(broker, request, body), now_ms)


class _StopReplica:
    """One request (a `ControlRequest`)."""

    def __init__(self, broker: Broker, request: Request, body: StopReplicaRequest) -> None:
        self._broker = broker
        self.request = request
        self.sender = Sender(
            "StopReplica",
            body.controller_id,
            body.controller_epoch,
            body.broker_epoch,
            body.is_k_raft_controller,
        )
        self._stops = _stops_of(body, request.api_version)
        self._errors: dict[TopicPartition, ErrorCode] = {}

    def partitions(self) -> list[TopicPartition]:
        return [stop.topic_partition for stop in self._stops]

    def refuse(self, error: ErrorCode) -> StopReplicaResponse:
        """No partition is named in the answer of a stale request (L2, S2)."""
        response = StopReplicaResponse(error_code=error)
        if error == ErrorCode.UNKNOWN_SERVER_ERROR:
            self._errors = dict.fromkeys(self.partitions(), error)
            response.partition_errors = self._told_errors()
        return response

    def carry_out(self, done: Callable[[object, int], None], now_ms: int) -> None:
        """Stop fetching for all that are accepted, then delete, then answer who waits (S6)."""
        accepted: list[_Stop] = []
        for stop in self._stops:
            error = self._judge(stop)
            self._errors[stop.topic_partition] = error
            if error == ErrorCode.NONE:
                accepted.append(stop)
        self._broker.fetchers.stop([stop.topic_partition for stop in accepted], now_ms)
        self._delete([stop for stop in accepted if stop.is_deletion], now_ms)
        self._broker.fetchers.close_idle()
        done(StopReplicaResponse(partition_errors=self._told_errors()), now_ms)

    def _judge(self, stop: _Stop) -> ErrorCode:
        """An epoch below ours is fenced; an equal one is not, since 3.5 (S3-S5)."""
        key = stop.topic_partition
        partition = self._broker.replicas.find(key.topic, key.partition)
        if partition is None:
            return ErrorCode.NONE
        if partition.is_offline:
            return ErrorCode.KAFKA_STORAGE_ERROR
        is_without_epoch = stop.leader_epoch in (NO_EPOCH, EPOCH_DURING_DELETE)
        if is_without_epoch or stop.leader_epoch >= partition.leader_epoch:
            return ErrorCode.NONE
        return ErrorCode.FENCED_LEADER_EPOCH

    def _delete(self, stops: list[_Stop], now_ms: int) -> None:
        """Host the replicas no more and retire their logs; without deletion all stays (S7)."""
        broker = self._broker
        replicas = broker.replicas
        for key, _, _ in stops:
            partition = replicas.find(key.topic, key.partition)
            if partition is not None:
                replicas.write_out(partition, now_ms)
                replicas.release(partition)
                partition.forget_role()
                replicas.dismiss(partition, replicas.absence(key.topic, key.partition), now_ms)
        refused = broker.logs.retire([stop.topic_partition for stop in stops], now_ms)
        for key, leader_epoch, _ in stops:
            if key in refused:
                self._errors[key] = ErrorCode.KAFKA_STORAGE_ERROR
                continue
            if not replicas.partitions_of(key.topic):
                broker.topic_configs.forget(key.topic)
            broker.control_requests.note_deleted(key, max(leader_epoch, NO_EPOCH), now_ms)

    def _told_errors(self) -> list[StopReplicaPartitionError]:
        return [
            StopReplicaPartitionError(
                topic_name=key.topic, partition_index=key.partition, error_code=error
            )
            for key, error in self._errors.items()
        ]

    def partition_errors(self, response: object) -> list[tuple[str, str]]:
        return [(str(key), error.name) for key, error in self._errors.items()]


def _stops_of(body: StopReplicaRequest, version: int) -> list[_Stop]:
    """Every partition, wherever the version keeps it; before epochs were told there are none."""
    if version >= FIRST_VERSION_WITH_EPOCHS:
        return [
            _Stop(
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
    return [_Stop(key, NO_EPOCH, body.delete_partitions) for key in named]
