"""DescribeLogDirs: the replicas in each log directory with their sizes, and the room there is."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Final

from barnabas.broker.connections import Request
from barnabas.formats.wire.generated.describe_log_dirs import (
    DescribeLogDirsPartition,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
    DescribeLogDirsResult,
    DescribeLogDirsTopic,
)
from barnabas.model.error_codes import ErrorCode
from barnabas.model.errors import DiskError
from barnabas.model.ids import TopicPartition
from barnabas.storage.disk import Disk, DiskJob
from barnabas.storage.log_dirs import LogDirectory

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker

FIRST_VERSION_WITH_SPACE: Final = 4
UNKNOWN_LAG: Final = -1
"""Of a log whose partition this broker was not told of yet."""

Space = tuple[int, int]
"""Bytes in all, and bytes that can be used."""


def handle(
    broker: Broker, request: Request, body: DescribeLogDirsRequest, now_ms: int
) -> DescribeLogDirsResponse | None:
    """Answer from memory; only the room on the disks is asked for, away from the loop."""
    asked = None
    if body.topics is not None:
        asked = {
            TopicPartition(topic.topic, index)
            for topic in body.topics
            for index in topic.partitions
        }
    if request.api_version < FIRST_VERSION_WITH_SPACE:
        return _describe_all(broker, asked, {})
    paths = [directory.path for directory in broker.logs.manager.directories.online()]
    space: dict[str, Space] = {}

    def on_measured(job: DiskJob) -> None:
        if job.error is not None:
            raise job.error
        broker.answer(request, _describe_all(broker, asked, space))

    broker.disk.run(
        DiskJob("measure disks", lambda: _measure(broker.disk, paths, space), on_measured)
    )
    return None


def _measure(disk: Disk, paths: list[str], space: dict[str, Space]) -> None:
    """What a disk refuses to tell stays unknown; whether it still works is seen by its logs."""
    for path in paths:
        try:
            space[path] = disk.total_bytes(path), disk.free_bytes(path)
        except DiskError:
            continue


def _describe_all(
    broker: Broker, asked: Collection[TopicPartition] | None, space: Mapping[str, Space]
) -> DescribeLogDirsResponse:
    directories = broker.logs.manager.directories.directories
    topics: dict[str, dict[str, DescribeLogDirsTopic]] = {one.path: {} for one in directories}
    for log in broker.logs.manager.logs():
        key = log.topic_partition
        if asked is not None and key not in asked:
            continue
        partition = broker.replicas.find(key.topic, key.partition)
        is_hosted = partition is not None and partition.log is log
        told = topics[log.log_directory].setdefault(key.topic, DescribeLogDirsTopic(name=key.topic))
        told.partitions.append(
            DescribeLogDirsPartition(
                partition_index=key.partition,
                partition_size=log.size_bytes,
                offset_lag=max(log.high_watermark - log.log_end_offset, 0)
                if is_hosted
                else UNKNOWN_LAG,
                is_future_key=False,
            )
        )
    return DescribeLogDirsResponse(
        results=[_result(one, topics[one.path], space) for one in directories]
    )


def _result(
    directory: LogDirectory,
    topics: Mapping[str, DescribeLogDirsTopic],
    space: Mapping[str, Space],
) -> DescribeLogDirsResult:
    if not directory.is_online:
        return DescribeLogDirsResult(
            error_code=ErrorCode.KAFKA_STORAGE_ERROR, log_dir=directory.path
        )
    total_bytes, usable_bytes = space.get(directory.path, (-1, -1))
    return DescribeLogDirsResult(
        log_dir=directory.path,
        topics=[topics[name] for name in sorted(topics)],
        total_bytes=total_bytes,
        usable_bytes=usable_bytes,
    )
