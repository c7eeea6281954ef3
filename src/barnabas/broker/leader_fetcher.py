"""Fetching from one leader all that this broker follows there: one request at a time.

The fetch acknowledges what was written before it, so an answer is appended and written before the
next one leaves. A partition with an error is left out for a while; the others go on (F7).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from barnabas.broker.deadlines import Deadline
from barnabas.broker.fetcher_sessions import AskedPartition, FetcherSession, FetchPlan
from barnabas.broker.links import Answered, Link, LinkState
from barnabas.broker.metadata_cache import Node
from barnabas.broker.partition import Partition
from barnabas.core.replication.divergence import (
    EpochEnd,
    OutOfRange,
    after_leader_end,
    after_leader_start,
)
from barnabas.core.replication.follower import PartitionFollower
from barnabas.core.replication.follower_states import FollowerState
from barnabas.formats.codec.records import RecordsSpan
from barnabas.formats.wire.api_keys import ApiKey
from barnabas.formats.wire.generated.fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    ForgottenTopic,
    PartitionData,
    ReplicaState,
)
from barnabas.formats.wire.generated.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from barnabas.model.epochs import LeaderEpoch
from barnabas.model.error_codes import ErrorCode
from barnabas.model.errors import CorruptBatch, DiskError
from barnabas.model.ids import TopicPartition
from barnabas.model.invariant import invariant
from barnabas.storage.batch_walk import header_at
from barnabas.storage.partition_log import PartitionLog

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker

FETCH_VERSION: Final = 17
FETCH_VERSION_WITHOUT_TOPIC_IDS: Final = 12
FIRST_VERSION_WITH_REPLICA_STATE: Final = 15
LIST_OFFSETS_VERSION: Final = 9
LATEST: Final = -1
EARLIEST: Final = -2
_ABOUT_THE_SESSION: Final = (
    ErrorCode.FETCH_SESSION_ID_NOT_FOUND,
    ErrorCode.INVALID_FETCH_SESSION_EPOCH,
)
FETCHER_ID: Final = 0
"""One fetcher per leader: its connection is one, and so is the loop that drives it."""


@dataclass(frozen=True, slots=True)
class FollowerMoved:
    """A followed partition crossed an arrow of its table."""

    partition: TopicPartition
    source: FollowerState
    target: FollowerState


@dataclass(frozen=True, slots=True)
class LogTruncated:
    """A follower cut its log to agree with its leader's."""

    partition: TopicPartition
    from_offset: int
    to_offset: int
    high_watermark: int


@dataclass(frozen=True, slots=True)
class ReplicationFailed:
    """What a leader sent could not be used, or no answer came."""

    leader_id: int
    partition: TopicPartition | None
    problem: str


class Followed:
    """A partition in a fetcher."""

    __slots__ = ("follower", "partition")

    def __init__(self, partition: Partition, follower: PartitionFollower) -> None:
        self.partition = partition
        self.follower = follower


