"""Sequences, duplicates, transactions and snapshots of producers."""

import pytest

from barnabas.formats.batches.header import BatchHeader
from barnabas.formats.logdir.transaction_index import AbortedTransaction
from barnabas.model.error_codes import ErrorCode
from barnabas.model.ids import ProducerId
from barnabas.storage.producer_state import ProducerState
from tests.worlds.log_world import batch_of

DAY_MS = 86_400_000


def header(
    *,
    producer: int = 1,
    epoch: int = 0,
    sequence: int = 0,
    count: int = 1,
    is_transactional: bool = False,
) -> BatchHeader:
    batch = batch_of(
        *([b"x"] * count),
        producer_id=producer,
        producer_epoch=epoch,
        base_sequence=sequence,
        is_transactional=is_transactional,
    )
    return BatchHeader(batch, 0)


def told(state: ProducerState, *batches: BatchHeader) -> None:
    offset = 0
    for one in batches:
        state.note_batch(one, offset, 1000)
        offset += one.record_count


def test_a_producer_nobody_knows_may_begin_anywhere() -> None:
    state = ProducerState()
    assert state.check(header(sequence=17, epoch=3)) == ErrorCode.NONE


def test_sequences_follow_each_other() -> None:
    state = ProducerState()
    told(state, header(sequence=0, count=3))
    assert state.check(header(sequence=3)) == ErrorCode.NONE
    for wrong in (0, 2, 4, 100):
        assert state.check(header(sequence=wrong)) == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


def test_a_new_epoch_begins_at_zero_and_fences_the_old_one() -> None:
    state = ProducerState()
    told(state, header(epoch=4, sequence=0, count=3))
    assert state.check(header(epoch=5, sequence=0)) == ErrorCode.NONE
    assert state.check(header(epoch=5, sequence=3)) == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert state.check(header(epoch=3, sequence=3)) == ErrorCode.INVALID_PRODUCER_EPOCH
    told(state, header(epoch=5, sequence=0))
    assert state.check(header(epoch=4, sequence=3)) == ErrorCode.INVALID_PRODUCER_EPOCH


def test_sequences_wrap_after_the_greatest_number() -> None:
    state = ProducerState()
    told(state, header(sequence=2**31 - 2, count=2))
    assert state.check(header(sequence=0)) == ErrorCode.NONE
    again = header(sequence=2**31 - 1, count=3)
    told(state, again)
    duplicate = state.find_duplicate(again)
    assert duplicate is not None
    assert state.check(header(sequence=2)) == ErrorCode.NONE


def test_the_last_five_batches_are_known_again_with_their_offsets() -> None:
    state = ProducerState()
    batches = [header(sequence=2 * number, count=2) for number in range(7)]
    for number, one in enumerate(batches):
        state.note_batch(one, 100 + 2 * number, 5000 + number)
    for number, one in enumerate(batches):
        found = state.find_duplicate(one)
        if number < 2:
            assert found is None
            assert state.check(one) == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
        else:
            assert found is not None
            assert (found.first_offset, found.last_offset) == (100 + 2 * number, 101 + 2 * number)
            assert found.timestamp == 5000 + number
    assert state.find_duplicate(header(sequence=12, count=1)) is None
    assert state.find_duplicate(header(epoch=1, sequence=12, count=2)) is None


def test_while_a_transaction_is_open_other_writes_are_refused() -> None:
    state = ProducerState()
    told(state, header(sequence=0, is_transactional=True))
    assert state.check(header(sequence=1)) == ErrorCode.INVALID_TXN_STATE
    assert state.check(header(sequence=1, is_transactional=True)) == ErrorCode.NONE


