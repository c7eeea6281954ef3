"""The one deadline heap: everything in a broker that waits for a moment waits here."""

import heapq
from collections.abc import Callable


class Deadline:
    """A call that will be made at a moment unless it is cancelled before."""

    __slots__ = ("_callback", "_deadlines", "when_ms")

    def __init__(
        self, deadlines: "Deadlines", when_ms: int, callback: Callable[[int], None]
    ) -> None:
        self._deadlines = deadlines
        self.when_ms = when_ms
        self._callback: Callable[[int], None] | None = callback

    @property
    def is_pending(self) -> bool:
        return self._callback is not None

    def cancel(self) -> None:
        """Forget the call; its place in the heap is swept later."""
        if self._callback is not None:
            self._callback = None
            self._deadlines.note_cancelled()

    def take(self) -> Callable[[int], None] | None:
        """The call to make, once."""
        callback, self._callback = self._callback, None
        return callback


class Deadlines:
    """Calls ordered by moment, then by the order in which they were asked for."""

    __slots__ = ("_cancelled", "_heap", "_sequence")

    def __init__(self) -> None:
        self._heap: list[tuple[int, int, Deadline]] = []
        self._sequence = 0
        self._cancelled = 0

    def at(self, when_ms: int, callback: Callable[[int], None]) -> Deadline:
        """Call `callback(now_ms)` on the first tick at or after `when_ms`."""
        deadline = Deadline(self, when_ms, callback)
        self._sequence += 1
        heapq.heappush(self._heap, (when_ms, self._sequence, deadline))
        return deadline

    def note_cancelled(self) -> None:
        """Sweep the heap once more than half of it is dead, so that it stays bounded."""
        self._cancelled += 1
        if self._cancelled > 64 and self._cancelled * 2 > len(self._heap):
            self._heap = [entry for entry in self._heap if entry[2].is_pending]
            heapq.heapify(self._heap)
            self._cancelled = 0

    def next_ms(self) -> int | None:
        """The moment of the earliest call; None when nothing waits."""
        heap = self._heap
        while heap and not heap[0][2].is_pending:
            heapq.heappop(heap)
            self._cancelled = max(0, self._cancelled - 1)
        return heap[0][0] if heap else None

    def run_due(self, now_ms: int) -> None:
        """Make every call that is due; calls made due by these wait for the next tick."""
        last_sequence = self._sequence
        kept: list[tuple[int, int, Deadline]] = []
        while self._heap and self._heap[0][0] <= now_ms:
            entry = heapq.heappop(self._heap)
            if entry[1] > last_sequence:
                kept.append(entry)
                continue
            callback = entry[2].take()
            if callback is None:
                self._cancelled = max(0, self._cancelled - 1)
            else:
                callback(now_ms)
        for entry in kept:
            heapq.heappush(self._heap, entry)

    def __len__(self) -> int:
        return len(self._heap) - self._cancelled
