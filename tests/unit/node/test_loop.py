"""The loop: one end of the turn for all that came together, ticks, signals, other threads."""

import json
import os
import select
import signal
import socket
import struct
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from barnabas.broker.ports import ConnectionId
from barnabas.node.clock import monotonic_ms
from barnabas.node.loop import NodeLoop
from barnabas.node.loop_turns import LoopTurns
from barnabas.node.poller import READABLE, WRITABLE, PlainPoll, Poller, SystemPoll
from barnabas.node.transport import SocketTransport


class Told:
    """A pollable that keeps what it is told, and may do something then."""

    def __init__(self, do: Callable[[], object] = lambda: None) -> None:
        self.ready: list[tuple[bool, bool]] = []
        self.do = do

    def on_ready(self, is_readable: bool, is_writable: bool) -> None:
        self.ready.append((is_readable, is_writable))
        self.do()


def polls() -> list[type]:
    return [select.epoll, PlainPoll] if hasattr(select, "epoll") else [PlainPoll]


@pytest.fixture(params=polls())
def poller(request: pytest.FixtureRequest) -> Iterator[Poller]:
    poll: SystemPoll = request.param()
    made = Poller(poll)
    yield made
    made.close()


@pytest.fixture
def pair() -> Iterator[tuple[socket.socket, socket.socket]]:
    one, two = socket.socketpair()
    yield one, two
    one.close()
    two.close()


Pair = tuple[socket.socket, socket.socket]


def test_each_is_told_what_it_is_watched_for(poller: Poller, pair: Pair) -> None:
    one, two = pair
    told = Told()
    poller.watch(one.fileno(), READABLE, told)
    assert poller.wait(0) == []
    two.send(b"x")
    poller.tell(poller.wait(1000))
    poller.watch(one.fileno(), READABLE | WRITABLE, told)
    poller.tell(poller.wait(1000))
    poller.watch(one.fileno(), WRITABLE, told)
    poller.tell(poller.wait(1000))
    assert told.ready == [(True, False), (True, True), (False, True)]
    poller.watch(one.fileno(), 0, told)
    assert poller.wait(0) == []


def test_a_broken_connection_is_told_to_who_reads_and_to_who_writes(
    poller: Poller, pair: Pair
) -> None:
    one, two = pair
    told = Told()
    two.close()
    poller.watch(one.fileno(), READABLE, told)
    poller.tell(poller.wait(1000))
    assert told.ready == [(True, False)]


def test_a_broken_connection_is_told_to_who_wants_neither(poller: Poller) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        client = socket.create_connection(listening.getsockname())
        one, _ = listening.accept()
    with one:
        told = Told(lambda: poller.forget(one.fileno()))
        poller.watch(one.fileno(), READABLE, told)
        poller.watch(one.fileno(), 0, told)
        client.send(b"x")
        assert poller.wait(10) == []
        client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        client.close()
        poller.tell(poller.wait(1000))
        assert told.ready == [(False, False)]
        assert poller.wait(10) == []


def test_who_was_forgotten_by_another_is_told_nothing(poller: Poller, pair: Pair) -> None:
    one, two = pair
    second = Told()
    first = Told(lambda: poller.forget(two.fileno()))
    poller.watch(one.fileno(), WRITABLE, first)
    poller.watch(two.fileno(), WRITABLE, second)
    happened = sorted(poller.wait(1000), key=lambda event: event[0] != one.fileno())
    assert len(happened) == 2
    poller.tell(happened)
    assert (len(first.ready), len(second.ready)) == (1, 0)


def test_a_number_that_came_to_another_brings_it_nothing(poller: Poller, pair: Pair) -> None:
    """The kernel gives a closed descriptor's number to the next one that is opened."""
    one, two = pair
    newcomer = Told()

    def replace() -> None:
        poller.forget(two.fileno())
        poller.watch(two.fileno(), WRITABLE, newcomer)

    poller.watch(one.fileno(), WRITABLE, Told(replace))
    poller.watch(two.fileno(), WRITABLE, Told())
    poller.tell(sorted(poller.wait(1000), key=lambda event: event[0] != one.fileno()))
    assert newcomer.ready == []
    poller.tell([event for event in poller.wait(1000) if event[0] == two.fileno()])
    assert newcomer.ready == [(False, True)]


