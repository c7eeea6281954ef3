"""Who leads instead: what a client is told with NOT_LEADER_OR_FOLLOWER, so that it need not ask."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from barnabas.broker.metadata_cache import Node
from barnabas.model.epochs import LeaderEpoch
from barnabas.model.ids import NO_BROKER, BrokerId

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker


class LeaderHint(NamedTuple):
    """A partition's leader as far as this broker knows; `node` where clients reach it."""

    leader_id: BrokerId
    leader_epoch: LeaderEpoch
    node: Node | None


def leader_hint(broker: Broker, topic: str, index: int, listener: str) -> LeaderHint:
    """The replica's own knowledge first, it may be newer; else what the cache was told."""
    partition = broker.replicas.find(topic, index)
    if partition is not None and not partition.is_offline:
        leader_id, leader_epoch = partition.leader_id, partition.leader_epoch
    else:
        told = broker.metadata_cache.partition(topic, index)
        leader_id = NO_BROKER if told is None else told.leader
        leader_epoch = LeaderEpoch(-1) if told is None else told.leader_epoch
    return LeaderHint(leader_id, leader_epoch, broker.metadata_cache.node(leader_id, listener))
