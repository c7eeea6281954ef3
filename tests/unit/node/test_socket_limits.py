"""What one connection may cost: memory while a frame arrives, time, unread answers, its end.

Real sockets, a loop turned by hand, and times that are given.
"""

import socket
import struct
from collections.abc import Iterator, Mapping, Sequence

import pytest

from barnabas.broker.deadlines import Deadlines
from barnabas.broker.ports import ConnectionId
from barnabas.node.clock import monotonic_ms
from barnabas.node.poller import Poller
from barnabas.node.transport import (
    FRAME_BYTES_PER_MS_MIN,
    FRAME_GRACE_MS,
    OUT_BYTES_PAUSE,
    SocketTransport,
)
from tests.tools import go_without

FRAME_BYTES_MAX = 100 * 1024 * 1024
CONNECTIONS_MAX = 3
IDLE_MS_MAX = 600_000
LISTENER = "PLAINTEXT"


class Inputs:
    """A broker that keeps what it is told and answers what the test says."""

    def __init__(self) -> None:
        self.transport: SocketTransport
        self.frames: list[bytes] = []
        self.closed: list[str] = []
        self.refused: list[str] = []
        self.turned_away: list[int] = []
        self.answer: Sequence[bytes] = ()

    def on_connection(
        self, connection: ConnectionId, listener: str, peer: str, now_ms: int
    ) -> None:
        pass

    def on_request(
        self, connection: ConnectionId, data: bytes, start: int, end: int, now_ms: int
    ) -> None:
        self.frames.append(data[start:end])
        if self.answer:
            self.transport.send(connection, self.answer)

    def on_frame_refused(self, connection: ConnectionId, reason: str, now_ms: int) -> None:
        self.refused.append(reason)
        self.transport.close(connection)

    def on_turned_away(self, count: int, now_ms: int) -> None:
        self.turned_away.append(count)

    def on_closed(self, connection: ConnectionId, now_ms: int, reason: str) -> None:
        self.closed.append(reason)


class World:
    """A listening transport, and clients that connect to it."""

    def __init__(
        self,
        per_host_max: int = CONNECTIONS_MAX,
        by_host_max: Mapping[str, int] | None = None,
        idle_ms_max: int = IDLE_MS_MAX,
    ) -> None:
        self.poller = Poller()
        self.broker = Inputs()
        self.transport = SocketTransport(
            self.poller,
            Deadlines(),
            lambda call: None,
            frame_bytes_max=FRAME_BYTES_MAX,
            connections_max=CONNECTIONS_MAX,
            connections_per_host_max=per_host_max,
            connections_by_host_max=by_host_max or {},
            idle_ms_max=idle_ms_max,
        )
        self.broker.transport = self.transport
        self.transport.broker = self.broker  # type: ignore[assignment]
        self.listening = socket.create_server(("127.0.0.1", 0))
        self.port = self.listening.getsockname()[1]
        self.transport.listen(LISTENER, self.listening)
        self.clients: list[socket.socket] = []

    def connect(self, receive_bytes: int | None = None) -> socket.socket:
        client = socket.socket()
        client.settimeout(5)
        if receive_bytes is not None:
            client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_bytes)
        client.connect(("127.0.0.1", self.port))
        self.clients.append(client)
        self.run()
        return client

    def send(self, client: socket.socket, data: bytes) -> None:
        client.sendall(data)
        self.run()

    def run(self) -> None:
        """Turns until nothing is ready, with what they made sent."""
        happened = self.poller.wait(0)
        while happened:
            self.turn(happened)
            happened = self.poller.wait(0)
        self.turn([])
        while self.transport.has_resumed:
            self.turn([])

    def turn(self, happened: list[tuple[int, int]]) -> None:
        self.transport.now_ms = monotonic_ms()
        self.transport.take_up_resumed()
        self.poller.tell(happened)
        self.transport.flush()

    def close(self) -> None:
        self.transport.close_all()
        self.poller.close()
        for client in self.clients:
            client.close()


@pytest.fixture
def world() -> Iterator[World]:
    made = World()
    yield made
    made.close()


def is_closed(client: socket.socket) -> bool:
    client.settimeout(0)
    try:
        return client.recv(1) == b""
    except ConnectionResetError:
        return True
    except BlockingIOError:
        return False
    finally:
        client.settimeout(5)


def promised(size: int) -> bytes:
    return struct.pack(">i", size)


def framed(data: bytes) -> bytes:
    return promised(len(data)) + data


def buffered_bytes(world: World) -> int:
    """What the transport keeps of frames that are not complete."""
    return sum(one.received_bytes for one in world.transport.sockets)


