"""UpdateMetadata: what this broker shall tell of the cluster from now on; every version's shape."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from barnabas.broker.connections import Request
from barnabas.broker.control_requests import Sender
from barnabas.broker.metadata_cache import PartitionUpdate
from barnabas.formats.wire.generated.update_metadata import (
    UpdateMetadataBroker,
    UpdateMetadataEndpoint,
    UpdateMetadataRequest,
    UpdateMetadataResponse,
)
from barnabas.model.error_codes import ErrorCode
from barnabas.model.ids import TopicPartition
from barnabas.model.listeners import SECURITY_PROTOCOLS

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker

FIRST_VERSION_WITH_LISTENERS: Final = 3
FIRST_VERSION_BY_TOPIC: Final = 5
PLAINTEXT: Final = 0


def handle(broker: Broker, request: Request, body: UpdateMetadataRequest, now_ms: int) -> None:
    """Queue the request behind those before it; it is carried out at once then."""
    broker.control_requests.submit(_UpdateMetadata(broker, request, body), now_ms)


class _UpdateMetadata:
    """One request (a `ControlRequest`)."""

    def __init__(self, broker: Broker, request: Request, body: UpdateMetadataRequest) -> None:
        self._broker = broker
        self.request = request
        self._body = body
        self.sender = Sender(
            "UpdateMetadata",
            body.controller_id,
            body.controller_epoch,
            body.broker_epoch,
            body.is_k_raft_controller,
        )

    def _updates(self) -> list[PartitionUpdate]:
        body = self._body
        if self.request.api_version < FIRST_VERSION_BY_TOPIC:
            return [
                PartitionUpdate(state.topic_name, state)
                for state in body.ungrouped_partition_states
            ]
        return [
            PartitionUpdate(topic.topic_name, state)
            for topic in body.topic_states
            for state in topic.partition_states
        ]

    def partitions(self) -> list[TopicPartition]:
        return [TopicPartition(topic, state.partition_index) for topic, state in self._updates()]

    def refuse(self, error: ErrorCode) -> UpdateMetadataResponse:
        return UpdateMetadataResponse(error_code=error)

    def carry_out(self, done: Callable[[object, int], None], now_ms: int) -> None:
        body = self._body
        for live in body.live_brokers:
            _name_listeners(live, self.request.api_version)
        self._broker.metadata_cache.apply(
            body.controller_id,
            body.live_brokers,
            [(topic.topic_name, topic.topic_id) for topic in body.topic_states],
            self._updates(),
            now_ms,
        )
        done(UpdateMetadataResponse(), now_ms)

    def partition_errors(self, response: object) -> list[tuple[str, str]]:
        return []


def _name_listeners(broker: UpdateMetadataBroker, version: int) -> None:
    """Before listeners had names, the security protocol was the name."""
    if version == 0:
        broker.endpoints = [
            UpdateMetadataEndpoint(
                host=broker.v0_host, port=broker.v0_port, security_protocol=PLAINTEXT
            )
        ]
    if version < FIRST_VERSION_WITH_LISTENERS:
        for endpoint in broker.endpoints:
            if 0 <= endpoint.security_protocol < len(SECURITY_PROTOCOLS):
                endpoint.listener = SECURITY_PROTOCOLS[endpoint.security_protocol]
