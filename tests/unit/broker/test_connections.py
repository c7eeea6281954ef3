"""Answers leave in the order of their requests, and a connection has a limit in flight."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.broker.connections import IN_FLIGHT_BYTES_MAX, IN_FLIGHT_MAX, Connection
from barnabas.broker.ports import ConnectionId
from barnabas.model.invariant import InvariantViolated
from barnabas.storage.disk import Buffer, FileId, FileSlice


class RecordingTransport:
    """Remembers what was sent and whether reading is paused."""

    def __init__(self) -> None:
        self.sent: list[bytes] = []
        self.is_paused = False

    def send(self, connection: ConnectionId, parts: Sequence[Buffer | FileSlice]) -> None:
        self.sent.append(b"".join(bytes(p) for p in parts if not isinstance(p, FileSlice)))

    def pause_reading(self, connection: ConnectionId) -> None:
        self.is_paused = True

    def resume_reading(self, connection: ConnectionId) -> None:
        self.is_paused = False


class CountingDisk:
    """Counts the slices that were given back."""

    def __init__(self) -> None:
        self.released = 0

    def release(self, file: FileId) -> None:
        self.released += 1


def connect() -> tuple[Connection, RecordingTransport]:
    transport = RecordingTransport()
    return Connection(ConnectionId(1), "PLAINTEXT", "127.0.0.1", transport), transport


@given(st.permutations(list(range(8))), st.sets(st.integers(0, 7)))
def test_answers_leave_in_the_order_of_the_requests(order: list[int], silent: set[int]) -> None:
    connection, transport = connect()
    requests = [connection.open_request(0, 7, n, None, 10) for n in range(8)]
    for number in order:
        connection.answer(requests[number], () if number in silent else (b"%d" % number,))
    assert transport.sent == [b"%d" % n for n in range(8) if n not in silent]
    assert (connection.in_flight, connection.in_flight_bytes) == (0, 0)
    assert not connection.waiting


def test_reading_pauses_at_the_limit_and_resumes_at_half() -> None:
    connection, transport = connect()
    requests = [connection.open_request(0, 7, n, None, 1) for n in range(IN_FLIGHT_MAX - 1)]
    assert not transport.is_paused
    requests.append(connection.open_request(0, 7, 0, None, 1))
    assert transport.is_paused
    for request in requests[: IN_FLIGHT_MAX // 2 - 1]:
        connection.answer(request, (b"",))
    assert transport.is_paused
    connection.answer(requests[IN_FLIGHT_MAX // 2 - 1], (b"",))
    assert not transport.is_paused


def test_one_huge_request_pauses_reading_until_it_is_answered() -> None:
    connection, transport = connect()
    request = connection.open_request(0, 7, 0, None, 100 * 1024 * 1024)
    assert transport.is_paused
    connection.answer(request, (b"",))
    assert not transport.is_paused


def test_answers_behind_a_slow_one_count_until_they_are_sent() -> None:
    connection, transport = connect()
    slow = connection.open_request(1, 4, 0, None, 1)
    for number in range(IN_FLIGHT_MAX - 1):
        connection.answer(connection.open_request(3, 1, number, None, 1), (b"x",))
    assert transport.is_paused
    assert transport.sent == []
    connection.answer(slow, (b"slow",))
    assert not transport.is_paused
    assert transport.sent == [b"slow"] + [b"x"] * (IN_FLIGHT_MAX - 1)
    assert (connection.in_flight, connection.in_flight_bytes) == (0, 0)


def test_the_bytes_of_answers_behind_a_slow_one_are_limited() -> None:
    connection, transport = connect()
    slow = connection.open_request(1, 4, 0, None, 1)
    large = bytes(IN_FLIGHT_BYTES_MAX)
    connection.answer(connection.open_request(3, 1, 1, None, 1), (large,))
    assert transport.is_paused
    connection.answer(slow, (b"slow",))
    assert not transport.is_paused


def test_a_request_is_answered_once() -> None:
    connection, _ = connect()
    request = connection.open_request(0, 7, 0, None, 1)
    connection.answer(request, (b"x",))
    with pytest.raises(InvariantViolated, match="answered twice"):
        connection.answer(request, (b"x",))


def test_a_closed_connection_gives_file_slices_back() -> None:
    connection, transport = connect()
    disk = CountingDisk()
    part = FileSlice(disk, FileId(1), 0, 10)  # type: ignore[arg-type]
    first, second, third = (connection.open_request(1, 4, n, None, 1) for n in range(3))
    connection.answer(second, (b"head", part))
    connection.note_closed()
    assert disk.released == 1
    connection.answer(first, (b"head", part))
    connection.answer(third, (b"head", part))
    assert disk.released == 3
    assert transport.sent == []
