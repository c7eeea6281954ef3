"""Lines that would come by the hundred: the first of a kind at once, then a number per period."""

from collections.abc import Callable
from typing import NamedTuple

from barnabas.broker.deadlines import Deadlines


class Line(NamedTuple):
    """A line of the log before it has its time."""

    level: str
    text: str


class Kind(NamedTuple):
    """What belongs together, and how much of it is written."""

    name: str
    at_once: int
    """Lines that are written as they come before a period's rest is only counted."""
    period_ms: int


class _Run:
    """One kind, from its first line to a period without any."""

    __slots__ = ("count", "last", "written")

    def __init__(self) -> None:
        self.written = 0
        self.count = 0
        self.last = Line("", "")


class RepeatedLines:
    """Writes some lines and counts the others; a kind that was quiet for a period begins anew.

    Callers have a fixed number of kinds, or one for each broker of the cluster.
    """

    def __init__(self, timers: Deadlines, write: Callable[[Line], object]) -> None:
        self._timers = timers
        self._write = write
        self._runs: dict[Kind, _Run] = {}

    def note(self, kind: Kind, line: Line, now_ms: int, count: int = 1) -> None:
        """Write the line, or keep it for the end of the period."""
        run = self._runs.get(kind)
        if run is None:
            run = self._runs[kind] = _Run()
            self._end_later(kind, run, now_ms)
        if run.written < kind.at_once:
            run.written += 1
            self._write(line)
            return
        run.count += count
        run.last = line

    def forget(self, kind: Kind) -> None:
        """What was counted is told by somebody who knows more."""
        run = self._runs.get(kind)
        if run is not None:
            run.count = 0

    def close(self) -> None:
        """Tell what was counted so far."""
        for kind, run in self._runs.items():
            self._tell(kind, run)
        self._runs.clear()

    def _end_later(self, kind: Kind, run: _Run, now_ms: int) -> None:
        self._timers.at(now_ms + kind.period_ms, lambda ended_ms: self._end(kind, run, ended_ms))

    def _end(self, kind: Kind, run: _Run, now_ms: int) -> None:
        if self._runs.get(kind) is not run:
            return
        if not run.count:
            del self._runs[kind]
            return
        self._tell(kind, run)
        self._end_later(kind, run, now_ms)

    def _tell(self, kind: Kind, run: _Run) -> None:
        if run.count:
            within = f"{run.count} more within {kind.period_ms // 1000} s"
            self._write(Line(run.last.level, f"{run.last.text} ({within})"))
            run.count = 0
