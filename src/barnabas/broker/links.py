"""Connections to peers: requests out, their answers back by correlation id, time-outs."""

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum

from barnabas.broker.deadlines import Deadline, Deadlines
from barnabas.broker.ports import LinkId, Transport
from barnabas.formats.wire import framing, headers
from barnabas.formats.wire.api_keys import ApiKey
from barnabas.model.errors import DecodeError
from barnabas.model.invariant import invariant

Answered = Callable[[object | None, int], None]
"""Takes the decoded response, or None when the link closed or time ran out."""

PENDING_MAX = 64
"""Requests on one link that may wait for an answer."""


class LinkState(Enum):
    """Where an outgoing connection stands."""

    CONNECTING = "connecting"
    OPEN = "open"
    CLOSED = "closed"


@dataclass(slots=True)
class _Pending:
    api_key: ApiKey
    api_version: int
    then: Answered
    deadline: Deadline
    frame: bytes | None


class Link:
    """One connection to a peer; it is used until it closes and then replaced by its owner."""

    def __init__(
        self, links: "Links", id: LinkId, name: str, host: str, port: int, client_id: str
    ) -> None:
        self._links = links
        self.id = id
        self.name = name
        self.host = host
        self.port = port
        self.client_id = client_id
        self.state = LinkState.CONNECTING
        self._next_correlation_id = 0
        self._pending: dict[int, _Pending] = {}

    def request(
        self,
        api_key: ApiKey,
        api_version: int,
        body: object,
        then: Answered,
        *,
        timeout_ms: int,
        now_ms: int,
    ) -> None:
        """Send a request, at once or as soon as the link is open; `then` is called once."""
        if self.state is LinkState.CLOSED:
            then(None, now_ms)
            return
        invariant(len(self._pending) < PENDING_MAX, f"link {self.name} has too many in flight")
        correlation_id = self._next_correlation_id
        self._next_correlation_id = (correlation_id + 1) & 0x7FFFFFFF
        frame = framing.request_frame(api_key, api_version, correlation_id, self.client_id, body)
        deadline = self._links.deadlines.at(
            now_ms + timeout_ms, lambda now: self.fail("timed out", now)
        )
        is_open = self.state is LinkState.OPEN
        self._pending[correlation_id] = _Pending(
            api_key, api_version, then, deadline, None if is_open else frame
        )
        if is_open:
            self._links.transport.send_to_peer(self.id, frame)

    def note_open(self) -> None:
        """The connection stands: send what waited for it."""
        self.state = LinkState.OPEN
        for pending in self._pending.values():
            if pending.frame is not None:
                self._links.transport.send_to_peer(self.id, pending.frame)
                pending.frame = None

    def note_response(self, frame: bytes, now_ms: int) -> None:
        """Match an answer to its request; an answer that cannot be read closes the link."""
        try:
            correlation_id = headers.read_correlation_id(frame)
            pending = self._pending.pop(correlation_id, None)
            if pending is None:
                raise DecodeError(f"no request with correlation id {correlation_id}")
            pending.deadline.cancel()
            try:
                body = framing.decode_response(pending.api_key, pending.api_version, frame)
            except DecodeError:
                pending.then(None, now_ms)
                raise
        except DecodeError as problem:
            self.fail(f"unreadable answer: {problem}", now_ms)
            return
        pending.then(body, now_ms)

    def fail(self, reason: str, now_ms: int) -> None:
        """Close from our side and tell everyone who waits."""
        if self.state is not LinkState.CLOSED:
            self._links.transport.disconnect(self.id)
            self.note_closed(reason, now_ms)

    def close(self) -> None:
        """Close without telling anyone: the owner has lost interest in the answers."""
        if self.state is not LinkState.CLOSED:
            self._links.transport.disconnect(self.id)
            self.state = LinkState.CLOSED
            self._links.forget(self)
            for pending in self._pending.values():
                pending.deadline.cancel()
            self._pending.clear()

    def note_closed(self, reason: str, now_ms: int) -> None:
        """The connection is gone: whoever waits gets None, in the order of asking."""
        self.state = LinkState.CLOSED
        self.close_reason = reason
        self._links.forget(self)
        waiting = list(self._pending.values())
        self._pending.clear()
        for pending in waiting:
            pending.deadline.cancel()
        for pending in waiting:
            pending.then(None, now_ms)

    close_reason: str = ""
    """Why the link closed, for the story that its owner tells."""


class Links:
    """All links of one broker by their number."""

    def __init__(self, transport: Transport, deadlines: Deadlines) -> None:
        self.transport = transport
        self.deadlines = deadlines
        self._links: dict[LinkId, Link] = {}
        self._next_id = 1

    def open(self, name: str, host: str, port: int, *, client_id: str) -> Link:
        """Start connecting; requests may be handed over at once."""
        link_id = LinkId(self._next_id)
        self._next_id += 1
        link = Link(self, link_id, name, host, port, client_id)
        self._links[link_id] = link
        self.transport.connect(link_id, host, port)
        return link

    def forget(self, link: Link) -> None:
        """Drop a closed link."""
        self._links.pop(link.id, None)

    def on_link_open(self, link_id: LinkId) -> None:
        link = self._links.get(link_id)
        if link is not None:
            link.note_open()

    def on_response(self, link_id: LinkId, frame: bytes, now_ms: int) -> None:
        link = self._links.get(link_id)
        if link is not None:
            link.note_response(frame, now_ms)

    def on_link_closed(self, link_id: LinkId, reason: str, now_ms: int) -> None:
        link = self._links.get(link_id)
        if link is not None:
            link.note_closed(reason, now_ms)

    def close_all(self) -> None:
        """Close every link without telling anyone."""
        for link in list(self._links.values()):
            link.close()
