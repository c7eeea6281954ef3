"""The load generator and the reference broker: they agree, and what is wrong is seen."""

import json
import socket
import struct
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from barnabas.formats.batches.reader import batches_in, read_batch
from bench.brokers import FETCH_TOPIC, BenchBroker, Kind, start
from bench.loads import Load, LoadFailed, fill_for_fetch, run_load
from bench.programs import Programs, build_programs
from tests.tools import need

SMALL = Load("small", "produce", 4, 3)


@pytest.fixture(scope="module")
def programs() -> Programs:
    need("cc")
    return build_programs()


@pytest.fixture
def reference(programs: Programs, tmp_path: Path) -> Iterator[BenchBroker]:
    broker = start(Kind.REFERENCE, programs, tmp_path / "reference")
    yield broker
    broker.stop()


def test_what_the_reference_writes_are_batches_in_order(
    programs: Programs, reference: BenchBroker
) -> None:
    figures = run_load(programs, reference, SMALL._replace(records=7), seconds=0.2, warmup=0.05)
    assert figures["requests"] > 100
    assert figures["cpu_us_per_request"] > 0
    assert figures["p50_us"] <= figures["p99_us"] <= figures["p999_us"] <= figures["max_us"]
    for partition in range(8):
        data = (reference.directory / f"0-{partition}.log").read_bytes()
        offset = 0
        for position, header in batches_in(data, 0, len(data)):
            assert header.base_offset == offset
            offset = header.next_offset
            if position < 10_000:
                records = read_batch(data, position, len(data))
                assert [len(record.value or b"") for record in records] == [100] * 7
        assert offset > 0


def test_fetches_walk_the_log_with_every_checksum_verified(
    programs: Programs, reference: BenchBroker
) -> None:
    fill_for_fetch(programs, reference, 24)
    fetch = Load("fetch", "fetch", 3, max_bytes=3_000_000, checks_crc=True)
    figures = run_load(programs, reference, fetch, seconds=0.2, warmup=0.05)
    assert figures["requests"] > 20
    assert figures["megabytes_per_second"] > 10
    with open(reference.directory / "0-1.log", "r+b") as log:
        log.seek(500_000)
        changed = bytes(byte ^ 1 for byte in log.read(10))
        log.seek(500_000)
        log.write(changed)
    with pytest.raises(LoadFailed, match=r'"wrong": [1-9]'):
        run_load(programs, reference, fetch, seconds=0.2, warmup=0.05)


def test_a_partition_that_is_not_there_is_an_error(
    programs: Programs, reference: BenchBroker
) -> None:
    command = [
        *(str(programs.load), "produce", "--port", str(reference.port), "--partitions", "65"),
        *("--connections", "1", "--topic", FETCH_TOPIC, "--requests", "130"),
    ]
    finished = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)
    told = json.loads(finished.stdout)
    assert finished.returncode == 4
    assert (told["requests"], told["errors"], told["first_error"]) == (130, 2, 3)


class StallingBroker:
    """Answers each Produce at once, but for one long pause."""

    def __init__(self, pause_seconds: float, *, answers_in_order: bool = True) -> None:
        self._pause_seconds = pause_seconds
        self._answers_in_order = answers_in_order
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def _serve(self) -> None:
        connection, _ = self._listener.accept()
        with connection:
            pauses_at = time.monotonic() + 0.5
            data = b""
            while received := connection.recv(65536):
                data += received
                if self._pause_seconds and time.monotonic() > pauses_at:
                    threading.Event().wait(self._pause_seconds)
                    self._pause_seconds = 0.0
                answers = []
                while len(data) >= 4 and len(data) >= 4 + int.from_bytes(data[:4], "big"):
                    size = 4 + int.from_bytes(data[:4], "big")
                    answers.append(_produce_answer(data[8:12]))
                    data = data[size:]
                if not self._answers_in_order:
                    answers.reverse()
                connection.sendall(b"".join(answers))

    def stop(self) -> None:
        self._listener.close()
        self._thread.join(10)


def _produce_answer(correlation: bytes) -> bytes:
    body = correlation + struct.pack(">ih5siihqqqi", 1, 5, b"bench", 1, 0, 0, 0, -1, 0, 0)
    return struct.pack(">i", len(body)) + body


def _load(programs: Programs, port: int, *arguments: str) -> tuple[int, dict[str, float]]:
    command = [str(programs.load), "produce", "--port", str(port), "--connections", "1"]
    finished = subprocess.run(
        [*command, *arguments], capture_output=True, text=True, timeout=30, check=False
    )
    return finished.returncode, json.loads(finished.stdout)


def test_an_open_loop_sees_the_stall_that_a_closed_one_hides(programs: Programs) -> None:
    """Of a second a third stands still: a closed loop asks nothing of it meanwhile."""
    timing = ("--warmup", "0.1", "--seconds", "1")
    figures: dict[str, dict[str, float]] = {}
    for name, arguments in (("closed", ()), ("open", ("--rate", "500"))):
        broker = StallingBroker(0.35)
        code, figures[name] = _load(programs, broker.port, *arguments, *timing)
        broker.stop()
        assert code == 0
    assert figures["closed"]["max_us"] > 300_000
    assert figures["closed"]["p99_us"] < 100_000
    assert figures["open"]["max_us"] > 300_000
    assert figures["open"]["p99_us"] > 250_000
    assert 350 < figures["open"]["requests_per_second"] < 650


def test_answers_out_of_order_are_seen(programs: Programs) -> None:
    broker = StallingBroker(0, answers_in_order=False)
    code, figures = _load(programs, broker.port, "--in-flight", "4", "--requests", "100")
    broker.stop()
    assert code == 4
    assert figures["wrong"] > 0
