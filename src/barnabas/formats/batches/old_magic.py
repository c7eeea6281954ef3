"""Message sets of magic 0 and 1, as old clients write and expect them.

A set is messages after one another: offset, length, CRC-32 of what follows it, magic, attributes,
for magic 1 a timestamp, key and value. A compressed message wraps a whole set in its value; its
own offset is that of the last message inside. The offsets inside are absolute for magic 0, and
for magic 1 they count from the first one.
"""

import zlib
from collections.abc import Iterator, Sequence
from itertools import islice
from struct import Struct
from typing import Final, NamedTuple

from barnabas.formats.batches.bounded_output import DEFAULT_LIMITS, DecompressionLimits
from barnabas.formats.batches.compression import CompressionCodec, codec_of, compress, decompress
from barnabas.formats.batches.header import (
    CODEC_MASK,
    CREATE_TIME,
    LOG_APPEND_TIME,
    LOG_APPEND_TIME_FLAG,
    LOG_OVERHEAD,
    MAGIC_AT,
    NO_TIMESTAMP,
)
from barnabas.formats.batches.reader import Record
from barnabas.model.errors import CorruptBatch

ENTRY: Final = Struct(">qi")
CRC_SIZE: Final = 4
LENGTH: Final = Struct(">i")
TIMESTAMP: Final = Struct(">q")
KEY_AT: Final = (18, 26)
"""Where the length of the key stands, by magic."""
SMALLEST_SIZE: Final = (26, 34)
"""Of a message whose key and value are null, by magic."""
INNER_MESSAGES_MAX: Final = 100_000
"""In one compressed message: each becomes an object here, and a few bytes may stand for many."""


class OldMessage(NamedTuple):
    """One message of a set; a wrapper when it is compressed."""

    offset: int
    size_bytes: int
    magic: int
    attributes: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    has_valid_crc: bool

    @property
    def codec_number(self) -> int:
        return self.attributes & CODEC_MASK

    @property
    def timestamp_type(self) -> int:
        """CREATE_TIME for magic 0, which has no timestamps."""
        is_appended = self.magic > 0 and self.attributes & LOG_APPEND_TIME_FLAG
        return LOG_APPEND_TIME if is_appended else CREATE_TIME


def messages_in(data: bytes, start: int, end: int) -> Iterator[OldMessage]:
    """Every whole message or wrapper, not unwrapped; one that is cut at the end is left out.

    A message of magic 2 is handed out as one too, with nothing in it but its magic and size.
    """
    position = start
    while end - position >= LOG_OVERHEAD:
        offset, length = ENTRY.unpack_from(data, position)
        if length < SMALLEST_SIZE[0] - LOG_OVERHEAD:
            raise CorruptBatch(f"a message of {length} bytes")
        if end - position <= MAGIC_AT:
            return
        magic = data[position + MAGIC_AT]
        if magic > 2:
            raise CorruptBatch(f"a message of magic {magic}")
        message_end = position + LOG_OVERHEAD + length
        if message_end > end:
            return
        if magic == 2:
            yield OldMessage(offset, message_end - position, 2, 0, NO_TIMESTAMP, None, None, True)
        else:
            yield _read_message(data, position, message_end, offset, magic)
        position = message_end


def _read_message(data: bytes, start: int, end: int, offset: int, magic: int) -> OldMessage:
    if end - start < SMALLEST_SIZE[magic]:
        raise CorruptBatch(f"a message of magic {magic} in {end - start} bytes")
    crc = int.from_bytes(data[start + LOG_OVERHEAD : start + LOG_OVERHEAD + CRC_SIZE], "big")
    timestamp = NO_TIMESTAMP
    if magic == 1:
        (timestamp,) = TIMESTAMP.unpack_from(data, start + 18)
    key, position = _read_nullable_bytes(data, start + KEY_AT[magic], end)
    value, position = _read_nullable_bytes(data, position, end)
    if position != end:
        raise CorruptBatch("bytes are left after a message's value")
    return OldMessage(
        offset=offset,
        size_bytes=end - start,
        magic=magic,
        attributes=data[start + MAGIC_AT + 1],
        timestamp=timestamp,
        key=key,
        value=value,
        has_valid_crc=zlib.crc32(memoryview(data)[start + MAGIC_AT : end]) == crc,
    )


def _read_nullable_bytes(data: bytes, position: int, end: int) -> tuple[bytes | None, int]:
    if end - position < LENGTH.size:
        raise CorruptBatch("a field reaches past the end of its message")
    (length,) = LENGTH.unpack_from(data, position)
    position += LENGTH.size
    if length < 0:
        return None, position
    if length > end - position:
        raise CorruptBatch("a field reaches past the end of its message")
    return data[position : position + length], position + length


