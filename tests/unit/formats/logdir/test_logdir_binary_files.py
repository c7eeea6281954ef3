"""Index entries, producer snapshots and transaction indexes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.formats.logdir.index_entries import (
    decode_offset_entry,
    decode_time_entry,
    encode_offset_entry,
    encode_time_entry,
)
from barnabas.formats.logdir.producer_snapshot import (
    ProducerSnapshotEntry,
    decode_producer_snapshot,
    encode_producer_snapshot,
)
from barnabas.formats.logdir.transaction_index import (
    AbortedTransaction,
    decode_aborted_transactions,
    encode_aborted_transaction,
)
from barnabas.model.errors import DecodeError

INT64 = st.integers(-(2**63), 2**63 - 1)
INT32 = st.integers(-(2**31), 2**31 - 1)
INT16 = st.integers(-(2**15), 2**15 - 1)
ENTRIES = st.builds(ProducerSnapshotEntry, INT64, INT16, INT32, INT64, INT32, INT64, INT32, INT64)


@given(st.integers(0, 2**40), st.integers(0, 2**31 - 1), st.integers(0, 2**31 - 1))
def test_index_entries_hold_offsets_relative_to_the_segment(
    base: int, relative: int, position: int
) -> None:
    entry = encode_offset_entry(base, base + relative, position)
    assert len(entry) == 8
    assert decode_offset_entry(base, b"?" + entry, 1) == (base + relative, position)
    timed = encode_time_entry(base, position * 1000, base + relative)
    assert len(timed) == 12
    assert decode_time_entry(base, timed) == (position * 1000, base + relative)


@given(st.lists(ENTRIES, max_size=6))
def test_producer_snapshots_are_read_as_written(entries: list[ProducerSnapshotEntry]) -> None:
    data = encode_producer_snapshot(entries)
    assert len(data) == 10 + 46 * len(entries)
    assert decode_producer_snapshot(data) == entries


@given(st.lists(ENTRIES, max_size=3), st.data())
def test_a_damaged_producer_snapshot_is_never_believed(
    entries: list[ProducerSnapshotEntry], data: st.DataObject
) -> None:
    whole = encode_producer_snapshot(entries)
    at = data.draw(st.integers(0, len(whole) - 1))
    damaged = bytearray(whole)
    damaged[at] ^= data.draw(st.integers(1, 255))
    for wrong in (bytes(damaged), whole[:at], whole + b"\0"):
        with pytest.raises(DecodeError):
            decode_producer_snapshot(wrong)


def test_aborted_transactions_are_read_as_written() -> None:
    aborted = [AbortedTransaction(1000, 3, 7, 3), AbortedTransaction(2, 8, 9, 10)]  # type: ignore[arg-type]
    data = b"".join(map(encode_aborted_transaction, aborted))
    assert len(data) == 68
    assert decode_aborted_transactions(data) == aborted
    for wrong in (data[:-1], b"\0\1" + data[2:], b"\xff\xff" + data[2:]):
        with pytest.raises(DecodeError):
            decode_aborted_transactions(wrong)
