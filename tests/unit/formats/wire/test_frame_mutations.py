"""Any byte of a frame may be any other: a value that encodes again, or DecodeError, and no more.

Memory is bounded by eight times the frame, a few MiB being free: for real frames, for what counts
claim to follow, and for the elements that take the most memory for their bytes.
"""

import json
import tracemalloc
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from barnabas.formats.codec import decoding
from barnabas.formats.codec.decoding import ELEMENTS_MAX, MEMORY_FLOOR, MEMORY_PER_BYTE
from barnabas.formats.codec.schema import Array, Kind, Scalar, Struct
from barnabas.formats.wire import catalog
from barnabas.formats.wire.api_keys import ApiKey
from barnabas.formats.wire.headers import decode_request_header, decode_response_header
from barnabas.model.errors import DecodeError
from tests.effort import some_of
from tests.schemas import (
    SIDES,
    Plain,
    api_versions,
    build,
    decode,
    encode,
    message_of,
    name_version,
)
from tests.strategies.messages import messages

VECTORS = Path(__file__).parents[3] / "vectors" / "wire"
OTHER_BYTES = (0x00, 0x01, 0x7F, 0x80, 0xFF)
POSITIONS_MAX = 150
ABOVE_FLOOR = 600_000
"""A frame of so many bytes may take more than the least that every frame may."""
SMALL_CHANGE = 8192
"""What an empty message, an exception and the counting itself may take on top."""


def check_bytes(key: int, version: int, side: str, data: bytes) -> bool:
    """Whether the bytes are a message; if so, it encodes, and to what decodes to the same."""
    try:
        value = decode(key, version, side, data)
    except DecodeError:
        return False
    assert decode(key, version, side, encode(key, version, side, value)) == value
    return True


@pytest.mark.parametrize("pair", api_versions(), ids=name_version)
@settings(max_examples=2)
@given(data=st.data())
def test_any_byte_may_be_changed(pair: tuple[int, int], data: st.DataObject) -> None:
    key, version = pair
    for side in SIDES:
        plain = data.draw(messages(key, version, side))
        encoded = encode(key, version, side, build(key, message_of(key, side), plain))
        step = 1 + len(encoded) // POSITIONS_MAX
        for position in range(0, len(encoded), step):
            for byte in OTHER_BYTES:
                mutated = bytearray(encoded)
                mutated[position] = byte
                check_bytes(key, version, side, bytes(mutated))


@pytest.mark.parametrize("module", sorted(path.stem for path in VECTORS.glob("*.jsonl")))
def test_any_byte_of_a_recorded_frame_may_be_changed(module: str) -> None:
    key = next(api.key for api in catalog.APIS.values() if api.module == module)
    lines = (VECTORS / f"{module}.jsonl").read_text(encoding="utf-8").splitlines()
    longest: dict[tuple[str, int], bytes] = {}
    for row in map(json.loads, lines):
        frame = bytes.fromhex(row["raw"])
        place = (row["side"], row["version"])
        if len(frame) > len(longest.get(place, b"")):
            longest[place] = frame
    for (side, version), frame in longest.items():
        if side == "request":
            start = decode_request_header(frame, 0, len(frame))[4]
        else:
            start = decode_response_header(frame, 0, len(frame), key, version)[1]
        body = frame[start:]
        assert check_bytes(key, version, side, body)
        for position in range(len(body)):
            for byte in (body[position] ^ 0x01, body[position] ^ 0x80, 0xFF, 0x00):
                mutated = body[:position] + bytes([byte]) + body[position + 1 :]
                # Threads of a test runner allocate as well: what decoding takes, it takes again.
                assert peak_of_decoding(key, version, side, mutated) < bound(
                    mutated
                ) or peak_of_decoding(key, version, side, mutated) < bound(mutated)


def decode_or_refuse(key: int, version: int, side: str, data: bytes) -> object:
    try:
        return decode(key, version, side, data)
    except DecodeError:
        return None


def bound(frame: bytes) -> int:
    return 8 * len(frame) + SMALL_CHANGE


