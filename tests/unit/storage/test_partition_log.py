"""One partition's log: append, read, roll, cut, and what it answers to producers."""

from dataclasses import replace

import pytest

from barnabas.formats.batches.header import LOG_APPEND_TIME, BatchHeader, with_timestamp_type
from barnabas.model.config import TopicConfig
from barnabas.model.error_codes import ErrorCode
from barnabas.model.errors import CorruptBatch, DiskLost
from barnabas.model.ids import TopicId, TopicPartition
from barnabas.model.invariant import InvariantViolated
from barnabas.storage.disk import FileSlice
from barnabas.storage.partition_log import SLICE_BYTES_MIN, PartitionLog
from tests.behaviours import behaviour
from tests.worlds.log_world import (
    LogWorld,
    append,
    batch_of,
    bytes_of,
    produce,
    read_all,
    records_in,
)
from tests.worlds.memory_disk import Fault


def new_log(topic: TopicConfig | None = None) -> PartitionLog:
    world = LogWorld(topic=topic or TopicConfig())
    world.start()
    return world.log()


def values_of(log: PartitionLog) -> list[bytes | None]:
    return [value for _, value in read_all(log)]


def test_a_batch_gets_the_next_offsets_and_the_leaders_epoch() -> None:
    log = new_log()
    first = append(log, batch_of(b"a", b"b", b"c"), leader_epoch=4)
    second = append(log, batch_of(b"d"), leader_epoch=4)
    assert (first.error, first.base_offset, first.last_offset) == (ErrorCode.NONE, 0, 2)
    assert (second.base_offset, second.last_offset, log.log_end_offset) == (3, 3, 4)
    data = bytes_of(log.read(0, 1000, 4, True))
    assert [BatchHeader(data, 0).base_offset, BatchHeader(data, 0).partition_leader_epoch] == [0, 4]
    assert [one.value for one in records_in(data)] == [b"a", b"b", b"c", b"d"]
    assert log.leader_epochs.entries() == ((4, 0),)


def test_the_bytes_in_the_file_are_the_producers_but_for_offset_and_epoch() -> None:
    log = new_log()
    batch = batch_of(b"x" * 5000, b"y" * 5000)
    produce(log, b"before")
    append(log, batch, leader_epoch=3)
    log.write_out()
    data = bytes_of(log.read(1, 1 << 20, 3, True))
    assert data == (1).to_bytes(8, "big") + batch[8:12] + (3).to_bytes(4, "big") + batch[16:]


def test_nothing_reaches_the_file_before_the_turn_ends_or_somebody_reads() -> None:
    log = new_log()
    append(log, batch_of(b"a"))
    append(log, batch_of(b"b"))
    file = log.active_segment.file()
    assert log.files.disk.size(file) == 0
    assert values_of(log) == [b"a", b"b"]
    assert log.files.disk.size(file) == log.size_bytes > 0


def test_too_large_for_the_topic_or_for_a_segment() -> None:
    log = new_log(TopicConfig(max_message_bytes=1000, segment_bytes=400))
    assert append(log, batch_of(b"x" * 2000)).error == ErrorCode.MESSAGE_TOO_LARGE
    assert append(log, batch_of(b"x" * 500)).error == ErrorCode.RECORD_LIST_TOO_LARGE
    assert log.log_end_offset == 0
    assert append(log, batch_of(b"x")).error == ErrorCode.NONE


