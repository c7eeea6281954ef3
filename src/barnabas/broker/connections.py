"""Accepted connections: requests in flight, answered in the order in which they came."""

from collections.abc import Sequence

from barnabas.broker.ports import ConnectionId, Transport
from barnabas.model.invariant import invariant
from barnabas.storage.disk import Buffer, FileSlice

IN_FLIGHT_MAX = 128
"""Requests of one connection that may wait for their answer; then no more is read from it."""

IN_FLIGHT_BYTES_MAX = 32 * 1024 * 1024
"""Bytes of those requests; one request alone may be larger (socket.request.max.bytes)."""

Parts = Sequence[Buffer | FileSlice]
_NOTHING: Parts = ()


class Request:
    """One request that was not answered yet."""

    __slots__ = (
        "api_key",
        "api_version",
        "client_id",
        "connection",
        "correlation_id",
        "is_answered",
        "size_bytes",
        "slot",
    )

    def __init__(
        self,
        connection: "Connection",
        slot: int,
        api_key: int,
        api_version: int,
        correlation_id: int,
        client_id: str | None,
        size_bytes: int,
    ) -> None:
        self.connection = connection
        self.slot = slot
        self.api_key = api_key
        self.api_version = api_version
        self.correlation_id = correlation_id
        self.client_id = client_id
        self.size_bytes = size_bytes
        self.is_answered = False


class KeptAnswer:
    """An answer behind a slower one, and the bytes that count as in flight for it."""

    __slots__ = ("counted_bytes", "parts")

    def __init__(self, parts: Parts, counted_bytes: int) -> None:
        self.parts = parts
        self.counted_bytes: int = counted_bytes


class Connection:
    """One accepted connection.

    Requests are taken up as they come and may be finished in any order; the answer of a later one
    waits until the earlier ones have left (`waiting` holds answers of slots > `next_slot_to_send`).
    A request is in flight until its answer was sent, so that what waits behind a slow one counts.
    """

    __slots__ = (
        "client_software_name",
        "client_software_version",
        "id",
        "in_flight",
        "in_flight_bytes",
        "is_closed",
        "is_paused",
        "listener",
        "next_slot",
        "next_slot_to_send",
        "peer_host",
        "transport",
        "waiting",
    )

    def __init__(
        self, id: ConnectionId, listener: str, peer_host: str, transport: Transport
    ) -> None:
        self.id = id
        self.listener = listener
        self.peer_host = peer_host
        self.transport = transport
        self.next_slot = 0
        self.next_slot_to_send = 0
        self.waiting: dict[int, KeptAnswer] = {}
        self.in_flight = 0
        self.in_flight_bytes = 0
        self.is_paused = False
        self.is_closed = False
        self.client_software_name = ""
        self.client_software_version = ""

    def open_request(
        self,
        api_key: int,
        api_version: int,
        correlation_id: int,
        client_id: str | None,
        size_bytes: int,
    ) -> Request:
        """Take up a request; stops reading from the connection when its limit is reached."""
        slot = self.next_slot
        self.next_slot = slot + 1
        self.in_flight += 1
        self.in_flight_bytes += size_bytes
        self._pause_at_limit()
        return Request(self, slot, api_key, api_version, correlation_id, client_id, size_bytes)

    def _pause_at_limit(self) -> None:
        if not self.is_paused and (
            self.in_flight >= IN_FLIGHT_MAX or self.in_flight_bytes >= IN_FLIGHT_BYTES_MAX
        ):
            self.is_paused = True
            self.transport.pause_reading(self.id)

    def answer(self, request: Request, parts: Parts) -> None:
        """Send an answer, or keep it until those before it have left; `()` answers nothing."""
        if request.is_answered:
            # The story is only told when there is one: it costs more than the rest of this call.
            invariant(
                False,
                f"request {request.correlation_id} of connection {self.id} was answered twice",
            )
        request.is_answered = True
        if self.is_closed:
            release_parts(parts)
            return
        if request.slot != self.next_slot_to_send:
            self._keep(request, parts)
            return
        self._send(request.size_bytes, parts)
        if self.waiting:
            self._send_waiting()
        if (
            self.is_paused
            and self.in_flight <= IN_FLIGHT_MAX // 2
            and self.in_flight_bytes <= IN_FLIGHT_BYTES_MAX // 2
        ):
            self.is_paused = False
            self.transport.resume_reading(self.id)

    def _keep(self, request: Request, parts: Parts) -> None:
        """The answer takes the place of its request among what counts towards the limits."""
        held_bytes = 0
        for part in parts:
            if not isinstance(part, FileSlice):
                held_bytes += len(part)
        self.waiting[request.slot] = KeptAnswer(parts, request.size_bytes + held_bytes)
        self.in_flight_bytes += held_bytes
        self._pause_at_limit()

    def _send(self, counted_bytes: int, parts: Parts) -> None:
        if parts:
            self.transport.send(self.id, parts)
        self.next_slot_to_send += 1
        self.in_flight -= 1
        self.in_flight_bytes -= counted_bytes

    def _send_waiting(self) -> None:
        while self.next_slot_to_send in self.waiting:
            kept = self.waiting.pop(self.next_slot_to_send)
            self._send(kept.counted_bytes, kept.parts)

    def note_closed(self) -> None:
        """The peer is gone: nothing that waits will be sent."""
        self.is_closed = True
        for kept in self.waiting.values():
            release_parts(kept.parts)
        self.waiting.clear()


def release_parts(parts: Parts) -> None:
    """Give back the file slices of an answer that will not be sent."""
    for part in parts:
        if isinstance(part, FileSlice):
            part.disk.release(part.file)
