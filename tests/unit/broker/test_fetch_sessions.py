"""Fetch sessions: full and incremental requests, what counts as news, who is evicted."""

import random
import tracemalloc

import pytest

from barnabas.broker.fetch_sessions import (
    EVICTION_MS,
    FINAL_EPOCH,
    INITIAL_EPOCH,
    NO_SESSION,
    PARTITION_BYTES,
    FetchContext,
    FetchedPartition,
    FetchSessions,
    PartitionKey,
    next_epoch,
)
from barnabas.formats.wire.generated.fetch import (
    NO_EPOCH_END_OFFSET,
    EpochEndOffset,
    PartitionData,
)
from barnabas.model.error_codes import ErrorCode
from barnabas.model.ids import NO_TOPIC_ID, TopicId

ID = TopicId(b"\x07" * 16)


def asked(topic: str, partition: int = 0, offset: int = 0) -> FetchedPartition:
    return FetchedPartition(topic, NO_TOPIC_ID, partition, offset, 1000, -1, -1)


def told(
    partition: int = 0,
    *,
    high_watermark: int = 0,
    log_start_offset: int = 0,
    error: int = 0,
    records: bytes = b"",
    diverging: EpochEndOffset = NO_EPOCH_END_OFFSET,
) -> PartitionData:
    return PartitionData(
        partition_index=partition,
        error_code=error,
        high_watermark=high_watermark,
        log_start_offset=log_start_offset,
        records=records,
        diverging_epoch=diverging,
    )


class Sessions:
    """A client's view of one broker's sessions."""

    def __init__(self, slots: int = 10) -> None:
        self.sessions = FetchSessions(slots, random.Random(1))
        self.now_ms = 0

    def begin(
        self,
        session_id: int,
        epoch: int,
        *entries: FetchedPartition,
        forgotten: list[PartitionKey] | None = None,
        follower: bool = False,
        ids: bool = False,
    ) -> FetchContext:
        return self.sessions.begin(
            session_id,
            epoch,
            {entry.key(): entry for entry in entries},
            forgotten or [],
            is_from_follower=follower,
            uses_topic_ids=ids,
            now_ms=self.now_ms,
        )

    def open(self, *entries: FetchedPartition, follower: bool = False) -> int:
        context = self.begin(NO_SESSION, INITIAL_EPOCH, *entries, follower=follower)
        context.finish([(entry, told(entry.partition)) for entry in entries], self.now_ms)
        return context.session_id


def topics_of(context: FetchContext) -> list[str | None]:
    return [entry.topic for entry in context.partitions.values()]


def test_a_full_request_with_epoch_zero_opens_a_session() -> None:
    client = Sessions()
    a = asked("a")
    context = client.begin(NO_SESSION, INITIAL_EPOCH, a)
    answers = [(a, told(high_watermark=5))]
    assert context.finish(answers, 0) == answers
    assert context.session_id != NO_SESSION
    assert len(client.sessions) == 1


def test_a_request_with_the_final_epoch_opens_none_and_ends_the_one_it_names() -> None:
    client = Sessions()
    session_id = client.open(asked("a"))
    context = client.begin(session_id, FINAL_EPOCH, asked("b"))
    context.finish([], 0)
    assert context.session_id == NO_SESSION
    assert len(client.sessions) == 0
    assert client.sessions.held_bytes == 0


def test_an_incremental_request_reads_everything_and_tells_news_only() -> None:
    client = Sessions()
    a, b = asked("a"), asked("b")
    session_id = client.open(a, b)
    context = client.begin(session_id, 1)
    assert topics_of(context) == ["a", "b"]
    news = context.finish([(a, told()), (b, told(high_watermark=3))], 0)
    assert [entry.topic for entry, _ in news] == ["b"]
    assert context.session_id == session_id


def test_new_changed_and_forgotten_partitions_are_taken_up() -> None:
    client = Sessions()
    session_id = client.open(asked("a"), asked("b"))
    context = client.begin(session_id, 1, asked("a", offset=9), asked("c"), forgotten=[("b", 0)])
    assert [(p.topic, p.fetch_offset) for p in context.partitions.values()] == [("a", 9), ("c", 0)]
    client.begin(session_id, 2)
    assert client.sessions.held_bytes == 2 * (PARTITION_BYTES + 1)


