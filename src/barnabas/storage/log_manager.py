"""All logs of a broker: opened at the start, created, retired, kept in order in the background."""

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from functools import partial
from random import Random
from typing import Final

from barnabas.formats.logdir.names import (
    HIGH_WATERMARK_FILE,
    LOG_START_OFFSET_FILE,
    RECOVERY_POINT_FILE,
    deleted_directory_name,
    stray_directory_name,
)
from barnabas.model.config import BrokerConfig, TopicConfig
from barnabas.model.errors import DiskError, DiskLost, LogDirectoryRefused
from barnabas.model.ids import NO_TOPIC_ID, TopicId, TopicPartition
from barnabas.storage.checkpoints import CHECKPOINT_FILES, Checkpoints
from barnabas.storage.disk import Disk, DiskJob
from barnabas.storage.flush_queue import FlushQueue
from barnabas.storage.flushing import prepare_close, release_files
from barnabas.storage.log_dirs import LogDirectories, LogDirectory
from barnabas.storage.log_events import DirectoryLost, LogListener
from barnabas.storage.log_opening import (
    CLEAN_LOGS_PER_JOB,
    LoadJob,
    awaiting_removal,
    load_requests,
    new_log_request,
    take_over,
    topics_in,
)
from barnabas.storage.open_files import OpenFiles
from barnabas.storage.partition_log import PartitionLog
from barnabas.storage.recovery import SegmentRecovered, load_log
from barnabas.storage.removals import Removals
from barnabas.storage.retention import apply_retention
from barnabas.storage.retirement import LeavingLog, Refused, Retirement

LOGS_PER_TURN: Final = 200
"""How many logs retention and expiry look at before the loop gets its turn again."""
PROGRESS_INTERVAL_MS: Final = 1000


class Schedule:
    """Something that comes round; a period that is never over means never."""

    __slots__ = ("due_ms", "period_ms")

    def __init__(self, first_ms: int, period_ms: int) -> None:
        self.due_ms = first_ms
        self.period_ms = period_ms

    def is_due(self, now_ms: int) -> bool:
        """Whether its time has come; the next one is then a whole period from now."""
        if now_ms < self.due_ms:
            return False
        self.due_ms = now_ms + self.period_ms
        return True


