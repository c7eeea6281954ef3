"""The metadata file: after any accident a prefix of what was committed, never a foreign file."""

import errno
import os
import random
import shutil
import sqlite3
import threading
from pathlib import Path

import pytest

from barnabas.model.errors import DiskError, DiskFull, MetadataFileInUse, MetadataFileRefused
from barnabas.node.sqlite_journal import SqliteJournal
from barnabas.zookeeper.journal import Image
from tests.worlds.metadata_history import History

WAIT_SECONDS = 20
STEPS = 40


class Commits:
    """What a journal told of itself."""

    def __init__(self) -> None:
        self.durable: list[int] = []
        self.failed: list[Exception] = []
        self._told = threading.Condition()

    def note_durable(self, zxid: int) -> None:
        with self._told:
            self.durable.append(zxid)
            self._told.notify()

    def note_failed(self, error: Exception) -> None:
        with self._told:
            self.failed.append(error)
            self._told.notify()

    def wait_for(self, zxid: int) -> None:
        with self._told:
            assert self._told.wait_for(
                lambda: bool(self.failed) or zxid in self.durable, WAIT_SECONDS
            )


def written(path: Path, seed: int = 1) -> tuple[SqliteJournal, History]:
    """A file with a random history in it, each of its transactions in a commit of its own."""
    journal, image = SqliteJournal.open(path)
    commits = Commits()
    journal.start(commits.note_durable, commits.note_failed)
    history = History(image, random.Random(seed))
    journal.append(history.begin())
    for _ in range(STEPS):
        journal.append(history.step())
        commits.wait_for(history.image.last_zxid)
    return journal, history


def reopened(path: Path) -> Image:
    journal, image = SqliteJournal.open(path)
    journal.close()
    return image


