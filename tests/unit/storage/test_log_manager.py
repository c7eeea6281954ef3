"""All logs of a broker: opening, creating, retiring, keeping in order, closing."""

import pytest

from barnabas.formats.logdir.checkpoints import decode_offset_checkpoint
from barnabas.model.config import BrokerConfig, TopicConfig
from barnabas.model.errors import DiskLost, LogDirectoryRefused
from barnabas.model.ids import NO_TOPIC_ID, TopicPartition
from barnabas.storage.log_manager import LogManager
from barnabas.storage.log_opening import take_over
from barnabas.storage.partition_log import PartitionLog
from barnabas.storage.recovery import LoadedLog
from tests.behaviours import behaviour
from tests.worlds.log_world import (
    CLUSTER_ID,
    PARTITION,
    TOPIC_ID,
    LogWorld,
    append,
    batch_of,
    produce,
    read_all,
)
from tests.worlds.memory_disk import Fault

OTHER = TopicPartition("other", 3)
SMALL = TopicConfig(segment_bytes=300, index_interval_bytes=50)


def fill(world: LogWorld, key: TopicPartition = PARTITION, count: int = 20) -> None:
    log = world.log(key)
    for number in range(count):
        produce(log, b"%d" % number, timestamp=world.wall_ms)


def names(world: LogWorld, path: str = "/logs") -> list[str]:
    return sorted(world.memory.snapshot(path))


@behaviour("L15", "L23")
def test_a_log_is_opened_with_the_high_watermark_of_the_checkpoint() -> None:
    world = LogWorld()
    world.start()
    fill(world)
    world.log().high_watermark = 13
    world.advance(5000)
    data = world.memory.read_file("/logs/replication-offset-checkpoint")
    assert decode_offset_checkpoint(data) == {PARTITION: 13}
    world.memory.kill_process()
    world.start()
    assert world.log().high_watermark == 13
    assert world.log().log_end_offset == 20


def test_a_high_watermark_above_what_is_left_is_taken_down() -> None:
    world = LogWorld()
    world.start()
    fill(world)
    world.advance(5000)
    world.memory.cut_power()
    world.start()
    assert world.log().log_end_offset == 0
    assert world.log().high_watermark == 0


def test_after_a_clean_stop_nothing_is_read_but_the_end() -> None:
    world = LogWorld(topic=TopicConfig(segment_bytes=100_000))
    world.start()
    log = world.log()
    value = b"x" * 900

    def batch(number: int) -> bytes:
        return batch_of(
            value,
            producer_id=1,
            producer_epoch=0,
            base_sequence=number,
            timestamp=world.wall_ms,
        )

    for number in range(1000):
        append(log, batch(number))
        if number % 50 == 0:
            log.write_out()
    log.write_out()
    size = log.size_bytes
    world.stop()
    before = world.memory.bytes_read
    world.start()
    assert not world.recovered
    assert world.log().log_end_offset == 1000
    assert size > 900_000
    assert world.memory.bytes_read - before < 30_000
    assert append(world.log(), batch(999)).is_duplicate


def test_after_an_unclean_stop_only_what_was_not_flushed_is_read() -> None:
    world = LogWorld(topic=TopicConfig(segment_bytes=10_000))
    world.start()
    log = world.log()
    for _ in range(100):
        produce(log, b"x" * 900, timestamp=world.wall_ms)
    world.advance(61_000)
    flushed = log.recovery_point
    assert flushed == log.active_segment.base_offset
    world.memory.kill_process()
    world.start()
    assert [one.base_offset for one in world.recovered] == [flushed]
    assert world.recovered[0].segment_count == 1
    assert len(read_all(world.log())) == 100
    assert world.log().recovery_point == flushed


def test_progress_of_recovery_is_told_segment_by_segment() -> None:
    world = LogWorld(topic=SMALL)
    world.start()
    fill(world)
    count = len(world.log().segments)
    world.memory.kill_process()
    world.start()
    assert [one.segment_number for one in world.recovered] == list(range(1, count + 1))
    assert {one.segment_count for one in world.recovered} == {count}
    assert not any(one.complaint for one in world.recovered)


