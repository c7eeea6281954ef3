"""What ZooKeeper's semantics promise, each by itself; the limits that ZooKeeper has not."""

import pytest

from barnabas.model.invariant import InvariantViolated
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
    Stat,
    StoreError,
    WatchEvent,
    WatchKind,
)
from barnabas.zookeeper import sessions, tree, watches
from barnabas.zookeeper.journal import Image, NodeWritten, SessionOpened, find_damage
from barnabas.zookeeper.machine import Applied, ZooKeeperMachine
from barnabas.zookeeper.paths import is_valid_path
from barnabas.zookeeper.watches import FiredWatch
from tests.behaviours import behaviour

EPHEMERAL = CreateMode.EPHEMERAL
OK = StoreError.OK


class Store:
    """A machine with two sessions."""

    def __init__(self) -> None:
        self.machine = ZooKeeperMachine()
        self.one, self.other = self.open(), self.open()

    def open(self, timeout_ms: int = 1000, now_ms: int = 0) -> int:
        opened = self.machine.open_session(timeout_ms, now_ms)
        assert opened is not None
        return opened.session_id

    def apply(self, *operations: Operation, session: int = 1, wall_ms: int = 5) -> Applied:
        return self.machine.apply(session, operations, is_multi=False, now_ms=0, wall_ms=wall_ms)

    def do(self, operation: Operation, session: int = 1, wall_ms: int = 5) -> Outcome:
        (outcome,) = self.apply(operation, session=session, wall_ms=wall_ms).outcomes
        return outcome

    def multi(self, *operations: Operation, session: int = 1) -> Applied:
        return self.machine.apply(session, operations, is_multi=True, now_ms=0, wall_ms=5)


def test_a_stat_tells_every_number() -> None:
    store = Store()
    store.do(Create("/a", b"xyz"), wall_ms=10)
    store.do(SetData("/a", b"xyzw"), wall_ms=20)
    store.do(Create("/a/b", None, EPHEMERAL), wall_ms=30)
    store.do(Create("/a/c"), wall_ms=40)
    store.do(Delete("/a/c"), wall_ms=50)
    assert store.do(Exists("/a")).stat == Stat(
        czxid=3,
        mzxid=4,
        ctime_ms=10,
        mtime_ms=20,
        version=1,
        child_version=3,
        acl_version=0,
        ephemeral_owner=0,
        data_length=4,
        children_count=1,
        pzxid=7,
    )
    child = store.do(GetData("/a/b")).stat
    assert child is not None
    assert (child.ephemeral_owner, child.data_length, child.pzxid) == (store.one, 0, 5)


def test_no_data_and_empty_data_are_two_things() -> None:
    store = Store()
    store.do(Create("/none", None))
    store.do(Create("/empty", b""))
    assert store.do(GetData("/none")).data is None
    assert store.do(GetData("/empty")).data == b""


def test_sequential_names_count_every_creation_under_the_parent() -> None:
    store = Store()
    store.do(Create("/p"))
    sequential = Create("/p/n-", None, CreateMode.PERSISTENT_SEQUENTIAL)
    assert store.do(sequential).path == "/p/n-0000000000"
    store.do(Create("/p/other"))
    store.do(Delete("/p/other"))
    store.do(Delete("/p/n-0000000000"))
    assert store.do(sequential).path == "/p/n-0000000002"
    owned = Create("/p/", None, CreateMode.EPHEMERAL_SEQUENTIAL)
    assert store.do(owned).path == "/p/0000000003"
    both = store.multi(sequential, sequential)
    assert [outcome.path for outcome in both.outcomes] == ["/p/n-0000000004", "/p/n-0000000005"]


