"""A metadata store in memory, shared by several brokers in virtual time.

Two queues stand between a broker and the store, one each way, and nothing moves in them until
the world pumps. That is where faults live: what was asked may be lost before it is done, what
was done may be lost before it is told, and a silent session expires.
"""

from collections import deque
from collections.abc import Callable, Sequence
from typing import NamedTuple

from barnabas.model.invariant import invariant
from barnabas.model.znode import (
    Operation,
    Outcome,
    SessionChange,
    SessionState,
    StoreAnswer,
    StoreError,
    StoreEvent,
    WatchEvent,
)
from barnabas.zookeeper.journal import Image
from barnabas.zookeeper.machine import Applied, ZooKeeperMachine

SESSION_TIMEOUT_MS = 18_000
"""Kafka's default of zookeeper.session.timeout.ms."""

OnStore = Callable[[StoreEvent, int], None]


class _Request(NamedTuple):
    ticket: int
    operations: tuple[Operation, ...]
    is_multi: bool


class MemoryStore:
    """One broker's link to the ensemble; a `MetadataStore` of broker/ports.py."""

    def __init__(self, ensemble: "MemoryEnsemble", on_store: OnStore, timeout_ms: int) -> None:
        self.session_id = 0
        self.is_connected = False
        self.is_paused = False
        """The broker's process is stopped: nothing is taken from it or told to it, and it sends no
        heartbeats."""
        self._ensemble = ensemble
        self._on_store = on_store
        self._timeout_ms = timeout_ms
        self._last_ticket = 0
        self._wants_session = True
        self._is_expired = False
        self._requests: deque[_Request] = deque()
        self._events: deque[StoreEvent] = deque()
        self._held: deque[WatchEvent] = deque()
        """Fired while the link was cut; told once it is mended, as a client's watches are."""

    def submit(self, operations: Sequence[Operation], *, is_multi: bool = False) -> int:
        self._last_ticket += 1
        self._requests.append(_Request(self._last_ticket, tuple(operations), is_multi))
        return self._last_ticket

    def reconnect(self) -> None:
        self._wants_session = True

    # What the world does with the link.

    def disconnect(self, *, apply_requests: bool = False) -> None:
        """Cut the link: requests under way are lost, or done without their answers coming back."""
        invariant(self.is_connected, "a link is cut that was not there")
        lost: list[tuple[int, int]] = []
        kept: deque[StoreEvent] = deque()
        if apply_requests:
            for request in self._requests:
                self._ensemble.apply(self, request.operations, request.is_multi)
        for event in self._events:
            if isinstance(event, StoreAnswer):
                lost.append((event.ticket, len(event.outcomes)))
            elif isinstance(event, WatchEvent):
                self._held.append(event)
            else:
                kept.append(event)
        lost.extend((request.ticket, len(request.operations)) for request in self._requests)
        self._requests.clear()
        self._events = kept
        self.is_connected = False
        self._answer_all(lost, StoreError.CONNECTION_LOSS)
        self._events.append(SessionChange(SessionState.DISCONNECTED, self.session_id))

    def restore(self) -> None:
        """Mend the link: the session goes on, or is told that it is over."""
        invariant(not self.is_connected, "a link is mended that was not cut")
        if self._ensemble.is_open(self.session_id):
            self.is_connected = True
            self._events.append(SessionChange(SessionState.CONNECTED, self.session_id))
            self._events.extend(self._held)
            self._held.clear()
        else:
            self.note_expired()

    def note_expired(self) -> None:
        """The session is over: what is under way is refused, then the broker is told."""
        if self._is_expired:
            return
        self._is_expired = True
        self.is_connected = False
        self._held.clear()
        self._refuse_requests(StoreError.SESSION_EXPIRED)
        self._events.append(SessionChange(SessionState.EXPIRED, self.session_id))

    # What the ensemble does with the link.

    def note_watch(self, event: WatchEvent) -> None:
        """Queue a fired watch."""
        if self.is_connected:
            self._events.append(event)
        else:
            self._held.append(event)

    def send_one(self) -> bool:
        """Let the store do the broker's next request; False when there is none."""
        if self._wants_session:
            self._wants_session = False
            self._is_expired = False
            self.session_id = self._ensemble.open_session(self, self._timeout_ms)
            self.is_connected = True
            self._events.append(SessionChange(SessionState.CONNECTED, self.session_id))
            return True
        if not self._requests:
            return False
        if self.is_connected:
            request = self._requests.popleft()
            applied = self._ensemble.apply(self, request.operations, request.is_multi)
            self._events.append(StoreAnswer(request.ticket, applied.outcomes))
        elif self._is_expired:
            self._refuse_requests(StoreError.SESSION_EXPIRED)
        else:
            self._refuse_requests(StoreError.CONNECTION_LOSS)
        return True

    def deliver_one(self, now_ms: int) -> bool:
        """Tell the broker the next event; False when there is none."""
        if not self._events:
            return False
        self._on_store(self._events.popleft(), now_ms)
        return True

    def _refuse_requests(self, error: StoreError) -> None:
        tickets = [(request.ticket, len(request.operations)) for request in self._requests]
        self._requests.clear()
        self._answer_all(tickets, error)

    def _answer_all(self, tickets: Sequence[tuple[int, int]], error: StoreError) -> None:
        for ticket, count in tickets:
            self._events.append(StoreAnswer(ticket, (Outcome(error),) * count))


