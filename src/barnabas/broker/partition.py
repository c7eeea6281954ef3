"""One hosted partition: its log, its role here, and who waits at it.

Hot: compiled by mypyc where a compiler is there, interpreted otherwise. What a role decides stands
in core.replication; this ties it to the log and keeps the order: a batch is written before the
watermark moves over it, and the watermark moves before anybody is told.
"""

from __future__ import annotations

from typing import Final

from barnabas.broker.purgatory import WaitingRoom
from barnabas.core.replication.divergence import EpochEnd
from barnabas.core.replication.leader import LiveBrokers, PartitionLeader
from barnabas.formats.batches.admission import KEEP_CODEC, ProduceRules
from barnabas.model.config import TopicConfig
from barnabas.model.epochs import ControllerEpoch, LeaderEpoch, PartitionEpoch
from barnabas.model.error_codes import ErrorCode
from barnabas.model.ids import NO_TOPIC_ID, BrokerId, TopicId, TopicPartition
from barnabas.model.invariant import invariant
from barnabas.model.partition import NO_LEADER
from barnabas.storage.partition_log import PartitionLog

NO_LEADER_EPOCH: Final = LeaderEpoch(-1)

_CODECS: Final = {"producer": KEEP_CODEC, "uncompressed": 0, "gzip": 1, "snappy": 2, "lz4": 3}
_CODECS["zstd"] = 4


class PartitionState:
    """What a LeaderAndIsr says about one partition."""

    __slots__ = (
        "adding_replicas",
        "controller_epoch",
        "is_new",
        "isr",
        "leader",
        "leader_epoch",
        "partition_epoch",
        "removing_replicas",
        "replicas",
    )

    def __init__(
        self,
        *,
        controller_epoch: ControllerEpoch,
        leader: BrokerId,
        leader_epoch: LeaderEpoch,
        isr: tuple[BrokerId, ...],
        partition_epoch: PartitionEpoch,
        replicas: tuple[BrokerId, ...],
        adding_replicas: tuple[BrokerId, ...],
        removing_replicas: tuple[BrokerId, ...],
        is_new: bool,
    ) -> None:
        self.controller_epoch = controller_epoch
        self.leader = leader
        self.leader_epoch = leader_epoch
        self.isr = isr
        self.partition_epoch = partition_epoch
        self.replicas = replicas
        self.adding_replicas = adding_replicas
        self.removing_replicas = removing_replicas
        self.is_new = is_new
        """The partition was just created: its log may be made although a directory is offline."""


