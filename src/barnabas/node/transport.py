"""The Transport port on real sockets: accepted connections and links to peers.

Hot: compiled by mypyc where a compiler is there, interpreted otherwise.
"""

import errno
import socket
from collections.abc import Callable, Mapping, Sequence
from threading import Thread
from typing import Final

from barnabas.broker.deadlines import Deadlines
from barnabas.broker.ports import BrokerInputs, ConnectionId, LinkId
from barnabas.node.clock import monotonic_ms
from barnabas.node.framed_socket import FramedSocket, TransferBuffers
from barnabas.node.poller import READABLE, WRITABLE, Poller
from barnabas.storage.disk import Buffer, FileSlice

ACCEPT_AGAIN_MS: Final = 100
ACCEPTED_PER_TURN: Final = 64
_NO_ROOM: Final = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)
OUT_BYTES_PAUSE: Final = 4 * 1024 * 1024
"""No more requests are taken from a connection that leaves this much unread (memory, not files)."""
FRAME_GRACE_MS: Final = 60_000
FRAME_BYTES_PER_MS_MIN: Final = 64
"""A frame may take a minute, and longer only if it arrives at 64 KB a second or faster."""
RESPONSE_BYTES_MAX: Final = 512 * 1024 * 1024


class _Accepted:
    """The owner of an accepted connection's socket.

    `is_held` while the broker wants nothing read from it; its socket is paused for that, or for
    the answers that its client leaves unread.
    """

    __slots__ = ("broker", "connection", "is_held", "peer_host", "socket", "transport")

    def __init__(
        self, transport: "SocketTransport", connection: ConnectionId, peer_host: str
    ) -> None:
        self.transport = transport
        self.connection = connection
        self.peer_host = peer_host
        self.is_held = False
        self.broker: BrokerInputs = transport.broker
        self.socket: FramedSocket

    def on_ready(self, is_readable: bool, is_writable: bool) -> None:
        framed = self.socket
        if is_readable:
            framed.receive(self.transport.now_ms)
        if is_writable:
            self.transport.send_more(framed)
        elif not is_readable:
            framed.end("broken while nothing was read from it")

    def on_frame(self, data: bytes, start: int, end: int) -> None:
        self.broker.on_request(self.connection, data, start, end, self.transport.now_ms)

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

    def on_ready(self, is_readable: bool, is_writable: bool) -> None:
        framed = self.socket
        if framed is None:
            return
        if not self.is_open:
            self.transport.note_connected(self, framed)
            return
        if is_readable:
            framed.receive(self.transport.now_ms)
        if is_writable:
            self.transport.send_more(framed)
        elif not is_readable:
            framed.end("broken while nothing was read from it")

    def on_frame(self, data: bytes, start: int, end: int) -> None:
        frame = data if start == 0 and end == len(data) else data[start:end]
        self.transport.broker.on_response(self.link, frame, self.transport.now_ms)

    def on_refused(self, reason: str) -> None:
        assert self.socket is not None
        self.socket.end(reason)

    def on_end(self, reason: str) -> None:
        self.transport.note_peer_ended(self, reason)


class _Listening:
    """A socket that is listened on, in the name of a listener."""

    __slots__ = ("listener", "sock", "transport")

    def __init__(self, transport: "SocketTransport", listener: str, sock: socket.socket) -> None:
        self.transport = transport
        self.listener = listener
        self.sock = sock

    def on_ready(self, is_readable: bool, is_writable: bool) -> None:
        self.transport.accept(self)

    def accept_again(self, now_ms: int) -> None:
        self.transport.watch_listening(self)


