"""Entries of a segment's transaction index: the aborted transactions that end in it."""

import struct
from typing import Final, NamedTuple

from barnabas.model.errors import DecodeError
from barnabas.model.ids import ProducerId

ENTRY_SIZE: Final = 34
VERSION: Final = 0

_ENTRY: Final = struct.Struct(">hqqqq")


class AbortedTransaction(NamedTuple):
    """Records of a producer between two offsets that a read_committed reader must skip."""

    producer_id: ProducerId
    first_offset: int
    last_offset: int
    """Where the marker stands that ended it."""
    last_stable_offset: int
    """The last stable offset right after the marker was written."""


def encode_aborted_transaction(aborted: AbortedTransaction) -> bytes:
    return _ENTRY.pack(VERSION, *aborted)


def decode_aborted_transactions(data: bytes) -> list[AbortedTransaction]:
    """All entries of a file; `DecodeError` for another version or half an entry."""
    if len(data) % ENTRY_SIZE:
        raise DecodeError(f"a transaction index of {len(data)} bytes")
    found: list[AbortedTransaction] = []
    for at in range(0, len(data), ENTRY_SIZE):
        version, producer_id, first, last, last_stable = _ENTRY.unpack_from(data, at)
        if version > VERSION or version < 0:
            raise DecodeError(f"a transaction index entry of version {version}")
        found.append(AbortedTransaction(ProducerId(producer_id), first, last, last_stable))
    return found
