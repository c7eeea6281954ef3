"""The log directory that a real 3.9.2 broker left behind, read by our engine."""

import json
import re
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest

from barnabas.formats.batches.header import CURRENT_MAGIC
from barnabas.formats.logdir.checkpoints import decode_offset_checkpoint
from barnabas.formats.logdir.names import parse_snapshot_file_name
from barnabas.formats.logdir.partition_metadata import topic_id_to_text
from barnabas.formats.logdir.producer_snapshot import decode_producer_snapshot
from barnabas.formats.logdir.transaction_index import decode_aborted_transactions
from barnabas.model.config import TopicConfig
from barnabas.model.ids import TopicPartition
from barnabas.storage.aborted_transactions import aborted_transactions
from barnabas.storage.log_manager import LogManager
from barnabas.storage.offset_queries import offset_for_time
from barnabas.storage.partition_log import PartitionLog
from tests.behaviours import behaviour
from tests.worlds.log_world import LogWorld, bytes_of, records_in
from tests.worlds.memory_disk import MemoryDisk

VECTORS = Path(__file__).parent.parent / "vectors"
DUMP = json.loads((VECTORS / "logdir-3.9.json").read_text())
CLUSTER_ID = DUMP["topic_ids"]["cluster"]["id"]
LEFT_AT_MS = 1_795_038_600_000
"""Some minutes after the broker had stopped: no producer has expired."""

NOT_COMPARED = re.compile(r"-delete/|leader-epoch-checkpoint|-offset-checkpoint$|meta.properties")
"""Compared by meaning: their lines come in no order, or a start changes them by design."""


def golden_files() -> dict[str, bytes]:
    files: dict[str, bytes] = {}
    with tarfile.open(VECTORS / "logdir-3.9.tar.gz") as archive:
        for member in archive.getmembers():
            content = archive.extractfile(member)
            if content is not None:
                files[member.name.partition("/")[2]] = content.read()
    return files


class GoldenWorld(LogWorld):
    """Topics have the settings they were created with."""

    def _new_manager(self) -> LogManager:
        return LogManager(self.disk, self.broker, _settings, self, self.random)


def _settings(topic: str) -> TopicConfig:
    if topic in ("compacted", "__consumer_offsets", "__transaction_state"):
        return TopicConfig(cleanup_policy=("compact",))
    if topic == "rolled":
        return TopicConfig(segment_bytes=2048, index_interval_bytes=100)
    return TopicConfig()


def opened(skip: Callable[[str], bool] = lambda name: False) -> GoldenWorld:
    """The directory, without some of its files, opened."""
    disk = MemoryDisk()
    for name, data in golden_files().items():
        if not skip(name):
            disk.place(f"/logs/{name}", data)
    world = GoldenWorld(disk, disk.run_jobs)
    world.wall_ms = LEFT_AT_MS
    world.start(CLUSTER_ID, 1)
    assert world.opened == 1, world.refused
    assert not world.lost
    return world


def log_of(world: LogWorld, topic: str, partition: int = 0) -> PartitionLog:
    log = world.manager.log(TopicPartition(topic, partition))
    assert log is not None
    return log


def test_every_log_begins_and_ends_where_its_broker_left_it() -> None:
    world = opened()
    ends = decode_offset_checkpoint(DUMP["text_files"]["recovery-point-offset-checkpoint"].encode())
    marks = decode_offset_checkpoint(DUMP["text_files"]["replication-offset-checkpoint"].encode())
    starts = {TopicPartition("trimmed", 0): 9}
    found = {log.topic_partition: log for log in world.manager.logs()}
    assert sorted(found) == sorted(ends)
    for key, log in found.items():
        assert log.log_end_offset == ends[key], key
        assert log.recovery_point == ends[key], key
        assert log.high_watermark == marks[key], key
        assert log.log_start_offset == starts.get(key, 0), key
        assert topic_id_to_text(log.topic_id) in DUMP["text_files"][f"{key}/partition.metadata"]


@behaviour("L22")
def test_epochs_are_those_that_hold_records() -> None:
    """An epoch that began at the end of the log is forgotten at a start, as Kafka forgets it."""
    log = log_of(opened(), "epochs")
    assert [tuple(entry) for entry in log.leader_epochs.entries()] == [(0, 0), (1, 3), (2, 5)]
    assert log.end_offset_for_epoch(0) == (0, 3)
    assert log.end_offset_for_epoch(1) == (1, 5)
    assert log.end_offset_for_epoch(2) == (2, 8)
    assert log.end_offset_for_epoch(3) == (-1, -1)
    empty = log_of(opened(), "empty")
    assert DUMP["text_files"]["empty-0/leader-epoch-checkpoint"] == "0\n1\n2 0\n"
    assert empty.leader_epochs.latest_epoch == -1


def test_every_record_is_read_as_kafka_dumps_it() -> None:
    world = opened()
    compared = 0
    for log in world.manager.logs():
        for segment in log.segments:
            name = f"{log.topic_partition}/{segment.base_offset:020d}.log"
            dumped = _dumped_records(DUMP["dump"][name])
            read = _records_of_segment(log, segment.base_offset)
            assert [one for one in read if one[0] >= log.log_start_offset] == [
                one for one in dumped if one[0] >= log.log_start_offset
            ], name
            compared += len(dumped)
    assert compared > 150