def test_refusals() -> None:
    store = Store()
    store.do(Create("/a", b""))
    store.do(Create("/a/b"))
    store.do(Create("/e", None, EPHEMERAL))
    refused: list[tuple[Operation, StoreError]] = [
        (Create("/a"), StoreError.NODE_EXISTS),
        (Create("/"), StoreError.NODE_EXISTS),
        (Create("/none/a"), StoreError.NO_NODE),
        (Create("/e/child"), StoreError.NO_CHILDREN_FOR_EPHEMERALS),
        (Create("/a/"), StoreError.BAD_ARGUMENTS),
        (Create("a"), StoreError.BAD_ARGUMENTS),
        (Create("/none\0/a"), StoreError.BAD_ARGUMENTS),
        (Delete("/none\0/a"), StoreError.BAD_ARGUMENTS),
        (SetData("/a", b"", 1), StoreError.BAD_VERSION),
        (SetData("/a", b"", -2), StoreError.BAD_VERSION),
        (SetData("/none", b""), StoreError.NO_NODE),
        (SetData("/a/", b""), StoreError.BAD_ARGUMENTS),
        (Delete("/a", 1), StoreError.BAD_VERSION),
        (Delete("/a", 0), StoreError.NOT_EMPTY),
        (Delete("/none"), StoreError.NO_NODE),
        (Delete("/"), StoreError.BAD_ARGUMENTS),
        (Check("/a", 1), StoreError.BAD_VERSION),
        (Check("/none", 0), StoreError.NO_NODE),
        (Check("//", 0), StoreError.BAD_ARGUMENTS),
        (GetData("/none", watch=True), StoreError.NO_NODE),
        (GetChildren("/none", watch=True), StoreError.NO_NODE),
        (Exists("/none"), StoreError.NO_NODE),
        (Exists("/\0", watch=True), StoreError.BAD_ARGUMENTS),
    ]
    before = store.machine.image()
    for operation, error in refused:
        assert store.do(operation) == Outcome(error), operation
        assert store.do(operation, session=99) == Outcome(StoreError.SESSION_EXPIRED)
    assert store.machine.image() == before
    assert len(store.machine._watches) == 0


@behaviour("N1")
def test_of_two_election_multis_the_second_changes_nothing() -> None:
    store = Store()
    store.do(Create("/controller_epoch", b"0"))
    won = store.multi(Create("/controller", b"1", EPHEMERAL), SetData("/controller_epoch", b"1", 0))
    assert all(outcome.is_ok for outcome in won.outcomes)
    lost = store.multi(
        SetData("/controller_epoch", b"2", 1),
        Create("/controller", b"2", EPHEMERAL),
        Check("/controller_epoch", 1),
        session=store.other,
    )
    assert [outcome.error for outcome in lost.outcomes] == [
        StoreError.OK,
        StoreError.NODE_EXISTS,
        StoreError.RUNTIME_INCONSISTENCY,
    ]
    assert lost.outcomes[0] == Outcome(StoreError.OK)
    assert (lost.transactions, lost.fired) == ([], [])
    epoch = store.do(GetData("/controller_epoch"))
    assert epoch.data == b"1"
    stale = store.multi(Check("/controller_epoch", 0), Create("/state"), session=store.other)
    assert [outcome.error for outcome in stale.outcomes] == [
        StoreError.BAD_VERSION,
        StoreError.RUNTIME_INCONSISTENCY,
    ]


