"""One TCP connection that carries length-prefixed frames: receive whole frames, send parts.

Nothing is written before the turn of the loop ends, and then once per connection. Memory for a
large frame grows with the bytes that arrive, never with the length that was promised.
"""

import errno
import os
import socket
from collections.abc import Sequence
from io import BytesIO
from typing import Protocol

from librt.strings import read_i32_be

from barnabas.model.errors import DiskError
from barnabas.node.poller import Pollable
from barnabas.storage.disk import Buffer, FileSlice

RECEIVE_BYTES = 256 * 1024
LARGE_FRAME_BYTES = 64 * 1024
"""A longer frame gets a buffer of its own once that much of it has arrived."""
FIRST_LARGE_BUFFER_BYTES = 1024 * 1024 + 64 * 1024
"""Sixteen times what must have arrived, so that frames of a usual size are moved only once."""
SLICE_BYTES = 256 * 1024
"""How much of a file slice is read and sent at a time where it cannot be sent uncopied."""
HAS_SENDFILE = hasattr(os, "sendfile")
MSG_MORE = getattr(socket, "MSG_MORE", 0)
JOIN_BYTES = 64 * 1024
"""Small parts are joined up to this size, so that a turn costs one send."""


class TransferBuffers:
    """Scratch memory that all sockets of one loop share; nothing stays in it between calls."""

    __slots__ = ("receive", "slice")

    def __init__(self) -> None:
        self.receive = memoryview(bytearray(RECEIVE_BYTES))
        self.slice = memoryview(bytearray(SLICE_BYTES))


class FrameOwner(Pollable, Protocol):
    """Who learns that a socket is ready, gets its frames and learns of its end."""

    def on_frame(self, data: bytes, start: int, end: int) -> None: ...

    def on_refused(self, reason: str) -> None:
        """What arrives cannot be a frame: nothing more is taken; close when all is sent."""
        ...

    def on_end(self, reason: str) -> None: ...


