"""A small wire client of its own, so that no test of bad input trusts the codec it tests.

It writes frames by hand, remembers what every stretch of bytes is (`Mark`), so that a frame can be
made wrong in a chosen place, and reads answers field by field.
"""

import socket
import struct
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import NamedTuple, Self, TypeVar

Element = TypeVar("Element")

CLIENT_ID = "raw"
ANSWER_SECONDS = 20.0
ZERO_ID = bytes(16)


class Mark(NamedTuple):
    """What the bytes from `start` to `end` are: int16, size, count, text, records, element, ..."""

    kind: str
    start: int
    end: int


class Frame(NamedTuple):
    """A request without its length in front."""

    api_key: int
    api_version: int
    data: bytes
    marks: tuple[Mark, ...] = ()

    def __repr__(self) -> str:
        return f"<request {self.api_key} v{self.api_version} {self.data[:300].hex()}>"

    def replaced(self, data: bytes, marks: tuple[Mark, ...] = ()) -> "Frame":
        """The same request with other bytes; without `marks` nobody knows what stands where."""
        return Frame(self.api_key, self.api_version, data, marks)


class Writer:
    """Fields one after the other, in the old layout or the flexible one."""

    def __init__(self, is_flexible: bool = False) -> None:
        self.is_flexible = is_flexible
        self.data = bytearray()
        self.marks: list[Mark] = []

    def _put(self, kind: str, data: bytes) -> None:
        start = len(self.data)
        self.data += data
        self.marks.append(Mark(kind, start, len(self.data)))

    def int8(self, value: int) -> None:
        self._put("int8", struct.pack(">b", value))

    def int16(self, value: int) -> None:
        self._put("int16", struct.pack(">h", value))

    def int32(self, value: int) -> None:
        self._put("int32", struct.pack(">i", value))

    def int64(self, value: int) -> None:
        self._put("int64", struct.pack(">q", value))

    def boolean(self, value: bool) -> None:
        self._put("bool", b"\x01" if value else b"\x00")

    def uuid(self, value: bytes) -> None:
        assert len(value) == 16
        self._put("uuid", value)

    def uvarint(self, value: int, kind: str) -> None:
        self._put(kind, to_uvarint(value))

    def string(self, value: str | None) -> None:
        """A length and UTF-8; None is a null, which not every field may be."""
        encoded = None if value is None else value.encode()
        if self.is_flexible:
            self.uvarint(0 if encoded is None else len(encoded) + 1, "size")
        else:
            self._put("size", struct.pack(">h", -1 if encoded is None else len(encoded)))
        if encoded:
            self._put("text", encoded)

    def classic_string(self, value: str | None) -> None:
        """A string with an int16 length in either layout: the client id in every header."""
        encoded = None if value is None else value.encode()
        self._put("size", struct.pack(">h", -1 if encoded is None else len(encoded)))
        if encoded:
            self._put("text", encoded)

    def sized(self, value: bytes | None, kind: str) -> None:
        """Bytes behind an int32 length, or a varint one."""
        size = -1 if value is None else len(value)
        if self.is_flexible:
            self.uvarint(size + 1, "size")
        else:
            self._put("size", struct.pack(">i", size))
        if value:
            self._put(kind, value)

    def count(self, size: int) -> None:
        """How many elements follow; -1 is a null array."""
        if self.is_flexible:
            self.uvarint(size + 1, "count")
        else:
            self._put("count", struct.pack(">i", size))

    def array(self, values: Sequence[Element] | None, put: Callable[[Element], None]) -> None:
        """A count and the elements; the marks say where the whole and each of them stands."""
        start = len(self.data)
        self.count(-1 if values is None else len(values))
        for value in values or ():
            element_start = len(self.data)
            put(value)
            self.marks.append(Mark("element", element_start, len(self.data)))
        self.marks.append(Mark("array", start, len(self.data)))

    def tags(self, fields: Sequence[tuple[int, "Writer"]] = ()) -> None:
        """The end of a struct; nothing in the old layout."""
        if not self.is_flexible:
            return
        self.uvarint(len(fields), "tags")
        for tag, content in fields:
            self.uvarint(tag, "tag")
            self.uvarint(len(content.data), "size")
            base = len(self.data)
            self.data += content.data
            self.marks += [Mark(m.kind, m.start + base, m.end + base) for m in content.marks]


