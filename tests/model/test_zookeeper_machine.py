"""The machine against a model that knows no drafts, no indexes and no undoing."""

import copy
from dataclasses import dataclass, field

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from barnabas.model.znode import (
    Check,
    Create,
    CreateMode,
    Delete,
    Exists,
    GetChildren,
    GetData,
    Operation,
    Outcome,
    SetData,
    StoreError,
    WatchEvent,
    WatchKind,
    Write,
)
from barnabas.zookeeper.journal import (
    Image,
    NodeRemoved,
    NodeWritten,
    SessionClosed,
    SessionOpened,
    Transaction,
    find_damage,
)
from barnabas.zookeeper.machine import Applied, ZooKeeperMachine
from barnabas.zookeeper.watches import FiredWatch

TIMEOUT_MS = 1000

PATHS = ["/a", "/a/c", "/a/c/e"]
paths = st.sampled_from(PATHS)
versions = st.sampled_from([-1, -1, 0, 1])
data = st.sampled_from([None, b"", b"x"])
writes = st.one_of(
    st.builds(Create, paths, data, st.sampled_from(CreateMode)),
    st.builds(Create, paths, data),
    st.builds(SetData, paths, data, versions),
    st.builds(Delete, paths, versions),
)
reads = st.one_of(
    st.builds(GetData, paths, st.booleans()),
    st.builds(Exists, paths, st.booleans()),
    st.builds(GetChildren, paths, st.booleans()),
)


@dataclass
class Entry:
    """A node of the model."""

    data: bytes | None = None
    version: int = 0
    created: int = 0
    removed: int = 0
    owner: int = 0
    czxid: int = 0
    mzxid: int = 0
    pzxid: int = 0


@dataclass
class Model:
    """What ZooKeeper's documentation promises, as plainly as can be said."""

    nodes: dict[str, Entry] = field(default_factory=lambda: {"/": Entry(b"")})
    watches: set[tuple[int, bool, str]] = field(default_factory=set)
    """Session, whether of children, path."""

    def children(self, path: str) -> list[str]:
        prefix = path.rstrip("/") + "/"
        return sorted(
            other.removeprefix(prefix)
            for other in self.nodes
            if other != "/" and other.startswith(prefix) and "/" not in other[len(prefix) :]
        )

    def write(
        self, operation: Write, session: int, zxid: int
    ) -> tuple[StoreError, str, list[tuple[WatchKind, str]]]:
        """The error, the path created, and what happened to which node."""
        path, parent = operation.path, operation.path.rpartition("/")[0] or "/"
        if isinstance(operation, Create):
            if parent not in self.nodes:
                return StoreError.NO_NODE, "", []
            above = self.nodes[parent]
            if operation.mode.name.endswith("SEQUENTIAL"):
                path += f"{above.created:010d}"
            if path in self.nodes:
                return StoreError.NODE_EXISTS, "", []
            if above.owner:
                return StoreError.NO_CHILDREN_FOR_EPHEMERALS, "", []
            owner = session if operation.mode.name.startswith("EPHEMERAL") else 0
            self.nodes[path] = Entry(
                operation.data, owner=owner, czxid=zxid, mzxid=zxid, pzxid=zxid
            )
            above.created += 1
            above.pzxid = zxid
            return StoreError.OK, path, [(WatchKind.CREATED, path)]
        if path not in self.nodes:
            return StoreError.NO_NODE, "", []
        node = self.nodes[path]
        if operation.version not in (-1, node.version):
            return StoreError.BAD_VERSION, "", []
        if isinstance(operation, SetData):
            node.data, node.version, node.mzxid = operation.data, node.version + 1, zxid
            return StoreError.OK, "", [(WatchKind.DATA_CHANGED, path)]
        if isinstance(operation, Delete):
            if self.children(path):
                return StoreError.NOT_EMPTY, "", []
            del self.nodes[path]
            self.nodes[parent].removed += 1
            self.nodes[parent].pzxid = zxid
            return StoreError.OK, "", [(WatchKind.DELETED, path)]
        return StoreError.OK, "", []

    def fire(self, happened: list[tuple[WatchKind, str]]) -> set[FiredWatch]:
        """Who is told, in any order."""
        fired: set[FiredWatch] = set()
        for kind, path in happened:
            seen = {(False, path): WatchEvent(kind, path)}
            if kind is WatchKind.DELETED:
                seen[True, path] = WatchEvent(kind, path)
            if kind is not WatchKind.DATA_CHANGED:
                parent = path.rpartition("/")[0] or "/"
                seen[True, parent] = WatchEvent(WatchKind.CHILDREN_CHANGED, parent)
            for watch in sorted(self.watches):
                if watch[1:] in seen:
                    self.watches.remove(watch)
                    fired.add(FiredWatch(watch[0], seen[watch[1], watch[2]]))
        return fired


