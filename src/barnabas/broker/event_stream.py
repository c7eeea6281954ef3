"""The one stream of what happened: log lines, journal, metrics and console are its readers."""

from collections.abc import Callable
from dataclasses import dataclass

Event = object
"""A frozen dataclass in the past tense; each part of the broker defines its own."""

Reader = Callable[[Event, int], None]


@dataclass(frozen=True, slots=True)
class ControlRequestBegan:
    """A control request was taken up on this broker, before any partition was touched (R23)."""

    api: str
    controller_id: int
    controller_epoch: int
    correlation_id: int
    partitions: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ControlRequestEnded:
    """A control request was dealt with: the error of every partition by name (R23)."""

    api: str
    controller_id: int
    controller_epoch: int
    correlation_id: int
    error: str
    partition_errors: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class ConnectionRefused:
    """A connection was closed for what it sent or for what it would have cost."""

    connection: int
    peer: str
    reason: str


@dataclass(frozen=True, slots=True)
class ConnectionsTurnedAway:
    """Connections were accepted and closed at once: max.connections or its kin are reached."""

    count: int


@dataclass(frozen=True, slots=True)
class RequestFailed:
    """A bug met while a request was handled; its connection was closed, nothing else."""

    connection: int
    api_key: int
    api_version: int
    story: str
    bug: Exception


@dataclass(frozen=True, slots=True)
class ListenersWanted:
    """The logs are open: connections may be accepted."""


@dataclass(frozen=True, slots=True)
class BrokerStarted:
    """The broker is registered and takes requests; `broker_id` may have been generated."""

    broker_id: int


@dataclass(frozen=True, slots=True)
class BrokerStopped:
    """A clean stop is complete: nothing is left to write, the process may end."""


@dataclass(frozen=True, slots=True)
class BrokerFailed:
    """The broker cannot go on; the process ends without a clean stop."""

    error: Exception


class EventStream:
    """Hands every event to every reader, in order; a reader decides what to keep."""

    __slots__ = ("_readers",)

    def __init__(self) -> None:
        self._readers: list[Reader] = []

    def subscribe(self, reader: Reader) -> None:
        """Let `reader(event, now_ms)` see everything from now on."""
        self._readers.append(reader)

    def publish(self, event: Event, now_ms: int) -> None:
        """Tell all readers."""
        for reader in self._readers:
            reader(event, now_ms)