def test_what_was_committed_is_there_again(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "metadata.sqlite"
    journal, history = written(path)
    journal.close()
    assert reopened(path) == history.image
    assert history.image.sessions
    assert any(written.node.ephemeral_owner for written in history.image.nodes)


def test_a_commit_waits_for_the_disk(tmp_path: Path) -> None:
    journal, _ = SqliteJournal.open(tmp_path / "metadata.sqlite")
    settings = [
        journal._connection.execute(f"PRAGMA {name}").fetchone()[0]
        for name in ("journal_mode", "synchronous", "locking_mode")
    ]
    assert settings == ["wal", 2, "exclusive"]
    journal.close()


def test_an_empty_store_is_a_root(tmp_path: Path) -> None:
    assert reopened(tmp_path / "metadata.sqlite") == Image()
    (tmp_path / "empty.sqlite").touch()
    assert reopened(tmp_path / "empty.sqlite") == Image()


def test_a_cut_or_changed_write_ahead_log_leaves_a_prefix(tmp_path: Path) -> None:
    path = tmp_path / "metadata.sqlite"
    journal, history = written(path)
    log = path.with_name(path.name + "-wal").read_bytes()
    draw = random.Random(2)
    zxids: list[int] = []
    lengths = sorted(draw.randrange(len(log)) for _ in range(25))
    for number, length in enumerate([*lengths, len(log)]):
        copied = tmp_path / str(number) / path.name
        copied.parent.mkdir()
        shutil.copy(path, copied)
        copied.with_name(path.name + "-wal").write_bytes(log[:length])
        image = reopened(copied)
        assert image == history.images[image.last_zxid]
        zxids.append(image.last_zxid)
    assert zxids == sorted(zxids)
    assert zxids[-1] == history.image.last_zxid
    for number in range(25):
        copied = tmp_path / f"changed{number}" / path.name
        copied.parent.mkdir()
        shutil.copy(path, copied)
        position = draw.randrange(len(log))
        changed = log[:position] + bytes([log[position] ^ 0x40]) + log[position + 1 :]
        copied.with_name(path.name + "-wal").write_bytes(changed)
        image = reopened(copied)
        assert image == history.images[image.last_zxid]
    journal.close()


def test_waiting_transactions_share_a_commit(tmp_path: Path) -> None:
    path = tmp_path / "metadata.sqlite"
    journal, image = SqliteJournal.open(path)
    history = History(image, random.Random(3))
    transactions = history.begin()
    for _ in range(200):
        transactions += history.step()
    commits = Commits()
    for transaction in transactions:
        journal.append([transaction])
    journal.start(commits.note_durable, commits.note_failed)
    journal.close()
    assert commits.durable == [history.image.last_zxid]
    assert reopened(path) == history.image


def test_a_second_process_is_told_who_has_the_file(tmp_path: Path) -> None:
    path = tmp_path / "metadata.sqlite"
    journal, _ = SqliteJournal.open(path)
    with pytest.raises(MetadataFileInUse, match=f"in use by process {os.getpid()}:"):
        SqliteJournal.open(path)
    journal.close()
    assert reopened(path) == Image()


def test_foreign_files_are_refused_and_left_alone(tmp_path: Path) -> None:
    text = tmp_path / "text"
    text.write_bytes(b"broker.id=1\n" * 100)
    with pytest.raises(MetadataFileRefused, match=r"beginning with b'broker.id=1"):
        SqliteJournal.open(text)
    assert text.read_bytes() == b"broker.id=1\n" * 100

    foreign = tmp_path / "foreign.sqlite"
    connection = sqlite3.connect(foreign)
    connection.execute("CREATE TABLE songs (title TEXT)")
    connection.close()
    before = foreign.read_bytes()
    with pytest.raises(MetadataFileRefused, match=r"application id 0x0, expected .* 0x4261726e"):
        SqliteJournal.open(foreign)
    assert foreign.read_bytes() == before

    marked = tmp_path / "marked.sqlite"
    connection = sqlite3.connect(marked)
    connection.execute("PRAGMA application_id = 77")
    connection.close()
    with pytest.raises(MetadataFileRefused, match="application id 0x4d, expected"):
        SqliteJournal.open(marked)

    directory = tmp_path / "directory"
    directory.mkdir()
    with pytest.raises(MetadataFileRefused, match="cannot be used as a metadata file"):
        SqliteJournal.open(directory)
    with pytest.raises(MetadataFileRefused, match="cannot be used as a metadata file"):
        SqliteJournal.open(text / "below" / "metadata.sqlite")


def test_a_read_only_file_system_is_the_disks_refusal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "metadata.sqlite"
    real_open = os.open

    def refuse(opened: str, *arguments: object, **how: object) -> int:
        if str(opened).startswith(str(path)):
            raise OSError(errno.EROFS, os.strerror(errno.EROFS), opened)
        return real_open(opened, *arguments, **how)  # type: ignore[arg-type]

    monkeypatch.setattr(os, "open", refuse)
    with pytest.raises(DiskError) as refused:
        SqliteJournal.open(path)
    assert refused.value.reason == "Read-only file system"


def test_what_sqlite_may_not_open_is_the_disks_refusal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def connect(path: Path, **how: object) -> sqlite3.Connection:
        problem = sqlite3.OperationalError("unable to open database file")
        problem.sqlite_errorcode = sqlite3.SQLITE_CANTOPEN
        raise problem

    monkeypatch.setattr(sqlite3, "connect", connect)
    with pytest.raises(DiskError, match="unable to open database file"):
        SqliteJournal.open(tmp_path / "metadata.sqlite")


def test_a_later_format_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "metadata.sqlite"
    reopened(path)
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA user_version = 9")
    connection.close()
    with pytest.raises(MetadataFileRefused, match="found format 9, expected format 1"):
        SqliteJournal.open(path)


DAMAGES = [
    ("UPDATE node SET data = x'00' WHERE path = '/a'", "/a does not match its checksum"),
    ("UPDATE node SET version = 77 WHERE path = '/a'", "/a does not match its checksum"),
    ("UPDATE node SET data = NULL WHERE path = '/a'", "/a does not match its checksum"),
    ("UPDATE node SET mzxid = 'x' WHERE path = '/a'", "/a does not match its checksum"),
    ("DELETE FROM node WHERE path = '/a'", "/a/b has no parent"),
    ("DELETE FROM node WHERE path = '/a/b'", "/a has 0 children where 1 are noted"),
    ("DELETE FROM node WHERE path = '/'", "the root node is missing"),
    ("DELETE FROM session", "belongs to session"),
    ("UPDATE last SET zxid = 1", "was changed after the last transaction 1"),
    ("UPDATE last SET session_id = 0", "a session is younger than the last one given"),
    ("DELETE FROM last", "0 rows of last numbers, not one"),
    ("DROP TABLE node", "cannot be used as a metadata file: no such table: node"),
]


@pytest.mark.parametrize(("statement", "reason"), DAMAGES)
def test_damage_is_refused_with_what_contradicts(
    tmp_path: Path, statement: str, reason: str
) -> None:
    path = tmp_path / "metadata.sqlite"
    journal, image = SqliteJournal.open(path)
    journal.start(lambda zxid: None, lambda error: None)
    history = History(image, random.Random(1))
    journal.append(history.begin())
    journal.append(history.create("/a", b"data"))
    journal.append(history.create("/a/b", None, is_ephemeral=True))
    journal.close()
    assert reopened(path) == history.image
    connection = sqlite3.connect(path)
    connection.execute(statement)
    connection.commit()
    connection.close()
    with pytest.raises(MetadataFileRefused, match=reason):
        SqliteJournal.open(path)


def test_damaged_pages_are_refused_or_harmless(tmp_path: Path) -> None:
    path = tmp_path / "metadata.sqlite"
    journal, history = written(path)
    journal.close()
    whole = path.read_bytes()
    draw = random.Random(4)
    refused = 0
    for number in range(60):
        position = draw.randrange(100, len(whole))
        damaged = tmp_path / f"{number}.sqlite"
        damaged.write_bytes(
            whole[:position] + bytes([whole[position] ^ 0x81]) + whole[position + 1 :]
        )
        try:
            assert reopened(damaged) == history.image
        except MetadataFileRefused:
            refused += 1
    assert refused > 10


def test_a_full_disk_fails_the_journal_and_keeps_what_was_committed(tmp_path: Path) -> None:
    path = tmp_path / "metadata.sqlite"
    journal, image = SqliteJournal.open(path)
    history = History(image, random.Random(5))
    commits = Commits()
    journal.start(commits.note_durable, commits.note_failed)
    journal.append(history.begin())
    commits.wait_for(history.image.last_zxid)
    kept = history.image
    journal._connection.execute("PRAGMA max_page_count = 12")
    journal.append(history.create("/large", bytes(1_000_000)))
    commits.wait_for(history.image.last_zxid)
    (error,) = commits.failed
    assert isinstance(error, DiskFull)
    assert error.path == str(path)
    journal.append(history.create("/small", b""))
    journal.close()
    assert commits.durable[-1] == kept.last_zxid
    assert reopened(path) == kept