def test_an_idempotent_producers_batch_is_appended_once() -> None:
    log = new_log()
    batches = [
        batch_of(b"a", b"b", producer_id=1, producer_epoch=0, base_sequence=2 * number)
        for number in range(6)
    ]
    for batch in batches:
        assert append(log, batch).error == ErrorCode.NONE
    for number, batch in enumerate(batches[1:], start=1):
        again = append(log, batch)
        assert again.is_duplicate
        assert (again.error, again.base_offset, again.last_offset) == (
            ErrorCode.NONE,
            2 * number,
            2 * number + 1,
        )
    assert append(log, batches[0]).error == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    gap = batch_of(b"z", producer_id=1, producer_epoch=0, base_sequence=13)
    assert append(log, gap).error == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert log.log_end_offset == 12
    zombie = batch_of(b"z", producer_id=1, producer_epoch=1, base_sequence=0)
    assert append(log, zombie).error == ErrorCode.NONE
    assert append(log, batches[5]).error == ErrorCode.INVALID_PRODUCER_EPOCH


def test_the_time_of_the_append_is_told_where_the_topic_has_it() -> None:
    log = new_log()
    batch = batch_of(b"a")
    assert append(log, batch).log_append_time == -1
    stamped = with_timestamp_type(batch, BatchHeader(batch, 0), 0, LOG_APPEND_TIME, 777)
    assert append(log, stamped).log_append_time == 777


def test_a_read_is_out_of_range_on_either_side() -> None:
    log = new_log()
    for number in range(10):
        produce(log, b"%d" % number)
    log.delete_records_before(4)
    assert log.read(3, 100, 10, True) is None
    assert log.read(11, 100, 10, True) is None
    assert log.read(10, 100, 10, True) == b""
    assert records_in(bytes_of(log.read(4, 1, 10, True)))[0].offset == 4


def test_a_read_begins_with_the_batch_that_contains_the_offset() -> None:
    log = new_log()
    produce(log, b"a", b"b", b"c")
    produce(log, b"d")
    read = records_in(bytes_of(log.read(2, 1000, 4, True)))
    assert [one.offset for one in read] == [0, 1, 2, 3]


def test_a_read_ends_before_the_batch_that_reaches_the_upper_offset() -> None:
    log = new_log()
    produce(log, b"a", b"b")
    produce(log, b"c", b"d")
    produce(log, b"e")
    for upper, last in ((5, 4), (4, 3), (3, 1), (2, 1), (1, None)):
        read = records_in(bytes_of(log.read(0, 1000, upper, True)))
        assert (read[-1].offset if read else None) == last
    assert log.read(3, 1000, 3, True) == b""


def test_a_first_batch_above_the_limit_comes_whole_or_not_at_all() -> None:
    log = new_log()
    batch = batch_of(b"x" * 300)
    produce(log, b"x" * 300)
    produce(log, b"y")
    assert log.read(0, 100, 2, False) == b""
    assert len(bytes_of(log.read(0, 100, 2, True))) == len(batch)
    assert len(bytes_of(log.read(0, len(batch) + 10, 2, True))) == len(batch) + 10


def test_a_large_read_is_a_piece_of_the_file_which_stays_open() -> None:
    log = new_log(TopicConfig(segment_bytes=3 * SLICE_BYTES_MIN))
    value = b"x" * (2 * SLICE_BYTES_MIN)
    produce(log, value)
    data = log.read(0, 1 << 20, 1, True)
    assert isinstance(data, FileSlice)
    produce(log, value)
    produce(log, value)
    assert len(log.segments) == 3
    for segment in log.segments:
        segment.close()
    assert records_in(bytes_of(data))[0].value == value


def test_readers_at_the_end_of_the_log_do_not_search_the_disk() -> None:
    world = LogWorld()
    world.start()
    log = world.log()
    for number in range(500):
        produce(log, b"%d" % number)
    before = world.memory.reads
    for offset in range(440, 500):
        assert records_in(bytes_of(log.read(offset, 1, 500, True)))[0].offset == offset
        assert records_in(bytes_of(log.read(offset - 1, 10_000, offset, True)))[-1].offset < offset
    assert world.memory.reads - before == 120


