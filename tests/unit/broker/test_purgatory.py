"""Parked requests: released by what they wait for, by time, by a closed connection."""

import pytest

from barnabas.broker.connections import Connection, Request
from barnabas.broker.deadlines import Deadlines
from barnabas.broker.ports import ConnectionId
from barnabas.broker.purgatory import (
    PRODUCE_TIMEOUT_MS_MAX,
    WHEN_WRITTEN,
    FetchRoom,
    ParkedFetchEntry,
    PartitionWait,
    PendingProduce,
    Purgatory,
    WaitingRoom,
)
from barnabas.formats.wire.generated.produce import (
    PartitionProduceResponse,
    ProduceResponse,
    TopicProduceResponse,
)
from barnabas.model.error_codes import ErrorCode
from tests.behaviours import behaviour

pytestmark = pytest.mark.interpreted
"""A router of its own stands in for the typed one, which compiled modules do not take."""


def connection(number: int = 1) -> Connection:
    return Connection(ConnectionId(number), "PLAINTEXT", "client", None)  # type: ignore[arg-type]


class Noting:
    """Stands for the router, which answers what went well."""

    def __init__(self) -> None:
        self.answered: list[ProduceResponse] = []

    def answer(self, request: Request, response: ProduceResponse) -> None:
        self.answered.append(response)


class Producing:
    """A purgatory and the produce answers that left it."""

    def __init__(self) -> None:
        self.deadlines = Deadlines()
        self._router = Noting()
        self.purgatory = Purgatory(
            self.deadlines,
            self._router,  # type: ignore[arg-type]
            lambda produce, now_ms: self._router.answered.append(produce.response),
        )

    @property
    def answered(self) -> list[ProduceResponse]:
        """What left, well or not, in order."""
        return self._router.answered

    def produce(self, *required: tuple[WaitingRoom, int], timeout_ms: int = 100) -> PendingProduce:
        """Take a batch per room and write it; what waits for followers is parked at 0 ms."""
        answers = [PartitionProduceResponse(index=i) for i, _ in enumerate(required)]
        response = ProduceResponse(
            responses=[TopicProduceResponse(name="t", partition_responses=answers)]
        )
        request = Request(connection(), 0, 0, 9, 1, None, 10)
        pending = PendingProduce(request, response, -1, timeout_ms)
        pending.waiting_count = len(required)
        for (room, offset), answer in zip(required, answers, strict=True):
            if offset == WHEN_WRITTEN:
                self.purgatory.settle_answer(pending, answer, 0, 0)
            else:
                self.purgatory.park_produce(room, (offset, pending, answer), 0)
        return pending

    def advance(self, room: WaitingRoom, high_watermark: int, now_ms: int = 5) -> int:
        """The number of waits that were looked at."""
        reached = room.take_reached(high_watermark)
        for wait in reached:
            self.purgatory.settle(wait, 0, now_ms)
        return len(reached)


def errors(pending: PendingProduce) -> list[int]:
    return [p.error_code for t in pending.response.responses for p in t.partition_responses]


def test_a_write_alone_is_enough_without_acks_from_all() -> None:
    world = Producing()
    pending = world.produce((WaitingRoom(), WHEN_WRITTEN))
    assert world.answered == [pending.response]
    assert world.deadlines.next_ms() is None


@behaviour("N7")
def test_an_advance_touches_only_what_it_releases() -> None:
    world, room = Producing(), WaitingRoom()
    first, second = world.produce((room, 10)), world.produce((room, 20))
    assert world.advance(room, 9) == 0
    assert world.advance(room, 10) == 1
    assert world.answered == [first.response]
    assert world.advance(room, 25) == 1
    assert world.answered == [first.response, second.response]
    assert room.is_empty()


def test_the_answer_leaves_with_its_last_partition() -> None:
    world, one, two = Producing(), WaitingRoom(), WaitingRoom()
    pending = world.produce((one, 5), (two, 7))
    world.advance(one, 5)
    assert world.answered == []
    world.advance(two, 7)
    assert world.answered == [pending.response]
    assert errors(pending) == [0, 0]


def test_one_that_was_released_leaves_no_deadline_behind() -> None:
    world, room = Producing(), WaitingRoom()
    world.produce((room, 5))
    assert world.deadlines.next_ms() == 100
    world.advance(room, 5)
    assert world.deadlines.next_ms() is None
    assert world.purgatory.parked_produce_count == 0


