"""Checkpoints, meta.properties, partition.metadata and the mark of a clean stop."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.formats.logdir.checkpoints import (
    EpochEntry,
    decode_epoch_checkpoint,
    decode_offset_checkpoint,
    encode_epoch_checkpoint,
    encode_offset_checkpoint,
)
from barnabas.formats.logdir.clean_shutdown import decode_clean_shutdown, encode_clean_shutdown
from barnabas.formats.logdir.meta_properties import (
    MetaProperties,
    decode_meta_properties,
    encode_meta_properties,
)
from barnabas.formats.logdir.partition_metadata import (
    decode_partition_metadata,
    encode_partition_metadata,
    topic_id_from_text,
    topic_id_to_text,
)
from barnabas.model.errors import DecodeError
from barnabas.model.ids import TopicId, TopicPartition
from tests.behaviours import behaviour

TOPICS = st.from_regex(r"[a-zA-Z0-9._-]{1,20}", fullmatch=True)
KEYS = st.builds(TopicPartition, TOPICS, st.integers(0, 2**31 - 1))


@given(st.dictionaries(KEYS, st.integers(0, 2**63 - 1), max_size=20))
def test_offset_checkpoints_are_read_as_written(offsets: dict[TopicPartition, int]) -> None:
    assert decode_offset_checkpoint(encode_offset_checkpoint(offsets)) == offsets


def test_an_offset_checkpoint_is_kafkas_text() -> None:
    offsets = {TopicPartition("b", 1): 5, TopicPartition("a", 0): 7}
    assert encode_offset_checkpoint(offsets) == b"0\n2\na 0 7\nb 1 5\n"
    assert encode_offset_checkpoint({}) == b"0\n0\n"
    assert decode_offset_checkpoint(b"") == {}


@behaviour("L22")
def test_a_leader_epoch_checkpoint_has_version_count_and_a_line_per_epoch() -> None:
    assert decode_epoch_checkpoint(b"0\n1\n2 9832") == [EpochEntry(2, 9832)]
    assert (
        encode_epoch_checkpoint([EpochEntry(0, 0), EpochEntry(2, 9832)]) == b"0\n2\n0 0\n2 9832\n"
    )


@pytest.mark.parametrize(
    "data",
    [
        b"1\n0\n",
        b"x\n0\n",
        b"0\n",
        b"0\nmany\n",
        b"0\n2\na 0 7\n",
        b"0\n1\na 0 7\nb 0 7\n",
        b"0\n1\na 0\n",
        b"0\n1\na 0 x\n",
        b"0\n1\na 0 7 8\n",
        b"\xff\xfe",
    ],
)
def test_a_malformed_checkpoint_is_refused(data: bytes) -> None:
    with pytest.raises(DecodeError):
        decode_offset_checkpoint(data)


def test_a_malformed_epoch_checkpoint_is_refused() -> None:
    for data in (b"0\n1\n2\n", b"0\n1\n2 x\n", b"0\n1\n1 2 3\n"):
        with pytest.raises(DecodeError):
            decode_epoch_checkpoint(data)


def test_meta_properties_are_read_as_java_writes_them() -> None:
    data = b"#\n#Wed Nov 18 21:46:21 UTC 2026\nbroker.id=1\nversion=0\ncluster.id=qb8tma_BT\n"
    assert decode_meta_properties(data, "meta.properties") == MetaProperties(0, "qb8tma_BT", 1)
    kraft = b"version=1\nnode.id=3\ncluster.id=abc\ndirectory.id=xyz\n"
    assert decode_meta_properties(kraft, "m") == MetaProperties(1, "abc", 3, "xyz")


@given(
    st.builds(
        MetaProperties,
        st.just(0),
        st.none() | st.from_regex(r"[A-Za-z0-9_-]{1,30}", fullmatch=True),
        st.none() | st.integers(0, 2**31 - 1),
        st.none() | st.from_regex(r"[A-Za-z0-9_-]{22}", fullmatch=True),
    )
)
def test_meta_properties_are_read_as_written(properties: MetaProperties) -> None:
    assert decode_meta_properties(encode_meta_properties(properties), "m") == properties


@pytest.mark.parametrize("data", [b"version=2\n", b"version=x\n", b"version=0\nbroker.id=one\n"])
def test_malformed_meta_properties_are_refused(data: bytes) -> None:
    with pytest.raises(DecodeError):
        decode_meta_properties(data, "meta.properties")


@given(st.binary(min_size=16, max_size=16).filter(any))
def test_topic_ids_are_read_as_written(raw: bytes) -> None:
    topic_id = TopicId(raw)
    text = topic_id_to_text(topic_id)
    assert len(text) == 22
    assert topic_id_from_text(text) == topic_id
    assert decode_partition_metadata(encode_partition_metadata(topic_id)) == topic_id


def test_partition_metadata_is_kafkas_text() -> None:
    topic_id = topic_id_from_text("Pa9bduvfT5KCdvv3RpyHeg")
    expected = b"version: 0\ntopic_id: Pa9bduvfT5KCdvv3RpyHeg"
    assert encode_partition_metadata(topic_id) == expected


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"version: 1\ntopic_id: Pa9bduvfT5KCdvv3RpyHeg",
        b"version: 0",
        b"version: 0\ntopic_id: tooshort",
        b"version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAAA",
        b"version 0\ntopic_id Pa9bduvfT5KCdvv3RpyHeg",
        b"version: 0\ntopic_id: !!!!!!!!!!!!!!!!!!!!!!",
    ],
)
def test_malformed_partition_metadata_is_refused(data: bytes) -> None:
    with pytest.raises(DecodeError):
        decode_partition_metadata(data)


def test_the_mark_of_a_clean_stop_is_json_since_37_and_was_empty_before() -> None:
    assert encode_clean_shutdown(-1) == b'{"version":0,"brokerEpoch":-1}'
    assert decode_clean_shutdown(encode_clean_shutdown(42)) == 42
    for data in (b"", b"[1]", b"{}", b'{"brokerEpoch":"x"}', b'{"brokerEpoch":true}', b"\xff"):
        assert decode_clean_shutdown(data) == -1
