"""A real ZooKeeper 3.8.4 as a child process, and a client that shows every byte of its answers.

The client is small on purpose and shares no code with the project: one blocking socket per
session, requests one at a time, watch events in the order in which they came between answers.
"""

import socket
import struct
import subprocess
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from barnabas.model.znode import (
    Check,
    Create,
    Delete,
    Exists,
    GetChildren,
    GetData,
    Operation,
    Outcome,
    SetData,
    Stat,
    StoreError,
    WatchEvent,
    WatchKind,
)
from tests.tools import MissingTool, kafka_class_path

START_SECONDS = 30
ANSWER_SECONDS = 20
LOG_LINES_MAX = 1000

_CREATE, _DELETE, _EXISTS, _GET_DATA, _SET_DATA, _PING = 1, 2, 3, 4, 5, 11
_GET_CHILDREN2, _CHECK, _MULTI, _CLOSE = 12, 13, 14, -11
_WATCH_XID, _PING_XID = -1, -2
_STAT = struct.Struct(">qqqqiiiqiiq")


@contextmanager
def running_zookeeper(directory: Path, tick_ms: int = 200) -> Iterator[int]:
    """The port of a standalone server that lives as long as the context."""
    log = directory / "log4j.properties"
    log.write_text(
        "log4j.rootLogger=INFO, out\nlog4j.appender.out=org.apache.log4j.ConsoleAppender\n"
        "log4j.appender.out.layout=org.apache.log4j.PatternLayout\n"
        "log4j.appender.out.layout.ConversionPattern=%m%n\n"
    )
    with socket.create_server(("127.0.0.1", 0)) as unused:
        port = unused.getsockname()[1]
    command = [
        *("java", "-Xmx128m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"),
        *("-Dzookeeper.forceSync=no", "-Dzookeeper.admin.enableServer=false"),
        f"-Dlog4j.configuration=file:{log}",
        *("-cp", kafka_class_path(), "org.apache.zookeeper.server.ZooKeeperServerMain"),
        *(str(port), str(directory / "data"), str(tick_ms), "0"),
    ]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    said: list[bytes] = []
    started = threading.Event()
    reader = threading.Thread(target=_read_log, args=(server, said, started))
    reader.start()
    try:
        started.wait(START_SECONDS)
        if server.poll() is not None or not started.is_set():
            raise MissingTool(f"ZooKeeper did not start: {b''.join(said[-5:]).decode()}")
        _wait_until_serving(port)
        yield port
    finally:
        server.kill()
        server.wait()
        reader.join()


def _wait_until_serving(port: int) -> None:
    """The port is bound a little before the server lets anybody in."""
    deadline = time.monotonic() + START_SECONDS
    while True:
        try:
            return ZooKeeperSession(port).close()
        except ConnectionError:
            if time.monotonic() > deadline:
                raise


def _read_log(
    server: "subprocess.Popen[bytes]", said: list[bytes], started: threading.Event
) -> None:
    assert server.stdout is not None
    for line in server.stdout:
        if len(said) < LOG_LINES_MAX:
            said.append(line)
        if line.startswith(b"PrepRequestProcessor") and b"started" in line:
            started.set()


class Reply(NamedTuple):
    """An answer's header and body."""

    zxid: int
    error: int
    body: "Reader"


