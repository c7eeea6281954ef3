"""Which leader epoch began where."""

from hypothesis import given
from hypothesis import strategies as st

from barnabas.formats.logdir.checkpoints import EpochEntry
from barnabas.storage.leader_epochs import UNDEFINED_EPOCH_END, LeaderEpochs
from tests.behaviours import behaviour


def epochs_of(*entries: tuple[int, int]) -> LeaderEpochs:
    return LeaderEpochs(EpochEntry(*entry) for entry in entries)


def told(epochs: LeaderEpochs) -> list[tuple[int, int]]:
    return [tuple(entry) for entry in epochs.entries()]


@behaviour("L22")
def test_an_entry_at_the_same_offset_takes_the_place_of_the_older_one() -> None:
    epochs = epochs_of((0, 0))
    epochs.assign(3, 0)
    assert told(epochs) == [(3, 0)]
    epochs.assign(4, 10)
    epochs.assign(5, 10)
    assert told(epochs) == [(3, 0), (5, 10)]


def test_a_repetition_changes_nothing_and_is_not_written() -> None:
    epochs = epochs_of((0, 0), (1, 5))
    assert not epochs.is_dirty
    epochs.assign(1, 9)
    assert told(epochs) == [(0, 0), (1, 5)]
    assert not epochs.is_dirty


def test_entries_that_contradict_a_new_one_are_dropped() -> None:
    epochs = epochs_of((0, 0), (1, 5), (4, 9))
    epochs.assign(3, 7)
    assert told(epochs) == [(0, 0), (1, 5), (3, 7)]
    epochs.assign(3, 6)
    assert told(epochs) == [(0, 0), (1, 5), (3, 6)]
    epochs.assign(5, 2)
    assert told(epochs) == [(0, 0), (5, 2)]
    epochs.assign(-1, 3)
    assert told(epochs) == [(0, 0), (5, 2)]


def test_the_end_of_an_epoch_is_where_the_next_one_began() -> None:
    epochs = epochs_of((2, 10), (4, 20), (7, 35))
    assert epochs.end_offset_for(7, 50) == (7, 50)
    assert epochs.end_offset_for(4, 50) == (4, 35)
    assert epochs.end_offset_for(5, 50) == (4, 35)
    assert epochs.end_offset_for(6, 50) == (4, 35)
    assert epochs.end_offset_for(3, 50) == (2, 20)
    # Older than all that is known: it ended where the known begins.
    assert epochs.end_offset_for(1, 50) == (1, 10)
    for unknown in (8, -1):
        assert epochs.end_offset_for(unknown, 50) == UNDEFINED_EPOCH_END
    assert LeaderEpochs().end_offset_for(0, 50) == UNDEFINED_EPOCH_END


def test_the_epoch_of_a_record_is_that_of_the_last_beginning_before_it() -> None:
    epochs = epochs_of((2, 10), (4, 20))
    assert [epochs.epoch_at(offset) for offset in (0, 9, 10, 19, 20, 99)] == [-1, -1, 2, 2, 4, 4]


def test_cuts_at_both_ends() -> None:
    epochs = epochs_of((0, 0), (1, 5), (2, 9))
    epochs.truncate_from_end(9)
    assert told(epochs) == [(0, 0), (1, 5)]
    assert epochs.latest_epoch == 1
    epochs.truncate_from_start(3)
    assert told(epochs) == [(0, 3), (1, 5)]
    epochs.truncate_from_start(5)
    assert told(epochs) == [(1, 5)]
    epochs.truncate_from_start(8)
    assert told(epochs) == [(1, 8)]
    epochs.truncate_from_end(0)
    assert told(epochs) == []
    assert epochs.latest_epoch == -1


@given(st.lists(st.tuples(st.integers(-1, 8), st.integers(0, 30)), max_size=12), st.integers(0, 31))
def test_epochs_and_offsets_always_grow_together(steps: list[tuple[int, int]], cut: int) -> None:
    epochs = LeaderEpochs()
    for epoch, offset in steps:
        epochs.assign(epoch, offset)
        if epoch >= 0:
            assert epochs.latest_epoch == epoch
    for _ in range(2):
        entries = told(epochs)
        assert entries == sorted(entries)
        assert len({epoch for epoch, _ in entries}) == len(entries)
        assert len({offset for _, offset in entries}) == len(entries)
        assert epochs.latest_epoch == (entries[-1][0] if entries else -1)
        epochs.truncate_from_start(cut)
        epochs.truncate_from_end(cut + 10)