class SocketTransport:
    """Sockets of one broker on one loop; `broker` is set before the loop runs.

    The loop sets `now_ms` at the beginning of each turn and calls `flush` at its end; `post` runs
    a call in a later turn, also from another thread.
    """

    def __init__(
        self,
        poller: Poller,
        timers: Deadlines,
        post: Callable[[Callable[[int], object]], None],
        *,
        frame_bytes_max: int,
        connections_max: int,
        connections_per_host_max: int,
        connections_by_host_max: Mapping[str, int],
        idle_ms_max: int,
    ) -> None:
        self.broker: BrokerInputs
        self.now_ms: int = monotonic_ms()
        self._poller = poller
        self._timers = timers
        self._post = post
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
        self._resumed: list[_Accepted] = []
        """Those that the next turn reads from again, first what they had sent before."""
        self._crowded: list[_Accepted] = []
        """Those that leave too much unread; looked at whenever something was sent."""
        self._listening: list[_Listening] = []
        self.turned_away = 0
        """Connections that were closed at once since there were too many."""
        self._turned_away_told = 0

    # -- listening ---------------------------------------------------------------------------

    def listen(self, listener: str, sock: socket.socket) -> None:
        """Accept on a listening socket in the name of a listener."""
        sock.setblocking(False)
        listening = _Listening(self, listener, sock)
        self._listening.append(listening)
        self.watch_listening(listening)

    def watch_listening(self, listening: _Listening) -> None:
        """Accept from now on, unless it was closed meanwhile."""
        if listening in self._listening:
            self._poller.watch(listening.sock.fileno(), READABLE, listening)

    def stop_listening(self) -> None:
        """Accept no more."""
        for listening in self._listening:
            self._poller.forget(listening.sock.fileno())
            listening.sock.close()
        self._listening.clear()

    def accept(self, listening: _Listening) -> None:
        """Take in who waits in the kernel's queue, some at a time."""
        for _ in range(ACCEPTED_PER_TURN):
            try:
                sock, address = listening.sock.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError as problem:
                if problem.errno not in _NO_ROOM:
                    raise
                # No file is free: leave the queue to the kernel and look again in a moment.
                self._poller.forget(listening.sock.fileno())
                self._timers.at(self.now_ms + ACCEPT_AGAIN_MS, listening.accept_again)
                return
            host = _without_mapping(str(address[0]))
            if self._has_room(host):
                self._take_in(listening.listener, sock, host)
            else:
                self.turned_away += 1
                sock.close()

    def _has_room(self, host: str) -> bool:
        return len(self._accepted) < self._connections_max and self._by_host.get(
            host, 0
        ) < self._by_host_max.get(host, self._per_host_max)

    def _take_in(self, listener: str, sock: socket.socket, peer_host: str) -> None:
        connection = ConnectionId(self._next_connection)
        self._next_connection += 1
        accepted = _Accepted(self, connection, peer_host)
        accepted.socket = FramedSocket(
            sock, accepted, self._frame_bytes_max, self._buffers, "socket.request.max.bytes"
        )
        accepted.socket.last_active_ms = self.now_ms
        self._accepted[connection] = accepted
        self._by_host[peer_host] = self._by_host.get(peer_host, 0) + 1
        self.broker.on_connection(connection, listener, peer_host, self.now_ms)
        self._watch(accepted.socket)

    def _watch(self, framed: FramedSocket) -> None:
        """Have its owner told what the state of the socket asks for."""
        events = 0 if framed.is_paused or framed.is_closing else READABLE
        if framed.is_blocked:
            events |= WRITABLE
        self._poller.watch(framed.fd, events, framed.owner)

    def note_ended(self, accepted: _Accepted, reason: str) -> None:
        """An accepted connection is over, whoever ended it."""
        self._poller.forget(accepted.socket.fd)
        del self._accepted[accepted.connection]
        left = self._by_host.pop(accepted.peer_host) - 1
        if left:
            self._by_host[accepted.peer_host] = left
        self.broker.on_closed(accepted.connection, self.now_ms, reason)

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
            self._crowded.append(accepted)

    def _pause(self, framed: FramedSocket) -> None:
        framed.is_paused = True
        self._watch(framed)

    def close(self, connection: ConnectionId) -> None:
        accepted = self._accepted.get(connection)
        if accepted is not None:
            accepted.socket.close_when_sent()
            # Whatever else it sends stays in the kernel: it may take a while to send the rest.
            self._watch(accepted.socket)
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
        # The broker hears of no failure while it still asks.
        self._post(_Connect(self, peer, host, port))

    def start_connecting(self, peer: _Peer, host: str, port: int) -> None:
        """Connect to an address at once, to a name when it was looked up."""
        if self._peers.get(peer.link) is not peer:
            return
        try:
            family = socket.AF_INET6 if ":" in host else socket.AF_INET
            socket.inet_pton(family, host)
        except OSError:
            # The system's resolver waits: a thread of its own, as rare as a link to a name.
            look_up = _LookUp(self, peer, host, port, self._post)
            Thread(target=look_up.run, name="look-up", daemon=True).start()
            return
        self._connect_to(peer, family, (host, port))

    def note_found(
        self, peer: _Peer, name: str, found: tuple[int, tuple[str, int]] | None, problem: str
    ) -> None:
        """A name was looked up, or it could not be."""
        if self._peers.get(peer.link) is not peer:
            return
        if found is None:
            self.note_peer_ended(peer, f"cannot resolve {name}: {problem}")
        else:
            self._connect_to(peer, found[0], found[1])

    def _connect_to(self, peer: _Peer, family: int, address: tuple[str, int]) -> None:
        sock = socket.socket(family, socket.SOCK_STREAM)
        framed = FramedSocket(sock, peer, RESPONSE_BYTES_MAX, self._buffers, "RESPONSE_BYTES_MAX")
        peer.socket = framed
        problem = sock.connect_ex(address)
        if problem not in (0, errno.EINPROGRESS):
            framed.end(errno.errorcode.get(problem, str(problem)))
            return
        framed.is_blocked = True
        self._poller.watch(framed.fd, WRITABLE, peer)

    def note_connected(self, peer: _Peer, framed: FramedSocket) -> None:
        """The kernel has connected a link, or has given up."""
        problem = framed.sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
        if problem:
            framed.end(errno.errorcode.get(problem, str(problem)))
            return
        framed.is_blocked = False
        self._watch(framed)
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
            self._poller.forget(peer.socket.fd)
        if self._peers.pop(peer.link, None) is not None:
            self.broker.on_link_closed(peer.link, reason, self.now_ms)

    @property
    def sockets(self) -> list[FramedSocket]:
        """Those of the accepted connections."""
        return [accepted.socket for accepted in self._accepted.values()]

    # -- the turn ----------------------------------------------------------------------------

    @property
    def has_resumed(self) -> bool:
        """Whether there may be requests that nothing will announce any more."""
        return bool(self._resumed)

    def take_up_resumed(self) -> None:
        """The first thing in a turn: read again from those that were paused."""
        resumed, self._resumed = self._resumed, []
        for accepted in resumed:
            self._resume(accepted)

    def flush(self) -> None:
        """Send what the turn has made."""
        dirty, self._dirty = self._dirty, []
        for framed in dirty:
            if not framed.is_blocked and not framed.flush(self.now_ms):
                framed.is_blocked = True
                self._watch(framed)
        if self._crowded:
            self._look_at_crowded()

    def _look_at_crowded(self) -> None:
        crowded, self._crowded = self._crowded, []
        for accepted in crowded:
            if accepted.socket.is_ended:
                continue
            if accepted.socket.out_bytes > OUT_BYTES_PAUSE:
                self._crowded.append(accepted)
            else:
                self._resumed.append(accepted)

    def send_more(self, framed: FramedSocket) -> None:
        """A socket that was full takes more."""
        if framed.flush(self.now_ms) and not framed.is_ended:
            framed.is_blocked = False
            self._watch(framed)

    def _resume(self, accepted: _Accepted) -> None:
        framed = accepted.socket
        if framed.is_ended or framed.is_closing or not framed.is_paused or accepted.is_held:
            return
        if framed.out_bytes > OUT_BYTES_PAUSE:
            self._crowded.append(accepted)
            return
        framed.is_paused = False
        self._watch(framed)
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