class LogManager:
    """Owns the logs; `tick` is called at `next_deadline_ms`, jobs come back through the Disk."""

    def __init__(
        self,
        disk: Disk,
        config: BrokerConfig,
        topic_config: Callable[[str], TopicConfig],
        listener: LogListener,
        draw: Random,
    ) -> None:
        self.disk = disk
        self.directories = LogDirectories(disk, config.log_dirs)
        self.is_open: bool = False
        self._config = config
        self._topic_config = topic_config
        self._listener = listener
        self._draw = draw
        self._files = OpenFiles(disk, disk.open_files_max)
        self._logs: dict[TopicPartition, PartitionLog] = {}
        self._flushes = FlushQueue(disk, self.on_log_failed)
        self._checkpoints = Checkpoints(disk, self._logs_in, self._note_directory_failed)
        self._removals = Removals(disk)
        self._lost: list[DirectoryLost] = []
        """Directories that went offline and the listener does not know of yet."""
        self._progress: deque[SegmentRecovered] = deque()
        """Filled by jobs on their threads, told by `tick`."""
        self._loading = 0
        """Jobs that are still loading logs."""
        self._refused: LogDirectoryRefused | None = None
        self._now_ms = 0
        self._next_progress_ms = 0
        self._sweep: list[PartitionLog] = []
        """Logs that this round of retention has still to look at."""
        self._retention = Schedule(0, config.log_retention_check_interval_ms)
        self._flusher = Schedule(0, config.log_flush_scheduler_interval_ms)
        self._expiry = Schedule(0, config.producer_id_expiration_check_interval_ms)
        self._checkpoint_schedules: dict[str, Schedule] = {
            RECOVERY_POINT_FILE: Schedule(0, config.log_flush_offset_checkpoint_interval_ms),
            LOG_START_OFFSET_FILE: Schedule(
                0, config.log_flush_start_offset_checkpoint_interval_ms
            ),
            HIGH_WATERMARK_FILE: Schedule(0, config.replica_high_watermark_checkpoint_interval_ms),
        }

    # Opening

    def open(self, cluster_id: str, broker_id: int, now_ms: int, wall_ms: int) -> None:
        """Take the directories and begin to load every log; `on_logs_opened` follows.

        `directories.inspect` was called before. `LogDirectoryRefused` when they are another's.
        """
        self._now_ms = now_ms
        self.directories.check_owner(cluster_id, broker_id)
        self.directories.lock_all()
        self.directories.write_meta(cluster_id, broker_id)
        for complaint in self.directories.read_checkpoints():
            self._listener.on_log_complaint(complaint)
        self._start_schedules(now_ms)
        jobs: list[LoadJob] = []
        for directory in self.directories.online():
            jobs += self._load_jobs(directory, wall_ms)
            for path in awaiting_removal(directory):
                due_ms = now_ms + self._config.log_segment_delete_delay_ms
                self._removals.add(due_ms, path, is_directory=True)
        for directory in self.directories.offline():
            error = directory.error or DiskLost(directory.path, "offline")
            self._lost.append(DirectoryLost(directory.path, error, (), False))
        self._loading = len(jobs)
        self._next_progress_ms = now_ms + PROGRESS_INTERVAL_MS
        for job in jobs:
            self.disk.run(DiskJob("load logs", job.work, partial(self._note_loaded, job)))
        if not jobs:
            self._finish_opening()

    def _load_jobs(self, directory: LogDirectory, wall_ms: int) -> list[LoadJob]:
        configs = {topic: self._topic_config(topic) for topic in topics_in(directory)}
        requests = load_requests(
            directory, configs, wall_ms, self._config.producer_id_expiration_ms
        )
        size = CLEAN_LOGS_PER_JOB if directory.was_clean else 1
        return [
            LoadJob(self.disk, directory, requests[first : first + size], self._progress)
            for first in range(0, len(requests), size)
        ]

    def _note_loaded(self, load: LoadJob, job: DiskJob) -> None:
        self._loading -= 1
        if job.error is not None:
            raise job.error
        if load.refused is not None:
            self._refused = load.refused
        elif load.error is not None:
            self._note_directory_failed(load.directory, load.error)
        else:
            self._take_over(load)
        if self._loading == 0:
            self._finish_opening()

    def _take_over(self, load: LoadJob) -> None:
        """Open the loaded logs' files here; a disk that refuses one is no disk to rely on."""
        for loaded in load.loaded:
            try:
                log = take_over(loaded, self._files, self)
            except DiskError as error:
                self._note_directory_failed(load.directory, error)
                return
            self._adopt(log, load.directory)

    def _adopt(self, log: PartitionLog, directory: LogDirectory) -> None:
        """Let a loaded log be known, with the high watermark it had."""
        other = self._logs.get(log.topic_partition)
        if other is not None:
            self._refused = LogDirectoryRefused(
                f"{log.topic_partition} is in two log directories: found {other.directory} and "
                f"{log.directory}, expected one; remove the one that failed last"
            )
            return
        if not directory.is_online:
            release_files(log)
            return
        log.set_high_watermark(directory.high_watermarks.get(log.topic_partition, 0))
        self._logs[log.topic_partition] = log
        self._flushes.add(log, with_active=False)

    def _finish_opening(self) -> None:
        self._tell_progress()
        if self._refused is not None:
            self.directories.unlock_all()
            self._listener.on_logs_refused(self._refused)
            return
        self.is_open = True
        self._listener.on_logs_opened(self._now_ms)

    def _start_schedules(self, now_ms: int) -> None:
        delayed_ms = now_ms + self._config.log_initial_task_delay_ms
        self._retention.due_ms = delayed_ms
        self._flusher.due_ms = delayed_ms
        self._expiry.due_ms = now_ms + self._expiry.period_ms
        self._checkpoint_schedules[RECOVERY_POINT_FILE].due_ms = delayed_ms
        self._checkpoint_schedules[LOG_START_OFFSET_FILE].due_ms = delayed_ms
        high_watermark = self._checkpoint_schedules[HIGH_WATERMARK_FILE]
        high_watermark.due_ms = now_ms + high_watermark.period_ms

    # The logs

    def log(self, topic_partition: TopicPartition) -> PartitionLog | None:
        return self._logs.get(topic_partition)

    def logs(self) -> Iterable[PartitionLog]:
        return self._logs.values()

    def get_or_create(
        self,
        topic_partition: TopicPartition,
        topic_id: TopicId,
        is_new: bool,
        wall_ms: int,
    ) -> PartitionLog:
        """The log of a partition, made where the fewest logs are if there is none.

        A replica that is not new may be in an offline directory: `DiskLost` then, as when no
        directory can take it. A log without a topic id gets this one; another id in the log is
        for the caller to see.
        """
        log = self._logs.get(topic_partition)
        if log is None:
            offline = self.directories.offline()
            if offline and not is_new:
                raise DiskLost(
                    ", ".join(directory.path for directory in offline),
                    f"{topic_partition} may be in this log directory, which is offline",
                )
            log = self._create(topic_partition, wall_ms)
        if log.topic_id == NO_TOPIC_ID and topic_id != NO_TOPIC_ID:
            log.set_topic_id(topic_id)
        return log

    def _create(self, topic_partition: TopicPartition, wall_ms: int) -> PartitionLog:
        config = self._topic_config(topic_partition.topic)
        error: DiskError | None = None
        for directory in self._fewest_logs_first():
            request = new_log_request(
                topic_partition,
                directory,
                config,
                wall_ms,
                self._config.producer_id_expiration_ms,
            )
            try:
                self.disk.make_directory(request.directory)
                loaded = load_log(self.disk, request, self._progress.append, self._files)
                log = take_over(loaded, self._files, self)
            except DiskError as failure:
                error = failure
                self._note_directory_failed(directory, failure)
                continue
            log.is_directory_sync_wanted = True
            log.is_parent_sync_wanted = True
            self._logs[topic_partition] = log
            return log
        raise error or DiskLost(", ".join(self._config.log_dirs), "no log directory is online")

    def _fewest_logs_first(self) -> list[LogDirectory]:
        """The online directories; among equals the order of `log.dirs` decides."""
        online = self.directories.online()
        if len(online) == 1:
            return online
        counts: dict[str, int] = {}
        for log in self._logs.values():
            path = log.log_directory
            counts[path] = counts.get(path, 0) + 1
        return sorted(online, key=lambda one: counts.get(one.path, 0))

    def retire(
        self,
        topic_partitions: Sequence[TopicPartition],
        now_ms: int,
        then: Callable[[Refused], None],
        *,
        is_stray: bool = False,
    ) -> None:
        """Take logs out of use: their directories are renamed, and removed after the delay.

        Strays are kept aside for a person to look at. They are known no more when this returns;
        `then` gets the errors of those that could not be retired, when all is durable. One that is
        unknown may be in an offline directory, else there is nothing to do.
        """

        def note_renamed(path: str) -> None:
            if not is_stray:
                due_ms = now_ms + self._config.log_segment_delete_delay_ms
                self._removals.add(due_ms, path, is_directory=True)

        leaving = Retirement(self.disk, self._flushes, self._checkpoints, note_renamed, then)
        offline = self.directories.offline()
        for key in topic_partitions:
            log = self._logs.pop(key, None)
            if log is not None:
                directory = self._directory_of(log)
                leaving.add(directory, self._dismiss(log, directory, is_stray))
            elif offline:
                reason = f"{key} may be in this offline directory"
                leaving.errors[key] = DiskLost(offline[0].path, reason)
        leaving.begin()

    def _dismiss(self, log: PartitionLog, directory: LogDirectory, is_stray: bool) -> LeavingLog:
        self._flushes.discard(log)
        with suppress(DiskError):
            release_files(log)
        unique = f"{self._draw.getrandbits(128):032x}"
        name_of = stray_directory_name if is_stray else deleted_directory_name
        return LeavingLog(log, directory.file(name_of(log.topic_partition, unique)))

    def is_ready_to_cut(self, log: PartitionLog, offset: int) -> bool:
        """Whether records from the offset on can be dropped without waiting for the disk."""
        is_promised = log.recovery_point > offset
        return not (
            is_promised or log.is_flushing or self._checkpoints.is_busy(self._directory_of(log))
        )

    def prepare_cut(self, log: PartitionLog, offset: int, then: Callable[[], None]) -> None:
        """Call `then` when the log can be cut there: no flush is under way, and no checkpoint
        promises what is behind the offset. None is begun before it returns."""

        def lower() -> None:
            log.recovery_point = min(log.recovery_point, offset)
            directory = self._directory_of(log)
            self._checkpoints.write_then(directory, (RECOVERY_POINT_FILE,), cut)

        def cut(error: DiskError | None) -> None:
            then()
            self._flushes.let_go(log)

        self._flushes.hold(log, lower)

    def flush(self, log: PartitionLog) -> None:
        """Have all of the log durable soon; `log.recovery_point` tells when it is."""
        self._flushes.add(log, with_active=True)

    def when_topic_ids_are_durable(
        self, logs: Iterable[PartitionLog], then: Callable[[], None]
    ) -> None:
        """Call `then` when partition.metadata of each log is on disk for good, or it is lost."""
        self._flushes.when_topic_ids_are_durable(logs, then)

    def _directory_of(self, log: PartitionLog) -> LogDirectory:
        return self.directories.by_path(log.log_directory)

    def _logs_in(self, directory: LogDirectory) -> list[PartitionLog]:
        return [log for log in self._logs.values() if log.log_directory == directory.path]

    # What logs ask for

    def on_log_work(self, log: PartitionLog) -> None:
        self._flushes.add(log, with_active=False)

    def draw_roll_jitter_ms(self, config: TopicConfig) -> int:
        longest_ms = min(config.segment_jitter_ms, config.segment_ms)
        return self._draw.randrange(longest_ms) if longest_ms > 0 else 0

    def on_log_failed(self, log: PartitionLog, error: DiskError) -> None:
        self._note_directory_failed(self._directory_of(log), error)

    def on_cut(self, log: PartitionLog) -> None:
        directory = self._directory_of(log)
        self._checkpoints.write_now(directory, (RECOVERY_POINT_FILE, LOG_START_OFFSET_FILE))

    def on_files_deleted(self, log: PartitionLog, paths: Sequence[str]) -> None:
        due_ms = self._now_ms + log.config.file_delete_delay_ms
        for path in paths:
            self._removals.add(due_ms, path, is_directory=False)

    def _note_directory_failed(self, directory: LogDirectory, error: DiskError) -> None:
        """Take a directory offline, once; nothing in it is touched any more."""
        if not directory.is_online:
            return
        directory.error = error
        lost = [log for log in self._logs.values() if log.log_directory == directory.path]
        for log in lost:
            del self._logs[log.topic_partition]
            self._flushes.discard(log)
            with suppress(DiskError):
                release_files(log)
        self.directories.unlock(directory)
        self._lost.append(
            DirectoryLost(
                directory.path,
                error,
                tuple(sorted(log.topic_partition for log in lost)),
                not self.directories.online(),
            )
        )

    # Time

    def next_deadline_ms(self) -> int | None:
        """When `tick` is wanted."""
        if self._lost or self._flushes.has_ready or self._sweep:
            return self._now_ms
        if not self.is_open:
            return self._next_progress_ms if self._loading else None
        deadlines = [self._retention.due_ms, self._flusher.due_ms, self._expiry.due_ms]
        deadlines += [one.due_ms for one in self._checkpoint_schedules.values()]
        removal_ms = self._removals.next_deadline_ms()
        if removal_ms is not None:
            deadlines.append(removal_ms)
        return min(deadlines)

    def tick(self, now_ms: int, wall_ms: int) -> None:
        """Do what is due: tell the listener, hand work to the disk, look at some logs."""
        self._now_ms = now_ms
        if not self.is_open:
            if now_ms >= self._next_progress_ms:
                self._next_progress_ms = now_ms + PROGRESS_INTERVAL_MS
                self._tell_progress()
            self._tell_lost(now_ms)
            return
        if self._retention.is_due(now_ms):
            self._sweep = list(self._logs.values())
        self._apply_retention(wall_ms)
        if self._flusher.is_due(now_ms):
            self._flush_idle(now_ms)
        if self._expiry.is_due(now_ms):
            self._expire_producers(wall_ms)
        for name, schedule in self._checkpoint_schedules.items():
            if schedule.is_due(now_ms):
                for directory in self.directories.online():
                    self._checkpoints.write_later(directory, name)
        self._flushes.start(now_ms)
        self._removals.start(now_ms)
        self._note_failed_removals()
        self._tell_lost(now_ms)

    def _tell_lost(self, now_ms: int) -> None:
        lost, self._lost = self._lost, []
        for one in lost:
            self._listener.on_directory_lost(one, now_ms)

    def _tell_progress(self) -> None:
        while self._progress:
            self._listener.on_segment_recovered(self._progress.popleft())

    def _apply_retention(self, wall_ms: int) -> None:
        """Look at the next logs of this round."""
        turn, self._sweep = self._sweep[:LOGS_PER_TURN], self._sweep[LOGS_PER_TURN:]
        for log in turn:
            if log.is_lost:
                continue
            with suppress(DiskError):  # The log has told its owner.
                apply_retention(log, wall_ms)

    def _flush_idle(self, now_ms: int) -> None:
        """Flush what was not flushed for as long as its topic allows (flush.ms)."""
        for log in self._logs.values():
            is_dirty = log.log_end_offset > log.recovery_point
            if is_dirty and now_ms - log.last_flush_ms >= log.config.flush_ms:
                self._flushes.add(log, with_active=True)

    def _expire_producers(self, wall_ms: int) -> None:
        for log in self._logs.values():
            log.producers.expire(wall_ms, log.producer_expiration_ms)

    def _note_failed_removals(self) -> None:
        failures, self._removals.failures = self._removals.failures, []
        for failure in failures:
            for directory in self.directories.online():
                if failure.path.startswith(directory.path + "/"):
                    self._note_directory_failed(directory, failure)

    # The end

    def close(self, now_ms: int, broker_epoch: int) -> None:
        """Leave every directory so that the next start need not recover anything."""
        self._finish_background()
        for directory in self.directories.online():
            try:
                self._close_directory(directory, now_ms, broker_epoch)
            except DiskError as error:
                self._note_directory_failed(directory, error)
        self.is_open = False
        self._logs.clear()
        self.directories.unlock_all()

    def _finish_background(self) -> None:
        """Wait for all that is under way, and for what follows from its end."""
        self.disk.finish_jobs()
        while self._flushes.is_busy or self._checkpoints.is_any_busy:
            self._flushes.settle_all()
            self._checkpoints.settle_all()
            self.disk.finish_jobs()

    def _close_directory(self, directory: LogDirectory, now_ms: int, broker_epoch: int) -> None:
        logs = self._logs_in(directory)
        if self.is_open:
            for log in logs:
                prepare_close(log)
                self._flushes.add(log, with_active=True)
            while self._flushes.has_ready:
                self._flushes.start(now_ms)
                self._finish_background()
            if not directory.is_online:
                return
            self._checkpoints.write_now(directory, CHECKPOINT_FILES)
            for log in logs:
                release_files(log)
        if self.is_open or directory.was_clean:
            self.directories.mark_clean(directory, broker_epoch)