def test_a_session_that_forgot_everything_ends() -> None:
    client = Sessions()
    session_id = client.open(asked("a"))
    context = client.begin(session_id, 1, forgotten=[("a", 0)])
    assert context.error == ErrorCode.NONE
    context.finish([], 0)
    assert context.session_id == NO_SESSION
    assert client.sessions.session(session_id) is None


@pytest.mark.parametrize(
    "answer",
    [
        told(records=b"x"),
        told(high_watermark=1),
        told(log_start_offset=1),
        told(error=ErrorCode.NOT_LEADER_OR_FOLLOWER),
        told(diverging=EpochEndOffset(1, 5)),
    ],
)
def test_what_counts_as_news(answer: PartitionData) -> None:
    client = Sessions()
    a = asked("a")
    session_id = client.open(a)
    assert len(client.begin(session_id, 1).finish([(a, answer)], 0)) == 1


def test_nothing_changed_is_no_news() -> None:
    client = Sessions()
    a = asked("a")
    session_id = client.open(a)
    assert client.begin(session_id, 1).finish([(a, told())], 0) == []


def test_recovery_from_an_error_is_news() -> None:
    client = Sessions()
    a = asked("a")
    session_id = client.open(a)
    client.begin(session_id, 1).finish([(a, told(error=6))], 0)
    assert len(client.begin(session_id, 2).finish([(a, told())], 0)) == 1
    assert client.begin(session_id, 3).finish([(a, told())], 0) == []


def test_a_partition_that_returned_records_is_read_last_next_time() -> None:
    client = Sessions()
    a, b = asked("a"), asked("b")
    session_id = client.open(a, b)
    client.begin(session_id, 1).finish([(a, told(records=b"x")), (b, told())], 0)
    assert topics_of(client.begin(session_id, 2)) == ["b", "a"]


def test_an_unknown_session_and_a_wrong_epoch_are_refused() -> None:
    client = Sessions()
    assert client.begin(77, 1).error == ErrorCode.FETCH_SESSION_ID_NOT_FOUND
    session_id = client.open(asked("a"))
    assert client.begin(session_id, 2).error == ErrorCode.INVALID_FETCH_SESSION_EPOCH
    assert client.begin(session_id, 1).error == ErrorCode.NONE


def test_a_session_with_names_cannot_go_on_with_ids() -> None:
    client = Sessions()
    session_id = client.open(asked("a"))
    context = client.begin(session_id, 1, ids=True)
    assert context.error == ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR


def test_an_answer_overtaken_by_a_later_request_says_so() -> None:
    client = Sessions()
    a = asked("a")
    session_id = client.open(a)
    first = client.begin(session_id, 1)
    client.begin(session_id, 2)
    assert first.finish([(a, told(records=b"x"))], 0) == []
    assert first.error == ErrorCode.INVALID_FETCH_SESSION_EPOCH
    assert first.session_id == session_id


def test_epochs_wrap_around_to_one() -> None:
    assert next_epoch(INITIAL_EPOCH) == 1
    assert next_epoch(2**31 - 1) == 1
    assert next_epoch(FINAL_EPOCH) == FINAL_EPOCH


def test_partitions_are_known_by_topic_id_where_there_is_one() -> None:
    by_id = FetchedPartition("a", ID, 3, 0, 1, -1, -1)
    assert by_id.key() == (ID, 3)
    assert asked("a", 3).key() == ("a", 3)