@pytest.mark.parametrize("at", [0.0, 0.3, 0.6, 0.99])
def test_recovery_cuts_at_the_first_bad_batch(at: float) -> None:
    world = LogWorld(topic=SMALL)
    world.start()
    fill(world)
    log = world.log()
    whole = read_all(log)
    segment = log.segments[log.segment_number(int(at * 20))]
    place = segment.find(int(at * 20))
    assert place is not None
    last = place.position + place.header.size_bytes - 1
    file = world.memory.open(segment.path(".log"))
    byte = world.memory.read(file, last, 1)[0]
    world.memory.write_at(file, last, bytes([byte ^ 0x55]))
    world.memory.kill_process()
    world.start()
    left = read_all(world.log())
    assert left == whole[: int(at * 20)]
    assert world.recovered[-1].complaint
    assert world.recovered[-1].base_offset <= len(left)
    assert produce(world.log(), b"new").base_offset == len(left)
    world.stop()
    world.start()
    assert read_all(world.log())[:-1] == left


@pytest.mark.parametrize("suffix", [".index", ".timeindex"])
def test_a_missing_or_corrupt_index_is_rebuilt(suffix: str) -> None:
    world = LogWorld(topic=SMALL)
    world.start()
    fill(world)
    world.stop()
    path = f"/logs/topic-0/00000000000000000000{suffix}"
    good = world.memory.read_file(path)
    assert good
    world.memory.remove_file(path)
    world.start()
    assert len(world.recovered) == 1
    world.stop()
    assert world.memory.read_file(path) == good
    world.memory.write_file(path, good + b"torn")
    world.start()
    assert len(read_all(world.log())) == 20
    world.stop()
    assert world.memory.read_file(path) == good


def test_logs_go_where_the_fewest_are() -> None:
    world = LogWorld(log_dirs=("/a", "/b", "/c"))
    world.start()
    found = [world.log(TopicPartition("t", number)).log_directory for number in range(7)]
    assert found == ["/a", "/b", "/c", "/a", "/b", "/c", "/a"]
    world.retire(TopicPartition("t", 1), TopicPartition("t", 4))
    assert world.log(TopicPartition("t", 8)).log_directory == "/b"


@behaviour("S7")
def test_a_retired_log_is_renamed_and_removed_after_the_delay() -> None:
    world = LogWorld()
    world.start()
    fill(world)
    fill(world, OTHER)
    world.settle()
    assert world.retire(PARTITION) == {}
    assert world.manager.log(PARTITION) is None
    renamed = [name for name in world.memory.list_directory("/logs") if "topic-0." in name]
    assert len(renamed) == 1
    assert renamed[0].endswith("-delete/")
    for name in ("recovery-point-offset-checkpoint", "replication-offset-checkpoint"):
        assert PARTITION not in decode_offset_checkpoint(world.memory.read_file(f"/logs/{name}"))
    world.advance(59_999)
    assert world.memory.exists(f"/logs/{renamed[0]}")
    world.advance(1)
    assert not world.memory.exists(f"/logs/{renamed[0]}")
    assert len(read_all(world.log(OTHER))) == 20


def test_a_log_of_the_same_name_begins_anew() -> None:
    world = LogWorld()
    world.start()
    fill(world)
    world.retire(PARTITION)
    assert world.log().log_end_offset == 0
    fill(world, count=3)
    world.memory.kill_process()
    world.start()
    assert [offset for offset, _ in read_all(world.log())] == [0, 1, 2]


def test_a_flush_under_way_does_not_write_into_the_next_log_of_that_name() -> None:
    world = LogWorld(topic=SMALL)
    world.start()
    fill(world)
    world.manager.tick(world.now_ms, world.wall_ms)
    assert world.memory.jobs
    world.retire(PARTITION)
    world.log()
    world.settle()
    assert not world.lost
    assert not [name for name in names(world, "/logs/topic-0") if name.endswith(".snapshot")]


