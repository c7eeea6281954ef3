"""A clone on a machine with nothing but git and Python does what the README says it does.

Both commands run as a new user types them: `./run demo` with all its records, and of `./run test`
the part that stands for it after an edit, `./run test --fast`. The rest of `./run test` is what
this test is a part of; without a compiler, Java and kcat most of it has nothing to compare with.
"""

import os
import re
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.tools import ROOT, need

TOOLS = ("sh", "env", "git", "cat", "cksum", "dirname", "find", "rm", "mkdir", "ls", "uname")
SECONDS_MAX = 400
ADDED_SECONDS_MAX = 0.2


class FreshMachine:
    """A home without files, a PATH without a compiler, and a clone."""

    def __init__(self, directory: Path) -> None:
        self.home = directory / "home"
        self.bin = directory / "bin"
        self.clone = directory / "barnabas"
        self.set_up = ""
        """What was said while everything was set up."""
        self.home.mkdir()
        self.bin.mkdir()
        for tool in TOOLS:
            (self.bin / tool).symlink_to(_which(tool))
        python = self.bin / "python3"
        real = Path(sys.executable).resolve()
        python.write_text(f'#!/bin/sh\nexec {real} "$@"\n')
        python.chmod(0o755)
        self.run(directory, "git", "clone", "--quiet", str(ROOT), str(self.clone))

    def environment(self) -> Mapping[str, str]:
        """What `env -i` leaves, and the way out to the network where a machine needs one named."""
        network = {
            name: text
            for name, text in os.environ.items()
            if name.startswith("PIP_") or name.lower().endswith("_proxy")
        }
        return {**network, "HOME": str(self.home), "PATH": str(self.bin)}

    def run(self, directory: Path, *command: str) -> "subprocess.CompletedProcess[str]":
        finished = self.try_to_run(directory, *command)
        told = finished.stdout[-4000:] + finished.stderr[-4000:]
        assert finished.returncode == 0, f"{' '.join(command)}: {told}"
        return finished

    def try_to_run(self, directory: Path, *command: str) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            command,
            cwd=directory,
            env=self.environment(),
            capture_output=True,
            text=True,
            timeout=SECONDS_MAX,
        )


def _which(tool: str) -> str:
    for folder in ("/usr/bin", "/bin", "/usr/local/bin"):
        path = Path(folder, tool)
        if path.exists():
            return str(path)
    raise FileNotFoundError(tool)


@pytest.fixture(scope="module")
def machine(tmp_path_factory: pytest.TempPathFactory) -> FreshMachine:
    need("git")
    made = FreshMachine(tmp_path_factory.mktemp("fresh"))
    # The first command of all sets everything up and says so, whichever test comes first.
    made.set_up = made.run(made.clone, "./run", "barnabas", "--version").stderr
    return made


@pytest.mark.timeout(SECONDS_MAX)
def test_the_demonstration_runs_without_a_compiler(machine: FreshMachine):
    finished = machine.run(machine.clone, "./run", "demo")
    assert "every acknowledged record is there once" in finished.stdout
    assert "installing requirements/demo.txt: half a minute" in machine.set_up
    assert "hot modules interpreted" in machine.set_up
    assert "apt-get install gcc" in machine.set_up
    assert "apt-get install kcat" in machine.set_up


@pytest.mark.timeout(SECONDS_MAX)
def test_tests_run_without_a_compiler(machine: FreshMachine):
    """Every one passes or is skipped for what is missing; how long they take is no question of
    the tools that are there, and their budget is not held to while other tests run beside them."""
    finished = machine.try_to_run(machine.clone, "./run", "test", "--fast")
    told = finished.stdout[-4000:] + finished.stderr[-4000:]
    assert re.search(r"\b[1-9]\d{3} passed", finished.stdout), told
    assert re.search(r"^fast .* min  (ok|OVER ITS BUDGET)$", finished.stdout, re.MULTILINE), told


@pytest.mark.timeout(SECONDS_MAX)
def test_a_second_start_costs_next_to_nothing(machine: FreshMachine):
    machine.run(machine.clone, "./run", "barnabas", "--version")
    program = str(machine.clone / ".venv" / "bin" / "python")
    through_run = min(_seconds(machine, "./run", "barnabas", "--version") for _ in range(5))
    alone = min(_seconds(machine, program, "-m", "barnabas", "--version") for _ in range(5))
    assert through_run - alone < ADDED_SECONDS_MAX


def _seconds(machine: FreshMachine, *command: str) -> float:
    began = time.monotonic()
    machine.run(machine.clone, *command)
    return time.monotonic() - began
