"""Breaks the decisions of core/ one by one and counts how many of the breaks a test notices.

    ./run test --long mutation [--below 80] [--jobs N] [--only TEXT] [--verdicts FILE]

Each mutant is one change of one operator, constant, condition or statement. The tests that run the
changed line are known from one traced run; a mutant is killed when one of them fails or hangs. One
that cannot even be imported breaks no decision and is not counted. Survivors that may live stand in
tools/mutation_survivors.txt with the reason. Every verdict is written to a file as it falls, so
that a run that was ended goes on where it was, as long as neither the source nor a test changed.
"""

import argparse
import hashlib
import importlib
import os
import resource
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "src")]
os.environ["BARNABAS_INTERPRETED"] = "1"
os.environ["BARNABAS_HYPOTHESIS"] = "unshrunk"

import pytest  # noqa: E402

from tools.mutation_sites import Site, sites_of  # noqa: E402
from tools.mutation_tracing import (  # noqa: E402
    Coverage,
    MutatedImport,
    TimeLimit,
    import_all_but,
    traced_run,
)

MUTATED = ROOT / "src" / "barnabas" / "core"
TESTS = ("tests/unit/core", "tests/model", "tests/scenarios", "tests/unit/broker")
SURVIVORS = ROOT / "tools" / "mutation_survivors.txt"
TIMED = ("tests/scenarios/test_two_brokers.py::test_a_thousand_virtual_seconds_take_less_than_one",)
"""Tests that hold a stopwatch: on a busy machine they would notice what they cannot see."""
QUIET = (
    *("-x", "-q", "--no-header", "-p", "no:randomly", "-p", "no:cacheprovider", "-p", "no:xdist"),
    *(f"--deselect={test}" for test in TIMED),
)
MUTANT_QUIET = (*QUIET, "--tb=no")
VERDICTS = ROOT / ".cache" / "mutation-verdicts.txt"
MEMORY_MAX_BYTES = 2 << 30
"""A mutant whose loop collects for ever is noticed when it has taken so much."""
KILLED, SURVIVED, STILLBORN = "killed", "survived", "stillborn"


class Mutant(NamedTuple):
    """One break, and the tests that could notice it, quickest first."""

    module: str
    number: int
    site: Site
    tests: tuple[str, ...]

    @property
    def place(self) -> tuple[str, int]:
        return self.module, self.number

    @property
    def key(self) -> str:
        """How the break is written in the list of survivors: it outlives other edits."""
        return f"{self.module} {self.site.scope}: {self.site.before} -> {self.site.after}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--below", type=float, default=80, help="fail below so many percent")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--only", default="", help="mutants whose key holds this text")
    parser.add_argument("--verdicts", type=Path, default=VERDICTS, help="where they are kept")
    options = parser.parse_args()
    folders = [folder for folder in TESTS if (ROOT / folder).is_dir()]
    os.chdir(ROOT)
    state = state_of_tree()
    coverage = traced_run([*QUIET, *folders], MUTATED)
    import_all_but("barnabas.core", coverage.modules)
    mutants = [mutant for mutant in all_mutants(coverage) if options.only in mutant.key]
    print(f"{len(mutants)} mutants, {len(coverage.seconds)} tests", flush=True)
    verdicts = read_verdicts(options.verdicts, state)
    run_all(mutants, coverage.seconds, options.jobs, verdicts, options.verdicts)
    if state_of_tree() != state:
        raise SystemExit("the source or the tests were changed meanwhile: nothing is proven")
    return report(mutants, verdicts, options.below)


def state_of_tree() -> str:
    """A digest of everything that the verdicts depend on."""
    files = [
        file
        for folder in ("src", "tests", "tools")
        for file in (ROOT / folder).rglob("*")
        if file.suffix in (".py", ".jsonl") and "_compiled" not in file.parts
    ]
    digest = hashlib.sha256()
    for file in sorted(files):
        digest.update(str(file.relative_to(ROOT)).encode() + file.read_bytes())
    return digest.hexdigest()


def read_verdicts(path: Path, state: str) -> dict[tuple[str, int], str]:
    """What an earlier run of the same tree found out; a new file for any other tree."""
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    if lines[:1] != [state]:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{state}\n", encoding="utf-8")
        return {}
    words = [line.split(maxsplit=3) for line in lines[1:]]
    return {(module, int(number)): verdict for verdict, module, number, _ in words}


def all_mutants(coverage: Coverage) -> Iterator[Mutant]:
    """Every mutant of every module below core."""
    for path in sorted(MUTATED.rglob("*.py")):
        module = ".".join(path.relative_to(ROOT / "src").with_suffix("").parts)
        for number, site in enumerate(sites_of(path)):
            yield Mutant(module, number, site, coverage.tests_of(str(path), site.line, module))


