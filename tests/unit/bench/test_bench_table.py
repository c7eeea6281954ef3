"""The bench's table: what is held to a goal, and what is said when the machine is loaded."""

import json
from pathlib import Path

import pytest

from bench.run import EXIT_MISSED, QUIET_REQUESTS_PER_SECOND, _report
from bench.table import Cell, Line, render


def line(
    compiled: float | None = 4.0,
    goal: float | None = 5.0,
    interpreted: float | None = 9.0,
    ratio_goal: float | None = 2.2,
    reference: float | None = 2.0,
) -> Line:
    return Line("small", "us", reference, Cell(compiled, goal), Cell(interpreted, 10.0), ratio_goal)


@pytest.mark.parametrize(
    ("judged", "verdict"),
    [
        (line(), "ok"),
        (line(compiled=5.0, ratio_goal=None), "ok"),
        (line(compiled=5.1, ratio_goal=None), "MISSED"),
        (line(compiled=4.5), "MISSED"),
        (line(compiled=4.5, reference=None), "ok"),
        (line(interpreted=10.1), "MISSED"),
        (line(compiled=None, interpreted=None), "-"),
        (line(goal=None, ratio_goal=None, interpreted=None), "-"),
    ],
)
def test_a_line_is_held_to_each_of_its_goals(judged: Line, verdict: str) -> None:
    assert judged.verdict() == verdict


def test_the_table_shows_figures_goals_and_ratio() -> None:
    text = render([line(), line(compiled=None, reference=1234.5)])
    first, second = text.splitlines()[1:]
    assert first.split() == [
        "small",
        "us",
        "2",
        "4",
        "<=",
        "5",
        "2",
        "<=",
        "2.2",
        "9",
        "<=",
        "10",
        "ok",
    ]
    assert "1,234" in second
    assert second.split()[3] == "-"


def test_nothing_is_judged_on_a_loaded_machine(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    missed = [line(compiled=99)]
    figures = tmp_path / "figures.json"
    assert _report(missed, QUIET_REQUESTS_PER_SECOND - 1, figures) == 0
    assert "too loaded to judge" in capsys.readouterr().out
    assert _report(missed, None, figures) == 0
    assert "nothing is judged" in capsys.readouterr().out
    assert _report(missed, QUIET_REQUESTS_PER_SECOND, figures) == EXIT_MISSED
    assert "missed: small" in capsys.readouterr().out
    assert _report([line()], QUIET_REQUESTS_PER_SECOND, figures) == 0
    told = json.loads(figures.read_text())
    assert told["figures"][0]["compiled"] == 4.0
    assert told["reference_requests_per_second"] == QUIET_REQUESTS_PER_SECOND
