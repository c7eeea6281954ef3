"""The logs of one broker at work: opened, looked after when it is time, their losses told."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from barnabas.model.errors import DiskError
from barnabas.model.ids import TopicId, TopicPartition
from barnabas.storage.log_events import DirectoryLost
from barnabas.storage.log_manager import LogManager
from barnabas.storage.partition_log import PartitionLog
from barnabas.storage.recovery import SegmentRecovered
from barnabas.storage.retirement import Refused

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker


@dataclass(frozen=True, slots=True)
class LogComplaint:
    """Something in a log directory was not as it should be, and was put right without loss."""

    complaint: str


@dataclass(frozen=True, slots=True)
class LogDirectoryLost:
    """A log directory went offline with all its replicas; the reason names the file."""

    path: str
    reason: str
    partitions: tuple[TopicPartition, ...]
    is_last: bool


Opened = Callable[[int], None]
OpeningRefused = Callable[[Exception], None]


class BrokerLogs:
    """Drives the log manager and tells its news (a `LogListener`)."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self.manager = LogManager(
            broker.disk,
            broker.config,
            broker.topic_configs.config,
            self,
            broker.random,
        )
        self._on_opened: Opened | None = None
        self._on_refused: OpeningRefused | None = None
        self._on_last_lost: Callable[[DiskError, int], None] | None = None

    def open(self, on_opened: Opened, on_refused: OpeningRefused, now_ms: int) -> None:
        """Load every log in the directories, which `manager.directories.inspect` has looked at."""
        self._on_opened, self._on_refused = on_opened, on_refused
        broker = self._broker
        self.manager.open(broker.cluster_id, broker.broker_id, now_ms, broker.wall_clock.epoch_ms())

    def on_last_directory_lost(self, then: Callable[[DiskError, int], None]) -> None:
        """Call `then(error, now_ms)` when no log directory is left: a broker without any stops."""
        self._on_last_lost = then

    def close(self, now_ms: int) -> None:
        """Leave the directories so that the next start need not recover anything."""
        self.manager.close(now_ms, self._broker.broker_epoch)

    def next_deadline_ms(self) -> int | None:
        return self.manager.next_deadline_ms()

    def tick(self, now_ms: int) -> None:
        """Do what is due."""
        deadline_ms = self.manager.next_deadline_ms()
        if deadline_ms is not None and deadline_ms <= now_ms:
            self.manager.tick(now_ms, self._broker.wall_clock.epoch_ms())

    # -- logs --------------------------------------------------------------------------------

    def log(self, topic_partition: TopicPartition) -> PartitionLog | None:
        return self.manager.log(topic_partition)

    def get_or_create(
        self, topic_partition: TopicPartition, topic_id: TopicId, is_new: bool
    ) -> PartitionLog:
        """The partition's log, made if there is none; `DiskError` when none can be had."""
        wall_ms = self._broker.wall_clock.epoch_ms()
        return self.manager.get_or_create(topic_partition, topic_id, is_new, wall_ms)

    def when_topic_ids_are_durable(self, logs: list[PartitionLog], then: Opened) -> None:
        """Call `then(now_ms)`, never at once, when whose logs these are is on disk for good."""
        broker = self._broker

        def go_on() -> None:
            broker.deadlines.at(broker.now_ms, then)

        self.manager.when_topic_ids_are_durable(logs, go_on)

    def retire(
        self, topic_partitions: list[TopicPartition], now_ms: int, then: Callable[[Refused], None]
    ) -> None:
        """Take deleted replicas' logs out of use; `then` gets the errors of what stays (S7)."""
        self.manager.retire(topic_partitions, now_ms, then)

    def prepare_cut(self, log: PartitionLog, offset: int, then: Opened) -> bool:
        """Whether the log can be cut there at once; else `then(now_ms)` is called when it can."""
        if self.manager.is_ready_to_cut(log, offset):
            return True
        self.manager.prepare_cut(log, offset, lambda: then(self._broker.now_ms))
        return False

    # -- what the manager tells --------------------------------------------------------------

    def on_segment_recovered(self, progress: SegmentRecovered) -> None:
        self._broker.events.publish(progress, self._broker.now_ms)

    def on_log_complaint(self, complaint: str) -> None:
        self._broker.events.publish(LogComplaint(complaint), self._broker.now_ms)

    def on_logs_opened(self, now_ms: int) -> None:
        if self._on_opened is not None:
            self._on_opened(self._broker.now_ms)

    def on_logs_refused(self, error: Exception) -> None:
        if self._on_refused is not None:
            self._on_refused(error)

    def on_directory_lost(self, lost: DirectoryLost, now_ms: int) -> None:
        """Every replica in the directory goes offline; without any directory the broker ends."""
        reason = lost.error.reason
        for key in lost.topic_partitions:
            partition = self._broker.replicas.find(key.topic, key.partition)
            if partition is not None:
                self._broker.replicas.take_offline(partition, reason, now_ms)
        self._broker.events.publish(
            LogDirectoryLost(lost.path, str(lost.error), lost.topic_partitions, lost.is_last),
            now_ms,
        )
        if lost.is_last and self._on_last_lost is not None:
            self._on_last_lost(lost.error, now_ms)
