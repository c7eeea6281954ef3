"""The follower's half of replication: which partitions are fetched from which leader (F1, F18)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from barnabas.broker.leader_fetcher import LeaderFetcher, ReplicationFailed
from barnabas.broker.partition import Partition
from barnabas.core.replication.follower import PartitionFollower
from barnabas.model.ids import BrokerId, TopicId, TopicPartition

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker


class ReplicaFetchers:
    """One fetcher per leader; a partition is in at most one of them (I12)."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._by_leader: dict[BrokerId, LeaderFetcher] = {}
        broker.replicas.on_offline(self._on_offline)

    def follow(self, partitions: Iterable[tuple[Partition, TopicId]], now_ms: int) -> None:
        """Fetch partitions from the leaders that they were told, under the ids told with that."""
        touched: dict[BrokerId, LeaderFetcher] = {}
        for partition, topic_id in partitions:
            leader_id = partition.leader_id
            fetcher = touched.get(leader_id) or self._fetcher(leader_id, now_ms)
            if fetcher is None:
                problem = "the leader has no listener for brokers"
                event = ReplicationFailed(leader_id, partition.topic_partition, problem)
                self._broker.events.publish(event, now_ms)
                continue
            touched[leader_id] = fetcher
            follower = PartitionFollower(leader_id, partition.leader_epoch, topic_id)
            fetcher.add(partition, follower, now_ms)
        for fetcher in touched.values():
            fetcher.pump(now_ms)

    def _fetcher(self, leader_id: BrokerId, now_ms: int) -> LeaderFetcher | None:
        """The leader's fetcher; a new one when it listens elsewhere by now."""
        listener = self._broker.config.inter_broker_listener_name
        node = self._broker.metadata_cache.node(leader_id, listener)
        fetcher = self._by_leader.get(leader_id)
        if node is None:
            return fetcher
        if fetcher is None:
            fetcher = self._by_leader[leader_id] = LeaderFetcher(self._broker, node)
        elif (fetcher.leader.host, fetcher.leader.port) != (node.host, node.port):
            fetcher.move_to(node, now_ms)
        return fetcher

    def stop(self, partitions: Iterable[TopicPartition], now_ms: int) -> None:
        """Fetch these no more."""
        for topic_partition in partitions:
            for fetcher in self._by_leader.values():
                fetcher.remove(topic_partition, now_ms)

    def follower(self, topic_partition: TopicPartition) -> PartitionFollower | None:
        """How the replication of a followed partition stands."""
        for fetcher in self._by_leader.values():
            followed = fetcher.followed(topic_partition)
            if followed is not None:
                return followed.follower
        return None

    def update_topic_id(self, topic_partition: TopicPartition, topic_id: TopicId) -> None:
        """The controller gave a followed partition an id, or withdrew it (L9)."""
        follower = self.follower(topic_partition)
        if follower is not None:
            follower.topic_id = topic_id

    def close_idle(self) -> None:
        """End the links to leaders that lead nothing we hold (F18)."""
        for leader_id, fetcher in list(self._by_leader.items()):
            if fetcher.is_idle:
                fetcher.close()
                del self._by_leader[leader_id]

    def close(self) -> None:
        """Follow nothing any more: the broker stops."""
        for fetcher in self._by_leader.values():
            fetcher.close()
        self._by_leader.clear()

    def _on_offline(self, partition: Partition, now_ms: int) -> None:
        self.stop([partition.topic_partition], now_ms)
