"""Records and batches for the tests of this directory, and how hypothesis makes more of them."""

from hypothesis import strategies as st

from barnabas.formats.batches.compression import CompressionCodec
from barnabas.formats.batches.reader import Record, RecordHeader

NOW_MS = 1_700_000_000_000

nullable_bytes = (
    st.none()
    | st.binary(max_size=60)
    | st.binary(min_size=1, max_size=3).map(lambda piece: piece * 200)
)
headers = st.lists(st.builds(RecordHeader, st.text(max_size=12), nullable_bytes), max_size=3).map(
    tuple
)
timestamps = st.integers(min_value=0, max_value=2**42) | st.just(-1)
codecs = st.sampled_from(list(CompressionCodec))


@st.composite
def records(draw: st.DrawFn, *, max_size: int = 12, with_headers: bool = True) -> list[Record]:
    """Records as a producer hands them over: without offsets."""
    return [
        Record(
            0,
            draw(timestamps),
            draw(nullable_bytes),
            draw(nullable_bytes),
            draw(headers) if with_headers else (),
        )
        for _ in range(draw(st.integers(1, max_size)))
    ]


def some_records(count: int, value_bytes: int = 20) -> list[Record]:
    """Records that differ, each with a key and every third one with headers."""
    return [
        Record(
            0,
            NOW_MS + index,
            b"key-%d" % index,
            (b"value-%d-" % index) * (value_bytes // 8 + 1),
            (RecordHeader("trace", b"%d" % index), RecordHeader("empty", None)) * (index % 3 == 0),
        )
        for index in range(count)
    ]


def renumbered(given: list[Record], base_offset: int, base_sequence: int = -1) -> list[Record]:
    """What reading back a batch of `given` must show."""
    return [
        record._replace(
            offset=base_offset + index,
            sequence=-1 if base_sequence < 0 else (base_sequence + index) % 2**31,
        )
        for index, record in enumerate(given)
    ]
