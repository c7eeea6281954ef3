"""The machine and a real ZooKeeper 3.8.4 are asked the same and must answer the same."""

from collections.abc import Iterator
from itertools import count, pairwise
from typing import NamedTuple

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

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
)
from barnabas.zookeeper.machine import ZooKeeperMachine
from barnabas.zookeeper.watches import FiredWatch
from tests.behaviours import behaviour
from tests.oracles.zookeeper import ZooKeeperSession, running_zookeeper
from tests.tools import need

SESSIONS = 3
_runs = count()


@pytest.fixture(scope="module")
def zookeeper_port(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    need("java")
    with running_zookeeper(tmp_path_factory.mktemp("zookeeper")) as port:
        yield port


class Pair:
    """Both stores, one set of sessions, and what their numbers of sessions and zxids mean.

    The real store also numbers what it refused, so zxids are compared by their order.
    """

    def __init__(self, port: int) -> None:
        above = f"/run{next(_runs)}"
        self.root = f"{above}/root"
        self.machine = ZooKeeperMachine()
        self.reals = [ZooKeeperSession(port) for _ in range(SESSIONS)]
        self.ours = [self._open_ours() for _ in range(SESSIONS)]
        self.port = port
        self.fired: list[FiredWatch] = []
        self.zxids: dict[int, int] = {0: 0}
        self.owners = {0: 0}
        self.owners.update(zip((real.session_id for real in self.reals), self.ours, strict=True))
        self.do(0, Create(above))
        self.do(0, Create(self.root))

    def _open_ours(self) -> int:
        opened = self.machine.open_session(4000, 0)
        assert opened is not None
        return opened.session_id

    def do(self, session: int, operation: Operation) -> Outcome:
        real = self.reals[session].do(operation)
        (ours,) = self._apply(session, [operation], is_multi=False)
        self.check_same(operation, real, ours)
        return ours

    def multi(self, session: int, operations: list[Operation]) -> tuple[Outcome, ...]:
        real = self.reals[session].multi(operations)
        ours = self._apply(session, operations, is_multi=True)
        assert len(real) == len(ours)
        for operation, one, other in zip(operations, real, ours, strict=True):
            self.check_same(operation, one, other)
        return ours

    def reopen(self, session: int) -> None:
        self.reals[session].close()
        applied = self.machine.close_session(self.ours[session], 0)
        self.fired.extend(applied.fired)
        self.check_events(is_ordered=False, closed=session)
        self.reals[session] = ZooKeeperSession(self.port)
        self.ours[session] = self._open_ours()
        self.owners[self.reals[session].session_id] = self.ours[session]

    def check_same(self, operation: Operation, real: Outcome, ours: Outcome) -> None:
        assert real.error is ours.error, operation
        assert real.path == ours.path
        assert real.data == ours.data
        assert real.children == ours.children
        assert (real.stat is None) == (ours.stat is None)
        if real.stat is None or ours.stat is None:
            return
        for mine, theirs in (
            (ours.stat.czxid, real.stat.czxid),
            (ours.stat.mzxid, real.stat.mzxid),
            (ours.stat.pzxid, real.stat.pzxid),
        ):
            assert self.zxids.setdefault(theirs, mine) == mine, operation
        assert self.owners[real.stat.ephemeral_owner] == ours.stat.ephemeral_owner
        numbered = {"czxid": 0, "mzxid": 0, "pzxid": 0, "ephemeral_owner": 0}
        timeless = {**numbered, "ctime_ms": 0, "mtime_ms": 0}
        assert real.stat._replace(**timeless) == ours.stat._replace(**timeless), operation

    def check_events(self, *, is_ordered: bool = True, closed: int | None = None) -> None:
        for session in range(SESSIONS):
            if session == closed:
                continue
            real = self.reals[session].take_events()
            ours = [fired.event for fired in self.fired if fired.session_id == self.ours[session]]
            if is_ordered:
                assert real == ours
            else:
                assert sorted(real) == sorted(ours)
        self.fired.clear()

    def check_whole_tree(self, path: str | None = None) -> None:
        path = path if path is not None else self.root
        self.do(0, GetData(path))
        for name in self.do(0, GetChildren(path)).children:
            self.check_whole_tree(f"{path}/{name}")

    def check_order_of_zxids(self) -> None:
        for one, other in pairwise(sorted(self.zxids)):
            assert self.zxids[one] < self.zxids[other]

    def close(self) -> None:
        for real in self.reals:
            real.close()

    def _apply(
        self, session: int, operations: list[Operation], *, is_multi: bool
    ) -> tuple[Outcome, ...]:
        applied = self.machine.apply(
            self.ours[session], operations, is_multi=is_multi, now_ms=0, wall_ms=0
        )
        self.fired.extend(applied.fired)
        return applied.outcomes


class Step(NamedTuple):
    session: int
    operations: list[Operation]
    is_multi: bool
    is_close: bool = False


names = st.sampled_from(["/a", "/b", "/a/c", "/a/d", "/a/c/e", "/a/n0000000001", ""])
odd_names = st.sampled_from(
    [
        *("/a/", "//a", "/a//b", "/a/./b", "/a/..", "/a/.x", "/zz/..", "/a/\0", "/\x01", "/a/\x7f"),
        *("/\u00e9", "/\ud7ff", "/\uf8ff", "/\uf900", "/\uffef", "/\ufff0", "/\U0001f600"),
    ]
)
paths = st.one_of(names, names, names, names, odd_names)
versions = st.sampled_from([-1, -1, -1, 0, 1, 2, -2])
data = st.sampled_from([None, b"", b"x", b"yy"])
writes = st.one_of(
    st.builds(Create, paths, data, st.sampled_from(CreateMode)),
    st.builds(Create, names, data),
    st.builds(SetData, paths, data, versions),
    st.builds(Delete, paths, versions),
)
reads = st.one_of(
    st.builds(GetData, paths, st.booleans()),
    st.builds(Exists, paths, st.booleans()),
    st.builds(GetChildren, paths, st.booleans()),
)
multis = st.lists(st.one_of(writes, st.builds(Check, paths, versions)), max_size=5)
steps = st.one_of(
    st.builds(lambda s, o: Step(s, [o], False), st.integers(0, SESSIONS - 1), writes),
    st.builds(lambda s, o: Step(s, [o], False), st.integers(0, SESSIONS - 1), reads),
    st.builds(lambda s, o: Step(s, o, True), st.integers(0, SESSIONS - 1), multis),
    st.builds(lambda s: Step(s, [], False, True), st.integers(0, SESSIONS - 1)),
)


def under(root: str, operation: Operation) -> Operation:
    """The same operation on a path below `root`."""
    fields = {name: getattr(operation, name) for name in operation.__slots__}
    return type(operation)(**{**fields, "path": root + operation.path})


@given(script=st.lists(steps, max_size=40))
@settings(
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture], deadline=None
)
def test_every_answer_stat_and_event_is_zookeepers(zookeeper_port: int, script: list[Step]) -> None:
    pair = Pair(zookeeper_port)
    for step in script:
        operations = [under(pair.root, operation) for operation in step.operations]
        if step.is_close:
            pair.reopen(step.session)
        elif step.is_multi:
            pair.multi(step.session, operations)
        else:
            pair.do(step.session, operations[0])
        pair.check_events()
    pair.check_whole_tree()
    pair.check_order_of_zxids()
    pair.close()


