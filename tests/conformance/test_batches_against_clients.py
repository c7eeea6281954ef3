"""Record batches against the builders and readers of kafka-python and aiokafka."""

from collections.abc import Iterable
from typing import Any

import aiokafka.record.default_records as aio_default
import aiokafka.record.legacy_records as aio_legacy
import aiokafka.record.memory_records as aio_memory
import kafka.record.default_records as python_default
import kafka.record.legacy_records as python_legacy
import kafka.record.memory_records as python_memory
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from barnabas.formats.batches.builder import build_batch
from barnabas.formats.batches.compression import CompressionCodec
from barnabas.formats.batches.old_magic import build_message_set, read_message_set
from barnabas.formats.batches.reader import Record, RecordHeader, read_batch

CLIENTS = {
    "kafka-python": (python_default, python_legacy, python_memory),
    "aiokafka": (aio_default, aio_legacy, aio_memory),
}

nullable = st.none() | st.binary(max_size=100) | st.just(b"abc" * 30_000)
given_records = st.lists(
    st.builds(
        Record,
        st.just(0),
        st.integers(0, 2**42),
        nullable,
        nullable,
        st.lists(st.builds(RecordHeader, st.text(max_size=8), nullable), max_size=2).map(tuple),
    ),
    min_size=1,
    max_size=6,
)
codecs = st.sampled_from(list(CompressionCodec))
old_sets = st.sampled_from(
    [
        (codec, magic)
        for codec in CompressionCodec
        for magic in (0, 1)
        # zstd is newer than these; LZ4 with the wrong checksum is compared with Kafka itself.
        if codec is not CompressionCodec.ZSTD and (codec, magic) != (CompressionCodec.LZ4, 0)
    ]
)


def _numbered(records: Iterable[Record], base: int = 0, sequence: int = -1) -> list[Record]:
    return [
        record._replace(offset=base + n, sequence=-1 if sequence < 0 else sequence + n)
        for n, record in enumerate(records)
    ]


def _seen_by(memory: Any, data: bytes) -> list[tuple[object, ...]]:
    """What a client's consumer gets to see."""
    batches = memory.MemoryRecords(data)
    seen: list[tuple[object, ...]] = []
    while batches.has_next():
        batch = batches.next_batch()
        assert batch.validate_crc()
        for record in batch:
            headers = tuple((key, value) for key, value in record.headers)
            seen.append((record.offset, record.timestamp, record.key, record.value, headers))
    return seen


@pytest.mark.parametrize("client", CLIENTS)
@given(given_records, codecs)
@settings(max_examples=30)
def test_their_batches_are_read_here(
    client: str, records: list[Record], codec: CompressionCodec
) -> None:
    default, _, _ = CLIENTS[client]
    builder = default.DefaultRecordBatchBuilder(2, int(codec), 1, 77, 3, 9, 1 << 30)
    for n, record in enumerate(records):
        headers = [(key, value) for key, value in record.headers]
        builder.append(n, record.timestamp, record.key, record.value, headers)
    batch = bytes(builder.build())
    assert read_batch(batch, 0, len(batch)) == _numbered(records, 0, 9)
    ours = build_batch(
        records,
        codec=codec,
        producer_id=77,
        producer_epoch=3,
        base_sequence=9,
        is_transactional=True,
        leader_epoch=int.from_bytes(batch[12:16], "big", signed=True),
    )
    if codec is CompressionCodec.NONE:
        assert ours == batch


@pytest.mark.parametrize("client", CLIENTS)
@given(given_records, codecs, st.booleans())
@settings(max_examples=30)
def test_our_batches_are_read_there(
    client: str, records: list[Record], codec: CompressionCodec, is_appended: bool
) -> None:
    _, _, memory = CLIENTS[client]
    now_ms = 1_700_000_000_000
    first = build_batch(
        records, codec=codec, base_offset=50, log_append_time_ms=now_ms if is_appended else None
    )
    second = build_batch(records[:1], base_offset=50 + len(records))
    expected = [
        (r.offset, now_ms if is_appended else r.timestamp, r.key, r.value, r.headers)
        for r in _numbered(records, 50)
    ]
    expected += [
        (r.offset, r.timestamp, r.key, r.value, r.headers)
        for r in _numbered(records[:1], 50 + len(records))
    ]
    assert _seen_by(memory, first + second) == expected


@pytest.mark.parametrize("client", CLIENTS)
@given(given_records, old_sets)
@settings(max_examples=30)
def test_their_message_sets_are_read_here(
    client: str, records: list[Record], old_set: tuple[CompressionCodec, int]
) -> None:
    codec, magic = old_set
    _, legacy, _ = CLIENTS[client]
    builder = legacy.LegacyRecordBatchBuilder(magic, int(codec), 1 << 30)
    for n, record in enumerate(records):
        builder.append(n, record.timestamp, record.key, record.value)
    data = bytes(builder.build())
    expected = [record._replace(headers=()) for record in _numbered(records)]
    if magic == 0:
        expected = [record._replace(timestamp=-1) for record in expected]
    assert read_message_set(data, 0, len(data)) == expected


@pytest.mark.parametrize("client", CLIENTS)
@given(given_records, old_sets)
@settings(max_examples=30)
def test_our_message_sets_are_read_there(
    client: str, records: list[Record], old_set: tuple[CompressionCodec, int]
) -> None:
    codec, magic = old_set
    _, _, memory = CLIENTS[client]
    numbered = _numbered(records, 10)
    data = build_message_set(numbered, magic=magic, codec=codec)
    expected = [
        (r.offset, None if magic == 0 else r.timestamp, r.key, r.value, ()) for r in numbered
    ]
    assert _seen_by(memory, data) == expected
