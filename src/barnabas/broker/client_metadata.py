"""What clients ask of the store: so much at once, more in line, and never ahead of the controller.

One request may name a quarter of a million topics. The store takes a few hundred of its operations
at a time, so that whatever the controller submits is behind those alone; the line has an end, and
who finds it full is answered as when the store is away.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from barnabas.model.znode import Operation, Outcome, StoreAnswer, StoreError

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker
    from barnabas.broker.metadata_session import Answered

UNDER_WAY_MAX: Final = 500
"""Operations at the store, counted singly; a request with more than these goes alone."""
WAITING_MAX: Final = 300_000
"""Operations in line: those of the largest request there can be fit."""

_NO_TICKET: Final = 0


class _Waiting(NamedTuple):
    operations: Sequence[Operation]
    then: Answered
    is_multi: bool


class ClientMetadata:
    """The clients' way to the broker's session with the store."""

    def __init__(
        self,
        broker: Broker,
        under_way_max: int = UNDER_WAY_MAX,
        waiting_max: int = WAITING_MAX,
    ) -> None:
        self._broker = broker
        self._under_way_max = under_way_max
        self._waiting_max = waiting_max
        self._line: deque[_Waiting] = deque()
        self._under_way = 0
        self._waiting = 0
        """Operations, not requests, as in the limits."""

    def submit(
        self, operations: Sequence[Operation], then: Answered, *, is_multi: bool = False
    ) -> None:
        """As `MetadataSession.submit`; `then` is called at once when there is no room."""
        asked = _Waiting(operations, then, is_multi)
        if not self._line and self._has_room_for(asked):
            self._hand_over(asked)
        elif self._waiting + len(operations) <= self._waiting_max:
            self._waiting += len(operations)
            self._line.append(asked)
        else:
            lost = (Outcome(StoreError.CONNECTION_LOSS),) * len(operations)
            then(StoreAnswer(_NO_TICKET, lost), self._broker.now_ms)

    def _has_room_for(self, asked: _Waiting) -> bool:
        return (
            self._under_way == 0 or self._under_way + len(asked.operations) <= self._under_way_max
        )

    def _hand_over(self, asked: _Waiting) -> None:
        count = len(asked.operations)
        self._under_way += count

        def on_answer(answer: StoreAnswer, now_ms: int) -> None:
            self._under_way -= count
            while self._line and self._has_room_for(self._line[0]):
                following = self._line.popleft()
                self._waiting -= len(following.operations)
                self._hand_over(following)
            asked.then(answer, now_ms)

        self._broker.metadata.submit(asked.operations, on_answer, is_multi=asked.is_multi)