def test_operations_of_a_multi_see_those_before_them_and_share_a_zxid() -> None:
    store = Store()
    applied = store.multi(
        Create("/e", None, EPHEMERAL),
        Delete("/e"),
        Create("/a", None),
        SetData("/a", b"x", 0),
        Create("/a/b"),
        SetData("/a", b"xy", 1),
        Delete("/a/b"),
        Delete("/a", 2),
        Create("/a", None, EPHEMERAL),
        SetData("/a", b"z", 0),
    )
    assert all(outcome.is_ok for outcome in applied.outcomes)
    first, second, last = (applied.outcomes[index].stat for index in (3, 5, 9))
    assert first is not None and second is not None and last is not None
    assert (first.version, first.children_count, first.data_length) == (1, 0, 1)
    assert (second.version, second.children_count, second.data_length) == (2, 1, 2)
    assert (last.version, last.child_version, last.ephemeral_owner) == (1, 0, store.one)
    assert first.czxid == last.mzxid == store.machine.last_zxid
    assert len(applied.transactions) == 1
    assert store.machine.tree.ephemerals_of(store.one) == ("/a",)
    store.multi(Delete("/a"), Create("/a"))
    assert store.machine.tree.ephemerals_of(store.one) == ()
    store.multi(Delete("/a"), Create("/a", None, EPHEMERAL))
    store.multi(Delete("/a"), Create("/a", None, EPHEMERAL), session=store.other)
    assert store.machine.tree.ephemerals_of(store.one) == ()
    store.machine.close_session(store.one, 0)
    assert store.do(Exists("/a"), store.other).is_ok
    store.do(Delete("/a"), store.other)
    assert store.machine.tree.ephemerals_of(store.other) == ()


def test_a_multi_that_only_checks_needs_no_transaction() -> None:
    store = Store()
    before = store.machine.last_zxid
    applied = store.multi(Check("/", 0), Check("/", -1))
    assert [outcome.error for outcome in applied.outcomes] == [OK, OK]
    assert (applied.transactions, store.machine.last_zxid) == ([], before)
    assert store.multi().outcomes == ()


def test_a_multi_of_reads_is_a_bug() -> None:
    with pytest.raises(InvariantViolated, match="holds a read"):
        Store().multi(GetData("/"))


def test_which_watch_sees_what() -> None:
    store = Store()
    one, other = store.one, store.other
    store.do(Create("/p"))
    store.do(Exists("/p/n", watch=True), one)
    store.do(GetChildren("/p", watch=True), other)
    created = store.apply(Create("/p/n"))
    assert created.fired == [
        FiredWatch(one, WatchEvent(WatchKind.CREATED, "/p/n")),
        FiredWatch(other, WatchEvent(WatchKind.CHILDREN_CHANGED, "/p")),
    ]
    assert store.apply(Create("/p/m")).fired == []
    store.do(GetData("/p/n", watch=True), one)
    store.do(Exists("/p/n", watch=True), other)
    changed = store.apply(SetData("/p/n", b"x"))
    event = WatchEvent(WatchKind.DATA_CHANGED, "/p/n")
    assert changed.fired == [FiredWatch(one, event), FiredWatch(other, event)]
    assert store.apply(SetData("/p/n", b"y")).fired == []


WATCHES: list[tuple[Operation, Operation, list[WatchEvent]]] = [
    (GetData("/p/n", True), SetData("/p/n", b""), [WatchEvent(WatchKind.DATA_CHANGED, "/p/n")]),
    (GetData("/p/n", True), Delete("/p/n"), [WatchEvent(WatchKind.DELETED, "/p/n")]),
    (GetData("/p/n", True), Create("/p/n/c"), []),
    (GetData("/p", True), Create("/p/c"), []),
    (GetData("/p", True), Delete("/p/n"), []),
    (Exists("/p/n", True), SetData("/p/n", b""), [WatchEvent(WatchKind.DATA_CHANGED, "/p/n")]),
    (Exists("/p/n", True), Delete("/p/n"), [WatchEvent(WatchKind.DELETED, "/p/n")]),
    (Exists("/p/c", True), Create("/p/c"), [WatchEvent(WatchKind.CREATED, "/p/c")]),
    (Exists("/p", True), SetData("/p/n", b""), []),
    (GetChildren("/p/n", True), SetData("/p/n", b""), []),
    (GetChildren("/p/n", True), Delete("/p/n"), [WatchEvent(WatchKind.DELETED, "/p/n")]),
    (GetChildren("/p", True), SetData("/p/n", b""), []),
    (GetChildren("/p", True), SetData("/p", b""), []),
    (GetChildren("/p", True), Delete("/p/n"), [WatchEvent(WatchKind.CHILDREN_CHANGED, "/p")]),
    (GetChildren("/p", True), Create("/p/c"), [WatchEvent(WatchKind.CHILDREN_CHANGED, "/p")]),
    (GetChildren("/p", True), Create("/p/n/c"), []),
    (GetChildren("/", True), Create("/c"), [WatchEvent(WatchKind.CHILDREN_CHANGED, "/")]),
    (GetChildren("/", True), SetData("/", b""), []),
    (GetData("/", True), SetData("/", b""), [WatchEvent(WatchKind.DATA_CHANGED, "/")]),
    (GetData("/", True), Create("/c"), []),
]