class LeaderFetcher:
    """All partitions followed at one leader, and the link to it."""

    def __init__(self, broker: Broker, leader: Node) -> None:
        self._broker = broker
        self.leader = leader
        self._client_id = f"broker-{broker.broker_id}-fetcher-{FETCHER_ID}"
        self._link: Link | None = None
        self._session = FetcherSession()
        self._followed: dict[TopicPartition, Followed] = {}
        """In the order of fetching: who got records goes to the end (F9)."""
        self._sent: dict[TopicPartition, tuple[PartitionFollower, AskedPartition]] = {}
        self._is_fetching = False
        self._is_locating = False
        self._wake: Deadline | None = None

    # -- partitions --------------------------------------------------------------------------

    def add(self, partition: Partition, follower: PartitionFollower, now_ms: int) -> None:
        """Follow a partition from now on; `pump` starts it."""
        log = partition.log
        invariant(log is not None, f"{partition.topic_partition} is followed without a log")
        if log is None:
            return
        followed = Followed(partition, follower)
        self._followed[partition.topic_partition] = followed
        follower.start(log.log_end_offset, log.high_watermark, log.leader_epochs.latest_epoch)
        if follower.state is FollowerState.TRUNCATING:
            self._truncate(followed, log, follower.fetch_offset, now_ms)
        self._tell(followed, now_ms)

    def remove(self, topic_partition: TopicPartition, now_ms: int) -> None:
        """Follow a partition no more; an answer on its way is not used."""
        followed = self._followed.pop(topic_partition, None)
        if followed is not None:
            followed.follower.stop()
            self._tell(followed, now_ms)

    def followed(self, topic_partition: TopicPartition) -> Followed | None:
        return self._followed.get(topic_partition)

    @property
    def is_idle(self) -> bool:
        return not self._followed

    def close(self) -> None:
        """End the link; nothing is followed here any more."""
        if self._wake is not None:
            self._wake.cancel()
        if self._link is not None:
            self._link.close()
            self._link = None

    def move_to(self, leader: Node, now_ms: int) -> None:
        """The leader listens elsewhere by now: ask there."""
        self.leader = leader
        self.close()
        self._session = FetcherSession()
        self._sent = {}
        self._is_fetching = False
        if self._is_locating:
            self._is_locating = False
            for followed in self._locating():
                followed.follower.note_delayed(now_ms)

    def _tell(self, followed: Followed, now_ms: int) -> None:
        follower = followed.follower
        for source, target in follower.crossings:
            event = FollowerMoved(followed.partition.topic_partition, source, target)
            self._broker.events.publish(event, now_ms)
        follower.crossings.clear()

    # -- asking ------------------------------------------------------------------------------

    def pump(self, now_ms: int) -> None:
        """Send the next fetch unless one is under way or nothing is ready."""
        self._locate(LATEST, now_ms)
        if self._is_fetching:
            return
        wanted: dict[TopicPartition, AskedPartition] = {}
        sent: dict[TopicPartition, tuple[PartitionFollower, AskedPartition]] = {}
        for key, followed in self._followed.items():
            asked = self._ask(followed, now_ms)
            if asked is not None:
                wanted[key] = asked
                sent[key] = (followed.follower, asked)
        plan = self._session.plan(wanted)
        if plan.is_empty and not wanted:
            self._sleep(now_ms)
            return
        self._sent = sent
        self._is_fetching = True
        self._send(plan, now_ms)

    def _ask(self, followed: Followed, now_ms: int) -> AskedPartition | None:
        follower, log = followed.follower, followed.partition.log
        position = follower.poll_fetch(now_ms)
        self._tell(followed, now_ms)
        if position is None or log is None:
            return None
        return AskedPartition(
            follower.topic_id,
            position.fetch_offset,
            log.log_start_offset,
            follower.leader_epoch,
            position.last_fetched_epoch,
        )

    def _sleep(self, now_ms: int) -> None:
        """Nothing is ready: come back when the first delay is over."""
        delays = [
            followed.follower.delayed_until_ms
            for followed in self._followed.values()
            if followed.follower.state is FollowerState.DELAYED
        ]
        if self._wake is not None:
            self._wake.cancel()
            self._wake = None
        if delays:
            self._wake = self._broker.deadlines.at(max(min(delays), now_ms), self.pump)

    def _send(self, plan: FetchPlan, now_ms: int) -> None:
        config = self._broker.config
        version = FETCH_VERSION if plan.uses_topic_ids else FETCH_VERSION_WITHOUT_TOPIC_IDS
        body = FetchRequest(
            max_wait_ms=config.replica_fetch_wait_max_ms,
            min_bytes=config.replica_fetch_min_bytes,
            max_bytes=config.replica_fetch_response_max_bytes,
            session_id=plan.session_id,
            session_epoch=plan.session_epoch,
            topics=_topics_of(plan, config.replica_fetch_max_bytes),
            forgotten_topics_data=_forgotten_of(plan),
        )
        if version >= FIRST_VERSION_WITH_REPLICA_STATE:
            body.replica_state = ReplicaState(self._broker.broker_id, self._broker.broker_epoch)
        else:
            body.replica_id = self._broker.broker_id
        self._request(ApiKey.FETCH, version, body, self._on_fetched, now_ms)

    def _request(
        self, api_key: ApiKey, version: int, body: object, then: Answered, now_ms: int
    ) -> None:
        link = self._link
        if link is None or link.state is LinkState.CLOSED:
            name = f"fetcher of broker {self.leader.broker_id}"
            link = self._link = self._broker.links.open(
                name, self.leader.host, self.leader.port, client_id=self._client_id
            )
        timeout_ms = self._broker.config.replica_socket_timeout_ms
        link.request(api_key, version, body, then, timeout_ms=timeout_ms, now_ms=now_ms)

    # -- answers -----------------------------------------------------------------------------

    def _on_fetched(self, body: object | None, now_ms: int) -> None:
        """The fetch was answered, or is lost; then the next one follows."""
        self._is_fetching = False
        sent, self._sent = self._sent, {}
        if isinstance(body, FetchResponse):
            self._take(body, sent, now_ms)
        else:
            self._session.note_lost()
            reason = self._link.close_reason if self._link is not None else "closed"
            self._complain(None, f"no answer to a fetch: {reason}", now_ms)
            self._delay_all(now_ms)
        self.pump(now_ms)

    def _take(
        self,
        response: FetchResponse,
        sent: dict[TopicPartition, tuple[PartitionFollower, AskedPartition]],
        now_ms: int,
    ) -> None:
        named = self._named(response)
        if not self._session.note_answer(
            response.error_code, response.session_id, [key for key, _ in named]
        ):
            if response.error_code not in _ABOUT_THE_SESSION:
                # Whatever it is, asking again at once would only repeat it.
                self._delay_all(now_ms)
            return
        for key, data in named:
            followed = self._followed.get(key)
            asked = self._session.partitions.get(key)
            if followed is None or asked is None or key not in sent:
                continue
            follower = followed.follower
            if sent[key][0] is follower and follower.is_answer_current(
                asked.fetch_offset, asked.leader_epoch
            ):
                self._use(followed, asked, data, now_ms)
                self._tell(followed, now_ms)

    def _named(self, response: FetchResponse) -> list[tuple[TopicPartition, PartitionData]]:
        """The partitions of an answer by topic name; one with an unknown id has none."""
        names = {asked.topic_id: key.topic for key, asked in self._session.partitions.items()}
        named: list[tuple[TopicPartition, PartitionData]] = []
        for topic in response.responses:
            name = topic.topic or names.get(topic.topic_id, "")
            for data in topic.partitions:
                named.append((TopicPartition(name, data.partition_index), data))
        return named

    def _use(
        self, followed: Followed, asked: AskedPartition, data: PartitionData, now_ms: int
    ) -> None:
        """What the leader says of one partition, as it was asked."""
        follower, log = followed.follower, followed.partition.log
        if data.error_code != ErrorCode.NONE or log is None:
            follower.note_error(data.error_code, asked.leader_epoch, self._backoff_end(now_ms))
            return
        if data.diverging_epoch.epoch >= 0:
            leader_end = EpochEnd(data.diverging_epoch.epoch, data.diverging_epoch.end_offset)
            own = followed.partition.end_offset_for_epoch(leader_end.epoch)
            truncation = follower.note_diverging(leader_end, own, log.log_end_offset)
            self._truncate(followed, log, truncation.offset, now_ms)
            return
        if log.log_end_offset != follower.fetch_offset:
            self._complain(followed.partition, f"the log ends at {log.log_end_offset}", now_ms)
            follower.note_failed()
            return
        try:
            self._append(followed, log, data, now_ms)
        except DiskError as problem:
            self._lose(followed, problem, now_ms)

    def _append(
        self, followed: Followed, log: PartitionLog, data: PartitionData, now_ms: int
    ) -> None:
        """Append what came as it came, and take over how far the leader has exposed it (F11).

        A batch that is damaged or out of order ends what can be used of the answer (F10).
        """
        follower, key = followed.follower, followed.partition.topic_partition
        records = data.records
        last_epoch = -1
        problem: CorruptBatch | None = None
        if isinstance(records, RecordsSpan) and records.size_bytes > 0:
            wall_ms = self._broker.wall_clock.epoch_ms()
            try:
                if _begins_before(records, log.log_end_offset) and _is_empty(log):
                    # The leader's log begins inside a batch, and it sends the whole of it.
                    first = header_at(records.data, records.start)
                    log.truncate_fully_and_start_at(first.base_offset if first else 0, wall_ms)
                log.append_as_follower(records.data, records.start, records.end, wall_ms)
            except CorruptBatch as corrupt:
                problem = corrupt
            log.write_out()
            if log.log_end_offset > follower.fetch_offset:
                last_epoch = log.leader_epochs.latest_epoch
                self._followed[key] = self._followed.pop(key)
        before = log.high_watermark
        if log.set_high_watermark(data.high_watermark) != before:
            self._broker.replicas.note_follower_advanced(followed.partition)
        if data.log_start_offset > log.log_start_offset:
            log.delete_records_before(data.log_start_offset)
        follower.note_fetched(log.log_end_offset, last_epoch, data.high_watermark)
        if problem is not None:
            self._complain(followed.partition, str(problem), now_ms)
            follower.note_delayed(self._backoff_end(now_ms))

    def _truncate(self, followed: Followed, log: PartitionLog, offset: int, now_ms: int) -> None:
        """Cut the log and fetch on from there, when the disk need not be waited for."""

        def cut_later(later_ms: int) -> None:
            known = self._followed.get(followed.partition.topic_partition)
            if known is followed and followed.follower.state is FollowerState.TRUNCATING:
                self._cut(followed, log, offset, later_ms)
                self._tell(followed, later_ms)
                self.pump(later_ms)

        if self._broker.logs.prepare_cut(log, offset, cut_later):
            self._cut(followed, log, offset, now_ms)

    def _cut(self, followed: Followed, log: PartitionLog, offset: int, now_ms: int) -> None:
        """A disk that refuses ends it."""
        end_offset, high_watermark = log.log_end_offset, log.high_watermark
        try:
            log.truncate_to(offset, self._broker.wall_clock.epoch_ms())
        except DiskError as problem:
            self._lose(followed, problem, now_ms)
            return
        key = followed.partition.topic_partition
        if offset < end_offset:
            self._broker.events.publish(
                LogTruncated(key, end_offset, offset, high_watermark), now_ms
            )
        followed.follower.note_truncated(offset, log.leader_epochs.latest_epoch)

    def _lose(self, followed: Followed, problem: DiskError, now_ms: int) -> None:
        followed.follower.note_failed()
        self._tell(followed, now_ms)
        self._broker.replicas.take_offline(followed.partition, problem.reason, now_ms)

    def _backoff_end(self, now_ms: int) -> int:
        return now_ms + self._broker.config.replica_fetch_backoff_ms

    def _delay_all(self, now_ms: int) -> None:
        for followed in self._followed.values():
            follower = followed.follower
            if follower.state in (FollowerState.FETCHING, FollowerState.LOCATING):
                follower.note_delayed(self._backoff_end(now_ms))
                self._tell(followed, now_ms)

    def _complain(self, partition: Partition | None, problem: str, now_ms: int) -> None:
        key = None if partition is None else partition.topic_partition
        event = ReplicationFailed(self.leader.broker_id, key, problem)
        self._broker.events.publish(event, now_ms)

    # -- out of range ------------------------------------------------------------------------

    def _locating(self) -> list[Followed]:
        return [
            followed
            for followed in self._followed.values()
            if followed.follower.state is FollowerState.LOCATING
        ]

    def _locate(self, timestamp: int, now_ms: int) -> None:
        """Ask where the leader's logs lie for all partitions whose offset it does not have."""
        locating = self._locating()
        if self._is_locating or not locating:
            return
        self._is_locating = True
        _Location(self, locating, timestamp).ask(now_ms)

    def request_offsets(self, body: ListOffsetsRequest, then: Answered, now_ms: int) -> None:
        """Send a ListOffsets of this replica to the leader."""
        body.replica_id = self._broker.broker_id
        self._request(ApiKey.LIST_OFFSETS, LIST_OFFSETS_VERSION, body, then, now_ms)

    def note_located(self, now_ms: int) -> None:
        """The leader's ends were asked for, with whatever success: fetch on."""
        self._is_locating = False
        self.pump(now_ms)

    def settle_location(
        self, followed: Followed, decision: OutOfRange, leader_end_offset: int, now_ms: int
    ) -> None:
        """Cut, begin anew or fetch on, as the leader's ends demand."""
        follower, log = followed.follower, followed.partition.log
        if log is None:
            return
        follower.note_located(decision, leader_end_offset, log.leader_epochs.latest_epoch)
        if decision.truncate_to is not None:
            self._truncate(followed, log, decision.truncate_to, now_ms)
        elif decision.restart_at is not None:
            self._restart(followed, log, decision.restart_at, now_ms)
        self._tell(followed, now_ms)

    def _restart(self, followed: Followed, log: PartitionLog, offset: int, now_ms: int) -> None:
        """Drop all records: the leader has none that would join them (F15)."""
        end_offset, high_watermark = log.log_end_offset, log.high_watermark
        try:
            log.truncate_fully_and_start_at(offset, self._broker.wall_clock.epoch_ms())
        except DiskError as problem:
            self._lose(followed, problem, now_ms)
            return
        key = followed.partition.topic_partition
        self._broker.events.publish(LogTruncated(key, end_offset, offset, high_watermark), now_ms)
        followed.follower.note_truncated(offset, log.leader_epochs.latest_epoch)

    def fail_location(self, followed: Followed, error: int, asked_epoch: int, now_ms: int) -> None:
        """The leader did not tell its ends: fenced for good, or try the fetch again later."""
        follower = followed.follower
        if error == ErrorCode.FENCED_LEADER_EPOCH and asked_epoch == follower.leader_epoch:
            follower.note_failed()
        else:
            follower.note_delayed(self._backoff_end(now_ms))
        self._tell(followed, now_ms)