def peak_of_decoding(key: int, version: int, side: str, data: bytes) -> int:
    """The bytes that were allocated at the most while a frame was decoded."""
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        decode_or_refuse(key, version, side, data)
        return tracemalloc.get_traced_memory()[1] - before
    finally:
        tracemalloc.stop()


IDS = [1001, 1002, 1003]
NUMBERS = range(300, 4300)
DENSE: dict[tuple[ApiKey, int, str], Plain] = {
    (ApiKey.LEADER_AND_ISR, 7, "request"): {
        "topic_states": [
            {
                "topic_name": "topic",
                "partition_states": [
                    {"partition_index": n, "isr": IDS, "replicas": IDS} for n in NUMBERS
                ],
            }
        ]
    },
    (ApiKey.UPDATE_METADATA, 8, "request"): {
        "topic_states": [
            {
                "topic_name": "topic",
                "partition_states": [
                    {"partition_index": n, "isr": IDS, "replicas": IDS} for n in NUMBERS
                ],
            }
        ]
    },
    (ApiKey.METADATA, 12, "response"): {
        "topics": [
            {
                "name": "topic",
                "partitions": [
                    {"partition_index": n, "replica_nodes": IDS, "isr_nodes": IDS} for n in NUMBERS
                ],
            }
        ]
    },
    (ApiKey.FETCH, 12, "request"): {
        "topics": [
            {"topic": f"topic-{n}", "partitions": [{"partition": n, "fetch_offset": n * 1000}]}
            for n in NUMBERS
        ]
    },
    (ApiKey.OFFSET_COMMIT, 9, "request"): {
        "topics": [
            {
                "name": "topic",
                "partitions": [
                    {"partition_index": n, "committed_offset": n * 1000} for n in NUMBERS
                ],
            }
        ]
    },
    (ApiKey.OFFSET_FETCH, 7, "request"): {
        "topics": [{"name": "topic", "partition_indexes": list(NUMBERS)}]
    },
    (ApiKey.CREATE_TOPICS, 7, "request"): {
        "topics": [
            {"name": f"topic-{n}", "num_partitions": 3, "replication_factor": 3} for n in NUMBERS
        ]
    },
}
"""Much structure and few bytes in it, as large clusters send them."""


@pytest.mark.parametrize("message", DENSE, ids=lambda message: f"{message[0].name}-v{message[1]}")
def test_decoded_messages_of_large_clusters_take_less_than_eight_times_their_bytes(
    message: tuple[ApiKey, int, str],
) -> None:
    key, version, side = message
    value = build(key, message_of(key, side), DENSE[message])
    encoded = encode(key, version, side, value)
    assert len(encoded) > SMALL_CHANGE
    assert decode(key, version, side, encoded) == value
    assert peak_of_decoding(key, version, side, encoded) < bound(encoded)


@pytest.mark.parametrize(
    "message",
    [message for message in DENSE if message[0] not in (ApiKey.OFFSET_COMMIT, ApiKey.OFFSET_FETCH)],
    ids=lambda message: f"{message[0].name}-v{message[1]}",
)
def test_a_legal_message_may_have_any_size(message: tuple[ApiKey, int, str]) -> None:
    """Beyond what is free as well: nothing is counted that such messages do not take."""
    key, version, side = message
    ((array, topics),) = DENSE[message].items()
    if len(topics) > 1:
        plain = {array: topics * 48}
    else:
        rows = next(name for name, value in topics[0].items() if isinstance(value, list))
        plain = {array: [{**topics[0], rows: topics[0][rows] * 48}]}
    encoded = encode(key, version, side, build(key, message_of(key, side), plain))
    assert len(encoded) * MEMORY_PER_BYTE > 1.5 * MEMORY_FLOOR
    decode(key, version, side, encoded)


BIG = {Kind.INT8: -100, Kind.INT16: 30_000, Kind.INT32: 2_000_000_000, Kind.INT64: 2**62}