class FramedSocket:
    """The socket and what is half received or not yet sent."""

    __slots__ = (
        "_left",
        "_out",
        "_out_position",
        "buffers",
        "fd",
        "frame_bytes_max",
        "frame_started_ms",
        "is_blocked",
        "is_closing",
        "is_ended",
        "is_paused",
        "large",
        "large_fill",
        "large_room",
        "large_size",
        "last_active_ms",
        "limit_name",
        "out_bytes",
        "owner",
        "sock",
    )

    def __init__(
        self,
        sock: socket.socket,
        owner: FrameOwner,
        frame_bytes_max: int,
        buffers: TransferBuffers,
        limit_name: str,
    ) -> None:
        sock.setblocking(False)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.sock = sock
        self.fd = sock.fileno()
        self.owner = owner
        self.buffers = buffers
        self.frame_bytes_max = frame_bytes_max
        self.limit_name = limit_name
        """What people may set to have larger frames taken."""
        self._left = b""
        self.large: BytesIO | None = None
        self.large_size = 0
        self.large_room = 0
        self.large_fill = 0
        self._out: list[Buffer | FileSlice] = []
        self._out_position = 0
        self.out_bytes = 0
        self.is_paused = False
        self.is_blocked = False
        """Whether the kernel takes no more, or is still connecting."""
        self.is_closing = False
        self.is_ended = False
        self.last_active_ms = 0
        self.frame_started_ms = -1

    # -- receiving ---------------------------------------------------------------------------

    def receive(self, now_ms: int) -> None:
        """Take what the socket has and hand over the frames that are complete."""
        self.last_active_ms = now_ms
        large = self.large
        try:
            if large is None:
                size = self.sock.recv_into(self.buffers.receive)
            else:
                size = self.sock.recv_into(large.getbuffer()[self.large_fill :])
        except (BlockingIOError, InterruptedError):
            return
        except OSError as problem:
            self.end(problem.strerror or "receive failed")
            return
        if size == 0:
            self.end("closed by the peer")
        elif large is None:
            data = bytes(self.buffers.receive[:size])
            self._take(self._left + data if self._left else data, now_ms)
        else:
            self._fill_large(large, size, now_ms)

    def _take(self, data: bytes, now_ms: int) -> None:
        self._left = b""
        position = 0
        length = len(data)
        on_frame = self.owner.on_frame
        while length - position >= 4:
            size: int = read_i32_be(data, position)
            if self.is_paused or self.is_closing:
                break
            if size < 0 or size > self.frame_bytes_max:
                self.is_closing = True
                beginning = data[position : position + 8]
                limit = f"{self.limit_name}={self.frame_bytes_max}"
                self.owner.on_refused(_describe_bad_length(beginning, size, limit))
                return
            end = position + 4 + size
            if end > length:
                if size > LARGE_FRAME_BYTES and length - position > LARGE_FRAME_BYTES:
                    self._begin_large(data, position + 4, size)
                break
            on_frame(data, position + 4, end)
            if self.is_ended:
                return
            position = end
        if self.is_closing:
            return
        if position == length:
            self.frame_started_ms = -1
            return
        if self.large is None:
            self._left = data[position:]
        if position > 0 or self.frame_started_ms < 0:
            self.frame_started_ms = now_ms

    def _begin_large(self, data: bytes, start: int, size: int) -> None:
        arrived = len(data) - start
        self.large = BytesIO()
        self.large_size = size
        self._make_room(self.large, min(size, max(FIRST_LARGE_BUFFER_BYTES, arrived)))
        self.large.getbuffer()[:arrived] = memoryview(data)[start:]
        self.large_fill = arrived

    def _make_room(self, large: BytesIO, room: int) -> None:
        """What is written behind the end makes room up to there, in one piece."""
        large.seek(room - 1)
        large.write(b"\0")
        self.large_room = room

    def _fill_large(self, large: BytesIO, size: int, now_ms: int) -> None:
        self.large_fill += size
        if self.large_fill == self.large_size:
            self.large = None
            self.frame_started_ms = -1
            # The very bytes that were received into: a full BytesIO gives them away uncopied.
            self.owner.on_frame(large.getvalue(), 0, self.large_size)
        elif self.large_fill == self.large_room:
            self._make_room(large, min(self.large_size, 2 * self.large_room))

    def pause(self) -> None:
        """Hand over no more frames until `resume`."""
        self.is_paused = True

    def resume(self, now_ms: int) -> None:
        """Hand over what came in before the pause; the caller lets the loop read again."""
        self.is_paused = False
        self.frame_started_ms = -1
        if self._left and not self.is_ended:
            self._take(self._left, now_ms)

    @property
    def received_bytes(self) -> int:
        """Room taken by what has arrived and was not handed over."""
        return len(self._left) + (0 if self.large is None else self.large_room)

    # -- sending -----------------------------------------------------------------------------

    @property
    def has_output(self) -> bool:
        return bool(self._out)

    def queue(self, parts: Sequence[Buffer | FileSlice]) -> None:
        """Keep the parts of a frame for the end of the turn."""
        for part in parts:
            self._out.append(part)
            # Asked first since it is nearly always so, and compiled code asks it without a call.
            if isinstance(part, bytes):
                self.out_bytes += len(part)
            else:
                self.out_bytes += part.size_bytes if isinstance(part, FileSlice) else len(part)

    def flush(self, now_ms: int) -> bool:
        """Send what is queued as far as the socket takes it; whether all of it has left."""
        if self.is_ended:
            return True
        out = self._out
        try:
            while out:
                first = out[0]
                if isinstance(first, FileSlice):
                    if not self._send_slice(first, now_ms):
                        return False
                elif not self._send_buffers(now_ms):
                    return False
        except (BlockingIOError, InterruptedError):
            return False
        except DiskError as problem:
            self.end(f"could not read what was to be sent: {problem}")
            return True
        except OSError as problem:
            self.end(problem.strerror or "send failed")
            return True
        if self.is_closing:
            self.end("closed by this broker")
        return True

    def _send_buffers(self, now_ms: int) -> bool:
        data, count = self._join()
        # A slice that follows shares the packet: its reader is woken once for both.
        flags = MSG_MORE if count < len(self._out) else 0
        sent = self.sock.send(data, flags)
        self.last_active_ms = now_ms
        self.out_bytes -= sent
        if sent < len(data):
            self._skip(sent)
            return False
        del self._out[:count]
        self._out_position = 0
        return True

    def _join(self) -> tuple[Buffer, int]:
        """What to send next, and how many queued parts it is the rest of."""
        out = self._out
        first = out[0]
        assert not isinstance(first, FileSlice)
        rest = memoryview(first)[self._out_position :] if self._out_position else first
        pieces: list[Buffer] = [rest]
        total = len(rest)
        count = 1
        while count < len(out) and total < JOIN_BYTES:
            part = out[count]
            if isinstance(part, FileSlice) or len(part) > JOIN_BYTES:
                break
            pieces.append(part)
            total += len(part)
            count += 1
        return (pieces[0] if count == 1 else b"".join(pieces)), count

    def _skip(self, sent: int) -> None:
        out = self._out
        position = self._out_position + sent
        while out:
            first = out[0]
            assert not isinstance(first, FileSlice)
            if position < len(first):
                break
            position -= len(first)
            del out[0]
            if position == 0:
                break
        self._out_position = position

    def _send_slice(self, part: FileSlice, now_ms: int) -> bool:
        left = part.size_bytes - self._out_position
        at = part.position + self._out_position
        descriptor = part.disk.descriptor(part.file) if HAS_SENDFILE else -1
        wanted = left
        if descriptor >= 0:
            sent = os.sendfile(self.fd, descriptor, at, left)
        else:
            view = self.buffers.slice[: min(left, SLICE_BYTES)]
            wanted = part.disk.read_into(part.file, at, view)
            flags = MSG_MORE if wanted < left else 0
            sent = self.sock.send(view[:wanted], flags) if wanted else 0
        if sent == 0:
            raise OSError(errno.EIO, "file is shorter than the slice of it")
        # A peer that takes its answer slowly is not idle.
        self.last_active_ms = now_ms
        self.out_bytes -= sent
        self._out_position += sent
        if self._out_position == part.size_bytes:
            del self._out[0]
            self._out_position = 0
            part.disk.release(part.file)
        return sent == wanted

    # -- the end -----------------------------------------------------------------------------

    def close_when_sent(self) -> None:
        """Close once what is queued has left; no more frames are handed over."""
        self.is_closing = True

    def end(self, reason: str) -> None:
        """Close now and tell the owner, once."""
        if self.is_ended:
            return
        self.is_ended = True
        for part in self._out:
            if isinstance(part, FileSlice):
                part.disk.release(part.file)
        self._out.clear()
        self._left = b""
        self.large = None
        self.owner.on_end(reason)
        self.sock.close()


def _describe_bad_length(beginning: bytes, size: int, limit: str) -> str:
    """Say what the bytes look like, since a wrong port is the usual cause."""
    if beginning[:4] in (b"GET ", b"POST", b"HEAD", b"PUT "):
        return "an HTTP request came to a port that speaks Kafka's protocol"
    if beginning[:2] == b"\x16\x03":
        return "a TLS handshake came to a plaintext listener"
    if size < 0:
        return f"frame length {size} is not possible"
    return f"frame length {size} is above {limit}"
