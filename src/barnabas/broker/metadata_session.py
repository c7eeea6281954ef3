"""The broker's session with the metadata store: who asked, who watches."""

from collections.abc import Callable, Sequence
from typing import assert_never

from barnabas.broker.ports import MetadataStore
from barnabas.model.invariant import invariant
from barnabas.model.znode import (
    Operation,
    SessionChange,
    StoreAnswer,
    StoreEvent,
    WatchEvent,
)

Answered = Callable[[StoreAnswer, int], None]
Watched = Callable[[WatchEvent, int], None]
SessionChanged = Callable[[SessionChange, int], None]


class MetadataSession:
    """Routes what the store says to the part of the broker that waits for it.

    A watch is one-shot in the store and here: whoever wants to go on watching asks again,
    before reading, so that no change falls between.
    """

    def __init__(self, store: MetadataStore) -> None:
        self._store = store
        self._waiting: dict[int, Answered] = {}
        self._watchers: dict[str, list[Watched]] = {}
        self._session_listeners: list[SessionChanged] = []

    def submit(
        self, operations: Sequence[Operation], then: Answered, *, is_multi: bool = False
    ) -> None:
        """Hand over operations; `then(answer, now_ms)` is called once."""
        ticket = self._store.submit(operations, is_multi=is_multi)
        invariant(ticket not in self._waiting, f"store ticket {ticket} was given twice")
        self._waiting[ticket] = then

    def on_watch(self, path: str, callback: Watched) -> None:
        """Call `callback(event, now_ms)` at the next watch event of exactly this path, once."""
        self._watchers.setdefault(path, []).append(callback)

    def forget_watchers(self) -> None:
        """Drop every watcher: the session is gone, or the one who watched is."""
        self._watchers.clear()

    def on_session_change(self, callback: SessionChanged) -> None:
        """Call `callback(change, now_ms)` whenever the session changes, in order of asking."""
        self._session_listeners.append(callback)

    def reconnect(self) -> None:
        """Ask for a new session after the old one expired."""
        self._store.reconnect()

    def on_store(self, event: StoreEvent, now_ms: int) -> None:
        """Take one event of the store."""
        match event:
            case StoreAnswer():
                then = self._waiting.pop(event.ticket, None)
                invariant(then is not None, f"store answered unknown ticket {event.ticket}")
                if then is not None:
                    then(event, now_ms)
            case WatchEvent():
                for callback in self._watchers.pop(event.path, ()):
                    callback(event, now_ms)
            case SessionChange():
                for listener in self._session_listeners:
                    listener(event, now_ms)
            case _:
                assert_never(event)
