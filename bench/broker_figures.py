"""What is measured of brokers, by name: each plan gives lines of the table."""

import shutil
from collections.abc import Callable
from pathlib import Path
from statistics import median

from bench.brokers import BenchBroker, BrokerMissing, Kind, start
from bench.librdkafka import produce_and_read_back
from bench.loads import (
    Figures,
    Load,
    LoadFailed,
    fill_for_fetch,
    middle_of,
    park,
    run_load,
)
from bench.programs import Programs
from bench.table import Cell, Line

SMALL = Load("small produce, 8 x 5", "produce", 8, 5)
SMALL_ALONE = Load("small produce, 8 x 1", "produce", 8, 1)
SMALL_MANY = Load("small produce, 100 x 1", "produce", 100, 1)
ONE = Load("one connection, 1 in flight", "produce", 1, 1)
BATCHES_16_KIB = Load("16 KiB batches", "produce", 8, 2, record_bytes=1000, records=16)
BATCHES_1_MIB = Load("1 MiB batches", "produce", 4, 1, record_bytes=1000, records=1030)
FETCH_1_MIB = Load("fetch 1 MiB", "fetch", 4)

FETCH_REQUESTS = 112
"""Batches of 1 MiB that fetches walk over: they stay in the page cache."""
PARKED = 1000
PARK_SECONDS = 3.0
STARTS = 5
RDKAFKA_RECORDS = 100_000
OPEN_LOOP_PARTS = (0.3, 0.7)
"""Parts of the capacity that arrive in an open loop."""


class Bench:
    """The brokers that run, and how long each is measured."""

    def __init__(
        self,
        programs: Programs,
        brokers: dict[Kind, BenchBroker],
        directory: Path,
        rounds: int,
        seconds: float,
    ) -> None:
        self.programs = programs
        self.brokers = brokers
        self.directory = directory
        self.rounds = rounds
        self.seconds = seconds
        self.reference_requests_per_second: float | None = None
        self._capacity: dict[Kind, float] = {}

    def alternate(self, load: Load) -> dict[Kind, Figures]:
        """The load on one broker after the other, round after round; the median of each."""
        runs: dict[Kind, list[Figures]] = {kind: [] for kind in self.brokers}
        for _ in range(self.rounds):
            for kind, broker in self.brokers.items():
                runs[kind].append(run_load(self.programs, broker, load, seconds=self.seconds))
        return {kind: middle_of(of_kind) for kind, of_kind in runs.items()}

    def capacity(self) -> dict[Kind, float]:
        """Requests per second at 8 x 5, measured once."""
        if not self._capacity:
            self.note_capacity(self.alternate(SMALL))
        return self._capacity

    def note_capacity(self, figures: dict[Kind, Figures]) -> None:
        self._capacity = {kind: of["requests_per_second"] for kind, of in figures.items()}
        self.reference_requests_per_second = self._capacity.get(Kind.REFERENCE)

    def ours(self) -> dict[Kind, BenchBroker]:
        """Without the reference."""
        return {kind: of for kind, of in self.brokers.items() if kind is not Kind.REFERENCE}

    def loop_turn_lines(self) -> list[Line]:
        """Once the brokers have stopped: their longest turns under all that was measured."""
        turns = {kind: broker.loop_turns() for kind, broker in self.ours().items()}
        compiled, interpreted = turns.get(Kind.COMPILED), turns.get(Kind.INTERPRETED)
        return [
            Line(
                "longest loop turn, p99.9",
                "ms",
                None,
                Cell(compiled and compiled.p999_ms, 5),
                Cell(interpreted and interpreted.p999_ms),
            ),
            Line(
                "longest loop turn, max",
                "ms",
                None,
                Cell(compiled and compiled.max_ms, 50),
                Cell(interpreted and interpreted.max_ms),
            ),
        ]


def line_of(
    name: str,
    unit: str,
    figures: dict[Kind, Figures],
    key: str,
    *,
    compiled: float | None = None,
    interpreted: float | None = None,
    ratio: float | None = None,
) -> Line:
    """One figure of all brokers, with its goals."""

    def value(kind: Kind) -> float | None:
        return figures[kind][key] if kind in figures else None

    return Line(
        name,
        unit,
        value(Kind.REFERENCE),
        Cell(value(Kind.COMPILED), compiled),
        Cell(value(Kind.INTERPRETED), interpreted),
        ratio,
    )


def small(bench: Bench) -> list[Line]:
    figures = bench.alternate(SMALL)
    bench.note_capacity(figures)
    name = SMALL.name
    return [
        line_of(name, "us", figures, "cpu_us_per_request", compiled=5, interpreted=10, ratio=2.2),
        line_of(f"{name}, requests", "1/s", figures, "requests_per_second"),
        line_of(f"{name}, p99", "us", figures, "p99_us"),
    ]


def many(bench: Bench) -> list[Line]:
    alone, hundred = bench.alternate(SMALL_ALONE), bench.alternate(SMALL_MANY)
    return [
        line_of(SMALL_ALONE.name, "us", alone, "cpu_us_per_request"),
        line_of(SMALL_MANY.name, "us", hundred, "cpu_us_per_request", compiled=12),
    ]


