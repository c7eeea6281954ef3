"""A real Kafka 3.9.2 with its ZooKeeper, as child processes, asked the same as our broker."""

import subprocess
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from tests.e2e import raw_answers, raw_requests
from tests.e2e.broker_process import free_port
from tests.e2e.raw_wire import Connection
from tests.oracles.zookeeper import running_zookeeper
from tests.tools import MissingTool, kafka_class_path

START_SECONDS = 90.0
START_LINE = b"[KafkaServer id=1] started"

SETTINGS = {
    "broker.id": "1",
    "zookeeper.session.timeout.ms": "6000",
    "offsets.topic.replication.factor": "1",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "log.cleaner.dedupe.buffer.size": "2097152",
    "group.initial.rebalance.delay.ms": "0",
}


@contextmanager
def running_kafka(directory: Path, settings: Mapping[str, str]) -> Iterator[int]:
    """The port of one broker in ZooKeeper mode that lives as long as the context."""
    with running_zookeeper(directory, tick_ms=1000) as zookeeper_port:
        port = free_port()
        properties = {
            **SETTINGS,
            "listeners": f"PLAINTEXT://127.0.0.1:{port}",
            "log.dirs": str(directory / "logs"),
            "zookeeper.connect": f"127.0.0.1:{zookeeper_port}",
            **settings,
        }
        path = directory / "server.properties"
        path.write_text("".join(f"{key}={value}\n" for key, value in properties.items()))
        command = [
            *("java", "-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"),
            f"-Dlog4j.configuration=file:{directory / 'log4j.properties'}",
            *("-cp", kafka_class_path(), "kafka.Kafka", str(path)),
        ]
        broker = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        started = threading.Event()
        log = directory / "kafka.out"
        reader = threading.Thread(target=_keep_log, args=(broker, log, started))
        reader.start()
        try:
            started.wait(START_SECONDS)
            if broker.poll() is not None or not started.is_set():
                raise MissingTool(f"Kafka did not start: {log.read_text()[-2000:]}")
            _await_controller(port)
            yield port
        finally:
            broker.kill()
            broker.wait()
            reader.join()


def _await_controller(port: int) -> None:
    """It says that it has started a little before its metadata names itself as the controller."""
    deadline = time.monotonic() + START_SECONDS
    asked = raw_requests.metadata(1, [])
    with Connection(port) as connection:
        while time.monotonic() < deadline:
            answer = raw_answers.described(asked, connection.ask(asked))
            if answer.brokers and answer.controller_id >= 0:
                return
    raise MissingTool("Kafka elected no controller")


def _keep_log(broker: "subprocess.Popen[bytes]", log: Path, started: threading.Event) -> None:
    """Until the broker ends; the waiting side is let go at the last line of its start, or then."""
    assert broker.stdout is not None
    with log.open("wb") as out:
        for line in broker.stdout:
            out.write(line)
            out.flush()
            if START_LINE in line:
                started.set()
    started.set()