def inner_messages(
    wrapper: OldMessage,
    *,
    limits: DecompressionLimits = DEFAULT_LIMITS,
    messages_max: int = INNER_MESSAGES_MAX,
) -> list[OldMessage]:
    """The messages of a compressed one, with absolute offsets and the wrapper's LogAppendTime."""
    codec = codec_of(wrapper.codec_number)
    if codec is CompressionCodec.ZSTD:
        raise CorruptBatch("zstd in a message of an old magic")
    if wrapper.value is None:
        raise CorruptBatch("a compressed message whose value is null")
    plain = decompress(codec, wrapper.value, limits=limits, magic=wrapper.magic)
    inner = list(islice(messages_in(plain, 0, len(plain)), messages_max + 1))
    if len(inner) > messages_max:
        raise CorruptBatch(f"more than {messages_max} messages in a compressed one: send fewer")
    if not inner:
        raise CorruptBatch("a compressed message without messages inside")
    if any(message.magic > 1 for message in inner):
        raise CorruptBatch("a batch of magic 2 inside an older message")
    base_offset = 0
    if wrapper.magic == 1 and wrapper.offset != 0:
        # Some producers leave 0 in the wrapper: then the offsets inside are as they are.
        base_offset = wrapper.offset - inner[-1].offset
        if base_offset < 0:
            raise CorruptBatch("a wrapper's offset is below that of its last message")
    return [_as_seen_through(wrapper, message, base_offset) for message in inner]


def _as_seen_through(wrapper: OldMessage, message: OldMessage, base_offset: int) -> OldMessage:
    if message.codec_number != CompressionCodec.NONE:
        raise CorruptBatch("a compressed message inside another one")
    seen = message._replace(offset=base_offset + message.offset)
    if message.magic == 1 and wrapper.timestamp_type == LOG_APPEND_TIME:
        return seen._replace(timestamp=wrapper.timestamp)
    return seen


def read_message_set(
    data: bytes, start: int, end: int, *, limits: DecompressionLimits = DEFAULT_LIMITS
) -> list[Record]:
    """All records of a set, wrappers opened and every checksum verified."""
    records: list[Record] = []
    for outer in messages_in(data, start, end):
        if outer.magic > 1:
            raise CorruptBatch("a batch of magic 2 among older messages")
        is_wrapper = outer.codec_number != CompressionCodec.NONE
        if is_wrapper and not outer.has_valid_crc:
            raise CorruptBatch(f"the checksum of the message at offset {outer.offset} is wrong")
        for message in inner_messages(outer, limits=limits) if is_wrapper else (outer,):
            if not message.has_valid_crc:
                raise CorruptBatch(
                    f"the checksum of the message at offset {message.offset} is wrong"
                )
            records.append(Record(message.offset, message.timestamp, message.key, message.value))
    return records


def build_message_set(
    records: Sequence[Record],
    *,
    magic: int,
    codec: CompressionCodec = CompressionCodec.NONE,
    log_append_time_ms: int | None = None,
) -> bytes:
    """A set with the records' own offsets, for a client that knows nothing newer.

    Compressed, all of them are in one wrapper. Headers and sequences have no place in it.
    """
    if not records:
        return b""
    is_wrapped = codec is not CompressionCodec.NONE
    base_offset = records[0].offset if magic == 1 and is_wrapped else 0
    flags = 0 if log_append_time_ms is None or magic == 0 else LOG_APPEND_TIME_FLAG
    parts: list[bytes] = []
    for record in records:
        timestamp = record.timestamp if log_append_time_ms is None else log_append_time_ms
        parts.append(
            _encode_message(
                record.offset - base_offset, magic, flags, timestamp, record.key, record.value
            )
        )
    plain = b"".join(parts)
    if not is_wrapped:
        return plain
    timestamp = log_append_time_ms
    if timestamp is None:
        timestamp = max(record.timestamp for record in records)
    value = compress(codec, plain, magic=magic)
    return _encode_message(records[-1].offset, magic, flags | codec, timestamp, None, value)


def _encode_message(
    offset: int, magic: int, attributes: int, timestamp: int, key: bytes | None, value: bytes | None
) -> bytes:
    parts = [bytes((magic, attributes))]
    if magic == 1:
        parts.append(TIMESTAMP.pack(timestamp))
    for field in (key, value):
        parts.append(LENGTH.pack(-1 if field is None else len(field)))
        parts.append(field or b"")
    covered = b"".join(parts)
    crc = zlib.crc32(covered).to_bytes(CRC_SIZE, "big")
    return ENTRY.pack(offset, CRC_SIZE + len(covered)) + crc + covered