@behaviour("S5")
def test_retiring_what_is_not_there_does_nothing() -> None:
    world = LogWorld()
    world.start()
    assert world.retire(PARTITION) == {}


def test_a_stray_is_kept_aside() -> None:
    world = LogWorld()
    world.start()
    fill(world)
    world.retire(PARTITION, is_stray=True)
    world.advance(1_000_000)
    kept = [name for name in world.memory.list_directory("/logs") if name.endswith("-stray/")]
    assert len(kept) == 1
    world.stop()
    world.start()
    assert world.manager.log(PARTITION) is None
    assert kept[0] in world.memory.list_directory("/logs")


def test_a_topic_id_is_kept_in_the_logs_directory() -> None:
    world = LogWorld()
    world.start()
    log = world.manager.get_or_create(PARTITION, NO_TOPIC_ID, True, world.wall_ms)
    assert log.topic_id == NO_TOPIC_ID
    world.settle()
    assert not world.memory.exists("/logs/topic-0/partition.metadata")
    assert world.log().topic_id == TOPIC_ID
    world.settle()
    world.memory.kill_process()
    world.start()
    log = world.manager.log(PARTITION)
    assert log is not None
    assert log.topic_id == TOPIC_ID


def test_files_of_a_cut_go_after_the_topics_delay() -> None:
    world = LogWorld(topic=TopicConfig(segment_bytes=300, file_delete_delay_ms=7000))
    world.start()
    fill(world)
    world.log().truncate_to(3, world.wall_ms)
    assert [name for name in names(world) if name.endswith(".deleted")]
    world.advance(6999)
    assert [name for name in names(world) if name.endswith(".deleted")]
    world.advance(1)
    assert not [name for name in names(world) if name.endswith(".deleted")]


def test_flush_ms_and_flush_messages() -> None:
    broker = BrokerConfig(log_flush_scheduler_interval_ms=1000)
    world = LogWorld(topic=TopicConfig(flush_ms=5000), broker=broker)
    world.start()
    fill(world, count=3)
    world.advance(29_000)
    assert world.log().recovery_point == 0
    world.advance(2000)
    assert world.log().recovery_point == 3
    world = LogWorld(topic=TopicConfig(flush_messages=4))
    world.start()
    log = world.log()
    for expected in (0, 0, 0, 4, 4):
        produce(log, b"x")
        assert log.recovery_point == expected


def test_idle_producers_expire() -> None:
    broker = BrokerConfig(producer_id_expiration_ms=1_000_000)
    world = LogWorld(broker=broker)
    world.start()
    batch = batch_of(
        b"x", producer_id=1, producer_epoch=0, base_sequence=0, timestamp=world.wall_ms
    )
    append(world.log(), batch)
    world.advance(900_000)
    assert len(world.log().producers) == 1
    world.advance(600_000)
    assert len(world.log().producers) == 0


# Directories that fail


@behaviour("N8", "N10")
def test_a_failing_directory_takes_its_logs_offline_and_the_others_stay() -> None:
    world = LogWorld(log_dirs=("/a", "/b"))
    world.start()
    first, second = world.log(PARTITION), world.log(OTHER)
    assert (first.log_directory, second.log_directory) == ("/a", "/b")
    world.settle()
    append(first, batch_of(b"x"))
    world.memory.plan(world.memory.operations, Fault.FAIL)
    with pytest.raises(DiskLost):
        first.write_out()
    world.settle()
    assert [(one.path, one.topic_partitions, one.is_last) for one in world.lost] == [
        ("/a", (PARTITION,), False)
    ]
    assert world.manager.log(PARTITION) is None
    assert produce(second, b"y").base_offset == 0
    # A replica that is not new may be in the directory that is offline.
    with pytest.raises(DiskLost):
        world.manager.get_or_create(PARTITION, TOPIC_ID, False, world.wall_ms)
    assert PARTITION in world.retire(PARTITION)
    made = world.manager.get_or_create(PARTITION, TOPIC_ID, True, world.wall_ms)
    assert made.log_directory == "/b"
    world.stop()
    assert not world.memory.exists("/a/.kafka_cleanshutdown")
    assert world.memory.exists("/b/.kafka_cleanshutdown")