def test_time_is_over_for_the_partitions_that_are_open() -> None:
    world, one, two = Producing(), WaitingRoom(), WaitingRoom()
    pending = world.produce((one, 5), (two, 7))
    world.advance(one, 5)
    world.deadlines.run_due(100)
    assert errors(pending) == [0, ErrorCode.REQUEST_TIMED_OUT]
    assert world.answered == [pending.response]
    assert world.advance(two, 7) == 0


def test_no_time_to_wait_is_a_timeout_at_once() -> None:
    world = Producing()
    pending = world.produce((WaitingRoom(), 5), timeout_ms=0)
    assert errors(pending) == [ErrorCode.REQUEST_TIMED_OUT]
    assert len(world.answered) == 1


def test_answered_entries_do_not_pile_up_behind_a_watermark_that_stands_still() -> None:
    world, room = Producing(), WaitingRoom()
    for n in range(1000):
        world.produce((room, 10 + n), timeout_ms=1)
        world.deadlines.run_due(1)
    assert len(room.produces) <= 65


def test_all_who_wait_at_a_partition_are_told_when_it_is_lost() -> None:
    world, room = Producing(), WaitingRoom()
    late, early = world.produce((room, 20)), world.produce((room, 10))
    waits = room.take_all()
    assert [wait.required_offset for wait in waits] == [10, 20]
    for wait in waits:
        world.purgatory.settle(wait, ErrorCode.NOT_LEADER_OR_FOLLOWER, 7)
    assert errors(early) == errors(late) == [ErrorCode.NOT_LEADER_OR_FOLLOWER]
    assert room.is_empty()


def test_a_wait_is_settled_once() -> None:
    world, room = Producing(), WaitingRoom()
    pending = world.produce((room, 10), (WaitingRoom(), 5))
    wait = room.take_reached(10)[0]
    world.purgatory.settle(wait, 0, 5)
    world.purgatory.settle(wait, 6, 5)
    assert errors(pending) == [0, 0]
    assert world.answered == []


def test_too_many_parked_produces_are_not_parked() -> None:
    world, room = Producing(), WaitingRoom()
    world.purgatory.parked_produces_max = 1
    world.produce((room, 10))
    assert errors(world.produce((room, 11))) == [ErrorCode.REQUEST_TIMED_OUT]


def test_a_produce_does_not_outlive_its_connection() -> None:
    world, one, two = Producing(), WaitingRoom(), WaitingRoom()
    gone = world.produce((one, 5), (two, 7), timeout_ms=2**31 - 1)
    stays = world.produce((one, 5))
    world.advance(two, 7)
    world.purgatory.note_closed(gone.request.connection)
    assert world.purgatory.parked_produce_count == 1
    assert world.deadlines.next_ms() == 100
    world.advance(one, 5)
    assert world.answered == [stays.response]
    assert world.purgatory.parked_produce_count == 0
    assert one.dead == two.dead == 0


def test_a_produce_whose_connection_is_closed_in_its_turn_is_not_parked() -> None:
    world, room = Producing(), WaitingRoom()
    pending = world.produce((room, WHEN_WRITTEN))
    pending.request.connection.is_closed = True
    world.purgatory.park_produce(room, (5, pending, PartitionProduceResponse(index=0)), 0)
    assert (world.purgatory.parked_produce_count, room.produces) == (0, [])


def test_no_produce_waits_for_longer_than_a_quarter_of_an_hour() -> None:
    world = Producing()
    world.produce((WaitingRoom(), 5), timeout_ms=2**31 - 1)
    assert world.deadlines.next_ms() == PRODUCE_TIMEOUT_MS_MAX


def test_a_bug_in_an_answer_stays_with_its_request() -> None:
    deadlines = Deadlines()
    failed: list[Request] = []
    router = Noting()
    router.fail = lambda request, bug, now_ms: failed.append(request)  # type: ignore[attr-defined]

    def broken(produce: PendingProduce, now_ms: int) -> None:
        raise KeyError("bug")

    world, room = Producing(), WaitingRoom()
    world.purgatory = Purgatory(deadlines, router, broken)  # type: ignore[arg-type]
    pending = world.produce((room, 5))
    deadlines.run_due(1000)
    assert failed == [pending.request]


