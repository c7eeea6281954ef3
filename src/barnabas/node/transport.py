"""The Transport port on real sockets: accepted connections and links to peers."""

import asyncio
import errno
import socket
from collections.abc import Callable, Mapping, Sequence
from functools import partial

from barnabas.broker.ports import BrokerInputs, ConnectionId, LinkId
from barnabas.node.clock import monotonic_ms
from barnabas.node.framed_socket import FramedSocket, TransferBuffers
from barnabas.storage.disk import Buffer, FileSlice

ACCEPT_AGAIN_SECONDS = 0.1
OUT_BYTES_PAUSE = 4 * 1024 * 1024
"""No more requests are taken from a connection that leaves this much unread (memory, not files)."""
FRAME_GRACE_MS = 60_000
FRAME_BYTES_PER_MS_MIN = 64
"""A frame may take a minute, and longer only if it arrives at 64 KB a second or faster."""
RESPONSE_BYTES_MAX = 512 * 1024 * 1024


class _Accepted:
    """The owner of an accepted connection's socket.

    `is_held` while the broker wants nothing read from it; its socket is paused for that, or for
    the answers that its client leaves unread.
    """

    __slots__ = ("connection", "is_held", "on_request", "peer_host", "socket", "transport")

    def __init__(
        self, transport: "SocketTransport", connection: ConnectionId, peer_host: str
    ) -> None:
        self.transport = transport
        self.connection = connection
        self.peer_host = peer_host
        self.is_held = False
        self.on_request = transport.broker.on_request
        self.socket: FramedSocket

    def on_frame(self, data: bytes, start: int, end: int) -> None:
        self.on_request(self.connection, data, start, end, self.transport.now_ms)

    def on_refused(self, reason: str) -> None:
        self.transport.broker.on_frame_refused(self.connection, reason, self.transport.now_ms)

    def on_end(self, reason: str) -> None:
        self.transport.note_ended(self, reason)


class _Peer:
    """The owner of a link's socket."""

    __slots__ = ("is_open", "link", "socket", "transport")

    def __init__(self, transport: "SocketTransport", link: LinkId) -> None:
        self.transport = transport
        self.link = link
        self.is_open = False
        self.socket: FramedSocket | None = None

    def on_frame(self, data: bytes, start: int, end: int) -> None:
        frame = data if start == 0 and end == len(data) else data[start:end]
        self.transport.broker.on_response(self.link, frame, self.transport.now_ms)

    def on_refused(self, reason: str) -> None:
        assert self.socket is not None
        self.socket.end(reason)

    def on_end(self, reason: str) -> None:
        self.transport.note_peer_ended(self, reason)


