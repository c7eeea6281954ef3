"""The metadata file: transactions committed to SQLite by one writer thread, several at a time."""

import errno
import fcntl
import os
import sqlite3
import threading
import zlib
from collections import deque
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import assert_never

from barnabas.model.errors import (
    BarnabasError,
    DiskError,
    DiskFull,
    DiskLost,
    MetadataFileInUse,
    MetadataFileRefused,
)
from barnabas.model.invariant import invariant
from barnabas.node.real_disk import to_disk_error
from barnabas.zookeeper.journal import (
    ROOT,
    ROOT_NODE,
    Image,
    Node,
    NodeRemoved,
    NodeWritten,
    SessionClosed,
    SessionOpened,
    Transaction,
    find_damage,
)

APPLICATION_ID = 0x4261726E
"""In the file's header: it is ours."""
FORMAT = 1
"""In the file's header: how the tables are laid out."""

_MAGIC = b"SQLite format 3\0"
_APPLICATION_ID_AT = 68

_DISK_REFUSES = (errno.EROFS, errno.EACCES, errno.EPERM, errno.ENOSPC, errno.EDQUOT, errno.EIO)
_SQLITE_DISK_REFUSES = (
    sqlite3.SQLITE_READONLY,
    sqlite3.SQLITE_IOERR,
    sqlite3.SQLITE_FULL,
    sqlite3.SQLITE_CANTOPEN,
)

_SCHEMA = (
    "CREATE TABLE last (zxid INTEGER NOT NULL, session_id INTEGER NOT NULL)",
    "CREATE TABLE session (id INTEGER PRIMARY KEY, timeout_ms INTEGER NOT NULL)",
    """CREATE TABLE node (
        path TEXT PRIMARY KEY, data BLOB, czxid INTEGER NOT NULL, mzxid INTEGER NOT NULL,
        pzxid INTEGER NOT NULL, ctime_ms INTEGER NOT NULL, mtime_ms INTEGER NOT NULL,
        version INTEGER NOT NULL, creations INTEGER NOT NULL, ephemeral_owner INTEGER NOT NULL,
        children_count INTEGER NOT NULL, checksum INTEGER NOT NULL)""",
)
_WRITE_NODE = "INSERT OR REPLACE INTO node VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"


class SqliteJournal:
    """A `Journal` in one SQLite file, held by this process alone.

    Whatever transactions wait when the writer thread comes back from the disk go into its next
    commit together: under load one sync carries many of them.
    """

    def __init__(self, path: Path, connection: sqlite3.Connection, lock: "_LockFile") -> None:
        self._path = path
        self._connection = connection
        self._lock = lock
        self._waiting: deque[Transaction] = deque()
        self._changed = threading.Condition()
        self._is_closing = False
        self._thread: threading.Thread | None = None

    @classmethod
    def open(cls, path: Path) -> "tuple[SqliteJournal, Image]":
        """Take the file, made when it is missing, and what is in it.

        `MetadataFileInUse` when another process has it, `MetadataFileRefused` when it is not ours
        or not sound, `DiskError` when the disk lets nobody use it.
        """
        path = path.absolute()
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            lock = _LockFile(path)
        except OSError as error:
            raise _refused(path, error) from error
        try:
            connection, image = _open_locked(path)
        except OSError as error:
            lock.release()
            raise _refused(path, error) from error
        except BaseException:
            lock.release()
            raise
        return cls(path, connection, lock), image

    def start(
        self, on_durable: Callable[[int], None], on_failed: Callable[[DiskError], None]
    ) -> None:
        """Begin to commit. Both are called on the writer thread.

        `on_durable` is given the last zxid of each commit. After `on_failed` nothing more is
        committed: the file stays at the last zxid that was told.
        """
        invariant(self._thread is None, "a journal was started twice")
        self._thread = threading.Thread(
            target=self._write_until_closed,
            args=(on_durable, on_failed),
            name="barnabas-metadata-writer",
            daemon=True,
        )
        self._thread.start()

    def append(self, transactions: Sequence[Transaction]) -> None:
        """Queue for the next commit; the caller bounds what it has under way."""
        with self._changed:
            invariant(not self._is_closing, "a transaction after the journal was closed")
            self._waiting.extend(transactions)
            self._changed.notify()

    def close(self) -> None:
        """Commit what waits, then give the file back."""
        with self._changed:
            self._is_closing = True
            self._changed.notify()
        if self._thread is not None:
            self._thread.join()
        self._connection.close()
        self._lock.release()

    def _write_until_closed(
        self, on_durable: Callable[[int], None], on_failed: Callable[[DiskError], None]
    ) -> None:
        while True:
            with self._changed:
                while not self._waiting and not self._is_closing:
                    self._changed.wait()
                group = list(self._waiting)
                self._waiting.clear()
            if not group:
                return
            try:
                _commit(self._connection, group)
            except sqlite3.Error as error:
                on_failed(_disk_error(self._path, error))
                return
            on_durable(group[-1].zxid)


