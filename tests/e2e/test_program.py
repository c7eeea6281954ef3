"""`barnabas broker` and `barnabas up` as people and scripts meet them: lines, codes, signals."""

import os
import select
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest

from barnabas.formats.logdir.names import CLEAN_SHUTDOWN_FILE
from tests.e2e.broker_process import BrokerProcess, free_port

SECONDS_MAX = 30


def _environment(**variables: str) -> Mapping[str, str]:
    clean = {name: text for name, text in os.environ.items() if not name.startswith("KAFKA_")}
    return {**clean, **variables}


def _barnabas(*arguments: str, **variables: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-m", "barnabas", *arguments],
        capture_output=True,
        text=True,
        timeout=SECONDS_MAX,
        env=_environment(**variables),
    )


@contextmanager
def _running(*arguments: str) -> Generator["subprocess.Popen[str]"]:
    process = subprocess.Popen(
        [sys.executable, "-m", "barnabas", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=_environment(),
    )
    try:
        yield process
    finally:
        if process.poll() is None:
            process.kill()
        process.communicate()


def _await_line(process: "subprocess.Popen[str]", text: str) -> str:
    """The program's output up to the line with `text`."""
    assert process.stdout is not None
    descriptor = process.stdout.fileno()
    seen = ""
    while text not in seen:
        readable, _, _ = select.select([descriptor], [], [], SECONDS_MAX)
        assert readable, f"nothing more after: {seen}"
        # Not through the file object, which may hold back what it has read already.
        more = os.read(descriptor, 65536).decode()
        assert more, f"the program ended after: {seen}"
        seen += more
    return seen


def _properties(directory: Path, **settings: str) -> str:
    lines = {
        "broker.id": "1",
        "listeners": f"PLAINTEXT://127.0.0.1:{free_port()}",
        "log.dirs": str(directory / "logs"),
        **{name.replace("_", "."): text for name, text in settings.items()},
    }
    path = directory / "server.properties"
    path.write_text("".join(f"{name}={text}\n" for name, text in lines.items()))
    return str(path)


def _connects(port: int) -> bool:
    with socket.socket() as sock:
        return sock.connect_ex(("127.0.0.1", port)) == 0


def test_a_stop_by_sigterm_is_clean_and_says_so_on_disk(tmp_path: Path):
    broker = BrokerProcess(tmp_path).start()
    assert not (broker.log_dir / CLEAN_SHUTDOWN_FILE).exists()
    assert broker.stop() == 0
    assert (broker.log_dir / CLEAN_SHUTDOWN_FILE).exists()
    assert not (broker.log_dir / ".lock").exists()
    assert not _connects(broker.port)


def test_the_metadata_lives_beside_the_log_directory_and_survives(tmp_path: Path):
    broker = BrokerProcess(tmp_path, {"barnabas.metadata.dir": ""})
    text = broker.properties_path.read_text().replace("barnabas.metadata.dir=\n", "")
    broker.properties_path.write_text(text)
    broker.start()
    assert broker.stop() == 0
    assert (tmp_path / "logs-metadata").is_dir()
    cluster = (broker.log_dir / "meta.properties").read_text()
    assert "cluster.id=" in cluster
    broker.start()
    assert broker.stop() == 0
    assert (broker.log_dir / "meta.properties").read_text() == cluster


@pytest.mark.parametrize(
    ("key", "text", "cause"),
    [
        ("zookeeper_connect", "localhost:2181", "external ZooKeeper"),
        ("authorizer_class_name", "kafka.security.authorizer.AclAuthorizer", "security"),
        ("process_roles", "broker", "KRaft"),
        ("metric_reporters", "a.B", "Java class"),
        ("create_topic_policy_class_name", "a.B", "barnabas.create.topic.policy names a Python"),
        ("barnabas_create_topic_policy", "nosuch", "no entry point"),
    ],
)
def test_refused_keys_end_it_before_anything_is_touched(
    tmp_path: Path, key: str, text: str, cause: str
):
    finished = _barnabas("broker", _properties(tmp_path, **{key: text}))
    assert finished.returncode == 2
    assert key.replace("_", ".") in finished.stderr
    assert cause in finished.stderr
    assert "Traceback" not in finished.stderr
    assert os.listdir(tmp_path) == ["server.properties"]


def test_a_bad_value_from_the_environment_is_named(tmp_path: Path):
    finished = _barnabas("broker", _properties(tmp_path), KAFKA_NUM_PARTITIONS="few")
    assert finished.returncode == 2
    assert finished.stderr.splitlines()[0] == "error: KAFKA_NUM_PARTITIONS: num.partitions=few"


def test_keys_without_effect_are_warned_about_at_start(tmp_path: Path):
    path = _properties(tmp_path, auto_leader_rebalance_enable="false", num_partition="3")
    with _running("broker", path) as process:
        _await_line(process, "[KafkaServer id=1] started")
        process.terminate()
        _, errors = process.communicate(timeout=SECONDS_MAX)
    assert "auto.leader.rebalance.enable not honoured yet" in errors
    assert "num.partition is no key of Kafka's; did you mean num.partitions?" in errors


@pytest.mark.parametrize(
    ("settings", "warning"),
    [
        ({"max_connections": "0"}, "max.connections=0: leaves no room for the controller"),
        ({"advertised_listeners": "PLAINTEXT://127.0.0.1:1"}, None),
    ],
)
def test_a_broker_that_cannot_reach_itself_says_so_once(
    tmp_path: Path, settings: dict[str, str], warning: str | None
):
    path = _properties(tmp_path, **settings)
    with _running("broker", path) as process:
        # That it is told of nothing for so long is twenty requests in vain.
        _await_line(process, "[KafkaServer id=1] started")
        process.terminate()
        _, errors = process.communicate(timeout=SECONDS_MAX)
    again = [line for line in errors.splitlines() if "to broker 1 is sent again" in line]
    assert len(again) == 2
    assert again[1].endswith("more within 30 s)")
    assert warning is None or warning in errors


def test_a_taken_port_names_its_holder(tmp_path: Path):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        path = _properties(tmp_path, listeners=f"PLAINTEXT://127.0.0.1:{port}")
        finished = _barnabas("broker", path)
    assert finished.returncode == 1
    assert f"(process {os.getpid()})" in finished.stderr
    assert os.listdir(tmp_path) == ["server.properties"]


def test_a_second_broker_on_the_same_directories_is_refused_and_names_the_first(tmp_path: Path):
    with BrokerProcess(tmp_path / "first") as first:
        settings = {
            "log.dirs": str(first.log_dir),
            "barnabas.metadata.dir": str(tmp_path / "first" / "metadata"),
        }
        second = BrokerProcess(tmp_path / "second", settings)
        finished = _barnabas("broker", str(second.properties_path))
        assert finished.returncode == 1
        assert f"process {first.pid}" in finished.stderr
        assert "see:   docs/errors.md#directory-in-use" in finished.stderr
        # With a metadata directory of its own it is the log directory that says so.
        third = BrokerProcess(tmp_path / "third", {"log.dirs": str(first.log_dir)})
        finished = _barnabas("broker", str(third.properties_path))
        assert finished.returncode == 1
        assert f"process {first.pid}" in finished.stderr
        assert "see:   docs/errors.md#directory-in-use" in finished.stderr


def test_a_directory_of_another_cluster_is_left_as_it_is(tmp_path: Path):
    broker = BrokerProcess(tmp_path / "first").start()
    assert broker.stop() == 0
    before = {path.name: path.read_bytes() for path in broker.log_dir.iterdir() if path.is_file()}
    settings = {"log.dirs": str(broker.log_dir)}
    other = BrokerProcess(tmp_path / "second", settings)
    finished = _barnabas("broker", str(other.properties_path))
    assert finished.returncode == 1
    assert "foreign-directory" in finished.stderr
    cluster_id = before["meta.properties"].split(b"cluster.id=")[1].split()[0].decode()
    assert "cause: the metadata store is new" in finished.stderr
    assert f"of another cluster: found cluster.id={cluster_id}" in finished.stderr
    after = {path.name: path.read_bytes() for path in broker.log_dir.iterdir() if path.is_file()}
    assert after == before


def test_a_log_directory_that_is_removed_is_told_by_file_and_reason(tmp_path: Path):
    settings = {"replica.high.watermark.checkpoint.interval.ms": "100"}
    broker = BrokerProcess(tmp_path, settings).start()
    shutil.rmtree(broker.log_dir)
    assert broker.process is not None
    assert broker.process.wait(SECONDS_MAX) == 1
    told = broker.story()
    assert f"{broker.log_dir} is offline with its 0 replicas: {broker.log_dir}/" in told
    assert "No such file or directory" in told
    assert f"the last one: {broker.log_dir}/" in told
    assert "see:   docs/errors.md#disk-refuses" in told


def test_up_says_what_it_runs_where_it_differs_and_how_to_stop_it(tmp_path: Path):
    port = free_port()
    with _running("up", "--dir", str(tmp_path / "data"), "--port", str(port)) as process:
        told = _await_line(process, "wipe:")
        assert _connects(port)
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=SECONDS_MAX)
    assert process.returncode == 0
    assert "1 broker, embedded metadata store" in told
    assert f"broker 1  127.0.0.1:{port}   ready" in told
    assert "num.partitions=3 (1)" in told
    assert "group.initial.rebalance.delay.ms=0 (3000)" in told


def test_two_ups_do_not_share_a_directory(tmp_path: Path):
    directory = str(tmp_path / "data")
    with _running("up", "--dir", directory, "--port", str(free_port())) as process:
        _await_line(process, "wipe:")
        finished = _barnabas("up", "--dir", directory, "--fresh", "--port", str(free_port()))
        assert finished.returncode == 1
        assert "directory-in-use" in finished.stderr
        assert (tmp_path / "data" / "broker-1" / "meta.properties").exists()


def test_bare_barnabas_and_mistyped_programs_lead_on():
    assert "barnabas up" in _barnabas().stdout
    mistyped = _barnabas("borker")
    assert mistyped.returncode == 2
    assert "fix:   barnabas broker" in mistyped.stderr
    unknown_option = _barnabas("broker", "--brokres", "3", "x")
    assert unknown_option.returncode == 2
    assert "Traceback" not in unknown_option.stderr
