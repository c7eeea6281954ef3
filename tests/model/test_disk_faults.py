"""A disk that fails at each of its operations in turn: what was durable is there, nothing else.

A story appends, rolls, flushes, truncates, writes checkpoints, drops what retention does not
keep, starts anew as after a kill and recovers. One story runs once for every operation that it
asks of the disk and every way in which that one can end; stories drawn at random meet one fault
each, and often a second one while they recover. Then the machine starts again, and the logs are
compared with what had been written and what had been durable at that moment.
"""

import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from barnabas.formats.batches.reader import batches_in
from barnabas.model.config import BrokerConfig, TopicConfig
from barnabas.model.errors import DiskError
from barnabas.model.ids import TopicPartition
from barnabas.storage.partition_log import PartitionLog
from barnabas.storage.producer_loading import replay_producers
from barnabas.storage.producer_state import ProducerState
from tests.behaviours import behaviour
from tests.effort import some_of
from tests.worlds.log_world import LogWorld, append, batch_of, read_all
from tests.worlds.memory_disk import Fault, MemoryDisk

FIRST = TopicPartition("first", 0)
SECOND = TopicPartition("second", 0)
KEYS = (FIRST, SECOND)
DELETED = TopicConfig(
    segment_bytes=700,
    index_interval_bytes=100,
    retention_bytes=1200,
    file_delete_delay_ms=1000,
)
BROKER = BrokerConfig(
    log_retention_check_interval_ms=100_000,
    replica_high_watermark_checkpoint_interval_ms=50_000,
)
COMPACTED = TopicConfig(segment_bytes=700, index_interval_bytes=100, cleanup_policy=("compact",))


class History:
    """What a partition has been told to hold, and what of it must survive anything."""

    def __init__(self) -> None:
        self.values: dict[int, bytes] = {}
        """By offset: the record there now."""
        self.ever: set[tuple[int, bytes]] = set()
        """Every record that was handed to the log at an offset, ever."""
        self.durable_end = 0
        """Below this offset every record was synced."""
        self.cut_away: set[tuple[int, bytes]] = set()
        """Records that were durable, with all before them, when a cut took them."""
        self.start = 0
        """Where the log may begin at the latest."""
        self.highest_start = 0
        """The same, counting beginnings that a cut has taken back."""

    def note_truncated(self, offset: int) -> None:
        """From the moment a cut is asked for, what is behind it need not be there."""
        for gone in [one for one in self.values if one >= offset]:
            value = self.values.pop(gone)
            if gone < self.durable_end:
                self.cut_away.add((gone, value))
        self.durable_end = min(self.durable_end, offset)

    def allow_start(self, offset: int) -> None:
        self.start = offset
        self.highest_start = max(self.highest_start, offset)

    def check_holes(self, found: list[tuple[int, bytes | None]], log: PartitionLog) -> None:
        """The end of a segment may be lost with the power and the next one not: nothing tells
        that from a gap in a compacted log. Nothing else makes a hole, least of all in what was
        synced; a cut takes what is behind it away before it takes what is at it."""
        bases = {segment.base_offset for segment in log.segments}
        for (before, _), (after, value) in pairwise(found):
            assert after > before
            if after != before + 1:
                assert before + 1 >= self.durable_end, f"a hole at {before + 1}"
                assert after in bases, f"a hole inside a segment at {before + 1}"
                assert (after, value) not in self.cut_away, f"half a cut left {after} behind a hole"

    def check(self, log: PartitionLog | None) -> None:
        found = [] if log is None else read_all(log)
        if log is not None:
            self.check_holes(found, log)
        for offset, value in found:
            assert value is not None
            assert (offset, value) in self.ever, f"nobody wrote {value!r} at {offset}"
        by_offset = dict(found)
        for offset in range(self.start, self.durable_end):
            assert by_offset.get(offset) == self.values[offset], f"offset {offset} was durable"
        if log is not None:
            assert log.log_start_offset <= self.highest_start
            assert log.high_watermark <= log.log_end_offset
            check_epochs(log)
            check_producers(log)


def check_epochs(log: PartitionLog) -> None:
    """They never decrease, and the epochs that are told are those of the records.

    Epochs of the first records may be unknown: they were cut with a start of the log that had not
    become durable.
    """
    last_epoch = -1
    known = log.leader_epochs.entries()
    known_from = known[0].start_offset if known else log.log_end_offset
    for segment in log.segments:
        data = log.files.disk.read(segment.file(), 0, segment.size_bytes)
        for _, header in batches_in(data, 0, len(data)):
            epoch = header.partition_leader_epoch
            assert epoch >= last_epoch, f"epoch {epoch} behind {last_epoch}"
            last_epoch = epoch
            if header.base_offset >= known_from:
                assert log.leader_epochs.epoch_at(header.base_offset) == epoch


