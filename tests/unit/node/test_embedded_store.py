"""The store in a broker's process: order, durability before any answer, and its own restarts."""

import os
import queue
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from barnabas.model.errors import DiskError, DiskLost, MetadataFileRefused
from barnabas.model.invariant import InvariantViolated
from barnabas.model.znode import (
    Create,
    CreateMode,
    Delete,
    Exists,
    GetChildren,
    GetData,
    Outcome,
    SessionChange,
    SessionState,
    SetData,
    StoreAnswer,
    StoreError,
    StoreEvent,
    WatchEvent,
    WatchKind,
)
from barnabas.node.embedded_store import EmbeddedStore
from barnabas.zookeeper.journal import Image, Transaction

WAIT_SECONDS = 20
WALL_MS = 1_700_000_000_000

Callback = Callable[..., object]


class Loop:
    """Runs what was posted when the test says so."""

    def __init__(self) -> None:
        self._posted: queue.Queue[tuple[Callback, tuple[object, ...]]] = queue.Queue()
        self.is_running = False

    def post(self, callback: Callback, /, *arguments: object) -> None:
        self._posted.put((callback, arguments))

    def run_one(self, seconds: float = WAIT_SECONDS) -> None:
        callback, arguments = self._posted.get(timeout=seconds)
        self.is_running = True
        callback(*arguments)
        self.is_running = False

    def run_ready(self) -> None:
        while not self._posted.empty():
            self.run_one()


class ManualJournal:
    """Commits when the test says so."""

    def __init__(self) -> None:
        self.taken: list[Transaction] = []
        self.is_closed = False

    def start(
        self, on_durable: Callable[[int], None], on_failed: Callable[[DiskError], None]
    ) -> None:
        self.commit_up_to = on_durable
        self.fail = on_failed

    def append(self, transactions: Sequence[Transaction]) -> None:
        self.taken.extend(transactions)

    def commit(self) -> None:
        self.commit_up_to(self.taken[-1].zxid)

    def close(self) -> None:
        self.is_closed = True


class Broker:
    """Who uses the store: takes its events on the loop."""

    def __init__(self) -> None:
        self.loop = Loop()
        self.journal = ManualJournal()
        self.events: list[StoreEvent] = []
        self.failures: list[DiskError] = []
        self.on_each: Callable[[StoreEvent], None] = lambda event: None

    def start(self) -> EmbeddedStore:
        """A store on a journal that the test commits."""
        return EmbeddedStore(
            self.journal,
            Image(),
            post=self.loop.post,
            on_event=self.take,
            on_failed=self.failures.append,
            epoch_ms=lambda: WALL_MS,
        )

    def open(self, directory: Path) -> EmbeddedStore:
        """A store on a real file, its session established."""
        store = EmbeddedStore.open(
            directory,
            post=self.loop.post,
            on_event=self.take,
            on_failed=self.failures.append,
            epoch_ms=lambda: WALL_MS,
        )
        self.wait_for_events(1)
        return store

    def take(self, event: StoreEvent) -> None:
        assert self.loop.is_running, "told from within a call of the store"
        self.events.append(event)
        self.on_each(event)

    def wait_for_events(self, count: int) -> list[StoreEvent]:
        while len(self.events) < count:
            self.loop.run_one()
        return self.events

    def ask(self, store: EmbeddedStore, *operations: Create | GetData | GetChildren) -> StoreAnswer:
        """Submit and wait for the answer."""
        ticket = store.submit(operations)
        while True:
            answer = self.events[-1] if self.events else None
            if isinstance(answer, StoreAnswer) and answer.ticket == ticket:
                return answer
            self.loop.run_one()


def settled() -> tuple[Broker, EmbeddedStore]:
    """A store on a manual journal whose session is established and told."""
    broker = Broker()
    store = broker.start()
    broker.journal.commit()
    broker.loop.run_ready()
    assert broker.events == [SessionChange(SessionState.CONNECTED, 1)]
    broker.events.clear()
    return broker, store


def test_the_session_is_told_once_it_is_durable() -> None:
    broker = Broker()
    broker.start()
    broker.loop.run_ready()
    assert broker.events == []
    broker.journal.commit()
    broker.loop.run_ready()
    assert broker.events == [SessionChange(SessionState.CONNECTED, 1)]


def test_nothing_is_told_before_it_is_durable_and_all_in_order() -> None:
    broker, store = settled()
    first = store.submit([Create("/a", b"x")])
    second = store.submit([GetData("/a", watch=True), GetChildren("/", watch=True)])
    committed = broker.journal.taken[-1].zxid
    third = store.submit([SetData("/a", b"y", 0), Create("/b")])
    fourth = store.submit([GetData("/a")])
    broker.loop.run_ready()
    assert broker.events == []
    broker.journal.commit_up_to(committed)
    broker.loop.run_ready()
    told = [event.ticket for event in broker.events if isinstance(event, StoreAnswer)]
    assert told == [first, second]
    broker.journal.commit()
    broker.loop.run_ready()
    assert broker.events[2:4] == [
        WatchEvent(WatchKind.DATA_CHANGED, "/a"),
        WatchEvent(WatchKind.CHILDREN_CHANGED, "/"),
    ]
    later = broker.events[4:]
    assert [event.ticket for event in later if isinstance(event, StoreAnswer)] == [third, fourth]
    assert isinstance(later[1], StoreAnswer)
    assert later[1].outcomes[0].data == b"y"


def test_a_read_alone_needs_no_commit() -> None:
    broker, store = settled()
    before = len(broker.journal.taken)
    ticket = store.submit([Exists("/none"), GetData("/none")])
    refused = store.submit([Delete("/none")])
    broker.loop.run_ready()
    missing = Outcome(StoreError.NO_NODE)
    assert broker.events == [
        StoreAnswer(ticket, (missing, missing)),
        StoreAnswer(refused, (missing,)),
    ]
    assert len(broker.journal.taken) == before