class _Location:
    """One question about the leader's ends: first its log end, then, where needed, its start."""

    def __init__(self, fetcher: LeaderFetcher, asked: list[Followed], timestamp: int) -> None:
        self._fetcher = fetcher
        self._timestamp = timestamp
        self._asked: dict[TopicPartition, tuple[Followed, LeaderEpoch]] = {
            followed.partition.topic_partition: (followed, followed.follower.leader_epoch)
            for followed in asked
        }
        self._leader_ends: dict[TopicPartition, int] = {}

    def ask(self, now_ms: int) -> None:
        topics: dict[str, ListOffsetsTopic] = {}
        for key, (_, leader_epoch) in self._asked.items():
            topic = topics.setdefault(key.topic, ListOffsetsTopic(name=key.topic, partitions=[]))
            topic.partitions.append(
                ListOffsetsPartition(
                    partition_index=key.partition,
                    current_leader_epoch=leader_epoch,
                    timestamp=self._timestamp,
                )
            )
        body = ListOffsetsRequest(topics=list(topics.values()))
        self._fetcher.request_offsets(body, self._on_answer, now_ms)

    def _on_answer(self, body: object | None, now_ms: int) -> None:
        told: dict[TopicPartition, tuple[int, int]] = {}
        if isinstance(body, ListOffsetsResponse):
            for topic in body.topics:
                for part in topic.partitions:
                    key = TopicPartition(topic.name, part.partition_index)
                    told[key] = (part.error_code, part.offset)
        asked, self._asked = self._asked, {}
        for key, (followed, leader_epoch) in asked.items():
            if followed.follower.state is not FollowerState.LOCATING:
                continue
            error, offset = told.get(key, (ErrorCode.UNKNOWN_SERVER_ERROR, -1))
            if error != ErrorCode.NONE:
                self._fetcher.fail_location(followed, error, leader_epoch, now_ms)
            else:
                self._decide(key, followed, leader_epoch, offset, now_ms)
        if self._asked:
            self._timestamp = EARLIEST
            self.ask(now_ms)
        else:
            self._fetcher.note_located(now_ms)

    def _decide(
        self,
        key: TopicPartition,
        followed: Followed,
        leader_epoch: LeaderEpoch,
        offset: int,
        now_ms: int,
    ) -> None:
        log = followed.partition.log
        if log is None:
            return
        if self._timestamp == EARLIEST:
            decision = after_leader_start(offset, log.log_end_offset)
            self._fetcher.settle_location(followed, decision, self._leader_ends[key], now_ms)
            return
        cut = after_leader_end(offset, log.log_end_offset)
        if cut is not None:
            self._fetcher.settle_location(followed, cut, offset, now_ms)
        else:
            self._leader_ends[key] = offset
            self._asked[key] = (followed, leader_epoch)


