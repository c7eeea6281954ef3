"""What must be durable of each transaction, and the whole that it adds up to."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

ROOT = "/"


class Node(NamedTuple):
    """One node as it is kept; `Stat` is derived from it.

    `creations` counts the children ever created and never falls: it numbers sequential names.
    """

    data: bytes | None
    czxid: int
    mzxid: int
    pzxid: int
    ctime_ms: int
    mtime_ms: int
    version: int
    creations: int
    ephemeral_owner: int
    children_count: int


ROOT_NODE = Node(b"", 0, 0, 0, 0, 0, 0, 0, 0, 0)
"""The root as it is before the first transaction."""


class NodeWritten(NamedTuple):
    """A node that was created or changed, with all that is known about it now."""

    path: str
    node: Node


class NodeRemoved(NamedTuple):
    """A node that is no longer there."""

    path: str


class SessionOpened(NamedTuple):
    """A session that may own ephemeral nodes from now on."""

    session_id: int
    timeout_ms: int


class SessionClosed(NamedTuple):
    """A session that is over; the same transaction removes what it owned."""

    session_id: int


Change = NodeWritten | NodeRemoved | SessionOpened | SessionClosed


@dataclass(frozen=True, slots=True)
class Transaction:
    """All changes of one zxid: durable together or not at all."""

    zxid: int
    changes: tuple[Change, ...]


@dataclass(frozen=True, slots=True)
class Image:
    """What all transactions up to `last_zxid` add up to."""

    last_zxid: int = 0
    last_session_id: int = 0
    sessions: tuple[SessionOpened, ...] = ()
    nodes: tuple[NodeWritten, ...] = (NodeWritten(ROOT, ROOT_NODE),)


class Journal(Protocol):
    """Keeps transactions in the order given; an answer leaves once its transaction is durable."""

    def append(self, transactions: Sequence[Transaction]) -> None:
        """Take the transactions over; the owner is told when their last zxid is durable."""
        ...


def parent_of(path: str) -> str:
    """The path of the node under which `path` hangs; the root hangs under itself."""
    return path[: path.rfind("/")] or ROOT


def find_damage(image: Image) -> str | None:
    """What contradicts itself in an image read back from outside; None when it is sound."""
    nodes = dict(image.nodes)
    if len(nodes) != len(image.nodes):
        return "a path stands twice"
    if ROOT not in nodes:
        return "the root node is missing"
    open_sessions = {session.session_id for session in image.sessions}
    children_counts = dict.fromkeys(nodes, 0)
    for path, node in image.nodes:
        if max(node.czxid, node.mzxid, node.pzxid) > image.last_zxid:
            return f"{path} was changed after the last transaction {image.last_zxid}"
        if node.ephemeral_owner and node.ephemeral_owner not in open_sessions:
            return f"{path} belongs to session {node.ephemeral_owner:#x}, which is not open"
        if path == ROOT:
            continue
        parent = parent_of(path)
        if parent not in nodes:
            return f"{path} has no parent"
        if nodes[parent].ephemeral_owner:
            return f"{path} hangs under an ephemeral node"
        children_counts[parent] += 1
    for path, count in children_counts.items():
        if nodes[path].children_count != count:
            return f"{path} has {count} children where {nodes[path].children_count} are noted"
    if any(session.session_id > image.last_session_id for session in image.sessions):
        return f"a session is younger than the last one given, {image.last_session_id:#x}"
    return None
