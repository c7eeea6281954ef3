"""The one heap of deadlines of a shard: sessions, rebalances, syncs, pending joins, expiry.

A deadline that moves away, as that of a session does with every heartbeat, costs a dictionary
entry; its place in the heap is corrected when its old moment comes.
"""

import heapq
from enum import Enum
from typing import NamedTuple


class Timed(Enum):
    """What is over when a deadline comes."""

    SESSION = "session"
    PENDING_JOIN = "pending join"
    INITIAL_DELAY = "initial delay"
    REBALANCE = "rebalance"
    SYNC = "sync"
    EXPIRY = "expiry"


class TimerKey(NamedTuple):
    """What has at most one deadline at a time."""

    what: Timed
    group_id: str = ""
    member_id: str = ""


class Timers:
    """Deadlines by key; they come due by moment, then by the order in which they were set."""

    __slots__ = ("_deadlines", "_heap", "_sequence")

    def __init__(self) -> None:
        self._deadlines: dict[TimerKey, tuple[int, int]] = {}
        """The moment, and the number of the heap entry that stands for the key."""
        self._heap: list[tuple[int, int, TimerKey]] = []
        self._sequence = 0

    def set(self, key: TimerKey, when_ms: int) -> None:
        """Make `when_ms` the deadline of the key, instead of the one it had."""
        known = self._deadlines.get(key)
        if known is not None and known[0] <= when_ms:
            # Its entry comes earlier; it is put where it belongs by then.
            self._deadlines[key] = (when_ms, known[1])
            return
        self._push(key, when_ms)

    def cancel(self, key: TimerKey) -> None:
        self._deadlines.pop(key, None)

    def clear(self) -> None:
        self._deadlines.clear()
        self._heap.clear()

    def is_set(self, key: TimerKey) -> bool:
        return key in self._deadlines

    def next_deadline_ms(self) -> int | None:
        """The earliest moment; None when nothing waits."""
        self._settle_head()
        return self._heap[0][0] if self._heap else None

    def take_due(self, now_ms: int) -> TimerKey | None:
        """The next key whose moment has come; its deadline is gone with that."""
        self._settle_head()
        if not self._heap or self._heap[0][0] > now_ms:
            return None
        _, _, key = heapq.heappop(self._heap)
        del self._deadlines[key]
        return key

    def _push(self, key: TimerKey, when_ms: int) -> None:
        self._sequence += 1
        self._deadlines[key] = (when_ms, self._sequence)
        heapq.heappush(self._heap, (when_ms, self._sequence, key))
        if len(self._heap) > 64 and len(self._heap) > 2 * len(self._deadlines):
            self._sweep()

    def _sweep(self) -> None:
        """Build the heap anew from what is still set, so that it stays bounded."""
        self._heap = [
            (when_ms, sequence, key) for key, (when_ms, sequence) in self._deadlines.items()
        ]
        heapq.heapify(self._heap)

    def _settle_head(self) -> None:
        """Drop entries that stand for nothing and move those that are too early."""
        heap = self._heap
        while heap:
            when_ms, sequence, key = heap[0]
            known = self._deadlines.get(key)
            if known is None or known[1] != sequence:
                heapq.heappop(heap)
            elif known[0] != when_ms:
                heapq.heapreplace(heap, (known[0], sequence, key))
            else:
                return

    def __len__(self) -> int:
        return len(self._deadlines)