def one(bench: Bench) -> list[Line]:
    figures = bench.alternate(ONE)
    return [
        line_of(f"{ONE.name}, p50", "us", figures, "p50_us", ratio=1.2),
        line_of(f"{ONE.name}, p99", "us", figures, "p99_us"),
    ]


def bulk(bench: Bench) -> list[Line]:
    for broker in bench.brokers.values():
        broker.await_retention()
    smaller, larger = bench.alternate(BATCHES_16_KIB), bench.alternate(BATCHES_1_MIB)
    key = "cpu_seconds_per_gigabyte"
    return [
        line_of(BATCHES_16_KIB.name, "CPU-s/GB", smaller, key, compiled=1.2),
        line_of(BATCHES_1_MIB.name, "CPU-s/GB", larger, key, compiled=0.7),
    ]


def fetch(bench: Bench) -> list[Line]:
    for broker in bench.brokers.values():
        fill_for_fetch(bench.programs, broker, FETCH_REQUESTS)
        # Once with every checksum verified, which costs the generator and not the broker.
        run_load(bench.programs, broker, FETCH_1_MIB._replace(checks_crc=True), seconds=0.5)
    figures = bench.alternate(FETCH_1_MIB)
    key = "cpu_seconds_per_gigabyte"
    return [line_of(FETCH_1_MIB.name, "CPU-s/GB", figures, key, compiled=0.22)]


def parked(bench: Bench) -> list[Line]:
    figures = {
        kind: park(bench.programs, broker, PARKED, PARK_SECONDS)
        for kind, broker in bench.ours().items()
    }
    waiting = f"{PARKED} parked fetches"
    return [
        line_of(f"{waiting}, each", "bytes", figures, "bytes_per_parked", compiled=5120),
        line_of(f"{waiting}, idle connection", "bytes", figures, "bytes_per_connection"),
        line_of(f"{waiting}, CPU in {PARK_SECONDS:g} s", "ms", figures, "cpu_ms_while_parked"),
    ]


def starting(bench: Bench) -> list[Line]:
    """Every start in an empty directory, the kinds in turn."""
    runs: dict[Kind, list[Figures]] = {kind: [] for kind in bench.brokers}
    for number in range(STARTS):
        for kind in bench.brokers:
            directory = bench.directory / f"start-{number}-{kind.name.lower()}"
            broker = start(kind, bench.programs, directory)
            runs[kind].append(
                {"first_answer": broker.first_answer_seconds, "resident": broker.resident_kb()}
            )
            broker.stop()
            shutil.rmtree(directory)
    figures = {
        kind: {
            "first_answer": median(run["first_answer"] for run in of),
            "resident": median(run["resident"] for run in of) / 1000,
        }
        for kind, of in runs.items()
    }
    return [
        line_of(
            "exec to first answer", "s", figures, "first_answer", compiled=0.2, interpreted=0.3
        ),
        line_of("resident when idle", "MB", figures, "resident", compiled=40, interpreted=40),
    ]


def librdkafka(bench: Bench) -> list[Line]:
    lines: list[Line] = []
    for linger_ms in (0, 5):
        figures: dict[Kind, Figures] = {}
        for kind, broker in bench.ours().items():
            told = produce_and_read_back(broker, linger_ms=linger_ms, records=RDKAFKA_RECORDS)
            if told.lost_or_changed:
                raise BrokerMissing(
                    f"{kind.value}: {told.lost_or_changed} of {RDKAFKA_RECORDS} records were "
                    "acknowledged and not read back as they were sent"
                )
            figures[kind] = dict(told._asdict())
        name = f"librdkafka, linger {linger_ms} ms"
        lines += [
            line_of(f"{name}, records", "1/s", figures, "records_per_second"),
            line_of(f"{name}, a record", "us", figures, "cpu_us_per_record"),
        ]
    return lines


def open_loop(bench: Bench) -> list[Line]:
    """Latency from when a request was due, at parts of each broker's own capacity."""
    lines: list[Line] = []
    for part in OPEN_LOOP_PARTS:
        figures: dict[Kind, Figures] = {}
        for kind, capacity in bench.capacity().items():
            load = SMALL._replace(rate=capacity * part)
            try:
                figures[kind] = run_load(
                    bench.programs, bench.brokers[kind], load, seconds=2 * bench.seconds
                )
            except LoadFailed as error:
                # A machine that stands still for a moment is enough for the fastest of them.
                print(f"bench: {kind.value} at {part:.0%} is left out: {error}", flush=True)
        name = f"open loop at {part:.0%}"
        lines += [
            line_of(f"{name}, {shown}", "us", figures, key)
            for shown, key in (
                ("p50", "p50_us"),
                ("p99", "p99_us"),
                ("p99.9", "p999_us"),
                ("max", "max_us"),
            )
        ]
    return lines


PLANS: dict[str, Callable[[Bench], list[Line]]] = {
    "small": small,
    "many": many,
    "one": one,
    "bulk": bulk,
    "fetch": fetch,
    "start": starting,
    "park": parked,
    "librdkafka": librdkafka,
    "open": open_loop,
}
"""In the order in which they are run."""
