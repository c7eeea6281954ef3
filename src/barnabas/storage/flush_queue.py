"""Logs that have something to flush or to write, done in batches off the loop."""

from collections import OrderedDict
from collections.abc import Callable, Iterable
from functools import partial

from barnabas.model.errors import DiskError
from barnabas.storage.disk import Disk, DiskJob
from barnabas.storage.flushing import FlushPlan, carry_out_all, plan_flush
from barnabas.storage.partition_log import PartitionLog

LOGS_PER_JOB_MAX = 32
JOBS_AT_ONCE = 4
"""However few files there may be, so many jobs share them: syncs that meet cost less."""

OnFailed = Callable[[PartitionLog, DiskError], None]
Idle = Callable[[], None]


class Wait:
    """Logs whose topic ids are not durable yet, and what is to be done when they are."""

    __slots__ = ("logs", "then")

    def __init__(self, logs: dict[PartitionLog, None], then: Callable[[], None]) -> None:
        self.logs = logs
        self.then = then


class FlushQueue:
    """Keeps each log at most once, and at most one flush of a log under way."""

    __slots__ = (
        "_again",
        "_disk",
        "_files_max",
        "_held_files",
        "_holds",
        "_idle",
        "_on_failed",
        "_ready",
        "_under_way",
        "_waits",
        "now_ms",
    )

    def __init__(self, disk: Disk, on_failed: OnFailed) -> None:
        self._disk = disk
        self._on_failed = on_failed
        self._files_max = disk.open_files_max // 4
        """Files that flushes under way may hold open before another one is begun."""
        self._held_files = 0
        self._ready: OrderedDict[PartitionLog, bool] = OrderedDict()
        """Whether the active segment is to be durable too."""
        self._again: dict[PartitionLog, bool] = {}
        """The same, of logs that are being flushed or held."""
        self._holds: dict[PartitionLog, int] = {}
        self._idle: dict[PartitionLog, list[Idle]] = {}
        """Who waits for the end of a log's flush."""
        self._under_way: dict[int, list[FlushPlan]] = {}
        """Plans handed over, by the identity of their job."""
        self._waits: list[Wait] = []
        """One for the control request that is being carried out."""
        self.now_ms = 0

    def __len__(self) -> int:
        return len(self._ready) + len(self._again)

    def add(self, log: PartitionLog, *, with_active: bool) -> None:
        waiting = self._again if log.is_flushing or log in self._holds else self._ready
        waiting[log] = with_active or waiting.get(log, False)

    def discard(self, log: PartitionLog) -> None:
        """Nothing of the log is to be flushed any more; what is under way goes on."""
        self._ready.pop(log, None)
        self._again.pop(log, None)
        self._note_settled(log)

    def hold(self, log: PartitionLog, then: Idle) -> None:
        """Begin no flush of the log until `let_go`; `then` is called once none is under way."""
        self._holds[log] = self._holds.get(log, 0) + 1
        if log in self._ready:
            self._again[log] = self._ready.pop(log)
        if log.is_flushing:
            self._idle.setdefault(log, []).append(then)
        else:
            then()

    def let_go(self, log: PartitionLog) -> None:
        """Undo one `hold`."""
        self._holds[log] -= 1
        if not self._holds[log]:
            del self._holds[log]
            self._make_ready(log)

    def _make_ready(self, log: PartitionLog) -> None:
        """What was asked for meanwhile can be begun, unless something still keeps the log."""
        if log in self._again and not log.is_flushing and log not in self._holds:
            self._ready[log] = self._again.pop(log)

    def when_topic_ids_are_durable(
        self, logs: Iterable[PartitionLog], then: Callable[[], None]
    ) -> None:
        """Call `then` when the id of each log is on disk for good, or the log is lost."""
        pending = {log: None for log in logs if log.is_metadata_dirty or log.is_flushing}
        if pending:
            self._waits.append(Wait(pending, then))
        else:
            then()

    def _note_settled(self, log: PartitionLog) -> None:
        for wait in self._waits:
            wait.logs.pop(log, None)
        done = [wait for wait in self._waits if not wait.logs]
        if done:
            self._waits = [wait for wait in self._waits if wait.logs]
            for wait in done:
                wait.then()

    @property
    def has_ready(self) -> bool:
        """Whether a flush can be begun."""
        return bool(self._ready) and not self._is_full

    @property
    def _is_full(self) -> bool:
        return self._held_files > 0 and self._held_files >= self._files_max

    @property
    def is_busy(self) -> bool:
        """Whether a flush is under way."""
        return bool(self._under_way)

    def start(self, now_ms: int) -> None:
        """Plan what waits and hand it to the disk, as far as the files suffice."""
        self.now_ms = now_ms
        plans: list[FlushPlan] = []
        files_in_job = 0
        for _ in range(len(self._ready)):
            if not self._ready or self._is_full:
                break  # What failed may have taken the rest with its directory.
            log, with_active = self._ready.popitem(last=False)
            if log.is_lost:
                self._note_settled(log)
                continue
            try:
                plan = plan_flush(log, with_active=with_active)
            except DiskError:
                self._note_settled(log)
                continue  # The log has told its owner.
            if plan.is_empty:
                plan.settle(now_ms, True)
                self._note_settled(log)
                continue
            log.is_flushing = True
            self._held_files += plan.file_count
            plans.append(plan)
            files_in_job += plan.file_count
            if len(plans) == LOGS_PER_JOB_MAX or files_in_job * JOBS_AT_ONCE >= self._files_max:
                self._hand_over(plans)
                plans = []
                files_in_job = 0
        if plans:
            self._hand_over(plans)

    def _hand_over(self, plans: list[FlushPlan]) -> None:
        job = DiskJob("flush", partial(carry_out_all, plans), self._settle)
        self._under_way[id(job)] = plans
        self._disk.run(job)

    def _settle(self, job: DiskJob) -> None:
        plans = self._under_way.pop(id(job), None)
        if plans is None:
            return
        if job.error is not None:
            raise job.error
        self._take_over(plans)

    def _take_over(self, plans: list[FlushPlan]) -> None:
        waiting: list[Idle] = []
        for plan in plans:
            self._held_files -= plan.file_count
            plan.settle(self.now_ms, plan.error is None)
            log = plan.log
            if plan.is_partial and not log.is_lost:
                self.add(log, with_active=plan.with_active)
            log.is_flushing = False
            self._make_ready(log)
            waiting += self._idle.pop(log, ())
            if plan.error is not None:
                self._on_failed(log, plan.error)
            if log.is_lost or not log.is_metadata_dirty:
                self._note_settled(log)
        for then in waiting:
            then()

    def settle_all(self) -> None:
        """After `Disk.finish_jobs`: take over what was done; its delivery finds nothing left."""
        under_way, self._under_way = self._under_way, {}
        for plans in under_way.values():
            self._take_over(plans)