def test_a_failing_sync_is_never_tried_again() -> None:
    world = LogWorld(topic=SMALL)
    world.start()
    fill(world)
    trace = world.memory.trace
    world.manager.flush(world.log())
    for operation in range(world.memory.operations, world.memory.operations + 100):
        world.memory.plan(operation, Fault.FAIL)
        world.settle()
        if world.lost:
            break
        world.memory.plan(-1, Fault.FAIL)
        fill(world, count=1)
        world.manager.flush(world.log())
    assert world.lost
    syncs = len([line for line in trace if line.startswith("sync ")])
    world.advance(100_000)
    assert len([line for line in trace if line.startswith("sync ")]) == syncs


def test_without_any_directory_the_broker_is_told_that_it_was_the_last() -> None:
    world = LogWorld()
    world.start()
    log = world.log()
    world.settle()
    append(log, batch_of(b"x"))
    world.memory.plan(world.memory.operations, Fault.FAIL)
    with pytest.raises(DiskLost):
        log.write_out()
    world.settle()
    assert world.lost[0].is_last
    with pytest.raises(DiskLost):
        world.log()


def test_a_corrupt_epoch_file_takes_its_directory_offline() -> None:
    world = LogWorld(log_dirs=("/a", "/b"))
    world.start()
    fill(world, PARTITION)
    fill(world, OTHER)
    world.stop()
    world.memory.place("/a/topic-0/leader-epoch-checkpoint", b"0\n1\nrubbish\n")
    world.start()
    world.settle()
    assert [one.path for one in world.lost] == ["/a"]
    assert world.manager.log(PARTITION) is None
    assert len(read_all(world.log(OTHER))) == 20


def test_lost_recovery_points_cost_time_and_no_records() -> None:
    world = LogWorld(topic=SMALL)
    world.start()
    fill(world)
    world.advance(61_000)
    world.memory.kill_process()
    world.memory.place("/logs/recovery-point-offset-checkpoint", b"0\n7\nrubbish\n")
    world.start()
    assert len(world.complaints) == 1
    assert "recovery-point" in world.complaints[0]
    assert len(world.recovered) == len(world.log().segments)
    assert len(read_all(world.log())) == 20


def test_one_log_in_two_directories_is_refused() -> None:
    world = LogWorld(log_dirs=("/a", "/b"))
    world.start()
    fill(world)
    world.stop()
    for name, data in world.memory.snapshot("/a/topic-0").items():
        world.memory.place(f"/b/topic-0/{name}", data)
    world.start()
    assert isinstance(world.refused, LogDirectoryRefused)
    assert world.opened == 1


# Starting and stopping


def test_a_start_that_is_interrupted_leaves_no_mark_of_a_clean_stop() -> None:
    world = LogWorld()
    world.start()
    fill(world)
    world.stop()
    assert world.memory.exists("/logs/.kafka_cleanshutdown")
    manager = world.manager = LogManager(
        world.disk, world.broker, lambda topic: world.topic, world, world.random
    )
    manager.directories.inspect()
    manager.open(CLUSTER_ID, 1, 0, world.wall_ms)
    world.memory.cut_power()
    assert not world.memory.exists("/logs/.kafka_cleanshutdown")
    world.start()
    assert len(world.recovered) == 1
    assert len(read_all(world.log())) == 20


def test_a_stop_while_loading_keeps_what_the_clean_stop_before_told() -> None:
    world = LogWorld()
    world.start()
    fill(world)
    world.stop()
    before = world.memory.snapshot("/logs")
    manager = LogManager(world.disk, world.broker, lambda topic: world.topic, world, world.random)
    manager.directories.inspect()
    manager.open(CLUSTER_ID, 1, 0, world.wall_ms)
    manager.close(0, -1)
    assert world.memory.snapshot("/logs") == before


def test_closing_gives_every_file_back() -> None:
    world = LogWorld(topic=SMALL)
    world.start()
    fill(world)
    read_all(world.log())
    assert world.memory.open_count > 0
    world.stop()
    assert world.memory.open_count == 0


