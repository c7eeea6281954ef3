"""Opening all logs of a directory: loaded in jobs away from the loop, taken over on it."""

from collections import deque
from collections.abc import Sequence
from typing import Final

from barnabas.formats.logdir.names import (
    DELETE_DIRECTORY_SUFFIX,
    log_directory_name,
    parse_log_directory_name,
)
from barnabas.model.config import TopicConfig
from barnabas.model.errors import DiskError, LogDirectoryRefused
from barnabas.model.ids import TopicPartition
from barnabas.storage.disk import Disk
from barnabas.storage.log_dirs import LogDirectory
from barnabas.storage.log_owner import LogOwner
from barnabas.storage.open_files import OpenFiles
from barnabas.storage.partition_log import PartitionLog
from barnabas.storage.recovery import LoadedLog, LoadRequest, SegmentRecovered, load_log

CLEAN_LOGS_PER_JOB: Final = 64
"""A log that was left clean costs little: many of them make one job."""


class LoadJob:
    """Some logs of one directory, loaded one after the other."""

    __slots__ = ("_disk", "_progress", "_requests", "directory", "error", "loaded", "refused")

    def __init__(
        self,
        disk: Disk,
        directory: LogDirectory,
        requests: Sequence[LoadRequest],
        progress: deque[SegmentRecovered],
    ) -> None:
        self._disk = disk
        self._requests = requests
        self._progress = progress
        self.directory = directory
        self.loaded: list[LoadedLog] = []
        self.error: DiskError | None = None
        """Why the directory cannot be used."""
        self.refused: LogDirectoryRefused | None = None

    def work(self) -> None:
        """Runs away from the loop; what was recovered is told through the queue."""
        for request in self._requests:
            try:
                self.loaded.append(load_log(self._disk, request, self._progress.append))
            except DiskError as error:
                self.error = error
                return
            except LogDirectoryRefused as error:
                self.refused = error
                return


def load_requests(
    directory: LogDirectory,
    topic_configs: dict[str, TopicConfig],
    wall_ms: int,
    producer_expiration_ms: int,
) -> list[LoadRequest]:
    """One request for every log in use; marked directories are not loaded."""
    requests: list[LoadRequest] = []
    for name in directory.names:
        found = parse_log_directory_name(name)
        if found is None or found.mark:
            continue
        key = found.topic_partition
        requests.append(
            LoadRequest(
                key,
                directory.file(name),
                topic_configs[key.topic],
                directory.recovery_points.get(key, 0),
                directory.log_start_offsets.get(key, 0),
                directory.was_clean,
                wall_ms,
                producer_expiration_ms,
            )
        )
    return requests


def topics_in(directory: LogDirectory) -> list[str]:
    """The topics that have a log in use there."""
    names = [parse_log_directory_name(name) for name in directory.names]
    return sorted({found.topic_partition.topic for found in names if found and not found.mark})


def awaiting_removal(directory: LogDirectory) -> list[str]:
    """The paths of logs that were deleted and not removed before the last stop."""
    return [
        directory.file(name) for name in directory.names if name.endswith(DELETE_DIRECTORY_SUFFIX)
    ]


def new_log_request(
    topic_partition: TopicPartition,
    directory: LogDirectory,
    config: TopicConfig,
    wall_ms: int,
    producer_expiration_ms: int,
) -> LoadRequest:
    """What loads the log of a directory that was just made."""
    path = directory.file(log_directory_name(topic_partition))
    return LoadRequest(topic_partition, path, config, 0, 0, True, wall_ms, producer_expiration_ms)


def take_over(loaded: LoadedLog, files: OpenFiles, owner: LogOwner) -> PartitionLog:
    """The log that was loaded, with its files among these from now on."""
    request = loaded.request
    for segment in loaded.segments:
        segment.rebind(files)
    loaded.segments[-1].roll_jitter_ms = owner.draw_roll_jitter_ms(request.config)
    log = PartitionLog(
        request.topic_partition,
        request.directory,
        files,
        owner,
        request.config,
        loaded.segments,
        loaded.log_end_offset,
        loaded.log_start_offset,
        loaded.recovery_point,
        loaded.leader_epochs,
        loaded.producers,
        loaded.snapshots,
        request.producer_expiration_ms,
    )
    if not request.is_clean:
        # Whoever made the directory and its files may not have come to sync them.
        log.are_small_files_unsynced = True
        log.is_directory_sync_wanted = True
        log.is_parent_sync_wanted = True
    log.topic_id = loaded.topic_id
    log.take_snapshot(loaded.log_end_offset)
    return log