def _dumped_records(dump: object) -> list[tuple[int, int]]:
    lines = dump if isinstance(dump, list) else str(dump).splitlines()
    found: list[tuple[int, int]] = []
    for line in lines:
        match = re.match(r"\| offset: (\d+) \w+: (-?\d+) ", str(line))
        if match:
            found.append((int(match[1]), int(match[2])))
    return found


def _records_of_segment(log: PartitionLog, base_offset: int) -> list[tuple[int, int]]:
    later = [one.base_offset for one in log.segments if one.base_offset > base_offset]
    end = later[0] if later else log.log_end_offset
    offset = max(base_offset, log.log_start_offset)
    if offset >= end:
        return []
    found: list[tuple[int, int]] = []
    while offset < end:
        read = records_in(bytes_of(log.read(offset, 1 << 20, log.log_end_offset, True)))
        fresh = [(one.offset, one.timestamp) for one in read if offset <= one.offset < end]
        if not fresh:
            break
        found += fresh
        offset = fresh[-1][0] + 1
    return found


def test_indexes_find_every_batch() -> None:
    """Read through the index entries of the real broker, from every offset."""
    log = log_of(opened(), "rolled")
    log.segments[0].offset_index.entries.count()
    assert [one.base_offset for one in log.segments] == [0, 9, 18, 27]
    assert log.segments[0].offset_index.entries.count() == 8
    for offset in range(30):
        first = records_in(bytes_of(log.read(offset, 1, 30, True)))[0]
        assert first.offset == offset
        at_or_after = offset_for_time(log, first.timestamp)
        assert at_or_after is not None
        assert at_or_after.offset <= offset


def test_producers_and_transactions_are_known_as_the_snapshots_tell() -> None:
    world = opened()
    for name, data in DUMP["binary_hex"].items():
        directory, _, file = name.partition("/")
        offset = parse_snapshot_file_name(file)
        topic, _, partition = directory.rpartition("-")
        log = log_of(world, topic, int(partition)) if offset is not None else None
        if log is None or offset != log.log_end_offset:
            continue
        told = sorted(decode_producer_snapshot(bytes.fromhex(data)))
        assert log.producers.to_snapshot() == told, name
    open_one = log_of(world, "txn")
    assert open_one.log_end_offset == 10
    assert open_one.last_stable_offset == 9
    aborted = aborted_transactions(open_one, 0, 1 << 20)
    index = bytes.fromhex(DUMP["binary_hex"]["txn-0/00000000000000000000.txnindex"])
    assert aborted == decode_aborted_transactions(index)
    assert [(one.producer_id, one.first_offset) for one in aborted] == [(1000, 3)]


def test_what_recovery_rebuilds_is_what_the_broker_had_written() -> None:
    """Without clean stop, recovery points, indexes and snapshots: every file comes back equal."""

    def lost(name: str) -> bool:
        if name in (".kafka_cleanshutdown", "recovery-point-offset-checkpoint"):
            return True
        return name.endswith(("index", ".snapshot"))

    world = opened(lost)
    assert len(world.recovered) == 25
    assert not any(one.complaint for one in world.recovered)
    world.stop()
    after = world.memory.snapshot("/logs")
    before = {name: data for name, data in golden_files().items() if not NOT_COMPARED.search(name)}
    # The broker stopped once at offset 3 and noted the time then; its snapshot is a stray now.
    del before["epochs-0/00000000000000000003.snapshot"]
    del before["epochs-0/00000000000000000000.timeindex"]
    # Nobody needs the producers as they were before the start of the log.
    del before["trimmed-0/00000000000000000006.snapshot"]
    # The same two producers, in the order of their ids.
    name = "txn-0/00000000000000000010.snapshot"
    told = decode_producer_snapshot(before.pop(name))
    assert decode_producer_snapshot(after[name]) == sorted(told)
    for name, data in before.items():
        assert after[name] == data, name


def test_a_clean_start_and_stop_changes_nothing_that_matters() -> None:
    world = opened()
    assert not world.recovered
    world.stop()
    after = world.memory.snapshot("/logs")
    for name, data in golden_files().items():
        if NOT_COMPARED.search(name) or name in (
            "epochs-0/00000000000000000003.snapshot",
            "trimmed-0/00000000000000000006.snapshot",
        ):
            continue
        assert after[name] == data, name
    for name in ("recovery-point", "replication", "log-start"):
        file = f"{name}-offset-checkpoint"
        assert decode_offset_checkpoint(after[file]) == decode_offset_checkpoint(
            golden_files()[file]
        )


def test_a_deleted_log_goes_after_its_delay() -> None:
    world = opened()
    doomed = "/logs/deleted-soon-0.c932e879e5e6447aa10d63bcd2d6f44f-delete"
    assert world.memory.exists(doomed)
    world.advance(59_999)
    assert world.memory.exists(doomed)
    world.advance(1)
    assert not world.memory.exists(doomed)


@pytest.mark.parametrize("topic", ["codec-gzip", "codec-lz4", "codec-snappy", "codec-zstd"])
def test_compressed_records_are_those_of_the_plain_topic(topic: str) -> None:
    world = opened()
    plain = records_in(bytes_of(log_of(world, "codec-none").read(0, 1 << 20, 12, True)))
    packed = records_in(bytes_of(log_of(world, topic).read(0, 1 << 20, 12, True)))
    assert [(one.key, one.value, one.headers) for one in packed] == [
        (one.key, one.value, one.headers) for one in plain
    ]
    header = log_of(world, topic).segments[0].batch_at(0)
    assert header is not None
    assert header.header.magic == CURRENT_MAGIC
