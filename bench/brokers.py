"""Brokers under load, each a process of its own on 127.0.0.1 with a directory of its own."""

import json
import os
import signal
import socket
import struct
import subprocess
import sys
import time
from enum import Enum
from pathlib import Path
from typing import NamedTuple

from bench.programs import ROOT, Programs

START_SECONDS = 30.0
STOP_SECONDS = 30.0
FIRST_RETENTION_SECONDS = 31.0
"""Kafka's brokers look at retention for the first time after thirty."""
SEGMENT_BYTES = 32 * 1024 * 1024
PARTITIONS = 8
TOPIC = "bench"
FETCH_TOPIC = "bench-fetch"
FETCH_PARTITIONS = 4
PARK_TOPIC = "bench-park"

API_VERSIONS_0 = struct.pack(">ihhih", 10, 18, 0, 7, -1)


class Kind(Enum):
    """What is measured side by side."""

    REFERENCE = "C reference"
    COMPILED = "compiled"
    INTERPRETED = "interpreted"


class BrokerMissing(Exception):
    """The broker did not start; the text is what it said."""


class LoopTurns(NamedTuple):
    """How long the broker's loop was away from its sockets."""

    p999_ms: float
    max_ms: float


class BenchBroker:
    """A running broker and what its start took."""

    def __init__(
        self, kind: Kind, process: subprocess.Popen[bytes], port: int, directory: Path, begun: float
    ) -> None:
        self.kind = kind
        self.port = port
        self.directory = directory
        self._process = process
        self.first_answer_seconds = self._wait_for_an_answer(begun)
        self._begun = begun

    @property
    def pid(self) -> int:
        return self._process.pid

    def _wait_for_an_answer(self, begun: float) -> float:
        while time.perf_counter() - begun < START_SECONDS:
            if self._process.poll() is not None:
                break
            if _answers(self.port):
                return time.perf_counter() - begun
            time.sleep(0.001)
        self._process.kill()
        self._process.wait()
        raise BrokerMissing(self.told() or f"{self.kind.value}: no answer")

    def told(self) -> str:
        """What it wrote so far."""
        return (self.directory / "output").read_text(errors="replace").strip()

    def resident_kb(self) -> int:
        status = Path(f"/proc/{self.pid}/status").read_text()
        return int(status.split("VmRSS:")[1].split()[0])

    def cpu_seconds(self) -> float:
        """Of all its threads that live."""
        total_ns = 0
        for thread in Path(f"/proc/{self.pid}/task").iterdir():
            total_ns += int((thread / "schedstat").read_text().split()[0])
        return total_ns / 1e9

    def await_retention(self) -> None:
        """Until segments are removed as others are filled, as in a log that has run for long.

        Before that every page is new, and where a host lends memory to a virtual machine a new
        page costs more than all that a broker does to fill it.
        """
        time.sleep(max(0.0, self._begun + FIRST_RETENTION_SECONDS - time.perf_counter()))

    def stop(self) -> None:
        self._process.send_signal(signal.SIGTERM)
        try:
            self._process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def loop_turns(self) -> LoopTurns | None:
        """The longest turns since it started, once it has stopped; None when it did not tell.

        A broker that finds BARNABAS_LOOP_TURNS in its environment writes this JSON there when it
        is told to stop: {"p999_ms": 1.2, "max_ms": 7.5}.
        """
        path = self.directory / "loop-turns.json"
        if not path.exists():
            return None
        told = json.loads(path.read_text())
        return LoopTurns(p999_ms=told["p999_ms"], max_ms=told["max_ms"])


def start(kind: Kind, programs: Programs, directory: Path) -> BenchBroker:
    """Start a broker in an empty directory and wait for its first answer."""
    directory.mkdir(parents=True)
    port = _free_port()
    environment = {**os.environ, "BARNABAS_LOOP_TURNS": str(directory / "loop-turns.json")}
    environment.pop("BARNABAS_INTERPRETED", None)
    if kind is Kind.REFERENCE:
        command = [
            *(str(programs.reference), str(port), str(directory)),
            *("--segment-bytes", str(SEGMENT_BYTES)),
        ]
    else:
        if kind is Kind.INTERPRETED:
            environment["BARNABAS_INTERPRETED"] = "1"
        properties = directory / "server.properties"
        properties.write_text(_server_properties(port, directory))
        command = [sys.executable, "-m", "barnabas", "broker", str(properties)]
    with open(directory / "output", "wb") as output:
        begun = time.perf_counter()
        process = subprocess.Popen(
            command, cwd=ROOT, env=environment, stdout=output, stderr=subprocess.STDOUT
        )
    return BenchBroker(kind, process, port, directory, begun)


def _server_properties(port: int, directory: Path) -> str:
    """Kafka's defaults, but for what keeps a run from filling the disk."""
    settings = {
        "broker.id": 1,
        "listeners": f"PLAINTEXT://127.0.0.1:{port}",
        "log.dirs": directory / "logs",
        "barnabas.metadata.dir": directory / "metadata",
        "log.segment.bytes": SEGMENT_BYTES,
        # The generator's records are of 2023: by time they would all be removed at once.
        "log.retention.ms": -1,
        "log.retention.bytes": SEGMENT_BYTES,
        "log.retention.check.interval.ms": 100,
        "log.segment.delete.delay.ms": 100,
    }
    return "".join(f"{key}={value}\n" for key, value in settings.items())


def create_topics(broker: BenchBroker) -> None:
    """The topics that are loaded; the reference has every partition from the start."""
    if broker.kind is Kind.REFERENCE:
        return
    from confluent_kafka import KafkaException

    deadline = time.monotonic() + START_SECONDS
    while True:
        try:
            _create_topics(broker, deadline)
            return
        except KafkaException as error:
            # A broker that has just started may not know the controller yet.
            if time.monotonic() > deadline:
                raise BrokerMissing(f"no topics: {error}\n{broker.told()}") from error


def _create_topics(broker: BenchBroker, deadline: float) -> None:
    from confluent_kafka.admin import AdminClient, NewTopic

    from bench.librdkafka import quiet

    admin = AdminClient(quiet({"bootstrap.servers": f"127.0.0.1:{broker.port}"}))
    wanted = {TOPIC: PARTITIONS, FETCH_TOPIC: FETCH_PARTITIONS, PARK_TOPIC: PARTITIONS}
    missing = [name for name in wanted if name not in admin.list_topics(timeout=5).topics]
    topics = [NewTopic(name, wanted[name], 1) for name in missing]
    for created in admin.create_topics(topics, request_timeout=5).values() if topics else ():
        created.result(START_SECONDS)
    while time.monotonic() < deadline:
        known = admin.list_topics(timeout=5).topics
        if all(
            name in known
            and len(known[name].partitions) == count
            and all(part.leader >= 0 for part in known[name].partitions.values())
            for name, count in wanted.items()
        ):
            return
        time.sleep(0.05)
    raise BrokerMissing(f"the topics have no leaders\n{broker.told()}")


def _answers(port: int) -> bool:
    """Whether a request is answered."""
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=5) as connection:
            connection.sendall(API_VERSIONS_0)
            return len(connection.recv(4)) == 4
    except OSError:
        return False


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]
