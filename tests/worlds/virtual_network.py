"""A network in virtual time: connections between brokers and test clients, with a latency.

Whatever is sent arrives after the latency, in order, unless the way is cut: then it waits, as
packets do, until the way is mended or an end gives up. Everything that arrives is noted in the
trace, so that two runs can be compared.
"""

import heapq
import zlib
from collections.abc import Callable, Sequence

from barnabas.broker.ports import ConnectionId, LinkId
from barnabas.storage.disk import Buffer, FileSlice

LATENCY_MS = 1


class Scheduler:
    """What will happen, by time and then by the order in which it was arranged."""

    def __init__(self) -> None:
        self.now_ms = 0
        self._heap: list[tuple[int, int, Callable[[], None]]] = []
        self._sequence = 0
        self.trace: list[str] = []

    def at(self, when_ms: int, what: Callable[[], None]) -> None:
        self._sequence += 1
        heapq.heappush(self._heap, (when_ms, self._sequence, what))

    def next_ms(self) -> int | None:
        return self._heap[0][0] if self._heap else None

    def run_due(self) -> bool:
        """Do everything that is due; False when nothing was."""
        is_any = False
        while self._heap and self._heap[0][0] <= self.now_ms:
            heapq.heappop(self._heap)[2]()
            is_any = True
        return is_any

    def note(self, story: str) -> None:
        self.trace.append(f"{self.now_ms} {story}")


class Wire:
    """One connection: whoever opened it on one end, a broker on the other."""

    def __init__(
        self, network: "VirtualNetwork", opener: "Opener", host: "Host", connection: ConnectionId
    ) -> None:
        self.network = network
        self.opener = opener
        self.host = host
        self.connection = connection
        self.is_open = True
        self._held: list[Callable[[], None]] = []
        self.is_paused = False
        self._unread: list[bytes] = []

    @property
    def name(self) -> str:
        return f"{self.opener.name}>{self.host.name}#{self.connection}"

    def to_host(self, frame: bytes) -> None:
        """A request, its length first, from the opener."""
        self._carry(lambda: self._arrive_at_host(frame))

    def to_opener(self, frame: bytes) -> None:
        """An answer, its length first, from the broker."""
        self._carry(lambda: self._arrive_at_opener(frame))

    def _carry(self, arrive: Callable[[], None]) -> None:
        scheduler = self.network.scheduler
        scheduler.at(scheduler.now_ms + LATENCY_MS, lambda: self._deliver(arrive))

    def _deliver(self, arrive: Callable[[], None]) -> None:
        if not self.is_open:
            return
        if self.network.is_cut(self.opener.name, self.host.name):
            self._held.append(arrive)
        else:
            arrive()

    def mend(self) -> None:
        held, self._held = self._held, []
        for arrive in held:
            self._carry(arrive)

    def _arrive_at_host(self, frame: bytes) -> None:
        if self.is_paused:
            self._unread.append(frame)
            return
        self.network.note(f"{self.name} request", frame)
        self.host.on_frame(self.connection, frame)

    def resume(self) -> None:
        self.is_paused = False
        unread, self._unread = self._unread, []
        for frame in unread:
            self._carry(lambda frame=frame: self._arrive_at_host(frame))

    def _arrive_at_opener(self, frame: bytes) -> None:
        self.network.note(f"{self.name} answer", frame)
        self.opener.on_frame(frame)

    def close_from_host(self, reason: str) -> None:
        """The broker closed, or is gone: the opener learns of it."""
        if self.is_open:
            self.is_open = False
            self.network.forget(self)
            scheduler = self.network.scheduler
            scheduler.at(scheduler.now_ms + LATENCY_MS, lambda: self.opener.on_closed(reason))

    def close_from_opener(self) -> None:
        """The opener closed, or is gone: the broker learns of it."""
        if self.is_open:
            self.is_open = False
            self.network.forget(self)
            scheduler = self.network.scheduler
            scheduler.at(
                scheduler.now_ms + LATENCY_MS, lambda: self.host.on_wire_closed(self.connection)
            )


class Opener:
    """The end that opened a wire."""

    name = ""

    def on_open(self, wire: Wire) -> None:
        raise NotImplementedError

    def on_frame(self, frame: bytes) -> None:
        raise NotImplementedError

    def on_closed(self, reason: str) -> None:
        raise NotImplementedError


class Host:
    """A broker as the network sees it."""

    name = ""

    def on_wire(self, wire: Wire) -> None:
        raise NotImplementedError

    def on_frame(self, connection: ConnectionId, frame: bytes) -> None:
        raise NotImplementedError

    def on_wire_closed(self, connection: ConnectionId) -> None:
        raise NotImplementedError