class Fetch:
    """A parked fetch that has enough once it is told so."""

    def __init__(self, of: Connection | None = None) -> None:
        self.connection = of or connection()
        self.has_enough = False
        self.looked_at = 0
        self.expired_ms = -1

    def try_complete(self, now_ms: int) -> bool:
        self.looked_at += 1
        return self.has_enough

    def expire(self, now_ms: int) -> None:
        self.expired_ms = now_ms


class Fetching:
    def __init__(self) -> None:
        self.deadlines = Deadlines()
        self.purgatory = Purgatory(self.deadlines, Noting(), lambda produce, now_ms: None)  # type: ignore[arg-type]

    def park(self, fetch: Fetch, *rooms: FetchRoom, when_ms: int = 500) -> ParkedFetchEntry:
        entry = self.purgatory.park_fetch(fetch, list(rooms), when_ms)
        assert entry is not None
        return entry


def test_a_fetch_leaves_all_its_rooms_when_one_of_them_moves() -> None:
    world, one, two = Fetching(), WaitingRoom(), WaitingRoom()
    fetch = Fetch()
    world.park(fetch, one.at_log_end, two.at_high_watermark)
    fetch.has_enough = True
    world.purgatory.complete(list(two.at_high_watermark), 5)
    assert one.is_empty()
    assert two.is_empty()
    assert world.purgatory.parked_fetch_count == 0
    assert world.deadlines.next_ms() is None


def test_a_fetch_that_wants_more_stays() -> None:
    world, room = Fetching(), WaitingRoom()
    fetch = Fetch()
    entry = world.park(fetch, room.at_high_watermark)
    world.purgatory.complete([entry], 5)
    assert fetch.looked_at == 1
    assert not room.is_empty()


def test_a_fetch_is_answered_when_its_time_is_over() -> None:
    world, room = Fetching(), WaitingRoom()
    fetch = Fetch()
    world.park(fetch, room.at_high_watermark)
    world.deadlines.run_due(499)
    assert fetch.expired_ms == -1
    world.deadlines.run_due(500)
    assert fetch.expired_ms == 500
    assert room.is_empty()


def test_nothing_waits_for_a_connection_that_is_gone() -> None:
    world, room = Fetching(), WaitingRoom()
    gone, there = connection(1), connection(2)
    world.park(Fetch(gone), room.at_log_end)
    world.park(Fetch(gone), room.at_log_end)
    stays = world.park(Fetch(there), room.at_log_end)
    world.purgatory.note_closed(gone)
    assert list(room.at_log_end) == [stays]
    world.purgatory.note_closed(gone)
    assert world.purgatory.parked_fetch_count == 1


def test_a_fetch_that_left_is_not_looked_at_again() -> None:
    world, room = Fetching(), WaitingRoom()
    fetch = Fetch()
    entry = world.park(fetch, room.at_log_end)
    world.purgatory.unpark(entry)
    world.purgatory.complete([entry], 5)
    world.purgatory.expire_fetch(entry, 5)
    assert (fetch.looked_at, fetch.expired_ms) == (0, -1)


def test_too_many_parked_fetches_are_not_parked() -> None:
    world, room = Fetching(), WaitingRoom()
    world.purgatory.parked_fetches_max = 1
    world.park(Fetch(), room.at_log_end)
    assert world.purgatory.park_fetch(Fetch(), [room.at_log_end], 5) is None


def test_a_produce_is_not_answered_while_its_handler_is_at_work() -> None:
    world = Producing()
    request = Request(connection(), 0, 0, 9, 1, None, 10)
    pending = PendingProduce(request, ProduceResponse(), -1, 100)
    pending.waiting_count += 1
    world.purgatory.settle_answer(pending, PartitionProduceResponse(), 56, 1)
    assert world.answered == []


def test_waits_of_one_offset_are_released_in_the_order_of_coming() -> None:
    room = WaitingRoom()
    request = Request(connection(), 0, 0, 9, 1, None, 10)
    produce = PendingProduce(request, ProduceResponse(), -1, 1)
    waits = [PartitionWait(produce, PartitionProduceResponse(), room, 4) for _ in range(5)]
    for wait in waits:
        room.park(wait)
    assert room.take_reached(4) == waits
