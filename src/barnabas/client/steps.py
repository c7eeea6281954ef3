"""What an operation asks of whoever drives it: requests to send, time to pass."""

from collections.abc import Callable, Generator
from enum import Enum
from typing import NamedTuple, TypeVar

from barnabas.formats.wire.api_keys import ApiKey
from barnabas.formats.wire.catalog import Message

T = TypeVar("T")


class Address(NamedTuple):
    """Where a broker listens, as somebody told us."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


class Request(NamedTuple):
    """One request; its body is built when the broker has said which versions it takes."""

    address: Address
    api_key: ApiKey
    build: Callable[[int], Message]
    """Takes the version that will be used."""
    timeout_ms: int
    max_version: int | None = None
    """The newest version that `build` knows, where that is not the newest of the schema."""
    is_answered: bool = True
    """False for a produce with acks=0."""


class Response(NamedTuple):
    """An answer; None as its body where none was to come."""

    version: int
    body: Message


class FailureKind(Enum):
    """Why there is no answer."""

    NOT_CONNECTED = "not connected"
    """Nothing was sent."""
    LOST = "connection lost"
    """It may have been carried out."""
    TIMED_OUT = "timed out"
    """It may have been carried out."""
    UNREADABLE = "not Kafka's protocol"
    UNSUPPORTED = "not supported by the broker"
    """Nothing was sent: no version is known to both sides."""


class Failure(NamedTuple):
    """No answer, and why."""

    kind: FailureKind
    reason: str


Answer = Response | Failure


class Ask(NamedTuple):
    """Send these requests, all at once, and answer when each has its answer."""

    requests: tuple[Request, ...]


class Pause(NamedTuple):
    """Let time pass."""

    delay_ms: int


class Outcome(NamedTuple):
    """What came of a step, answers in the order of the requests, and what time it is."""

    now_ms: int
    answers: tuple[Answer, ...] = ()


Operation = Generator[Ask | Pause, Outcome, T]
"""To be driven: each step yielded is carried out and its outcome sent back."""
