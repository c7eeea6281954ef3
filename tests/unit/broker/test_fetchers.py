"""Fetching from a leader: sessions from the asking side, and what an answer may do."""

from collections.abc import Iterable

import pytest

from barnabas.broker.fetcher_sessions import AskedPartition, FetcherSession
from barnabas.broker.leader_fetcher import ReplicationFailed
from barnabas.core.replication.follower_states import FollowerState
from barnabas.formats.wire.api_keys import ApiKey
from barnabas.formats.wire.generated.fetch import FetchRequest, FetchResponse
from barnabas.model.error_codes import ErrorCode
from barnabas.model.errors import DiskLost
from barnabas.model.ids import NO_TOPIC_ID, TopicId, TopicPartition
from barnabas.storage.partition_log import PartitionLog
from tests.behaviours import behaviour
from tests.worlds.requests import batch, produce_request, produced
from tests.worlds.virtual_world import VirtualWorld, plan

A, B = TopicPartition("a", 0), TopicPartition("b", 0)
ID, OTHER_ID = TopicId(b"\x01" * 16), TopicId(b"\x02" * 16)


def asked(offset: int = 0, topic_id: TopicId = ID) -> AskedPartition:
    return AskedPartition(topic_id, offset, 0, 1, 0)


class TestSession:
    def opened(self, *keys: TopicPartition) -> FetcherSession:
        session = FetcherSession()
        session.plan({key: asked() for key in keys})
        assert session.note_answer(0, 77, keys)
        return session

    def test_the_first_fetch_names_everything_and_asks_for_a_session(self) -> None:
        session = FetcherSession()
        plan = session.plan({A: asked(), B: asked()})
        assert (plan.session_id, plan.session_epoch) == (0, 0)
        assert list(plan.to_send) == [A, B]

    def test_after_it_only_changes_are_told(self) -> None:
        session = self.opened(A, B)
        plan = session.plan({A: asked(), B: asked(5)})
        assert (plan.session_id, plan.session_epoch) == (77, 1)
        assert plan.to_send == {B: asked(5)}
        assert session.note_answer(0, 77, [])
        assert session.plan({A: asked(), B: asked(5)}).session_epoch == 2

    def test_what_is_not_wanted_any_more_is_taken_back(self) -> None:
        session = self.opened(A, B)
        plan = session.plan({A: asked()})
        assert plan.to_forget == [(B, ID)]
        assert not plan.is_empty

    def test_a_new_topic_id_forgets_the_old_one(self) -> None:
        session = self.opened(A)
        plan = session.plan({A: asked(topic_id=OTHER_ID)})
        assert plan.to_send == {A: asked(topic_id=OTHER_ID)}
        assert plan.to_forget == [(A, ID)]

    def test_one_partition_without_an_id_needs_the_older_version(self) -> None:
        session = FetcherSession()
        assert session.plan({A: asked()}).uses_topic_ids
        assert not session.plan({A: asked(), B: asked(topic_id=NO_TOPIC_ID)}).uses_topic_ids

    def test_an_unknown_session_is_begun_anew_and_another_error_ends_it_first(self) -> None:
        session = self.opened(A)
        assert not session.note_answer(ErrorCode.FETCH_SESSION_ID_NOT_FOUND, 0, [])
        plan = session.plan({A: asked()})
        assert (plan.session_id, plan.session_epoch) == (0, 0)
        session = self.opened(A)
        assert not session.note_answer(ErrorCode.INVALID_FETCH_SESSION_EPOCH, 0, [])
        plan = session.plan({A: asked()})
        assert (plan.session_id, plan.session_epoch) == (77, 0)
        assert list(plan.to_send) == [A]

    def test_without_an_answer_the_old_session_is_ended_with_the_next_fetch(self) -> None:
        session = self.opened(A)
        session.note_lost()
        plan = session.plan({A: asked()})
        assert (plan.session_id, plan.session_epoch) == (77, 0)

    def test_a_leader_that_keeps_no_session_is_asked_in_full_each_time(self) -> None:
        session = FetcherSession()
        session.plan({A: asked()})
        assert session.note_answer(0, 0, [A])
        assert session.plan({A: asked()}).session_epoch == 0

    @pytest.mark.parametrize("named", [[], [A], [A, B, TopicPartition("c", 0)]])
    def test_a_full_answer_must_be_about_what_was_asked(
        self, named: Iterable[TopicPartition]
    ) -> None:
        session = FetcherSession()
        session.plan({A: asked(), B: asked()})
        assert not session.note_answer(0, 77, named)
        assert session.plan({A: asked()}).session_id == 0

    def test_an_incremental_answer_may_be_about_less_but_not_about_others(self) -> None:
        session = self.opened(A, B)
        session.plan({A: asked(), B: asked()})
        assert session.note_answer(0, 77, [B])
        session.plan({A: asked(), B: asked()})
        assert not session.note_answer(0, 77, [TopicPartition("c", 0)])
        assert session.plan({A: asked()}).session_epoch == 0

    def test_a_session_that_the_leader_ended_is_gone(self) -> None:
        session = self.opened(A, B)
        session.plan({})
        assert session.note_answer(0, 0, [])
        plan = session.plan({A: asked()})
        assert (plan.session_id, plan.session_epoch) == (0, 0)


