"""The table of figures: measured, the goal beside it, and whether it was reached."""

from collections.abc import Sequence
from typing import NamedTuple

REACHED = "ok"
MISSED = "MISSED"
UNJUDGED = "-"


class Cell(NamedTuple):
    """A figure, with the goal it is held to if there is one; smaller is better."""

    value: float | None
    goal: float | None = None

    def verdict(self) -> str:
        if self.value is None or self.goal is None:
            return UNJUDGED
        return REACHED if self.value <= self.goal else MISSED


class Line(NamedTuple):
    """One figure of all brokers; `ratio_goal` holds the compiled one to so many times C's."""

    name: str
    unit: str
    reference: float | None
    compiled: Cell
    interpreted: Cell
    ratio_goal: float | None = None

    def ratio(self) -> float | None:
        if self.reference and self.compiled.value is not None:
            return self.compiled.value / self.reference
        return None

    def verdict(self) -> str:
        ratio = self.ratio()
        judged = [self.compiled.verdict(), self.interpreted.verdict()]
        if ratio is not None and self.ratio_goal is not None:
            judged.append(REACHED if ratio <= self.ratio_goal else MISSED)
        if MISSED in judged:
            return MISSED
        return REACHED if REACHED in judged else UNJUDGED


HEADINGS = ("figure", "unit", "C", "compiled", "goal", "x C", "goal", "interpreted", "goal", "")


def render(lines: Sequence[Line]) -> str:
    """Plain text, one row per figure."""
    rows = [HEADINGS] + [
        (
            line.name,
            line.unit,
            _number(line.reference),
            _number(line.compiled.value),
            _bound(line.compiled.goal),
            _number(line.ratio()),
            _bound(line.ratio_goal),
            _number(line.interpreted.value),
            _bound(line.interpreted.goal),
            line.verdict(),
        )
        for line in lines
    ]
    widths = [max(len(row[column]) for row in rows) for column in range(len(HEADINGS))]
    return "\n".join(
        "  ".join(
            text.ljust(width) if column < 2 else text.rjust(width)
            for column, (text, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    )


def _number(value: float | None) -> str:
    if value is None:
        return "-"
    if abs(value) >= 1000:
        return f"{value:,.0f}"
    return f"{value:.3g}"


def _bound(goal: float | None) -> str:
    return "" if goal is None else f"<= {goal:g}"
