"""What clients' requests set going in the store: bounded in all, a slice per turn, each apart.

A request may name ten thousand topics. Each of them is some work, and others wait meanwhile: so
only so many are dealt with in one turn, those of all requests in rotation. A bug that is met by
one request's work ends its connection and nothing else, however late and from where it is called.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Final, ParamSpec, TypeVar

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker
    from barnabas.broker.connections import Request

P = ParamSpec("P")
T = TypeVar("T")

UNDER_WAY_MAX: Final = 20_000
"""Topics and partitions of all requests at once; two of the largest requests."""
SLICE_MAX: Final = 100
"""Topics, or rows of answers, dealt with in one turn."""


class Undertaking:
    """The work of one request: its share of the bound, and the edge that keeps its bugs to it."""

    __slots__ = ("_request", "_size", "_undertakings")

    def __init__(self, undertakings: Undertakings, request: Request | None, size: int) -> None:
        self._undertakings = undertakings
        self._request = request
        self._size = size

    def guard(self, call: Callable[P, None]) -> Callable[P, None]:
        """The call, to be made by a store, a deadline or a turn: a bug in it ends the request."""

        def guarded(*args: P.args, **kwargs: P.kwargs) -> None:
            try:
                call(*args, **kwargs)
            except Exception as bug:
                self._fail(bug)

        return guarded

    def _fail(self, bug: Exception) -> None:
        self.end()
        if self._request is None:
            raise bug
        broker = self._undertakings.broker
        broker.router.fail(self._request, bug, broker.now_ms)

    def end(self) -> None:
        """Nothing more is asked of the store: make room for others. Once, or again."""
        self._undertakings.note_ended(self._size)
        self._size = 0


class Undertakings:
    """All that is under way, and the line of what is to be done in the turns to come."""

    def __init__(self, broker: Broker) -> None:
        self.broker = broker
        self.under_way_max = UNDER_WAY_MAX
        self._under_way = 0
        self._line: deque[Iterator[Callable[[int], None]]] = deque()
        self._left = SLICE_MAX
        self._is_turn_awaited = False

    @property
    def room(self) -> int:
        """How many topics and partitions may still be set going."""
        return self.under_way_max - self._under_way

    def begin(self, request: Request | None, size: int) -> Undertaking | None:
        """Take up work of so many topics or partitions; None when too much is under way."""
        if size > self.room:
            return None
        self._under_way += size
        return Undertaking(self, request, size)

    def note_ended(self, size: int) -> None:
        self._under_way -= size

    def each(
        self, undertaking: Undertaking, items: Iterable[T], call: Callable[[T, int], None]
    ) -> None:
        """Make a call for each item, the first ones at once, the others in later turns."""
        guarded = undertaking.guard(call)

        def calls() -> Iterator[Callable[[int], None]]:
            for item in items:
                yield lambda now_ms, item=item: guarded(item, now_ms)

        self._line.append(calls())
        if not self._is_turn_awaited:
            self._is_turn_awaited = True
            self.broker.deadlines.at(self.broker.now_ms, self._on_turn)
        if len(self._line) == 1:
            self._advance()

    def _on_turn(self, now_ms: int) -> None:
        """Another turn has come, and another slice may be done."""
        self._left = SLICE_MAX
        self._is_turn_awaited = bool(self._line)
        if self._line:
            self.broker.deadlines.at(now_ms, self._on_turn)
            self._advance()

    def _advance(self) -> None:
        """One of each undertaking in turn, so that a small one waits for no large one."""
        while self._line and self._left:
            calls = self._line[0]
            call = next(calls, None)
            if call is None:
                self._line.popleft()
                continue
            self._line.rotate(-1)
            self._left -= 1
            call(self.broker.now_ms)
