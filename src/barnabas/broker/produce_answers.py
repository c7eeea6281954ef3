"""The end of a produce: its answer, or with acks=0 the silence that says that all is well."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from barnabas.broker.leader_hints import leader_hint
from barnabas.broker.metadata_cache import Node
from barnabas.broker.purgatory import PendingProduce
from barnabas.formats.wire.generated.produce import LeaderIdAndEpoch, NodeEndpoint
from barnabas.model.error_codes import ErrorCode

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker

FIRST_VERSION_WITH_LEADERS: Final = 10
_NOT_LEADER: Final = int(ErrorCode.NOT_LEADER_OR_FOLLOWER)


def finish_produce(broker: Broker, produce: PendingProduce, now_ms: int) -> None:
    """Send the answer; without acks an error can only be told by closing the connection."""
    request = produce.request
    if request is None:
        _finish_own(produce, now_ms)
    elif produce.acks != 0:
        if produce.has_error and request.api_version >= FIRST_VERSION_WITH_LEADERS:
            _tell_leaders(broker, produce, request.connection.listener)
        broker.answer(request, produce.response)
    elif produce.has_error:
        broker.refuse(request.connection, "a produce with acks=0 failed", now_ms)
    else:
        broker.answer_nothing(request)


def _finish_own(produce: PendingProduce, now_ms: int) -> None:
    """Tell the room of this broker that appended what became of it."""
    then = produce.then
    if then is not None:
        [topic] = produce.response.responses
        [partition] = topic.partition_responses
        then(partition.error_code, now_ms)


def _tell_leaders(broker: Broker, produce: PendingProduce, listener: str) -> None:
    """Name the leader of every partition that is led elsewhere, and where it is reached."""
    nodes: dict[int, Node] = {}
    for topic in produce.response.responses:
        for partition in topic.partition_responses:
            if partition.error_code == _NOT_LEADER:
                hint = leader_hint(broker, topic.name, partition.index, listener)
                partition.current_leader = LeaderIdAndEpoch(hint.leader_id, hint.leader_epoch)
                if hint.node is not None:
                    nodes[hint.leader_id] = hint.node
    if nodes:
        produce.response.node_endpoints = [
            NodeEndpoint(node_id=node.broker_id, host=node.host, port=node.port, rack=node.rack)
            for node in nodes.values()
        ]
