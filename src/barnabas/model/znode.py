"""ZooKeeper's words: the stat of a node, operations and their outcomes, watches, sessions."""

from dataclasses import dataclass
from enum import Enum, IntEnum
from typing import NamedTuple

ANY_VERSION = -1


class Stat(NamedTuple):
    """What ZooKeeper tells about a node; `czxid` of a registration is the broker epoch."""

    czxid: int
    mzxid: int
    ctime_ms: int
    mtime_ms: int
    version: int
    child_version: int
    acl_version: int
    ephemeral_owner: int
    data_length: int
    children_count: int
    pzxid: int


class StoreError(IntEnum):
    """Why an operation was refused; ZooKeeper's own numbers."""

    OK = 0
    RUNTIME_INCONSISTENCY = -2
    CONNECTION_LOSS = -4
    MARSHALLING_ERROR = -5
    BAD_ARGUMENTS = -8
    NO_NODE = -101
    NO_AUTH = -102
    BAD_VERSION = -103
    NO_CHILDREN_FOR_EPHEMERALS = -108
    NODE_EXISTS = -110
    NOT_EMPTY = -111
    SESSION_EXPIRED = -112
    THROTTLED_OP = -127


class CreateMode(Enum):
    """How long a created node lives and whether its name is completed by a number."""

    PERSISTENT = 0
    EPHEMERAL = 1
    PERSISTENT_SEQUENTIAL = 2
    EPHEMERAL_SEQUENTIAL = 3


@dataclass(frozen=True, slots=True)
class Create:
    """Make a node; refused when it exists or its parent does not."""

    path: str
    data: bytes | None = None
    mode: CreateMode = CreateMode.PERSISTENT


@dataclass(frozen=True, slots=True)
class SetData:
    """Replace a node's data when its version is the expected one."""

    path: str
    data: bytes | None
    version: int = ANY_VERSION


@dataclass(frozen=True, slots=True)
class Delete:
    """Remove a childless node when its version is the expected one."""

    path: str
    version: int = ANY_VERSION


@dataclass(frozen=True, slots=True)
class Check:
    """Hold a multi to the expected version of a node."""

    path: str
    version: int


@dataclass(frozen=True, slots=True)
class GetData:
    """Read data and stat; with `watch`, be told of the next change or removal."""

    path: str
    watch: bool = False


@dataclass(frozen=True, slots=True)
class Exists:
    """Read the stat; with `watch`, be told of creation, change or removal."""

    path: str
    watch: bool = False


@dataclass(frozen=True, slots=True)
class GetChildren:
    """Read the names of children; with `watch`, be told of the next change among them."""

    path: str
    watch: bool = False


Write = Create | SetData | Delete | Check
Read = GetData | Exists | GetChildren
Operation = Write | Read


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one operation; only the fields of its kind are filled."""

    error: StoreError
    path: str = ""
    """The path created, with its number when sequential."""
    stat: Stat | None = None
    data: bytes | None = None
    children: tuple[str, ...] = ()

    @property
    def is_ok(self) -> bool:
        return self.error is StoreError.OK


class WatchKind(IntEnum):
    """What a watch saw; ZooKeeper's own numbers."""

    CREATED = 1
    DELETED = 2
    DATA_CHANGED = 3
    CHILDREN_CHANGED = 4


class WatchEvent(NamedTuple):
    """A one-shot watch that fired: the node and what happened, not what it is now."""

    kind: WatchKind
    path: str


class SessionState(Enum):
    """How the link to the store stands."""

    CONNECTED = "connected"
    DISCONNECTED = "disconnected"
    EXPIRED = "expired"


@dataclass(frozen=True, slots=True)
class StoreAnswer:
    """The outcomes of one submitted request, in the order of its operations.

    A multi is all or nothing. When one of its operations is refused, its outcome carries the
    reason, the ones after it RUNTIME_INCONSISTENCY and the ones before it OK, as ZooKeeper answers,
    though nothing of them stays: ask `is_ok` of the answer before looking at an outcome.
    """

    ticket: int
    outcomes: tuple[Outcome, ...]

    @property
    def is_ok(self) -> bool:
        return all(outcome.is_ok for outcome in self.outcomes)


@dataclass(frozen=True, slots=True)
class SessionChange:
    """The session was established, lost for now, or lost for good."""

    state: SessionState
    session_id: int


StoreEvent = StoreAnswer | WatchEvent | SessionChange
