"""One-shot watches: who wants to be told of what, and who is told when it happens.

A node has two lists of watchers, as in ZooKeeper: of its data (set by getData and exists) and of
its children (set by getChildren). A session stands in a list once, however often it asked.
"""

from typing import NamedTuple

from barnabas.model.znode import WatchEvent, WatchKind
from barnabas.zookeeper.journal import ROOT, parent_of

WATCHES_MAX = 1_000_000
"""Over all sessions; a controller keeps a handful and one for every topic."""


class FiredWatch(NamedTuple):
    """A watch that is spent, and the session to tell."""

    session_id: int
    event: WatchEvent


class _Watch(NamedTuple):
    on_children: bool
    path: str


class Watches:
    """The watches of all sessions."""

    def __init__(self) -> None:
        self._data: dict[str, dict[int, None]] = {}
        """Sessions by path, in the order they asked; a path nobody watches has no entry."""
        self._children: dict[str, dict[int, None]] = {}
        self._by_session: dict[int, dict[_Watch, None]] = {}
        self._count = 0

    def __len__(self) -> int:
        return self._count

    @property
    def is_full(self) -> bool:
        return self._count >= WATCHES_MAX

    def watch_data(self, session_id: int, path: str) -> None:
        """Be told of the node's creation, change or removal."""
        self._add(session_id, _Watch(False, path))

    def watch_children(self, session_id: int, path: str) -> None:
        """Be told of a change among the node's children, or its removal."""
        self._add(session_id, _Watch(True, path))

    def forget_session(self, session_id: int) -> None:
        """Drop all watches of a session that ended."""
        for watch in self._by_session.pop(session_id, {}):
            watchers = self._children if watch.on_children else self._data
            group = watchers[watch.path]
            del group[session_id]
            if not group:
                del watchers[watch.path]
            self._count -= 1

    def fire(self, kind: WatchKind, path: str) -> list[FiredWatch]:
        """Spend the watches that see this happen to a node, itself first, then its parent.

        Who watches both the data and the children of a node is told of its removal once.
        """
        told = self._take(False, path)
        if kind is WatchKind.DELETED:
            told.update(self._take(True, path))
        event = WatchEvent(kind, path)
        fired = [FiredWatch(session_id, event) for session_id in told]
        if kind is not WatchKind.DATA_CHANGED and path != ROOT:
            parent = parent_of(path)
            event = WatchEvent(WatchKind.CHILDREN_CHANGED, parent)
            fired.extend(FiredWatch(session_id, event) for session_id in self._take(True, parent))
        return fired

    def _add(self, session_id: int, watch: _Watch) -> None:
        watchers = self._children if watch.on_children else self._data
        group = watchers.setdefault(watch.path, {})
        if session_id not in group:
            group[session_id] = None
            self._by_session.setdefault(session_id, {})[watch] = None
            self._count += 1

    def _take(self, on_children: bool, path: str) -> dict[int, None]:
        watchers = self._children if on_children else self._data
        group = watchers.pop(path, {})
        watch = _Watch(on_children, path)
        for session_id in group:
            watches = self._by_session[session_id]
            del watches[watch]
            if not watches:
                del self._by_session[session_id]
        self._count -= len(group)
        return group
