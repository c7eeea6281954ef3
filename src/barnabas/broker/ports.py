"""What a broker asks of the world around it, and the inputs it takes from it."""

from collections.abc import Sequence
from typing import NewType, Protocol

from barnabas.model.znode import Operation, StoreEvent
from barnabas.storage.disk import Buffer, DiskJob, FileSlice

ConnectionId = NewType("ConnectionId", int)
"""An accepted connection; numbers are not reused in the life of a broker."""

LinkId = NewType("LinkId", int)
"""A connection that this broker opened to a peer; numbers are not reused."""


class Transport(Protocol):
    """Bytes out. Nothing here waits; what cannot be sent at once is kept by the transport."""

    def send(self, connection: ConnectionId, parts: Sequence[Buffer | FileSlice]) -> None:
        """Send the parts of one framed answer in order; slices are released once sent."""
        ...

    def close(self, connection: ConnectionId) -> None:
        """Close after what was already sent; `on_closed` follows."""
        ...

    def pause_reading(self, connection: ConnectionId) -> None:
        """Take no more requests from it until `resume_reading`: its limit in flight is reached."""
        ...

    def resume_reading(self, connection: ConnectionId) -> None: ...

    def connect(self, link: LinkId, host: str, port: int) -> None:
        """Open a link; `on_link_open` or `on_link_closed` follows."""
        ...

    def send_to_peer(self, link: LinkId, frame: bytes) -> None:
        """Send one framed request over an open link."""
        ...

    def disconnect(self, link: LinkId) -> None:
        """Close a link; no `on_link_closed` follows."""
        ...


class MetadataStore(Protocol):
    """A session with ZooKeeper's semantics; answers come in the order of what was submitted."""

    def submit(self, operations: Sequence[Operation], *, is_multi: bool = False) -> int:
        """Hand over operations; the ticket that their one `StoreAnswer` will carry.

        With `is_multi` they are writes and all or nothing; otherwise each stands alone.
        """
        ...

    def reconnect(self) -> None:
        """Ask for a new session after EXPIRED; a `SessionChange` follows."""
        ...


class WallClock(Protocol):
    """Time of day, for timestamps alone; every timeout uses the `now_ms` of the inputs."""

    def epoch_ms(self) -> int: ...


class BrokerInputs(Protocol):
    """What the world may tell a broker; `now_ms` is monotonic and given with each input."""

    def on_connection(
        self, connection: ConnectionId, listener: str, peer_host: str, now_ms: int
    ) -> None: ...

    def on_request(
        self, connection: ConnectionId, data: bytes, start: int, end: int, now_ms: int
    ) -> None:
        """One frame, without its length, at data[start:end]; data may hold several frames."""
        ...

    def on_frame_refused(self, connection: ConnectionId, reason: str, now_ms: int) -> None:
        """What arrives on it cannot be a frame, or takes too long to become one."""
        ...

    def on_turned_away(self, count: int, now_ms: int) -> None:
        """So many connections more were closed at once, since there are too many already."""
        ...

    def on_closed(self, connection: ConnectionId, now_ms: int, reason: str) -> None: ...

    def on_link_open(self, link: LinkId, now_ms: int) -> None: ...

    def on_response(self, link: LinkId, frame: bytes, now_ms: int) -> None: ...

    def on_link_closed(self, link: LinkId, reason: str, now_ms: int) -> None: ...

    def on_disk_done(self, job: DiskJob, now_ms: int) -> None: ...

    def on_store(self, event: StoreEvent, now_ms: int) -> None: ...

    def end_turn(self, now_ms: int) -> None:
        """All that arrived in this turn of the loop was handed over: write, then answer."""
        ...

    def tick(self, now_ms: int) -> None: ...

    def next_deadline_ms(self) -> int | None:
        """When `tick` is wanted; None for never."""
        ...
