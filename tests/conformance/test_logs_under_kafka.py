"""What we write, under Kafka's own tools: DumpLogSegments, and its log manager."""

import random
import time
from pathlib import Path

import pytest

from barnabas.formats.batches.builder import BatchBuilder
from barnabas.formats.batches.compression import CompressionCodec
from barnabas.formats.batches.control import EndMarker, build_end_marker
from barnabas.formats.logdir.checkpoints import decode_offset_checkpoint
from barnabas.model.config import TopicConfig
from barnabas.model.ids import TopicPartition
from barnabas.node.real_disk import RealDisk
from barnabas.storage.disk import DiskJob
from barnabas.storage.partition_log import PartitionLog
from tests.oracles.log_directories import (
    dump_with_kafka,
    open_with_kafka,
    write_and_halt_with_kafka,
)
from tests.tools import need
from tests.worlds.log_world import (
    CLUSTER_ID,
    LogWorld,
    append,
    batch_of,
    bytes_of,
    produce,
    read_all,
    records_in,
)

SETTINGS = "segment.bytes=4096,index.interval.bytes=300"
TOPIC = TopicConfig(segment_bytes=4096, index_interval_bytes=300)
COMPLAINTS = ("WARN", "ERROR", "FATAL", "Index mismatches", "Mismatches", "Non-", "is corrupt")


class RealWorld(LogWorld):
    """Logs on files; jobs are delivered when they are asked for."""

    def __init__(self, root: Path) -> None:
        self.done: list[DiskJob] = []
        real = RealDisk(self.done.append)
        super().__init__(real, self._deliver, log_dirs=(f"{root}/logs",), topic=TOPIC)
        self.real = real

    def _deliver(self) -> None:
        self.real.finish_jobs()
        while self.done:
            job = self.done.pop(0)
            job.done(job)


def write_much(world: LogWorld) -> None:
    """Every kind of thing that a log can hold, in several logs."""
    draw = random.Random(7)
    world.wall_ms = _now_ms()
    plain = world.log(TopicPartition("plain", 0))
    for number in range(120):
        values = [draw.randbytes(draw.randint(0, 200)) for _ in range(draw.randint(1, 4))]
        produce(plain, *values, timestamp=world.wall_ms + number, leader_epoch=number // 50)
    codecs = world.log(TopicPartition("codecs", 3))
    for codec in CompressionCodec:
        builder = BatchBuilder(codec=codec)
        for number in range(10):
            builder.append(b"key", b"value" * 20, world.wall_ms + number, [("name", b"value")])
        append(codecs, builder.build())
    codecs.write_out()
    _write_transactions(world, world.log(TopicPartition("transactions", 1)))
    world.log(TopicPartition("empty", 0)).assign_leader_epoch(4, 0)
    cut = world.log(TopicPartition("cut", 0))
    for number in range(100):
        produce(
            cut, draw.randbytes(100), timestamp=world.wall_ms + number, leader_epoch=number // 40
        )
    cut.truncate_to(57, world.wall_ms)
    for number in range(10):
        produce(cut, draw.randbytes(100), timestamp=world.wall_ms + number, leader_epoch=5)
    cut.delete_records_before(30)
    world.settle()
    _check_all_open(world)


def _check_all_open(world: LogWorld) -> None:
    assert not world.lost
    assert len(list(world.manager.logs())) == 5


def _write_transactions(world: LogWorld, log: PartitionLog) -> None:
    """Two producers, a commit, an abort and a transaction that stays open."""
    timestamp = world.wall_ms
    for number in range(8):
        batch = batch_of(
            b"idempotent",
            producer_id=7,
            producer_epoch=0,
            base_sequence=number,
            timestamp=timestamp,
        )
        assert append(log, batch).error == 0
    for producer_id, is_commit in ((8, True), (9, False)):
        batch = batch_of(
            b"a", b"b",
            producer_id=producer_id, producer_epoch=1, base_sequence=0,
            is_transactional=True, timestamp=timestamp,
        )  # fmt: skip
        assert append(log, batch).error == 0
        marker = build_end_marker(
            EndMarker(is_commit, 3), producer_id=producer_id, producer_epoch=1, timestamp=timestamp
        )
        assert append(log, marker).error == 0
    batch = batch_of(
        b"open", producer_id=8, producer_epoch=1, base_sequence=2, is_transactional=True,
        timestamp=timestamp,
    )  # fmt: skip
    assert append(log, batch).error == 0
    log.write_out()
    log.set_high_watermark(log.log_end_offset)
    assert log.last_stable_offset == log.log_end_offset - 1


def _now_ms() -> int:
    """Kafka compares with its own clock whether producers have expired."""
    return time.time_ns() // 1_000_000


def files_below(root: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(root)): path.read_bytes()
        for path in sorted(root.rglob("*"))
        if path.is_file() and not path.name.endswith(".deleted")
    }


def complaints_in(lines: list[str]) -> list[str]:
    return [line for line in lines if line.startswith(COMPLAINTS) or "corrupt" in line.lower()]


