"""Requests that wait: produce for its replicas, fetch for records, each found by its partition.

Hot: compiled by mypyc where a compiler is there, interpreted otherwise.

A produce waits at an offset of each of its partitions, and a watermark that moves looks at no more
than it releases. A fetch waits at the end of what it may read; any advance of that end is what it
waits for, so that it touches nobody else either (with fetch.min.bytes above one an advance may be
too small: then it is looked at again). A deadline is set only for what is still waiting at the end
of the turn. Neither kind waits for a connection that is gone.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable
from typing import Final, Protocol

from barnabas.broker.connections import Connection, Request
from barnabas.broker.deadlines import Deadline, Deadlines
from barnabas.broker.router import Router
from barnabas.formats.wire.generated.produce import PartitionProduceResponse, ProduceResponse
from barnabas.model.error_codes import ErrorCode

PARKED_FETCHES_MAX: Final = 100_000
"""Above it a fetch is answered with what there is."""
PARKED_PRODUCES_MAX: Final = 100_000
"""Above it a produce that would wait is answered REQUEST_TIMED_OUT: it may or may not stay."""

PRODUCE_TIMEOUT_MS_MAX: Final = 900_000
"""A quarter of an hour, the longest that librdkafka lets a producer ask for."""

WHEN_WRITTEN: Final = -1
"""The offset to wait for when the leader's own write is enough (acks 0 and 1)."""

_NONE: Final = int(ErrorCode.NONE)
_TIMED_OUT: Final = int(ErrorCode.REQUEST_TIMED_OUT)


Replicated = Callable[[int, int], None]
"""Takes the error code of an append of this broker's own, and the time."""


class PendingProduce:
    """A produce whose answer is not final yet.

    What this broker itself appends is one as well, with nobody's request: `then` is called where
    a client would be answered.
    """

    __slots__ = (
        "acks",
        "deadline",
        "has_error",
        "request",
        "response",
        "then",
        "timeout_ms",
        "waiting",
        "waiting_count",
    )

    def __init__(
        self,
        request: Request | None,
        response: ProduceResponse,
        acks: int,
        timeout_ms: int,
        then: Replicated | None = None,
    ) -> None:
        self.request = request
        self.response = response
        self.then = then
        self.acks: int = acks
        self.timeout_ms: int = timeout_ms
        self.has_error: bool = False
        """Whether some part of the answer is an error, which may have to be explained."""
        self.waiting_count: int = 1
        """Partitions whose part of the answer is open, and one for the handler while it is at
        work; it is answered when none is left."""
        self.waiting: list[PartitionWait] | None = None
        """Where it is parked; None until the end of the turn in which it came."""
        self.deadline: Deadline | None = None

    @property
    def connection(self) -> Connection | None:
        """Whose it is; None when this broker itself appended it."""
        return None if self.request is None else self.request.connection


StagedBatch = tuple[int, PendingProduce, PartitionProduceResponse]
"""A batch taken in this turn: the offset to wait for, whose it is, and its part of the answer."""


class PartitionWait:
    """One partition of a parked produce: answered when the watermark reaches the offset."""

    __slots__ = ("answer", "is_done", "partition", "produce", "required_offset")

    def __init__(
        self,
        produce: PendingProduce,
        answer: PartitionProduceResponse,
        partition: WaitingRoom,
        required_offset: int,
    ) -> None:
        self.produce = produce
        self.answer = answer
        self.partition = partition
        self.required_offset: int = required_offset
        self.is_done = False


class ParkedFetch(Protocol):
    """A fetch that found too little; it stays in the rooms that it was put into."""

    @property
    def connection(self) -> Connection: ...

    def try_complete(self, now_ms: int) -> bool:
        """Answer if there is enough by now; True when it was answered."""
        ...

    def expire(self, now_ms: int) -> None:
        """Answer with what there is: its time is over."""
        ...


class ParkedFetchEntry:
    """A fetch among the parked ones, with all that must be undone when it leaves."""

    __slots__ = ("deadline", "fetch", "rooms")

    def __init__(self, fetch: ParkedFetch) -> None:
        self.fetch = fetch
        self.rooms: list[dict[ParkedFetchEntry, None]] = []
        self.deadline: Deadline | None = None


FetchRoom = dict[ParkedFetchEntry, None]


class ParkedDeletion(Protocol):
    """A DeleteRecords that waits until the followers' logs begin where the leader's does."""

    def note_log_start_moved(self, topic: str, index: int, now_ms: int) -> None:
        """A follower's log begins elsewhere now."""
        ...

    def dismiss(self, topic: str, index: int, error: int, now_ms: int) -> None:
        """It waits in vain for this partition."""
        ...


