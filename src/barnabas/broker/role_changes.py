"""A LeaderAndIsr carried out: who leads, who follows, and what each partition is answered.

First every partition is judged by its epochs and id (L5-L9). For those that are to change, the
settings of new topics are read, missing logs are made, and whose logs they are is on disk for good
before anything is confirmed; then leaders are made before followers, because a leader is waited
for (L10). Fetching stops before a role changes and starts after it, so
that nothing of the old leader reaches the log any more.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final, NamedTuple

from barnabas.broker.partition import Partition, PartitionState
from barnabas.core.administration.topic_names import is_valid_topic_name
from barnabas.formats.logdir.names import NAME_LENGTH_MAX, log_directory_name
from barnabas.model.error_codes import ErrorCode
from barnabas.model.errors import DiskError
from barnabas.model.ids import NO_TOPIC_ID, TopicId, TopicPartition

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker
    from barnabas.storage.partition_log import PartitionLog

LOGS_PER_TURN: Final = 16
"""Logs that are made before the loop gets its turn again; each is a handful of files."""


class ToldPartition(NamedTuple):
    """One entry of a LeaderAndIsr."""

    topic_partition: TopicPartition
    topic_id: TopicId
    state: PartitionState


class RoleChange:
    """One LeaderAndIsr from its judging to its answer; `errors` grows to hold every partition."""

    def __init__(
        self, broker: Broker, told: list[ToldPartition], done: Callable[[int], None]
    ) -> None:
        self._broker = broker
        self._told = told
        self._done = done
        self.errors: dict[TopicPartition, ErrorCode] = {}
        self._leaders: list[tuple[Partition, ToldPartition]] = []
        self._followers: list[tuple[Partition, ToldPartition]] = []
        self._new_ids: list[tuple[TopicPartition, TopicId]] = []
        """Followed partitions whose topic id came or went without a new epoch (L9)."""
        self._identified: list[PartitionLog] = []
        """Logs that got their topic id by this request."""
        self._logless: list[tuple[Partition, ToldPartition]] = []
        """Partitions that have no log yet; what is left of them is made in later turns."""

    def begin(self, now_ms: int) -> None:
        """Judge every partition, then fetch what the changes need.

        One that is named twice is taken as it was named last.
        """
        for told in {told.topic_partition: told for told in self._told}.values():
            self._judge(told)
        self._logless = [entry for entry in self._leaders + self._followers if entry[0].log is None]
        topics = [partition.topic for partition, _ in self._logless]
        self._broker.topic_configs.load(topics, self._on_configs, now_ms)

    # -- judging -----------------------------------------------------------------------------

    def _judge(self, told: ToldPartition) -> None:
        key, state = told.topic_partition, told.state
        if not _can_name_a_directory(key):
            self.errors[key] = ErrorCode.INVALID_TOPIC_EXCEPTION
            return
        replicas = self._broker.replicas
        partition = replicas.find(key.topic, key.partition)
        if partition is not None and partition.is_offline:
            self.errors[key] = ErrorCode.KAFKA_STORAGE_ERROR
            return
        known_id = self._known_topic_id(key, partition)
        if NO_TOPIC_ID not in (told.topic_id, known_id) and told.topic_id != known_id:
            self.errors[key] = ErrorCode.INCONSISTENT_TOPIC_ID
            return
        known_epoch = -1 if partition is None else partition.leader_epoch
        if state.leader_epoch < known_epoch:
            self.errors[key] = ErrorCode.STALE_CONTROLLER_EPOCH
        elif state.leader_epoch == known_epoch:
            self.errors[key] = self._judge_known_epoch(partition, told)
        elif self._broker.broker_id not in state.replicas:
            self.errors[key] = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        else:
            self.errors[key] = ErrorCode.NONE
            self._accept(partition or replicas.host(key), told)

    def _known_topic_id(self, key: TopicPartition, partition: Partition | None) -> TopicId:
        """Of the hosted replica, or of a log that is there from before the broker started."""
        if partition is not None and partition.log is not None:
            return partition.log.topic_id
        log = self._broker.logs.log(key)
        return NO_TOPIC_ID if log is None else log.topic_id

    def _judge_known_epoch(self, partition: Partition | None, told: ToldPartition) -> ErrorCode:
        """Nothing but a topic id may be new in an epoch that is known (L9)."""
        if partition is None:
            # The epoch before the first one: no controller has written it.
            return ErrorCode.STALE_CONTROLLER_EPOCH
        is_followed = told.state.leader != self._broker.broker_id
        known_id = partition.topic_id
        if told.topic_id != NO_TOPIC_ID and known_id == NO_TOPIC_ID:
            if partition.log is not None:
                partition.log.set_topic_id(told.topic_id)
                self._identified.append(partition.log)
            if is_followed:
                self._new_ids.append((told.topic_partition, told.topic_id))
            return ErrorCode.NONE
        if told.topic_id == NO_TOPIC_ID and known_id != NO_TOPIC_ID and is_followed:
            self._new_ids.append((told.topic_partition, NO_TOPIC_ID))
            return ErrorCode.NONE
        return ErrorCode.STALE_CONTROLLER_EPOCH

    def _accept(self, partition: Partition, told: ToldPartition) -> None:
        state = told.state
        if state.leader == self._broker.broker_id:
            if state.partition_epoch >= partition.partition_epoch:
                self._leaders.append((partition, told))
        elif not self._broker.metadata_cache.is_alive(state.leader):
            # Nobody to follow: the log is made, so that its watermark is checkpointed, and the
            # epoch is not noted, so that the same one is new when it comes with a leader (L18).
            self._followers.append((partition, told))
        elif state.partition_epoch >= partition.partition_epoch:
            self._followers.append((partition, told))

    # -- logs --------------------------------------------------------------------------------

    def _on_configs(self, could_read: bool, now_ms: int) -> None:
        """The settings of the topics are known; with the store away no log is made (L16)."""
        if not could_read:
            self._logless = []
        self._make_logs(now_ms)

    def _make_logs(self, now_ms: int) -> None:
        """Open or make some logs; the loop gets its turn before the next ones."""
        now, self._logless = self._logless[:LOGS_PER_TURN], self._logless[LOGS_PER_TURN:]
        for partition, told in now:
            key = told.topic_partition
            try:
                log = self._broker.logs.get_or_create(key, told.topic_id, told.state.is_new)
            except DiskError as problem:
                self.errors[key] = ErrorCode.KAFKA_STORAGE_ERROR
                self._broker.replicas.take_offline(partition, problem.reason, now_ms)
            else:
                log.configure(self._broker.topic_configs.config(key.topic))
                partition.attach_log(log)
        if self._logless:
            self._broker.deadlines.at(now_ms, self._make_logs)
            return
        self._drop_without_log()
        self._identify(now_ms)

    def _drop_without_log(self) -> None:
        """A partition without a log takes no role, and a new one is not hosted."""
        for partition, _ in self._leaders + self._followers:
            if partition.log is None and not partition.is_offline:
                self._broker.replicas.release(partition)
        self._leaders = [entry for entry in self._leaders if entry[0].log is not None]
        self._followers = [entry for entry in self._followers if entry[0].log is not None]

    def _identify(self, now_ms: int) -> None:
        """What is confirmed must be found again after a power loss: whose the logs are."""
        for partition, told in self._leaders + self._followers:
            log = partition.log
            if log is None or told.topic_id == NO_TOPIC_ID:
                continue
            if log.topic_id == NO_TOPIC_ID:
                log.set_topic_id(told.topic_id)
            if log.is_metadata_dirty:
                self._identified.append(log)
        if self._identified:
            self._broker.logs.when_topic_ids_are_durable(self._identified, self._carry_out)
        else:
            self._carry_out(now_ms)

    # -- roles -------------------------------------------------------------------------------

    def _carry_out(self, now_ms: int) -> None:
        for partition, told in self._leaders + self._followers:
            log = partition.log
            if log is not None and log.is_lost:
                # Its directory failed meanwhile, which is told with the next tick.
                self._broker.replicas.take_offline(partition, "its log is lost", now_ms)
            if partition.is_offline:
                self.errors[told.topic_partition] = ErrorCode.KAFKA_STORAGE_ERROR
            else:
                self._broker.replicas.write_out(partition, now_ms)
        led = self._make_leaders(now_ms)
        followed = self._make_followers(now_ms)
        fetchers = self._broker.fetchers
        for topic_partition, topic_id in self._new_ids:
            fetchers.update_topic_id(topic_partition, topic_id)
        fetchers.close_idle()
        self._broker.control_requests.note_roles(led, followed, now_ms)
        self._done(now_ms)

    def _make_leaders(self, now_ms: int) -> list[Partition]:
        """Lead, each in its new epoch; those that did not lead before."""
        broker = self._broker
        leaders = [entry for entry in self._leaders if not entry[0].is_offline]
        broker.fetchers.stop([partition.topic_partition for partition, _ in leaders], now_ms)
        new = [partition for partition, _ in leaders if not partition.is_leader]
        for partition, told in leaders:
            has_moved = partition.become_leader(
                told.state,
                broker.broker_id,
                broker.metadata_cache,
                broker.config.replica_lag_time_max_ms,
                now_ms,
            )
            if has_moved:
                broker.replicas.note_watermark_moved(partition, now_ms)
        return new

    def _make_followers(self, now_ms: int) -> list[Partition]:
        """Refuse produce first, stop fetching, answer those who wait, fetch anew (L20).

        Those whose epoch is new.
        """
        broker = self._broker
        moved: list[tuple[Partition, TopicId]] = []
        for partition, told in self._followers:
            if partition.is_offline or not broker.metadata_cache.is_alive(told.state.leader):
                continue
            if partition.become_follower(told.state):
                moved.append((partition, told.topic_id))
        broker.fetchers.stop([partition.topic_partition for partition, _ in moved], now_ms)
        for partition, _ in moved:
            broker.replicas.dismiss(partition, ErrorCode.NOT_LEADER_OR_FOLLOWER, now_ms)
        if not broker.is_stopping:
            broker.fetchers.follow(moved, now_ms)
        return [partition for partition, _ in moved]


def _can_name_a_directory(key: TopicPartition) -> bool:
    """Whether its log has a place: a wrong name leads elsewhere, one too long is refused by the
    disk, which would be taken for a lost directory."""
    return (
        key.partition >= 0
        and is_valid_topic_name(key.topic)
        and len(log_directory_name(key)) <= NAME_LENGTH_MAX
    )