class MachineAgainstModel(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.machine = ZooKeeperMachine()
        self.model = Model()
        self.kept = Image()
        self.now_ms = 0
        self.deadlines: dict[int, int] = {}
        for _ in range(2):
            self.open_session()

    def keep(self, transactions: list[Transaction]) -> None:
        """Fold transactions into an image as a journal would."""
        for transaction in transactions:
            assert transaction.zxid == self.kept.last_zxid + 1
            nodes = dict(self.kept.nodes)
            sessions = {session.session_id: session for session in self.kept.sessions}
            last_session_id = self.kept.last_session_id
            for change in transaction.changes:
                match change:
                    case NodeWritten(path, node):
                        nodes[path] = node
                    case NodeRemoved(path):
                        nodes.pop(path, None)
                    case SessionOpened(session_id):
                        sessions[session_id] = change
                        last_session_id = session_id
                    case SessionClosed(session_id):
                        del sessions[session_id]
            written = tuple(NodeWritten(path, node) for path, node in sorted(nodes.items()))
            self.kept = Image(transaction.zxid, last_session_id, tuple(sessions.values()), written)

    def pick(self, number: int) -> int:
        return sorted(self.deadlines)[number % len(self.deadlines)]

    def apply(self, session: int, operations: list[Operation], *, is_multi: bool) -> Applied:
        applied = self.machine.apply(
            session, operations, is_multi=is_multi, now_ms=self.now_ms, wall_ms=self.now_ms
        )
        self.deadlines[session] = self.now_ms + TIMEOUT_MS
        self.keep(applied.transactions)
        return applied

    @rule()
    def open_session(self) -> None:
        opened = self.machine.open_session(TIMEOUT_MS, self.now_ms)
        assert opened is not None
        assert opened.session_id not in self.deadlines
        self.keep([opened.transaction])
        self.deadlines[opened.session_id] = self.now_ms + TIMEOUT_MS

    @rule(
        who=st.integers(0, 9),
        operations=st.lists(st.one_of(writes, st.builds(Check, paths, versions)), max_size=4),
    )
    def multi(self, who: int, operations: list[Operation]) -> None:
        session = self.pick(who)
        attempt = copy.deepcopy(self.model)
        happened: list[tuple[WatchKind, str]] = []
        expected: list[tuple[StoreError, str]] = []
        zxid = self.machine.last_zxid + 1
        for operation in operations:
            assert isinstance(operation, Create | SetData | Delete | Check)
            error, path, events = attempt.write(operation, session, zxid)
            expected.append((error, path))
            happened += events
            if error is not StoreError.OK:
                before = [(StoreError.OK, "")] * (len(expected) - 1)
                after = len(operations) - len(expected)
                missed = [(StoreError.RUNTIME_INCONSISTENCY, "")] * after
                expected = [*before, (error, ""), *missed]
                happened = []
                attempt = self.model
                break
        self.model = attempt
        applied = self.apply(session, operations, is_multi=True)
        assert [(outcome.error, outcome.path) for outcome in applied.outcomes] == expected
        assert set(applied.fired) == self.model.fire(happened)
        assert len(applied.fired) == len(set(applied.fired))

    @rule(
        who=st.integers(0, 9), operations=st.lists(st.one_of(writes, reads), min_size=1, max_size=3)
    )
    def one_by_one(self, who: int, operations: list[Operation]) -> None:
        session = self.pick(who)
        zxid = self.machine.last_zxid
        applied = self.apply(session, operations, is_multi=False)
        expected_fired: set[FiredWatch] = set()
        for operation, outcome in zip(operations, applied.outcomes, strict=True):
            if isinstance(operation, GetData | Exists | GetChildren):
                self.check_read(session, operation, outcome)
                continue
            assert isinstance(operation, Create | SetData | Delete)
            attempt = copy.deepcopy(self.model)
            error, path, events = attempt.write(operation, session, zxid + 1)
            assert (outcome.error, outcome.path) == (error, path)
            if error is StoreError.OK:
                self.model, zxid = attempt, zxid + 1
                expected_fired |= self.model.fire(events)
        assert set(applied.fired) == expected_fired

    def check_read(
        self, session: int, operation: GetData | Exists | GetChildren, outcome: Outcome
    ) -> None:
        node = self.model.nodes.get(operation.path)
        if operation.watch and (node is not None or isinstance(operation, Exists)):
            of_children = isinstance(operation, GetChildren)
            self.model.watches.add((session, of_children, operation.path))
        if node is None:
            assert outcome == Outcome(StoreError.NO_NODE)
            return
        assert outcome.stat is not None
        found = outcome.stat
        names = self.model.children(operation.path)
        assert found[:2] == (node.czxid, node.mzxid)
        assert found[4:] == (
            *(node.version, node.created + node.removed, 0, node.owner),
            *(len(node.data or b""), len(names), node.pzxid),
        )
        if isinstance(operation, GetData):
            assert outcome.data == node.data
        if isinstance(operation, GetChildren):
            assert list(outcome.children) == names

    @rule(who=st.integers(0, 9))
    def close_session(self, who: int) -> None:
        session = self.pick(who)
        zxid = self.machine.last_zxid + 1
        applied = self.machine.close_session(session, self.now_ms)
        self.keep(applied.transactions)
        self.check_gone(session, zxid, applied)

    def check_gone(self, session: int, zxid: int, applied: Applied) -> None:
        del self.deadlines[session]
        self.model.watches = {watch for watch in self.model.watches if watch[0] != session}
        happened: list[tuple[WatchKind, str]] = []
        for path in sorted(self.model.nodes):
            if self.model.nodes[path].owner == session:
                happened += self.model.write(Delete(path), session, zxid)[2]
        assert set(applied.fired) == self.model.fire(happened)
        assert len(applied.transactions) == 1
        late = self.machine.apply(
            session, [Create("/late")], is_multi=False, now_ms=self.now_ms, wall_ms=0
        )
        assert late.outcomes == (Outcome(StoreError.SESSION_EXPIRED),)
        if not self.deadlines:
            self.open_session()

    @rule(elapsed_ms=st.integers(1, 300))
    def time_passes(self, elapsed_ms: int) -> None:
        self.now_ms += elapsed_ms
        zxid = self.machine.last_zxid
        assert self.machine.sessions.next_deadline_ms() == min(self.deadlines.values())
        due = sorted(self.deadlines, key=lambda session: (self.deadlines[session], session))
        due = [session for session in due if self.deadlines[session] <= self.now_ms]
        expired = self.machine.expire_sessions(self.now_ms, self.now_ms)
        assert [session for session, _ in expired] == due
        for session, applied in expired:
            zxid += 1
            self.keep(applied.transactions)
            self.check_gone(session, zxid, applied)

    @rule(is_meant=st.sampled_from([False, False, False, False, True]))
    def restart(self, is_meant: bool) -> None:
        """Watches belong to connections; all else is as it was, with timeouts begun anew."""
        if not is_meant:
            return
        self.machine = ZooKeeperMachine(self.kept, self.now_ms)
        self.model.watches.clear()
        for session in self.deadlines:
            self.deadlines[session] = self.now_ms + TIMEOUT_MS

    @invariant()
    def the_transactions_add_up_to_the_machine(self) -> None:
        assert self.machine.image() == self.kept
        assert find_damage(self.kept) is None

    @invariant()
    def the_nodes_are_the_models(self) -> None:
        assert {path: node.data for path, node in self.kept.nodes} == {
            path: node.data for path, node in self.model.nodes.items()
        }


MachineAgainstModel.TestCase.settings = settings(stateful_step_count=60)
TestMachineAgainstModel = MachineAgainstModel.TestCase
