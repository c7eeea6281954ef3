"""Sessions: who may own ephemeral nodes, and until when it need not be heard of."""

import heapq
from collections.abc import Iterable

from barnabas.model.invariant import invariant
from barnabas.zookeeper.journal import SessionOpened

SESSIONS_MAX = 10_000


class Sessions:
    """The open sessions and their deadlines; ids only grow, so none is given twice."""

    def __init__(
        self, last_session_id: int, sessions: Iterable[SessionOpened], now_ms: int
    ) -> None:
        self._last_session_id = last_session_id
        self._timeouts: dict[int, int] = {}
        self._deadlines: dict[int, int] = {}
        self._heap: list[tuple[int, int]] = []
        """One (deadline, session) for each open session, its deadline possibly too early: touching
        a session costs no more than a dictionary entry."""
        for session in sessions:
            self._admit(session.session_id, session.timeout_ms, now_ms)

    def __len__(self) -> int:
        return len(self._timeouts)

    def __contains__(self, session_id: int) -> bool:
        return session_id in self._timeouts

    @property
    def last_session_id(self) -> int:
        return self._last_session_id

    @property
    def is_full(self) -> bool:
        return len(self._timeouts) >= SESSIONS_MAX

    def open_ids(self) -> tuple[int, ...]:
        """The open sessions, oldest first."""
        return tuple(sorted(self._timeouts))

    def timeout_ms(self, session_id: int) -> int:
        return self._timeouts[session_id]

    def open(self, timeout_ms: int, now_ms: int) -> int:
        """A new session's id."""
        invariant(not self.is_full, f"more than {SESSIONS_MAX} sessions")
        self._last_session_id += 1
        self._admit(self._last_session_id, timeout_ms, now_ms)
        return self._last_session_id

    def touch(self, session_id: int, now_ms: int) -> None:
        """The session was heard of: its timeout starts again."""
        if session_id in self._timeouts:
            deadline_ms = now_ms + self._timeouts[session_id]
            self._deadlines[session_id] = max(self._deadlines[session_id], deadline_ms)

    def close(self, session_id: int) -> None:
        """Forget an open session."""
        del self._timeouts[session_id]
        del self._deadlines[session_id]

    def next_deadline_ms(self) -> int | None:
        """When the first session may expire; None while there is none."""
        while self._heap:
            deadline_ms, session_id = self._heap[0]
            actual_ms = self._deadlines.get(session_id)
            if actual_ms == deadline_ms:
                return deadline_ms
            heapq.heappop(self._heap)
            if actual_ms is not None:
                heapq.heappush(self._heap, (actual_ms, session_id))
        return None

    def overdue(self, now_ms: int) -> list[int]:
        """Sessions not heard of for their timeout, the longest silent first; still open."""
        silent = [(due, session) for session, due in self._deadlines.items() if due <= now_ms]
        return [session for _, session in sorted(silent)]

    def _admit(self, session_id: int, timeout_ms: int, now_ms: int) -> None:
        self._timeouts[session_id] = timeout_ms
        self._deadlines[session_id] = now_ms + timeout_ms
        heapq.heappush(self._heap, (now_ms + timeout_ms, session_id))