@pytest.mark.parametrize("max_bytes", [1, 200, 10_000])
def test_every_record_is_found_across_segments(max_bytes: int) -> None:
    log = new_log(TopicConfig(segment_bytes=600, index_interval_bytes=100))
    expected = [b"value-%d" % number for number in range(100)]
    for value in expected:
        produce(log, value)
    assert len(log.segments) > 10
    assert [value for _, value in read_all(log, max_bytes=max_bytes)] == expected
    for offset in range(100):
        assert records_in(bytes_of(log.read(offset, 1, 100, True)))[0].offset == offset


# Rolling


def test_a_segment_is_rolled_when_the_batch_does_not_fit() -> None:
    size = len(batch_of(b"x" * 10))
    log = new_log(TopicConfig(segment_bytes=3 * size))
    for _ in range(7):
        produce(log, b"x" * 10)
    assert [one.base_offset for one in log.segments] == [0, 3, 6]
    assert [one.size_bytes for one in log.segments] == [3 * size, 3 * size, size]


def test_a_segment_is_rolled_by_the_age_of_its_records() -> None:
    log = new_log(TopicConfig(segment_ms=1000))
    for timestamp in (5000, 6000, 6001, 6002, 8000):
        produce(log, b"x", timestamp=timestamp)
    assert [one.base_offset for one in log.segments] == [0, 2, 4]


def test_jitter_rolls_segments_of_many_logs_at_different_times() -> None:
    world = LogWorld(topic=TopicConfig(segment_ms=10_000, segment_jitter_ms=5000))
    world.start()
    rolled_at: list[int] = []
    for number in range(20):
        log = world.log(TopicPartition("t", number))
        for timestamp in range(0, 10_100, 100):
            if len(log.segments) == 1:
                produce(log, b"x", timestamp=timestamp)
        rolled_at.append(log.segments[-1].first_timestamp)
    assert len(set(rolled_at)) > 10
    assert min(rolled_at) > 5000


def test_records_without_a_timestamp_are_rolled_by_the_brokers_clock() -> None:
    log = new_log(TopicConfig(segment_ms=1000))
    began_ms = log.active_segment.created_ms
    for wall_ms in (began_ms, began_ms + 1000, began_ms + 1001):
        append(log, batch_of(b"x", timestamp=-1), wall_ms=wall_ms)
    assert [one.base_offset for one in log.segments] == [0, 2]


def test_a_segment_is_rolled_when_an_index_is_full_or_an_offset_too_far() -> None:
    log = new_log(TopicConfig(segment_index_bytes=48, index_interval_bytes=1))
    for number in range(20):
        produce(log, b"x", timestamp=number)
    assert len(log.segments) > 3
    far = new_log()
    produce(far, b"x")
    batch = batch_of(b"y", base_offset=2**31 + 5, leader_epoch=0)
    far.append_as_follower(batch, 0, len(batch), 0)
    assert [one.base_offset for one in far.segments] == [0, 2**31 + 5]
    assert far.log_end_offset == 2**31 + 6


# Following


