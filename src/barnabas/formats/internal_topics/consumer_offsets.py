"""Records of `__consumer_offsets`: committed offsets and the metadata of groups.

A key and a value each begin with the version of what follows. All versions that Kafka 3.9 reads
are read; written is what it writes in a cluster on ZooKeeper: keys of version 1 and 2, offsets of
version 3, or 1 where they carry their own expiry, and groups of version 3. What is gone has a
record without a value.
"""

from typing import Final, NamedTuple

from librt.strings import (
    BytesWriter,
    read_i16_be,
    read_i32_be,
    read_i64_be,
    write_i16_be,
    write_i32_be,
    write_i64_be,
)

from barnabas.formats.codec.decoding import (
    allow_memory,
    read_bytes,
    read_compact_bytes,
    read_compact_count,
    read_compact_nullable_string,
    read_compact_string,
    read_count,
    read_nullable_string,
    read_string,
    refuse_null,
    refuse_short,
    skip_tagged_fields,
)
from barnabas.formats.codec.encoding import (
    write_bytes,
    write_count,
    write_nullable_string,
    write_string,
)
from barnabas.model.errors import DecodeError
from barnabas.model.ids import TopicPartition

NO_TIMESTAMP: Final = -1

_OFFSET_KEY_VERSION: Final = 1
_GROUP_KEY_VERSION: Final = 2
_OFFSET_VERSION: Final = 3
_EXPIRING_OFFSET_VERSION: Final = 1
_GROUP_VERSION: Final = 3
_MEMBER_SIZE: Final = 256
"""What a member takes apart from its strings and bytes."""
_FLEXIBLE: Final = 4
"""The first version with compact lengths and tagged fields, and the last that there is."""

_MEMBER_SIZE_MIN: Final = 8
"""Four lengths, two of four bytes in all but the flexible version, and a time-out."""


class OffsetKey(NamedTuple):
    """The key of an offset that a group committed for a partition."""

    group_id: str
    partition: TopicPartition


class GroupKey(NamedTuple):
    """The key of a group's metadata."""

    group_id: str


class UnknownKey(NamedTuple):
    """A key of another version, written by a coordinator of another kind."""

    version: int


class CommittedOffset(NamedTuple):
    """How far a group has read in a partition, and what it noted beside it."""

    offset: int
    leader_epoch: int
    """-1 where it was not told."""
    metadata: str
    commit_timestamp: int
    expire_timestamp: int = NO_TIMESTAMP
    """When it may be forgotten; -1: when the broker's retention says so."""


class MemberMetadata(NamedTuple):
    """A member as of the generation that was written."""

    member_id: str
    group_instance_id: str | None
    client_id: str
    client_host: str
    rebalance_timeout_ms: int
    session_timeout_ms: int
    subscription: bytes
    """What it told of itself for the protocol that was chosen."""
    assignment: bytes


class GroupMetadata(NamedTuple):
    """A generation of a group, complete with what was assigned to whom."""

    protocol_type: str
    generation_id: int
    protocol_name: str | None
    leader_id: str | None
    state_timestamp: int
    """When the group entered the state in which it was written; -1 where it was not told."""
    members: tuple[MemberMetadata, ...]


Key = OffsetKey | GroupKey | UnknownKey


# -- written ---------------------------------------------------------------------------------------


def encode_offset_key(key: OffsetKey) -> bytes:
    writer = BytesWriter()
    write_i16_be(writer, _OFFSET_KEY_VERSION)
    write_string(writer, key.group_id)
    write_string(writer, key.partition.topic)
    write_i32_be(writer, key.partition.partition)
    return writer.getvalue()


def encode_group_key(key: GroupKey) -> bytes:
    writer = BytesWriter()
    write_i16_be(writer, _GROUP_KEY_VERSION)
    write_string(writer, key.group_id)
    return writer.getvalue()


def encode_committed_offset(value: CommittedOffset) -> bytes:
    """Version 3, or 1 when it has its own expiry, which then has no place for the epoch."""
    writer = BytesWriter()
    if value.expire_timestamp == NO_TIMESTAMP:
        write_i16_be(writer, _OFFSET_VERSION)
        write_i64_be(writer, value.offset)
        write_i32_be(writer, value.leader_epoch)
        write_string(writer, value.metadata)
        write_i64_be(writer, value.commit_timestamp)
    else:
        write_i16_be(writer, _EXPIRING_OFFSET_VERSION)
        write_i64_be(writer, value.offset)
        write_string(writer, value.metadata)
        write_i64_be(writer, value.commit_timestamp)
        write_i64_be(writer, value.expire_timestamp)
    return writer.getvalue()