class TestEviction:
    def test_a_session_idle_for_long_makes_room(self) -> None:
        client = Sessions(slots=2)
        first, second = client.open(asked("a")), client.open(asked("b"))
        client.now_ms = EVICTION_MS
        client.begin(first, 1)
        client.now_ms = EVICTION_MS + 1
        assert client.open(asked("c")) != NO_SESSION
        assert client.sessions.session(second) is None
        assert client.sessions.session(first) is not None
        assert client.sessions.evictions == 1

    def test_young_sessions_are_protected_from_consumers(self) -> None:
        client = Sessions(slots=1)
        first = client.open(asked("a"))
        assert client.open(asked("b"), asked("c")) == NO_SESSION
        assert client.sessions.session(first) is not None

    def test_a_follower_takes_the_place_of_a_consumer(self) -> None:
        client = Sessions(slots=2)
        large = client.open(asked("a"), asked("b"))
        small = client.open(asked("c"))
        assert client.open(asked("d"), follower=True) != NO_SESSION
        assert client.sessions.session(small) is None
        assert client.sessions.session(large) is not None

    def test_a_consumer_never_takes_the_place_of_a_follower(self) -> None:
        client = Sessions(slots=1)
        follower = client.open(asked("a"), follower=True)
        client.now_ms = EVICTION_MS + 1
        client.begin(follower, 1)
        assert client.open(asked("b"), asked("c")) == NO_SESSION

    def test_an_old_session_in_use_gives_way_to_a_larger_one_only(self) -> None:
        client = Sessions(slots=1)
        first = client.open(asked("a"), asked("b"))
        client.now_ms = EVICTION_MS + 1
        client.begin(first, 1)
        assert client.open(asked("c")) == NO_SESSION
        assert client.open(asked("c"), asked("d"), asked("e")) != NO_SESSION
        assert client.sessions.session(first) is None

    def test_no_slots_means_no_sessions(self) -> None:
        assert Sessions(slots=0).open(asked("a")) == NO_SESSION

    def test_the_memory_of_all_sessions_is_bounded(self) -> None:
        client = Sessions()
        client.sessions.held_bytes_max = 2 * PARTITION_BYTES + 2
        session_id = client.open(asked("a"), asked("b"))
        assert client.open(asked("c")) == NO_SESSION
        context = client.begin(session_id, 1, asked("c"))
        assert context.error == ErrorCode.FETCH_SESSION_ID_NOT_FOUND
        assert client.sessions.held_bytes == 0

    def test_room_is_made_by_the_rules_of_slots(self) -> None:
        client = Sessions()
        client.sessions.held_bytes_max = 3 * (PARTITION_BYTES + 1)
        first, second = client.open(asked("a")), client.open(asked("b"), asked("c"))
        assert client.open(asked("d"), asked("e"), follower=True) != NO_SESSION
        assert client.sessions.session(first) is None
        assert client.sessions.session(second) is None
        assert client.sessions.held_bytes == 2 * (PARTITION_BYTES + 1)
        client.now_ms = EVICTION_MS + 1
        assert client.open(asked("f"), asked("g"), asked("h")) != NO_SESSION
        assert len(client.sessions) == 1

    def test_a_session_larger_than_the_bound_costs_nobody_theirs(self) -> None:
        client = Sessions()
        client.sessions.held_bytes_max = 3 * PARTITION_BYTES
        first = client.open(asked("a"))
        client.now_ms = EVICTION_MS + 1
        assert client.open(asked("b" * 3 * PARTITION_BYTES), follower=True) == NO_SESSION
        assert client.sessions.session(first) is not None

    def test_what_is_forgotten_or_evicted_is_held_no_more(self) -> None:
        client = Sessions(slots=1)
        client.sessions.held_bytes_max = 10 * PARTITION_BYTES
        first = client.open(asked("a"), asked("long name"), asked("\u00fc"))
        held = client.sessions.held_bytes
        assert held == 3 * PARTITION_BYTES + 1 + 9 + 4
        client.begin(first, 1, asked("b"), forgotten=[("long name", 0), ("never asked", 0)])
        assert client.sessions.held_bytes == held - 8
        client.now_ms = EVICTION_MS + 1
        client.open(asked("d"))
        assert client.sessions.held_bytes == PARTITION_BYTES + 1
        client.begin(0, FINAL_EPOCH)
        assert client.sessions.held_bytes == PARTITION_BYTES + 1

    def test_a_remembered_partition_takes_no_more_than_is_counted(self) -> None:
        client = Sessions(slots=100)
        tracemalloc.start()
        try:
            before = tracemalloc.get_traced_memory()[0]
            for number in range(100):
                topic_id = TopicId(number.to_bytes(16, "big"))
                entries = [
                    FetchedPartition(None, topic_id, 500 + n, 10**9 + n, 10**6 + n, 300 + n, -1)
                    for n in range(100)
                ]
                answers = [
                    (one, told(one.partition, high_watermark=10**9 + n, log_start_offset=10**8 + n))
                    for n, one in enumerate(entries)
                ]
                client.begin(NO_SESSION, INITIAL_EPOCH, *entries).finish(answers, 0)
            del entries, answers
            taken = tracemalloc.get_traced_memory()[0] - before
        finally:
            tracemalloc.stop()
        assert len(client.sessions) == 100
        assert taken <= client.sessions.held_bytes