def _is_empty(log: PartitionLog) -> bool:
    return log.log_end_offset == log.log_start_offset


def _begins_before(records: RecordsSpan, offset: int) -> bool:
    """Whether the first batch begins before `offset` and reaches it."""
    header = header_at(records.data, records.start)
    return header is not None and header.base_offset < offset <= header.last_offset


def _topics_of(plan: FetchPlan, max_bytes: int) -> list[FetchTopic]:
    """What is sent, in order, neighbours of one topic together."""
    topics: list[FetchTopic] = []
    for key, asked in plan.to_send.items():
        if not topics or topics[-1].topic != key.topic or topics[-1].topic_id != asked.topic_id:
            topics.append(FetchTopic(topic=key.topic, topic_id=asked.topic_id, partitions=[]))
        topics[-1].partitions.append(
            FetchPartition(
                partition=key.partition,
                current_leader_epoch=LeaderEpoch(asked.leader_epoch),
                fetch_offset=asked.fetch_offset,
                last_fetched_epoch=LeaderEpoch(asked.last_fetched_epoch),
                log_start_offset=asked.log_start_offset,
                partition_max_bytes=max_bytes,
            )
        )
    return topics


def _forgotten_of(plan: FetchPlan) -> list[ForgottenTopic]:
    topics: dict[tuple[str, bytes], ForgottenTopic] = {}
    for key, topic_id in plan.to_forget:
        topic = topics.get((key.topic, topic_id))
        if topic is None:
            topic = ForgottenTopic(topic=key.topic, topic_id=topic_id, partitions=[])
            topics[(key.topic, topic_id)] = topic
        topic.partitions.append(key.partition)
    return list(topics.values())
