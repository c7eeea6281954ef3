"""What `./run test` says of the minutes that its parts take."""

import subprocess
from collections.abc import Mapping
from typing import Any

import pytest

from tools import run_tests


class Pytest:
    """Stands in for it: takes its time, and keeps what it was started with."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, seconds: float) -> None:
        self._seconds = seconds
        self._now = 0.0
        self.environments: list[Mapping[str, str]] = []
        monkeypatch.delenv("BARNABAS_HYPOTHESIS", raising=False)
        monkeypatch.setattr(run_tests.subprocess, "run", self._run)
        monkeypatch.setattr(run_tests.time, "monotonic", lambda: self._now)

    def _run(self, command: list[str], **how: Any) -> "subprocess.CompletedProcess[str]":
        self._now += self._seconds
        self.environments.append(how.get("env", {}))
        return subprocess.CompletedProcess(command, 0)


@pytest.mark.parametrize(
    ("seconds", "status", "is_warned"), [(55, 0, False), (65, 0, True), (125, 1, True)]
)
def test_a_fast_run_warns_above_a_minute_and_fails_above_its_budget(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    seconds: float,
    status: int,
    is_warned: bool,
) -> None:
    Pytest(monkeypatch, seconds)
    assert run_tests.main(["--fast"]) == status
    assert (f"WARNING: {seconds} s" in capsys.readouterr().out) == is_warned


def test_fewer_cases_are_tried_by_the_fast_run_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    fake = Pytest(monkeypatch, 1)
    assert run_tests.main(["--fast"]) == 0
    assert run_tests.main(["--part", "fast"]) == 0
    assert run_tests.main([]) == 0
    assert [one.get("BARNABAS_HYPOTHESIS") for one in fake.environments] == [
        "fast",
        *[None] * (len(fake.environments) - 1),
    ]
