"""Producer snapshots: what a partition knew of its producers up to an offset."""

import struct
from collections.abc import Sequence
from typing import Final, NamedTuple

from barnabas.formats.checksum import crc32c
from barnabas.model.errors import DecodeError

VERSION: Final = 1

_HEAD: Final = struct.Struct(">hI")
_COUNT: Final = struct.Struct(">i")
_ENTRY: Final = struct.Struct(">qhiqiqiq")


class ProducerSnapshotEntry(NamedTuple):
    """The last batch of one producer and its open transaction; -1 where there is none."""

    producer_id: int
    producer_epoch: int
    last_sequence: int
    last_offset: int
    offset_delta: int
    """From the first to the last record of the last batch."""
    timestamp: int
    coordinator_epoch: int
    current_transaction_first_offset: int


def encode_producer_snapshot(entries: Sequence[ProducerSnapshotEntry]) -> bytes:
    body = _COUNT.pack(len(entries)) + b"".join(_ENTRY.pack(*entry) for entry in entries)
    return _HEAD.pack(VERSION, crc32c(body)) + body


def decode_producer_snapshot(data: bytes) -> list[ProducerSnapshotEntry]:
    """`DecodeError` when the version is another, the checksum wrong or the length odd."""
    if len(data) < _HEAD.size + _COUNT.size:
        raise DecodeError(f"a producer snapshot of {len(data)} bytes")
    version, crc = _HEAD.unpack_from(data)
    if version != VERSION:
        raise DecodeError(f"a producer snapshot of version {version}")
    if crc32c(data[_HEAD.size :]) != crc:
        raise DecodeError("a producer snapshot with a wrong checksum")
    (count,) = _COUNT.unpack_from(data, _HEAD.size)
    start = _HEAD.size + _COUNT.size
    if count < 0 or start + count * _ENTRY.size != len(data):
        raise DecodeError(f"a producer snapshot of {count} entries in {len(data)} bytes")
    return [
        ProducerSnapshotEntry(*_ENTRY.unpack_from(data, start + number * _ENTRY.size))
        for number in range(count)
    ]
