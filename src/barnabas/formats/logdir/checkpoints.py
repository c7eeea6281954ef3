"""Checkpoint files: offsets per partition of a log directory, and leader epochs of one log."""

from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from barnabas.model.errors import DecodeError
from barnabas.model.ids import TopicPartition

VERSION: Final = 0


class EpochEntry(NamedTuple):
    """The first offset that was written in a leader epoch."""

    epoch: int
    start_offset: int


def encode_offset_checkpoint(offsets: Mapping[TopicPartition, int]) -> bytes:
    return _encode(
        f"{key.topic} {key.partition} {offset}" for key, offset in sorted(offsets.items())
    )


def decode_offset_checkpoint(data: bytes) -> dict[TopicPartition, int]:
    offsets: dict[TopicPartition, int] = {}
    for line in _decode(data):
        words = line.split()
        if len(words) != 3:
            raise DecodeError(f"malformed line in a checkpoint: {line!r}")
        offsets[TopicPartition(words[0], _number(words[1], line))] = _number(words[2], line)
    return offsets


def encode_epoch_checkpoint(entries: Iterable[EpochEntry]) -> bytes:
    return _encode(f"{entry.epoch} {entry.start_offset}" for entry in entries)


def decode_epoch_checkpoint(data: bytes) -> list[EpochEntry]:
    entries: list[EpochEntry] = []
    for line in _decode(data):
        words = line.split()
        if len(words) != 2:
            raise DecodeError(f"malformed line in a checkpoint: {line!r}")
        entries.append(EpochEntry(_number(words[0], line), _number(words[1], line)))
    return entries


def _encode(lines: Iterable[str]) -> bytes:
    listed = list(lines)
    return "\n".join([str(VERSION), str(len(listed)), *listed, ""]).encode()


def _decode(data: bytes) -> list[str]:
    """The lines after version and count, which must be right; an empty file has none."""
    try:
        lines = data.decode().splitlines()
    except UnicodeDecodeError as error:
        raise DecodeError(f"a checkpoint that is not text: {error}") from error
    if not lines:
        return []
    version = _number(lines[0], lines[0])
    if version != VERSION:
        raise DecodeError(f"a checkpoint of version {version} where {VERSION} was expected")
    if len(lines) < 2:
        raise DecodeError("a checkpoint that ends after its version")
    count = _number(lines[1], lines[1])
    found = [line for line in lines[2:] if line]
    if len(found) != count:
        raise DecodeError(f"a checkpoint of {count} entries has {len(found)} lines")
    return found


def _number(word: str, line: str) -> int:
    try:
        return int(word)
    except ValueError as error:
        raise DecodeError(f"malformed line in a checkpoint: {line!r}") from error
