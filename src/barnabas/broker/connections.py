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


class Connection:
    """One accepted connection.

    Requests are taken up as they come and may be finished in any order; the answer of a later one
    waits until the earlier ones have left (`waiting` holds answers of slots > `next_slot_to_send`).
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
        self.waiting: dict[int, Parts] = {}
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
        if not self.is_paused and (
            self.in_flight >= IN_FLIGHT_MAX or self.in_flight_bytes >= IN_FLIGHT_BYTES_MAX
        ):
            self.is_paused = True
            self.transport.pause_reading(self.id)
        return Request(self, slot, api_key, api_version, correlation_id, client_id, size_bytes)

    def answer(self, request: Request, parts: Parts) -> None:
        """Send an answer, or keep it until those before it have left; `()` answers nothing."""
        invariant(
            not request.is_answered,
            f"request {request.correlation_id} of connection {self.id} was answered twice",
        )
        request.is_answered = True
        if self.is_closed:
            release_parts(parts)
            return
        self.in_flight -= 1
        self.in_flight_bytes -= request.size_bytes
        if request.slot == self.next_slot_to_send:
            if parts:
                self.transport.send(self.id, parts)
            self.next_slot_to_send = request.slot + 1
            if self.waiting:
                self._send_waiting()
        else:
            self.waiting[request.slot] = parts
        if (
            self.is_paused
            and self.in_flight <= IN_FLIGHT_MAX // 2
            and self.in_flight_bytes <= IN_FLIGHT_BYTES_MAX // 2
        ):
            self.is_paused = False
            self.transport.resume_reading(self.id)

    def _send_waiting(self) -> None:
        while self.next_slot_to_send in self.waiting:
            parts = self.waiting.pop(self.next_slot_to_send)
            if parts:
                self.transport.send(self.id, parts)
            self.next_slot_to_send += 1

    def note_closed(self) -> None:
        """The peer is gone: nothing that waits will be sent."""
        self.is_closed = True
        for parts in self.waiting.values():
            release_parts(parts)
        self.waiting.clear()


def release_parts(parts: Parts) -> None:
    """Give back the file slices of an answer that will not be sent."""
    for part in parts:
        if isinstance(part, FileSlice):
            part.disk.release(part.file)