class WaitingRoom:
    """Who waits at one partition."""

    __slots__ = (
        "_sequence",
        "at_high_watermark",
        "at_log_end",
        "dead",
        "deletions",
        "produces",
        "this_turn",
    )

    def __init__(self) -> None:
        self.this_turn: list[StagedBatch] = []
        """Appended in this turn and not yet written, in order of appending."""
        self.produces: list[tuple[int, int, PartitionWait]] = []
        """A heap of what waits for followers, by offset."""
        self.dead: int = 0
        """Entries of the heap whose produce was answered already."""
        self._sequence: int = 0
        self.at_log_end: FetchRoom = {}
        """Followers."""
        self.at_high_watermark: FetchRoom = {}
        """Consumers."""
        self.deletions: dict[ParkedDeletion, None] = {}

    def park(self, wait: PartitionWait) -> None:
        """Wait for the watermark to reach the offset."""
        self._sequence += 1
        heapq.heappush(self.produces, (wait.required_offset, self._sequence, wait))

    def take_reached(self, high_watermark: int) -> list[PartitionWait]:
        """Those whose offset the watermark has reached, and nobody else."""
        reached: list[PartitionWait] = []
        heap = self.produces
        while heap and heap[0][0] <= high_watermark:
            wait = heapq.heappop(heap)[2]
            if wait.is_done:
                self.dead -= 1
            else:
                reached.append(wait)
        return reached

    def take_all(self) -> list[PartitionWait]:
        """Everyone who waits for this partition: it cannot keep its promise any more."""
        waits = [
            PartitionWait(produce, answer, self, required_offset)
            for required_offset, produce, answer in self.this_turn
        ]
        self.this_turn = []
        waits.extend(entry[2] for entry in sorted(self.produces) if not entry[2].is_done)
        self.produces = []
        self.dead = 0
        return waits

    def note_dead(self) -> None:
        """An entry of the heap was answered elsewhere; sweep when half of them were."""
        self.dead += 1
        if self.dead > 32 and self.dead * 2 > len(self.produces):
            self.produces = [entry for entry in self.produces if not entry[2].is_done]
            heapq.heapify(self.produces)
            self.dead = 0

    def is_empty(self) -> bool:
        return not (
            self.this_turn
            or self.produces
            or self.at_log_end
            or self.at_high_watermark
            or self.deletions
        )


Answer = Callable[[PendingProduce, int], None]


