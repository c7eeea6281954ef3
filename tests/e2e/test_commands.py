"""The noun-verb commands on a running broker: what they print, and their exit codes."""

import json
import resource
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.broker_process import BrokerProcess, free_port
from tests.e2e.command_runs import run_barnabas


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    with BrokerProcess(tmp_path_factory.mktemp("commands")) as running:
        yield running


def _ok(broker: BrokerProcess, *arguments: str, given: str = "") -> str:
    run = run_barnabas(*arguments, "--bootstrap-server", broker.bootstrap, given=given)
    assert run.returncode == 0, run.stderr
    return run.stdout


def _json(broker: BrokerProcess, *arguments: str, given: str = "") -> list[dict[str, object]]:
    out = _ok(broker, *arguments, "--output", "json", given=given)
    return [json.loads(line) for line in out.splitlines()]


def _refused(broker: BrokerProcess, *arguments: str) -> tuple[int, str]:
    run = run_barnabas(*arguments, "--bootstrap-server", broker.bootstrap)
    assert "Traceback" not in run.stderr
    return run.returncode, run.stderr


def test_a_topic_lives_and_dies(broker: BrokerProcess):
    made = _ok(broker, "topics", "create", "life", "--partitions", "2", "--config", "flush.ms=9")
    assert made == "created topic life: 2 partitions, 1 replicas\n"
    listed = {row["topic"]: row for row in _json(broker, "topics", "list")}
    assert listed["life"] == {
        "topic": "life",
        "partitions": 2,
        "replication_factor": 1,
        "internal": False,
    }
    assert "flush.ms=9" in _ok(broker, "topics", "describe", "life")
    (grown,) = _json(broker, "topics", "alter", "life", "--partitions", "5")
    assert (grown["before"], grown["partitions"]) == (2, 5)
    assert len(_json(broker, "topics", "describe", "life")) == 5
    (setting,) = _json(broker, "configs", "describe", "topic", "life")
    assert setting == {"key": "flush.ms", "value": "9", "source": "dynamic topic"}
    assert _ok(broker, "topics", "delete", "life") == "deleted topic life\n"
    assert "life" not in _ok(broker, "topics", "list")


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_lines_become_records_and_lines_again(broker: BrokerProcess, codec: str):
    topic = f"lines-{codec}"
    given = "".join(f"k{number % 5}:v{number}\n" for number in range(100))
    produce = ("produce", topic, "--key-separator", ":", "--compression", codec)
    assert f"created topic {topic}" in _ok(broker, *produce, given=given)
    read = _json(broker, "consume", topic, "--from-beginning", "--exit")
    assert {(row["key"], row["value"]) for row in read} == {
        (f"k{number % 5}", f"v{number}") for number in range(100)
    }
    by_key = {row["key"]: row["partition"] for row in read}
    assert all(by_key[row["key"]] == row["partition"] for row in read)
    assert len(_json(broker, "consume", topic, "--offset", "-2", "--exit")) <= 6
    assert len(_json(broker, "consume", topic, "--offset", "0", "--max-messages", "7")) == 7
    assert len(_json(broker, "consume", topic, "--time", "0", "--exit")) == 100


@pytest.mark.parametrize("acks", ["0", "1", "all"])
def test_records_arrive_whoever_acknowledges_them(broker: BrokerProcess, acks: str):
    _ok(broker, "topics", "create", f"acks-{acks}")
    _ok(broker, "produce", f"acks-{acks}", "--acks", acks, given="one\n")
    (row,) = _json(broker, "consume", f"acks-{acks}", "--from-beginning", "--max-messages", "1")
    assert row["value"] == "one"


def test_a_damaged_file_is_shown_as_far_as_it_can_be_read(broker: BrokerProcess, tmp_path: Path):
    _ok(broker, "produce", "damaged", "--partition", "0", given="one\n")
    _ok(broker, "produce", "damaged", "--partition", "0", given="two\n")
    name = f"{0:020}.log"
    data = (broker.log_dir / "damaged-0" / name).read_bytes()
    half = len(data) // 2
    # Codec 7, a time beyond all calendars, and a checksum that belongs to neither.
    wrong = data[half : half + 22] + b"\x07" + data[half + 23 : half + 35] + b"\x7f" * 8
    (tmp_path / name).write_bytes(data[:half] + wrong + data[half + 43 :])
    run = run_barnabas("log", "dump", str(tmp_path / name), "--records", "--output", "json")
    rows = [json.loads(line) for line in run.stdout.splitlines()]
    assert [row.get("intact") for row in rows] == [True, None, False]
    assert run.returncode == 1
    assert run.stderr.startswith("error: a log is damaged")
    (tmp_path / name).write_bytes(data[:half] + b"\xff" * 100)
    assert "no batch begins" in run_barnabas("log", "dump", str(tmp_path / name)).stderr


def test_what_is_in_the_files_is_shown_without_the_broker(broker: BrokerProcess):
    _ok(broker, "produce", "files", "--partition", "0", given="one\ntwo\n")
    segment = str(broker.log_dir / "files-0" / f"{0:020}.log")
    run = run_barnabas("log", "dump", segment, "--records", "--output", "json")
    batch, *records = [json.loads(line) for line in run.stdout.splitlines()]
    assert (batch["records"], batch["intact"]) == (2, True)
    assert [record["value"] for record in records] == ["one", "two"]


