"""How long the turns of a loop take: a histogram for the bench, which asks for it by a variable.

With BARNABAS_LOOP_TURNS=FILE in the environment a broker writes `{"p999_ms": 1.2, "max_ms": 7.5}`
there when it is told to stop; the stop itself, which waits for syncs, serves nobody. Without it
nothing is measured.
"""

import json
import time
from pathlib import Path
from typing import Final

VARIABLE: Final = "BARNABAS_LOOP_TURNS"
PER_DOUBLING: Final = 16
"""Steps of the histogram between a time and its double: it is right to 6 %."""


class LoopTurns:
    """Counts turns by their length, from the end of one wait to the beginning of the next."""

    def __init__(self) -> None:
        self._began_ns = 0
        self._counts: dict[int, int] = {}
        self._total = 0
        self._max_ns = 0

    def begin(self) -> None:
        self._began_ns = time.monotonic_ns()

    def end(self) -> None:
        self.note(time.monotonic_ns() - self._began_ns)

    def note(self, taken_ns: int) -> None:
        """Count a turn."""
        doublings = max(taken_ns.bit_length() - 5, 0)
        step = doublings * PER_DOUBLING + (taken_ns >> doublings)
        self._counts[step] = self._counts.get(step, 0) + 1
        self._total += 1
        self._max_ns = max(self._max_ns, taken_ns)

    def percentile_ns(self, part: float) -> int:
        """A time that so many turns did not exceed, 1 for all of them."""
        missing = self._total * part
        for step in sorted(self._counts):
            missing -= self._counts[step]
            if missing <= 0:
                return min(_upper_end_ns(step), self._max_ns)
        return self._max_ns

    def write(self, path: Path) -> None:
        """Write what the bench reads."""
        told = {
            "p999_ms": self.percentile_ns(0.999) / 1e6,
            "max_ms": self._max_ns / 1e6,
            "turns": self._total,
        }
        path.write_text(json.dumps(told))


def _upper_end_ns(step: int) -> int:
    """The longest time that is counted in a step."""
    doublings = max(step // PER_DOUBLING - 1, 0)
    return ((step - doublings * PER_DOUBLING + 1) << doublings) - 1
