"""The tree of nodes: conditional writes, all or nothing, and reads.

Every write goes through a draft laid over the nodes. A draft in which nothing was refused is
installed as one transaction; any other is thrown away, so there is nothing to undo.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeVar, assert_never

from barnabas.model.invariant import invariant
from barnabas.model.znode import (
    ANY_VERSION,
    Check,
    Create,
    CreateMode,
    Delete,
    Exists,
    GetChildren,
    GetData,
    Outcome,
    Read,
    SetData,
    Stat,
    StoreError,
    WatchKind,
    Write,
)
from barnabas.zookeeper.journal import (
    ROOT,
    ROOT_NODE,
    Change,
    Node,
    NodeRemoved,
    NodeWritten,
    parent_of,
)
from barnabas.zookeeper.paths import is_valid_path

DATA_BYTES_MAX = 4 * 1024 * 1024
"""The most data one transaction may carry: the jute.maxbuffer that Kafka's clients set."""

_OK = Outcome(StoreError.OK)
Key = TypeVar("Key", str, int)


class NodeEvent(NamedTuple):
    """What happened to one node in a transaction, in the order of its operations."""

    kind: WatchKind
    path: str


@dataclass(frozen=True, slots=True)
class Written:
    """The outcomes of a write; when all are OK also what it changed."""

    outcomes: tuple[Outcome, ...]
    is_applied: bool
    changes: tuple[Change, ...] = ()
    events: tuple[NodeEvent, ...] = ()


def stat_of(node: Node) -> Stat:
    """What ZooKeeper tells of a node; its child version counts creations and removals."""
    return Stat(
        czxid=node.czxid,
        mzxid=node.mzxid,
        ctime_ms=node.ctime_ms,
        mtime_ms=node.mtime_ms,
        version=node.version,
        child_version=2 * node.creations - node.children_count,
        acl_version=0,
        ephemeral_owner=node.ephemeral_owner,
        data_length=len(node.data) if node.data is not None else 0,
        children_count=node.children_count,
        pzxid=node.pzxid,
    )


class Tree:
    """The nodes, who hangs under whom, and which session owns what."""

    def __init__(self, nodes: Iterable[NodeWritten] = (NodeWritten(ROOT, ROOT_NODE),)) -> None:
        self._nodes: dict[str, Node] = {}
        self._children: dict[str, dict[str, None]] = {}
        """Names by parent; a node without children has no entry."""
        self._owned: dict[int, dict[str, None]] = {}
        """Ephemeral paths by session; a session without any has no entry."""
        for path, node in nodes:
            self._install(path, node)
        invariant(ROOT in self._nodes, "a tree without a root")

    def __len__(self) -> int:
        return len(self._nodes)

    def node(self, path: str) -> Node | None:
        return self._nodes.get(path)

    def paths(self) -> tuple[str, ...]:
        """Every path, sorted."""
        return tuple(sorted(self._nodes))

    def ephemerals_of(self, session_id: int) -> tuple[str, ...]:
        """What the session owns, sorted."""
        return tuple(sorted(self._owned.get(session_id, ())))

    def read(self, operation: Read) -> Outcome:
        if isinstance(operation, Exists) and "\0" in operation.path:
            return Outcome(StoreError.BAD_ARGUMENTS)
        node = self._nodes.get(operation.path)
        if node is None:
            return Outcome(StoreError.NO_NODE)
        match operation:
            case GetData():
                return Outcome(StoreError.OK, stat=stat_of(node), data=node.data)
            case Exists():
                return Outcome(StoreError.OK, stat=stat_of(node))
            case GetChildren(path=path):
                names = tuple(sorted(self._children.get(path, ())))
                return Outcome(StoreError.OK, stat=stat_of(node), children=names)
            case _ as never:
                assert_never(never)

    def write(
        self, operations: Sequence[Write], session_id: int, zxid: int, wall_ms: int
    ) -> Written:
        """Do all of the operations or none of them.

        As ZooKeeper answers a refused multi: the operations before the refused one say OK though
        nothing of them stays, the refused one says why, those after it RUNTIME_INCONSISTENCY.
        """
        draft = _Draft(self._nodes, session_id, zxid, wall_ms)
        outcomes: list[Outcome] = []
        size_bytes = sum(_data_bytes(operation) for operation in operations)
        if size_bytes > DATA_BYTES_MAX:
            refused = Outcome(StoreError.MARSHALLING_ERROR)
            return Written((refused,) * len(operations), is_applied=False)
        for operation in operations:
            outcome = draft.attempt(operation)
            if not outcome.is_ok:
                after = len(operations) - len(outcomes) - 1
                skipped = Outcome(StoreError.RUNTIME_INCONSISTENCY)
                refusal = (_OK,) * len(outcomes) + (outcome,) + (skipped,) * after
                return Written(refusal, is_applied=False)
            outcomes.append(outcome)
        return Written(tuple(outcomes), True, self._apply(draft), tuple(draft.events))

    def remove_owned(self, session_id: int, zxid: int, wall_ms: int) -> Written:
        """Remove all ephemeral nodes of a session that ends."""
        deletes = [Delete(path) for path in self.ephemerals_of(session_id)]
        written = self.write(deletes, session_id, zxid, wall_ms)
        invariant(written.is_applied, f"session {session_id:#x} owned what could not be removed")
        return written

    def _apply(self, draft: "_Draft") -> tuple[Change, ...]:
        changes: list[Change] = []
        for path, node in draft.changed.items():
            old = self._nodes.get(path)
            if old is not None and (node is None or node.ephemeral_owner != old.ephemeral_owner):
                _drop(self._owned, old.ephemeral_owner, path)
            if node is not None:
                self._install(path, node)
                changes.append(NodeWritten(path, node))
            elif old is not None:
                del self._nodes[path]
                _drop(self._children, parent_of(path), _name_of(path))
                changes.append(NodeRemoved(path))
        for change in changes:
            if isinstance(change, NodeRemoved):
                is_childless = change.path not in self._children
                invariant(is_childless, f"{change.path} was removed above its children")
        return tuple(changes)

    def _install(self, path: str, node: Node) -> None:
        self._nodes[path] = node
        if path != ROOT:
            self._children.setdefault(parent_of(path), {})[_name_of(path)] = None
        if node.ephemeral_owner:
            self._owned.setdefault(node.ephemeral_owner, {})[path] = None


