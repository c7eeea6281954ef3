"""Deadlines of a shard: by moment, one for each key, moved without being made anew."""

from barnabas.core.coordinator.timers import Timed, TimerKey, Timers


def key(name: str) -> TimerKey:
    return TimerKey(Timed.SESSION, "g", name)


def taken(timers: Timers, now_ms: int) -> list[str]:
    names: list[str] = []
    while (due := timers.take_due(now_ms)) is not None:
        names.append(due.member_id)
    return names


def test_deadlines_come_by_moment_and_then_in_the_order_of_setting():
    timers = Timers()
    for name, when_ms in (("c", 5), ("a", 3), ("b", 5)):
        timers.set(key(name), when_ms)
    assert timers.next_deadline_ms() == 3
    assert taken(timers, 2) == []
    assert taken(timers, 5) == ["a", "c", "b"]
    assert timers.next_deadline_ms() is None


def test_a_deadline_moves_in_both_directions():
    timers = Timers()
    timers.set(key("a"), 10)
    timers.set(key("b"), 20)
    timers.set(key("a"), 30)
    assert timers.next_deadline_ms() == 20
    timers.set(key("b"), 5)
    assert taken(timers, 29) == ["b"]
    assert taken(timers, 30) == ["a"]
    assert len(timers) == 0


def test_a_cancelled_deadline_does_not_come_and_can_be_set_again():
    timers = Timers()
    timers.set(key("a"), 10)
    timers.cancel(key("a"))
    timers.cancel(key("never set"))
    assert timers.next_deadline_ms() is None
    timers.set(key("a"), 15)
    assert timers.next_deadline_ms() == 15
    assert taken(timers, 14) == []
    assert taken(timers, 15) == ["a"]


def test_a_member_that_is_alive_costs_one_place_however_often_it_is_heard_of():
    timers = Timers()
    for when_ms in range(10_000):
        timers.set(key("a"), when_ms)
        timers.set(key("b"), 20_000 - when_ms)
        if when_ms % 3 == 0:
            timers.cancel(key("b"))
    assert len(timers._heap) < 200
    assert taken(timers, 9_998) == []
    assert taken(timers, 9_999) == ["a"]
