"""The deadline heap keeps its order, forgets what is cancelled and stays bounded."""

from hypothesis import given
from hypothesis import strategies as st

from barnabas.broker.deadlines import Deadlines
from tests.behaviours import behaviour


@given(st.lists(st.tuples(st.integers(0, 20), st.booleans()), max_size=60), st.integers(0, 25))
@behaviour("N7")
def test_due_calls_run_in_order_and_cancelled_ones_never(
    asked: list[tuple[int, bool]], now_ms: int
) -> None:
    deadlines = Deadlines()
    ran: list[int] = []
    handles = [
        deadlines.at(when, lambda now, number=number: ran.append(number))
        for number, (when, _) in enumerate(asked)
    ]
    for handle, (_, is_cancelled) in zip(handles, asked, strict=True):
        if is_cancelled:
            handle.cancel()
    deadlines.run_due(now_ms)
    live = [(when, number) for number, (when, gone) in enumerate(asked) if not gone]
    assert ran == [number for when, number in sorted(live) if when <= now_ms]
    left = [when for when, _ in sorted(live) if when > now_ms]
    assert deadlines.next_ms() == (left[0] if left else None)
    assert len(deadlines) == len(left)


def test_a_call_made_due_by_a_call_waits_for_the_next_tick() -> None:
    deadlines = Deadlines()
    ran: list[str] = []

    def first(now_ms: int) -> None:
        ran.append("first")
        deadlines.at(now_ms, lambda now: ran.append("second"))

    deadlines.at(5, first)
    deadlines.run_due(5)
    assert ran == ["first"]
    assert deadlines.next_ms() == 5
    deadlines.run_due(5)
    assert ran == ["first", "second"]


def test_cancelled_calls_do_not_pile_up() -> None:
    deadlines = Deadlines()
    for _ in range(10_000):
        deadlines.at(1_000_000, lambda now: None).cancel()
    assert len(deadlines._heap) < 300
    assert deadlines.next_ms() is None


def test_cancelling_twice_counts_once() -> None:
    deadlines = Deadlines()
    deadlines.at(2, lambda now: None)
    handle = deadlines.at(1, lambda now: None)
    handle.cancel()
    handle.cancel()
    assert len(deadlines) == 1
    assert deadlines.next_ms() == 2