def _without_mapping(host: str) -> str:
    """An IPv4 client of a socket for both families, by the address that it has itself."""
    return host[7:] if host.startswith("::ffff:") and "." in host else host


class _Connect:
    """A link that is asked for and not begun."""

    __slots__ = ("_host", "_peer", "_port", "_transport")

    def __init__(self, transport: SocketTransport, peer: _Peer, host: str, port: int) -> None:
        self._transport = transport
        self._peer = peer
        self._host = host
        self._port = port

    def __call__(self, now_ms: int) -> None:
        self._transport.start_connecting(self._peer, self._host, self._port)


class _LookUp:
    """The address of a peer's name: found on a thread, told on the loop."""

    def __init__(
        self,
        transport: SocketTransport,
        peer: _Peer,
        host: str,
        port: int,
        post: Callable[[Callable[[int], object]], None],
    ) -> None:
        self._transport = transport
        self._peer = peer
        self._host = host
        self._port = port
        self._post = post
        self._found: tuple[int, tuple[str, int]] | None = None
        self._problem = ""

    def run(self) -> None:
        """Ask the system's resolver for the first address."""
        try:
            found = socket.getaddrinfo(self._host, self._port, type=socket.SOCK_STREAM)
            family, _, _, _, address = found[0]
            self._found = (family, (str(address[0]), int(address[1])))
        except OSError as problem:
            self._problem = problem.strerror or str(problem)
        self._post(self)

    def __call__(self, now_ms: int) -> None:
        name = f"{self._host}:{self._port}"
        self._transport.note_found(self._peer, name, self._found, self._problem)
