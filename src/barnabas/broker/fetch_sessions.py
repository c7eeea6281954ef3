"""Fetch sessions (KIP-227): a client's fetch is remembered, so that requests tell changes only.

A request with epoch 0 or -1 names all its partitions (full); epoch 0 also asks for a session. With
a session's next epoch it names what is new, changed or forgotten (incremental), and the answer
names what has news. Sessions are kept for those who use them: when all slots are taken, one that
was idle for long makes room, or an older and smaller one; followers' sessions go last.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from random import Random
from typing import Final, NamedTuple

from barnabas.formats.wire.generated.fetch import PartitionData
from barnabas.model.error_codes import ErrorCode
from barnabas.model.ids import NO_TOPIC_ID, TopicId

NO_SESSION: Final = 0
INITIAL_EPOCH: Final = 0
FINAL_EPOCH: Final = -1
EVICTION_MS: Final = 120_000
"""A session idle for longer may be evicted by anyone; a younger one is protected."""
HELD_BYTES_MAX: Final = 128 * 1024 * 1024
"""Over all sessions, a quarter of a million partitions; who finds no room is served without one."""
PARTITION_BYTES: Final = 512
"""What a remembered partition takes, without the name of its topic."""

_EPOCH_MAX: Final = 2**31 - 1
_UNKNOWN: Final = -1

PartitionKey = tuple[str | bytes, int]
"""Topic id (from version 13 on) or name, and partition."""


def held_bytes_of(key: PartitionKey) -> int:
    """What remembering a partition takes; the name is the client's and may be of any length."""
    topic = key[0]
    if isinstance(topic, bytes):
        return PARTITION_BYTES
    return PARTITION_BYTES + (len(topic) if topic.isascii() else 4 * len(topic))


def next_epoch(epoch: int) -> int:
    """The epoch after this one; it wraps around to 1."""
    if epoch < 0:
        return FINAL_EPOCH
    return 1 if epoch == _EPOCH_MAX else epoch + 1


class FetchedPartition:
    """What a client asks of one partition, and what it was last told about it."""

    __slots__ = (
        "current_leader_epoch",
        "fetch_offset",
        "last_fetched_epoch",
        "max_bytes",
        "partition",
        "told_high_watermark",
        "told_log_start_offset",
        "topic",
        "topic_id",
    )

    def __init__(
        self,
        topic: str | None,
        topic_id: TopicId,
        partition: int,
        fetch_offset: int,
        max_bytes: int,
        current_leader_epoch: int,
        last_fetched_epoch: int,
    ) -> None:
        self.topic = topic
        """None while no topic with the id is known."""
        self.topic_id = topic_id
        self.partition: int = partition
        self.fetch_offset: int = fetch_offset
        self.max_bytes: int = max_bytes
        self.current_leader_epoch: int = current_leader_epoch
        self.last_fetched_epoch: int = last_fetched_epoch
        self.told_high_watermark: int = _UNKNOWN
        self.told_log_start_offset: int = _UNKNOWN

    def key(self) -> PartitionKey:
        if self.topic_id != NO_TOPIC_ID:
            return (self.topic_id, self.partition)
        return (self.topic or "", self.partition)

    def take_request(self, other: FetchedPartition) -> None:
        """The client asks for something else of the same partition now."""
        self.fetch_offset = other.fetch_offset
        self.max_bytes = other.max_bytes
        self.current_leader_epoch = other.current_leader_epoch
        self.last_fetched_epoch = other.last_fetched_epoch

    def is_news(self, answer: PartitionData) -> bool:
        """Whether an incremental answer must name the partition."""
        return (
            records_size(answer) > 0
            or self.told_high_watermark != answer.high_watermark
            or self.told_log_start_offset != answer.log_start_offset
            or answer.error_code != ErrorCode.NONE
            or answer.diverging_epoch.epoch >= 0
        )

    def note_told(self, answer: PartitionData) -> None:
        """The client is told this; after an error the watermark counts as never told.

        So the recovery from an error is news even when nothing else changed.
        """
        is_error = answer.error_code != ErrorCode.NONE
        self.told_high_watermark = _UNKNOWN if is_error else answer.high_watermark
        self.told_log_start_offset = answer.log_start_offset


def records_size(answer: PartitionData) -> int:
    """The bytes of records in an answer, wherever they lie."""
    records = answer.records
    if records is None:
        return 0
    if isinstance(records, bytes):
        return len(records)
    if isinstance(records, memoryview):
        return records.nbytes
    return records.size_bytes


PartitionMap = dict[PartitionKey, FetchedPartition]


class _EvictionRank(NamedTuple):
    """Who goes first: consumers before followers, small before large."""

    is_privileged: bool
    size: int
    session_id: int