def test_dump_log_segments_has_nothing_to_complain_about(tmp_path: Path) -> None:
    need("java")
    world = RealWorld(tmp_path)
    world.start()
    write_much(world)
    kinds = (".log", ".index", ".timeindex", ".snapshot", ".txnindex")
    ends = {log.topic_partition: log.log_end_offset for log in world.manager.logs()}
    world.stop()
    files = [str(path) for path in sorted((tmp_path / "logs").rglob("*")) if path.suffix in kinds]
    assert len(files) > 50
    lines = dump_with_kafka(tmp_path, files, "--deep-iteration", "--print-data-log")
    assert not complaints_in(lines)
    assert not [line for line in lines if "isvalid: false" in line]
    records = [line for line in lines if line.startswith("| offset:")]
    dropped = 27  # Deleted segments of "cut" hold no record: 0..26 left with its first segments.
    assert len(records) >= sum(ends.values()) - dropped
    logs = [name for name in files if name.endswith(".log")]
    checked = dump_with_kafka(tmp_path, [*_indexes(files), *logs], "--index-sanity-check")
    assert not complaints_in(checked)
    passed = [line for line in checked if line.endswith(("passed sanity check.", "is empty."))]
    assert len(passed) == len(_indexes(files))


def _indexes(files: list[str]) -> list[str]:
    return [name for name in files if name.endswith("index") and not name.endswith(".txnindex")]


@pytest.mark.parametrize("is_clean", [True, False], ids=["clean", "unclean"])
def test_kafkas_log_manager_opens_and_closes_it_without_a_change(
    tmp_path: Path, is_clean: bool
) -> None:
    """With the mark of a clean stop, and without it and the recovery points: all is read then."""
    need("java")
    world = RealWorld(tmp_path)
    world.start()
    write_much(world)
    expected = {
        str(log.topic_partition): (
            f"start={log.log_start_offset} end={log.log_end_offset}",
            ",".join(f"{one.base_offset}:{one.size_bytes}" for one in log.segments),
            f"producers={len(log.producers)}",
        )
        for log in world.manager.logs()
    }
    world.stop()
    root = tmp_path / "logs"
    if not is_clean:
        (root / ".kafka_cleanshutdown").unlink()
        (root / "recovery-point-offset-checkpoint").unlink()
    before = files_below(root)
    lines = open_with_kafka(tmp_path, [str(root)], CLUSTER_ID, 1, SETTINGS)
    assert not complaints_in(lines)
    assert lines[-1] == "closed"
    told = {line.split()[1]: line for line in lines if line.startswith("log ")}
    assert sorted(told) == sorted(expected)
    for name, (ends, segments, producers) in expected.items():
        assert ends in told[name]
        assert f"segments={segments} " in told[name]
        assert producers in told[name]
    _check_unchanged(before, files_below(root))


def _check_unchanged(before: dict[str, bytes], after: dict[str, bytes]) -> None:
    """Every file, but for what a start changes by design."""
    compared = 0
    for name, data in before.items():
        if name.endswith("-offset-checkpoint"):
            # Kafka writes the partitions in the order of a hash map.
            if name in after:
                assert decode_offset_checkpoint(after[name]) == decode_offset_checkpoint(data), name
        elif name == "empty-0/leader-epoch-checkpoint":
            # An epoch in which nothing was written is forgotten at a start.
            assert data == b"0\n1\n4 0\n"
            assert after[name] == b"0\n0\n"
        elif name.startswith("cut-0/") and name.endswith(".snapshot") and name not in after:
            # Nobody needs the producers as they were before the start of the log.
            assert int(Path(name).stem) <= 30
        else:
            assert after[name] == data, name
            compared += 1
    assert compared > 50
    new = sorted(set(after) - set(before))
    assert [name for name in new if not name.endswith(("offset-checkpoint", "shutdown"))] == []


def test_what_kafka_has_closed_is_opened_again_by_us(tmp_path: Path) -> None:
    need("java")
    world = RealWorld(tmp_path)
    world.start()
    write_much(world)
    ends = {log.topic_partition: log.log_end_offset for log in world.manager.logs()}
    world.stop()
    open_with_kafka(tmp_path, [f"{tmp_path}/logs"], CLUSTER_ID, 1, SETTINGS)
    world.start()
    assert not world.recovered
    assert {log.topic_partition: log.log_end_offset for log in world.manager.logs()} == ends
    world.stop()


@pytest.mark.parametrize("is_marked_clean", [False, True], ids=["recovered", "as it is"])
def test_what_a_halted_kafka_left_is_read_with_its_indexes_allocated_ahead(
    tmp_path: Path, is_marked_clean: bool
) -> None:
    """With the mark of a clean stop, which it did not earn, the zero tails are read as they are."""
    need("java")
    root = tmp_path / "logs"
    root.mkdir()
    ends = write_and_halt_with_kafka(tmp_path, str(root), 100)
    assert ends == {"plain": 199, "idempotent": 199}
    assert max(path.stat().st_size for path in root.rglob("*.index")) == 10 * 1024 * 1024
    if is_marked_clean:
        (root / ".kafka_cleanshutdown").write_bytes(b"")
    world = RealWorld(tmp_path)
    world.wall_ms = _now_ms()
    world.start()
    assert bool(world.recovered) != is_marked_clean
    assert not any(one.complaint for one in world.recovered)
    for topic in ends:
        log = world.log(TopicPartition(topic, 0))
        values = [value for _, value in read_all(log)]
        assert values == [
            f"{topic}-{number}-{index}".encode()
            for number in range(100)
            for index in range(1 + number % 3)
        ]
        for offset in range(0, 199, 7):
            read = records_in(bytes_of(log.read(offset, 1, 199, True)))
            assert read[0].offset <= offset <= read[-1].offset
        epochs = [entry.epoch for entry in log.leader_epochs.entries()]
        assert epochs == [0, 1, 2]
        produce(log, b"after", leader_epoch=3)
    producers = world.log(TopicPartition("idempotent", 0)).producers.to_snapshot()
    assert [(one.producer_id, one.last_sequence) for one in producers] == [(77, 198)]
    world.stop()
    assert max(path.stat().st_size for path in root.rglob("*.index")) < 1000
