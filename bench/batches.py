"""What a batch costs before it reaches the log: header, checksum, checks, stamping."""

import random
import timeit
from collections.abc import Callable

from barnabas import compiled
from barnabas.formats.batches.admission import (
    AdmittedBatch,
    ProduceRules,
    WorkBudget,
    admit,
    check_batch,
    read_produced,
)
from barnabas.formats.batches.builder import build_batch
from barnabas.formats.batches.compression import CompressionCodec
from barnabas.formats.batches.header import HEADER_SIZE, BatchHeader, check_crc, read_header, stamp
from barnabas.formats.batches.reader import Record
from barnabas.formats.batches.record_checks import check_records

RULES = ProduceRules(max_message_bytes=64 << 20, segment_bytes=1 << 30)
PRODUCE_VERSION = 9
RECORD_BYTES = 100
TARGET_SECONDS = 0.1
REPEATS = 5


def report() -> str:
    """One line per shape of batch; microseconds, the best of several runs."""
    lines = [f"batches, {compiled.describe()}; us"]
    lines.append(
        f"{'records':>8} {'codec':>8} {'bytes':>9} {'header':>8} {'crc':>8} {'walk':>9} "
        f"{'a record':>9} {'stamp':>8} {'all':>9}"
    )
    for count, codec in (
        (1, CompressionCodec.NONE),
        (160, CompressionCodec.NONE),
        (10_000, CompressionCodec.NONE),
        *((160, codec) for codec in CompressionCodec if codec is not CompressionCodec.NONE),
    ):
        lines.append(_line(count, codec))
    return "\n".join(lines)


def _line(count: int, codec: CompressionCodec) -> str:
    batch = _batch(count, codec)
    header = read_header(batch, 0, len(batch))
    walk_us = float("nan")
    if codec is CompressionCodec.NONE:
        walk_us = _microseconds(
            lambda: check_records(batch, HEADER_SIZE, len(batch), count, 0, False, 0, 0)
        )
    return (
        f"{count:8} {codec.name.lower():>8} {len(batch):9} "
        f"{_microseconds(lambda: read_header(batch, 0, len(batch))):8.3f} "
        f"{_microseconds(lambda: check_crc(batch, header, 0)):8.3f} {walk_us:9.3f} "
        f"{walk_us / count:9.4f} {_microseconds(lambda: _stamp(batch, header)):8.3f} "
        f"{_microseconds(lambda: _accept(batch)):9.3f}"
    )


def _batch(count: int, codec: CompressionCodec) -> bytes:
    """Half noise, half the same byte: it compresses to about a half."""
    noise = random.Random(count)
    half = RECORD_BYTES // 2
    records = [
        Record(0, number, None, noise.randbytes(half) + bytes(half)) for number in range(count)
    ]
    return build_batch(records, codec=codec)


def _stamp(batch: bytes, header: BatchHeader) -> None:
    parts: list[bytes | memoryview] = []
    stamp(parts, batch, header, 0, 77, 3)


def _accept(batch: bytes) -> None:
    """All that a leader does with a good batch."""
    header = read_produced(batch, 0, len(batch), PRODUCE_VERSION)
    assert isinstance(header, BatchHeader)
    assert check_batch(batch, header, 0, RULES) is None
    admitted = admit(batch, header, 0, RULES, 0, WorkBudget())
    assert isinstance(admitted, AdmittedBatch)
    parts: list[bytes | memoryview] = []
    stamp(parts, admitted.data, admitted.header, admitted.start, 77, 3)


def _microseconds(call: Callable[[], object]) -> float:
    timer = timeit.Timer(call)
    number, seconds = timer.autorange()
    number = max(1, int(number * TARGET_SECONDS / max(seconds, 1e-9)))
    return min(timer.repeat(REPEATS, number)) / number * 1e6
