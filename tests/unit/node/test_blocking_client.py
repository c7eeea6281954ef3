"""The driver of the wire client on real sockets: what is sent, lost, late, and not Kafka's."""

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from barnabas.client.metadata import build_request
from barnabas.client.steps import (
    Address,
    Answer,
    Ask,
    Failure,
    FailureKind,
    Operation,
    Request,
    Response,
)
from barnabas.formats.wire.api_keys import ApiKey
from barnabas.formats.wire.framing import response_parts
from barnabas.formats.wire.generated.api_versions import ApiVersion, ApiVersionsResponse
from barnabas.formats.wire.generated.metadata import MetadataResponse
from barnabas.node.blocking_client import BlockingClient

VERSIONS = ApiVersionsResponse(
    error_code=0, api_keys=[ApiVersion(api_key=ApiKey.METADATA, min_version=0, max_version=9)]
)


def _read_frame(connection: socket.socket) -> bytes:
    size = int.from_bytes(connection.recv(4, socket.MSG_WAITALL), "big")
    return connection.recv(size, socket.MSG_WAITALL) if size else b""


def _answer(
    connection: socket.socket, key: ApiKey, version: int, number: int, body: object
) -> None:
    for part in response_parts(key, version, number, body):
        assert isinstance(part, bytes)
        connection.sendall(part)


def _greet(connection: socket.socket) -> None:
    _read_frame(connection)
    _answer(connection, ApiKey.API_VERSIONS, 4, 0, VERSIONS)


@contextmanager
def _server(*serve: Callable[[socket.socket], None]) -> Iterator[Address]:
    """Serves one connection after the other, each in its own way."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(30)

        def run() -> None:
            for each in serve:
                connection, _ = listener.accept()
                with connection:
                    connection.settimeout(30)
                    each(connection)

        thread = threading.Thread(target=run, daemon=True)
        thread.start()
        yield Address("127.0.0.1", listener.getsockname()[1])
        thread.join(30)
        assert not thread.is_alive()


def _ask(
    address: Address, *, is_answered: bool = True, timeout_ms: int = 20_000
) -> Operation[Answer]:
    def build(version: int) -> object:
        return build_request((), version, False)

    request = Request(address, ApiKey.METADATA, build, timeout_ms, is_answered=is_answered)
    (answer,) = (yield Ask((request,))).answers
    return answer


def _serve_metadata(connection: socket.socket) -> None:
    _greet(connection)
    _read_frame(connection)
    _answer(connection, ApiKey.METADATA, 9, 1, MetadataResponse(cluster_id="c"))


def test_what_nobody_answers_has_left_when_it_is_over():
    seen: list[bytes] = []

    def serve(connection: socket.socket) -> None:
        _greet(connection)
        seen.append(_read_frame(connection))

    with _server(serve) as address, BlockingClient([address]) as client:
        assert isinstance(client.run(_ask(address, is_answered=False)), Response)
        client.close()
    assert seen[0][:2] == ApiKey.METADATA.to_bytes(2, "big")


def test_a_connection_that_was_closed_in_between_is_opened_again():
    closed = threading.Event()

    def serve_and_close(connection: socket.socket) -> None:
        _serve_metadata(connection)
        connection.shutdown(socket.SHUT_RDWR)
        closed.set()

    with _server(serve_and_close, _serve_metadata) as address, BlockingClient([address]) as client:
        assert isinstance(client.run(_ask(address)), Response)
        closed.wait(30)
        assert isinstance(client.run(_ask(address)), Response)


def test_an_answer_that_does_not_come_is_a_failure_in_time():
    done = threading.Event()

    def serve(connection: socket.socket) -> None:
        _greet(connection)
        done.wait(30)

    with _server(serve) as address, BlockingClient([address]) as client:
        answer = client.run(_ask(address, timeout_ms=50))
        done.set()
    assert answer == Failure(FailureKind.TIMED_OUT, "no answer within 0.05 s")


@pytest.mark.parametrize(
    ("said", "kind"),
    [(b"HTTP/1.1 400", FailureKind.UNREADABLE), (b"", FailureKind.LOST)],
)
def test_other_servers_are_failures(said: bytes, kind: FailureKind):
    def serve(connection: socket.socket) -> None:
        _read_frame(connection)
        connection.sendall(said)

    with _server(serve) as address, BlockingClient([address]) as client:
        answer = client.run(_ask(address))
    assert isinstance(answer, Failure)
    assert answer.kind is kind


def test_where_nobody_listens_nothing_is_connected():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        address = Address("127.0.0.1", listener.getsockname()[1])
    with BlockingClient([address]) as client:
        answer = client.run(_ask(address))
        unknown = client.run(_ask(Address("no-such-host.invalid", 1)))
    assert answer == Failure(FailureKind.NOT_CONNECTED, "Connection refused")
    assert isinstance(unknown, Failure) and unknown.kind is FailureKind.NOT_CONNECTED


def test_a_broker_that_went_away_may_be_asked_again_and_again():
    closed = threading.Event()

    def serve_and_close(connection: socket.socket) -> None:
        _serve_metadata(connection)
        connection.shutdown(socket.SHUT_RDWR)
        closed.set()

    with BlockingClient([Address("unused", 1)]) as client:
        with _server(serve_and_close) as address:
            assert isinstance(client.run(_ask(address)), Response)
            closed.wait(30)
        refused = Failure(FailureKind.NOT_CONNECTED, "Connection refused")
        assert [client.run(_ask(address)) for _ in range(3)] == [refused] * 3