def test_many_logs_need_no_more_open_files_than_the_budget() -> None:
    world = LogWorld(topic=SMALL)
    world.start()
    for number in range(40):
        fill(world, TopicPartition("t", number), count=12)
    for number in range(40):
        assert len(read_all(world.log(TopicPartition("t", number)))) == 12
    assert world.memory.open_count <= 100 + 1
    world.stop()
    world.start()
    assert world.memory.open_count <= 100 + 1


def follow(world: LogWorld, *offsets: int) -> list[int]:
    """Append single records at these offsets, as a follower of a compacted log gets them."""
    log = world.log()
    for offset in offsets:
        batch = batch_of(b"%d" % offset * 60, base_offset=offset, leader_epoch=0)
        log.append_as_follower(batch, 0, len(batch), world.wall_ms)
        log.write_out()
    return [segment.base_offset for segment in log.segments]


COMPACTED_OFFSETS = (0, 1, 5, 6, 20, 21, 22, 40, 41, 77)


def test_gaps_above_a_known_recovery_point_are_kept() -> None:
    world = LogWorld(topic=SMALL)
    world.start()
    bases = follow(world, *COMPACTED_OFFSETS)
    assert {5, 20, 40} & set(bases), "no gap before a segment: the test shows nothing"
    world.memory.place("/logs/recovery-point-offset-checkpoint", b"0\n1\ntopic 0 1\n")
    world.memory.kill_process()
    world.start()
    assert [offset for offset, _ in read_all(world.log())] == list(COMPACTED_OFFSETS)
    assert world.log().log_end_offset == 78
    assert world.recovered
    assert not any(one.complaint for one in world.recovered)


def test_what_follows_a_torn_segment_goes_with_its_tail() -> None:
    world = LogWorld(topic=SMALL)
    world.start()
    follow(world, *COMPACTED_OFFSETS)
    segment = world.log().segments[1]
    base, next_base = segment.base_offset, world.log().segments[2].base_offset
    path, size_bytes = segment.path(".log"), segment.size_bytes
    world.memory.kill_process()
    world.memory.truncate(world.memory.open(path), size_bytes - 1)
    world.start()
    found = [offset for offset, _ in read_all(world.log())]
    kept = [offset for offset in COMPACTED_OFFSETS if offset < next_base]
    assert found == kept[:-1]
    assert base < next_base <= COMPACTED_OFFSETS[-1]
    assert "half a batch" in world.recovered[-1].complaint


def test_gaps_that_a_cleaner_left_are_kept_when_nothing_tells_what_is_durable() -> None:
    world = LogWorld(topic=SMALL)
    world.start()
    fill(world)
    log = world.log()
    segment = log.segments[1]
    place = segment.find(log.segments[2].base_offset - 1)
    assert place is not None
    gone, path, kept = place.header.record_count, segment.path(".log"), place.position
    whole = read_all(log)
    world.stop()
    world.memory.truncate(world.memory.open(path), kept)
    world.memory.place("/logs/recovery-point-offset-checkpoint", b"0\n7\nrubbish\n")
    world.memory.remove_file("/logs/.kafka_cleanshutdown")
    world.start()
    assert len(read_all(world.log())) == len(whole) - gone
    assert not any(one.complaint for one in world.recovered)


def test_a_file_that_cannot_be_opened_at_the_start_takes_its_directory_offline(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = LogWorld(log_dirs=("/a", "/b"))
    world.start()
    fill(world)
    fill(world, OTHER)
    world.stop()

    def refuse(loaded: LoadedLog, *others: object) -> PartitionLog:
        if loaded.request.directory.startswith("/a/"):
            raise DiskLost(loaded.request.directory, "too many open files")
        return take_over(loaded, *others)  # type: ignore[arg-type]

    monkeypatch.setattr("barnabas.storage.log_manager.take_over", refuse)
    world.start()
    world.advance(1)
    assert [one.path for one in world.lost] == ["/a"]
    assert world.manager.is_open
    assert len(world.manager.directories.online()) == 1