class FetchSession:
    """The partitions of one client; `epoch` is the one that its next request must carry."""

    __slots__ = (
        "created_ms",
        "epoch",
        "held_bytes",
        "id",
        "is_privileged",
        "last_used_ms",
        "partitions",
        "rank",
        "uses_topic_ids",
    )

    def __init__(
        self,
        id: int,
        is_privileged: bool,
        uses_topic_ids: bool,
        partitions: PartitionMap,
        now_ms: int,
    ) -> None:
        self.id = id
        self.is_privileged = is_privileged
        """A follower's: it is not evicted for a consumer's."""
        self.uses_topic_ids = uses_topic_ids
        self.partitions = partitions
        """In the order in which they are read: what returned records last goes to the end."""
        self.created_ms = now_ms
        self.last_used_ms = now_ms
        self.epoch = next_epoch(INITIAL_EPOCH)
        self.rank = _EvictionRank(is_privileged, len(partitions), id)
        held_bytes = 0
        for key in partitions:
            held_bytes += held_bytes_of(key)
        self.held_bytes: int = held_bytes

    def update(self, partitions: PartitionMap, forgotten: list[PartitionKey]) -> None:
        """Take up what is new or changed, drop what is forgotten."""
        known = self.partitions
        for key, asked in partitions.items():
            cached = known.get(key)
            if cached is None:
                known[key] = asked
                self.held_bytes += held_bytes_of(key)
            else:
                cached.take_request(asked)
        for key in forgotten:
            if known.pop(key, None) is not None:
                self.held_bytes -= held_bytes_of(key)

    def select(
        self, answers: list[tuple[FetchedPartition, PartitionData]]
    ) -> list[tuple[FetchedPartition, PartitionData]]:
        """The answers with news; partitions that returned records are read last next time."""
        news: list[tuple[FetchedPartition, PartitionData]] = []
        for entry in answers:
            asked, answer = entry
            if asked.is_news(answer):
                news.append(entry)
                if records_size(answer) > 0:
                    key = asked.key()
                    if self.partitions.pop(key, None) is not None:
                        self.partitions[key] = asked
            asked.note_told(answer)
        return news


class FetchContext:
    """One fetch: what to read, and what its answer does to the session."""

    __slots__ = (
        "_sessions",
        "error",
        "is_from_follower",
        "is_session_wanted",
        "partitions",
        "request_epoch",
        "session",
        "session_id",
        "uses_topic_ids",
    )

    def __init__(self, sessions: FetchSessions, partitions: PartitionMap) -> None:
        self._sessions = sessions
        self.partitions = partitions
        """What to read, in this order."""
        self.error: int = ErrorCode.NONE
        """Set when the session's state refuses the whole request."""
        self.session: FetchSession | None = None
        """The one that an incremental fetch goes on with."""
        self.request_epoch: int = FINAL_EPOCH
        self.is_session_wanted = False
        self.is_from_follower = False
        self.uses_topic_ids = False
        self.session_id: int = NO_SESSION
        """What the answer names; valid after `finish`."""

    def finish(
        self, answers: list[tuple[FetchedPartition, PartitionData]], now_ms: int
    ) -> list[tuple[FetchedPartition, PartitionData]]:
        """The answers that are sent; remembers them in the session or opens one."""
        session = self.session
        if session is not None:
            self.session_id = session.id
            if session.epoch != next_epoch(self.request_epoch):
                # A later request of the same session overtook this one.
                self.error = ErrorCode.INVALID_FETCH_SESSION_EPOCH
                return []
            return session.select(answers)
        if self.is_session_wanted:
            self.session_id = self._sessions.open(self, answers, now_ms)
        return answers


