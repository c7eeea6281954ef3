"""The metadata store inside a broker's own process: ZooKeeper's semantics on one SQLite file."""

from collections import deque
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple, Protocol

from barnabas.model.errors import DiskError
from barnabas.model.invariant import invariant
from barnabas.model.znode import (
    Operation,
    Outcome,
    SessionChange,
    SessionState,
    StoreAnswer,
    StoreError,
    StoreEvent,
)
from barnabas.node.sqlite_journal import SqliteJournal
from barnabas.zookeeper.journal import Image, Journal, Transaction
from barnabas.zookeeper.machine import Applied, ZooKeeperMachine

FILE_NAME = "metadata.sqlite"
"""In barnabas.metadata.dir."""

UNANSWERED_MAX = 100_000
"""Requests under way; a broker keeps far fewer, so more of them are a bug."""

_SESSION_TIMEOUT_MS = 18_000
"""Kept with the session and never counted down: its client is this process."""


class Post(Protocol):
    """Runs a callback on the loop's thread, soon; callable from any thread."""

    def __call__(self, callback: Callable[..., object], /, *arguments: object) -> object: ...


class CommittingJournal(Journal, Protocol):
    """A journal that says when it has committed, or that it cannot; see `SqliteJournal`."""

    def start(
        self, on_durable: Callable[[int], None], on_failed: Callable[[DiskError], None]
    ) -> None: ...

    def close(self) -> None: ...


class _Told(NamedTuple):
    """What may leave once a transaction is durable."""

    zxid: int
    event: StoreEvent


class EmbeddedStore:
    """A `MetadataStore` for the one broker of this process.

    Requests are applied as they come, in memory; what they lead to, watch events first and then
    the answer, waits in one queue until all that came before is on disk. So nothing is ever told
    that a crash could take back.
    """

    def __init__(
        self,
        journal: CommittingJournal,
        image: Image,
        *,
        post: Post,
        on_event: Callable[[StoreEvent], None],
        on_failed: Callable[[DiskError], None],
        epoch_ms: Callable[[], int],
    ) -> None:
        self._journal = journal
        self._machine = ZooKeeperMachine(image)
        self._post = post
        self._on_event = on_event
        self._on_failed = on_failed
        self._epoch_ms = epoch_ms
        self._durable_zxid = image.last_zxid
        self._told: deque[_Told] = deque()
        self._unanswered = 0
        self._last_ticket = 0
        self._session_id = 0
        self._is_delivery_posted = False
        self._is_failed = False
        self._is_closed = False
        journal.start(self._on_durable_elsewhere, self._on_failed_elsewhere)
        self._end_old_sessions()
        self._open_session()

    @classmethod
    def open(
        cls,
        directory: Path,
        *,
        post: Post,
        on_event: Callable[[StoreEvent], None],
        on_failed: Callable[[DiskError], None],
        epoch_ms: Callable[[], int],
    ) -> "EmbeddedStore":
        """Open the file in `directory` and begin a session; `MetadataFileRefused` says why not.

        `on_event` and `on_failed` are called on the loop's thread, never from within `submit`.
        After `on_failed` the store answers nothing but CONNECTION_LOSS: the broker must end.
        """
        journal, image = SqliteJournal.open(directory / FILE_NAME)
        return cls(
            journal, image, post=post, on_event=on_event, on_failed=on_failed, epoch_ms=epoch_ms
        )

    def submit(self, operations: Sequence[Operation], *, is_multi: bool = False) -> int:
        invariant(not self._is_closed, "a request after the metadata store was closed")
        invariant(self._unanswered < UNANSWERED_MAX, "too many metadata requests under way")
        self._last_ticket += 1
        self._unanswered += 1
        if self._is_failed:
            lost = (Outcome(StoreError.CONNECTION_LOSS),) * len(operations)
            self._tell(StoreAnswer(self._last_ticket, lost))
            return self._last_ticket
        applied = self._machine.apply(
            self._session_id,
            operations,
            is_multi=is_multi,
            now_ms=0,
            wall_ms=self._epoch_ms(),
        )
        self._follow(applied)
        self._tell(StoreAnswer(self._last_ticket, applied.outcomes))
        return self._last_ticket

    def reconnect(self) -> None:
        """End the session, if it is not over, and begin another."""
        if not self._is_failed:
            self._end_old_sessions()
            self._open_session()

    def close(self) -> None:
        """End the session, wait for the disk and give the file back; nothing more is told."""
        if self._is_closed:
            return
        if not self._is_failed:
            self._end_old_sessions()
        self._is_closed = True
        self._told.clear()
        self._journal.close()

    def _end_old_sessions(self) -> None:
        """Only this process has the file, so whoever held another session is dead."""
        for session_id in self._machine.sessions.open_ids():
            self._follow(self._machine.close_session(session_id, self._epoch_ms()))

    def _open_session(self) -> None:
        opened = self._machine.open_session(_SESSION_TIMEOUT_MS, 0)
        invariant(opened is not None, "no room for the only session")
        if opened is not None:
            self._session_id = opened.session_id
            self._keep([opened.transaction])
            self._tell(SessionChange(SessionState.CONNECTED, opened.session_id))

    def _follow(self, applied: Applied) -> None:
        self._keep(applied.transactions)
        for fired in applied.fired:
            self._tell(fired.event)

    def _keep(self, transactions: Sequence[Transaction]) -> None:
        if transactions:
            self._journal.append(transactions)

    def _tell(self, event: StoreEvent) -> None:
        self._told.append(_Told(self._machine.last_zxid, event))
        self._post_delivery()

    def _post_delivery(self) -> None:
        is_ready = bool(self._told) and (
            self._is_failed or self._told[0].zxid <= self._durable_zxid
        )
        if is_ready and not self._is_delivery_posted and not self._is_closed:
            self._is_delivery_posted = True
            self._post(self._deliver)

    def _deliver(self) -> None:
        """Tell what is ready now; what that leads to is told in a later turn of the loop."""
        self._is_delivery_posted = False
        try:
            for _ in range(len(self._told)):
                if self._is_closed or not self._told:
                    break
                if self._told[0].zxid > self._durable_zxid and not self._is_failed:
                    break
                event = self._told.popleft().event
                if isinstance(event, StoreAnswer):
                    self._unanswered -= 1
                self._on_event(event)
        finally:
            self._post_delivery()

    # Called by the journal on its own thread.

    def _on_durable_elsewhere(self, zxid: int) -> None:
        if not self._is_closed:
            self._post(self._on_durable, zxid)

    def _on_failed_elsewhere(self, error: DiskError) -> None:
        if not self._is_closed:
            self._post(self._on_journal_failed, error)

    # On the loop's thread again.

    def _on_durable(self, zxid: int) -> None:
        self._durable_zxid = zxid
        if not self._is_delivery_posted:
            self._deliver()

    def _on_journal_failed(self, error: DiskError) -> None:
        """What is not on disk never happened, or may have: nobody is told that it did."""
        self._is_failed = True
        told = list(self._told)
        self._told.clear()
        for zxid, event in told:
            if zxid <= self._durable_zxid:
                self._told.append(_Told(zxid, event))
            elif isinstance(event, StoreAnswer):
                lost = (Outcome(StoreError.CONNECTION_LOSS),) * len(event.outcomes)
                self._told.append(_Told(zxid, StoreAnswer(event.ticket, lost)))
        self._tell(SessionChange(SessionState.DISCONNECTED, self._session_id))
        self._on_failed(error)