class SocketTransport:
    """Sockets of one broker on one loop; `broker` is set before the loop runs.

    `touch` is called whenever the broker was told something, so that the turn gets its end.
    """

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        touch: Callable[[], None],
        *,
        frame_bytes_max: int,
        connections_max: int,
        connections_per_host_max: int,
        connections_by_host_max: Mapping[str, int],
        idle_ms_max: int,
    ) -> None:
        self.loop = loop
        self.broker: BrokerInputs
        self.touch = touch
        self.now_ms = monotonic_ms()
        self._buffers = TransferBuffers()
        self._frame_bytes_max = frame_bytes_max
        self._connections_max = connections_max
        self._per_host_max = connections_per_host_max
        self._by_host_max = connections_by_host_max
        self._by_host: dict[str, int] = {}
        self._idle_ms_max = idle_ms_max
        self._next_connection = 1
        self._accepted: dict[ConnectionId, _Accepted] = {}
        self._peers: dict[LinkId, _Peer] = {}
        self._dirty: list[FramedSocket] = []
        self._blocked: dict[int, FramedSocket] = {}
        self._resumed: list[_Accepted] = []
        self._listening: list[socket.socket] = []
        self.turned_away = 0
        """Connections that were closed at once since there were too many."""
        self._turned_away_told = 0

    # -- listening ---------------------------------------------------------------------------

    def listen(self, listener: str, sock: socket.socket) -> None:
        """Accept on a listening socket in the name of a listener."""
        sock.setblocking(False)
        self._listening.append(sock)
        self.loop.add_reader(sock.fileno(), self._accept, listener, sock)

    def stop_listening(self) -> None:
        """Accept no more."""
        for sock in self._listening:
            self.loop.remove_reader(sock.fileno())
            sock.close()
        self._listening.clear()

    def _accept(self, listener: str, listening: socket.socket) -> None:
        self.now_ms = monotonic_ms()
        for _ in range(64):
            try:
                sock, address = listening.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError as problem:
                if problem.errno not in (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM):
                    raise
                # No file is free: leave the queue to the kernel and look again in a moment.
                self.loop.remove_reader(listening.fileno())
                self.loop.call_later(ACCEPT_AGAIN_SECONDS, self._accept_again, listener, listening)
                return
            host = str(address[0])
            if self._has_room(host):
                self._take_in(listener, sock, host)
            else:
                self.turned_away += 1
                sock.close()

    def _has_room(self, host: str) -> bool:
        return len(self._accepted) < self._connections_max and self._by_host.get(
            host, 0
        ) < self._by_host_max.get(host, self._per_host_max)

    def _accept_again(self, listener: str, listening: socket.socket) -> None:
        if listening in self._listening:
            self.loop.add_reader(listening.fileno(), self._accept, listener, listening)

    def _take_in(self, listener: str, sock: socket.socket, peer_host: str) -> None:
        connection = ConnectionId(self._next_connection)
        self._next_connection += 1
        accepted = _Accepted(self, connection, peer_host)
        accepted.socket = FramedSocket(sock, accepted, self._frame_bytes_max, self._buffers)
        accepted.socket.last_active_ms = self.now_ms
        self._accepted[connection] = accepted
        self._by_host[peer_host] = self._by_host.get(peer_host, 0) + 1
        self.broker.on_connection(connection, listener, peer_host, self.now_ms)
        self.touch()
        self.loop.add_reader(accepted.socket.fd, self._readable, accepted.socket)

    def _readable(self, framed: FramedSocket) -> None:
        self.now_ms = now_ms = monotonic_ms()
        self.touch()
        framed.receive(now_ms)

    def note_ended(self, accepted: _Accepted, reason: str) -> None:
        """An accepted connection is over, whoever ended it."""
        self._forget(accepted.socket)
        del self._accepted[accepted.connection]
        left = self._by_host.pop(accepted.peer_host) - 1
        if left:
            self._by_host[accepted.peer_host] = left
        self.broker.on_closed(accepted.connection, self.now_ms, reason)
        self.touch()

    def _forget(self, framed: FramedSocket) -> None:
        self.loop.remove_reader(framed.fd)
        if self._blocked.pop(framed.fd, None) is not None:
            self.loop.remove_writer(framed.fd)

    # -- Transport ---------------------------------------------------------------------------

    def send(self, connection: ConnectionId, parts: Sequence[Buffer | FileSlice]) -> None:
        accepted = self._accepted.get(connection)
        if accepted is None:
            for part in parts:
                if isinstance(part, FileSlice):
                    part.disk.release(part.file)
            return
        framed = accepted.socket
        if not framed.has_output:
            self._dirty.append(framed)
        framed.queue(parts)
        if framed.out_bytes > OUT_BYTES_PAUSE and not framed.is_paused:
            self._pause(framed)
            self._resumed.append(accepted)

    def _pause(self, framed: FramedSocket) -> None:
        framed.is_paused = True
        self.loop.remove_reader(framed.fd)

    def close(self, connection: ConnectionId) -> None:
        accepted = self._accepted.get(connection)
        if accepted is not None:
            accepted.socket.close_when_sent()
            # Whatever else it sends stays in the kernel: it may take a while to send the rest.
            self.loop.remove_reader(accepted.socket.fd)
            self._dirty.append(accepted.socket)

    def pause_reading(self, connection: ConnectionId) -> None:
        accepted = self._accepted.get(connection)
        if accepted is not None:
            accepted.is_held = True
            if not accepted.socket.is_paused:
                self._pause(accepted.socket)

    def resume_reading(self, connection: ConnectionId) -> None:
        accepted = self._accepted.get(connection)
        if accepted is not None and accepted.is_held:
            accepted.is_held = False
            self._resumed.append(accepted)

    def connect(self, link: LinkId, host: str, port: int) -> None:
        peer = _Peer(self, link)
        self._peers[link] = peer
        self.loop.call_soon(self._start_connecting, peer, host, port)

    def _start_connecting(self, peer: _Peer, host: str, port: int) -> None:
        if self._peers.get(peer.link) is not peer:
            return
        try:
            family = socket.AF_INET6 if ":" in host else socket.AF_INET
            socket.inet_pton(family, host)
        except OSError:
            task = self.loop.create_task(_first_address(self.loop, host, port))
            task.add_done_callback(partial(self._resolved, peer, host, port))
            return
        self._connect_to(peer, family, (host, port))

    def _resolved(
        self,
        peer: _Peer,
        host: str,
        port: int,
        look_up: "asyncio.Task[tuple[int, tuple[str, int]] | str]",
    ) -> None:
        found = look_up.result()
        if self._peers.get(peer.link) is not peer:
            return
        if isinstance(found, str):
            self.note_peer_ended(peer, f"cannot resolve {host}:{port}: {found}")
        else:
            self._connect_to(peer, found[0], found[1])

    def _connect_to(self, peer: _Peer, family: int, address: tuple[str, int]) -> None:
        sock = socket.socket(family, socket.SOCK_STREAM)
        peer.socket = FramedSocket(sock, peer, RESPONSE_BYTES_MAX, self._buffers)
        problem = sock.connect_ex(address)
        if problem not in (0, errno.EINPROGRESS):
            peer.socket.end(errno.errorcode.get(problem, str(problem)))
            return
        self._blocked[peer.socket.fd] = peer.socket
        self.loop.add_writer(peer.socket.fd, self._connected, peer)

    def _connected(self, peer: _Peer) -> None:
        self.now_ms = monotonic_ms()
        framed = peer.socket
        assert framed is not None
        self._blocked.pop(framed.fd, None)
        self.loop.remove_writer(framed.fd)
        problem = framed.sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
        self.touch()
        if problem:
            framed.end(errno.errorcode.get(problem, str(problem)))
            return
        self.loop.add_reader(framed.fd, self._readable, framed)
        peer.is_open = True
        self.broker.on_link_open(peer.link, self.now_ms)

    def send_to_peer(self, link: LinkId, frame: bytes) -> None:
        peer = self._peers.get(link)
        if peer is None or peer.socket is None or not peer.is_open:
            return
        if not peer.socket.has_output:
            self._dirty.append(peer.socket)
        peer.socket.queue((frame,))

    def disconnect(self, link: LinkId) -> None:
        peer = self._peers.pop(link, None)
        if peer is not None and peer.socket is not None:
            peer.socket.end("closed by this broker")

    def note_peer_ended(self, peer: _Peer, reason: str) -> None:
        """A link is over; the broker is told unless it was the one who closed it."""
        if peer.socket is not None:
            self._forget(peer.socket)
        if self._peers.pop(peer.link, None) is not None:
            self.broker.on_link_closed(peer.link, reason, self.now_ms)
            self.touch()

    @property
    def sockets(self) -> list[FramedSocket]:
        """Those of the accepted connections."""
        return [accepted.socket for accepted in self._accepted.values()]

    # -- the end of a turn -------------------------------------------------------------------

    def flush(self) -> None:
        """Send what the turn has made; hand over what waited for a resumed connection."""
        dirty, self._dirty = self._dirty, []
        for framed in dirty:
            if framed.fd not in self._blocked:
                self._flush_one(framed)
        if self._resumed:
            resumed, self._resumed = self._resumed, []
            for accepted in resumed:
                self._resume(accepted)

    def _flush_one(self, framed: FramedSocket) -> None:
        if not framed.flush(self.now_ms):
            self._blocked[framed.fd] = framed
            self.loop.add_writer(framed.fd, self._writable, framed)

    def _writable(self, framed: FramedSocket) -> None:
        self.now_ms = monotonic_ms()
        if framed.flush(self.now_ms) and not framed.is_ended:
            del self._blocked[framed.fd]
            self.loop.remove_writer(framed.fd)
            self.touch()

    def _resume(self, accepted: _Accepted) -> None:
        framed = accepted.socket
        if framed.is_ended or framed.is_closing or not framed.is_paused or accepted.is_held:
            return
        if framed.out_bytes > OUT_BYTES_PAUSE:
            self._resumed.append(accepted)
            return
        self.touch()
        framed.is_paused = False
        self.loop.add_reader(framed.fd, self._readable, framed)
        framed.resume(self.now_ms)

    def sweep(self, now_ms: int) -> None:
        """Close what was silent for too long, and frames that take too long to arrive."""
        self.now_ms = now_ms
        if self.turned_away > self._turned_away_told:
            self.broker.on_turned_away(self.turned_away - self._turned_away_told, now_ms)
            self._turned_away_told = self.turned_away
        for accepted in list(self._accepted.values()):
            framed = accepted.socket
            if 0 <= self._idle_ms_max < now_ms - framed.last_active_ms:
                framed.end(f"idle for {now_ms - framed.last_active_ms} ms")
            elif framed.frame_started_ms >= 0 and not framed.is_paused:
                taken_ms = now_ms - framed.frame_started_ms
                if taken_ms > FRAME_GRACE_MS + framed.large_fill // FRAME_BYTES_PER_MS_MIN:
                    reason = f"a frame was not complete after {taken_ms} ms"
                    accepted.on_refused(reason)
                    framed.end(reason)

    def close_all(self) -> None:
        """Close every socket; what is queued is sent as far as the kernel takes it at once."""
        self.stop_listening()
        self.flush()
        for accepted in list(self._accepted.values()):
            accepted.socket.end("this broker stops")
        for peer in list(self._peers.values()):
            self.disconnect(peer.link)


async def _first_address(
    loop: asyncio.AbstractEventLoop, host: str, port: int
) -> tuple[int, tuple[str, int]] | str:
    """The first address found, or why there is none."""
    try:
        found = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except OSError as problem:
        return problem.strerror or str(problem)
    family, _, _, _, address = found[0]
    return family, (str(address[0]), int(address[1]))