def filled(struct: Struct, version: int, field_count: int, *, is_costly: bool) -> Plain:
    """A message or element whose arrays have so many elements, and those one each.

    The cheapest on the wire, or those whose values are objects of their own.
    """
    plain: Plain = {}
    for field in struct.fields:
        if not field.is_in(version):
            continue
        kind = field.type
        if isinstance(kind, Array):
            one = item_of(kind.element, version, is_costly)
            plain[field.name] = [one] * field_count
        elif isinstance(kind, Scalar) and is_costly:
            plain[field.name] = scalar_of(kind, is_costly)
    return plain


def item_of(element: Scalar | Struct, version: int, is_costly: bool) -> object:
    if isinstance(element, Struct):
        return filled(element, version, 1, is_costly=is_costly)
    return scalar_of(element, is_costly)


def scalar_of(kind: Scalar, is_costly: bool) -> object:
    match kind.kind:
        case Kind.BOOL:
            return False
        case Kind.STRING:
            return "a\U0001f600" if is_costly else ""
        case Kind.UUID:
            return bytes(range(16))
        case Kind.BYTES | Kind.RECORDS:
            return b"ab" if is_costly else b""
        case number:
            return BIG[number] if is_costly else 0


def frames_of(key: int, version: int, side: str, size: int) -> list[bytes]:
    """Messages of at least so many bytes, as far as they have arrays at all."""
    struct = message_of(key, side)
    frames: list[bytes] = []
    for is_costly in (False, True):
        lengths: list[int] = []
        for count in (1, 2):
            plain = filled(struct, version, count, is_costly=is_costly)
            lengths.append(len(encode(key, version, side, build(key, struct, plain))))
        step = lengths[1] - lengths[0]
        if step <= 0:
            continue
        count = min(1 + size // step, ELEMENTS_MAX)
        plain = filled(struct, version, count, is_costly=is_costly)
        frames.append(encode(key, version, side, build(key, struct, plain)))
    return frames


@pytest.mark.parametrize("pair", api_versions(), ids=name_version)
def test_no_elements_take_more_memory_than_is_counted(pair: tuple[int, int]) -> None:
    for side in SIDES:
        decode_or_refuse(*pair, side, b"")  # the import of the codec is not what is measured
        for frame in frames_of(*pair, side, 8_000):
            # What other threads of this process take meanwhile is counted with it: not every time.
            assert any(
                peak_of_decoding(*pair, side, frame)
                < MEMORY_FLOOR - decoding._MEMORY.left + SMALL_CHANGE
                for _ in range(3)
            )


@pytest.mark.parametrize(
    ("key", "size"),
    some_of(
        [
            (ApiKey.METADATA, ABOVE_FLOOR),
            (ApiKey.METADATA, 16 * ABOVE_FLOOR),
            (ApiKey.FETCH, ABOVE_FLOOR),
            (ApiKey.METADATA, 4 * ABOVE_FLOOR),
            (ApiKey.LEADER_AND_ISR, ABOVE_FLOOR),
            (ApiKey.CREATE_TOPICS, 2 * ABOVE_FLOOR),
        ],
        2,
    ),
)
def test_large_frames_take_eight_times_their_size_at_most(key: ApiKey, size: int) -> None:
    version = catalog.APIS[key].max_version
    for frame in frames_of(key, version, "request", size):
        most = max(MEMORY_PER_BYTE * len(frame), MEMORY_FLOOR)
        assert peak_of_decoding(key, version, "request", frame) < most + SMALL_CHANGE


def test_what_would_take_too_much_is_refused() -> None:
    names = [{"name": "ab"}] * 200_000
    frame = encode(3, 1, "request", build(3, message_of(3, "request"), {"topics": names}))
    with pytest.raises(DecodeError, match="too many times its size in memory"):
        decode(3, 1, "request", frame)


@pytest.mark.parametrize("pair", api_versions(), ids=name_version)
def test_a_count_that_claims_more_than_there_is_takes_no_memory(pair: tuple[int, int]) -> None:
    key, version = pair
    for side in SIDES:
        decode_or_refuse(key, version, side, b"")  # the import of the codec is not what is measured
        for filling in (b"\xff\xff\xff\xff\x0f", b"\x7f\xff\xff\xff", b"\xff\xff\xff\x7f", b"\x7f"):
            frame = filling * 500
            assert peak_of_decoding(key, version, side, frame) < bound(frame)
