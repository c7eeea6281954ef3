"""LeaderAndIsr: who leads the replicas that are here; every version's shape on the wire."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from barnabas.broker.connections import Request
from barnabas.broker.control_requests import Sender
from barnabas.broker.partition import PartitionState
from barnabas.broker.role_changes import RoleChange, ToldPartition
from barnabas.formats.wire.generated.leader_and_isr import (
    LeaderAndIsrPartitionError,
    LeaderAndIsrPartitionState,
    LeaderAndIsrRequest,
    LeaderAndIsrResponse,
    LeaderAndIsrTopicError,
)
from barnabas.model.error_codes import ErrorCode
from barnabas.model.ids import NO_TOPIC_ID, TopicId, TopicPartition

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker

FIRST_VERSION_BY_TOPIC: Final = 2
FIRST_VERSION_ANSWERED_BY_ID: Final = 5


def handle(broker: Broker, request: Request, body: LeaderAndIsrRequest, now_ms: int) -> None:
    """Queue the request; it is answered when it is carried out."""
    broker.control_requests.submit(_LeaderAndIsr(broker, request, body), now_ms)


class _LeaderAndIsr:
    """One request (a `ControlRequest`)."""

    def __init__(self, broker: Broker, request: Request, body: LeaderAndIsrRequest) -> None:
        self._broker = broker
        self.request = request
        self.sender = Sender(
            "LeaderAndIsr",
            body.controller_id,
            body.controller_epoch,
            body.broker_epoch,
            body.is_k_raft_controller,
        )
        self._told = _told_partitions(body, request.api_version)

    def partitions(self) -> list[TopicPartition]:
        return [told.topic_partition for told in self._told]

    def refuse(self, error: ErrorCode) -> LeaderAndIsrResponse:
        """The error stands at the top and at every partition (L2, L4)."""
        response = self._answer({told.topic_partition: error for told in self._told})
        response.error_code = error
        return response

    def carry_out(self, done: Callable[[object, int], None], now_ms: int) -> None:
        def on_done(done_ms: int) -> None:
            done(self._answer(change.errors), done_ms)

        change = RoleChange(self._broker, self._told, on_done)
        change.begin(now_ms)

    def _answer(self, errors: dict[TopicPartition, ErrorCode]) -> LeaderAndIsrResponse:
        """By topic name up to version 4, by topic id from then on (L26)."""
        if self.request.api_version < FIRST_VERSION_ANSWERED_BY_ID:
            return LeaderAndIsrResponse(
                partition_errors=[
                    LeaderAndIsrPartitionError(
                        topic_name=key.topic, partition_index=key.partition, error_code=error
                    )
                    for key, error in errors.items()
                ]
            )
        ids = {told.topic_partition.topic: told.topic_id for told in self._told}
        topics: dict[TopicId, LeaderAndIsrTopicError] = {}
        for key, error in errors.items():
            topic_id = ids[key.topic]
            topic = topics.get(topic_id)
            if topic is None:
                topic = topics[topic_id] = LeaderAndIsrTopicError(
                    topic_id=topic_id, partition_errors=[]
                )
            topic.partition_errors.append(
                LeaderAndIsrPartitionError(partition_index=key.partition, error_code=error)
            )
        return LeaderAndIsrResponse(topics=list(topics.values()))

    def partition_errors(self, response: object) -> list[tuple[str, str]]:
        if not isinstance(response, LeaderAndIsrResponse):
            return []
        names = {told.topic_id: told.topic_partition.topic for told in self._told}
        found = [
            (TopicPartition(entry.topic_name, entry.partition_index), entry.error_code)
            for entry in response.partition_errors
        ]
        for topic in response.topics:
            name = names.get(topic.topic_id, "")
            for entry in topic.partition_errors:
                found.append((TopicPartition(name, entry.partition_index), entry.error_code))
        return [(str(key), ErrorCode(code).name) for key, code in found]


def _told_partitions(body: LeaderAndIsrRequest, version: int) -> list[ToldPartition]:
    """Every entry with its topic, wherever the version keeps it."""
    if version < FIRST_VERSION_BY_TOPIC:
        return [
            _told(state.topic_name, NO_TOPIC_ID, state) for state in body.ungrouped_partition_states
        ]
    return [
        _told(topic.topic_name, topic.topic_id, state)
        for topic in body.topic_states
        for state in topic.partition_states
    ]


def _told(topic: str, topic_id: TopicId, state: LeaderAndIsrPartitionState) -> ToldPartition:
    return ToldPartition(
        TopicPartition(topic, state.partition_index),
        topic_id,
        PartitionState(
            controller_epoch=state.controller_epoch,
            leader=state.leader,
            leader_epoch=state.leader_epoch,
            isr=tuple(state.isr),
            partition_epoch=state.partition_epoch,
            replicas=tuple(state.replicas),
            adding_replicas=tuple(state.adding_replicas),
            removing_replicas=tuple(state.removing_replicas),
            is_new=state.is_new,
        ),
    )