def test_the_first_unstable_offset_waits_for_the_end_and_its_replication() -> None:
    state = ProducerState()
    assert state.first_unstable_offset == -1
    state.note_batch(header(producer=1, is_transactional=True), 10, 0)
    state.note_batch(header(producer=2, is_transactional=True), 12, 0)
    state.note_batch(header(producer=1, sequence=1, is_transactional=True), 14, 0)
    assert state.first_unstable_offset == 10
    assert state.note_marker(header(producer=1), True, 0, 20, 0) is None
    assert state.first_unstable_offset == 10
    state.note_replicated(20)
    assert state.first_unstable_offset == 10
    state.note_replicated(21)
    assert state.first_unstable_offset == 12
    aborted = state.note_marker(header(producer=2), False, 0, 25, 0)
    assert aborted == AbortedTransaction(ProducerId(2), 12, 25, 26)
    state.note_replicated(100)
    assert state.first_unstable_offset == -1


def test_an_aborted_transaction_tells_the_last_stable_offset_of_its_moment() -> None:
    state = ProducerState()
    state.note_batch(header(producer=1, is_transactional=True), 10, 0)
    state.note_batch(header(producer=2, is_transactional=True), 12, 0)
    aborted = state.note_marker(header(producer=2), False, 0, 13, 0)
    assert aborted == AbortedTransaction(ProducerId(2), 12, 13, 10)


def test_a_marker_of_a_fenced_coordinator_or_producer_is_refused() -> None:
    state = ProducerState()
    state.note_batch(header(producer=1, epoch=3, is_transactional=True), 0, 0)
    state.note_marker(header(producer=1, epoch=3), True, 7, 1, 0)
    assert state.check_marker(1, 3, 6) == ErrorCode.TRANSACTION_COORDINATOR_FENCED
    assert state.check_marker(1, 2, 8) == ErrorCode.INVALID_PRODUCER_EPOCH
    assert state.check_marker(1, 3, 7) == ErrorCode.NONE
    assert state.check_marker(9, 0, 0) == ErrorCode.NONE


def test_after_a_marker_the_sequences_go_on() -> None:
    state = ProducerState()
    told(state, header(sequence=0, count=2, is_transactional=True))
    state.note_marker(header(), True, 0, 2, 0)
    assert state.check(header(sequence=2, is_transactional=True)) == ErrorCode.NONE
    assert state.check(header(sequence=0, is_transactional=True)) != ErrorCode.NONE


def test_idle_producers_are_forgotten_but_not_their_open_transactions() -> None:
    state = ProducerState()
    state.note_batch(header(producer=1), 0, 1000)
    state.note_batch(header(producer=2, is_transactional=True), 1, 1000)
    state.note_batch(header(producer=3), 2, 5000)
    assert state.expire(1000 + DAY_MS - 1, DAY_MS) == 0
    assert state.expire(1000 + DAY_MS, DAY_MS) == 1
    assert [one.producer_id for one in state.producers()] == [2, 3]


@pytest.mark.parametrize("wall_ms", [2000, 1000 + DAY_MS])
def test_a_snapshot_keeps_the_last_batch_and_the_open_transaction(wall_ms: int) -> None:
    state = ProducerState()
    state.note_batch(header(producer=9, sequence=4, count=2), 7, 1000)
    state.note_batch(header(producer=3, epoch=1, is_transactional=True), 9, 1000)
    state.note_marker(header(producer=5, epoch=2), True, 6, 10, 1500)
    entries = state.to_snapshot()
    assert [tuple(entry) for entry in entries] == [
        (3, 1, 0, 9, 0, 1000, -1, 9),
        (5, 2, -1, -1, 0, 1500, 6, -1),
        (9, 0, 5, 8, 1, 1000, -1, -1),
    ]
    loaded = ProducerState()
    loaded.load(entries, wall_ms, DAY_MS)
    if wall_ms == 2000:
        assert loaded.to_snapshot() == entries
        assert loaded.find_duplicate(header(producer=9, sequence=4, count=2)) is not None
    else:
        assert [one.producer_id for one in loaded.producers()] == [3, 5]
    assert loaded.first_unstable_offset == 9
    assert loaded.check(header(producer=5, epoch=2, sequence=0)) == ErrorCode.NONE