class VirtualNetwork:
    """Who listens where, which wires there are, which ways are cut."""

    def __init__(self, scheduler: Scheduler) -> None:
        self.scheduler = scheduler
        self._hosts: dict[tuple[str, int], Host] = {}
        self._wires: dict[Wire, None] = {}
        self._cuts: dict[tuple[str, str], None] = {}
        self._next_connection = 1

    def listen(self, host: Host, address: tuple[str, int]) -> None:
        self._hosts[address] = host

    def stop_listening(self, address: tuple[str, int]) -> None:
        self._hosts.pop(address, None)

    def open(self, opener: Opener, address: tuple[str, int]) -> None:
        """Connect: the opener hears of it after a round trip, whether it worked or not."""

        def arrive() -> None:
            host = self._hosts.get(address)
            if host is None or self.is_cut(opener.name, host.name):
                self.scheduler.at(
                    self.scheduler.now_ms + LATENCY_MS, lambda: opener.on_closed("refused")
                )
                return
            wire = Wire(self, opener, host, ConnectionId(self._next_connection))
            self._next_connection += 1
            self._wires[wire] = None
            host.on_wire(wire)
            self.scheduler.at(self.scheduler.now_ms + LATENCY_MS, lambda: self._opened(wire))

        self.scheduler.at(self.scheduler.now_ms + LATENCY_MS, arrive)

    def _opened(self, wire: Wire) -> None:
        if wire.is_open:
            wire.opener.on_open(wire)

    def forget(self, wire: Wire) -> None:
        self._wires.pop(wire, None)

    def wires_of(self, host: Host) -> list[Wire]:
        return [wire for wire in self._wires if wire.host is host]

    # Cuts

    def cut(self, one: str, other: str) -> None:
        """Let nothing pass between two, either way, until it is mended."""
        self._cuts[min(one, other), max(one, other)] = None

    def mend(self, one: str, other: str) -> None:
        self._cuts.pop((min(one, other), max(one, other)), None)
        for wire in list(self._wires):
            if {wire.opener.name, wire.host.name} == {one, other}:
                wire.mend()

    def is_cut(self, one: str, other: str) -> bool:
        return (min(one, other), max(one, other)) in self._cuts

    def note(self, story: str, frame: bytes) -> None:
        self.scheduler.note(f"{story} {len(frame)} {zlib.crc32(frame):08x}")


def flatten(parts: Sequence[Buffer | FileSlice]) -> bytes:
    """What a transport would put on the wire; slices are given back."""
    pieces: list[bytes] = []
    for part in parts:
        if isinstance(part, FileSlice):
            pieces.append(part.disk.read(part.file, part.position, part.size_bytes))
            part.disk.release(part.file)
        else:
            pieces.append(bytes(part))
    return b"".join(pieces)


class LinkEnd(Opener):
    """A link that a broker opened to a peer."""

    def __init__(self, transport: "VirtualTransport", link: LinkId, name: str) -> None:
        self.transport = transport
        self.link = link
        self.name = name
        self.wire: Wire | None = None
        self.is_given_up = False

    def on_open(self, wire: Wire) -> None:
        if self.is_given_up:
            wire.close_from_opener()
            return
        self.wire = wire
        self.transport.on_link_open(self.link)

    def on_frame(self, frame: bytes) -> None:
        if not self.is_given_up:
            self.transport.on_response(self.link, frame[4:])

    def on_closed(self, reason: str) -> None:
        if not self.is_given_up:
            self.is_given_up = True
            self.transport.on_link_closed(self.link, reason)


class VirtualTransport:
    """The Transport port of one broker on the virtual network."""

    def __init__(self, network: VirtualNetwork, name: str) -> None:
        self.network = network
        self.name = name
        self.wires: dict[ConnectionId, Wire] = {}
        self._links: dict[LinkId, LinkEnd] = {}
        self.on_link_open: Callable[[LinkId], None]
        self.on_response: Callable[[LinkId, bytes], None]
        self.on_link_closed: Callable[[LinkId, str], None]

    def send(self, connection: ConnectionId, parts: Sequence[Buffer | FileSlice]) -> None:
        frame = flatten(parts)
        wire = self.wires.get(connection)
        if wire is not None:
            wire.to_opener(frame)

    def close(self, connection: ConnectionId) -> None:
        wire = self.wires.pop(connection, None)
        if wire is not None:
            wire.close_from_host("closed by the broker")
            wire.host.on_wire_closed(connection)

    def pause_reading(self, connection: ConnectionId) -> None:
        wire = self.wires.get(connection)
        if wire is not None:
            wire.is_paused = True

    def resume_reading(self, connection: ConnectionId) -> None:
        wire = self.wires.get(connection)
        if wire is not None:
            wire.resume()

    def connect(self, link: LinkId, host: str, port: int) -> None:
        end = self._links[link] = LinkEnd(self, link, self.name)
        self.network.open(end, (host, port))

    def send_to_peer(self, link: LinkId, frame: bytes) -> None:
        wire = self._links[link].wire
        assert wire is not None, "a frame on a link that is not open"
        wire.to_host(frame)

    def disconnect(self, link: LinkId) -> None:
        end = self._links.pop(link, None)
        if end is not None:
            end.is_given_up = True
            if end.wire is not None:
                end.wire.close_from_opener()

    def drop_all(self) -> None:
        """The process is gone: every connection of it breaks."""
        for wire in list(self.wires.values()):
            wire.close_from_host("reset by peer")
        self.wires.clear()
        for link in list(self._links):
            self.disconnect(link)