def test_a_refused_multi_changes_nothing() -> None:
    broker, store = settled()
    ticket = store.submit([Create("/a"), Delete("/none"), Create("/b")], is_multi=True)
    broker.loop.run_ready()
    assert broker.events == [
        StoreAnswer(
            ticket,
            (
                Outcome(StoreError.OK),
                Outcome(StoreError.NO_NODE),
                Outcome(StoreError.RUNTIME_INCONSISTENCY),
            ),
        )
    ]
    assert not broker.events[0].is_ok
    assert broker.ask(store, GetChildren("/")).outcomes[0].children == ()


def test_what_is_submitted_from_an_event_is_told_in_a_later_turn() -> None:
    broker, store = settled()
    depth = 0

    def ask_again(event: StoreEvent) -> None:
        nonlocal depth
        depth += 1
        assert depth == 1, "told within telling"
        if len(broker.events) < 50:
            store.submit([Exists("/none")])
        depth -= 1

    broker.on_each = ask_again
    store.submit([Exists("/none")])
    turns = 0
    while len(broker.events) < 50:
        broker.loop.run_one()
        turns += 1
    assert turns >= 50


def test_an_event_that_its_taker_fails_on_does_not_stop_the_others() -> None:
    broker, store = settled()

    def refuse_first(event: StoreEvent) -> None:
        if len(broker.events) == 1:
            raise InvariantViolated("a bug of the taker")

    broker.on_each = refuse_first
    for _ in range(3):
        store.submit([Exists("/none")])
    with pytest.raises(InvariantViolated, match="a bug of the taker"):
        broker.loop.run_ready()
    broker.loop.is_running = False
    broker.loop.run_ready()
    assert len(broker.events) == 3


def test_a_failed_journal_loses_what_was_under_way_and_says_so() -> None:
    broker, store = settled()
    kept = store.submit([Create("/a")])
    broker.journal.commit()
    watching = store.submit([GetData("/a", watch=True)])
    lost = store.submit([SetData("/a", b"x"), Create("/b")])
    failure = DiskLost("/metadata.sqlite", "gone")
    broker.journal.fail(failure)
    broker.loop.run_ready()
    lost_outcome = Outcome(StoreError.CONNECTION_LOSS)
    answers = {event.ticket: event for event in broker.events if isinstance(event, StoreAnswer)}
    assert answers[kept].is_ok
    assert answers[watching].is_ok
    assert answers[lost].outcomes == (lost_outcome, lost_outcome)
    assert broker.events[-1] == SessionChange(SessionState.DISCONNECTED, 1)
    assert not any(isinstance(event, WatchEvent) for event in broker.events)
    assert broker.failures == [failure]
    after = store.submit([GetData("/a")])
    broker.loop.run_ready()
    assert broker.events[-1] == StoreAnswer(after, (lost_outcome,))
    store.reconnect()
    broker.loop.run_ready()
    assert isinstance(broker.events[-1], StoreAnswer)
    store.close()
    assert broker.journal.is_closed


def test_reconnecting_begins_a_session_without_the_old_ones_nodes() -> None:
    broker, store = settled()
    store.submit([Create("/mine", None, CreateMode.EPHEMERAL), Exists("/mine", watch=True)])
    store.reconnect()
    ticket = store.submit([Exists("/mine")])
    broker.journal.commit()
    broker.loop.run_ready()
    assert broker.events[1:] == [
        SessionChange(SessionState.CONNECTED, 2),
        StoreAnswer(ticket, (Outcome(StoreError.NO_NODE),)),
    ]


def test_nothing_is_told_after_closing() -> None:
    broker, store = settled()
    store.submit([Create("/a")])
    broker.journal.commit()
    store.close()
    store.close()
    broker.loop.run_ready()
    assert broker.events == []
    with pytest.raises(InvariantViolated):
        store.submit([Exists("/a")])


def test_a_restart_keeps_nodes_and_counts_on_but_not_what_the_dead_process_owned(
    tmp_path: Path,
) -> None:
    czxids: list[int] = []
    sessions: list[int] = []
    names: list[str] = []
    for life in range(4):
        broker = Broker()
        store = broker.open(tmp_path)
        (connected,) = broker.events
        assert isinstance(connected, SessionChange)
        sessions.append(connected.session_id)
        registered = broker.ask(
            store,
            Create("/registration", b"{}", CreateMode.EPHEMERAL),
            GetData("/registration"),
            Create("/change-", None, CreateMode.PERSISTENT_SEQUENTIAL),
        )
        assert registered.is_ok, registered
        _, read, change = registered.outcomes
        assert read.stat is not None
        assert read.stat.ephemeral_owner == connected.session_id
        assert read.stat.ctime_ms == WALL_MS
        czxids.append(read.stat.czxid)
        names.append(change.path)
        children = broker.ask(store, GetChildren("/")).outcomes[0].children
        assert len(children) == life + 2
        if life == 1:
            store.close()
        else:
            store._journal.close()  # as a process ends that did not end its session
    assert czxids == sorted(set(czxids))
    assert sessions == [1, 2, 3, 4]
    assert len(set(names)) == 4


def test_the_file_is_one_processs(tmp_path: Path) -> None:
    broker = Broker()
    store = broker.open(tmp_path)
    with pytest.raises(
        MetadataFileRefused, match=f"metadata.sqlite is in use by process {os.getpid()}"
    ):
        Broker().open(tmp_path)
    store.close()
    Broker().open(tmp_path).close()
