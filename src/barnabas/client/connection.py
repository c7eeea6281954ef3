"""One connection to a broker: the versions it takes, requests as bytes, answers back in order."""

from collections import deque
from typing import Final, NamedTuple

from barnabas.client.steps import Answer, Failure, FailureKind, Request, Response
from barnabas.formats.wire.api_keys import ApiKey
from barnabas.formats.wire.catalog import Api, find_api
from barnabas.formats.wire.framing import decode_response, request_frame
from barnabas.formats.wire.generated.api_versions import ApiVersionsRequest
from barnabas.formats.wire.headers import read_correlation_id
from barnabas.model.error_codes import ErrorCode
from barnabas.model.errors import DecodeError
from barnabas.model.invariant import invariant

IN_FLIGHT_MAX: Final = 64
ANSWER_BYTES_MAX: Final = 256 * 1024 * 1024
SOFTWARE_NAME: Final = "barnabas"


class _Pending(NamedTuple):
    token: int
    api_key: ApiKey
    version: int


class Connection:
    """Bytes out, bytes in; the first request asks for the broker's versions, the rest wait."""

    def __init__(self, client_id: str, software_version: str) -> None:
        self._client_id = client_id
        self._software_version = software_version
        self._next_correlation_id = 0
        self._versions: dict[int, tuple[int, int]] | None = None
        self._asked_version = -1
        self._waiting: deque[tuple[int, Request]] = deque()
        self._pending: deque[_Pending] = deque()
        self._received = bytearray()
        self._output = bytearray()
        self._answers: list[tuple[int, Answer]] = []
        self._ask_for_versions(find_api(ApiKey.API_VERSIONS).max_version)

    @property
    def is_idle(self) -> bool:
        """Whether nobody waits for anything."""
        return not self._waiting and not self._pending and not self._output

    def submit(self, token: int, request: Request) -> None:
        """Take a request; its answer comes with the same token, out of `take_answers`."""
        in_flight = len(self._waiting) + len(self._pending)
        invariant(in_flight < IN_FLIGHT_MAX, "too many requests in flight on one connection")
        if self._versions is None:
            self._waiting.append((token, request))
        else:
            self._send(token, request)

    def take_output(self) -> bytes:
        """What is to be sent now."""
        output = bytes(self._output)
        self._output.clear()
        return output

    def take_answers(self) -> list[tuple[int, Answer]]:
        """What has been answered since the last call."""
        answers, self._answers = self._answers, []
        return answers

    def receive(self, data: bytes) -> None:
        """Take what arrived; `DecodeError` when it is no answer to what was asked."""
        received = self._received
        received += data
        while len(received) >= 4:
            size = int.from_bytes(received[:4], "big", signed=True)
            if not 4 <= size <= ANSWER_BYTES_MAX:
                raise DecodeError(_describe_beginning(bytes(received[:16])))
            if len(received) < 4 + size:
                return
            frame = bytes(memoryview(received)[4 : 4 + size])
            del received[: 4 + size]
            self._take(frame)

    def fail_all(self, failure: Failure) -> None:
        """The connection is gone: everybody who waits learns why."""
        waiting = [token for token, _ in self._waiting]
        pending = [entry.token for entry in self._pending if entry.token >= 0]
        self._answers += [(token, failure) for token in pending + waiting]
        self._waiting.clear()
        self._pending.clear()

    def _take(self, frame: bytes) -> None:
        if not self._pending:
            raise DecodeError("an answer that nobody asked for")
        pending = self._pending.popleft()
        version = pending.version
        correlation_id = (self._next_correlation_id - len(self._pending) - 1) & 0x7FFFFFFF
        if read_correlation_id(frame) != correlation_id:
            self._pending.appendleft(pending)
            raise DecodeError(f"answers out of order: {read_correlation_id(frame)}")
        if pending.token < 0:
            self._take_versions(frame, version)
            return
        try:
            body = decode_response(pending.api_key, version, frame)
        except DecodeError:
            self._pending.appendleft(pending)
            raise
        self._answers.append((pending.token, Response(version, body)))

    def _ask_for_versions(self, version: int) -> None:
        self._asked_version = version
        body = ApiVersionsRequest()
        if version >= 3:
            body.client_software_name = SOFTWARE_NAME
            body.client_software_version = self._software_version
        self._write(-1, ApiKey.API_VERSIONS, version, body)

    def _take_versions(self, frame: bytes, version: int) -> None:
        # A broker that does not know the version says so in the layout of version 0.
        is_refused = frame[4:6] == ErrorCode.UNSUPPORTED_VERSION.to_bytes(2, "big")
        body = decode_response(ApiKey.API_VERSIONS, 0 if is_refused else version, frame)
        if is_refused and version > 0:
            self._ask_for_versions(0)
            return
        if body.error_code != ErrorCode.NONE:
            raise DecodeError(f"the broker did not tell its versions: error {body.error_code}")
        self._versions = {
            entry.api_key: (entry.min_version, entry.max_version) for entry in body.api_keys
        }
        while self._waiting:
            self._send(*self._waiting.popleft())

    def _send(self, token: int, request: Request) -> None:
        assert self._versions is not None
        api = find_api(request.api_key)
        theirs = self._versions.get(api.key)
        version = choose_version(api, theirs, request.max_version)
        if version is None:
            reason = _describe_missing(api, theirs)
            self._answers.append((token, Failure(FailureKind.UNSUPPORTED, reason)))
            return
        self._write(
            token if request.is_answered else None, api.key, version, request.build(version)
        )
        if not request.is_answered:
            self._answers.append((token, Response(version, None)))

    def _write(self, token: int | None, key: ApiKey, version: int, body: object) -> None:
        correlation_id = self._next_correlation_id
        frame = request_frame(key, version, correlation_id, self._client_id, body)
        self._output += frame
        if token is not None:
            # Numbers are given to what is answered alone, so that the next answer's is known.
            self._next_correlation_id = (correlation_id + 1) & 0x7FFFFFFF
            self._pending.append(_Pending(token, key, version))


def choose_version(
    api: Api, theirs: tuple[int, int] | None, max_version: int | None = None
) -> int | None:
    """The newest version that both sides know; None when there is none."""
    if theirs is None:
        return None
    newest = min(api.max_version, theirs[1])
    if max_version is not None:
        newest = min(newest, max_version)
    return newest if newest >= max(api.min_version, theirs[0]) else None


def _describe_missing(api: Api, theirs: tuple[int, int] | None) -> str:
    if theirs is None:
        return f"it does not serve {api.name}"
    return (
        f"it serves {api.name} {theirs[0]}-{theirs[1]}, "
        f"known here are {api.min_version}-{api.max_version}"
    )


def _describe_beginning(data: bytes) -> str:
    """Say what the bytes look like, since a wrong port is the usual cause."""
    if data.startswith(b"HTTP"):
        return "an HTTP server answered"
    if data[:1] in (b"\x15", b"\x16") and data[1:2] == b"\x03":
        return "a TLS listener answered"
    return f"what answered does not speak Kafka's protocol (its first bytes: {data.hex(' ')})"
