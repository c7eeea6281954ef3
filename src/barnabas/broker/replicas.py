"""The replicas of one broker: which partitions are here, and the end of the turn for them all.

Hot: compiled by mypyc where a compiler is there, interpreted otherwise. In a turn of the loop
batches are only taken in; at its end each partition is written with one write, then the watermarks
move, then those who waited are answered: so that nobody is told of what may yet be lost.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from barnabas.broker.connections import Connection
from barnabas.broker.metadata_cache import MetadataCache
from barnabas.broker.partition import Partition
from barnabas.broker.produce_answers import finish_produce
from barnabas.broker.purgatory import (
    WHEN_WRITTEN,
    ParkedFetchEntry,
    PendingProduce,
    Purgatory,
    StagedBatch,
)
from barnabas.core.replication.leader import PartitionLeader
from barnabas.model.epochs import INITIAL_CONTROLLER_EPOCH, ControllerEpoch
from barnabas.model.error_codes import ErrorCode
from barnabas.model.errors import DiskError
from barnabas.model.ids import TopicPartition

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker

_NONE: Final = int(ErrorCode.NONE)
_TOO_FEW: Final = int(ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND)
_NO_PARTITIONS: Final[dict[int, Partition]] = {}


@dataclass(frozen=True, slots=True)
class PartitionWentOffline:
    """A replica can be used no more: its log directory failed."""

    partition: TopicPartition
    reason: str


class Replicas:
    """Every hosted partition, by topic and index."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        # What every produce asks for stands here as well: compiled code reads it without a detour.
        self.metadata_cache: MetadataCache = broker.metadata_cache
        self._wall_clock = broker.wall_clock
        self._wall_ms: int = 0
        self._wall_asked_ms: int = -1
        self._by_topic: dict[str, dict[int, Partition]] = {}
        self._dirty: list[Partition] = []
        self._touched: dict[ParkedFetchEntry, None] = {}
        """Parked fetches for which something moved in this turn."""
        self.controller_epoch: ControllerEpoch = INITIAL_CONTROLLER_EPOCH
        """The highest that a control request carried; an older controller is refused (L4)."""
        self.purgatory = Purgatory(broker.deadlines, broker.router, self._finish_produce)
        self._offline_listeners: list[Callable[[Partition, int], None]] = []

    def wall_ms(self, now_ms: int) -> int:
        """Time of day, asked for once in a millisecond: every produce wants to know it."""
        if now_ms != self._wall_asked_ms:
            self._wall_asked_ms = now_ms
            self._wall_ms = self._wall_clock.epoch_ms()
        return self._wall_ms

    # -- what is here ------------------------------------------------------------------------

    def find(self, topic: str, index: int) -> Partition | None:
        """The hosted partition, also one whose directory is offline."""
        partitions = self._by_topic.get(topic)
        return None if partitions is None else partitions.get(index)

    def of_topic(self, topic: str) -> dict[int, Partition]:
        """The hosted partitions of a topic by index, to be looked up in, not to be kept."""
        return self._by_topic.get(topic, _NO_PARTITIONS)

    def host(self, topic_partition: TopicPartition) -> Partition:
        """Take up a partition that was not here."""
        partition = Partition(topic_partition)
        self._by_topic.setdefault(topic_partition.topic, {})[topic_partition.partition] = partition
        return partition

    def release(self, partition: Partition) -> None:
        """Host the partition no more."""
        partitions = self._by_topic.get(partition.topic)
        if partitions is not None and partitions.get(partition.index) is partition:
            del partitions[partition.index]
            if not partitions:
                del self._by_topic[partition.topic]

    def partitions(self) -> list[Partition]:
        """Every hosted partition, by topic and index."""
        return [
            self._by_topic[topic][index]
            for topic in sorted(self._by_topic)
            for index in sorted(self._by_topic[topic])
        ]

    def partitions_of(self, topic: str) -> list[Partition]:
        """The hosted partitions of one topic, by index."""
        partitions = self._by_topic.get(topic, {})
        return [partitions[index] for index in sorted(partitions)]

    def absence(self, topic: str, index: int) -> ErrorCode:
        """What to answer about a partition that is not hosted here (L27)."""
        if self.metadata_cache.contains(topic, index):
            return ErrorCode.NOT_LEADER_OR_FOLLOWER
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION

    # -- the turn ----------------------------------------------------------------------------

    def note_appended(self, partition: Partition) -> None:
        """Batches of the partition wait for the end of the turn."""
        if not partition.is_dirty:
            partition.is_dirty = True
            self._dirty.append(partition)

    def end_turn(self, now_ms: int) -> None:
        """Write what was taken in, move the watermarks, answer those who waited for that."""
        # Who is told that its records are replicated may append the next ones at once.
        while self._dirty:
            dirty = self._dirty
            self._dirty = []
            for partition in dirty:
                if partition.is_dirty:
                    self.write_out(partition, now_ms)
        if self._touched:
            touched = self._touched
            self._touched = {}
            self.purgatory.complete(list(touched), now_ms)

    def write_out(self, partition: Partition, now_ms: int) -> None:
        """Write a partition's batches of this turn, as before a read of it."""
        if not partition.is_dirty:
            return
        partition.is_dirty = False
        log, leader = partition.log, partition.leader
        if log is None or leader is None:
            return
        try:
            log.write_out()
        except DiskError as error:
            self.take_offline(partition, error.reason, now_ms)
            return
        has_moved = leader.note_append(log.log_end_offset, now_ms)
        if has_moved:
            log.set_high_watermark(leader.high_watermark)
        room = partition.room
        written = room.this_turn
        if written:
            room.this_turn = []
            self._settle_written(partition, leader, written, now_ms)
        if room.at_log_end:
            self._touched.update(room.at_log_end)
        if has_moved:
            self._release(partition, leader, now_ms)

    def _settle_written(
        self,
        partition: Partition,
        leader: PartitionLeader,
        written: list[StagedBatch],
        now_ms: int,
    ) -> None:
        """What asked for the leader's write alone is done; the rest may wait for followers."""
        purgatory = self.purgatory
        high_watermark = leader.high_watermark
        replicated = _NONE if leader.has_enough_replicas else _TOO_FEW
        for staged in written:
            required_offset = staged[0]
            if required_offset > high_watermark:
                purgatory.park_produce(partition.room, staged, now_ms)
            elif required_offset == WHEN_WRITTEN:
                purgatory.settle_answer(staged[1], staged[2], _NONE, now_ms)
            else:
                purgatory.settle_answer(staged[1], staged[2], replicated, now_ms)

    def note_watermark_moved(self, partition: Partition, now_ms: int) -> None:
        """The leader's watermark moved without an append: a follower's fetch or a new isr."""
        leader, log = partition.leader, partition.log
        if leader is not None and log is not None:
            log.set_high_watermark(leader.high_watermark)
            self._release(partition, leader, now_ms)

    def _release(self, partition: Partition, leader: PartitionLeader, now_ms: int) -> None:
        """The watermark moved: answer whom it reached, perhaps on too few replicas by now."""
        room = partition.room
        if room.produces:
            outcome = _NONE if leader.has_enough_replicas else _TOO_FEW
            for wait in room.take_reached(leader.high_watermark):
                self.purgatory.settle(wait, outcome, now_ms)
        if room.at_high_watermark:
            self._touched.update(room.at_high_watermark)

    def note_log_start_moved(self, partition: Partition, now_ms: int) -> None:
        """A follower's log begins elsewhere: perhaps where somebody waits for it to begin."""
        for deletion in list(partition.room.deletions):
            deletion.note_log_start_moved(partition.topic, partition.index, now_ms)

    def note_follower_advanced(self, partition: Partition) -> None:
        """The watermark of a followed partition moved: consumers may read from followers."""
        if partition.room.at_high_watermark:
            self._touched.update(partition.room.at_high_watermark)

    def dismiss(self, partition: Partition, error: ErrorCode, now_ms: int) -> None:
        """Whoever waits at the partition waits in vain: its role here has changed."""
        room = partition.room
        for wait in room.take_all():
            self.purgatory.settle(wait, error, now_ms)
        for deletion in list(room.deletions):
            deletion.dismiss(partition.topic, partition.index, error, now_ms)
        self._touched.update(room.at_log_end)
        self._touched.update(room.at_high_watermark)

    def _finish_produce(self, produce: PendingProduce, now_ms: int) -> None:
        finish_produce(self._broker, produce, now_ms)

    def note_closed(self, connection: Connection) -> None:
        """A connection is gone: nothing waits for it any more."""
        self.purgatory.note_closed(connection)

    # -- failing directories -----------------------------------------------------------------

    def on_offline(self, listener: Callable[[Partition, int], None]) -> None:
        """Call `listener(partition, now_ms)` for every partition that goes offline."""
        self._offline_listeners.append(listener)

    def take_offline(self, partition: Partition, reason: str, now_ms: int) -> None:
        """Use the partition no more: KAFKA_STORAGE_ERROR for all who wait and all who ask."""
        if partition.is_offline:
            return
        partition.is_offline = True
        partition.forget_role()
        self.dismiss(partition, ErrorCode.KAFKA_STORAGE_ERROR, now_ms)
        for listener in self._offline_listeners:
            listener(partition, now_ms)
        self._broker.events.publish(PartitionWentOffline(partition.topic_partition, reason), now_ms)

    def take_directory_offline(self, directory: str, reason: str, now_ms: int) -> None:
        """Every partition in a log directory that failed goes offline."""
        for partition in self.partitions():
            if partition.log is not None and partition.log.log_directory == directory:
                self.take_offline(partition, reason, now_ms)
