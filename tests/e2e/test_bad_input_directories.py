"""Directories that are not this broker's: refused with what was found, and left as they were."""

import hashlib
import os
import shutil
import socket
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.e2e import raw_answers, raw_batches, raw_requests
from tests.e2e.broker_process import BrokerProcess, free_port
from tests.e2e.raw_wire import Connection

REFUSAL_SECONDS = 30


class Refusal(NamedTuple):
    """How a broker ended that did not start."""

    exit_code: int
    text: str


class Entry(NamedTuple):
    """All that could have changed of a file or directory."""

    mode: int
    size: int
    modified_ns: int
    content: str


def tree(directory: Path) -> dict[str, Entry]:
    """Everything under a directory, itself included."""
    found: dict[str, Entry] = {}
    for path in [directory, *sorted(directory.rglob("*"))]:
        stat = path.lstat()
        content = ""
        if path.is_symlink():
            content = os.readlink(path)
        elif path.is_file():
            content = hashlib.sha256(path.read_bytes()).hexdigest()
        key = str(path.relative_to(directory))
        found[key] = Entry(stat.st_mode, stat.st_size, stat.st_mtime_ns, content)
    return found


def refusal(broker: BrokerProcess) -> Refusal:
    """Start a broker that must not start."""
    environment = {k: v for k, v in os.environ.items() if not k.startswith("KAFKA_")}
    ended = subprocess.run(
        [sys.executable, "-m", "barnabas", "broker", str(broker.properties_path)],
        capture_output=True,
        text=True,
        timeout=REFUSAL_SECONDS,
        env=environment,
    )
    assert ended.returncode != 0
    assert "] started" not in ended.stdout
    assert "Traceback" not in ended.stderr
    lines = ended.stderr.splitlines()
    assert lines[0].startswith("error:"), ended.stderr
    assert "see:   docs/errors.md#" in lines[-1]
    return Refusal(ended.returncode, ended.stderr)


def refused_unchanged(broker: BrokerProcess, directory: Path | None = None) -> str:
    """The refusal's text, once it is clear that the log directory is as it was."""
    watched = directory or broker.log_dir
    before = tree(watched)
    text = refusal(broker).text
    assert tree(watched) == before
    return text


def create_topic(port: int, name: str) -> None:
    asked = raw_requests.create_topics(4, [name])
    with Connection(port) as connection:
        assert raw_answers.created_topics(asked, connection.ask(asked)) == {name: 0}


def produce(port: int, name: str) -> int:
    """The offset of a record, as soon as the broker knows the topic."""
    asking = raw_requests.metadata(4, [name])
    with Connection(port) as connection:
        while raw_answers.described(asking, connection.ask(asking)).topics[0].error_code != 0:
            pass
    asked = raw_requests.produce(9, raw_requests.Place(name), raw_batches.batch())
    with Connection(port) as connection:
        answer = raw_answers.produced(asked, connection.ask(asked))
    assert answer.error_code == 0
    return answer.base_offset


@pytest.fixture
def left(tmp_path: Path) -> Iterator[BrokerProcess]:
    """A broker that has run, has a topic with a record, and was stopped."""
    broker = BrokerProcess(tmp_path / "first").start()
    create_topic(broker.port, "kept")
    produce(broker.port, "kept")
    assert broker.stop() == 0
    yield broker
    if broker.process is not None:
        broker.kill()


def check_starts_again(broker: BrokerProcess, next_offset: int = 1) -> None:
    """A refusal has done no harm: the rightful broker goes on where it was."""
    with broker:
        assert produce(broker.port, "kept") == next_offset


def test_two_brokers_on_one_log_directory(left: BrokerProcess, tmp_path: Path) -> None:
    metadata = tmp_path / "copy-of-the-metadata"
    shutil.copytree(left.directory / "metadata", metadata)
    left.start()
    second = BrokerProcess(
        tmp_path / "second",
        {"log.dirs": str(left.log_dir), "barnabas.metadata.dir": str(metadata)},
    )
    text = refusal(second).text
    assert str(left.log_dir) in text
    assert f"process {left.pid}" in text
    assert produce(left.port, "kept") == 1
    left.kill()
    check_starts_again(left, next_offset=2)


def test_two_brokers_on_one_metadata_directory(left: BrokerProcess, tmp_path: Path) -> None:
    left.start()
    shared = str(left.directory / "metadata")
    second = BrokerProcess(tmp_path / "second", {"barnabas.metadata.dir": shared, "broker.id": "2"})
    text = refusal(second).text
    assert shared in text
    assert f"process {left.pid}" in text
    assert not second.log_dir.exists()
    assert produce(left.port, "kept") == 1


def test_the_lock_of_a_dead_process_keeps_nobody_out(left: BrokerProcess) -> None:
    left.start()
    left.kill()
    check_starts_again(left)


def test_the_port_is_taken(left: BrokerProcess) -> None:
    with socket.create_server(("127.0.0.1", left.port)):
        text = refused_unchanged(left)
    assert f"process {os.getpid()}" in text
    assert str(left.port) in text
    check_starts_again(left)


def test_the_log_directory_of_another_cluster(left: BrokerProcess, tmp_path: Path) -> None:
    cluster_id = next(
        line.partition("=")[2]
        for line in (left.log_dir / "meta.properties").read_text().splitlines()
        if line.startswith("cluster.id=")
    )
    other = BrokerProcess(tmp_path / "other", {"log.dirs": str(left.log_dir)})
    text = refused_unchanged(other, left.log_dir)
    assert f"found cluster.id={cluster_id}" in text
    assert "expected" in text
    check_starts_again(left)


