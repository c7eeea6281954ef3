"""A StopReplica carried out: which replicas leave this broker, for now or for good.

Each partition is judged by its epoch first. Fetchers end before anything else, then the deleted
partitions are hosted no more and whoever waits for them is answered, then their logs go (S6). The
request is done when the disk is done with them.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from barnabas.model.epochs import EPOCH_DURING_DELETE, NO_EPOCH
from barnabas.model.error_codes import ErrorCode
from barnabas.model.ids import TopicPartition
from barnabas.storage.retirement import Refused

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker


class ToldStop(NamedTuple):
    """What is to become of one replica."""

    topic_partition: TopicPartition
    leader_epoch: int
    is_deletion: bool


class ReplicaStop:
    """One StopReplica from its judging on; `errors` grows to hold every partition."""

    def __init__(self, broker: Broker, told: list[ToldStop]) -> None:
        self._broker = broker
        self._told = told
        self.errors: dict[TopicPartition, ErrorCode] = {}

    def carry_out(self, done: Callable[[int], None], now_ms: int) -> None:
        """Stop fetching for all that are accepted, then delete (S6); `done(now_ms)` ends it."""
        accepted: list[ToldStop] = []
        for told in self._told:
            error = self._judge(told)
            self.errors[told.topic_partition] = error
            if error == ErrorCode.NONE:
                accepted.append(told)
        self._broker.fetchers.stop([told.topic_partition for told in accepted], now_ms)
        self._broker.fetchers.close_idle()
        self._delete([told for told in accepted if told.is_deletion], done, now_ms)

    def _judge(self, told: ToldStop) -> ErrorCode:
        """An epoch below ours is fenced; an equal one is not, since 3.5 (S3-S5)."""
        key = told.topic_partition
        partition = self._broker.replicas.find(key.topic, key.partition)
        if partition is None:
            return ErrorCode.NONE
        if partition.is_offline:
            return ErrorCode.KAFKA_STORAGE_ERROR
        is_without_epoch = told.leader_epoch in (NO_EPOCH, EPOCH_DURING_DELETE)
        if is_without_epoch or told.leader_epoch >= partition.leader_epoch:
            return ErrorCode.NONE
        return ErrorCode.FENCED_LEADER_EPOCH

    def _delete(self, told: list[ToldStop], done: Callable[[int], None], now_ms: int) -> None:
        """Host the replicas no more and retire their logs; without deletion all stays (S7)."""
        replicas = self._broker.replicas
        for key, _, _ in told:
            partition = replicas.find(key.topic, key.partition)
            if partition is not None:
                replicas.write_out(partition, now_ms)
                replicas.release(partition)
                partition.forget_role()
                replicas.dismiss(partition, replicas.absence(key.topic, key.partition), now_ms)
        self._broker.logs.retire(
            [one.topic_partition for one in told], now_ms, partial(self._note_retired, told, done)
        )

    def _note_retired(
        self, told: list[ToldStop], done: Callable[[int], None], refused: Refused
    ) -> None:
        """The logs are gone, or their directory is; who keeps state by partition hears of it."""
        broker = self._broker
        now_ms = broker.now_ms
        for key, leader_epoch, _ in told:
            if key in refused:
                self.errors[key] = ErrorCode.KAFKA_STORAGE_ERROR
                continue
            if not broker.replicas.partitions_of(key.topic):
                broker.topic_configs.forget(key.topic)
            broker.control_requests.note_deleted(key, max(leader_epoch, NO_EPOCH), now_ms)
        done(now_ms)