def check_producers(log: PartitionLog) -> None:
    """What is known of producers is what the records tell."""
    told = ProducerState()
    replay_producers(log.files.disk, log.segments, told, 0, log.log_end_offset)
    expected = {one.producer_id: one for one in told.to_snapshot()}
    for known in log.producers.to_snapshot():
        if known.last_offset >= log.segments[0].base_offset:
            assert known == expected.pop(known.producer_id)
    assert not [one for one in expected.values() if one.last_offset >= log.log_start_offset]


class Teller:
    """Tells a story to the logs; every step may raise when the disk refuses."""

    def __init__(self, world: LogWorld) -> None:
        self.world = world
        self.histories = {FIRST: History(), SECOND: History()}
        self.serial = 0
        self.epoch = 0
        self.sequences: dict[tuple[TopicPartition, int], int] = {}

    def _log(self, key: TopicPartition) -> PartitionLog:
        self._check_lost()
        log = self.world.log(key)
        self._check_lost()
        return log

    def _check_lost(self) -> None:
        for directory in self.world.manager.directories.offline():
            assert directory.error is not None
            raise directory.error

    def _note_durable(self) -> None:
        """A recovery point is a promise."""
        for key, history in self.histories.items():
            log = self.world.manager.log(key)
            if log is not None:
                history.durable_end = max(history.durable_end, log.recovery_point)

    # Steps

    def start(self) -> None:
        self.world.start()
        self._check_lost()
        self._note_durable()

    def write(self, key: TopicPartition, count: int) -> None:
        log, history = self._log(key), self.histories[key]
        for number in range(count):
            self.serial += 1
            value = b"%s-%d" % (key.topic.encode(), self.serial) * (1 + self.serial % 3)
            offset = log.log_end_offset
            # It may reach the disk whatever the log says of it.
            history.ever.add((offset, value))
            sequence = self.sequences.get((key, self.epoch), 0)
            batch = batch_of(
                value,
                timestamp=self.world.wall_ms,
                producer_id=5,
                producer_epoch=self.epoch,
                base_sequence=sequence,
            )
            result = append(log, batch, leader_epoch=self.epoch)
            assert (result.error, result.base_offset) == (0, offset)
            self.sequences[key, self.epoch] = sequence + 1
            history.values[offset] = value
            if number % 3 == 2:
                log.write_out()
        log.write_out()
        log.set_high_watermark(log.log_end_offset)
        self._note_durable()

    def settle(self) -> None:
        """Let the background finish what it can do now."""
        self.world.settle()
        self._check_lost()
        self._note_durable()

    def flush(self, key: TopicPartition) -> None:
        log = self._log(key)
        self.world.manager.flush(log)
        self.settle()
        assert log.recovery_point == log.log_end_offset

    def begin_flush(self, key: TopicPartition) -> None:
        """Hand a flush to the disk, which does not get to it yet."""
        log = self._log(key)
        self.world.manager.flush(log)
        self.world.manager.tick(self.world.now_ms, self.world.wall_ms)

    def wait(self) -> None:
        """Time for every checkpoint, and for retention."""
        for key, history in self.histories.items():
            history.allow_start(max(history.start, self._log(key).segments[-1].base_offset))
        self.world.advance(200_000)
        self._check_lost()
        for key, history in self.histories.items():
            history.allow_start(self._log(key).log_start_offset)
        self._note_durable()

    def truncate(self, key: TopicPartition, back: int) -> None:
        """A new leader epoch, in which the end of the log was never written."""
        log, history = self._log(key), self.histories[key]
        offset = max(log.log_end_offset - back, 0)
        history.note_truncated(offset)
        history.start = min(history.start, offset)
        log.truncate_to(offset, self.world.wall_ms)
        assert log.log_end_offset == offset
        self.epoch += 1

    def restart_log(self, key: TopicPartition) -> None:
        log, history = self._log(key), self.histories[key]
        offset = log.log_end_offset + 10
        history.note_truncated(0)
        history.allow_start(offset)
        history.durable_end = offset
        log.truncate_fully_and_start_at(offset, self.world.wall_ms)
        self.epoch += 1

    def delete_before(self, key: TopicPartition, back: int) -> None:
        log, history = self._log(key), self.histories[key]
        log.set_high_watermark(log.log_end_offset)
        offset = max(log.log_end_offset - back, log.log_start_offset)
        history.allow_start(max(history.start, offset))
        assert log.delete_records_before(offset) == 0

    def kill(self) -> None:
        """The page cache stays; nobody is told to write anything."""
        self.world.memory.kill_process()
        self.start()
        self.epoch += 1

    def stop(self) -> None:
        self.world.stop()
        self._check_lost()
        for history in self.histories.values():
            if history.values:
                history.durable_end = max(history.durable_end, max(history.values) + 1)
        self.start()
        self.epoch += 1


