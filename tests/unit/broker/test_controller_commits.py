"""The controller's writes on their way to the store: in multis, one by one, or not at all."""

from typing import Any

from barnabas.broker.controller_commits import (
    BYTES_PER_MULTI_MAX,
    OPERATIONS_PER_MULTI_MAX,
    ControllerCommits,
    group_writes,
)
from barnabas.core.controller.effects import ConditionalWrite, StoreAnswered, Wanted
from barnabas.model.znode import (
    Create,
    GetChildren,
    GetData,
    SessionChange,
    SessionState,
    SetData,
    StoreError,
)
from tests.behaviours import behaviour
from tests.worlds.store_world import StoreWorld

EPOCH = "/controller_epoch"


class Fixture:
    def __init__(self) -> None:
        self.world = StoreWorld()
        self.world.do(Create(EPOCH, b"1"), Create("/t"))
        self.broker = self.world.add_broker(1)
        self.settled: list[StoreAnswered] = []
        self.watched: list[str] = []
        self.epochs_lost = 0
        self.commits = self.make(0)

    def make(self, version: int) -> ControllerCommits:
        return ControllerCommits(
            self.broker,
            version,
            on_watch=lambda event, _: self.watched.append(event.path),
            on_epoch_lost=self._lose,
        )

    def _lose(self, now_ms: int) -> None:
        self.epochs_lost += 1

    def write(self, *writes: ConditionalWrite) -> list[StoreError]:
        self.commits.ask(Wanted(writes=writes), lambda answer, _: self.settled.append(answer))
        self.world.run()
        return [result.error for result in self.settled[-1].writes] if self.settled else []

    @property
    def zxid(self) -> int:
        return self.world.ensemble.machine.last_zxid


def create(path: str, *more: Any) -> ConditionalWrite:
    return ConditionalWrite((Create(path), *more))


def test_many_writes_are_one_transaction():
    fixture = Fixture()
    before = fixture.zxid
    assert fixture.write(create("/t/a"), create("/t/b"), create("/t/b/c")) == [StoreError.OK] * 3
    assert fixture.zxid == before + 2, "one for the session, one for all writes"


@behaviour("P4")
def test_one_that_loses_costs_the_others_nothing():
    fixture = Fixture()
    fixture.world.do(Create("/t/b"))
    errors = fixture.write(create("/t/a"), create("/t/b"), create("/t/c"), create("/x/y"))
    assert errors == [StoreError.OK, StoreError.NODE_EXISTS, StoreError.OK, StoreError.NO_NODE]
    assert fixture.world.exists("/t/a")
    assert fixture.world.exists("/t/c")


def test_operations_of_one_write_hold_together():
    fixture = Fixture()
    errors = fixture.write(create("/t/a", Create("/t/a")), create("/t/b"))
    assert errors == [StoreError.NODE_EXISTS, StoreError.OK]
    assert not fixture.world.exists("/t/a")


@behaviour("N1", "R3")
def test_when_another_controller_was_elected_nothing_is_written_and_nothing_settled():
    fixture = Fixture()
    fixture.world.do(SetData(EPOCH, b"2"))
    assert fixture.write(create("/t/a"), create("/t/b")) == []
    assert fixture.epochs_lost == 1
    assert not fixture.world.exists("/t/a")


@behaviour("N1")
def test_after_its_end_a_controllership_hears_nothing():
    fixture = Fixture()
    fixture.commits.ask(Wanted(reads=(GetChildren("/t", watch=True),)), lambda *_: None)
    fixture.world.run()
    fixture.commits.ask(
        Wanted(writes=(create("/t/a"),)), lambda answer, _: fixture.settled.append(answer)
    )
    fixture.commits.close()
    fixture.world.run()
    assert (fixture.settled, fixture.watched, fixture.epochs_lost) == ([], [], 0)


def test_a_cut_link_loses_writes_and_repeats_reads():
    fixture = Fixture()
    fixture.world.run()
    fixture.broker.store.disconnect()
    assert fixture.write(create("/t/a"), create("/t/b")) == [StoreError.CONNECTION_LOSS] * 2
    fixture.settled.clear()
    fixture.commits.ask(
        Wanted(reads=(GetData(EPOCH), GetData("/no"))),
        lambda answer, _: fixture.settled.append(answer),
    )
    fixture.world.run()
    assert fixture.settled == []
    fixture.broker.store.restore()
    fixture.commits.note_session(SessionChange(SessionState.CONNECTED, 1), 0)
    fixture.world.run()
    (answer,) = fixture.settled
    assert [one.error for one in answer.reads] == [StoreError.OK, StoreError.NO_NODE]


def test_a_watch_is_told_once_however_often_the_path_was_read():
    fixture = Fixture()
    for _ in range(3):
        fixture.commits.ask(
            Wanted(reads=(GetChildren("/t", watch=True), GetData(EPOCH))), lambda *_: None
        )
    fixture.world.run()
    fixture.world.do(Create("/t/a"), SetData(EPOCH, b"9"))
    assert fixture.watched == ["/t"]


def test_many_reads_come_back_in_their_order():
    fixture = Fixture()
    fixture.world.do(*[Create(f"/t/{number}", str(number).encode()) for number in range(2_500)])
    reads = tuple(GetData(f"/t/{number}") for number in range(2_500))
    fixture.commits.ask(Wanted(reads=reads), lambda answer, _: fixture.settled.append(answer))
    fixture.world.run()
    assert [int(one.data or b"-1") for one in fixture.settled[0].reads] == list(range(2_500))


def test_a_multi_has_limits():
    small = [create(f"/t/{number}") for number in range(OPERATIONS_PER_MULTI_MAX + 1)]
    assert [len(group) for group in group_writes(small)] == [OPERATIONS_PER_MULTI_MAX, 1]
    large = ConditionalWrite((Create("/t/x", bytes(BYTES_PER_MULTI_MAX // 2)),))
    assert group_writes([large, large, large]) == [[0], [1], [2]]
    huge = ConditionalWrite((Create("/t/x", bytes(2 * BYTES_PER_MULTI_MAX)),))
    assert group_writes([huge, small[0]]) == [[0], [1]]
    pairs = [ConditionalWrite((Create("/t/a"), Create("/t/b")))] * OPERATIONS_PER_MULTI_MAX
    assert [len(group) for group in group_writes(pairs)] == [OPERATIONS_PER_MULTI_MAX // 2] * 2
