"""Logs that have something to flush or to write, done in batches off the loop."""

from collections.abc import Callable
from functools import partial

from barnabas.model.errors import DiskError, FileMissing
from barnabas.storage.disk import Disk, DiskJob
from barnabas.storage.flushing import FlushPlan, carry_out_all, plan_flush
from barnabas.storage.partition_log import PartitionLog

LOGS_PER_JOB_MAX = 32

OnFailed = Callable[[PartitionLog, DiskError], None]


class FlushQueue:
    """Keeps each log at most once, and at most one flush of a log under way."""

    __slots__ = ("_disk", "_on_failed", "_under_way", "_waiting", "now_ms")

    def __init__(self, disk: Disk, on_failed: OnFailed) -> None:
        self._disk = disk
        self._on_failed = on_failed
        self._waiting: dict[PartitionLog, bool] = {}
        """Whether the active segment is to be durable too."""
        self._under_way: dict[int, list[FlushPlan]] = {}
        """Plans handed over, by the identity of their job."""
        self.now_ms = 0

    def __len__(self) -> int:
        return len(self._waiting)

    def add(self, log: PartitionLog, *, with_active: bool) -> None:
        self._waiting[log] = with_active or self._waiting.get(log, False)

    def discard(self, log: PartitionLog) -> None:
        self._waiting.pop(log, None)

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
                continue  # The log before it has taken the directory offline.
            try:
                plan = plan_flush(log, with_active=with_active)
            except DiskError:
                continue  # The log has told its owner.
            if plan.is_empty:
                plan.settle(now_ms, True)
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
            if plan.error is None or log.is_lost:
                continue
            if not (isinstance(plan.error, FileMissing) and log.is_retired):
                self._on_failed(log, plan.error)

    def settle_all(self) -> None:
        """After `Disk.finish_jobs`: take over what was done; its delivery finds nothing left."""
        under_way, self._under_way = self._under_way, {}
        for plans in under_way.values():
            self._take_over(plans)