def test_a_promise_reserves_nothing(world: World) -> None:
    for _ in range(CONNECTIONS_MAX):
        world.send(world.connect(), promised(99 * 1024 * 1024) + b"few")
    assert buffered_bytes(world) <= CONNECTIONS_MAX * 16
    assert world.broker.frames == []


@pytest.mark.parametrize("arrived", [100, 65_000, 66_000, 300_000, 2_000_000, 9_000_000])
def test_room_grows_with_what_arrived(world: World, arrived: int) -> None:
    client = world.connect()
    world.send(client, promised(99 * 1024 * 1024))
    for start in range(0, arrived, 50_000):
        world.send(client, bytes(min(50_000, arrived - start)))
    assert buffered_bytes(world) <= 20 * arrived + 16


@pytest.mark.parametrize("size", [0, 1, 1000, 65_536, 65_537, 300_000, 3_000_000])
@pytest.mark.parametrize("piece", [1021, 70_000])
def test_a_frame_in_pieces_arrives_whole(world: World, size: int, piece: int) -> None:
    client = world.connect()
    frame = bytes(n * 7 % 251 for n in range(size))
    data = framed(frame) + framed(b"next")
    for start in range(0, len(data), piece):
        world.send(client, data[start : start + piece])
    assert world.broker.frames == [frame, b"next"]
    assert buffered_bytes(world) == 0


def test_a_frame_byte_by_byte_has_a_minute(world: World) -> None:
    client = world.connect()
    begun_ms = monotonic_ms()
    for byte in framed(b"slow" * 10)[:-1]:
        world.send(client, bytes([byte]))
    world.transport.sweep(begun_ms + FRAME_GRACE_MS - 1)
    assert not is_closed(client)
    world.transport.sweep(monotonic_ms() + FRAME_GRACE_MS + 1)
    assert is_closed(client)
    assert world.broker.frames == []
    assert "a frame was not complete" in world.broker.refused[0]
    assert len(world.broker.closed) == 1


def test_the_minute_is_not_renewed_by_another_byte(world: World) -> None:
    client = world.connect()
    world.send(client, promised(1000) + b"1")
    begun_ms = monotonic_ms()
    world.send(client, b"2")
    world.transport.sweep(begun_ms + FRAME_GRACE_MS + 10)
    assert is_closed(client)


def test_a_large_frame_may_take_longer_while_it_arrives_fast_enough(world: World) -> None:
    client = world.connect()
    world.send(client, promised(50_000_000))
    begun_ms = monotonic_ms()
    for _ in range(128):
        world.send(client, bytes(50_000))
    extra_ms = 128 * 50_000 // FRAME_BYTES_PER_MS_MIN
    world.transport.sweep(begun_ms + FRAME_GRACE_MS + extra_ms - 2000)
    assert not is_closed(client)
    world.transport.sweep(monotonic_ms() + FRAME_GRACE_MS + extra_ms + 1)
    assert is_closed(client)


def test_a_busy_connection_is_not_taken_for_a_slow_one(world: World) -> None:
    """Every piece ends inside a frame, for longer than one frame may take."""
    client = world.connect()
    data = framed(b"x" * 100) * 4
    world.send(client, data[:50])
    started = world.transport.sockets[0].frame_started_ms
    world.transport.sockets[0].frame_started_ms = started - FRAME_GRACE_MS
    world.send(client, data[50:150])
    world.transport.sweep(monotonic_ms() + 1000)
    assert not is_closed(client)
    assert len(world.broker.frames) == 1


def test_the_next_frame_has_a_minute_of_its_own(world: World) -> None:
    client = world.connect()
    world.send(client, framed(b"first"))
    world.transport.sweep(monotonic_ms() + FRAME_GRACE_MS + 1)
    assert not is_closed(client)


def test_a_silent_connection_is_closed(world: World) -> None:
    client = world.connect()
    now_ms = monotonic_ms()
    world.transport.sweep(now_ms + IDLE_MS_MAX - 1000)
    assert not is_closed(client)
    world.transport.sweep(now_ms + IDLE_MS_MAX + 1000)
    assert is_closed(client)
    assert world.broker.refused == []
    assert world.broker.closed[0].startswith("idle for")


@pytest.mark.parametrize("wrong", [b"\xff\xff\xff\xff", b"GET / HTTP/1.1\r\n", promised(2**31 - 1)])
def test_an_impossible_length_ends_it_after_what_was_answered(world: World, wrong: bytes) -> None:
    world.broker.answer = [b"answer"]
    client = world.connect()
    world.send(client, framed(b"good") + wrong + framed(b"not read any more"))
    assert client.recv(100) == b"answer"
    assert is_closed(client)
    assert world.broker.frames == [b"good"]
    assert len(world.broker.refused) == 1
    assert len(world.broker.closed) == 1


