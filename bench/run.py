"""`./run bench [NAME ...]`: measures, prints the table, and says what the machine allows to judge.

All brokers run side by side, and every figure is taken of one after the other, several times in
turn, of which the median counts: what else the machine does then touches all of them alike.
"""

import argparse
import json
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from bench.broker_figures import PLANS, Bench
from bench.brokers import BenchBroker, BrokerMissing, Kind, create_topics, start
from bench.loads import LoadFailed
from bench.programs import OUTPUT, NoCompiler, build_programs
from bench.table import MISSED, Line, render

EXIT_MISSED = 1
EXIT_UNABLE = 2
WARM_PART = 0.7
"""Of the free memory; what others need in the meantime is left."""
WARM_PIECE_BYTES = 64 * 1024 * 1024
QUIET_REQUESTS_PER_SECOND = 300_000
"""What the reference reaches at 8 x 5 on two quiet processors; below that no goal is judged."""


def _batches() -> bool:
    from bench import batches

    print(batches.report())
    return True


def _codec() -> bool:
    from bench import codec

    print(codec.report())
    return not codec.missed(codec.measured_here())


MICRO: dict[str, Callable[[], bool]] = {"batches": _batches, "codec": _codec}
"""Figures without a broker; false when a goal is missed."""


def main(arguments: Sequence[str]) -> int:
    options = _parser().parse_args(arguments)
    are_reached = [MICRO[name]() for name in options.names if name in MICRO]
    plans = [name for name in options.names or PLANS if name not in MICRO]
    code = 0 if all(are_reached) else EXIT_MISSED
    if not plans:
        return code
    directory = Path(tempfile.mkdtemp(prefix="barnabas-bench-", dir=options.dir))
    try:
        return max(code, _measure(plans, options, directory))
    except (NoCompiler, BrokerMissing) as error:
        print(f"bench: {error}")
        return EXIT_UNABLE
    finally:
        shutil.rmtree(directory, ignore_errors=True)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="./run bench", description=__doc__.splitlines()[0])
    parser.add_argument(
        "names",
        nargs="*",
        metavar="NAME",
        type=_known_name,
        help=f"of the broker, all when none is named: {', '.join(PLANS)}; of parts: "
        + ", ".join(MICRO),
    )
    parser.add_argument("--rounds", type=int, default=3, help="runs of each figure (3)")
    parser.add_argument("--seconds", type=float, default=2.0, help="of each run (2)")
    parser.add_argument(
        "--without",
        action="append",
        default=[],
        choices=[kind.name.lower() for kind in Kind],
        help="leave a broker out",
    )
    parser.add_argument("--dir", help="where the brokers' directories are made")
    parser.add_argument("--json", type=Path, default=OUTPUT / "figures.json")
    return parser


def _known_name(name: str) -> str:
    if name not in PLANS and name not in MICRO:
        raise argparse.ArgumentTypeError(f"{name} is none of {', '.join([*PLANS, *MICRO])}")
    return name


def _measure(plans: Sequence[str], options: argparse.Namespace, directory: Path) -> int:
    programs = build_programs()
    warm_memory()
    print(f"bench: {_machine()}", flush=True)
    brokers: dict[Kind, BenchBroker] = {}
    lines: list[Line] = []
    try:
        for kind in Kind:
            if kind.name.lower() in options.without:
                continue
            try:
                brokers[kind] = start(kind, programs, directory / kind.name.lower())
                create_topics(brokers[kind])
            except BrokerMissing as error:
                print(f"bench: {kind.value} is left out: {error}", flush=True)
                broker = brokers.pop(kind, None)
                if broker is not None:
                    broker.stop()
        bench = Bench(programs, brokers, directory, options.rounds, options.seconds)
        for name in plans:
            try:
                measured = PLANS[name](bench)
            except LoadFailed as error:
                print(f"bench: {name} failed: {error}", flush=True)
                return EXIT_UNABLE
            lines += measured
            print(render(measured) + "\n", flush=True)
    finally:
        for broker in brokers.values():
            broker.stop()
    lines += bench.loop_turn_lines()
    return _report(lines, bench.reference_requests_per_second, options.json)


def warm_memory() -> None:
    """Touch the memory that logs will fill, once.

    A virtual machine gets each page from its host at the first touch, which costs six seconds a
    GiB where a later one costs half of one: a growing log would be charged with it.
    """
    wanted = int(_available_bytes() * WARM_PART)
    began = time.monotonic()
    pieces = [bytearray(b"\1") * WARM_PIECE_BYTES for _ in range(wanted // WARM_PIECE_BYTES)]
    took = time.monotonic() - began
    print(f"bench: touched {len(pieces) * WARM_PIECE_BYTES / 1e9:.1f} GB of memory in {took:.1f} s")


def _available_bytes() -> int:
    return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def _report(lines: Sequence[Line], reference_rate: float | None, path: Path) -> int:
    print("=" * 40 + "\n" + render(lines))
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(
        json.dumps(
            {
                "machine": _machine(),
                "reference_requests_per_second": reference_rate,
                "figures": [
                    {
                        "name": line.name,
                        "unit": line.unit,
                        "reference": line.reference,
                        "compiled": line.compiled.value,
                        "interpreted": line.interpreted.value,
                        "verdict": line.verdict(),
                    }
                    for line in lines
                ],
            },
            indent=1,
        )
    )
    if reference_rate is None:
        print("bench: without the reference at 8 x 5 nothing is judged")
        return 0
    if reference_rate < QUIET_REQUESTS_PER_SECOND:
        print(
            f"bench: the machine is too loaded to judge: the reference reached "
            f"{reference_rate:,.0f} requests/s at 8 x 5, {QUIET_REQUESTS_PER_SECOND:,} are wanted"
        )
        return 0
    missed = [line.name for line in lines if line.verdict() == MISSED]
    if missed:
        print(f"bench: missed: {'; '.join(missed)}")
        return EXIT_MISSED
    return 0


def _machine() -> str:
    load, _, _ = os.getloadavg()
    return f"{os.cpu_count()} processors, load {load:.1f}, {time.strftime('%Y-%m-%d %H:%M')}"
