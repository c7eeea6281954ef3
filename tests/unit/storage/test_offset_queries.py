"""Offsets by time, and aborted transactions by what was read."""

from hypothesis import given
from hypothesis import strategies as st

from barnabas.formats.batches.builder import BatchBuilder
from barnabas.formats.batches.compression import CompressionCodec
from barnabas.formats.batches.control import EndMarker, build_end_marker
from barnabas.model.config import TopicConfig
from barnabas.storage.aborted_transactions import aborted_transactions
from barnabas.storage.offset_queries import (
    earliest_offset,
    offset_for_time,
    youngest_record,
)
from barnabas.storage.partition_log import PartitionLog
from tests.worlds.log_world import LogWorld, append, batch_of

SMALL = TopicConfig(segment_bytes=400, index_interval_bytes=80, segment_ms=1 << 60)
BATCHES = st.lists(
    st.tuples(st.lists(st.integers(0, 50), min_size=1, max_size=4), st.sampled_from([0, 1, 4])),
    max_size=40,
)


def log_of(
    batches: list[tuple[list[int], int]],
) -> tuple[PartitionLog, list[tuple[int, int]], LogWorld]:
    """The log, and offset and timestamp of each record in it."""
    world = LogWorld(topic=SMALL)
    world.start()
    log = world.log()
    records: list[tuple[int, int]] = []
    for number, (timestamps, codec) in enumerate(batches):
        builder = BatchBuilder(codec=CompressionCodec(codec))
        for timestamp in timestamps:
            builder.append(None, b"value", timestamp)
            records.append((len(records), timestamp))
        append(log, builder.build(), leader_epoch=number // 10)
    log.write_out()
    log.set_high_watermark(log.log_end_offset)
    return log, records, world


@given(BATCHES, st.integers(0, 60), st.booleans())
def test_the_first_record_as_young_is_found(
    batches: list[tuple[list[int], int]], start: int, is_reopened: bool
) -> None:
    log, records, world = log_of(batches)
    log.delete_records_before(min(start, log.log_end_offset))
    if is_reopened:
        world.stop()
        world.start()
        log = world.log()
    readable = [one for one in records if one[0] >= log.log_start_offset]
    for wanted in range(0, 52, 3):
        found = offset_for_time(log, wanted)
        expected = [one for one in readable if one[1] >= wanted]
        if found is None:
            # The first segment as young may hold its young records below the start of the log.
            assert not expected or log.log_start_offset > 0
        else:
            assert (found.offset, found.timestamp) == expected[0]
            assert found.leader_epoch == log.leader_epochs.epoch_at(found.offset)


@given(BATCHES, st.booleans())
def test_the_youngest_record_is_found(
    batches: list[tuple[list[int], int]], is_reopened: bool
) -> None:
    log, records, world = log_of(batches)
    if is_reopened:
        world.stop()
        world.start()
        log = world.log()
    found = youngest_record(log)
    if not records:
        assert found is None
        return
    assert found is not None
    highest = max(timestamp for _, timestamp in records)
    assert (found.offset, found.timestamp) in records
    assert found.timestamp == highest


def test_the_ends_of_the_log_have_epochs() -> None:
    log, _, _ = log_of([([1, 2], 0)] * 25)
    assert earliest_offset(log) == (-1, 0, 0)
    log.delete_records_before(21)
    assert earliest_offset(log) == (-1, 21, 1)
    empty, _, _ = log_of([])
    assert earliest_offset(empty) == (-1, 0, -1)
    assert offset_for_time(empty, 0) is None


def aborting_log() -> PartitionLog:
    """Ten transactions of three records and a marker each; every other one is aborted."""
    world = LogWorld(topic=SMALL)
    world.start()
    log = world.log()
    for number in range(10):
        for sequence in range(3):
            batch = batch_of(
                b"value" * 4,
                producer_id=number,
                producer_epoch=0,
                base_sequence=sequence,
                is_transactional=True,
            )
            append(log, batch)
        marker = EndMarker(is_commit=number % 2 == 1, coordinator_epoch=0)
        append(log, build_end_marker(marker, producer_id=number, producer_epoch=0, timestamp=0))
    log.write_out()
    log.set_high_watermark(log.log_end_offset)
    assert len(log.segments) > 5
    return log


def test_aborted_transactions_are_told_for_what_was_read() -> None:
    log = aborting_log()
    assert log.last_stable_offset == 40
    told = aborted_transactions(log, 0, 1 << 20)
    first_segment_end = log.segments[1].base_offset
    expected = [(number, 4 * number) for number in range(0, 10, 2)]
    assert [(one.producer_id, one.first_offset) for one in told] == [
        one for one in expected if one[1] < first_segment_end
    ]
    for offset in range(40):
        told = aborted_transactions(log, offset, 1)
        ids = [one.producer_id for one in told]
        assert (offset // 4 in ids) == (offset // 4 % 2 == 0)
        assert all(4 * one.producer_id + 3 >= offset for one in told)


def test_aborted_transactions_survive_cuts_and_recovery() -> None:
    log = aborting_log()
    log.truncate_to(30, 0)
    ids = [one.producer_id for one in aborted_transactions(log, 28, 1 << 20)]
    assert ids == []
    assert [one.producer_id for one in aborted_transactions(log, 27, 1)] == [6]
    assert log.last_stable_offset == 28