Step = Callable[[Teller], None]

STORY: tuple[Step, ...] = (
    Teller.start,
    lambda it: it.write(FIRST, 10),
    lambda it: it.write(SECOND, 5),
    Teller.settle,
    lambda it: it.truncate(FIRST, 6),
    lambda it: it.write(FIRST, 22),
    lambda it: it.flush(FIRST),
    Teller.wait,
    Teller.kill,
    lambda it: it.begin_flush(FIRST),
    lambda it: it.truncate(FIRST, 19),
    lambda it: it.write(FIRST, 26),
    Teller.settle,
    lambda it: it.delete_before(FIRST, 3),
    lambda it: it.restart_log(SECOND),
    lambda it: it.write(SECOND, 6),
    Teller.wait,
    Teller.stop,
    lambda it: it.write(SECOND, 8),
    Teller.settle,
)


def draw_story(draw: random.Random) -> list[Step]:
    """A dozen steps; most of them write, so that there is something to lose."""
    story: list[Step] = [Teller.start]
    for _ in range(draw.randint(4, 14)):
        key = draw.choice(KEYS)
        back = draw.randint(0, 25)
        count = draw.randint(1, 25)
        story.append(
            draw.choice(
                [
                    lambda it, key=key, count=count: it.write(key, count),
                    lambda it, key=key, count=count: it.write(key, count),
                    lambda it, key=key, count=count: it.write(key, count),
                    lambda it, key=key, back=back: it.truncate(key, back),
                    lambda it, key=key, back=back: it.delete_before(key, back),
                    lambda it, key=key: it.restart_log(key),
                    lambda it, key=key: it.flush(key),
                    lambda it, key=key: it.begin_flush(key),
                    Teller.settle,
                    Teller.wait,
                    Teller.kill,
                    Teller.stop,
                ]
            )
        )
    return story


def tell(
    story: tuple[Step, ...] | list[Step],
    fault: Fault | None,
    operation: int,
    topic: TopicConfig = DELETED,
) -> Teller:
    """The story until the disk refuses."""
    disk = MemoryDisk()
    if fault is not None:
        disk.plan(operation, fault)
    teller = Teller(LogWorld(disk, disk.run_jobs, topic=topic, broker=BROKER))
    try:
        for step in story:
            step(teller)
    except DiskError:
        assert fault is not None
    return teller


def check_after(
    teller: Teller,
    come_back: Callable[[MemoryDisk], None],
    second: int | None = None,
    *,
    is_reopened: bool = True,
) -> None:
    """Start again, perhaps with a second fault on the way; compare; stop; start again."""
    disk = teller.world.memory
    come_back(disk)
    if second is not None:
        disk.plan(disk.operations + second, Fault.POWER_CUT)
        with suppress(DiskError):
            LogWorld(disk, disk.run_jobs, topic=teller.world.topic, broker=BROKER).start()
        come_back(disk)
    world = LogWorld(disk, disk.run_jobs, topic=teller.world.topic, broker=BROKER)
    world.start()
    assert world.refused is None
    assert not world.lost
    for key, history in teller.histories.items():
        history.check(world.manager.log(key))
    if not is_reopened:
        return
    ends = {log.topic_partition: read_all(log) for log in world.manager.logs()}
    world.stop()
    # What recovery left is sound: a clean start finds the same and has nothing to recover.
    world.start()
    assert not world.recovered
    assert {log.topic_partition: read_all(log) for log in world.manager.logs()} == ends
    for log in world.manager.logs():
        check_producers(log)


@contextmanager
def told_with(fault: Fault, operation: int, teller: Teller) -> Iterator[None]:
    """A failure says at which operation the disk had failed."""
    try:
        yield
    except Exception as error:
        lines = teller.world.memory.trace
        line = lines[operation] if operation < len(lines) else "after the end"
        raise AssertionError(f"{fault.name} at {operation} ({line}): {error!r}") from error


