"""Consumer groups: a shard for each led partition of __consumer_offsets, filled from its log.

What a group decides stands in core.coordinator. This room gives it its records back after a
change of leadership, appends what it writes, and passes its answers on when it says so.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from barnabas.broker.deadlines import Deadline
from barnabas.broker.log_scan import LogScan
from barnabas.broker.metadata_cache import CacheUpdate
from barnabas.broker.own_records import append_own
from barnabas.broker.partition import Partition
from barnabas.core.administration.topic_names import GROUP_TOPIC
from barnabas.core.coordinator.group.requests import (
    CommitAsked,
    CommitResult,
    DeleteGroupsResult,
    DeleteOffsetsResult,
    FetchOffsetsResult,
    GroupDescription,
    GroupListing,
    HeartbeatAsked,
    JoinAsked,
    JoinResult,
    LeaveAsked,
    LeaveResult,
    SyncAsked,
    SyncResult,
)
from barnabas.core.coordinator.group.settings import GroupSettings
from barnabas.core.coordinator.loading import NO_PRODUCER
from barnabas.core.coordinator.outcome import CoordinatorRecord, Outcome, Write
from barnabas.core.coordinator.partitions import coordinator_partition
from barnabas.core.coordinator.shard import GroupShard
from barnabas.formats.batches.compression import codec_of
from barnabas.formats.batches.control import read_end_marker
from barnabas.formats.batches.header import BatchHeader
from barnabas.formats.batches.reader import Record
from barnabas.model.config import BrokerConfig
from barnabas.model.error_codes import ErrorCode
from barnabas.model.ids import TopicPartition

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker


@dataclass(frozen=True, slots=True)
class GroupsLoaded:
    """A shard has its groups and offsets again; with a reason, not all of its log made sense."""

    partition: int
    groups: int
    offsets: int
    reason: str | None


class LedShard:
    """One shard with what this room keeps beside it."""

    __slots__ = ("deadline", "key", "leader_epoch", "scan", "shard")

    def __init__(self, shard: GroupShard, key: TopicPartition, leader_epoch: int) -> None:
        self.shard = shard
        self.key = key
        self.leader_epoch = leader_epoch
        self.scan: LogScan | None = None
        self.deadline: Deadline | None = None


class Groups:
    """The groups that this broker coordinates."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._settings = group_settings(broker.config)
        self._led: dict[int, LedShard] = {}
        self._elsewhere = self._new_shard()
        """Answers for every group that is coordinated by somebody else."""
        self._elsewhere.resign(0)
        broker.control_requests.on_roles_changed(self._on_roles_changed)
        broker.control_requests.on_replica_deleted(self._on_replica_deleted)
        broker.metadata_cache.on_update(self._on_metadata)

    # -- what handlers ask for ---------------------------------------------------------------

    def join(self, asked: JoinAsked, answer: Callable[[JoinResult], None], now_ms: int) -> None:
        led, shard = self._find(asked.group_id)
        self._perform(led, shard.join(asked, answer, now_ms), now_ms)

    def sync(self, asked: SyncAsked, answer: Callable[[SyncResult], None], now_ms: int) -> None:
        led, shard = self._find(asked.group_id)
        self._perform(led, shard.sync(asked, answer, now_ms), now_ms)

    def heartbeat(self, asked: HeartbeatAsked, now_ms: int) -> ErrorCode:
        led, shard = self._find(asked.group_id)
        error = shard.heartbeat(asked, now_ms)
        self._arm(led, now_ms)
        return error

    def leave(self, asked: LeaveAsked, answer: Callable[[LeaveResult], None], now_ms: int) -> None:
        led, shard = self._find(asked.group_id)
        self._perform(led, shard.leave(asked, answer, now_ms), now_ms)

    def commit_offsets(
        self, asked: CommitAsked, answer: Callable[[CommitResult], None], now_ms: int
    ) -> None:
        led, shard = self._find(asked.group_id)
        self._perform(led, shard.commit_offsets(asked, answer, now_ms), now_ms)

    def fetch_offsets(
        self,
        group_id: str,
        partitions: tuple[TopicPartition, ...] | None,
        require_stable: bool,
    ) -> FetchOffsetsResult:
        shard = self._find(group_id)[1]
        return shard.fetch_offsets(group_id, partitions, require_stable=require_stable)

    def delete_offsets(
        self,
        group_id: str,
        partitions: tuple[TopicPartition, ...],
        answer: Callable[[DeleteOffsetsResult], None],
        now_ms: int,
    ) -> None:
        led, shard = self._find(group_id)
        self._perform(led, shard.delete_offsets(group_id, partitions, answer, now_ms), now_ms)

    def describe(self, group_id: str) -> GroupDescription:
        return self._find(group_id)[1].describe(group_id)

    def list_groups(
        self, states: Sequence[str], types: Sequence[str]
    ) -> tuple[ErrorCode, list[GroupListing]]:
        """Those of all shards; an error while one of them is still being read."""
        found: list[GroupListing] = []
        is_loading = False
        for index in sorted(self._led):
            led = self._led[index]
            is_loading = is_loading or led.scan is not None
            found += led.shard.list_groups(frozenset(states), frozenset(types))
        return (ErrorCode.COORDINATOR_LOAD_IN_PROGRESS if is_loading else ErrorCode.NONE), found

    def delete_groups(
        self,
        group_ids: Sequence[str],
        answer: Callable[[dict[str, ErrorCode]], None],
        now_ms: int,
    ) -> None:
        """Delete each where it is kept; `answer` when every shard has said what became of its."""
        by_shard: dict[int, list[str]] = {}
        for group_id in dict.fromkeys(group_ids):
            by_shard.setdefault(self._index_of(group_id), []).append(group_id)
        errors: dict[str, ErrorCode] = {}
        left = dict.fromkeys(by_shard)

        def on_deleted(index: int, result: DeleteGroupsResult) -> None:
            errors.update(result.errors)
            del left[index]
            if not left:
                answer(errors)

        if not left:
            answer(errors)
        for index, ids in list(by_shard.items()):
            led, shard = self._find(ids[0])
            outcome = shard.delete_groups(ids, partial(on_deleted, index), now_ms)
            self._perform(led, outcome, now_ms)

    # -- where a group is kept ---------------------------------------------------------------

    def _index_of(self, group_id: str) -> int:
        topic = self._broker.metadata_cache.topic(GROUP_TOPIC)
        count = len(topic.partitions) if topic is not None else 0
        return coordinator_partition(
            group_id, count or self._broker.config.offsets_topic_num_partitions
        )

    def _find(self, group_id: str) -> tuple[LedShard | None, GroupShard]:
        led = self._led.get(self._index_of(group_id))
        return (None, self._elsewhere) if led is None else (led, led.shard)

    def _new_shard(self) -> GroupShard:
        broker = self._broker
        return GroupShard(self._settings, broker.random, broker.wall_clock.epoch_ms)

    # -- leadership --------------------------------------------------------------------------

    def _on_roles_changed(
        self, led: list[Partition], followed: list[Partition], now_ms: int
    ) -> None:
        for partition in led:
            if partition.topic == GROUP_TOPIC:
                self._elect(partition, now_ms)
        for partition in followed:
            if partition.topic == GROUP_TOPIC:
                self._resign(partition.index, partition.leader_epoch, now_ms)

    def _on_replica_deleted(self, key: TopicPartition, leader_epoch: int, now_ms: int) -> None:
        if key.topic == GROUP_TOPIC:
            self._resign(key.partition, leader_epoch, now_ms)

    def _elect(self, partition: Partition, now_ms: int) -> None:
        """Read the partition's groups from its log; until then everybody is told to wait (L25)."""
        self._resign(partition.index, partition.leader_epoch, now_ms)
        shard = self._new_shard()
        led = LedShard(shard, partition.topic_partition, partition.leader_epoch)

        def on_end(reason: str | None, read_ms: int) -> None:
            led.scan = None
            outcome = shard.finish_loading(read_ms)
            self._tell_loaded(led, reason, read_ms)
            self._perform(led, outcome, read_ms)

        led.scan = LogScan(self._broker, partition, partial(_load_batch, shard), on_end)
        self._led[partition.index] = led
        led.scan.start(now_ms)

    def _tell_loaded(self, led: LedShard, reason: str | None, now_ms: int) -> None:
        shard = led.shard
        count, first = shard.ignored_records
        if reason is None and count:
            reason = f"{count} records were passed over, the first for {first}"
        if reason is None and not shard.groups_count:
            return
        loaded = GroupsLoaded(led.key.partition, shard.groups_count, shard.offsets_count, reason)
        self._broker.events.publish(loaded, now_ms)

    def _resign(self, index: int, leader_epoch: int, now_ms: int) -> None:
        """Somebody else leads from this epoch on; an election that came later stays (S9)."""
        led = self._led.get(index)
        if led is None or 0 <= leader_epoch < led.leader_epoch:
            return
        del self._led[index]
        if led.scan is not None:
            led.scan.stop()
        if led.deadline is not None:
            led.deadline.cancel()
            led.deadline = None
        self._pass_on(led.shard.resign(now_ms), now_ms)

    def _on_metadata(self, update: CacheUpdate, now_ms: int) -> None:
        """Topics that are gone take their offsets with them (D16)."""
        if update.deleted:
            for index in sorted(self._led):
                led = self._led[index]
                self._perform(led, led.shard.delete_topic_offsets(update.deleted, now_ms), now_ms)

    # -- outcomes ----------------------------------------------------------------------------

    def _perform(self, led: LedShard | None, outcome: Outcome, now_ms: int) -> None:
        """Append what is to be kept, pass the answers on, wait for the shard's next moment."""
        for write in outcome.writes:
            if led is not None:
                self._append(led, write, now_ms)
        self._pass_on(outcome, now_ms)
        self._arm(led, now_ms)

    def _pass_on(self, outcome: Outcome, now_ms: int) -> None:
        for story in outcome.stories:
            self._broker.events.publish(story, now_ms)
        for waiter, result in outcome.answers:
            answer: Any = waiter
            answer(result)

    def _append(self, led: LedShard, write: Write, now_ms: int) -> None:
        def on_replicated(error: int, replicated_ms: int) -> None:
            self._perform(led, write.then(ErrorCode(error), replicated_ms), replicated_ms)

        append_own(
            self._broker,
            led.key,
            write.records,
            codec=codec_of(self._broker.config.offsets_topic_compression_codec),
            timeout_ms=self._broker.config.offsets_commit_timeout_ms,
            then=on_replicated,
            now_ms=now_ms,
        )

    def _arm(self, led: LedShard | None, now_ms: int) -> None:
        """Have one deadline, that of the shard's earliest."""
        if led is None or led.scan is not None:
            return
        when_ms = led.shard.next_deadline_ms()
        if led.deadline is not None:
            if led.deadline.is_pending and led.deadline.when_ms == when_ms:
                return
            led.deadline.cancel()
            led.deadline = None
        if when_ms is not None:
            led.deadline = self._broker.deadlines.at(when_ms, partial(self._tick, led))

    def _tick(self, led: LedShard, now_ms: int) -> None:
        self._perform(led, led.shard.tick(now_ms), now_ms)


def _load_batch(shard: GroupShard, header: BatchHeader, records: list[Record]) -> None:
    """Give a shard what one batch of its log holds."""
    if header.is_control:
        for record in records:
            marker = read_end_marker(record)
            if marker is not None:
                shard.load_marker(header.producer_id, is_commit=marker.is_commit)
        return
    producer_id = header.producer_id if header.is_transactional else NO_PRODUCER
    shard.load(
        [
            CoordinatorRecord(record.key, record.value)
            for record in records
            if record.key is not None
        ],
        producer_id,
    )


def group_settings(config: BrokerConfig) -> GroupSettings:
    """What the broker's configuration says of groups."""
    return GroupSettings(
        session_timeout_min_ms=config.group_min_session_timeout_ms,
        session_timeout_max_ms=config.group_max_session_timeout_ms,
        members_max=config.group_max_size,
        initial_delay_ms=config.group_initial_rebalance_delay_ms,
        offset_metadata_length_max=config.offset_metadata_max_bytes,
        offsets_retention_ms=config.offsets_retention_minutes * 60_000,
        expiry_interval_ms=config.offsets_retention_check_interval_ms,
        message_size_max=config.message_max_bytes,
    )