class Partition:
    """A partition of which this broker holds a replica, or was told to."""

    __slots__ = (
        "adding_replicas",
        "controller_epoch",
        "index",
        "is_dirty",
        "is_offline",
        "leader",
        "leader_epoch",
        "leader_id",
        "log",
        "partition_epoch",
        "removing_replicas",
        "replicas",
        "room",
        "rules",
        "topic",
        "topic_partition",
    )

    def __init__(self, topic_partition: TopicPartition) -> None:
        self.topic_partition = topic_partition
        self.topic: str = topic_partition.topic
        self.index: int = topic_partition.partition
        self.log: PartitionLog | None = None
        self.is_offline = False
        """In a log directory that failed: every request for it is KAFKA_STORAGE_ERROR."""
        self.leader: PartitionLeader | None = None
        """There exactly while this broker leads."""
        self.leader_id: BrokerId = NO_LEADER
        self.leader_epoch: LeaderEpoch = NO_LEADER_EPOCH
        self.partition_epoch: PartitionEpoch = PartitionEpoch(0)
        self.controller_epoch: ControllerEpoch = ControllerEpoch(0)
        self.replicas: tuple[BrokerId, ...] = ()
        self.adding_replicas: tuple[BrokerId, ...] = ()
        self.removing_replicas: tuple[BrokerId, ...] = ()
        self.rules = ProduceRules(max_message_bytes=0, segment_bytes=0)
        """What the topic's config asks of a produced batch; real once there is a log."""
        self.room = WaitingRoom()
        self.is_dirty = False
        """Whether batches were taken in this turn that are not written yet."""

    def __repr__(self) -> str:
        return f"Partition({self.topic_partition}, leader={self.leader_id}/{self.leader_epoch})"

    @property
    def topic_id(self) -> TopicId:
        return NO_TOPIC_ID if self.log is None else self.log.topic_id

    @property
    def log_start_offset(self) -> int:
        """-1 while there is no log."""
        return -1 if self.log is None else self.log.log_start_offset

    @property
    def is_leader(self) -> bool:
        return self.leader is not None

    def attach_log(self, log: PartitionLog) -> None:
        """The partition's log is there: opened at the start or made for a LeaderAndIsr."""
        invariant(self.log is None, f"{self.topic_partition} has a log already")
        self.log = log
        self.apply_config(log.config)

    def apply_config(self, config: TopicConfig) -> None:
        """The topic's settings are these from now on."""
        self.rules = produce_rules(config)
        if self.leader is not None:
            self.leader.set_min_insync_replicas(config.min_insync_replicas)

    def check_leader_epoch(self, asked_epoch: int) -> ErrorCode:
        """Fence a client that knows less than this broker, or one that knows more (-1: neither)."""
        if asked_epoch < 0 or asked_epoch == self.leader_epoch:
            return ErrorCode.NONE
        if asked_epoch < self.leader_epoch:
            return ErrorCode.FENCED_LEADER_EPOCH
        return ErrorCode.UNKNOWN_LEADER_EPOCH

    # -- roles -------------------------------------------------------------------------------

    def _take_state(self, state: PartitionState) -> None:
        self.controller_epoch = state.controller_epoch
        self.leader_id = state.leader
        self.leader_epoch = state.leader_epoch
        self.partition_epoch = state.partition_epoch
        self.replicas = state.replicas
        self.adding_replicas = state.adding_replicas
        self.removing_replicas = state.removing_replicas

    def become_leader(
        self,
        state: PartitionState,
        broker_id: BrokerId,
        live_brokers: LiveBrokers,
        replica_lag_time_max_ms: int,
        now_ms: int,
    ) -> bool:
        """Lead in a new epoch (L15); True when the watermark moved.

        The epoch is noted in the log at its end before anything is appended under it: a follower
        that diverges is told so by what stands there.
        """
        log = self.log
        invariant(log is not None, f"{self.topic_partition} leads without a log")
        if log is None:
            return False
        leader = self.leader
        if leader is None:
            leader = self.leader = PartitionLeader(
                broker_id,
                live_brokers,
                log.config.min_insync_replicas,
                replica_lag_time_max_ms,
                log.log_end_offset,
                log.high_watermark,
            )
        self._take_state(state)
        log.assign_leader_epoch(state.leader_epoch, log.log_end_offset)
        has_moved = leader.begin_epoch(
            state.leader_epoch, state.partition_epoch, state.replicas, state.isr, now_ms
        )
        if has_moved:
            log.set_high_watermark(leader.high_watermark)
        return has_moved

    def become_follower(self, state: PartitionState) -> bool:
        """Follow the named leader; True when the epoch is new: then fetching starts anew (L19)."""
        is_new_epoch = state.leader_epoch > self.leader_epoch
        self.leader = None
        self._take_state(state)
        return is_new_epoch

    def forget_role(self) -> None:
        """Neither lead nor follow: the replica is deleted or its directory is offline."""
        self.leader = None
        self.leader_id = NO_LEADER
        self.replicas = ()
        self.adding_replicas = ()
        self.removing_replicas = ()
        self.log = None
        self.is_dirty = False

    # -- epochs ------------------------------------------------------------------------------

    def end_offset_for_epoch(self, epoch: int) -> EpochEnd:
        """What this replica's log knows of an epoch: the largest not above it, and its end."""
        if self.log is None:
            return EpochEnd(-1, -1)
        end = self.log.end_offset_for_epoch(epoch)
        return EpochEnd(end.epoch, end.end_offset)


def produce_rules(config: TopicConfig) -> ProduceRules:
    """What a topic's settings ask of a batch before it is appended."""
    levels = {
        "gzip": config.compression_gzip_level,
        "lz4": config.compression_lz4_level,
        "zstd": config.compression_zstd_level,
    }
    return ProduceRules(
        max_message_bytes=config.max_message_bytes,
        segment_bytes=config.segment_bytes,
        codec=_CODECS[config.compression_type],
        codec_level=levels.get(config.compression_type),
        is_log_append_time=config.message_timestamp_type == "LogAppendTime",
        timestamp_before_max_ms=config.message_timestamp_before_max_ms,
        timestamp_after_max_ms=config.message_timestamp_after_max_ms,
        needs_keys="compact" in config.cleanup_policy,
    )
