"""Records of __consumer_offsets: known bytes, and what bytes that are none give."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.formats.internal_topics.consumer_offsets import (
    CommittedOffset,
    GroupKey,
    GroupMetadata,
    MemberMetadata,
    OffsetKey,
    UnknownKey,
    decode_committed_offset,
    decode_group_metadata,
    decode_key,
    encode_committed_offset,
    encode_group_key,
    encode_group_metadata,
    encode_offset_key,
)
from barnabas.formats.internal_topics.consumer_subscription import subscribed_topics
from barnabas.model.errors import DecodeError
from barnabas.model.ids import TopicPartition

MEMBER = MemberMetadata("m", None, "c", "/h", 60_000, 10_000, b"s", b"as")
GROUP = GroupMetadata("consumer", 3, "range", "m", 9, (MEMBER,))


def test_keys_are_bytes_that_are_known():
    key = OffsetKey("g", TopicPartition("t", 7))
    assert encode_offset_key(key) == bytes.fromhex("0001 0001 67 0001 74 00000007")
    assert encode_group_key(GroupKey("g")) == bytes.fromhex("0002 0001 67")
    assert decode_key(encode_offset_key(key)) == key
    assert decode_key(b"\x00\x00" + encode_offset_key(key)[2:]) == key
    assert decode_key(bytes.fromhex("0002 0001 67")) == GroupKey("g")
    assert decode_key(bytes.fromhex("0003 0001 67")) == UnknownKey(3)


def test_offsets_are_bytes_that_are_known():
    offset = CommittedOffset(5, 2, "m", 9)
    written = encode_committed_offset(offset)
    assert written == bytes.fromhex("0003 0000000000000005 00000002 0001 6d 0000000000000009")
    assert decode_committed_offset(written) == offset
    expiring = offset._replace(expire_timestamp=11)
    written = encode_committed_offset(expiring)
    assert written == bytes.fromhex(
        "0001 0000000000000005 0001 6d 0000000000000009 000000000000000b"
    )
    assert decode_committed_offset(written) == expiring._replace(leader_epoch=-1)
    flexible = bytes.fromhex("0004 0000000000000005 00000002 02 6d 0000000000000009 00")
    assert decode_committed_offset(flexible) == offset


def test_groups_are_bytes_that_are_known():
    written = encode_group_metadata(GROUP)
    assert written == (
        bytes.fromhex("0003 0008") + b"consumer" + bytes.fromhex("00000003 0005") + b"range"
        b"\x00\x01m" + bytes.fromhex("0000000000000009 00000001") + b"\x00\x01m"
        b"\xff\xff\x00\x01c\x00\x02/h"
        + bytes.fromhex("0000ea60 00002710 00000001 73 00000002 6173")
    )
    assert decode_group_metadata(written) == GROUP
    empty = GroupMetadata("", 4, None, None, -1, ())
    assert decode_group_metadata(encode_group_metadata(empty)) == empty


@given(st.binary(max_size=80), st.sampled_from([0, 1, 2, 3, 4, 5, 0xFFFF]))
def test_other_bytes_give_a_value_or_the_one_error(data: bytes, version: int):
    for decode in (decode_key, decode_committed_offset, decode_group_metadata, subscribed_topics):
        for bytes_read in (data, version.to_bytes(2, "big") + data):
            try:
                decode(bytes_read)
            except DecodeError:
                continue


@given(st.data())
def test_every_cut_and_every_changed_byte_gives_a_value_or_the_one_error(data: st.DataObject):
    written = bytearray(encode_group_metadata(GROUP))
    at = data.draw(st.integers(0, len(written) - 1))
    with pytest.raises(DecodeError):
        decode_group_metadata(bytes(written[:at]))
    written[at] = data.draw(st.integers(0, 255))
    try:
        decode_group_metadata(bytes(written))
    except DecodeError:
        return


@pytest.mark.parametrize("version", ["0000", "0001", "0003", "0063"])
def test_topics_are_read_from_subscriptions_of_every_version(version: str):
    head = bytes.fromhex(version + "00000002 0001 74 0001 75")
    assert subscribed_topics(head + b"\xff\xff\xff\xff") == {"t", "u"}
    assert subscribed_topics(head + b"\x00\x00\x00\x01xmore") == {"t", "u"}


@pytest.mark.parametrize("data", ["", "ffff 00000000 ffffffff", "0000 ffffffff", "0000 00000000"])
def test_what_is_no_subscription_is_refused(data: str):
    with pytest.raises(DecodeError):
        subscribed_topics(bytes.fromhex(data))
