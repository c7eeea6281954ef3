"""The whole of ZooKeeper's semantics as one machine: a request in, what follows from it out.

The machine holds tree, sessions and watches together. It answers at once; whoever drives it
makes the transactions durable before anything of what it said leaves.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

from barnabas.model.invariant import invariant
from barnabas.model.znode import (
    Check,
    Create,
    Delete,
    Exists,
    GetChildren,
    GetData,
    Operation,
    Outcome,
    Read,
    SetData,
    StoreError,
    Write,
)
from barnabas.zookeeper.journal import (
    Change,
    Image,
    NodeWritten,
    SessionClosed,
    SessionOpened,
    Transaction,
    find_damage,
)
from barnabas.zookeeper.sessions import Sessions
from barnabas.zookeeper.tree import NodeEvent, Tree, Written
from barnabas.zookeeper.watches import FiredWatch, Watches

Reading = GetData | Exists | GetChildren
Writing = Create | SetData | Delete | Check


@dataclass(slots=True)
class Applied:
    """What follows from one request.

    The fired watches are told before the outcomes; a transaction is made durable before either.
    """

    outcomes: tuple[Outcome, ...] = ()
    fired: list[FiredWatch] = field(default_factory=list[FiredWatch])
    transactions: list[Transaction] = field(default_factory=list[Transaction])


@dataclass(frozen=True, slots=True)
class Opened:
    """A new session and the transaction that makes it known."""

    session_id: int
    transaction: Transaction


class ZooKeeperMachine:
    """One replica of the state that ZooKeeper keeps, applied in the order of requests."""

    def __init__(self, image: Image | None = None, now_ms: int = 0) -> None:
        image = image if image is not None else Image()
        damage = find_damage(image)
        invariant(damage is None, f"restored from a damaged image: {damage}")
        self._last_zxid = image.last_zxid
        self._tree = Tree(image.nodes)
        self._sessions = Sessions(image.last_session_id, image.sessions, now_ms)
        self._watches = Watches()

    @property
    def last_zxid(self) -> int:
        return self._last_zxid

    @property
    def tree(self) -> Tree:
        """The nodes, to be looked at."""
        return self._tree

    @property
    def sessions(self) -> Sessions:
        """The sessions, to be looked at."""
        return self._sessions

    def image(self) -> Image:
        """All that would have to be durable now."""
        nodes: list[NodeWritten] = []
        for path in self._tree.paths():
            node = self._tree.node(path)
            invariant(node is not None, f"{path} is listed and not there")
            if node is not None:
                nodes.append(NodeWritten(path, node))
        open_sessions = tuple(
            SessionOpened(session_id, self._sessions.timeout_ms(session_id))
            for session_id in self._sessions.open_ids()
        )
        last_session_id = self._sessions.last_session_id
        return Image(self._last_zxid, last_session_id, open_sessions, tuple(nodes))

    def open_session(self, timeout_ms: int, now_ms: int) -> Opened | None:
        """Begin a session; None when there are too many."""
        if self._sessions.is_full:
            return None
        session_id = self._sessions.open(timeout_ms, now_ms)
        return Opened(session_id, self._commit((SessionOpened(session_id, timeout_ms),)))

    def touch(self, session_id: int, now_ms: int) -> bool:
        """The session was heard of; False when it is over."""
        self._sessions.touch(session_id, now_ms)
        return session_id in self._sessions

    def close_session(self, session_id: int, wall_ms: int) -> Applied:
        """End a session: its watches are dropped and its ephemeral nodes go in one transaction."""
        applied = Applied()
        if session_id not in self._sessions:
            applied.outcomes = (Outcome(StoreError.SESSION_EXPIRED),)
            return applied
        self._sessions.close(session_id)
        self._watches.forget_session(session_id)
        written = self._tree.remove_owned(session_id, self._last_zxid + 1, wall_ms)
        changes = (*written.changes, SessionClosed(session_id))
        applied.transactions.append(self._commit(changes))
        applied.fired.extend(self._fire(written.events))
        applied.outcomes = (Outcome(StoreError.OK),)
        return applied

    def expire_sessions(self, now_ms: int, wall_ms: int) -> list[tuple[int, Applied]]:
        """End the sessions that were silent for too long, each with what follows from it."""
        overdue = self._sessions.overdue(now_ms)
        return [(session_id, self.close_session(session_id, wall_ms)) for session_id in overdue]

    def apply(
        self,
        session_id: int,
        operations: Sequence[Operation],
        *,
        is_multi: bool,
        now_ms: int,
        wall_ms: int,
    ) -> Applied:
        """Do what a session asks: all or nothing in a multi, else each operation for itself."""
        applied = Applied()
        if not self.touch(session_id, now_ms):
            applied.outcomes = (Outcome(StoreError.SESSION_EXPIRED),) * len(operations)
        elif is_multi:
            applied.outcomes = self._write(session_id, _writes(operations), wall_ms, applied)
        else:
            outcomes: list[Outcome] = []
            for operation in operations:
                if isinstance(operation, Reading):
                    outcomes.append(self._read(session_id, operation))
                else:
                    outcomes.extend(self._write(session_id, (operation,), wall_ms, applied))
            applied.outcomes = tuple(outcomes)
        return applied

    def _read(self, session_id: int, operation: Read) -> Outcome:
        if operation.watch and self._watches.is_full:
            return Outcome(StoreError.THROTTLED_OP)
        outcome = self._tree.read(operation)
        if not operation.watch:
            return outcome
        awaits_creation = isinstance(operation, Exists) and outcome.error is StoreError.NO_NODE
        if outcome.is_ok and isinstance(operation, GetChildren):
            self._watches.watch_children(session_id, operation.path)
        elif outcome.is_ok or awaits_creation:
            self._watches.watch_data(session_id, operation.path)
        return outcome

    def _write(
        self, session_id: int, operations: Sequence[Write], wall_ms: int, applied: Applied
    ) -> tuple[Outcome, ...]:
        written = self._tree.write(operations, session_id, self._last_zxid + 1, wall_ms)
        if _is_change(written):
            applied.transactions.append(self._commit(written.changes))
            applied.fired.extend(self._fire(written.events))
        return written.outcomes

    def _commit(self, changes: tuple[Change, ...]) -> Transaction:
        self._last_zxid += 1
        return Transaction(self._last_zxid, changes)

    def _fire(self, events: Sequence[NodeEvent]) -> list[FiredWatch]:
        fired: list[FiredWatch] = []
        for event in events:
            fired.extend(self._watches.fire(event.kind, event.path))
        return fired


def _is_change(written: Written) -> bool:
    """Whether there is anything to keep: a multi of checks changes nothing."""
    return written.is_applied and bool(written.events)


def _writes(operations: Sequence[Operation]) -> list[Write]:
    writes = [operation for operation in operations if isinstance(operation, Writing)]
    invariant(len(writes) == len(operations), "a multi that holds a read")
    return writes