def test_status_names_brokers_and_what_needs_attention(broker: BrokerProcess):
    (status,) = _json(broker, "status")
    assert (status["controller"], status["brokers"]) == (1, {"1": broker.bootstrap})
    assert status["offline"] == []


def test_an_unknown_topic_is_told_with_the_one_that_was_meant(broker: BrokerProcess):
    _ok(broker, "topics", "create", "orders")
    code, said = _refused(broker, "topics", "describe", "ordres")
    assert code == 1
    assert said.splitlines()[:3] == [
        "error: there is no topic ordres",
        "cause: did you mean orders?",
        "fix:   barnabas topics describe orders",
    ]
    assert _refused(broker, "consume", "ordres")[0] == 1


def test_a_refusal_of_the_broker_is_told_in_its_words(broker: BrokerProcess):
    _ok(broker, "topics", "create", "twice")
    code, said = _refused(broker, "topics", "create", "twice")
    assert code == 1
    assert "Topic 'twice' already exists." in said
    assert "TOPIC_ALREADY_EXISTS" in said
    _ok(broker, "topics", "create", "twice", "--if-not-exists")


@pytest.mark.parametrize(
    "arguments",
    [
        ("topics", "lst"),
        ("topics", "create"),
        ("topics", "list", "--bootstrap-server", "nowhere:x"),
        ("topics", "create", "x", "--partitions", "0"),
        ("topics", "create", "x", "--config", "nothing"),
        ("consume", "x", "--from-beginning", "--offset", "3"),
        ("configs", "alter", "topic", "x"),
        ("topcs",),
    ],
)
def test_a_wrong_command_line_is_code_2(arguments: tuple[str, ...]):
    run = run_barnabas(*arguments)
    assert run.returncode == 2
    assert run.stderr.startswith("error: barnabas")
    assert "fix:" in run.stderr


def test_nobody_there_is_code_3_and_says_tries_and_time():
    address = f"127.0.0.1:{free_port()}"
    run = run_barnabas("topics", "list", variables={"BARNABAS_BOOTSTRAP_SERVER": address})
    assert run.returncode == 3
    assert run.stderr.startswith(f"error: nobody answered at {address} (3 tries in 0.")
    assert "cause: " in run.stderr and "refused" in run.stderr


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        (b"HTTP/1.1 400 Bad Request\r\n\r\n", "an HTTP server answered"),
        (b"\x15\x03\x01\x00\x02\x02\x46", "a TLS listener answered"),
    ],
)
def test_a_wrong_port_is_told(answer: bytes, told: str):
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(30)

        def serve() -> None:
            for _ in range(3):
                connection, _ = server.accept()
                with connection:
                    connection.recv(4096)
                    connection.sendall(answer)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        port = server.getsockname()[1]
        run = run_barnabas("topics", "list", "--bootstrap-server", f"127.0.0.1:{port}")
        thread.join()
    assert run.returncode == 3
    assert told in run.stderr


def test_a_guard_keeps_an_internal_topic(broker: BrokerProcess):
    _ok(broker, "topics", "create", "__consumer_offsets", "--partitions", "1")
    code, said = _refused(broker, "topics", "delete", "__consumer_offsets")
    assert code == 4
    assert "fix:   barnabas topics delete __consumer_offsets --internal" in said


def test_names_are_completed_live(broker: BrokerProcess):
    _ok(broker, "topics", "create", "completed")
    run = run_barnabas(
        variables={
            "_BARNABAS_COMPLETE": "bash_complete",
            "COMP_WORDS": "barnabas topics describe comp",
            "COMP_CWORD": "3",
            "BARNABAS_BOOTSTRAP_SERVER": broker.bootstrap,
        }
    )
    assert run.stdout.strip() == "plain,completed"
    for shell in ("bash", "zsh", "fish"):
        assert "_BARNABAS_COMPLETE" in run_barnabas("completion", shell).stdout


def test_an_interrupted_command_is_code_130(broker: BrokerProcess):
    _ok(broker, "produce", "endless", given="one\n")
    command = [sys.executable, "-m", "barnabas", "consume", "endless", "--from-beginning"]
    with subprocess.Popen(
        [*command, "--bootstrap-server", broker.bootstrap], stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert "one" in process.stdout.readline()
        process.send_signal(signal.SIGINT)
        assert process.wait(30) == 130


@pytest.mark.parametrize(
    ("arguments", "milliseconds"), [(("topics", "--help"), 120), (("topics", "list"), 250)]
)
def test_a_command_costs_little(
    broker: BrokerProcess, arguments: tuple[str, ...], milliseconds: int
):
    """Of the processor's time: the clock's depends on who else is there."""
    spent: list[float] = []
    for _ in range(5):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        run_barnabas(*arguments, variables={"BARNABAS_BOOTSTRAP_SERVER": broker.bootstrap})
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        spent.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    assert min(spent) * 1000 <= milliseconds


def test_the_bare_program_names_six_commands():
    run = run_barnabas()
    names = [line.split()[1] for line in run.stdout.splitlines() if line.startswith("  barnabas")]
    assert names == ["up", "topics", "produce", "consume", "groups", "status"]