class Reader:
    """Fields of an answer one after the other; every shortfall is an error of the test."""

    def __init__(self, data: bytes, is_flexible: bool = False) -> None:
        self.data = data
        self.position = 0
        self.is_flexible = is_flexible

    def _take(self, size: int) -> bytes:
        end = self.position + size
        assert size >= 0 and end <= len(self.data), f"the answer ends early: {self.data[:200]!r}"
        taken = self.data[self.position : end]
        self.position = end
        return taken

    def int8(self) -> int:
        return int.from_bytes(self._take(1), "big", signed=True)

    def int16(self) -> int:
        return int.from_bytes(self._take(2), "big", signed=True)

    def int32(self) -> int:
        return int.from_bytes(self._take(4), "big", signed=True)

    def int64(self) -> int:
        return int.from_bytes(self._take(8), "big", signed=True)

    def boolean(self) -> bool:
        return self._take(1) != b"\x00"

    def uuid(self) -> bytes:
        return self._take(16)

    def uvarint(self) -> int:
        value = shift = 0
        while True:
            byte = self._take(1)[0]
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value
            shift += 7

    def string(self) -> str | None:
        size = self.uvarint() - 1 if self.is_flexible else self.int16()
        return None if size < 0 else self._take(size).decode()

    def sized(self) -> bytes | None:
        size = self.uvarint() - 1 if self.is_flexible else self.int32()
        return None if size < 0 else self._take(size)

    def array(self, read: Callable[[], Element]) -> list[Element]:
        count = self.uvarint() - 1 if self.is_flexible else self.int32()
        return [read() for _ in range(count)]

    def tags(self) -> dict[int, bytes]:
        if not self.is_flexible:
            return {}
        return {self.uvarint(): self._take(self.uvarint()) for _ in range(self.uvarint())}

    def end(self) -> None:
        """Nothing may be left."""
        rest = self.data[self.position :]
        assert not rest, f"{len(rest)} bytes follow the answer: {rest[:50]!r}"


def to_uvarint(value: int) -> bytes:
    """Seven bits a byte, the lowest first."""
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def to_varint(value: int) -> bytes:
    """A signed number, zigzag."""
    return to_uvarint((value << 1) ^ (value >> 63))


def with_length(data: bytes) -> bytes:
    """As it goes over the socket."""
    return struct.pack(">i", len(data)) + data


class Connection:
    """One socket to a broker."""

    def __init__(self, port: int, host: str = "127.0.0.1") -> None:
        self.socket = socket.create_connection((host, port), timeout=ANSWER_SECONDS)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def close(self) -> None:
        self.socket.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        problem: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def send_bytes(self, data: bytes) -> None:
        self.socket.sendall(data)

    def send(self, frame: Frame) -> None:
        self.send_bytes(with_length(frame.data))

    def ask(self, frame: Frame) -> Reader:
        """Send a request and read its answer behind the response header."""
        self.send(frame)
        return self.receive_answer(frame)

    def receive_answer(self, frame: Frame) -> Reader:
        answer = self.receive()
        assert answer is not None, f"the broker closed the connection instead of answering {frame}"
        assert answer[:4] == frame.data[4:8], "the answer belongs to another request"
        return answer_reader(frame.api_key, frame.api_version, answer)

    def receive(self) -> bytes | None:
        """One frame without its length; None when the broker has closed."""
        head = self._receive_exactly(4)
        if head is None:
            return None
        body = self._receive_exactly(int.from_bytes(head, "big"))
        assert body is not None, "the broker closed in the middle of an answer"
        return body

    def _receive_exactly(self, size: int) -> bytes | None:
        received = bytearray()
        while len(received) < size:
            try:
                piece = self.socket.recv(size - len(received))
            except ConnectionResetError:
                piece = b""
            if not piece:
                assert not received, f"closed after {len(received)} of {size} bytes"
                return None
            received += piece
        return bytes(received)

    def is_closed_by_broker(self, seconds: float = ANSWER_SECONDS) -> bool:
        """Wait until the broker closes; an answer, or silence for so long, is a no."""
        self.socket.settimeout(seconds)
        try:
            return self.socket.recv(1) == b""
        except (ConnectionResetError, BrokenPipeError):
            return True
        except TimeoutError:
            return False
        finally:
            self.socket.settimeout(ANSWER_SECONDS)


FIRST_FLEXIBLE = {
    0: 9,
    1: 12,
    2: 6,
    3: 9,
    4: 4,
    5: 2,
    6: 6,
    8: 8,
    9: 6,
    10: 3,
    11: 6,
    12: 4,
    13: 4,
    14: 4,
    15: 5,
    16: 3,
    18: 3,
    19: 5,
    20: 4,
    21: 2,
    22: 2,
    23: 4,
    32: 4,
    33: 2,
    35: 2,
    37: 2,
    42: 2,
    44: 1,
    47: 1,
    60: 0,
    61: 0,
}
"""By API key: from which version on layouts are flexible."""


def request_writer(api_key: int, api_version: int, correlation_id: int = 7) -> Writer:
    """A writer that has the request header in it already."""
    is_flexible = api_version >= FIRST_FLEXIBLE[api_key]
    writer = Writer(is_flexible)
    writer._put("api", struct.pack(">hh", api_key, api_version))
    writer._put("correlation", struct.pack(">i", correlation_id))
    writer.classic_string(CLIENT_ID)
    writer.tags()
    return writer


def finished(api_key: int, api_version: int, writer: Writer) -> Frame:
    return Frame(api_key, api_version, bytes(writer.data), tuple(writer.marks))


def answer_reader(api_key: int, api_version: int, answer: bytes) -> Reader:
    """A reader behind the response header."""
    is_flexible = api_version >= FIRST_FLEXIBLE[api_key]
    reader = Reader(answer, is_flexible)
    reader.int32()
    if api_key != 18:
        reader.tags()
    return reader