class Inputs:
    """A broker that keeps what it is told, in order."""

    def __init__(self, loop: NodeLoop) -> None:
        self.loop = loop
        self.told: list[str] = []
        self.deadline_ms: int | None = None
        self.do: dict[str, Callable[[], object]] = {}

    def note(self, what: str) -> None:
        self.told.append(what)
        self.do.get(what, lambda: None)()

    def on_connection(
        self, connection: ConnectionId, listener: str, peer: str, now_ms: int
    ) -> None:
        self.note("connection")

    def on_request(
        self, connection: ConnectionId, data: bytes, start: int, end: int, now_ms: int
    ) -> None:
        self.loop.transport.send(connection, [data[start:end]])
        self.note(data[start:end].decode())

    def on_closed(self, connection: ConnectionId, now_ms: int, reason: str) -> None:
        self.note("closed")

    def end_turn(self, now_ms: int) -> None:
        self.note("end")

    def tick(self, now_ms: int) -> None:
        assert self.deadline_ms is not None
        assert self.deadline_ms <= now_ms
        self.deadline_ms = None
        self.note("tick")

    def next_deadline_ms(self) -> int | None:
        return self.deadline_ms


class World:
    """A loop with a transport and a broker that keeps what it is told."""

    def __init__(self) -> None:
        self.loop = NodeLoop()
        self.broker = Inputs(self.loop)
        self.loop.broker = self.broker  # type: ignore[assignment]
        self.loop.transport = SocketTransport(
            self.loop.poller,
            self.loop.timers,
            self.loop.post,
            frame_bytes_max=1000,
            connections_max=10,
            connections_per_host_max=10,
            connections_by_host_max={},
            idle_ms_max=-1,
        )
        self.loop.transport.broker = self.broker  # type: ignore[assignment]

    def stop_at(self, what: str) -> None:
        self.broker.do[what] = self.loop.stop


@pytest.fixture
def world() -> Iterator[World]:
    made = World()
    yield made
    made.loop.transport.close_all()
    made.loop.close()


def test_what_arrives_together_gets_one_end_and_one_send(world: World) -> None:
    listening = socket.create_server(("127.0.0.1", 0))
    world.loop.transport.listen("PLAINTEXT", listening)
    with socket.create_connection(listening.getsockname()) as client:
        client.sendall(b"\0\0\0\3one\0\0\0\3two\0\0\0\3bye")
        world.stop_at("bye")
        world.loop.run()
        turns = " ".join(world.broker.told).split("end")
        assert "one two bye" in " ".join(turns[-2].split())
        assert client.recv(100) == b"onetwobye"


def test_what_waited_for_a_resumed_connection_has_a_turn_of_its_own(world: World) -> None:
    """The broker pauses at each request and resumes as the turn ends, as it does at its limit.

    It has no deadline and the client sends no more: what was not taken up would wait for ever.
    """
    listening = socket.create_server(("127.0.0.1", 0))
    transport = world.loop.transport
    transport.listen("PLAINTEXT", listening)
    only = ConnectionId(1)
    for name in ("one", "two", "bye"):
        world.broker.do[name] = lambda: transport.pause_reading(only)
    world.broker.do["end"] = lambda: transport.resume_reading(only)
    world.broker.do["bye"] = world.loop.stop
    with socket.create_connection(listening.getsockname()) as client:
        client.sendall(b"\0\0\0\3one\0\0\0\3two\0\0\0\3bye")
        world.loop.run()
        told = " ".join(world.broker.told)
        assert "one end two end bye end" in told
        assert client.recv(100) == b"onetwobye"


def test_a_tick_comes_when_it_is_due_and_not_before(world: World) -> None:
    due_ms = world.broker.deadline_ms = monotonic_ms() + 30
    world.stop_at("tick")
    world.loop.run()
    assert monotonic_ms() >= due_ms
    assert world.broker.told[-2:] == ["tick", "end"]


