"""Clients that wait until the controller told this broker what they asked for (C14, M10, D17)."""

from collections.abc import Callable, Iterable
from typing import Final

from barnabas.broker.deadlines import Deadline, Deadlines

WAITING_MAX: Final = 10_000
"""Above it nobody waits: the answer is that time is over."""

IsDone = Callable[[str], bool]
"""Whether the metadata shows what is waited for, by topic."""
Finished = Callable[[tuple[str, ...], int], None]
"""Takes the topics that were not done when time was over, and the time."""


class _Wait:
    """One client's wait for some topics."""

    __slots__ = ("deadline", "is_done", "open_topics", "then")

    def __init__(self, topics: Iterable[str], is_done: IsDone, then: Finished) -> None:
        self.open_topics = dict.fromkeys(topics)
        self.is_done = is_done
        self.then = then
        self.deadline: Deadline | None = None


class MetadataWaits:
    """Waits by the topics that they wait for."""

    def __init__(self, deadlines: Deadlines) -> None:
        self._deadlines = deadlines
        self._by_topic: dict[str, dict[_Wait, None]] = {}
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def wait(
        self,
        topics: Iterable[str],
        is_done: IsDone,
        timeout_ms: int,
        then: Finished,
        now_ms: int,
    ) -> None:
        """Call `then` once all topics are done or time is over; at once if nothing is open."""
        wait = _Wait([topic for topic in topics if not is_done(topic)], is_done, then)
        if not wait.open_topics or self._count >= WAITING_MAX:
            then(tuple(wait.open_topics), now_ms)
            return
        self._count += 1
        for topic in wait.open_topics:
            self._by_topic.setdefault(topic, {})[wait] = None
        wait.deadline = self._deadlines.at(
            now_ms + timeout_ms, lambda expired_ms: self._finish(wait, expired_ms)
        )

    def note_updated(self, topics: Iterable[str], now_ms: int) -> None:
        """The metadata of these topics has changed: see who may go."""
        for topic in topics:
            for wait in list(self._by_topic.get(topic, ())):
                if topic in wait.open_topics and wait.is_done(topic):
                    self._leave(wait, topic)
                    if not wait.open_topics:
                        self._finish(wait, now_ms)

    def _leave(self, wait: _Wait, topic: str) -> None:
        del wait.open_topics[topic]
        waiting = self._by_topic[topic]
        del waiting[wait]
        if not waiting:
            del self._by_topic[topic]

    def _finish(self, wait: _Wait, now_ms: int) -> None:
        unfinished = tuple(wait.open_topics)
        for topic in unfinished:
            self._leave(wait, topic)
        if wait.deadline is not None:
            wait.deadline.cancel()
        self._count -= 1
        wait.then(unfinished, now_ms)