def encode_group_metadata(value: GroupMetadata) -> bytes:
    writer = BytesWriter()
    write_i16_be(writer, _GROUP_VERSION)
    write_string(writer, value.protocol_type)
    write_i32_be(writer, value.generation_id)
    write_nullable_string(writer, value.protocol_name)
    write_nullable_string(writer, value.leader_id)
    write_i64_be(writer, value.state_timestamp)
    write_count(writer, len(value.members))
    for member in value.members:
        write_string(writer, member.member_id)
        write_nullable_string(writer, member.group_instance_id)
        write_string(writer, member.client_id)
        write_string(writer, member.client_host)
        write_i32_be(writer, member.rebalance_timeout_ms)
        write_i32_be(writer, member.session_timeout_ms)
        write_bytes(writer, member.subscription)
        write_bytes(writer, member.assignment)
    return writer.getvalue()


# -- read ------------------------------------------------------------------------------------------


def decode_key(data: bytes) -> Key:
    """`DecodeError` for bytes that are no key at all."""
    reader = _Reader(data)
    version = reader.version
    if version in (0, _OFFSET_KEY_VERSION):
        group_id = reader.string()
        topic = reader.string()
        return OffsetKey(group_id, TopicPartition(topic, reader.int32()))
    if version == _GROUP_KEY_VERSION:
        return GroupKey(reader.string())
    return UnknownKey(version)


def decode_committed_offset(data: bytes) -> CommittedOffset:
    reader = _Reader(data)
    version = reader.version
    if not 0 <= version <= _FLEXIBLE:
        raise DecodeError(f"a committed offset of version {version}")
    offset = reader.int64()
    leader_epoch = reader.int32() if version >= _OFFSET_VERSION else -1
    metadata = reader.string()
    commit_timestamp = reader.int64()
    expires = version == _EXPIRING_OFFSET_VERSION
    expire_timestamp = reader.int64() if expires else NO_TIMESTAMP
    reader.skip_tags()
    return CommittedOffset(offset, leader_epoch, metadata, commit_timestamp, expire_timestamp)


def decode_group_metadata(data: bytes) -> GroupMetadata:
    reader = _Reader(data)
    version = reader.version
    if not 0 <= version <= _FLEXIBLE:
        raise DecodeError(f"group metadata of version {version}")
    protocol_type = reader.string()
    generation_id = reader.int32()
    protocol_name = reader.nullable_string()
    leader_id = reader.nullable_string()
    state_timestamp = reader.int64() if version >= 2 else NO_TIMESTAMP
    members = tuple(_read_member(reader) for _ in range(reader.count(_MEMBER_SIZE_MIN)))
    reader.skip_tags()
    return GroupMetadata(
        protocol_type, generation_id, protocol_name, leader_id, state_timestamp, members
    )


def _read_member(reader: "_Reader") -> MemberMetadata:
    version = reader.version
    member_id = reader.string()
    group_instance_id = reader.nullable_string() if version >= _GROUP_VERSION else None
    client_id = reader.string()
    client_host = reader.string()
    rebalance_timeout_ms = reader.int32() if version >= 1 else -1
    session_timeout_ms = reader.int32()
    subscription = reader.bytes()
    assignment = reader.bytes()
    reader.skip_tags()
    if version == 0:
        # Members of that time had one time-out for both.
        rebalance_timeout_ms = session_timeout_ms
    return MemberMetadata(
        member_id,
        group_instance_id,
        client_id,
        client_host,
        rebalance_timeout_ms,
        session_timeout_ms,
        subscription,
        assignment,
    )


class _Reader:
    """A walk over one key or value, in the notation that its version asks for."""

    __slots__ = ("_data", "_end", "_is_flexible", "_position", "version")

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._end = len(data)
        allow_memory(self._end)
        self._position = 2
        if self._end < 2:
            refuse_short("version", 0, self._end)
        self.version: int = read_i16_be(data, 0)
        self._is_flexible = self.version >= _FLEXIBLE

    def int32(self) -> int:
        return read_i32_be(self._data, self._advance(4))

    def int64(self) -> int:
        return read_i64_be(self._data, self._advance(8))

    def _advance(self, size: int) -> int:
        position = self._position
        if self._end - position < size:
            refuse_short("number", position, self._end)
        self._position = position + size
        return position

    def string(self) -> str:
        read = read_compact_string if self._is_flexible else read_string
        value, self._position = read(self._data, self._position, self._end)
        return value

    def nullable_string(self) -> str | None:
        read = read_compact_nullable_string if self._is_flexible else read_nullable_string
        value, self._position = read(self._data, self._position, self._end)
        return value

    def bytes(self) -> bytes:
        read = read_compact_bytes if self._is_flexible else read_bytes
        value, self._position = read(self._data, self._position, self._end)
        return value

    def count(self, element_size_min: int) -> int:
        read = read_compact_count if self._is_flexible else read_count
        count, self._position = read(
            self._data, self._position, self._end, element_size_min, _MEMBER_SIZE
        )
        if count < 0:
            refuse_null("members")
        return count

    def skip_tags(self) -> None:
        if self._is_flexible:
            self._position = skip_tagged_fields(self._data, self._position, self._end)