class Purgatory:
    """All that waits in one broker.

    A produce that went well is answered through the router, any other one by `finish_produce`;
    fetches answer themselves.
    """

    def __init__(self, deadlines: Deadlines, router: Router, finish_produce: Answer) -> None:
        self.parked_fetches_max: int = PARKED_FETCHES_MAX
        self.parked_produces_max: int = PARKED_PRODUCES_MAX
        self._deadlines = deadlines
        self._router = router
        self._finish_produce = finish_produce
        self._parked_produces: int = 0
        self._produces_of: dict[Connection | None, dict[PendingProduce, None]] = {}
        self._parked_fetches: dict[ParkedFetchEntry, None] = {}
        self._by_connection: dict[Connection, dict[ParkedFetchEntry, None]] = {}

    # -- produce -----------------------------------------------------------------------------

    def settle(self, wait: PartitionWait, error: int, now_ms: int) -> None:
        """A parked partition's part of an answer is final."""
        if not wait.is_done:
            wait.is_done = True
            self.settle_answer(wait.produce, wait.answer, error, now_ms)

    def settle_answer(
        self, produce: PendingProduce, answer: PartitionProduceResponse, error: int, now_ms: int
    ) -> None:
        """One partition's part of an answer is final; the answer leaves with its last part."""
        if error != _NONE:
            answer.error_code = error
            produce.has_error = True
        produce.waiting_count -= 1
        if produce.waiting_count == 0:
            if produce.deadline is not None:
                self._unpark_produce(produce, produce.deadline)
            request = produce.request
            if request is None:
                self._finish_produce(produce, now_ms)
            elif produce.has_error or produce.acks == 0:
                try:
                    self._finish_produce(produce, now_ms)
                except Exception as bug:
                    # Whoever moved the watermark must not suffer for this one.
                    self._router.fail(request, bug, now_ms)
            else:
                self._router.answer(request, produce.response)

    def park_produce(self, room: WaitingRoom, staged: StagedBatch, now_ms: int) -> None:
        """It is written here; wait for the followers until the produce's time is over."""
        required_offset, produce, answer = staged
        waiting = produce.waiting
        if waiting is None:
            connection = produce.connection
            if connection is not None and connection.is_closed:
                return
            if produce.timeout_ms <= 0 or self._parked_produces >= self.parked_produces_max:
                self.settle_answer(produce, answer, _TIMED_OUT, now_ms)
                return
            waiting = produce.waiting = []
            self._parked_produces += 1
            same_connection = self._produces_of.get(connection)
            if same_connection is None:
                self._produces_of[connection] = {produce: None}
            else:
                same_connection[produce] = None
            timeout_ms = min(produce.timeout_ms, PRODUCE_TIMEOUT_MS_MAX)
            produce.deadline = self._deadlines.at(
                now_ms + timeout_ms, _ProduceExpiry(self, produce)
            )
        wait = PartitionWait(produce, answer, room, required_offset)
        waiting.append(wait)
        room.park(wait)

    def _unpark_produce(self, produce: PendingProduce, deadline: Deadline) -> None:
        deadline.cancel()
        produce.deadline = None
        self._parked_produces -= 1
        connection = produce.connection
        same_connection = self._produces_of[connection]
        del same_connection[produce]
        if not same_connection:
            del self._produces_of[connection]

    def expire_produce(self, produce: PendingProduce, now_ms: int) -> None:
        """Time is over: what is still open was not replicated in time."""
        for wait in produce.waiting or ():
            if not wait.is_done:
                wait.partition.note_dead()
                self.settle(wait, _TIMED_OUT, now_ms)

    @property
    def parked_produce_count(self) -> int:
        return self._parked_produces

    # -- fetch -------------------------------------------------------------------------------

    def park_fetch(
        self, fetch: ParkedFetch, rooms: list[FetchRoom], when_ms: int
    ) -> ParkedFetchEntry | None:
        """Wait in all rooms until one of them moves; None when too many wait already."""
        if len(self._parked_fetches) >= self.parked_fetches_max:
            return None
        entry = ParkedFetchEntry(fetch)
        for room in rooms:
            room[entry] = None
        entry.rooms = rooms
        self._parked_fetches[entry] = None
        connection = fetch.connection
        same_connection = self._by_connection.get(connection)
        if same_connection is None:
            self._by_connection[connection] = {entry: None}
        else:
            same_connection[entry] = None
        entry.deadline = self._deadlines.at(when_ms, _FetchExpiry(self, entry))
        return entry

    def unpark(self, entry: ParkedFetchEntry) -> None:
        """Take a fetch out of all its rooms."""
        if entry not in self._parked_fetches:
            return
        del self._parked_fetches[entry]
        for room in entry.rooms:
            room.pop(entry, None)
        entry.rooms = []
        if entry.deadline is not None:
            entry.deadline.cancel()
        same_connection = self._by_connection[entry.fetch.connection]
        del same_connection[entry]
        if not same_connection:
            del self._by_connection[entry.fetch.connection]

    def complete(self, entries: list[ParkedFetchEntry], now_ms: int) -> None:
        """Look at fetches one of whose rooms has moved; those with enough are answered."""
        for entry in entries:
            if entry in self._parked_fetches and entry.fetch.try_complete(now_ms):
                self.unpark(entry)

    def expire_fetch(self, entry: ParkedFetchEntry, now_ms: int) -> None:
        """Time is over: answer with what there is."""
        if entry in self._parked_fetches:
            self.unpark(entry)
            entry.fetch.expire(now_ms)

    def note_closed(self, connection: Connection) -> None:
        """Nobody waits on a connection that is gone."""
        for entry in list(self._by_connection.get(connection, ())):
            self.unpark(entry)
        for produce in list(self._produces_of.get(connection, ())):
            if produce.deadline is not None:
                self._unpark_produce(produce, produce.deadline)
            for wait in produce.waiting or ():
                if not wait.is_done:
                    wait.is_done = True
                    wait.partition.note_dead()

    @property
    def parked_fetch_count(self) -> int:
        return len(self._parked_fetches)


class _ProduceExpiry:
    """What the deadline of a parked produce calls."""

    __slots__ = ("_produce", "_purgatory")

    def __init__(self, purgatory: Purgatory, produce: PendingProduce) -> None:
        self._purgatory = purgatory
        self._produce = produce

    def __call__(self, now_ms: int) -> None:
        self._purgatory.expire_produce(self._produce, now_ms)


class _FetchExpiry:
    """What the deadline of a parked fetch calls."""

    __slots__ = ("_entry", "_purgatory")

    def __init__(self, purgatory: Purgatory, entry: ParkedFetchEntry) -> None:
        self._purgatory = purgatory
        self._entry = entry

    def __call__(self, now_ms: int) -> None:
        self._purgatory.expire_fetch(self._entry, now_ms)