class MemoryEnsemble:
    """The store behind all links, on the world's clocks."""

    def __init__(self, epoch_ms: Callable[[], int], image: Image | None = None) -> None:
        self.machine = ZooKeeperMachine(image)
        self._epoch_ms = epoch_ms
        self._now_ms = 0
        self._links: list[MemoryStore] = []
        self._by_session: dict[int, MemoryStore] = {}

    def connect(
        self, on_store: OnStore, session_timeout_ms: int = SESSION_TIMEOUT_MS
    ) -> MemoryStore:
        """A new link; its session is established by the next pump."""
        link = MemoryStore(self, on_store, session_timeout_ms)
        self._links.append(link)
        return link

    def kill(self, link: MemoryStore) -> None:
        """The broker is gone without a word: its session lives on until it expires."""
        self._links.remove(link)
        self._by_session.pop(link.session_id, None)

    def close(self, link: MemoryStore) -> None:
        """The broker leaves in good order: its session ends now."""
        self.kill(link)
        self._route(self.machine.close_session(link.session_id, self._epoch_ms()))

    def expire(self, link: MemoryStore) -> None:
        """End the session of a live broker, as after a long silence."""
        self._by_session.pop(link.session_id, None)
        self._route(self.machine.close_session(link.session_id, self._epoch_ms()))
        link.note_expired()

    def pump(self, now_ms: int) -> int:
        """Move requests and events until nothing moves; the number of rounds.

        In a round each link has one request done, then each is told one event, so that brokers
        interleave the same way in every run.
        """
        self._now_ms = now_ms
        rounds = 0
        while self.pump_round(now_ms):
            rounds += 1
        return rounds

    def pump_round(self, now_ms: int) -> bool:
        """One round of `pump`; False when there was nothing to move."""
        self._now_ms = now_ms
        running = [link for link in self._links if not link.is_paused]
        sent = [link.send_one() for link in running]
        told = [link.deliver_one(now_ms) for link in running]
        return any(sent) or any(told)

    def tick(self, now_ms: int) -> None:
        """Heartbeats of connected links, then the expiry of sessions that were silent."""
        self._now_ms = now_ms
        for link in self._links:
            if link.is_connected and not link.is_paused:
                self.machine.touch(link.session_id, now_ms)
        for session_id, applied in self.machine.expire_sessions(now_ms, self._epoch_ms()):
            link = self._by_session.pop(session_id, None)
            self._route(applied)
            if link is not None and link.is_connected:
                link.note_expired()

    def next_deadline_ms(self) -> int | None:
        """When a session expires if nothing is heard of it until then."""
        return self.machine.sessions.next_deadline_ms()

    # What links ask.

    def open_session(self, link: MemoryStore, timeout_ms: int) -> int:
        """Begin a session for a link."""
        opened = self.machine.open_session(timeout_ms, self._now_ms)
        assert opened is not None, "too many sessions for a test"
        self._by_session[opened.session_id] = link
        return opened.session_id

    def is_open(self, session_id: int) -> bool:
        return session_id in self.machine.sessions

    def apply(self, link: MemoryStore, operations: Sequence[Operation], is_multi: bool) -> Applied:
        """Do a link's request and queue the watches it fires."""
        applied = self.machine.apply(
            link.session_id,
            operations,
            is_multi=is_multi,
            now_ms=self._now_ms,
            wall_ms=self._epoch_ms(),
        )
        self._route(applied)
        return applied

    def _route(self, applied: Applied) -> None:
        for fired in applied.fired:
            link = self._by_session.get(fired.session_id)
            if link is not None:
                link.note_watch(fired.event)
