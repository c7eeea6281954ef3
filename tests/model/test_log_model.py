"""A log against a list of records: whatever is done to it, it holds what the list holds."""

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from barnabas.model.config import TopicConfig
from barnabas.storage.offset_queries import offset_for_time
from barnabas.storage.partition_log import PartitionLog
from barnabas.storage.retention import apply_retention
from tests.worlds.log_world import LogWorld, append, batch_of, bytes_of, read_all, records_in

TOPIC = TopicConfig(segment_bytes=900, index_interval_bytes=120, retention_bytes=3000)


class LogMachine(RuleBasedStateMachine):
    """Records by offset, the epochs they were written in, and where the log begins."""

    def __init__(self) -> None:
        super().__init__()
        self.world = LogWorld(topic=TOPIC)
        self.world.start()
        self.records: dict[int, tuple[bytes, int, int]] = {}
        """Value, timestamp and epoch by offset."""
        self.batches: list[tuple[int, int]] = []
        """First and last offset of each batch that is whole in the log."""
        self.start = 0
        self.epochs_from = 0
        """Epochs of records below may be forgotten."""
        self.end = 0
        self.epoch = 0
        self.serial = 0

    @property
    def log(self) -> PartitionLog:
        return self.world.log()

    @rule(sizes=st.lists(st.integers(0, 120), min_size=1, max_size=5), timestamp=st.integers(0, 9))
    def append(self, sizes: list[int], timestamp: int) -> None:
        values: list[bytes] = []
        for size in sizes:
            self.serial += 1
            values.append(b"%d:" % self.serial + b"x" * size)
        result = append(self.log, batch_of(*values, timestamp=timestamp), leader_epoch=self.epoch)
        assert result.base_offset == self.end
        for number, value in enumerate(values):
            self.records[self.end + number] = (value, timestamp + number, self.epoch)
        self.batches.append((self.end, self.end + len(values) - 1))
        self.end += len(values)

    @rule()
    def write_out(self) -> None:
        self.log.write_out()

    @rule()
    def replicate(self) -> None:
        self.log.set_high_watermark(self.end)

    @rule(back=st.integers(0, 12))
    def truncate(self, back: int) -> None:
        """Leaders agree on batches: a cut never falls inside one."""
        offset = max(self.end - back, self.log.segments[0].base_offset)
        inside = [first for first, last in self.batches if first < offset <= last]
        offset = inside[0] if inside else offset
        self.log.truncate_to(offset, 0)
        self._forget_from(offset)
        self.epoch += 1

    def _forget_from(self, offset: int) -> None:
        self.epochs_from = min(self.epochs_from, offset)
        self.batches = [one for one in self.batches if one[1] < offset]
        kept = self.batches[-1][1] + 1 if self.batches else 0
        self.records = {one: told for one, told in self.records.items() if one < kept}
        self.end = offset
        self.start = min(self.start, offset)

    @rule(ahead=st.integers(1, 30))
    def restart(self, ahead: int) -> None:
        offset = self.end + ahead
        self.log.truncate_fully_and_start_at(offset, 0)
        self.records.clear()
        self.batches.clear()
        self.start = self.end = offset
        self.epochs_from = 0
        self.epoch += 1

    @rule(keep=st.integers(0, 20))
    def delete_records(self, keep: int) -> None:
        offset = self.end - keep
        if offset <= self.log.high_watermark:
            self.log.delete_records_before(offset)
            self.start = max(self.start, offset)

    @rule()
    def retain(self) -> None:
        before = self.log.segments[0].base_offset
        apply_retention(self.log, 0)
        after = self.log.segments[0].base_offset
        if after != before:
            self.start = max(self.start, after)

    @rule()
    def flush(self) -> None:
        self.world.manager.flush(self.log)
        self.world.settle()
        assert self.log.recovery_point == self.end

    @rule()
    def restart_cleanly(self) -> None:
        watermark = self.log.high_watermark
        self.world.stop()
        self.world.start()
        assert not self.world.recovered
        assert self.log.high_watermark == watermark
        self.epoch += 1

    @rule()
    def kill_and_recover(self) -> None:
        self.log.write_out()
        start_is_lost = self.start > self.log.segments[0].base_offset
        self.world.memory.kill_process()
        self.world.start()
        if start_is_lost:
            # Deleted records whose deletion was not checkpointed are there again; their epochs
            # may be gone for good, as with Kafka.
            self.epochs_from = max(self.epochs_from, self.start)
            self.start = self.log.log_start_offset
        self.epoch += 1

    @precondition(lambda self: self.end > self.start)
    @rule(data=st.data(), max_bytes=st.integers(0, 1000))
    def read(self, data: st.DataObject, max_bytes: int) -> None:
        offset = data.draw(st.integers(self.start, self.end - 1))
        upper = data.draw(st.integers(offset, self.end))
        read = bytes_of(self.log.read(offset, max_bytes, upper, True))
        found = records_in(read)
        for one in found:
            assert self._told(one.offset) in (one.value, None)
            assert one.offset < upper
        expected = [one for one in self.batches if one[1] >= offset]
        if expected and expected[0][1] < upper:
            assert found
            assert (found[0].offset, found[-1].offset >= expected[0][1]) == (expected[0][0], True)
        else:
            assert read == b""

    def _told(self, offset: int) -> bytes | None:
        told = self.records.get(offset)
        return None if told is None else told[0]

    @rule(timestamp=st.integers(0, 14))
    def find_by_time(self, timestamp: int) -> None:
        found = offset_for_time(self.log, timestamp)
        expected = [
            offset
            for offset, (_, at, _) in sorted(self.records.items())
            if at >= timestamp and offset >= self.start
        ]
        if found is not None:
            assert expected[0] == found.offset
            assert self.records[found.offset][1:] == (found.timestamp, found.leader_epoch)
        elif expected:
            assert self.start > self.log.segments[0].base_offset

    @invariant()
    def ends_are_those_of_the_list(self) -> None:
        log = self.log
        assert log.log_end_offset == self.end
        assert log.log_start_offset == self.start
        assert self.start <= log.high_watermark <= self.end
        assert log.recovery_point <= self.end

    @invariant()
    def epochs_are_those_of_the_list(self) -> None:
        for offset in list(self.records)[:: 1 + len(self.records) // 5]:
            if offset >= max(self.start, self.epochs_from):
                assert self.log.leader_epochs.epoch_at(offset) == self.records[offset][2]

    def teardown(self) -> None:
        whole = [(offset, told[0]) for offset, told in sorted(self.records.items())]
        found = read_all(self.log)
        assert [one for one in found if one[0] >= self.start] == [
            one for one in whole if one[0] >= self.start
        ]
        self.world.stop()
        self.world.start()
        assert read_all(self.log) == found


TestLog = LogMachine.TestCase
TestLog.settings = settings(stateful_step_count=30)