def run_all(
    mutants: Sequence[Mutant],
    seconds: Mapping[str, float],
    jobs: int,
    verdicts: dict[tuple[str, int], str],
    path: Path,
) -> None:
    """Find the verdict of every mutant that has none; each runs in a fork of this process."""
    waiting = [mutant for mutant in mutants if mutant.place not in verdicts]
    running: dict[int, Mutant] = {}
    while waiting or running:
        while waiting and len(running) < jobs:
            mutant = waiting.pop(0)
            running[fork(mutant, seconds)] = mutant
        pid, status = os.wait()
        mutant = running.pop(pid)
        verdicts[mutant.place] = verdict = verdict_of(status)
        with path.open("a", encoding="utf-8") as file:
            file.write(f"{verdict} {mutant.module} {mutant.number} {mutant.key}\n")
        if verdict == SURVIVED:
            print(f"survived  {mutant.site.line:4}  {mutant.key}", flush=True)
        if len(verdicts) % 100 == 0:
            count = sum(one == SURVIVED for one in verdicts.values())
            print(f"{len(verdicts)} of {len(mutants)}, {count} survived", flush=True)


def verdict_of(status: int) -> str:
    """What the end of a mutant's child says: its tests passed, failed or could not be collected."""
    if status == 0:
        return SURVIVED
    is_failure = os.WIFSIGNALED(status) or os.WEXITSTATUS(status) == pytest.ExitCode.TESTS_FAILED
    return KILLED if is_failure else STILLBORN


def fork(mutant: Mutant, seconds: Mapping[str, float]) -> int:
    """Run a mutant's tests in a child; it exits as pytest would, or is ended when one hangs."""
    pid = os.fork()
    if pid:
        return pid
    if not mutant.tests:
        os._exit(0)
    # What stands when the mutant cannot be imported.
    status = pytest.ExitCode.USAGE_ERROR
    try:
        silence = os.open(os.devnull, os.O_WRONLY)
        os.dup2(silence, 1)
        os.dup2(silence, 2)
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY_MAX_BYTES, MEMORY_MAX_BYTES))
        sys.meta_path.insert(0, MutatedImport(mutant.module, mutant.number))
        importlib.import_module(mutant.module)
        arguments = [*MUTANT_QUIET, *mutant.tests]
        status = pytest.main(arguments, plugins=[TimeLimit(seconds)])
        if status == pytest.ExitCode.USAGE_ERROR:
            # The mutant changed the names of tests: their files, whole.
            files = dict.fromkeys(test.partition("::")[0] for test in mutant.tests)
            arguments = [*MUTANT_QUIET, *files]
            status = pytest.main(arguments, plugins=[TimeLimit(seconds)])
    finally:
        os._exit(int(status))


def report(mutants: Sequence[Mutant], verdicts: Mapping[tuple[str, int], str], below: float) -> int:
    """Print what survived and why it may; 1 when too many did or one has no reason."""
    reasons = read_survivors()
    counted = [mutant for mutant in mutants if verdicts[mutant.place] != STILLBORN]
    survivors = [mutant for mutant in counted if verdicts[mutant.place] == SURVIVED]
    unexplained: list[Mutant] = []
    for mutant in sorted(survivors, key=lambda m: (m.module, m.site.line)):
        if reasons[mutant.key] > 0:
            reasons[mutant.key] -= 1
        else:
            unexplained.append(mutant)
    print("\nsurvivors without a reason:" if unexplained else "\nevery survivor has its reason")
    for mutant in unexplained:
        untested = "" if mutant.tests else "   (no test runs it)"
        print(f"  {mutant.key}   line {mutant.site.line}{untested}")
    known = {mutant.key for mutant in mutants}
    for key in sorted(key for key in +reasons if key in known):
        print(f"a reason for what was killed: {key}")
    killed = len(counted) - len(survivors)
    percent = 100 * killed / max(1, len(counted))
    print(
        f"\n{killed} of {len(counted)} killed: {percent:.1f} %, wanted {below:g} %;"
        f" {len(survivors) - len(unexplained)} survivors with a reason, {len(unexplained)} without;"
        f" {len(mutants) - len(counted)} could not be imported"
    )
    return 1 if percent < below or unexplained else 0


def read_survivors() -> Counter[str]:
    """How many of each that may live: a line for the mutant, one behind it for the reason."""
    if not SURVIVORS.exists():
        return Counter()
    lines = SURVIVORS.read_text(encoding="utf-8").splitlines()
    return Counter(key for key, reason in pairwise(lines) if reason.startswith("    "))


if __name__ == "__main__":
    sys.exit(main())