@pytest.mark.parametrize(("watching", "writing", "events"), WATCHES)
def test_each_watch_sees_its_own(
    watching: Operation, writing: Operation, events: list[WatchEvent]
) -> None:
    store = Store()
    store.do(Create("/p"))
    store.do(Create("/p/n"))
    store.do(watching, store.other)
    fired = store.apply(writing).fired
    assert fired == [FiredWatch(store.other, event) for event in events]
    assert len(store.machine._watches) == 1 - len(events)


def test_a_removal_is_told_once_to_who_watches_data_and_children() -> None:
    store = Store()
    store.do(Create("/p"))
    store.do(Create("/p/n"))
    for operation in (
        GetData("/p/n", watch=True),
        Exists("/p/n", watch=True),
        GetChildren("/p/n", watch=True),
        GetChildren("/p", watch=True),
    ):
        store.do(operation, store.other)
    removed = store.apply(Delete("/p/n"))
    assert removed.fired == [
        FiredWatch(store.other, WatchEvent(WatchKind.DELETED, "/p/n")),
        FiredWatch(store.other, WatchEvent(WatchKind.CHILDREN_CHANGED, "/p")),
    ]
    assert len(store.machine._watches) == 0


def test_a_multi_fires_in_the_order_of_its_operations() -> None:
    store = Store()
    store.do(Create("/a"))
    store.do(GetData("/a", watch=True))
    store.do(GetChildren("/a", watch=True))
    store.do(Exists("/a/b", watch=True))
    applied = store.multi(
        Create("/a/b"), SetData("/a", b""), SetData("/a/b", b""), Delete("/a/b"), Delete("/a")
    )
    assert [fired.event for fired in applied.fired] == [
        WatchEvent(WatchKind.CREATED, "/a/b"),
        WatchEvent(WatchKind.CHILDREN_CHANGED, "/a"),
        WatchEvent(WatchKind.DATA_CHANGED, "/a"),
    ]


def test_a_closed_session_takes_its_nodes_in_one_transaction_and_is_told_nothing() -> None:
    store = Store()
    for path in ("/b", "/a", "/c"):
        store.do(Create(path, None, EPHEMERAL))
    store.do(Create("/stays"))
    store.do(GetChildren("/", watch=True), store.one)
    store.do(GetChildren("/", watch=True), store.other)
    store.do(Exists("/c", watch=True), store.other)
    closed = store.machine.close_session(store.one, 9)
    assert len(closed.transactions) == 1
    assert closed.fired == [
        FiredWatch(store.other, WatchEvent(WatchKind.CHILDREN_CHANGED, "/")),
        FiredWatch(store.other, WatchEvent(WatchKind.DELETED, "/c")),
    ]
    assert store.do(GetChildren("/"), store.other).children == ("stays",)
    again = store.machine.close_session(store.one, 9)
    assert again == Applied((Outcome(StoreError.SESSION_EXPIRED),))
    assert store.open() not in (store.one, store.other)


