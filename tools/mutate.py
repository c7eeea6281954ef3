"""Breaks the decisions of core/ one by one and counts how many of the breaks a test notices.

    ./run test --long mutation [--below 80] [--jobs N] [--only TEXT]

Each mutant is one change of one operator, constant, condition or statement. The tests that run the
changed line are known from one traced run; a mutant is killed when one of them fails or hangs.
Survivors that may live stand in tools/mutation_survivors.txt with the reason.
"""

import argparse
import os
import signal
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "src")]
os.environ["BARNABAS_INTERPRETED"] = "1"
os.environ["BARNABAS_HYPOTHESIS"] = "steady"

import pytest  # noqa: E402

from tools.mutation_sites import Site, sites_of  # noqa: E402
from tools.mutation_tracing import (  # noqa: E402
    Coverage,
    MutatedImport,
    import_all_but,
    traced_run,
)

MUTATED = ROOT / "src" / "barnabas" / "core"
TESTS = ("tests/unit/core", "tests/model", "tests/scenarios", "tests/unit/broker")
SURVIVORS = ROOT / "tools" / "mutation_survivors.txt"
QUIET = ("-x", "-q", "--no-header", "-p", "no:randomly", "-p", "no:cacheprovider", "-p", "no:xdist")
SLACK_SECONDS = 10
SLACK_FACTOR = 10


class Mutant(NamedTuple):
    """One break, and the tests that could notice it, quickest first."""

    module: str
    number: int
    site: Site
    tests: tuple[str, ...]
    seconds: float

    @property
    def key(self) -> str:
        """How the break is written in the list of survivors: it outlives other edits."""
        return f"{self.module} {self.site.scope}: {self.site.before} -> {self.site.after}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--below", type=float, default=80, help="fail below so many percent")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--only", default="", help="mutants whose key holds this text")
    options = parser.parse_args()
    folders = [folder for folder in TESTS if (ROOT / folder).is_dir()]
    os.chdir(ROOT)
    began = time.monotonic()
    coverage = traced_run([*QUIET, *folders], MUTATED)
    import_all_but("barnabas.core", coverage.modules)
    mutants = [mutant for mutant in all_mutants(coverage) if options.only in mutant.key]
    print(f"{len(mutants)} mutants, {len(coverage.seconds)} tests", flush=True)
    survivors = run_all(mutants, options.jobs)
    return report(mutants, survivors, options.below, time.monotonic() - began)


def all_mutants(coverage: Coverage) -> Iterator[Mutant]:
    """Every mutant of every module below core."""
    for path in sorted(MUTATED.rglob("*.py")):
        module = ".".join(path.relative_to(ROOT / "src").with_suffix("").parts)
        for number, site in enumerate(sites_of(path)):
            tests = coverage.tests_of(str(path), site.line)
            seconds = sum(coverage.seconds[test] for test in tests)
            yield Mutant(module, number, site, tests, seconds)


def run_all(mutants: Sequence[Mutant], jobs: int) -> list[Mutant]:
    """The mutants that no test noticed; each runs in a fork of this process."""
    survivors = [mutant for mutant in mutants if not mutant.tests]
    waiting = [mutant for mutant in mutants if mutant.tests]
    total = len(waiting)
    running: dict[int, Mutant] = {}
    done = 0
    while waiting or running:
        while waiting and len(running) < jobs:
            mutant = waiting.pop(0)
            running[fork(mutant)] = mutant
        pid, status = os.wait()
        mutant = running.pop(pid)
        done += 1
        if status == 0:
            survivors.append(mutant)
            print(f"survived  {mutant.site.line:4}  {mutant.key}", flush=True)
        if done % 200 == 0:
            print(f"{done} of {total}, {len(survivors)} survived", flush=True)
    return survivors


def fork(mutant: Mutant) -> int:
    """Run a mutant's tests in a child; it exits with 0 when all of them passed."""
    pid = os.fork()
    if pid:
        return pid
    status = 1
    try:
        silence = os.open(os.devnull, os.O_WRONLY)
        os.dup2(silence, 1)
        os.dup2(silence, 2)
        # A mutant that hangs is ended by the alarm, and so counts as noticed.
        signal.alarm(int(SLACK_SECONDS + SLACK_FACTOR * mutant.seconds))
        sys.meta_path.insert(0, MutatedImport(mutant.module, mutant.number))
        status = int(pytest.main([*QUIET, *mutant.tests]))
    finally:
        os._exit(status)


def report(
    mutants: Sequence[Mutant], survivors: Sequence[Mutant], below: float, seconds: float
) -> int:
    """Print what survived and why it may; 1 when too many did or one has no reason."""
    reasons = dict(read_survivors())
    unexplained = [mutant for mutant in survivors if mutant.key not in reasons]
    print("\nsurvivors without a reason:" if unexplained else "\nevery survivor has its reason")
    for mutant in sorted(unexplained, key=lambda m: (m.module, m.site.line)):
        untested = "" if mutant.tests else "   (no test runs it)"
        print(f"  {mutant.key}   line {mutant.site.line}{untested}")
    killed = len(mutants) - len(survivors)
    percent = 100 * killed / max(1, len(mutants))
    print(
        f"\n{killed} of {len(mutants)} killed: {percent:.1f} %, wanted {below:g} %;"
        f" {len(survivors) - len(unexplained)} survivors with a reason, {len(unexplained)} without;"
        f" {seconds / 60:.1f} min"
    )
    return 1 if percent < below else 0


def read_survivors() -> Iterator[tuple[str, str]]:
    """The survivors that may live: a line for the mutant, a line behind it for the reason."""
    if not SURVIVORS.exists():
        return
    key = ""
    for line in SURVIVORS.read_text(encoding="utf-8").splitlines():
        if line.startswith("    ") and key:
            yield key, line.strip()
        elif line and not line.startswith("#"):
            key = line


if __name__ == "__main__":
    sys.exit(main())
