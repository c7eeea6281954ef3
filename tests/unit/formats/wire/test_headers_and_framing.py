"""Headers in all their versions, and whole frames with the cuts a transport fills."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from librt.strings import BytesWriter

from barnabas.formats.wire import catalog
from barnabas.formats.wire.api_keys import ApiKey
from barnabas.formats.wire.framing import request_frame, response_parts
from barnabas.formats.wire.generated import api_versions as api_versions_module
from barnabas.formats.wire.generated import controlled_shutdown, fetch, produce
from barnabas.formats.wire.headers import (
    decode_request_header,
    decode_response_header,
    encode_request_header,
    encode_response_header,
)
from barnabas.model.errors import DecodeError
from barnabas.model.invariant import InvariantViolated
from tests.oracles import kafka_json
from tests.schemas import api_versions
from tests.tools import need

CLIENT_IDS = st.none() | st.text(st.characters(exclude_categories=["Cs"]), max_size=20)


@given(st.sampled_from(api_versions()), st.integers(-(2**31), 2**31 - 1), CLIENT_IDS, st.binary())
def test_request_headers_are_read_as_written(
    pair: tuple[int, int], correlation_id: int, client_id: str | None, body: bytes
) -> None:
    key, version = pair
    writer = BytesWriter()
    encode_request_header(writer, key, version, correlation_id, client_id)
    header = writer.getvalue()
    data = b"xx" + header + body
    has_client_id = (key, version) != (ApiKey.CONTROLLED_SHUTDOWN, 0)
    assert decode_request_header(data, 2, len(data)) == (
        key,
        version,
        correlation_id,
        client_id if has_client_id else None,
        2 + len(header),
    )
    for size in range(len(header)):
        with pytest.raises(DecodeError):
            decode_request_header(header, 0, size)


@given(st.sampled_from(api_versions()), st.integers(-(2**31), 2**31 - 1), st.binary())
def test_response_headers_are_read_as_written(
    pair: tuple[int, int], correlation_id: int, body: bytes
) -> None:
    key, version = pair
    writer = BytesWriter()
    encode_response_header(writer, key, version, correlation_id)
    header = writer.getvalue()
    data = header + body
    assert decode_response_header(data, 0, len(data), key, version) == (
        correlation_id,
        len(header),
    )
    for size in range(len(header)):
        with pytest.raises(DecodeError):
            decode_response_header(header, 0, size, key, version)


def test_headers_are_those_of_kafkas_definitions() -> None:
    need("java")
    for key, version in api_versions():
        api = catalog.APIS[key]
        writer = BytesWriter()
        encode_request_header(writer, key, version, 77, "client")
        oracle = kafka_json.JsonCodec(
            kafka_json.header("RequestHeader"), api.request_header_version(version)
        )
        expected = {
            "request_api_key": key,
            "request_api_version": version,
            "correlation_id": 77,
            "client_id": "client",
        }
        assert writer.getvalue() == oracle.encode(expected)
        writer = BytesWriter()
        encode_response_header(writer, key, version, 77)
        oracle = kafka_json.JsonCodec(
            kafka_json.header("ResponseHeader"), api.response_header_version(version)
        )
        assert writer.getvalue() == oracle.encode({"correlation_id": 77})


def test_the_answer_to_api_versions_has_a_header_that_any_client_can_read() -> None:
    writer = BytesWriter()
    encode_response_header(writer, ApiKey.API_VERSIONS, 4, 5)
    assert writer.getvalue() == b"\0\0\0\x05"


def test_the_header_of_an_api_versions_request_from_the_future_can_be_read() -> None:
    frame = b"\x00\x12\x7f\xff\x00\x00\x00\x09\x00\x02me\x00" + b"anything"
    header = decode_request_header(frame, 0, len(frame))
    assert header == (ApiKey.API_VERSIONS, 32767, 9, "me", 13)


def test_a_client_id_that_is_no_text_keeps_nobody_out() -> None:
    frame = b"\x00\x03\x00\x01\x00\x00\x00\x09\x00\x03a\xff\xc3"
    assert decode_request_header(frame, 0, len(frame))[3] == "a\ufffd\ufffd"


def test_the_oldest_controlled_shutdown_has_no_client_id() -> None:
    request = controlled_shutdown.ControlledShutdownRequest(broker_id=3)
    frame = request_frame(ApiKey.CONTROLLED_SHUTDOWN, 0, 1, "ignored", request)
    assert frame == bytes.fromhex("0000000c 0007 0000 00000001 00000003")


def test_an_unknown_api_cannot_be_read() -> None:
    for key in (-1, 17, 52, 1000):
        frame = key.to_bytes(2, "big", signed=True) + bytes(20)
        with pytest.raises(DecodeError, match="is not served"):
            decode_request_header(frame, 0, len(frame))


def test_unknown_tags_of_a_header_are_skipped() -> None:
    frame = b"\x00\x12\x00\x03\x00\x00\x00\x09\xff\xff" + b"\x01\x05\x02hi" + b"body"
    assert decode_request_header(frame, 0, len(frame))[4] == len(frame) - 4


def test_a_frame_says_how_long_it_is() -> None:
    request = api_versions_module.ApiVersionsRequest(client_software_name="n")
    frame = request_frame(ApiKey.API_VERSIONS, 3, 7, "c", request)
    assert frame[:4] == (len(frame) - 4).to_bytes(4, "big")
    large = produce.ProduceRequest(transactional_id="x" * 30000)
    frame = request_frame(ApiKey.PRODUCE, 9, 7, "c" * 30000, large)
    assert frame[:4] == (len(frame) - 4).to_bytes(4, "big")
    assert len(frame) > 60000


class SliceOfFile:
    """What storage gives for records that stay on disk."""

    def __init__(self, content: bytes) -> None:
        self.content = content

    @property
    def size_bytes(self) -> int:
        return len(self.content)


def fetch_response(*records: object) -> fetch.FetchResponse:
    partitions = [fetch.PartitionData(records=each) for each in records]
    return fetch.FetchResponse(responses=[fetch.FetchableTopicResponse(partitions=partitions)])


@pytest.mark.parametrize("version", [4, 12])
@given(contents=st.lists(st.none() | st.binary(max_size=300), min_size=1, max_size=5))
def test_parts_with_slices_add_up_to_the_frame_without_them(
    version: int, contents: list[bytes | None]
) -> None:
    (whole,) = response_parts(ApiKey.FETCH, version, 7, fetch_response(*contents))
    slices = [None if content is None else SliceOfFile(content) for content in contents]
    parts = response_parts(ApiKey.FETCH, version, 7, fetch_response(*slices))
    assert [part for part in parts if not isinstance(part, bytes)] == [
        each for each in slices if each is not None
    ]
    joined = b"".join(part if isinstance(part, bytes) else part.content for part in parts)
    assert joined == whole
    assert whole[:4] == (len(whole) - 4).to_bytes(4, "big")


def test_a_request_has_its_records_in_memory() -> None:
    partition = produce.PartitionProduceData(records=SliceOfFile(b"x"))
    topic = produce.TopicProduceData(name="t", partition_data=[partition])
    request = produce.ProduceRequest(topic_data=[topic])
    with pytest.raises(InvariantViolated, match="outside memory"):
        request_frame(ApiKey.PRODUCE, 9, 7, "c", request)