TRACE = tuple(tell(STORY, None, 0).world.memory.trace)
OPERATIONS = len(TRACE)


def test_the_story_alone_reaches_its_end() -> None:
    teller = tell(STORY, None, 0)
    assert OPERATIONS > 300
    assert {"truncate", "rename", "remove", "sync"} <= {
        line.split()[0] for line in teller.world.memory.trace
    }
    check_after(teller, MemoryDisk.kill_process)


@behaviour("F12")
@pytest.mark.parametrize("fault", [Fault.FAIL, Fault.TEAR, Fault.FULL])
def test_an_operation_that_fails_costs_nothing_durable(fault: Fault) -> None:
    """The process ends without the directory; then it is started again."""
    may_meet = [
        operation
        for operation, line in enumerate(TRACE)
        # Only a write can be done by half.
        if fault is Fault.FAIL or line.startswith("write")
    ]
    for operation in some_of(may_meet, 4):
        teller = tell(STORY, fault, operation)
        with told_with(fault, operation, teller):
            check_after(teller, MemoryDisk.kill_process, is_reopened=operation % 5 == 0)


@pytest.mark.parametrize("topic", [DELETED, COMPACTED], ids=["deleted", "compacted"])
def test_power_lost_at_any_operation_takes_only_what_was_not_synced(topic: TopicConfig) -> None:
    for operation in some_of(range(0, OPERATIONS, 3 if topic is COMPACTED else 1), 4):
        teller = tell(STORY, Fault.POWER_CUT, operation, topic)
        with told_with(Fault.POWER_CUT, operation, teller):
            check_after(teller, MemoryDisk.cut_power, is_reopened=operation % 5 == 0)


def test_power_lost_at_any_operation_with_any_part_of_the_rest_kept() -> None:
    for operation in some_of(range(0, OPERATIONS, 2), 3):
        teller = tell(STORY, Fault.POWER_CUT, operation)
        draw = random.Random(operation)
        with told_with(Fault.POWER_CUT, operation, teller):
            check_after(teller, lambda disk, draw=draw: disk.cut_power(draw))


BEFORE_CUT: tuple[Step, ...] = (
    Teller.start,
    lambda it: it.write(FIRST, 34),
    lambda it: it.flush(FIRST),
    Teller.wait,
)
CUT: tuple[Step, ...] = (
    *BEFORE_CUT,
    lambda it: it.truncate(FIRST, 25),
    lambda it: it.write(FIRST, 16),
    Teller.settle,
)
PARTS_KEPT = 12
"""How often the power goes at one operation, each time with another part of the rest kept."""


@pytest.mark.parametrize("story", [CUT, (*CUT[:-2], Teller.settle)], ids=["written on", "alone"])
def test_a_cut_over_segments_takes_the_last_ones_first_whatever_part_of_it_is_kept(
    story: tuple[Step, ...],
) -> None:
    """All of it was durable, and the checkpoints said so. It is cut inside a segment, with more
    than two behind it: their names and the bytes of the one that stays reach the disk in no order
    but the one asked for."""
    before = tell(BEFORE_CUT, None, 0, COMPACTED).world
    assert len(before.log(FIRST).segments) >= 4
    assert before.log(FIRST).recovery_point == 34
    first = before.memory.operations
    for operation in range(first, tell(story, None, 0, COMPACTED).world.memory.operations + 1):
        for part in some_of(range(PARTS_KEPT), 3):
            teller = tell(story, Fault.POWER_CUT, operation, COMPACTED)
            draw = random.Random(operation * PARTS_KEPT + part)
            with told_with(Fault.POWER_CUT, operation, teller):
                check_after(
                    teller, lambda disk, draw=draw: disk.cut_power(draw), is_reopened=part == 0
                )


@settings(max_examples=6 * settings().max_examples)
@given(seed=st.integers(0, 1 << 32))
def test_random_stories_with_faults(seed: int) -> None:
    """Any part of what was not synced may have reached the disk when the power goes."""
    draw = random.Random(seed)
    story = draw_story(draw)
    fault = draw.choice([Fault.POWER_CUT, Fault.POWER_CUT, Fault.POWER_CUT, Fault.TEAR])
    operation = draw.randint(0, 300)
    teller = tell(story, fault, operation)

    def come_back(disk: MemoryDisk) -> None:
        disk.cut_power(draw if draw.random() < 0.7 else None)

    with told_with(fault, operation, teller):
        check_after(teller, come_back, draw.randint(0, 30) if draw.random() < 0.5 else None)