class Reader:
    """Takes fields off the front of an answer."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.position = 0

    def unpack(self, layout: str) -> int:
        (value,) = struct.unpack_from(">" + layout, self.data, self.position)
        self.position += struct.calcsize(">" + layout)
        return value

    def buffer(self) -> bytes | None:
        size = self.unpack("i")
        if size < 0:
            return None
        self.position += size
        return self.data[self.position - size : self.position]

    def text(self) -> str:
        return (self.buffer() or b"").decode("utf-8")

    def stat(self) -> Stat:
        fields = _STAT.unpack_from(self.data, self.position)
        self.position += _STAT.size
        return Stat(*fields)


class ZooKeeperSession:
    """One session over one connection."""

    def __init__(self, port: int, timeout_ms: int = 4000) -> None:
        self.events: list[WatchEvent] = []
        self._xid = 0
        self._socket = socket.create_connection(("127.0.0.1", port), ANSWER_SECONDS)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._socket.sendall(
            _framed(struct.pack(">iqiq", 0, 0, timeout_ms, 0) + _buffer(bytes(16)))
        )
        answer = Reader(self._receive())
        answer.unpack("i")
        self.timeout_ms = answer.unpack("i")
        self.session_id = answer.unpack("q")

    def take_events(self) -> list[WatchEvent]:
        """The watches that fired since the last time, after asking for all that are under way."""
        self._ask(_PING, b"", _PING_XID)
        events, self.events = self.events, []
        return events

    def wait_for_event(self) -> WatchEvent:
        """The next watch that fires."""
        while not self.events:
            self._read_one(0)
        return self.events.pop(0)

    def close(self) -> None:
        """End the session in good order."""
        self._ask(_CLOSE, b"")
        self._socket.close()

    def break_connection(self) -> None:
        """Go silent; the session ends by its timeout."""
        self._socket.close()

    def do(self, operation: Operation) -> Outcome:
        """One operation by itself."""
        match operation:
            case Create():
                reply = self._ask(_CREATE, _body(operation))
                if reply.error == 0:
                    return Outcome(StoreError.OK, path=reply.body.text())
            case SetData():
                reply = self._ask(_SET_DATA, _body(operation))
                if reply.error == 0:
                    return Outcome(StoreError.OK, stat=reply.body.stat())
            case Delete():
                reply = self._ask(_DELETE, _body(operation))
            case Check():
                reply = self._ask(_CHECK, _body(operation))
            case GetData(path=path, watch=watch):
                reply = self._ask(_GET_DATA, _text(path) + bytes([watch]))
                if reply.error == 0:
                    data = reply.body.buffer()
                    return Outcome(StoreError.OK, data=data, stat=reply.body.stat())
            case Exists(path=path, watch=watch):
                reply = self._ask(_EXISTS, _text(path) + bytes([watch]))
                if reply.error == 0:
                    return Outcome(StoreError.OK, stat=reply.body.stat())
            case GetChildren(path=path, watch=watch):
                reply = self._ask(_GET_CHILDREN2, _text(path) + bytes([watch]))
                if reply.error == 0:
                    count = reply.body.unpack("i")
                    names = tuple(sorted(reply.body.text() for _ in range(count)))
                    return Outcome(StoreError.OK, children=names, stat=reply.body.stat())
        return Outcome(StoreError(reply.error))

    def multi(self, operations: Sequence[Operation]) -> tuple[Outcome, ...]:
        """All of the operations or none."""
        parts: list[bytes] = []
        for operation in operations:
            parts.append(struct.pack(">ibi", _code(operation), 0, -1) + _body(operation))
        parts.append(struct.pack(">ibi", -1, 1, -1))
        reply = self._ask(_MULTI, b"".join(parts))
        outcomes: list[Outcome] = []
        while True:
            code, is_done, _ = (reply.body.unpack(layout) for layout in "ibi")
            if is_done:
                return tuple(outcomes)
            if code == -1:
                outcomes.append(Outcome(StoreError(reply.body.unpack("i"))))
            elif code == _CREATE:
                outcomes.append(Outcome(StoreError.OK, path=reply.body.text()))
            elif code == _SET_DATA:
                outcomes.append(Outcome(StoreError.OK, stat=reply.body.stat()))
            else:
                outcomes.append(Outcome(StoreError.OK))

    def _ask(self, code: int, body: bytes, xid: int | None = None) -> Reply:
        if xid is None:
            self._xid += 1
            xid = self._xid
        self._socket.sendall(_framed(struct.pack(">ii", xid, code) + body))
        while True:
            reply = self._read_one(xid)
            if reply is not None:
                return reply

    def _read_one(self, xid: int) -> Reply | None:
        answer = Reader(self._receive())
        found, zxid, error = answer.unpack("i"), answer.unpack("q"), answer.unpack("i")
        if found == _WATCH_XID:
            kind = WatchKind(answer.unpack("i"))
            answer.unpack("i")
            self.events.append(WatchEvent(kind, answer.text()))
            return None
        assert found == xid, f"answer {found} came for request {xid}"
        return Reply(zxid, error, answer)

    def _receive(self) -> bytes:
        (size,) = struct.unpack(">i", self._receive_exactly(4))
        return self._receive_exactly(size)

    def _receive_exactly(self, size: int) -> bytes:
        parts: list[bytes] = []
        while size > 0:
            part = self._socket.recv(size)
            if not part:
                raise ConnectionError("ZooKeeper closed the connection")
            parts.append(part)
            size -= len(part)
        return b"".join(parts)


def _code(operation: Operation) -> int:
    codes = {Create: _CREATE, SetData: _SET_DATA, Delete: _DELETE, Check: _CHECK}
    return codes[type(operation)]


def _body(operation: Operation) -> bytes:
    match operation:
        case Create(path=path, data=data, mode=mode):
            open_to_all = struct.pack(">ii", 1, 31) + _text("world") + _text("anyone")
            return _text(path) + _buffer(data) + open_to_all + struct.pack(">i", mode.value)
        case SetData(path=path, data=data, version=version):
            return _text(path) + _buffer(data) + struct.pack(">i", version)
        case Delete(path=path, version=version) | Check(path=path, version=version):
            return _text(path) + struct.pack(">i", version)
        case _:
            raise AssertionError(f"{operation} is not a write")


def _buffer(data: bytes | None) -> bytes:
    return struct.pack(">i", -1) if data is None else struct.pack(">i", len(data)) + data


def _text(text: str) -> bytes:
    return _buffer(text.encode("utf-8"))


def _framed(data: bytes) -> bytes:
    return struct.pack(">i", len(data)) + data
