"""What a message carries in which version: defaults, tagged fields, records, the end of it."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from librt.strings import BytesWriter

from barnabas.formats.codec.errors import Unencodable
from barnabas.formats.codec.records import RecordsSpan
from barnabas.formats.codec.schema import Api, Array, Field, Kind, Scalar, Struct
from barnabas.formats.wire import catalog
from barnabas.formats.wire.api_keys import ApiKey
from barnabas.formats.wire.generated import fetch, metadata, produce
from barnabas.model.errors import DecodeError
from tests.schemas import (
    SIDES,
    Plain,
    api_versions,
    build,
    decode,
    encode,
    message_of,
    name_version,
    schema_of,
)
from tests.strategies.messages import messages


@pytest.mark.parametrize("pair", api_versions(), ids=name_version)
@settings(max_examples=5)
@given(data=st.data())
def test_messages_decode_to_what_was_encoded(pair: tuple[int, int], data: st.DataObject) -> None:
    key, version = pair
    for side in SIDES:
        value = build(key, message_of(key, side), data.draw(messages(key, version, side)))
        encoded = encode(key, version, side, value)
        assert decode(key, version, side, encoded) == value
        if side == "request":
            assert decode(key, version, side, encoded + b"\0") == value
        else:
            with pytest.raises(DecodeError):
                decode(key, version, side, encoded + b"\0")
        for size in range(len(encoded))[-40:]:
            with pytest.raises(DecodeError):
                decode(key, version, side, encoded[:size])


@pytest.mark.parametrize("key", sorted(catalog.APIS), ids=lambda key: catalog.APIS[key].name)
def test_a_field_without_a_place_is_dropped_or_refused_by_name(key: int) -> None:
    schema = schema_of(key)
    for side in SIDES:
        for version in schema.version_range:
            for path, field in absent_fields(schema, message_of(key, side), version):
                message = one_of_each(message_of(key, side), version, path)
                value = build(key, message_of(key, side), message)
                if field.ignorable:
                    encode(key, version, side, value)
                else:
                    with pytest.raises(Unencodable, match=field.name):
                        encode(key, version, side, value)


def absent_fields(
    schema: Api, struct: Struct, version: int, path: tuple[str, ...] = ()
) -> list[tuple[tuple[str, ...], Field]]:
    """The fields that a version lacks in structs that it has, each with the way to it."""
    found: list[tuple[tuple[str, ...], Field]] = []
    for field in struct.fields:
        kind = field.type.element if isinstance(field.type, Array) else field.type
        if not field.is_in(version):
            found.append(((*path, field.name), field))
        elif isinstance(kind, Struct):
            found += absent_fields(schema, kind, version, (*path, field.name))
    return found


def one_of_each(struct: Struct, version: int, path: tuple[str, ...]) -> Plain:
    """A message with one element in each array on the way to a field, and that field set."""
    head, *rest = path
    for field in struct.fields:
        if field.name != head:
            continue
        if not rest:
            return {head: other_than_default(field)}
        is_array = isinstance(field.type, Array)
        kind = field.type.element if isinstance(field.type, Array) else field.type
        assert isinstance(kind, Struct)
        inner = one_of_each(kind, version, tuple(rest))
        return {head: [inner] if is_array else inner}
    raise AssertionError(path)


def other_than_default(field: Field) -> object:
    """A value that the field does not have by itself."""
    if isinstance(field.type, Array):
        kind = field.type.element
        if isinstance(kind, Struct):
            return [{}]
        return [{Kind.STRING: "x", Kind.UUID: bytes(16)}.get(kind.kind, 7)]
    if isinstance(field.type, Struct):
        return {field.type.fields[0].name: 7}
    assert isinstance(field.type, Scalar)
    values = {
        Kind.BOOL: field.default is not True,
        Kind.STRING: "x",
        Kind.BYTES: b"x",
        Kind.RECORDS: b"x",
        Kind.UUID: b"x" * 16,
    }
    return values.get(field.type.kind, 7)


def test_none_is_refused_in_versions_that_have_no_null() -> None:
    request = metadata.MetadataRequest(topics=None)
    assert decode(ApiKey.METADATA, 1, "request", encode(ApiKey.METADATA, 1, "request", request))
    with pytest.raises(Unencodable, match="topics"):
        encode(ApiKey.METADATA, 0, "request", request)


def test_null_is_refused_in_versions_that_have_none() -> None:
    with pytest.raises(DecodeError, match="null"):
        decode(ApiKey.METADATA, 0, "request", b"\xff\xff\xff\xff")


def test_constructed_messages_do_not_share_their_lists() -> None:
    one, other = metadata.MetadataRequest(), metadata.MetadataRequest()
    assert one.topics is not None
    one.topics.append(metadata.MetadataRequestTopic(name="a"))
    assert other.topics == []
    assert metadata.MetadataRequest().topics == []


def test_unknown_tags_beside_known_ones_are_skipped_within_limits() -> None:
    body = encode(ApiKey.FETCH, 16, "request", fetch.FetchRequest(cluster_id="c"))
    assert body.endswith(b"\x01\x00\x02\x02c")
    head = body[:-5]
    known = b"\x00\x02\x02c"
    unknown = b"\x63\x03abc"
    for tags in (b"\x02" + known + unknown, b"\x02" + unknown + known):
        assert decode(ApiKey.FETCH, 16, "request", head + tags).cluster_id == "c"
    with pytest.raises(DecodeError, match="unknown tagged"):
        decode(ApiKey.FETCH, 16, "request", head + b"\x41" + unknown * 65)
    with pytest.raises(DecodeError, match="size"):
        decode(ApiKey.FETCH, 16, "request", head + b"\x01" + b"\x00\x03\x02c\x00")


def test_a_flexible_struct_of_defaults_has_no_tagged_fields() -> None:
    response = fetch.FetchResponse(
        responses=[fetch.FetchableTopicResponse(partitions=[fetch.PartitionData()])]
    )
    encoded = encode(ApiKey.FETCH, 16, "response", response)
    assert encoded.endswith(b"\0\0\0")
    leader = fetch.LeaderIdAndEpoch(leader_id=1, leader_epoch=2)
    response.responses[0].partitions[0].current_leader = leader
    assert encode(ApiKey.FETCH, 16, "response", response).endswith(
        b"\x01\x01\x09\x00\x00\x00\x01\x00\x00\x00\x02\x00" + b"\0\0"
    )


def test_records_are_a_span_of_the_frame_and_encode_from_wherever_they_are() -> None:
    batch = bytes(range(100))

    def request(records: object) -> produce.ProduceRequest:
        partition = produce.PartitionProduceData(index=1, records=records)
        return produce.ProduceRequest(
            topic_data=[produce.TopicProduceData(name="t", partition_data=[partition])]
        )

    for version in (3, 9):
        expected = encode(ApiKey.PRODUCE, version, "request", request(batch))
        frame = b"before" + expected + b"after"
        decoder = catalog.request_decoder(ApiKey.PRODUCE, version)
        decoded = decoder(frame, 6, 6 + len(expected))
        span = decoded.topic_data[0].partition_data[0].records
        assert isinstance(span, RecordsSpan)
        assert span.data is frame
        assert frame[span.start : span.end] == batch == span.to_bytes()
        assert span.size_bytes == 100
        for same in (span, memoryview(batch), memoryview(batch + b"x")[:100]):
            assert encode(ApiKey.PRODUCE, version, "request", request(same)) == expected


class SliceOfFile:
    """What storage gives for records that stay on disk."""

    def __init__(self, size_bytes: int) -> None:
        self.size_bytes = size_bytes


@pytest.mark.parametrize("version", [11, 12])
def test_records_outside_memory_are_cut_out(version: int) -> None:
    def response(first: object, second: object) -> fetch.FetchResponse:
        partitions = [
            fetch.PartitionData(partition_index=0, records=first),
            fetch.PartitionData(partition_index=1, records=None),
            fetch.PartitionData(partition_index=2, records=second),
        ]
        return fetch.FetchResponse(responses=[fetch.FetchableTopicResponse(partitions=partitions)])

    first, second = b"a" * 5000, b"b" * 300
    whole = encode(ApiKey.FETCH, version, "response", response(first, second))
    writer = BytesWriter()
    cuts: list[tuple[int, object]] = []
    slices = SliceOfFile(5000), SliceOfFile(300)
    catalog.response_encoder(ApiKey.FETCH, version)(writer, response(*slices), cuts)
    written = writer.getvalue()
    assert [content for _, content in cuts] == list(slices)
    (at_first, _), (at_second, _) = cuts
    assert (
        written[:at_first] + first + written[at_first:at_second] + second + written[at_second:]
        == whole
    )


def test_bytes_behind_a_request_are_left_as_kafka_leaves_them():
    """Metadata 12 as librdkafka 2.16 sends it to learn of the brokers alone."""
    body = bytes.fromhex("00000000010000")
    decode = catalog.request_decoder(ApiKey.METADATA, 12)
    message = decode(body, 0, len(body))
    assert message == decode(body[:4], 0, 4)
    assert message.topics is None