def test_a_timer_of_the_loop_runs_beside_the_brokers_deadlines(world: World) -> None:
    world.broker.deadline_ms = monotonic_ms() + 3_600_000 * 24 * 30
    called: list[int] = []
    world.loop.timers.at(monotonic_ms() + 10, called.append)
    world.loop.timers.at(monotonic_ms() + 20, lambda now_ms: world.loop.stop())
    world.loop.run()
    assert len(called) == 1
    assert "tick" not in world.broker.told


def test_what_another_thread_posts_wakes_the_loop(world: World) -> None:
    order: list[str] = []

    def post() -> None:
        for name in ("a", "b", "c"):
            world.loop.post(lambda now_ms, name=name: order.append(name))
        world.loop.post(lambda now_ms: world.loop.stop())

    thread = threading.Timer(0.02, post)
    thread.start()
    world.loop.run()
    thread.join()
    assert order == ["a", "b", "c"]


def test_what_a_posted_call_posts_waits_for_the_next_turn(world: World) -> None:
    def first(now_ms: int) -> None:
        world.broker.note("first")
        world.loop.post(second)

    def second(now_ms: int) -> None:
        world.broker.note("second")
        world.loop.stop()

    world.loop.post(first)
    world.loop.run()
    assert world.broker.told == ["first", "end", "second", "end"]


def test_many_posts_from_many_threads_all_run(world: World) -> None:
    seen: list[int] = []

    def note(number: int) -> None:
        seen.append(number)
        if len(seen) == 4000:
            world.loop.stop()

    def post() -> None:
        for number in range(1000):
            world.loop.post(lambda now_ms, number=number: note(number))

    threads = [threading.Thread(target=post) for _ in range(4)]
    for thread in threads:
        thread.start()
    world.loop.run()
    for thread in threads:
        thread.join()
    assert sorted(seen) == sorted(list(range(1000)) * 4)


def test_a_signal_is_an_input_like_others() -> None:
    world = World()
    came: list[int] = []

    def note(number: int) -> None:
        came.append(number)
        world.loop.stop()

    world.loop.on_signal(signal.SIGUSR1, note)
    threading.Timer(0.02, os.kill, (os.getpid(), signal.SIGUSR1)).start()
    world.loop.run()
    assert came == [signal.SIGUSR1]
    world.loop.close()
    assert signal.getsignal(signal.SIGUSR1) is signal.SIG_DFL


def test_a_bug_ends_the_loop_with_its_story(world: World) -> None:
    def bug(now_ms: int) -> None:
        raise RuntimeError("a bug")

    world.loop.post(bug)
    with pytest.raises(RuntimeError, match="a bug"):
        world.loop.run()


def test_turns_are_measured_when_somebody_asks(world: World, tmp_path: Path) -> None:
    turns = LoopTurns()
    world.loop.post(lambda now_ms: world.loop.stop())
    world.loop.run(turns)
    turns.write(tmp_path / "turns.json")
    told = json.loads((tmp_path / "turns.json").read_text())
    assert told["turns"] == 1
    assert 0 < told["p999_ms"] <= told["max_ms"] < 1000


def test_the_histogram_is_right_to_seven_percent() -> None:
    turns = LoopTurns()
    for taken_ns in range(1_000, 1_001_000, 1_000):
        turns.note(taken_ns)
    for part in (0.001, 0.5, 0.9, 0.999):
        exact = part * 1_000_000
        assert exact <= turns.percentile_ns(part) <= exact * 1.07 + 1
    assert turns.percentile_ns(1) == 1_000_000


def test_one_long_turn_in_a_thousand_does_not_move_the_percentile() -> None:
    turns = LoopTurns()
    for _ in range(9_999):
        turns.note(50_000)
    turns.note(7_500_000)
    assert turns.percentile_ns(0.999) < 54_000
    assert turns.percentile_ns(1) == 7_500_000