class _LockFile:
    """A file beside the metadata file whose lock says who has it; gone with its process."""

    def __init__(self, path: Path) -> None:
        self._descriptor = os.open(f"{path}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.read(self._descriptor, 32).decode("ascii", "replace").strip()
            os.close(self._descriptor)
            raise MetadataFileInUse(
                f"{path} is in use by process {holder or 'unknown'}: two brokers cannot share one "
                "embedded metadata store; stop that process or give this one another "
                "barnabas.metadata.dir"
            ) from None
        os.ftruncate(self._descriptor, 0)
        os.pwrite(self._descriptor, f"{os.getpid()}\n".encode("ascii"), 0)

    def release(self) -> None:
        """Let another process have it; the file stays, so that nobody locks a removed one."""
        os.ftruncate(self._descriptor, 0)
        os.close(self._descriptor)


def _open_locked(path: Path) -> tuple[sqlite3.Connection, Image]:
    is_new = not path.exists()
    connection = _connect(path)
    try:
        image = _load(connection, path)
        if is_new:
            _sync_directories(path)
    except BaseException:
        connection.close()
        raise
    return connection, image


def _connect(path: Path) -> sqlite3.Connection:
    """Open the file, ours by its header, with what makes a commit survive a loss of power."""
    _check_header(path)
    try:
        connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    except sqlite3.Error as error:
        raise _refused(path, error) from error
    try:
        connection.execute("PRAGMA locking_mode = EXCLUSIVE")
        application_id = _number(connection, "PRAGMA application_id")
        layout = _number(connection, "PRAGMA user_version")
        tables = _number(connection, "SELECT count(*) FROM sqlite_master")
        is_new = (application_id, layout, tables) == (0, 0, 0)
        if not is_new and application_id != APPLICATION_ID:
            raise MetadataFileRefused(
                f"{path}: found an SQLite file of application id {application_id:#x}, expected a "
                f"metadata file of id {APPLICATION_ID:#x}"
            )
        if not is_new and layout != FORMAT:
            raise MetadataFileRefused(f"{path}: found format {layout}, expected format {FORMAT}")
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = FULL")
        if is_new:
            _create(connection)
    except sqlite3.Error as error:
        connection.close()
        raise _refused(path, error) from error
    except BaseException:
        connection.close()
        raise
    return connection


def _sync_directories(path: Path) -> None:
    """Make the name of a new file durable, and that of its directory, which may be new too."""
    for directory in (path.parent, path.parent.parent):
        descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def _check_header(path: Path) -> None:
    """Refuse a foreign file before SQLite touches it."""
    try:
        with path.open("rb") as file:
            header = file.read(100)
    except FileNotFoundError:
        return
    if not header:
        return
    if not header.startswith(_MAGIC):
        raise MetadataFileRefused(
            f"{path}: found a file beginning with {header[:16]!r}, expected an SQLite file"
        )
    application_id = int.from_bytes(header[_APPLICATION_ID_AT : _APPLICATION_ID_AT + 4], "big")
    if application_id not in (0, APPLICATION_ID):
        raise MetadataFileRefused(
            f"{path}: found an SQLite file of application id {application_id:#x}, expected a "
            f"metadata file of id {APPLICATION_ID:#x}"
        )


def _create(connection: sqlite3.Connection) -> None:
    connection.execute("BEGIN IMMEDIATE")
    for statement in _SCHEMA:
        connection.execute(statement)
    connection.execute("INSERT INTO last VALUES (0, 0)")
    connection.execute(_WRITE_NODE, _row(NodeWritten(ROOT, ROOT_NODE)))
    connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
    connection.execute(f"PRAGMA user_version = {FORMAT}")
    connection.execute("COMMIT")


def _load(connection: sqlite3.Connection, path: Path) -> Image:
    """All that is in the file, refused unless every row and the whole are sound."""
    try:
        found = connection.execute("PRAGMA quick_check(1)").fetchone()
        if found != ("ok",):
            raise MetadataFileRefused(f"{path} is damaged: {found[0]}")
        last = connection.execute("SELECT zxid, session_id FROM last").fetchall()
        sessions = connection.execute("SELECT id, timeout_ms FROM session ORDER BY id").fetchall()
        rows = connection.execute("SELECT * FROM node ORDER BY path").fetchall()
    except sqlite3.Error as error:
        raise _refused(path, error) from error
    if len(last) != 1:
        raise MetadataFileRefused(f"{path} is damaged: {len(last)} rows of last numbers, not one")
    image = Image(
        last_zxid=last[0][0],
        last_session_id=last[0][1],
        sessions=tuple(SessionOpened(*row) for row in sessions),
        nodes=tuple(NodeWritten(row[0], Node(*row[1:-1])) for row in rows),
    )
    for written, row in zip(image.nodes, rows, strict=True):
        if _row(written) != row:
            raise MetadataFileRefused(
                f"{path} is damaged: {written.path} does not match its checksum"
            )
    damage = find_damage(image)
    if damage is not None:
        raise MetadataFileRefused(f"{path} is damaged: {damage}")
    return image


def _commit(connection: sqlite3.Connection, group: Sequence[Transaction]) -> None:
    """Make a group of transactions durable; all or none of them after a crash."""
    connection.execute("BEGIN IMMEDIATE")
    for transaction in group:
        for change in transaction.changes:
            match change:
                case NodeWritten():
                    connection.execute(_WRITE_NODE, _row(change))
                case NodeRemoved(path=path):
                    connection.execute("DELETE FROM node WHERE path = ?", (path,))
                case SessionOpened(session_id=session_id, timeout_ms=timeout_ms):
                    connection.execute(
                        "INSERT INTO session VALUES (?, ?)", (session_id, timeout_ms)
                    )
                    connection.execute("UPDATE last SET session_id = ?", (session_id,))
                case SessionClosed(session_id=session_id):
                    connection.execute("DELETE FROM session WHERE id = ?", (session_id,))
                case _ as never:
                    assert_never(never)
    connection.execute("UPDATE last SET zxid = ?", (group[-1].zxid,))
    connection.execute("COMMIT")


def _row(written: NodeWritten) -> tuple[object, ...]:
    """The columns of a node, the last a checksum of the others."""
    path, node = written
    numbers = ",".join(str(number) for number in node[1:])
    described = f"{path},{numbers},{'null' if node.data is None else 'data'}".encode()
    return (path, *node, zlib.crc32(described, zlib.crc32(node.data or b"")))


def _number(connection: sqlite3.Connection, query: str) -> int:
    return connection.execute(query).fetchone()[0]


def _refused(path: Path, error: sqlite3.Error | OSError) -> BarnabasError:
    """Why a file cannot be opened: the disk will not have it, or it is not what it should be."""
    if isinstance(error, OSError):
        if error.errno in _DISK_REFUSES:
            return to_disk_error(str(path), error)
    # An extended code has its kind in the lowest byte.
    elif getattr(error, "sqlite_errorcode", 0) & 0xFF in _SQLITE_DISK_REFUSES:
        return DiskLost(str(path), str(error))
    return MetadataFileRefused(f"{path} cannot be used as a metadata file: {error}")


def _disk_error(path: Path, error: sqlite3.Error) -> DiskError:
    if getattr(error, "sqlite_errorcode", None) == sqlite3.SQLITE_FULL:
        return DiskFull(str(path), "no space for a metadata transaction")
    return DiskLost(str(path), f"a metadata transaction could not be committed: {error}")
