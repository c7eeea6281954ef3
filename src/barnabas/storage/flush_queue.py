"""Logs that have something to flush or to write, done in batches off the loop."""

from collections.abc import Callable, Iterable
from functools import partial

from barnabas.model.errors import DiskError, FileMissing
from barnabas.storage.disk import Disk, DiskJob
from barnabas.storage.flushing import FlushPlan, carry_out_all, plan_flush
from barnabas.storage.partition_log import PartitionLog

LOGS_PER_JOB_MAX = 32

OnFailed = Callable[[PartitionLog, DiskError], None]


class Wait:
    """Logs whose topic ids are not durable yet, and what is to be done when they are."""

    __slots__ = ("logs", "then")

    def __init__(self, logs: dict[PartitionLog, None], then: Callable[[], None]) -> None:
        self.logs = logs
        self.then = then


class FlushQueue:
    """Keeps each log at most once, and at most one flush of a log under way."""

    __slots__ = ("_disk", "_on_failed", "_under_way", "_waiting", "_waits", "now_ms")

    def __init__(self, disk: Disk, on_failed: OnFailed) -> None:
        self._disk = disk
        self._on_failed = on_failed
        self._waiting: dict[PartitionLog, bool] = {}
        """Whether the active segment is to be durable too."""
        self._under_way: dict[int, list[FlushPlan]] = {}
        """Plans handed over, by the identity of their job."""
        self._waits: list[Wait] = []
        """One for the control request that is being carried out."""
        self.now_ms = 0

    def __len__(self) -> int:
        return len(self._waiting)

    def add(self, log: PartitionLog, *, with_active: bool) -> None:
        self._waiting[log] = with_active or self._waiting.get(log, False)

    def discard(self, log: PartitionLog) -> None:
        self._waiting.pop(log, None)
        self._note_settled(log)

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
        """Whether some log waits that is not being flushed already."""
        return any(not log.is_flushing for log in self._waiting)

    def start(self, now_ms: int) -> None:
        """Plan what waits and hand it to the disk."""
        self.now_ms = now_ms
        plans: list[FlushPlan] = []
        for log in [log for log in self._waiting if not log.is_flushing]:
            with_active = self._waiting.pop(log, None)
            if with_active is None or log.is_lost:
                self._note_settled(log)
                continue  # The log before it has taken the directory offline.
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
            plans.append(plan)
            if len(plans) == LOGS_PER_JOB_MAX:
                self._hand_over(plans)
                plans = []
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
        for plan in plans:
            plan.settle(self.now_ms, plan.error is None)
            log = plan.log
            log.is_flushing = False
            if not (
                plan.error is None
                or log.is_lost
                or (isinstance(plan.error, FileMissing) and log.is_retired)
            ):
                self._on_failed(log, plan.error)
            if log.is_lost or not log.is_metadata_dirty:
                self._note_settled(log)

    def settle_all(self) -> None:
        """After `Disk.finish_jobs`: take over what was done; its delivery finds nothing left."""
        under_way, self._under_way = self._under_way, {}
        for plans in under_way.values():
            self._take_over(plans)