def test_a_frame_that_is_too_long_is_told_with_the_setting_that_forbids_it(world: World) -> None:
    world.send(world.connect(), promised(FRAME_BYTES_MAX + 1))
    assert world.broker.refused == [
        f"frame length {FRAME_BYTES_MAX + 1} is above socket.request.max.bytes={FRAME_BYTES_MAX}"
    ]


def test_nothing_is_read_from_who_does_not_read(world: World) -> None:
    world.broker.answer = [bytes(100_000)]
    client = world.connect()
    client.settimeout(0)
    sent = 0
    request = framed(b"?" * 1000)
    while sent < 200_000_000:
        try:
            sent += client.send(request)
        except BlockingIOError:
            break
        world.run()
    (kept,) = world.transport.sockets
    assert kept.out_bytes <= OUT_BYTES_PAUSE + 100_000
    assert buffered_bytes(world) <= 1_000_000


def test_who_reads_again_is_read_again(world: World) -> None:
    world.broker.answer = [bytes(1_000_000)]
    client = world.connect()
    for _ in range(20):
        world.send(client, framed(b"?"))
    asked = len(world.broker.frames)
    assert asked < 20
    received = 0
    while received < 20_000_000:
        received += len(client.recv(1 << 20))
        world.run()
    assert len(world.broker.frames) == 20


@pytest.mark.parametrize("is_reset", [True, False])
def test_a_reset_is_noticed_while_nothing_is_read(world: World, is_reset: bool) -> None:
    client = world.connect()
    world.transport.pause_reading(ConnectionId(1))
    world.send(client, framed(b"later"))
    if is_reset:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    else:
        client.shutdown(socket.SHUT_WR)
    client.close() if is_reset else None
    world.turn(world.poller.wait(100))
    assert world.poller.wait(10) == [], "it is told once, or not at all"
    assert len(world.broker.closed) == is_reset
    assert world.broker.frames == []
    if not is_reset:
        world.transport.resume_reading(ConnectionId(1))
        world.transport.take_up_resumed()
        world.run()
        assert world.broker.frames == [b"later"], "a half-closed peer may still have sent"


def test_nothing_is_kept_of_what_follows_a_refusal(world: World) -> None:
    """Its answers are not read, so it cannot be closed at once; what it still sends is left."""
    world.broker.answer = [bytes(OUT_BYTES_PAUSE)]
    client = world.connect(receive_bytes=4096)
    world.send(client, framed(b"?"))
    assert world.transport.sockets[0].has_output
    world.send(client, b"\xff\xff\xff\xff")
    assert len(world.broker.refused) == 1
    client.settimeout(0)
    for _ in range(1000):
        try:
            client.send(bytes(100_000))
        except BlockingIOError:
            break
        world.run()
    assert buffered_bytes(world) <= 1_000_000
    assert world.broker.frames == [b"?"]


def test_one_connection_too_many_is_closed_and_counted(world: World) -> None:
    taken = [world.connect() for _ in range(CONNECTIONS_MAX)]
    assert is_closed(world.connect())
    assert world.transport.turned_away == 1
    world.send(taken[0], framed(b"still served"))
    assert world.broker.frames == [b"still served"]
    taken[1].close()
    world.run()
    again = world.connect()
    world.send(again, framed(b"room again"))
    assert world.broker.frames[-1] == b"room again"
    world.transport.sweep(monotonic_ms())
    world.transport.sweep(monotonic_ms())
    assert world.broker.turned_away == [1]


@pytest.mark.parametrize(("per_host", "by_host", "room"), [(2, {}, 2), (0, {"127.0.0.1": 1}, 1)])
def test_one_host_has_its_own_limit(per_host: int, by_host: dict[str, int], room: int) -> None:
    world = World(per_host, by_host)
    try:
        taken = [world.connect() for _ in range(room)]
        assert [is_closed(client) for client in taken] == [False] * room
        assert is_closed(world.connect())
        taken[0].close()
        world.run()
        assert not is_closed(world.connect())
    finally:
        world.close()


def test_an_ipv4_client_of_a_socket_for_both_families_has_its_own_limit() -> None:
    if not socket.has_dualstack_ipv6():
        go_without("no socket for both families here")
    world = World(CONNECTIONS_MAX, {"127.0.0.1": 1})
    both = socket.create_server(("", 0), family=socket.AF_INET6, dualstack_ipv6=True)
    world.transport.listen(LISTENER, both)
    world.port = both.getsockname()[1]
    try:
        assert not is_closed(world.connect())
        assert is_closed(world.connect())
    finally:
        world.close()


def test_no_idle_limit_means_none() -> None:
    world = World(idle_ms_max=-1)
    try:
        client = world.connect()
        world.transport.sweep(monotonic_ms() + 10**12)
        assert not is_closed(client)
    finally:
        world.close()