class _Draft:
    """Changes that may still be thrown away, laid over the nodes of a tree."""

    def __init__(self, nodes: dict[str, Node], session_id: int, zxid: int, wall_ms: int) -> None:
        self._nodes = nodes
        self._session_id = session_id
        self._zxid = zxid
        self._wall_ms = wall_ms
        self.changed: dict[str, Node | None] = {}
        self.events: list[NodeEvent] = []

    def attempt(self, operation: Write) -> Outcome:
        match operation:
            case Create():
                return self._create(operation)
            case SetData():
                return self._set_data(operation)
            case Delete():
                return self._delete(operation)
            case Check():
                return self._check(operation)
            case _ as never:
                assert_never(never)

    def _node(self, path: str) -> Node | None:
        return self.changed[path] if path in self.changed else self._nodes.get(path)

    def _create(self, operation: Create) -> Outcome:
        path = operation.path
        if "/" not in path or "\0" in path:
            return Outcome(StoreError.BAD_ARGUMENTS)
        parent_path = parent_of(path)
        parent = self._node(parent_path)
        if parent is None:
            return Outcome(StoreError.NO_NODE)
        if operation.mode in (CreateMode.PERSISTENT_SEQUENTIAL, CreateMode.EPHEMERAL_SEQUENTIAL):
            path = f"{path}{parent.creations:010d}"
        if not is_valid_path(path):
            return Outcome(StoreError.BAD_ARGUMENTS)
        if self._node(path) is not None:
            return Outcome(StoreError.NODE_EXISTS)
        if parent.ephemeral_owner:
            return Outcome(StoreError.NO_CHILDREN_FOR_EPHEMERALS)
        is_ephemeral = operation.mode in (CreateMode.EPHEMERAL, CreateMode.EPHEMERAL_SEQUENTIAL)
        self.changed[parent_path] = parent._replace(
            creations=parent.creations + 1,
            children_count=parent.children_count + 1,
            pzxid=self._zxid,
        )
        self.changed[path] = Node(
            data=operation.data,
            czxid=self._zxid,
            mzxid=self._zxid,
            pzxid=self._zxid,
            ctime_ms=self._wall_ms,
            mtime_ms=self._wall_ms,
            version=0,
            creations=0,
            ephemeral_owner=self._session_id if is_ephemeral else 0,
            children_count=0,
        )
        self.events.append(NodeEvent(WatchKind.CREATED, path))
        return Outcome(StoreError.OK, path=path)

    def _set_data(self, operation: SetData) -> Outcome:
        if not is_valid_path(operation.path):
            return Outcome(StoreError.BAD_ARGUMENTS)
        node = self._node(operation.path)
        if node is None:
            return Outcome(StoreError.NO_NODE)
        if operation.version not in (ANY_VERSION, node.version):
            return Outcome(StoreError.BAD_VERSION)
        changed = node._replace(
            data=operation.data,
            version=node.version + 1,
            mzxid=self._zxid,
            mtime_ms=self._wall_ms,
        )
        self.changed[operation.path] = changed
        self.events.append(NodeEvent(WatchKind.DATA_CHANGED, operation.path))
        return Outcome(StoreError.OK, stat=stat_of(changed))

    def _delete(self, operation: Delete) -> Outcome:
        path = operation.path
        if "/" not in path or "\0" in path or path == ROOT:
            return Outcome(StoreError.BAD_ARGUMENTS)
        parent_path = parent_of(path)
        parent = self._node(parent_path)
        node = self._node(path)
        if parent is None or node is None:
            return Outcome(StoreError.NO_NODE)
        if operation.version not in (ANY_VERSION, node.version):
            return Outcome(StoreError.BAD_VERSION)
        if node.children_count > 0:
            return Outcome(StoreError.NOT_EMPTY)
        self.changed[parent_path] = parent._replace(
            children_count=parent.children_count - 1, pzxid=self._zxid
        )
        self.changed[path] = None
        self.events.append(NodeEvent(WatchKind.DELETED, path))
        return _OK

    def _check(self, operation: Check) -> Outcome:
        if not is_valid_path(operation.path):
            return Outcome(StoreError.BAD_ARGUMENTS)
        node = self._node(operation.path)
        if node is None:
            return Outcome(StoreError.NO_NODE)
        if operation.version not in (ANY_VERSION, node.version):
            return Outcome(StoreError.BAD_VERSION)
        return _OK


def _data_bytes(operation: Write) -> int:
    if isinstance(operation, Create | SetData) and operation.data is not None:
        return len(operation.data)
    return 0


def _name_of(path: str) -> str:
    return path[path.rfind("/") + 1 :]


def _drop(groups: dict[Key, dict[str, None]], key: Key, name: str) -> None:
    """Take `name` out of its group, and the group away with its last name."""
    group = groups.get(key)
    if group is not None:
        group.pop(name, None)
        if not group:
            del groups[key]
