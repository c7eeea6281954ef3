"""The tests' own wire client and the codec agree, although neither knows the other."""

import pytest
from librt.strings import BytesWriter

from barnabas.formats.wire import catalog, headers
from barnabas.formats.wire.api_keys import ApiKey
from tests.e2e.raw_requests import Control, Place, every_request
from tests.e2e.raw_wire import Frame

PLACE = Place("corpus", bytes(range(16)), 3, 5)
FRAMES = list(every_request(PLACE, Control(1, 7, 99), 9092))


@pytest.mark.parametrize("api_key", sorted({frame.api_key for frame in FRAMES}))
def test_a_request_by_hand_is_read_and_written_the_same(api_key: int) -> None:
    for frame in FRAMES:
        if frame.api_key != api_key:
            continue
        data = frame.data
        header = headers.decode_request_header(data, 0, len(data))
        key, version, correlation_id, client_id, body_start = header
        assert (key, version) == (api_key, frame.api_version)
        assert (correlation_id, client_id) == (7, "raw")
        decode = catalog.request_decoder(api_key, frame.api_version)
        body = decode(data, body_start, len(data))
        writer = BytesWriter()
        catalog.request_encoder(api_key, frame.api_version)(writer, body, [])
        assert writer.getvalue() == data[body_start:]


def test_every_byte_of_a_request_is_marked_once() -> None:
    """What mutates frames by their marks must know where everything stands."""
    for frame in FRAMES:
        fields = [mark for mark in frame.marks if mark.kind not in ("array", "element")]
        assert [mark.start for mark in fields] == [0, *(mark.end for mark in fields[:-1])]
        assert fields[-1].end == len(frame.data)


def test_arrays_and_their_elements_are_marked() -> None:
    frame = next(f for f in FRAMES if f.api_key == ApiKey.PRODUCE and f.api_version == 3)
    arrays = [mark for mark in frame.marks if mark.kind == "array"]
    elements = [mark for mark in frame.marks if mark.kind == "element"]
    assert (len(arrays), len(elements)) == (2, 2)
    for element in elements:
        assert any(a.start < element.start and element.end <= a.end for a in arrays)


def test_a_frame_says_what_it_is() -> None:
    assert repr(Frame(3, 1, b"\x00\x03")) == "<request 3 v1 0003>"
