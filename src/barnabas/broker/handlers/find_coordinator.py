"""FindCoordinator: the broker that leads the partition in which a group is kept."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from barnabas.broker.connections import Request
from barnabas.broker.metadata_cache import Node
from barnabas.core.administration.topic_names import GROUP_TOPIC
from barnabas.core.coordinator.partitions import coordinator_partition
from barnabas.formats.wire.generated.find_coordinator import (
    Coordinator,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)
from barnabas.model.error_codes import ErrorCode
from barnabas.model.ids import NO_BROKER

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker

FIRST_VERSION_WITH_MANY: Final = 4
GROUP: Final = 0
TRANSACTION: Final = 1
MESSAGES: Final = {
    ErrorCode.NONE: "NONE",
    ErrorCode.COORDINATOR_NOT_AVAILABLE: "The coordinator is not available.",
}
"""What Kafka says in the versions for one key; in those for many it is silent."""
NO_TRANSACTIONS: Final = "this broker has no transactions yet: leave transactional.id unset"


def handle(
    broker: Broker, request: Request, body: FindCoordinatorRequest, now_ms: int
) -> FindCoordinatorResponse | None:
    """Name the coordinators; their topic is created when somebody first asks (C9)."""
    keys = body.coordinator_keys if request.api_version >= FIRST_VERSION_WITH_MANY else [body.key]
    if body.key_type != GROUP:
        message = NO_TRANSACTIONS
        if body.key_type != TRANSACTION:
            message = f"there is no coordinator of type {body.key_type}"
        return _response(request, [_none(key, ErrorCode.INVALID_REQUEST, message) for key in keys])
    if broker.metadata_cache.topic(GROUP_TOPIC) is not None:
        return _response(request, [_locate(broker, request, key) for key in keys])

    def on_created(errors: dict[str, ErrorCode], created_ms: int) -> None:
        # Also when it is there by now: the client asks again and meets its leaders.
        broker.answer(
            request,
            _response(request, [_none(key, ErrorCode.COORDINATOR_NOT_AVAILABLE) for key in keys]),
        )

    broker.administration.create_automatically([GROUP_TOPIC], on_created)
    return None


def _locate(broker: Broker, request: Request, key: str) -> Coordinator:
    cache = broker.metadata_cache
    topic = cache.topic(GROUP_TOPIC)
    count = 0 if topic is None else len(topic.partitions)
    if count == 0:
        return _none(key, ErrorCode.COORDINATOR_NOT_AVAILABLE)
    state = cache.partition(GROUP_TOPIC, coordinator_partition(key, count))
    node: Node | None = None
    if state is not None:
        node = cache.node(state.leader, request.connection.listener)
    if node is None:
        return _none(key, ErrorCode.COORDINATOR_NOT_AVAILABLE)
    return Coordinator(key=key, node_id=node.broker_id, host=node.host, port=node.port)


def _none(key: str, error: ErrorCode, message: str = "") -> Coordinator:
    return Coordinator(
        key=key, node_id=NO_BROKER, host="", port=-1, error_code=error, error_message=message
    )


def _response(request: Request, found: list[Coordinator]) -> FindCoordinatorResponse:
    if request.api_version >= FIRST_VERSION_WITH_MANY:
        return FindCoordinatorResponse(coordinators=found)
    [one] = found
    error = ErrorCode(one.error_code)
    return FindCoordinatorResponse(
        error_code=error,
        error_message=one.error_message or MESSAGES[error],
        node_id=one.node_id,
        host=one.host,
        port=one.port,
    )