class Pair(VirtualWorld):
    """Broker 1 leads two partitions that broker 2 follows."""

    def __init__(self, topic_id: TopicId = ID) -> None:
        super().__init__()
        self.one, self.two = self.add_broker(1), self.add_broker(2)
        decision = {index: plan(1, 0, (1, 2)) for index in (0, 1)}
        for broker_id in (1, 2):
            self.tell_metadata(broker_id, "t", topic_id, decision, [1, 2])
            self.tell_leader(broker_id, "t", topic_id, decision, is_new=True)

    def follower(self, index: int) -> FollowerState:
        found = self.two.broker.fetchers.follower(TopicPartition("t", index))
        assert found is not None
        return found.state

    def produce(self, index: int, value: bytes, acks: int = -1) -> int:
        body = produce_request("t", {index: batch([value])}, acks=acks)
        return produced(self.client(1).call(ApiKey.PRODUCE, 11, body)).error_code

    def end(self, broker: int, index: int) -> int:
        log = self.hosts[broker].broker.logs.log(TopicPartition("t", index))
        assert log is not None
        return log.log_end_offset


@behaviour("F7", "F10")
def test_a_damaged_batch_delays_its_partition_and_stops_no_other(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = Pair()
    append = PartitionLog.append_as_follower

    class Damaged:
        is_on = True

    def append_damaged(log: PartitionLog, data: bytes, start: int, end: int, wall_ms: int) -> int:
        if Damaged.is_on and log.topic_partition.partition == 0:
            data = data[: end - 1] + bytes([data[end - 1] ^ 1]) + data[end:]
        return append(log, data, start, end, wall_ms)

    monkeypatch.setattr(PartitionLog, "append_as_follower", append_damaged)
    world.produce(0, b"a", acks=1)
    assert world.produce(1, b"b") == ErrorCode.NONE
    assert world.follower(0) is FollowerState.DELAYED
    assert world.follower(1) is FollowerState.FETCHING
    assert world.end(2, 0) == 0
    problems = world.two.told.of(ReplicationFailed)
    assert problems[0].partition == ("t", 0)
    Damaged.is_on = False
    world.run(1100)
    assert world.end(2, 0) == 1


@behaviour("F12")
def test_a_disk_that_refuses_takes_the_replica_offline_and_the_broker_lives(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = Pair()

    append = PartitionLog.append_as_follower

    def fail_first(log: PartitionLog, data: bytes, start: int, end: int, wall_ms: int) -> int:
        if log.topic_partition.partition == 0:
            raise DiskLost("/logs/t-0", "broken")
        return append(log, data, start, end, wall_ms)

    world.run(100)
    replica = world.two.broker.replicas.find("t", 0)
    assert replica is not None
    monkeypatch.setattr(PartitionLog, "append_as_follower", fail_first)
    world.produce(0, b"a", acks=1)
    world.run(50)
    assert replica.is_offline
    assert world.two.broker.fetchers.follower(TopicPartition("t", 0)) is None
    assert world.produce(1, b"b") == ErrorCode.NONE


@behaviour("F11")
def test_a_follower_takes_over_watermark_and_start_of_the_leader() -> None:
    world = Pair()
    for _ in range(4):
        assert world.produce(0, b"a") == ErrorCode.NONE
    world.run(1000)
    leader_log = world.one.broker.logs.log(TopicPartition("t", 0))
    log = world.two.broker.logs.log(TopicPartition("t", 0))
    assert leader_log is not None
    assert log is not None
    assert log.high_watermark == 4
    leader_log.delete_records_before(3)
    world.run(1000)
    assert log.log_start_offset == 3


@behaviour("F9")
def test_a_partition_that_got_records_is_asked_for_last_next_time() -> None:
    world = Pair()
    world.run(100)
    fetcher = world.two.broker.fetchers._by_leader[1]  # type: ignore[index]
    assert [key.partition for key in fetcher._followed] == [0, 1]
    assert world.produce(0, b"a") == ErrorCode.NONE
    assert [key.partition for key in fetcher._followed] == [1, 0]


@behaviour("F5")
def test_nothing_to_fetch_sends_nothing_until_the_backoff_is_over() -> None:
    world = Pair()
    world.run(600)
    world.tell_leader(1, "t", ID, {index: plan(1, 3, (1, 2)) for index in (0, 1)})
    world.run(1000)
    assert world.follower(0) is world.follower(1) is FollowerState.FAILED
    before = len([line for line in world.trace if "broker2>broker1" in line])
    world.run(10_000)
    after = len([line for line in world.trace if "broker2>broker1" in line])
    assert after == before


@behaviour("F4", "F6")
def test_the_fetch_says_who_asks_and_in_whose_name() -> None:
    world = Pair()
    sent: list[tuple[int, object]] = []
    fetcher = world.two.broker.fetchers._by_leader[1]  # type: ignore[index]
    assert fetcher._client_id == "broker-2-fetcher-0"
    request = fetcher._link.request  # type: ignore[union-attr]

    def note(key: ApiKey, version: int, body: object, then: object, **how: int) -> None:
        sent.append((version, body))
        request(key, version, body, then, **how)  # type: ignore[arg-type]

    fetcher._link.request = note  # type: ignore[union-attr,method-assign,assignment]
    world.run(1000)
    version, body = sent[0]
    assert isinstance(body, FetchRequest)
    assert version == 17
    assert tuple(body.replica_state) == (2, -1)
    assert (body.max_wait_ms, body.min_bytes, body.max_bytes) == (500, 1, 10_485_760)


@behaviour("L9")
def test_partitions_without_ids_are_fetched_by_the_older_version() -> None:
    world = Pair(NO_TOPIC_ID)
    assert world.produce(0, b"a") == ErrorCode.NONE
    assert world.end(2, 0) == 1
    decision = {index: plan(1, 0, (1, 2)) for index in (0, 1)}
    for broker_id in (1, 2):
        world.tell_metadata(broker_id, "t", ID, decision, [1, 2])
        world.tell_leader(broker_id, "t", ID, decision)
    follower = world.two.broker.fetchers.follower(TopicPartition("t", 0))
    assert follower is not None
    assert follower.topic_id == ID
    world.run(3000)
    assert world.produce(0, b"b") == ErrorCode.NONE
    assert world.end(2, 0) == 2


def test_an_answer_with_an_error_of_its_own_is_not_asked_for_again_at_once() -> None:
    world = Pair()
    world.run(600)
    fetcher = world.two.broker.fetchers._by_leader[1]  # type: ignore[index]
    fetcher._on_fetched(FetchResponse(error_code=ErrorCode.UNKNOWN_SERVER_ERROR), world.now_ms)
    assert world.follower(0) is FollowerState.DELAYED


@behaviour("F18")
def test_the_link_ends_with_the_last_partition() -> None:
    world = Pair()
    world.run(100)
    assert len(world.two.broker.fetchers._by_leader) == 1
    decision = {index: plan(2, 1, (1, 2)) for index in (0, 1)}
    world.tell_leader(2, "t", ID, decision)
    assert world.two.broker.fetchers._by_leader == {}
    world.run(10)
    assert not world.network.wires_of(world.one)