def test_the_log_directory_of_another_broker(left: BrokerProcess) -> None:
    other = BrokerProcess(
        left.directory, {"broker.id": "2", "listeners": f"PLAINTEXT://127.0.0.1:{free_port()}"}
    )
    text = refused_unchanged(other)
    assert "found broker.id=1" in text
    assert "expected 2" in text
    check_starts_again(BrokerProcess(left.directory))


def test_directories_of_two_brokers(left: BrokerProcess, tmp_path: Path) -> None:
    second = tmp_path / "of-another"
    second.mkdir()
    (second / "meta.properties").write_text("version=0\nbroker.id=7\ncluster.id=elsewhere\n")
    both = BrokerProcess(tmp_path / "both", {"log.dirs": f"{left.log_dir},{second}"})
    before = tree(second)
    text = refused_unchanged(both, left.log_dir)
    assert tree(second) == before
    assert "elsewhere" in text
    check_starts_again(left)


def test_a_directory_of_kraft(tmp_path: Path) -> None:
    broker = BrokerProcess(tmp_path)
    broker.log_dir.mkdir()
    (broker.log_dir / "meta.properties").write_text(
        "version=1\nnode.id=1\ncluster.id=MkU3OEVBNTcwNTJENDM2Qg\n"
        "directory.id=AAAAAAAAAAAAAAAAAAAAAQ\n"
    )
    text = refused_unchanged(broker)
    assert "KRaft" in text
    assert "found version=1" in text
    assert "expected version=0" in text


def test_a_metadata_log_of_kraft(tmp_path: Path) -> None:
    broker = BrokerProcess(tmp_path)
    (broker.log_dir / "__cluster_metadata-0").mkdir(parents=True)
    (broker.log_dir / "__cluster_metadata-0" / "00000000000000000000.log").write_bytes(b"")
    text = refused_unchanged(broker)
    assert "KRaft" in text


def test_a_directory_of_something_else(tmp_path: Path) -> None:
    broker = BrokerProcess(tmp_path)
    (broker.log_dir / "photographs").mkdir(parents=True)
    (broker.log_dir / "photographs" / "holiday.png").write_bytes(b"not ours")
    text = refused_unchanged(broker)
    assert "photographs" in text
    assert "topic-partition" in text


@pytest.mark.parametrize(
    "content",
    [
        b"version=0\nbroker.id=one\ncluster.id=x\n",
        b"version=zero\nbroker.id=1\ncluster.id=x\n",
        b"version=2\nbroker.id=1\ncluster.id=x\n",
    ],
)
def test_a_damaged_meta_properties(left: BrokerProcess, content: bytes) -> None:
    (left.log_dir / "meta.properties").write_bytes(content)
    text = refused_unchanged(left)
    assert "meta.properties" in text


@pytest.mark.parametrize("place", ["", "kept-0"])
@pytest.mark.parametrize("is_directory", [True, False])
def test_a_symbolic_link_inside(left: BrokerProcess, place: str, is_directory: bool) -> None:
    """It may lead to the files of somebody else, and a deletion would follow it."""
    elsewhere = left.directory / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "secret").write_text("not ours")
    target = elsewhere if is_directory else elsewhere / "secret"
    name = "linked-0" if is_directory else "00000000000000000007.log"
    link = left.log_dir / place / name
    link.symlink_to(target)
    before = tree(elsewhere)
    text = refused_unchanged(left)
    assert "symbolic link" in text
    assert str(link) in text
    assert tree(elsewhere) == before
    link.unlink()
    check_starts_again(left)


def test_a_log_directory_behind_a_link_is_a_log_directory(left: BrokerProcess) -> None:
    """People put log.dirs itself behind a link; only what is inside must be real."""
    real = left.directory / "real"
    left.log_dir.rename(real)
    left.log_dir.symlink_to(real)
    check_starts_again(left)


def test_a_file_where_a_directory_should_be(tmp_path: Path) -> None:
    broker = BrokerProcess(tmp_path)
    broker.log_dir.write_text("a file")
    text = refused_unchanged(broker)
    assert str(broker.log_dir) in text


def test_one_directory_twice(tmp_path: Path) -> None:
    twice = f"{tmp_path / 'logs'},{tmp_path / 'logs'}"
    text = refusal(BrokerProcess(tmp_path, {"log.dirs": twice})).text
    assert "more than once" in text
    assert not (tmp_path / "logs").exists()


def test_one_directory_under_two_names(tmp_path: Path) -> None:
    (tmp_path / "logs").mkdir()
    (tmp_path / "alias").symlink_to(tmp_path / "logs")
    names = f"{tmp_path / 'logs'},{tmp_path / 'alias'}"
    broker = BrokerProcess(tmp_path, {"log.dirs": names})
    text = refusal(broker).text
    assert str(tmp_path / "alias") in text


def of_another_program(path: Path) -> None:
    with sqlite3.connect(path) as database:
        database.execute("create table photographs (name text)")
        database.execute("insert into photographs values ('holiday')")
    database.close()


def of_no_program(path: Path) -> None:
    path.write_bytes(os.urandom(5000))


@pytest.mark.parametrize("make", [of_another_program, of_no_program])
def test_a_metadata_file_of_something_else(tmp_path: Path, make: Callable[[Path], None]) -> None:
    broker = BrokerProcess(tmp_path)
    file = tmp_path / "metadata" / "metadata.sqlite"
    file.parent.mkdir()
    make(file)
    before = file.read_bytes()
    assert str(file) in refusal(broker).text
    assert file.read_bytes() == before
    assert not broker.log_dir.exists()