def test_paths_that_are_not_below_the_root(zookeeper_port: int) -> None:
    pair = Pair(zookeeper_port)
    for path in ("", "a", "a/b", "/"):
        for operation in (Create(path), Delete(path)):
            assert not pair.do(0, operation).is_ok
        if path != "/":
            pair.do(0, SetData(path, b""))
            pair.multi(0, [Check(path, 0)])
    pair.close()


@behaviour("N1")
def test_losing_the_election_multi_is_answered_as_zookeeper_does(zookeeper_port: int) -> None:
    pair = Pair(zookeeper_port)
    epoch, controller = f"{pair.root}/controller_epoch", f"{pair.root}/controller"
    pair.do(0, Create(epoch, b"0"))
    pair.do(1, Exists(controller, watch=True))
    won = pair.multi(0, [Create(controller, b"{}", CreateMode.EPHEMERAL), SetData(epoch, b"1", 0)])
    assert all(outcome.is_ok for outcome in won)
    pair.check_events()
    late = pair.multi(1, [Create(controller, b"{}", CreateMode.EPHEMERAL), SetData(epoch, b"1", 0)])
    assert [outcome.error for outcome in late] == [
        StoreError.NODE_EXISTS,
        StoreError.RUNTIME_INCONSISTENCY,
    ]
    stale = pair.multi(1, [SetData(pair.root, b"", 0), Check(epoch, 0), Delete(epoch)])
    assert [outcome.error for outcome in stale] == [
        StoreError.OK,
        StoreError.BAD_VERSION,
        StoreError.RUNTIME_INCONSISTENCY,
    ]
    assert pair.do(1, GetData(pair.root)).data is None
    pair.close()


def test_a_silent_session_expires_and_its_nodes_go(zookeeper_port: int) -> None:
    silent = ZooKeeperSession(zookeeper_port, timeout_ms=400)
    watcher = ZooKeeperSession(zookeeper_port)
    root = f"/run{next(_runs)}"
    machine = ZooKeeperMachine()
    ours = [machine.open_session(timeout_ms, 0) for timeout_ms in (silent.timeout_ms, 4000)]
    assert ours[0] is not None and ours[1] is not None

    def do(real: ZooKeeperSession, session_id: int, operation: Operation) -> None:
        applied = machine.apply(session_id, [operation], is_multi=False, now_ms=0, wall_ms=0)
        assert real.do(operation).error is applied.outcomes[0].error

    do(silent, ours[0].session_id, Create(root))
    do(silent, ours[0].session_id, Create(f"{root}/e", None, CreateMode.EPHEMERAL))
    do(watcher, ours[1].session_id, Exists(f"{root}/e", watch=True))
    do(watcher, ours[1].session_id, GetChildren(root, watch=True))
    silent.break_connection()
    expected = [
        WatchEvent(WatchKind.DELETED, f"{root}/e"),
        WatchEvent(WatchKind.CHILDREN_CHANGED, root),
    ]
    assert [watcher.wait_for_event() for _ in range(2)] == expected
    assert machine.expire_sessions(silent.timeout_ms - 1, 0) == []
    ((expired, applied),) = machine.expire_sessions(silent.timeout_ms, 0)
    assert expired == ours[0].session_id
    assert applied.fired == [FiredWatch(ours[1].session_id, event) for event in expected]
    watcher.close()