def test_sessions_expire_in_the_order_of_their_deadlines() -> None:
    store = Store()
    machine = store.machine
    late, early = store.open(500, now_ms=0), store.open(300, now_ms=100)
    assert machine.sessions.next_deadline_ms() == 400
    assert machine.touch(early, 200)
    assert machine.touch(early, 150)
    assert machine.sessions.next_deadline_ms() == 500
    assert [session for session, _ in machine.expire_sessions(499, 0)] == []
    assert [session for session, _ in machine.expire_sessions(2000, 0)] == [
        *(late, early, store.one, store.other)
    ]
    assert machine.sessions.next_deadline_ms() is None
    assert not machine.touch(early, 2000)


def test_asking_keeps_a_session_alive() -> None:
    store = Store()
    store.machine.apply(store.one, [Exists("/")], is_multi=False, now_ms=900, wall_ms=0)
    assert [session for session, _ in store.machine.expire_sessions(1000, 0)] == [store.other]


def test_too_much_data_is_refused_whole() -> None:
    store = Store()
    half = bytes(tree.DATA_BYTES_MAX // 2)
    assert store.do(Create("/most", half + half)).is_ok
    refused = Outcome(StoreError.MARSHALLING_ERROR)
    assert store.do(SetData("/most", half + half + b"x")) == refused
    applied = store.multi(Create("/a", half), Create("/b", half), Create("/c", b"x"))
    assert applied.outcomes == (refused,) * 3
    assert store.do(GetChildren("/")).children == ("most",)


def test_too_many_watches_and_sessions_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watches, "WATCHES_MAX", 2)
    monkeypatch.setattr(sessions, "SESSIONS_MAX", 3)
    store = Store()
    store.do(Exists("/a", watch=True))
    store.do(Exists("/a", watch=True))
    store.do(Exists("/b", watch=True), store.other)
    throttled = Outcome(StoreError.THROTTLED_OP)
    assert store.do(Exists("/c", watch=True)) == throttled
    assert store.do(Exists("/")).is_ok
    store.machine.close_session(store.other, 0)
    assert store.do(Exists("/c", watch=True)) == Outcome(StoreError.NO_NODE)
    assert store.machine.open_session(1000, 0) is not None
    assert store.machine.open_session(1000, 0) is not None
    assert store.machine.open_session(1000, 0) is None


@pytest.mark.parametrize(
    ("path", "is_valid"),
    [
        *(("/", True), ("/a", True), ("/a.b/..c/.d", True), ("/\u00e9/\uf900", True)),
        *(("", False), ("a", False), ("/a/", False), ("//", False), ("/a//b", False)),
        *(("/.", False), ("/a/..", False), ("/a/./b", False), ("/\x1f", False), ("/ ", True)),
        *(("/\x7e", True), ("/\x7f", False), ("/\x9f", False), ("/\xa0", True)),
        *(("/\ud7ff", True), ("/\ue000", False), ("/\uf8ff", False), ("/\uffef", True)),
        *(("/\ufff0", False), ("/\U0001f600", False), ("/a\0", False)),
    ],
)
def test_paths(path: str, is_valid: bool) -> None:
    assert is_valid_path(path) is is_valid


def test_an_image_that_contradicts_itself_is_never_restored() -> None:
    store = Store()
    store.do(Create("/a"))
    store.do(Create("/a/e", None, EPHEMERAL))
    whole = store.machine.image()
    assert find_damage(whole) is None
    nodes = dict(whole.nodes)
    twice = Image(whole.last_zxid, 2, whole.sessions, (*whole.nodes, whole.nodes[0]))
    below = NodeWritten("/a/e/f", nodes["/a/e"]._replace(ephemeral_owner=0))
    under = Image(whole.last_zxid, 2, whole.sessions, (*whole.nodes, below))
    young = Image(whole.last_zxid, 2, (*whole.sessions, SessionOpened(3, 1)), whole.nodes)
    for image, reason in (
        (twice, "a path stands twice"),
        (under, "/a/e/f hangs under an ephemeral node"),
        (young, "a session is younger than the last one given, 0x2"),
    ):
        assert find_damage(image) == reason
        with pytest.raises(InvariantViolated, match=reason):
            ZooKeeperMachine(image)
