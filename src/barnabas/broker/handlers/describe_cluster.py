"""DescribeCluster: the live brokers and which of them is the controller."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from barnabas.broker.connections import Request
from barnabas.broker.handlers.metadata import CLUSTER_OPERATIONS
from barnabas.formats.wire.generated.describe_cluster import (
    DescribeClusterBroker,
    DescribeClusterRequest,
    DescribeClusterResponse,
)
from barnabas.model.error_codes import ErrorCode
from barnabas.model.ids import NO_BROKER

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker

BROKERS: Final = 1
CONTROLLERS: Final = 2
"""An end point of KRaft controllers, which this is not."""


def handle(
    broker: Broker, request: Request, body: DescribeClusterRequest, now_ms: int
) -> DescribeClusterResponse:
    """Answer from the metadata cache, for the listener that was asked."""
    if body.endpoint_type != BROKERS:
        return _wrong_endpoint(body.endpoint_type)
    nodes = broker.metadata_cache.nodes(request.connection.listener)
    controller_id = broker.metadata_cache.controller_id
    if all(node.broker_id != controller_id for node in nodes):
        controller_id = NO_BROKER
    response = DescribeClusterResponse(
        cluster_id=broker.cluster_id,
        controller_id=controller_id,
        brokers=[
            DescribeClusterBroker(
                broker_id=node.broker_id, host=node.host, port=node.port, rack=node.rack
            )
            for node in nodes
        ],
    )
    if body.include_cluster_authorized_operations:
        response.cluster_authorized_operations = CLUSTER_OPERATIONS
    return response


def _wrong_endpoint(endpoint_type: int) -> DescribeClusterResponse:
    """From version 1 on a client says what it expects to talk to."""
    if endpoint_type == CONTROLLERS:
        error = ErrorCode.MISMATCHED_ENDPOINT_TYPE
        message = "this is an end point of brokers, controllers were asked for"
    else:
        error = ErrorCode.UNSUPPORTED_ENDPOINT_TYPE
        message = f"there is no end point type {endpoint_type}"
    return DescribeClusterResponse(error_code=error, error_message=message)
