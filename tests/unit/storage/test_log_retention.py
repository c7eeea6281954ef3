"""What a log need not keep."""

from barnabas.model.config import TopicConfig
from barnabas.storage.partition_log import PartitionLog
from barnabas.storage.retention import apply_retention
from tests.worlds.log_world import LogWorld, batch_of, produce, read_all

RECORD = len(batch_of(b"0"))
NOW_MS = 1_000_000


def log_with(topic: TopicConfig, *timestamps: int) -> PartitionLog:
    """One record per timestamp, three to a segment."""
    world = LogWorld(topic=topic)
    world.start()
    log = world.log()
    for number, timestamp in enumerate(timestamps):
        produce(log, b"%d" % (number % 10), timestamp=timestamp)
    return log


def topic(**settings: object) -> TopicConfig:
    return TopicConfig(segment_bytes=3 * RECORD, **settings)  # type: ignore[arg-type]


def bases(log: PartitionLog) -> list[int]:
    return [one.base_offset for one in log.segments]


def test_by_size_the_oldest_go_while_enough_is_left() -> None:
    log = log_with(topic(retention_bytes=5 * RECORD), *([NOW_MS] * 12))
    assert bases(log) == [0, 3, 6, 9]
    assert apply_retention(log, NOW_MS) == 2
    assert bases(log) == [6, 9]
    assert (log.log_start_offset, log.log_end_offset) == (6, 12)
    assert apply_retention(log, NOW_MS) == 0


def test_by_time_the_youngest_record_of_a_segment_counts() -> None:
    times = [0, 999_000, 0, 0, 0, 1000, NOW_MS, 0, 0]
    log = log_with(topic(retention_ms=500_000), *times)
    assert apply_retention(log, NOW_MS) == 0
    log = log_with(topic(retention_ms=500_000), *reversed(times))
    assert apply_retention(log, NOW_MS) == 0
    log = log_with(topic(retention_ms=500_000), 0, 0, 0, 1, 2, 3, NOW_MS, 0, 0)
    assert apply_retention(log, NOW_MS) == 2
    assert bases(log) == [6]


def test_when_all_is_too_old_an_empty_segment_is_left() -> None:
    log = log_with(topic(retention_ms=1000), 0, 0, 0, 0)
    assert apply_retention(log, NOW_MS) == 2
    assert bases(log) == [4]
    assert (log.log_start_offset, log.log_end_offset) == (4, 4)
    assert apply_retention(log, NOW_MS) == 0
    assert produce(log, b"x").base_offset == 4


def test_nothing_that_is_not_replicated_goes() -> None:
    log = log_with(topic(retention_ms=1000), *([0] * 9))
    log.high_watermark = 5
    assert apply_retention(log, NOW_MS) == 1
    assert bases(log) == [3, 6]
    log.high_watermark = 8
    assert apply_retention(log, NOW_MS) == 1
    assert bases(log) == [6]
    log.high_watermark = 9
    assert apply_retention(log, NOW_MS) == 1


def test_minus_one_means_for_ever() -> None:
    log = log_with(topic(retention_ms=-1, retention_bytes=-1), *([0] * 9))
    assert apply_retention(log, NOW_MS) == 0


def test_what_is_below_the_start_goes_even_from_a_compacted_topic() -> None:
    log = log_with(topic(cleanup_policy=("compact",), retention_ms=1), *([0] * 9))
    log.delete_records_before(7)
    assert apply_retention(log, NOW_MS) == 2
    assert bases(log) == [6]
    assert log.log_start_offset == 7
    assert [offset for offset, _ in read_all(log)] == [7, 8]


def test_a_segment_without_timestamps_is_as_old_as_its_file() -> None:
    world = LogWorld(topic=topic(retention_ms=1000))
    world.start()
    world.memory.now_ms = 5000
    log = world.log()
    for _ in range(6):
        produce(log, b"x", timestamp=-2)
    assert apply_retention(log, 6000) == 0
    assert apply_retention(log, 6001) == 2


def test_the_manager_looks_at_a_bounded_number_of_logs_at_a_time() -> None:
    from barnabas.model.ids import TopicPartition
    from barnabas.storage.log_manager import LOGS_PER_TURN

    world = LogWorld(topic=topic(retention_ms=1000))
    world.start()
    count = LOGS_PER_TURN + 50
    for number in range(count):
        produce(world.log(TopicPartition("t", number)), b"x", timestamp=0)
    world.settle()
    world.now_ms += 30_000
    world.manager.tick(world.now_ms, world.wall_ms)
    ends = [log.log_start_offset for log in world.manager.logs()]
    assert ends.count(1) == LOGS_PER_TURN
    assert world.manager.next_deadline_ms() == world.now_ms
    world.settle()
    assert [log.log_start_offset for log in world.manager.logs()] == [1] * count
