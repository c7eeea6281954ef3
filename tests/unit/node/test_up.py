"""`barnabas up`: what it changes, what it wipes, and what it keeps its hands off."""

import socket
from pathlib import Path

import pytest

from barnabas.model.config import BrokerConfig
from barnabas.node.output import ProgramError
from barnabas.node.up import (
    broker_settings,
    default_directory,
    departures_from_kafka,
    main,
    wipe,
)


@pytest.mark.parametrize(
    ("brokers", "replicas", "in_sync"), [(1, "1", "1"), (2, "2", "2"), (3, "3", "2"), (5, "3", "2")]
)
def test_counts_follow_the_number_of_brokers(brokers: int, replicas: str, in_sync: str):
    departures = departures_from_kafka(brokers)
    assert departures["num.partitions"] == "3"
    assert departures["group.initial.rebalance.delay.ms"] == "0"
    for name in ("default", "offsets.topic", "transaction.state.log"):
        assert departures[f"{name}.replication.factor"] == replicas
    assert departures["min.insync.replicas"] == in_sync
    assert departures["transaction.state.log.min.isr"] == in_sync


def test_its_settings_make_a_broker_with_the_metadata_beside_the_log(tmp_path: Path):
    config = BrokerConfig.resolve(broker_settings(tmp_path, 1, 9092))
    assert config.broker_id == 1
    assert config.log_dirs == (str(tmp_path / "broker-1"),)
    assert config.barnabas_metadata_dir == str(tmp_path / "metadata")
    assert str(config.listeners[0]) == "PLAINTEXT://127.0.0.1:9092"


def test_fresh_removes_what_earlier_runs_left(tmp_path: Path):
    (tmp_path / "broker-1" / "hello-0").mkdir(parents=True)
    (tmp_path / "metadata").mkdir()
    wipe(tmp_path, 1)
    assert list(tmp_path.iterdir()) == []


def test_fresh_never_empties_a_directory_of_somebody_else(tmp_path: Path):
    (tmp_path / "broker-1").mkdir()
    (tmp_path / "thesis.txt").write_text("years of work")
    with pytest.raises(ProgramError, match="--fresh"):
        wipe(tmp_path, 1)
    assert (tmp_path / "broker-1").is_dir()
    assert (tmp_path / "thesis.txt").is_file()


def test_the_data_lives_with_the_users_other_data(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    assert default_directory() == tmp_path / "barnabas" / "default"


def test_more_brokers_than_it_can_run_are_refused(capsys: pytest.CaptureFixture[str]):
    assert main(["--brokers", "3"]) == 2
    assert "fix:   barnabas up --brokers 1" in capsys.readouterr().err


def test_a_directory_that_cannot_be_made_is_told(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
):
    (tmp_path / "file").write_text("")
    assert main(["--dir", str(tmp_path / "file" / "below")]) == 1
    assert "see:   docs/errors.md#disk-refuses" in capsys.readouterr().err


@pytest.mark.parametrize("port", ["99999", "-1"])
def test_a_port_that_is_none_is_told_by_the_option(port: str, capsys: pytest.CaptureFixture[str]):
    assert main([f"--port={port}"]) == 2
    told = capsys.readouterr().err
    assert f"error: --port {port}" in told
    assert "fix:   barnabas up --port 9092" in told


def test_a_taken_port_is_mended_by_the_option(capsys: pytest.CaptureFixture[str], tmp_path: Path):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert main(["--dir", str(tmp_path), "--port", str(port)]) == 1
    told = capsys.readouterr().err
    assert f"127.0.0.1:{port}" in told
    assert "fix:   barnabas up --port 9092" in told
    assert "listeners=" not in told
