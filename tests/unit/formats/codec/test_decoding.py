"""What the codec refuses to read, and what it refuses to make room for."""

import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st
from librt.strings import BytesWriter

from barnabas.formats.codec.decoding import (
    UNKNOWN_TAGS_MAX,
    UNKNOWN_TAGS_SIZE_MAX,
    no_items,
    read_compact_count,
    read_compact_nullable_string,
    read_compact_string,
    read_count,
    read_int8,
    read_int32_items,
    read_nullable_string,
    read_string,
    read_uvarint,
    skip_tagged_fields,
)
from barnabas.formats.codec.encoding import (
    write_compact_nullable_string,
    write_int8,
    write_nullable_string,
    write_uvarint,
)
from barnabas.formats.codec.errors import Unencodable
from barnabas.formats.codec.no_items import NO_ITEMS
from barnabas.model.errors import DecodeError
from barnabas.model.invariant import InvariantViolated


def written(write: object, value: object) -> bytes:
    writer = BytesWriter()
    assert callable(write)
    write(writer, value)
    return writer.getvalue()


@given(st.integers(0, 2**32 - 1))
def test_varints_of_32_bits_are_read_as_written(value: int) -> None:
    data = written(write_uvarint, value)
    assert read_uvarint(b"\xff" + data, 1, 1 + len(data)) == (value, 1 + len(data))


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(b"", id="empty"),
        pytest.param(b"\x80", id="cut"),
        pytest.param(b"\xff\xff\xff\xff", id="cut after four bytes"),
        pytest.param(b"\xff\xff\xff\xff\x10", id="33 bits"),
        pytest.param(b"\x80\x80\x80\x80\x80\x00", id="six bytes"),
    ],
)
def test_varints_that_are_refused(data: bytes) -> None:
    with pytest.raises(DecodeError):
        read_uvarint(data, 0, len(data))


def test_nothing_is_read_beyond_the_end_that_was_given() -> None:
    with pytest.raises(DecodeError):
        read_uvarint(b"\x80\x01", 0, 1)
    with pytest.raises(DecodeError):
        read_string(b"\x00\x02ab", 0, 3)
    with pytest.raises(DecodeError):
        read_compact_string(b"\x03ab", 0, 2)
    with pytest.raises(DecodeError):
        read_count(b"\x00\x00\x00\x02" + bytes(8), 0, 11, 4, 0)
    with pytest.raises(DecodeError):
        read_compact_count(b"\x03" + bytes(8), 0, 8, 4, 0)


@given(st.none() | st.text(st.characters(exclude_categories=["Cs"]), max_size=300))
def test_strings_are_read_as_written(text: str | None) -> None:
    plain = written(write_nullable_string, text)
    assert read_nullable_string(plain, 0, len(plain)) == (text, len(plain))
    compact = written(write_compact_nullable_string, text)
    assert read_compact_nullable_string(compact, 0, len(compact)) == (text, len(compact))


@pytest.mark.parametrize("raw", [b"\xff", b"\xc3", b"\xed\xa0\x80", b"\xf5\x80\x80\x80", b"a\x80"])
def test_a_string_that_is_not_utf8_is_refused(raw: bytes) -> None:
    with pytest.raises(DecodeError, match="UTF-8"):
        read_string(len(raw).to_bytes(2, "big") + raw, 0, 2 + len(raw))
    with pytest.raises(DecodeError, match="UTF-8"):
        read_compact_string(bytes([len(raw) + 1]) + raw, 0, 1 + len(raw))


def test_null_is_refused_where_no_null_may_be() -> None:
    with pytest.raises(DecodeError, match="null"):
        read_string(b"\xff\xff", 0, 2)
    with pytest.raises(DecodeError, match="null"):
        read_compact_string(b"\x00", 0, 1)


def test_a_compact_string_is_no_longer_than_a_plain_one_can_be() -> None:
    text = "x" * 32768
    data = b"\x81\x80\x02" + text.encode()
    with pytest.raises(DecodeError, match="too many"):
        read_compact_string(data, 0, len(data))
    with pytest.raises(Unencodable):
        written(write_nullable_string, text)
    with pytest.raises(Unencodable):
        written(write_compact_nullable_string, text)


@pytest.mark.parametrize("number", [-129, 128])
def test_a_number_that_is_no_int8_is_not_written(number: int) -> None:
    with pytest.raises(Unencodable):
        written(write_int8, number)


@given(st.integers(-128, 127))
def test_int8_is_read_as_written(number: int) -> None:
    assert read_int8(b"x" + written(write_int8, number), 1) == number


@pytest.mark.parametrize("count", [2**31 - 1, 1000])
def test_a_count_is_held_against_the_bytes_that_remain_before_room_is_made(count: int) -> None:
    plain = count.to_bytes(4, "big") + bytes(100)
    compact = written(write_uvarint, count + 1) + bytes(100)
    tracemalloc.start()
    try:
        with pytest.raises(DecodeError):
            read_count(plain, 0, len(plain), 1, 0)
        with pytest.raises(DecodeError):
            read_compact_count(compact, 0, len(compact), 1, 0)
        assert tracemalloc.get_traced_memory()[1] < 8192
    finally:
        tracemalloc.stop()


def test_counts_below_zero_are_null() -> None:
    assert read_count(b"\xff\xff\xff\xff", 0, 4, 1, 0) == (-1, 4)
    assert read_count(b"\x80\x00\x00\x00", 0, 4, 1, 0) == (-1, 4)
    assert read_compact_count(b"\x00", 0, 1, 1, 0) == (-1, 1)


def test_unknown_tagged_fields_are_skipped() -> None:
    data = b"\x02" + b"\x05\x03abc" + b"\x90\x4e\x00" + b"rest"
    assert skip_tagged_fields(data, 0, len(data)) == len(data) - 4


def test_unknown_tagged_fields_are_limited_in_number() -> None:
    within = bytes([UNKNOWN_TAGS_MAX]) + b"\x07\x00" * UNKNOWN_TAGS_MAX
    assert skip_tagged_fields(within, 0, len(within)) == len(within)
    above = bytes([UNKNOWN_TAGS_MAX + 1]) + b"\x07\x00" * (UNKNOWN_TAGS_MAX + 1)
    with pytest.raises(DecodeError, match="unknown tagged"):
        skip_tagged_fields(above, 0, len(above))


def test_unknown_tagged_fields_are_limited_in_bytes() -> None:
    content = bytes(UNKNOWN_TAGS_SIZE_MAX)
    data = b"\x01\x07" + written(write_uvarint, len(content)) + content
    with pytest.raises(DecodeError, match="unknown tagged"):
        skip_tagged_fields(data, 0, len(data))


def test_a_tagged_field_that_is_longer_than_the_bytes_is_refused() -> None:
    with pytest.raises(DecodeError):
        skip_tagged_fields(b"\x01\x07\x05abc", 0, 6)


def test_the_empty_list_of_decoded_messages_stays_empty() -> None:
    items, position = read_int32_items(b"", 0, 0)
    assert items is NO_ITEMS is no_items()
    assert items == [] and position == 0
    for change in (
        lambda: items.append(1),
        lambda: items.extend([1]),
        lambda: items.insert(0, 1),
        lambda: items.__iadd__([1]),
        lambda: items.__setitem__(slice(0, 0), [1]),
    ):
        with pytest.raises(InvariantViolated):
            change()
    assert items == []


def test_a_change_that_went_around_its_guard_is_noticed_by_the_next_message() -> None:
    list.append(NO_ITEMS, 1)
    with pytest.raises(InvariantViolated, match=r"changed: \[1\]"):
        no_items()
    assert no_items() == []
