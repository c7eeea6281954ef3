"""Clients that wait for the metadata: released topic by topic, in time or out of it."""

from barnabas.broker.deadlines import Deadlines
from barnabas.broker.metadata_waits import MetadataWaits


class Fixture:
    def __init__(self) -> None:
        self.deadlines = Deadlines()
        self.waits = MetadataWaits(self.deadlines)
        self.done: set[str] = set()
        self.answers: list[tuple[tuple[str, ...], int]] = []

    def wait(self, *topics: str, timeout_ms: int = 100, now_ms: int = 0) -> None:
        self.waits.wait(
            topics,
            lambda topic: topic in self.done,
            timeout_ms,
            lambda unfinished, at: self.answers.append((unfinished, at)),
            now_ms,
        )


def test_what_is_done_is_not_waited_for():
    one = Fixture()
    one.done = {"a", "b"}
    one.wait("a", "b", now_ms=7)
    assert one.answers == [((), 7)]
    assert len(one.deadlines) == 0


def test_released_when_the_last_topic_is_done():
    one = Fixture()
    one.wait("a", "b")
    one.done.add("a")
    one.waits.note_updated(["b"], 1)
    one.waits.note_updated(["a"], 2)
    assert one.answers == []
    one.done.add("b")
    one.waits.note_updated(["c", "b"], 3)
    assert one.answers == [((), 3)]
    one.deadlines.run_due(1_000)
    assert len(one.answers) == 1
    assert len(one.waits) == 0


def test_time_is_over_for_the_rest():
    one = Fixture()
    one.wait("a", "b", "c")
    one.done.add("b")
    one.waits.note_updated(["b"], 1)
    one.deadlines.run_due(99)
    assert one.answers == []
    one.deadlines.run_due(100)
    assert one.answers == [(("a", "c"), 100)]
    one.waits.note_updated(["a", "c"], 101)
    assert len(one.answers) == 1
    assert len(one.waits) == 0


def test_two_wait_for_the_same():
    one = Fixture()
    one.wait("a")
    one.wait("a", "b")
    one.done.add("a")
    one.waits.note_updated(["a"], 5)
    assert one.answers == [((), 5)]
    assert len(one.waits) == 1


def test_no_more_than_so_many_wait():
    one = Fixture()
    for number in range(10_000):
        one.wait("a" if number % 2 else "b")
    assert one.answers == []
    one.wait("c", "a", now_ms=3)
    assert one.answers == [(("c", "a"), 3)]
    one.done.add("b")
    one.waits.note_updated(["b"], 4)
    assert len(one.waits) == 5_000
    one.wait("c")
    assert len(one.waits) == 5_001