class FetchSessions:
    """All sessions of one broker."""

    def __init__(self, slots: int, random_source: Random) -> None:
        self._slots = slots
        self._random = random_source
        self._sessions: dict[int, FetchSession] = {}
        """By id, the least recently used first."""
        self._evictable_by_consumers: list[_EvictionRank] = []
        self._evictable_by_followers: list[_EvictionRank] = []
        self.held_bytes: int = 0
        """What all sessions take."""
        self.held_bytes_max: int = HELD_BYTES_MAX
        self.evictions = 0

    def __len__(self) -> int:
        return len(self._sessions)

    def session(self, session_id: int) -> FetchSession | None:
        return self._sessions.get(session_id)

    # -- requests ----------------------------------------------------------------------------

    def begin(
        self,
        session_id: int,
        epoch: int,
        partitions: PartitionMap,
        forgotten: list[PartitionKey],
        *,
        is_from_follower: bool,
        uses_topic_ids: bool,
        now_ms: int,
    ) -> FetchContext:
        """Take up a request: full, incremental, or refused (`error` of the context)."""
        if epoch in (INITIAL_EPOCH, FINAL_EPOCH):
            if session_id != NO_SESSION:
                self._remove(session_id)
            context = FetchContext(self, partitions)
            context.is_session_wanted = epoch == INITIAL_EPOCH
            context.is_from_follower = is_from_follower
            context.uses_topic_ids = uses_topic_ids
            return context
        session = self._sessions.get(session_id)
        if session is None:
            return self._refused(ErrorCode.FETCH_SESSION_ID_NOT_FOUND)
        if session.epoch != epoch:
            return self._refused(ErrorCode.INVALID_FETCH_SESSION_EPOCH)
        if session.uses_topic_ids != uses_topic_ids:
            return self._refused(ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR)
        held_before = session.held_bytes
        session.update(partitions, forgotten)
        self.held_bytes += session.held_bytes - held_before
        if not session.partitions:
            # Nothing is left to remember: the session ends, its last answer names none.
            self._remove(session_id)
            return FetchContext(self, partitions)
        self._touch(session, now_ms)
        if self.held_bytes > self.held_bytes_max:
            self._remove(session_id)
            return self._refused(ErrorCode.FETCH_SESSION_ID_NOT_FOUND)
        session.epoch = next_epoch(epoch)
        context = FetchContext(self, session.partitions)
        context.session = session
        context.request_epoch = epoch
        return context

    def _refused(self, error: ErrorCode) -> FetchContext:
        context = FetchContext(self, {})
        context.error = error
        return context

    # -- slots -------------------------------------------------------------------------------

    def open(
        self,
        context: FetchContext,
        answers: list[tuple[FetchedPartition, PartitionData]],
        now_ms: int,
    ) -> int:
        """Remember what was asked and answered; NO_SESSION when there is no room for it."""
        size = len(answers)
        held_bytes = 0
        for asked, _ in answers:
            held_bytes += held_bytes_of(asked.key())
        if held_bytes > self.held_bytes_max:
            return NO_SESSION
        while (
            len(self._sessions) >= self._slots or self.held_bytes + held_bytes > self.held_bytes_max
        ):
            if not self._evict_for(context.is_from_follower, size, now_ms):
                return NO_SESSION
        partitions: PartitionMap = {}
        for asked, told in answers:
            asked.note_told(told)
            partitions[asked.key()] = asked
        session = FetchSession(
            self._new_id(), context.is_from_follower, context.uses_topic_ids, partitions, now_ms
        )
        self._sessions[session.id] = session
        self.held_bytes += session.held_bytes
        self._rank(session, now_ms)
        return session.id

    def _new_id(self) -> int:
        while True:
            session_id = self._random.randrange(1, 2**31 - 1)
            if session_id not in self._sessions:
                return session_id

    def _evict_for(self, is_privileged: bool, size: int, now_ms: int) -> bool:
        """Make room for a session of this kind and size, if someone must give way to it."""
        oldest = next(iter(self._sessions.values()), None)
        if oldest is None:
            return False
        if now_ms - oldest.last_used_ms > EVICTION_MS:
            self._remove(oldest.id)
            self.evictions += 1
            return True
        ranks = self._evictable_by_followers if is_privileged else self._evictable_by_consumers
        if not ranks or (is_privileged, size, 0) < ranks[0]:
            return False
        self._remove(ranks[0].session_id)
        self.evictions += 1
        return True

    def _touch(self, session: FetchSession, now_ms: int) -> None:
        """The session is used: it goes to the end of the queue and is ranked by what it is now."""
        del self._sessions[session.id]
        self._sessions[session.id] = session
        session.last_used_ms = now_ms
        self._unrank(session)
        session.rank = session.rank._replace(size=len(session.partitions))
        self._rank(session, now_ms)

    def _rank(self, session: FetchSession, now_ms: int) -> None:
        is_old = now_ms - session.created_ms > EVICTION_MS
        if is_old:
            insort(self._evictable_by_consumers, session.rank)
        if is_old or not session.is_privileged:
            insort(self._evictable_by_followers, session.rank)

    def _unrank(self, session: FetchSession) -> None:
        for ranks in (self._evictable_by_consumers, self._evictable_by_followers):
            index = bisect_left(ranks, session.rank)
            if index < len(ranks) and ranks[index] == session.rank:
                del ranks[index]

    def _remove(self, session_id: int) -> None:
        session = self._sessions.pop(session_id, None)
        if session is not None:
            self._unrank(session)
            self.held_bytes -= session.held_bytes
