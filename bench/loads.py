"""Runs of the load generator and what they told."""

import json
import subprocess
from collections.abc import Sequence
from statistics import median
from typing import NamedTuple

from bench.brokers import (
    FETCH_PARTITIONS,
    FETCH_TOPIC,
    PARK_TOPIC,
    PARTITIONS,
    TOPIC,
    BenchBroker,
)
from bench.programs import Programs

EXTRA_SECONDS = 60.0


class LoadFailed(Exception):
    """The generator or the broker gave up; the text is what the generator said."""


class Load(NamedTuple):
    """What is asked of a broker; `name` is the figure's name in the table."""

    name: str
    mode: str
    connections: int
    in_flight: int = 1
    record_bytes: int = 100
    records: int = 1
    max_bytes: int = 1024 * 1024
    rate: float | None = None
    checks_crc: bool = False

    def arguments(self) -> list[str]:
        topic, partitions = TOPIC, PARTITIONS
        if self.mode == "fetch":
            topic, partitions = FETCH_TOPIC, FETCH_PARTITIONS
        arguments = [
            *(self.mode, "--topic", topic, "--partitions", str(partitions)),
            *("--connections", str(self.connections), "--in-flight", str(self.in_flight)),
            *("--record-bytes", str(self.record_bytes), "--records", str(self.records)),
            *("--max-bytes", str(self.max_bytes)),
        ]
        if self.rate is not None:
            arguments += ["--rate", f"{self.rate:.0f}"]
        if self.checks_crc:
            arguments.append("--check")
        return arguments


Figures = dict[str, float]
"""What the generator prints, by name."""


def run_load(
    programs: Programs, broker: BenchBroker, load: Load, *, seconds: float, warmup: float = 0.5
) -> Figures:
    """One run; `LoadFailed` when anything was answered with an error or out of order."""
    return _run(
        programs,
        broker,
        [*load.arguments(), "--seconds", str(seconds), "--warmup", str(warmup)],
        seconds + warmup,
    )


def fill_for_fetch(programs: Programs, broker: BenchBroker, requests: int) -> None:
    """Put batches of 1 MiB where fetches read, the same number in every partition."""
    arguments = [
        *("produce", "--topic", FETCH_TOPIC, "--partitions", str(FETCH_PARTITIONS)),
        *("--connections", "1", "--record-bytes", "1000", "--records", "1030"),
        *("--requests", str(requests), "--seconds", "60"),
    ]
    _run(programs, broker, arguments, 60)


def park(programs: Programs, broker: BenchBroker, connections: int, seconds: float) -> Figures:
    """What so many long polls cost that nobody answers."""
    arguments = [
        *("park", "--topic", PARK_TOPIC, "--partitions", str(PARTITIONS)),
        *("--connections", str(connections), "--seconds", str(seconds)),
    ]
    return _run(programs, broker, arguments, 2 * seconds)


def _run(
    programs: Programs, broker: BenchBroker, arguments: Sequence[str], seconds: float
) -> Figures:
    command = [str(programs.load), *arguments]
    command += ["--port", str(broker.port), "--pid", str(broker.pid)]
    try:
        finished = subprocess.run(
            command, capture_output=True, text=True, timeout=seconds + EXTRA_SECONDS, check=False
        )
    except subprocess.TimeoutExpired:
        raise LoadFailed(f"no end within {seconds + EXTRA_SECONDS:.0f} s") from None
    if finished.returncode != 0:
        raise LoadFailed((finished.stdout + finished.stderr).strip()[-400:])
    return json.loads(finished.stdout)


def middle_of(runs: Sequence[Figures]) -> Figures:
    """Of every figure the median over the runs."""
    return {name: median(run[name] for run in runs) for name in runs[0]}
