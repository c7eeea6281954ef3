"""What every client is asked to do."""

from collections.abc import Sequence
from typing import NamedTuple, Protocol


class Sent(NamedTuple):
    """A record handed to a client."""

    key: bytes
    value: bytes
    timestamp_ms: int


class Read(NamedTuple):
    """A record that a client gave back."""

    offset: int
    key: bytes
    value: bytes


class Client(Protocol):
    """One client library or program, working on partition 0 of a topic."""

    name: str
    can_create_topics: bool
    can_read_by_time: bool
    can_set_timestamps: bool

    def create_topic(self, bootstrap: str, topic: str) -> None:
        """Make a topic of one partition."""
        ...

    def produce(
        self, bootstrap: str, topic: str, records: Sequence[Sent], codec: str, acks: str
    ) -> None:
        """Send the records in order and wait for what `acks` promises."""
        ...

    def read_from_start(self, bootstrap: str, topic: str, count: int) -> list[Read]:
        """The first `count` records."""
        ...

    def read_from_offset(self, bootstrap: str, topic: str, offset: int, count: int) -> list[Read]:
        """`count` records from an offset on."""
        ...

    def read_from_time(
        self, bootstrap: str, topic: str, timestamp_ms: int, count: int
    ) -> list[Read]:
        """`count` records from the first at or after a timestamp on."""
        ...