def test_a_follower_keeps_the_leaders_bytes() -> None:
    leader = new_log(TopicConfig(segment_bytes=500))
    for number in range(20):
        produce(leader, b"%d" % number, leader_epoch=number // 7)
    follower = new_log(TopicConfig(segment_bytes=900))
    while follower.log_end_offset < 20:
        data = bytes_of(leader.read(follower.log_end_offset, 1000, 20, True))
        follower.append_as_follower(data, 0, len(data), 0)
    follower.write_out()
    assert read_all(follower) == read_all(leader)
    assert follower.leader_epochs.entries() == leader.leader_epochs.entries()
    joined = [
        b"".join(log.files.disk.read(one.file(), 0, one.size_bytes) for one in log.segments)
        for log in (leader, follower)
    ]
    assert joined[0] == joined[1]
    assert len(leader.segments) != len(follower.segments)


def test_a_follower_takes_what_begins_inside_a_larger_frame_and_leaves_a_cut_batch() -> None:
    follower = new_log()
    first = batch_of(b"a", leader_epoch=0)
    second = batch_of(b"b", base_offset=1, leader_epoch=0)
    frame = b"head" + first + second[:-5]
    assert follower.append_as_follower(frame, 4, len(frame), 0) == 1
    assert values_of(follower) == [b"a"]


def test_a_follower_refuses_what_is_damaged_or_behind_its_end() -> None:
    follower = new_log()
    good = batch_of(b"a", leader_epoch=0)
    damaged = bytearray(batch_of(b"b", base_offset=1, leader_epoch=0))
    damaged[-1] ^= 1
    with pytest.raises(CorruptBatch, match="checksum"):
        follower.append_as_follower(good + bytes(damaged), 0, len(good) + len(damaged), 0)
    assert values_of(follower) == [b"a"]
    with pytest.raises(CorruptBatch, match="behind the end"):
        follower.append_as_follower(good, 0, len(good), 0)
    assert follower.log_end_offset == 1


def test_gaps_that_compaction_left_are_kept() -> None:
    follower = new_log()
    for offset in (3, 4, 9):
        batch = batch_of(b"x", base_offset=offset, leader_epoch=0)
        follower.append_as_follower(batch, 0, len(batch), 0)
    assert [offset for offset, _ in read_all(follower)] == [3, 4, 9]
    assert records_in(bytes_of(follower.read(5, 1, 10, True)))[0].offset == 9


# Cutting


@behaviour("F13", "F16")
def test_a_cut_takes_records_epochs_and_producers_from_an_offset_on() -> None:
    log = new_log(TopicConfig(segment_bytes=500, index_interval_bytes=50))
    for number in range(30):
        batch = batch_of(b"%d" % number, producer_id=1, producer_epoch=0, base_sequence=number)
        append(log, batch, leader_epoch=number // 10)
    log.set_high_watermark(30)
    assert log.truncate_to(13, 0)
    assert [offset for offset, _ in read_all(log)] == list(range(13))
    assert (log.log_end_offset, log.high_watermark) == (13, 13)
    assert log.leader_epochs.entries() == ((0, 0), (1, 10))
    after = batch_of(b"new", producer_id=1, producer_epoch=0, base_sequence=13)
    assert append(log, after, leader_epoch=5).base_offset == 13
    assert not log.truncate_to(14, 0)
    assert not log.truncate_to(99, 0)
    assert values_of(log)[-1] == b"new"


def test_a_cut_inside_a_batch_takes_the_whole_batch() -> None:
    log = new_log()
    produce(log, b"a", b"b")
    produce(log, b"c", b"d")
    log.truncate_to(3, 0)
    assert log.log_end_offset == 3
    assert [offset for offset, _ in read_all(log)] == [0, 1]


@behaviour("F15")
def test_a_log_that_is_dropped_begins_and_ends_at_the_new_offset() -> None:
    log = new_log(TopicConfig(segment_bytes=300))
    for number in range(20):
        produce(log, b"%d" % number)
    log.truncate_fully_and_start_at(1000, 0)
    assert (log.log_start_offset, log.log_end_offset, log.high_watermark) == (1000, 1000, 1000)
    assert log.leader_epochs.entries() == ()
    assert [one.base_offset for one in log.segments] == [1000]
    assert log.read(999, 1, 1000, True) is None
    assert produce(log, b"x").base_offset == 1000


def test_the_start_moves_on_and_never_past_what_is_replicated() -> None:
    log = new_log()
    for number in range(10):
        produce(log, b"%d" % number, leader_epoch=number // 4)
    log.set_high_watermark(6)
    assert log.delete_records_before(7) == ErrorCode.OFFSET_OUT_OF_RANGE
    assert log.delete_records_before(5) == ErrorCode.NONE
    assert log.delete_records_before(2) == ErrorCode.NONE
    assert log.log_start_offset == 5
    assert log.leader_epochs.entries() == ((1, 5), (2, 8))


def test_the_high_watermark_stays_within_the_log() -> None:
    log = new_log()
    for number in range(5):
        append(log, batch_of(b"%d" % number))
    assert log.set_high_watermark(99) == 5
    assert log.set_high_watermark(3) == 3
    log.delete_records_before(2)
    assert log.set_high_watermark(0) == 2


def test_the_last_stable_offset_is_held_by_an_open_transaction() -> None:
    log = new_log()
    produce(log, b"a")
    append(
        log,
        batch_of(b"b", producer_id=1, producer_epoch=0, base_sequence=0, is_transactional=True),
    )
    append(log, batch_of(b"c"))
    log.set_high_watermark(3)
    assert log.last_stable_offset == 1
    log.set_high_watermark(1)
    log.delete_records_before(1)
    log.set_high_watermark(3)
    assert log.last_stable_offset == 1


def test_the_last_stable_offset_is_never_above_the_high_watermark() -> None:
    """A transaction that begins above the watermark is not where a reader has to stop."""
    log = new_log()
    produce(log, b"a")
    append(log, batch_of(b"b"))
    append(
        log,
        batch_of(b"c", producer_id=1, producer_epoch=0, base_sequence=0, is_transactional=True),
    )
    append(log, batch_of(b"d"))
    seen = [(log.set_high_watermark(offset), log.last_stable_offset) for offset in (1, 2, 3, 4)]
    assert seen == [(1, 1), (2, 2), (3, 2), (4, 2)]


def test_a_topic_id_is_given_once() -> None:
    log = new_log()
    log.set_topic_id(log.topic_id)
    with pytest.raises(InvariantViolated):
        log.set_topic_id(TopicId(b"y" * 16))


def test_new_settings_hold_from_the_next_append() -> None:
    log = new_log()
    produce(log, b"x" * 500)
    log.configure(replace(log.config, max_message_bytes=100, segment_bytes=600))
    assert append(log, batch_of(b"x" * 500)).error == ErrorCode.MESSAGE_TOO_LARGE
    produce(log, b"y")
    assert len(log.segments) == 2


# Failing


@behaviour("F12")
@pytest.mark.parametrize("fault", list(Fault))
def test_a_write_that_fails_leaves_neither_half_a_batch_nor_wrong_offsets(fault: Fault) -> None:
    world = LogWorld()
    world.start()
    log = world.log()
    produce(log, b"kept")
    world.settle()
    append(log, batch_of(b"lost" * 100))
    append(log, batch_of(b"lost too"))
    assert log.log_end_offset == 3
    world.memory.plan(world.memory.operations, fault)
    with pytest.raises(DiskLost if fault is not Fault.FULL else Exception):
        log.write_out()
    assert log.log_end_offset == 1
    assert log.high_watermark == 1
    with pytest.raises(DiskLost):
        append(log, batch_of(b"again"))
    with pytest.raises(DiskLost):
        log.read(0, 100, 1, True)
    world.memory.is_dead = False
    world.settle()
    assert [one.topic_partitions for one in world.lost] == [(log.topic_partition,)]
    assert world.lost[0].is_last
    world.memory.kill_process()
    world.start()
    assert values_of(world.log()) == [b"kept"]


def test_a_full_disk_takes_the_directory_offline_and_keeps_what_fits() -> None:
    world = LogWorld()
    world.start()
    log = world.log()
    produce(log, b"x" * 100)
    world.settle()
    world.memory.capacity_bytes = world.memory.used_bytes() + 150
    append(log, batch_of(b"y" * 100))
    append(log, batch_of(b"z" * 100))
    with pytest.raises(Exception, match="no space left"):
        log.write_out()
    world.settle()
    assert len(world.lost) == 1
    world.memory.capacity_bytes = None
    world.memory.kill_process()
    world.start()
    assert values_of(world.log()) == [b"x" * 100]
