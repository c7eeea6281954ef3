"""Drives the wire client on blocking sockets, for programs: one operation at a time."""

import random
import select
import socket
import time
from collections.abc import Sequence
from types import TracebackType
from typing import Self, TypeVar, cast

from barnabas import __version__
from barnabas.client.connection import Connection
from barnabas.client.retries import DEFAULT_POLICY, RetryPolicy
from barnabas.client.routing import Cluster
from barnabas.client.steps import (
    Address,
    Answer,
    Failure,
    FailureKind,
    Operation,
    Outcome,
    Pause,
    Request,
)
from barnabas.model.errors import DecodeError
from barnabas.node.clock import monotonic_ms

T = TypeVar("T")

RECEIVE_BYTES = 256 * 1024
CONNECT_MS_MAX = 10_000
CHANNELS_MAX = 1_000
"""Brokers that one client is connected to; far more than clusters have."""


class _Channel:
    """A socket and what is spoken over it."""

    def __init__(self, sock: socket.socket, client_id: str) -> None:
        self.sock = sock
        self.connection = Connection(client_id, __version__)

    def is_dead(self) -> bool:
        """Whether the other side closed it while nobody looked: nobody asked for anything else."""
        poller = select.poll()
        poller.register(self.sock, select.POLLIN)
        return bool(poller.poll(0))

    def flush(self, timeout_ms: int) -> None:
        output = self.connection.take_output()
        if output:
            self.sock.settimeout(timeout_ms / 1000)
            self.sock.sendall(output)


def _connect(address: Address, seconds: float) -> socket.socket:
    """The first of a name's addresses where somebody listens; `OSError` of the last one else."""
    # Text would bring the tables of international names in, which costs more than a connection.
    host = address.host.encode("ascii") if address.host.isascii() else address.host
    problem = OSError("the name has no address")
    for family, kind, protocol, _, place in socket.getaddrinfo(
        host, address.port, type=socket.SOCK_STREAM
    ):
        sock = socket.socket(family, kind, protocol)
        sock.settimeout(seconds)
        try:
            sock.connect(place)
        except OSError as refused:
            sock.close()
            problem = refused
        else:
            return sock
    raise problem


class BlockingClient:
    """A cluster, and connections to its brokers that are kept until `close`."""

    def __init__(
        self,
        bootstrap: Sequence[Address],
        *,
        policy: RetryPolicy = DEFAULT_POLICY,
        client_id: str = "barnabas",
    ) -> None:
        self.cluster = Cluster(bootstrap, random.Random(), policy)
        self._client_id = client_id
        self._channels: dict[Address, _Channel] = {}

    def run(self, operation: Operation[T]) -> T:
        """Carry out an operation to its end; what it returns or raises."""
        try:
            step = next(operation)
            while True:
                if isinstance(step, Pause):
                    if step.delay_ms > 0:
                        time.sleep(step.delay_ms / 1000)
                    outcome = Outcome(monotonic_ms())
                else:
                    answers = self._ask(step.requests)
                    outcome = Outcome(monotonic_ms(), answers)
                step = operation.send(outcome)
        except StopIteration as end:
            return cast(T, end.value)

    def close(self) -> None:
        """Close every connection."""
        for channel in self._channels.values():
            channel.sock.close()
        self._channels.clear()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        problem: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _ask(self, requests: tuple[Request, ...]) -> tuple[Answer, ...]:
        answers: dict[int, Answer] = {}
        deadlines: dict[int, int] = {}
        for token, request in enumerate(requests):
            deadlines[token] = monotonic_ms() + request.timeout_ms
            try:
                channel = self._channel_to(request.address, request.timeout_ms)
            except OSError as problem:
                reason = problem.strerror or str(problem) or type(problem).__name__
                answers[token] = Failure(FailureKind.NOT_CONNECTED, reason)
            else:
                channel.connection.submit(token, request)
        while len(answers) < len(requests):
            waiting = [token for token in range(len(requests)) if token not in answers]
            addresses = list(dict.fromkeys(requests[token].address for token in waiting))
            left_ms = min(deadlines[token] for token in waiting) - monotonic_ms()
            if left_ms <= 0:
                self._time_out(requests, waiting, deadlines, answers)
            else:
                self._exchange(addresses, left_ms, answers)
        return tuple(answers[token] for token in range(len(requests)))

    def _channel_to(self, address: Address, timeout_ms: int) -> _Channel:
        channel = self._channels.get(address)
        if channel is not None and channel.connection.is_idle and channel.is_dead():
            channel.sock.close()
            del self._channels[address]
            channel = None
        if channel is None:
            if len(self._channels) >= CHANNELS_MAX:
                self.close()
            seconds = min(timeout_ms, CONNECT_MS_MAX) / 1000
            sock = _connect(address, seconds)
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            channel = self._channels[address] = _Channel(sock, self._client_id)
        return channel

    def _exchange(
        self, addresses: Sequence[Address], left_ms: int, answers: dict[int, Answer]
    ) -> None:
        """Send what is to be sent, wait for something to arrive, take it."""
        poller = select.poll()
        by_fd: dict[int, Address] = {}
        for address in addresses:
            channel = self._channels[address]
            try:
                channel.flush(left_ms)
            except OSError as problem:
                self._lose(address, FailureKind.LOST, problem.strerror or "send failed", answers)
                return
            answers.update(channel.connection.take_answers())
            poller.register(channel.sock, select.POLLIN)
            by_fd[channel.sock.fileno()] = address
        if any(self._channels[address].connection.is_idle for address in addresses):
            return
        for fd, _ in poller.poll(left_ms):
            self._receive(by_fd[fd], answers)

    def _receive(self, address: Address, answers: dict[int, Answer]) -> None:
        channel = self._channels[address]
        try:
            data = channel.sock.recv(RECEIVE_BYTES)
        except OSError as problem:
            self._lose(address, FailureKind.LOST, problem.strerror or "receive failed", answers)
            return
        if not data:
            self._lose(address, FailureKind.LOST, "it closed the connection", answers)
            return
        try:
            channel.connection.receive(data)
            # The versions came: what waited for them leaves now, also what nobody will answer.
            channel.flush(CONNECT_MS_MAX)
        except DecodeError as problem:
            self._lose(address, FailureKind.UNREADABLE, str(problem), answers)
            return
        except OSError as problem:
            self._lose(address, FailureKind.LOST, problem.strerror or "send failed", answers)
            return
        answers.update(channel.connection.take_answers())

    def _lose(
        self, address: Address, kind: FailureKind, reason: str, answers: dict[int, Answer]
    ) -> None:
        channel = self._channels.pop(address)
        channel.sock.close()
        channel.connection.fail_all(Failure(kind, reason))
        answers.update(channel.connection.take_answers())

    def _time_out(
        self,
        requests: tuple[Request, ...],
        waiting: Sequence[int],
        deadlines: dict[int, int],
        answers: dict[int, Answer],
    ) -> None:
        """What has waited too long takes its connection along: answers come in order."""
        now_ms = monotonic_ms()
        for token in waiting:
            if deadlines[token] <= now_ms and requests[token].address in self._channels:
                reason = f"no answer within {requests[token].timeout_ms / 1000:g} s"
                self._lose(requests[token].address, FailureKind.TIMED_OUT, reason, answers)
