"""The same story on files and in memory leaves the same bytes behind, and the same ones durable.

What the fault tests prove of the log engine they prove on the disk in memory; it holds on files
because every sync and every rename is asked of the kernel in the same order and finds the same.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import pytest

from barnabas.model.config import TopicConfig
from barnabas.model.ids import TopicPartition
from barnabas.node.real_disk import RealDisk
from barnabas.storage.disk import Disk, DiskJob, FileId
from tests.worlds.kernel_calls import RENAME, SYNC, SYNC_DIRECTORY, KernelCall, KernelCalls
from tests.worlds.log_world import LogWorld, append, batch_of, produce, read_all
from tests.worlds.memory_disk import MemoryDisk

FIRST = TopicPartition("first", 0)
SECOND = TopicPartition("second", 1)
TOPIC = TopicConfig(
    segment_bytes=2000, index_interval_bytes=150, retention_bytes=6000, file_delete_delay_ms=500
)


def tell(disk: Disk, pump: Callable[[], object], root: str) -> list[object]:
    """Everything that can happen to logs; what was seen on the way."""
    world = LogWorld(disk, pump, log_dirs=(f"{root}/a", f"{root}/b"), topic=TOPIC)
    seen: list[object] = []

    def look() -> None:
        for log in sorted(world.manager.logs(), key=lambda log: log.topic_partition):
            seen.append((log.topic_partition, log.log_start_offset, log.high_watermark))
            seen.append((read_all(log), log.leader_epochs.entries(), log.recovery_point))
            seen.append(log.producers.to_snapshot())

    world.start()
    for number in range(60):
        batch = batch_of(
            b"%d" % number * (number % 50),
            timestamp=world.wall_ms + number,
            producer_id=number % 3,
            producer_epoch=0,
            base_sequence=number // 3,
        )
        append(world.log(FIRST), batch, leader_epoch=number // 25)
        produce(world.log(SECOND), b"x" * 40_000 if number == 7 else b"y", timestamp=world.wall_ms)
        if number % 9 == 0:
            world.log(FIRST).write_out()
            world.settle()
    look()
    assert len(world.log(FIRST).segments) > 3
    world.log(FIRST).truncate_to(37, world.wall_ms)
    world.log(SECOND).set_high_watermark(40)
    world.log(SECOND).delete_records_before(33)
    world.advance(400_000)
    look()
    world.stop()
    disk.remove_file(f"{root}/a/.kafka_cleanshutdown")
    disk.remove_file(f"{root}/a/recovery-point-offset-checkpoint")
    world.start()
    seen.append([(one.base_offset, one.complaint) for one in world.recovered])
    look()
    world.log(SECOND).truncate_fully_and_start_at(500, world.wall_ms)
    produce(world.log(SECOND), b"z", leader_epoch=9)
    world.retire(FIRST)
    produce(world.log(FIRST), b"again", leader_epoch=9)
    world.advance(100_000)
    look()
    world.stop()
    return seen


def files_below(root: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(root)): path.read_bytes() for path in root.rglob("*") if path.is_file()
    }


class Remembering:
    """A disk that keeps the order in which jobs were handed over; all else is the disk's."""

    def __init__(self, disk: RealDisk, handed_over: list[DiskJob]) -> None:
        self._disk = disk
        self._handed_over = handed_over

    def __getattr__(self, name: str) -> Any:
        return getattr(self._disk, name)

    def run(self, job: DiskJob) -> None:
        self._handed_over.append(job)
        self._disk.run(job)


def test_files_and_memory_agree(tmp_path: Path) -> None:
    done: list[DiskJob] = []
    real = RealDisk(done.append)

    def pump() -> None:
        # Jobs come back in the order they were handed over, as they do in memory.
        real.finish_jobs()
        real.stop()
        finished = sorted(done, key=handed_over.index)
        done.clear()
        handed_over.clear()
        for job in finished:
            job.done(job)

    handed_over: list[DiskJob] = []
    memory = MemoryDisk()
    seen = tell(cast("Disk", Remembering(real, handed_over)), pump, str(tmp_path / "logs"))
    assert seen == tell(memory, memory.run_jobs, "/logs")
    assert files_below(tmp_path / "logs") == memory.snapshot("/logs")
    assert len(memory.snapshot("/logs")) > 20


class OneAfterTheOther:
    """A disk whose jobs are done where the memory disk does them; all else is the disk's."""

    def __init__(self, disk: RealDisk) -> None:
        self._disk = disk
        self._jobs: list[DiskJob] = []
        self._worked = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._disk, name)

    def run(self, job: DiskJob) -> None:
        self._jobs.append(job)

    def finish_jobs(self) -> None:
        while self._worked < len(self._jobs):
            job = self._jobs[self._worked]
            self._worked += 1
            job.result = job.work()

    def pump(self) -> None:
        self.finish_jobs()
        jobs, self._jobs, self._worked = self._jobs, [], 0
        for job in jobs:
            job.done(job)


class NotingDisk(MemoryDisk):
    """What it makes durable and in which order, in the words of the kernel's calls."""

    def __init__(self) -> None:
        super().__init__()
        self.noted: list[KernelCall] = []

    def sync(self, file: FileId) -> None:
        super().sync(file)
        opened = self._opened(file)
        self.noted.append(KernelCall(SYNC, opened.path[1:], opened.node.synced))

    def sync_directory(self, path: str) -> None:
        super().sync_directory(path)
        directory = self._walk(path)
        assert directory is not None
        found = KernelCall(SYNC_DIRECTORY, path[1:], sorted(directory.synced))
        self.noted.append(found)

    def rename(self, source: str, target: str) -> None:
        super().rename(source, target)
        self.noted.append(KernelCall(RENAME, source[1:], target[1:]))


def test_the_kernel_is_asked_for_what_is_durable_in_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory = NotingDisk()
    seen = tell(memory, memory.run_jobs, "/logs")
    kernel = KernelCalls(tmp_path, monkeypatch)
    real = OneAfterTheOther(RealDisk(lambda job: None))
    assert tell(cast("Disk", real), real.pump, str(tmp_path / "logs")) == seen
    for number, (asked, noted) in enumerate(
        zip(kernel.without_opens(), memory.noted, strict=False)
    ):
        assert asked == noted, f"call {number}"
    assert len(kernel.without_opens()) == len(memory.noted)
    assert {call.kind for call in memory.noted} == {SYNC, SYNC_DIRECTORY, RENAME}
    assert len(memory.noted) > 100
