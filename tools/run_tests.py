"""Runs the tests part by part, cheap parts first, and holds each part to its minutes.

./run test                     every part; BARNABAS_REQUIRE=all fails where a tool is missing
./run test --fast [ARGS]       unit, model and codec tests
./run test --part NAME [ARGS]  one part
./run test PATH... [ARGS]      what pytest is told
./run test --long NAME [ARGS]  a form that takes too long for every day; `list` names them
"""

import os
import subprocess
import sys
import time
from collections.abc import Sequence
from fnmatch import fnmatch
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent


class Part(NamedTuple):
    """Test files that share a budget; a file belongs to the first part with a pattern for it."""

    name: str
    minutes: float
    patterns: tuple[str, ...]
    pytest: tuple[str, ...] = ()
    environment: tuple[tuple[str, str], ...] = ()
    waited_for: float | None = None
    """Minutes after which somebody who waits for it is told that it was too long."""


FEWER_CASES = (("BARNABAS_HYPOTHESIS", "fast"),)
INTERPRETED = (("BARNABAS_INTERPRETED", "1"),)
SPREAD = ("-n", "auto", "--dist", "worksteal")
BY_FILE = ("-n", "2", "--dist", "loadfile")

PARTS = (
    Part("fast", 2, ("tests/unit/*", "tests/model/*", "tests/tidy/*"), SPREAD),
    Part(
        "store",
        5,
        ("tests/conformance/*zookeeper*", "tests/conformance/*znode*", "tests/e2e/*metadata*"),
        BY_FILE,
    ),
    Part("cluster and proof", 14, ("tests/scenarios/*",), SPREAD),
    Part("pipelines", 9, ("tests/pipelines/*",), BY_FILE),
    Part("broker and program", 12, ("tests/conformance/*", "tests/e2e/*"), BY_FILE),
)
"""In the order they run in. The budgets are promises: a part that breaks its own fails."""

INTERPRETED_AGAIN = ("fast",)
"""Parts that run once more with the hot modules interpreted, where they are compiled."""

LONG = {
    "fuzz": ["tools/fuzz.py"],
    "mutation": ["tools/mutate.py"],
}
"""The long forms, each a program of its own."""


def main(arguments: list[str]) -> int:
    if arguments[:1] == ["--long"]:
        return run_long(arguments[1:])
    if arguments[:1] == ["--fast"]:
        fast = _part("fast")._replace(environment=FEWER_CASES, waited_for=1)
        return run_parts([fast], arguments[1:])
    if arguments[:1] == ["--part"] and len(arguments) > 1:
        return run_parts([_part(arguments[1])], arguments[2:])
    if any(not argument.startswith("-") for argument in arguments):
        return subprocess.run([sys.executable, "-m", "pytest", *arguments], cwd=ROOT).returncode
    return run_parts(_with_interpreted(PARTS), arguments)


def run_long(arguments: Sequence[str]) -> int:
    if not arguments or arguments[0] not in LONG:
        print(f"./run test --long NAME, with a name out of: {', '.join(sorted(LONG))}")
        return 0 if arguments[:1] == ["list"] else 2
    command = [sys.executable, *LONG[arguments[0]], *arguments[1:]]
    return subprocess.run(command, cwd=ROOT).returncode


def run_parts(parts: Sequence[Part], arguments: Sequence[str]) -> int:
    """Run the parts that have files; 1 when a test failed or a budget was broken."""
    verdicts: list[str] = []
    failed = False
    for part in parts:
        files = files_of(part)
        if not files:
            continue
        print(f"-- {part.name} ({len(files)} files)", flush=True)
        began = time.monotonic()
        finished = subprocess.run(
            [sys.executable, "-m", "pytest", *part.pytest, *arguments, *files],
            cwd=ROOT,
            env={**os.environ, **dict(part.environment)},
        )
        minutes = (time.monotonic() - began) / 60
        verdict = "ok"
        if finished.returncode != 0:
            verdict = "FAILED"
        elif minutes > part.minutes:
            verdict = "OVER ITS BUDGET"
        failed = failed or verdict != "ok"
        verdicts.append(f"{part.name:28} {minutes:5.2f} of {part.minutes:g} min  {verdict}")
        print(f"-- {verdicts[-1]}", flush=True)
        if part.waited_for is not None and minutes > part.waited_for:
            print(
                f"-- WARNING: {60 * minutes:.0f} s, and {60 * part.waited_for:g} are promised of"
                " a quiet machine; --durations=20 lists the slowest tests"
            )
    print("\n".join(["", "minutes per part", *verdicts]))
    return 1 if failed else 0


def test_files() -> list[str]:
    """Every test module, relative to the root."""
    return sorted(str(path.relative_to(ROOT)) for path in (ROOT / "tests").rglob("test_*.py"))


def files_of(part: Part) -> list[str]:
    """The files of a part: those that match it and no part before it."""
    name = part.name.partition(",")[0]
    return [file for file in test_files() if part_of(file) == name]


def part_of(file: str) -> str | None:
    """The name of the part that a test file belongs to."""
    for part in PARTS:
        if any(fnmatch(file, pattern) for pattern in part.patterns):
            return part.name
    return None


def _part(name: str) -> Part:
    for part in PARTS:
        if part.name == name:
            return part
    raise SystemExit(f"no part is named {name}: {', '.join(part.name for part in PARTS)}")


def _with_interpreted(parts: Sequence[Part]) -> list[Part]:
    """The parts, and the ones to repeat without the compiled modules right behind them."""
    repeated: list[Part] = []
    for part in parts:
        repeated.append(part)
        if part.name in INTERPRETED_AGAIN and _is_compiled():
            name = f"{part.name}, interpreted"
            repeated.append(part._replace(name=name, environment=INTERPRETED))
    return repeated


def _is_compiled() -> bool:
    asked = "import sys; from barnabas import compiled; sys.exit(not compiled.is_compiled())"
    return subprocess.run([sys.executable, "-c", asked], cwd=ROOT).returncode == 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
