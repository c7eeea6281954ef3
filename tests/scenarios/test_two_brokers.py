"""Two brokers replicate one partition in virtual time; the test plays the controller."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from barnabas.broker.fetch_reads import READ_COMMITTED
from barnabas.broker.leader_fetcher import FollowerMoved, LogTruncated, ReplicationFailed
from barnabas.core.replication.follower_states import FollowerState
from barnabas.formats.logdir.checkpoints import decode_offset_checkpoint
from barnabas.formats.wire.api_keys import ApiKey
from barnabas.formats.wire.generated.fetch import PartitionData
from barnabas.formats.wire.generated.produce import PartitionProduceResponse
from barnabas.model.error_codes import ErrorCode
from barnabas.model.ids import TopicId, TopicPartition
from barnabas.storage.partition_log import PartitionLog
from tests.behaviours import behaviour
from tests.worlds.log_world import append, batch_of
from tests.worlds.requests import batch, fetch_request, produce_request, produced, values_of
from tests.worlds.virtual_network import LATENCY_MS
from tests.worlds.virtual_world import LOG_DIR, PartitionPlan, VirtualWorld, plan

TOPIC = "t"
TOPIC_ID = TopicId(b"\x0a" * 16)
T0 = TopicPartition(TOPIC, 0)


class TwoBrokers(VirtualWorld):
    """Brokers 1 and 2, and partition t-0 on both of them."""

    def __init__(self, **settings: str) -> None:
        super().__init__()
        self.one = self.add_broker(1, **settings)
        self.two = self.add_broker(2, **settings)

    def decide(self, decision: PartitionPlan, *, live: tuple[int, ...] = (1, 2)) -> None:
        """Tell every live broker who leads: the metadata first, then the roles, leader first."""
        first = [decision.leader] if decision.leader in live else []
        for broker_id in live:
            self.tell_metadata(broker_id, TOPIC, TOPIC_ID, {0: decision}, list(live))
        for broker_id in first + [one for one in live if one != decision.leader]:
            self.tell_leader(broker_id, TOPIC, TOPIC_ID, {0: decision})

    def log(self, broker_id: int) -> PartitionLog:
        log = self.hosts[broker_id].broker.logs.log(T0)
        assert log is not None
        return log

    def is_caught_up(self) -> bool:
        return self.log(1).log_end_offset == self.log(2).log_end_offset

    def segment_bytes(self, broker_id: int) -> bytes:
        files = self.hosts[broker_id].disk.snapshot(f"{LOG_DIR}/t-0")
        return b"".join(files[name] for name in sorted(files) if name.endswith(".log"))

    def epochs(self, broker_id: int) -> list[tuple[int, int]]:
        return [tuple(entry) for entry in self.log(broker_id).leader_epochs.entries()]

    def produce(
        self, to: int, *values: bytes, acks: int = -1, timeout_ms: int = 30_000
    ) -> PartitionProduceResponse:
        client = self.client(to)
        body = produce_request(TOPIC, {0: batch(values)}, acks=acks, timeout_ms=timeout_ms)
        return produced(client.call(ApiKey.PRODUCE, 11, body))

    def consume(self, at: int, offset: int = 0, *, isolation_level: int = 0) -> PartitionData:
        client = self.client(at)
        body = fetch_request(TOPIC, {0: offset}, topic_id=TOPIC_ID, isolation_level=isolation_level)
        (topic,) = client.call(ApiKey.FETCH, 17, body).responses
        return topic.partitions[0]


@pytest.fixture
def world() -> TwoBrokers:
    world = TwoBrokers()
    world.decide(plan(1, 0, (1, 2)))
    return world


def test_acks_all_is_released_by_the_followers_next_fetch(world: TwoBrokers) -> None:
    client = world.client(1)
    number = client.send(ApiKey.PRODUCE, 11, produce_request(TOPIC, {0: batch([b"a"])}))
    world.run_until(lambda: world.log(1).log_end_offset == 1)
    written_ms = world.now_ms
    assert number not in client.answers
    world.run_until(lambda: number in client.answers)
    # The parked fetch is answered, the next one acknowledges, the produce is answered: three ways.
    assert world.now_ms == written_ms + 3 * LATENCY_MS
    assert produced(client.answers[number]).base_offset == 0
    assert world.is_caught_up()


def test_the_watermark_is_seen_by_a_consumer_only_when_the_follower_has_fetched(
    world: TwoBrokers,
) -> None:
    world.network.cut("broker1", "broker2")
    assert world.produce(1, b"a", b"b", acks=1).error_code == ErrorCode.NONE
    seen = world.consume(1)
    assert (seen.high_watermark, values_of(seen)) == (0, [])
    world.network.mend("broker1", "broker2")
    world.run_until(lambda: world.log(1).high_watermark == 2)
    seen = world.consume(1)
    assert (seen.high_watermark, values_of(seen)) == (2, [b"a", b"b"])


def test_a_transaction_above_the_watermark_shows_nothing_to_who_reads_committed(
    world: TwoBrokers,
) -> None:
    """What is not replicated may be lost, whether a transaction begins behind it or not."""
    world.network.cut("broker1", "broker2")
    assert world.produce(1, b"a", acks=1).error_code == ErrorCode.NONE
    open_transaction = batch_of(
        b"b", producer_id=5, producer_epoch=0, base_sequence=0, is_transactional=True
    )
    # Nobody coordinates transactions yet, so the leader is handed the batch itself.
    assert append(world.log(1), open_transaction).base_offset == 1
    assert world.produce(1, b"c", acks=1).base_offset == 2
    seen = world.consume(1, isolation_level=READ_COMMITTED)
    assert (seen.high_watermark, seen.last_stable_offset, values_of(seen)) == (0, 0, [])
    world.network.mend("broker1", "broker2")
    world.run_until(lambda: world.log(1).high_watermark == 3)
    seen = world.consume(1, isolation_level=READ_COMMITTED)
    assert (seen.high_watermark, seen.last_stable_offset, values_of(seen)) == (3, 1, [b"a"])


def test_a_consumer_that_waits_is_answered_when_the_watermark_moves(world: TwoBrokers) -> None:
    client = world.client(1)
    body = fetch_request(TOPIC, {0: 0}, topic_id=TOPIC_ID, max_wait_ms=20_000)
    waiting = client.send(ApiKey.FETCH, 17, body)
    world.run(100)
    assert waiting not in client.answers
    answer = world.produce(1, b"a")
    assert answer.base_offset == 0
    world.run(LATENCY_MS)
    (topic,) = client.answers[waiting].responses
    assert values_of(topic.partitions[0]) == [b"a"]
    assert client.answered_ms[waiting] < 200


def test_without_its_follower_acks_all_times_out_and_the_record_stays(world: TwoBrokers) -> None:
    world.two.kill()
    answer = world.produce(1, b"a", timeout_ms=1500)
    assert (answer.error_code, answer.base_offset) == (ErrorCode.REQUEST_TIMED_OUT, 0)
    assert world.log(1).log_end_offset == 1
    assert world.consume(1).high_watermark == 0


def test_a_follower_that_was_killed_returns_and_catches_up(world: TwoBrokers) -> None:
    assert world.produce(1, b"a", b"b").error_code == ErrorCode.NONE
    world.two.kill()
    client = world.client(1)
    body = produce_request(TOPIC, {0: batch([b"c"])}, timeout_ms=50_000)
    waiting = client.send(ApiKey.PRODUCE, 11, body)
    world.run(5000)
    assert waiting not in client.answers
    world.two.start()
    world.decide(plan(1, 1, (1, 2)))
    world.run_until(lambda: waiting in client.answers)
    assert produced(client.answers[waiting]).error_code == ErrorCode.NONE
    assert world.segment_bytes(1) == world.segment_bytes(2)
    assert values_of(world.consume(1)) == [b"a", b"b", b"c"]


def test_a_leader_that_was_killed_and_returns_still_holds_what_was_acknowledged(
    world: TwoBrokers,
) -> None:
    assert world.produce(1, b"a", b"b").error_code == ErrorCode.NONE
    world.one.kill()
    world.decide(plan(2, 1, (2,)), live=(2,))
    assert values_of(world.consume(2)) == [b"a", b"b"]
    assert world.produce(2, b"c").base_offset == 2
    world.one.start()
    world.decide(plan(2, 2, (1, 2)))
    world.run_until(world.is_caught_up)
    assert world.segment_bytes(1) == world.segment_bytes(2)


@behaviour("F19", "L21", "L22")
def test_recording_t_a_tail_that_nobody_else_has_is_cut_by_a_diverging_epoch(
    world: TwoBrokers,
) -> None:
    """Four records on both; three more on broker 1 alone; two other ones in the next epoch."""
    assert world.produce(1, b"0", b"1", b"2", b"3").error_code == ErrorCode.NONE
    world.network.cut("broker1", "broker2")
    assert world.produce(1, b"x", b"y", b"z", acks=1).error_code == ErrorCode.NONE
    world.one.kill()
    world.network.mend("broker1", "broker2")
    world.decide(plan(2, 1, (2,)), live=(2,))
    assert world.produce(2, b"4", b"5").base_offset == 4
    assert world.epochs(2) == [(0, 0), (1, 4)]
    world.one.start()
    assert world.log(1).log_end_offset == 7
    world.decide(plan(2, 1, (2,), (1, 2)))
    world.run_until(lambda: world.is_caught_up() and world.log(1).high_watermark == 6)
    (cut,) = world.one.told.of(LogTruncated)
    assert (cut.from_offset, cut.to_offset) == (7, 4)
    moves = [(m.source, m.target) for m in world.one.told.of(FollowerMoved)]
    assert moves[-3:] == [
        (FollowerState.STOPPED, FollowerState.FETCHING),
        (FollowerState.FETCHING, FollowerState.TRUNCATING),
        (FollowerState.TRUNCATING, FollowerState.FETCHING),
    ]
    assert world.epochs(1) == world.epochs(2)
    assert world.segment_bytes(1) == world.segment_bytes(2)
    assert values_of(world.consume(2)) == [b"0", b"1", b"2", b"3", b"4", b"5"]


def test_a_cut_waits_for_a_slow_disk_and_nobody_else_does(world: TwoBrokers) -> None:
    """A flush is under way, and a checkpoint promises the records that are to be cut."""
    assert world.produce(1, b"0", b"1").error_code == ErrorCode.NONE
    world.network.cut("broker1", "broker2")
    assert world.produce(1, b"x", b"y", acks=1).error_code == ErrorCode.NONE
    world.one.broker.logs.manager.flush(world.log(1))
    world.run(120_000)
    assert world.log(1).recovery_point == 4
    world.decide(plan(2, 1, (2,)), live=(2,))
    assert world.produce(2, b"2").base_offset == 2
    world.network.mend("broker1", "broker2")
    disk = world.one.disk
    disk.is_slow = True
    assert world.produce(1, b"z", acks=1).error_code == ErrorCode.NONE
    world.one.broker.logs.manager.flush(world.log(1))
    world.decide(plan(2, 1, (2,), (1, 2)))
    world.run(5_000)
    follower = world.one.broker.fetchers.follower(T0)
    assert follower is not None
    assert follower.state is FollowerState.TRUNCATING
    assert world.log(1).log_end_offset == 5
    assert values_of(world.consume(1)) == [b"0", b"1"]
    disk.is_slow = False
    world.run_until(world.is_caught_up)
    assert world.segment_bytes(1) == world.segment_bytes(2)
    path = f"{LOG_DIR}/recovery-point-offset-checkpoint"
    assert decode_offset_checkpoint(disk.read_file(path)) == {T0: 2}


@behaviour("F14", "F19")
def test_recording_t2_an_unclean_leader_with_a_shorter_log_wins(world: TwoBrokers) -> None:
    """Both hold 3 in epoch 0; broker 1 adds 4 in epoch 1 alone; broker 2 leads epoch 2 with 1."""
    assert world.produce(1, b"0", b"1", b"2").error_code == ErrorCode.NONE
    world.two.kill()
    world.decide(plan(1, 1, (1,)), live=(1,))
    assert world.produce(1, b"x", b"y", b"z", b"w").base_offset == 3
    world.one.kill()
    world.two.start()
    world.decide(plan(2, 2, (2,)), live=(2,))
    assert world.produce(2, b"3").base_offset == 3
    world.one.start()
    world.decide(plan(2, 2, (2,)))
    world.run_until(lambda: world.is_caught_up() and world.log(1).high_watermark == 4)
    assert world.epochs(1) == world.epochs(2) == [(0, 0), (2, 3)]
    assert world.segment_bytes(1) == world.segment_bytes(2)
    (cut,) = world.one.told.of(LogTruncated)
    assert (cut.from_offset, cut.to_offset) == (7, 3)


@behaviour("F15")
def test_a_follower_that_was_away_for_long_begins_where_the_leader_begins(
    world: TwoBrokers,
) -> None:
    assert world.produce(1, b"0", b"1").error_code == ErrorCode.NONE
    world.two.kill()
    world.decide(plan(1, 1, (1,)), live=(1,))
    for number in range(5):
        assert world.produce(1, b"n%d" % number).error_code == ErrorCode.NONE
    assert world.log(1).delete_records_before(5) == ErrorCode.NONE
    world.two.start()
    world.decide(plan(1, 2, (1,)))
    world.run_until(world.is_caught_up)
    assert world.log(2).log_start_offset == 5
    moves = [(m.source, m.target) for m in world.two.told.of(FollowerMoved)]
    assert (FollowerState.FETCHING, FollowerState.LOCATING) in moves
    assert (FollowerState.LOCATING, FollowerState.TRUNCATING) in moves


@behaviour("F7")
def test_a_leader_that_is_away_is_tried_again_after_the_backoff(world: TwoBrokers) -> None:
    world.run(600)
    follower = world.two.broker.fetchers.follower(T0)
    assert follower is not None
    world.one.kill()
    world.run(10)
    assert follower.state is FollowerState.DELAYED
    world.run(3000)
    problems = world.two.told.of(ReplicationFailed)
    assert [problem.partition for problem in problems] == [None] * 4
    world.one.start()
    world.tell_metadata(1, TOPIC, TOPIC_ID, {0: plan(1, 1, (1, 2))}, [1, 2])
    world.tell_leader(1, TOPIC, TOPIC_ID, {0: plan(1, 0, (1, 2))})
    world.run(1500)
    assert follower.state is FollowerState.FETCHING
    assert world.produce(1, b"a").error_code == ErrorCode.NONE


@behaviour("F20")
def test_a_leader_that_does_not_know_its_epoch_yet_is_asked_again(world: TwoBrokers) -> None:
    """The follower hears of the new epoch first, as in recording d."""
    world.tell_leader(2, TOPIC, TOPIC_ID, {0: plan(1, 5, (1, 2))})
    world.run(600)
    follower = world.two.broker.fetchers.follower(T0)
    assert follower is not None
    assert follower.state is FollowerState.DELAYED
    world.tell_leader(1, TOPIC, TOPIC_ID, {0: plan(1, 5, (1, 2))})
    world.run(1000)
    assert follower.state is FollowerState.FETCHING
    assert world.produce(1, b"a").error_code == ErrorCode.NONE


@behaviour("F20")
def test_a_follower_fenced_in_its_own_epoch_waits_for_the_controller(world: TwoBrokers) -> None:
    world.tell_leader(1, TOPIC, TOPIC_ID, {0: plan(1, 3, (1, 2))})
    world.run(2000)
    follower = world.two.broker.fetchers.follower(T0)
    assert follower is not None
    assert follower.state is FollowerState.FAILED
    world.tell_leader(2, TOPIC, TOPIC_ID, {0: plan(1, 3, (1, 2))})
    assert world.produce(1, b"a").error_code == ErrorCode.NONE


@behaviour("F18")
def test_a_replica_that_becomes_leader_stops_fetching_and_ends_its_link(
    world: TwoBrokers,
) -> None:
    world.decide(plan(2, 1, (1, 2)))
    assert world.two.broker.fetchers.follower(T0) is None
    assert world.one.broker.fetchers.follower(T0) is not None
    assert world.produce(2, b"a").error_code == ErrorCode.NONE
    assert world.is_caught_up()


@behaviour("L20")
def test_who_waits_at_a_leader_is_answered_when_it_becomes_a_follower(world: TwoBrokers) -> None:
    world.network.cut("broker1", "broker2")
    client = world.client(1)
    produce = client.send(ApiKey.PRODUCE, 11, produce_request(TOPIC, {0: batch([b"a"])}))
    consumer = world.client(1)
    body = fetch_request(TOPIC, {0: 0}, topic_id=TOPIC_ID, max_wait_ms=30_000, version=17)
    body.topics[0].partitions[0].current_leader_epoch = 0
    fetch = consumer.send(ApiKey.FETCH, 17, body)
    world.run(10)
    assert produce not in client.answers
    world.tell_leader(1, TOPIC, TOPIC_ID, {0: plan(2, 1, (1, 2))})
    world.run(LATENCY_MS)
    assert produced(client.answers[produce]).error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    (topic,) = consumer.answers[fetch].responses
    assert topic.partitions[0].error_code == ErrorCode.FENCED_LEADER_EPOCH


def test_the_followers_log_is_the_leaders_byte_for_byte(world: TwoBrokers) -> None:
    for number in range(20):
        values = [bytes([65 + number]) * (1 + 37 * number % 500) for _ in range(1 + number % 4)]
        assert world.produce(1, *values).error_code == ErrorCode.NONE
    world.run(1000)
    assert world.segment_bytes(1) == world.segment_bytes(2)
    assert world.log(2).high_watermark == world.log(1).high_watermark


def test_a_clean_stop_and_start_of_both_loses_nothing(world: TwoBrokers) -> None:
    assert world.produce(1, b"a", b"b").error_code == ErrorCode.NONE
    world.run(1000)
    world.two.stop()
    world.one.stop()
    world.one.start()
    world.two.start()
    world.decide(plan(1, 1, (1, 2)))
    world.run_until(lambda: world.log(1).high_watermark == 2)
    assert values_of(world.consume(1)) == [b"a", b"b"]
    assert world.produce(1, b"c").base_offset == 2


def scenario() -> list[str]:
    """Everything that happens in a long story of two brokers."""
    world = TwoBrokers()
    world.decide(plan(1, 0, (1, 2)))
    for number in range(5):
        world.produce(1, b"v%d" % number)
    world.network.cut("broker1", "broker2")
    world.produce(1, b"lost", acks=1)
    world.one.kill()
    world.network.mend("broker1", "broker2")
    world.decide(plan(2, 1, (2,)), live=(2,))
    world.produce(2, b"kept")
    world.one.start()
    world.decide(plan(2, 1, (1, 2)))
    world.run_until(world.is_caught_up)
    world.run(60_000)
    return world.trace


def test_the_same_story_leaves_the_same_trace_whatever_the_hash_seed() -> None:
    """Sets and dictionaries by hash must not decide anything."""
    root = Path(__file__).parents[2]
    program = "from tests.scenarios.test_two_brokers import scenario; print(*scenario(), sep='\\n')"
    outputs = [
        subprocess.run(
            [sys.executable, "-c", program],
            cwd=root,
            env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": f"{root}/src:{root}"},
            capture_output=True,
            text=True,
            check=True,
            timeout=60,
        ).stdout
        for seed in ("1", "2")
    ]
    assert outputs[0] == outputs[1]
    assert len(outputs[0].splitlines()) > 200


def test_a_thousand_virtual_seconds_take_less_than_one(world: TwoBrokers) -> None:
    started = time.process_time()
    world.run(1_000_000)
    assert time.process_time() - started < 1.0
    assert len(world.trace) > 4000
