"""Messages of any API and version as plain dictionaries, derived from the schemas."""

from functools import cache
from typing import Any

from hypothesis import strategies as st

from barnabas.formats.codec.schema import Array, Field, Kind, Scalar, Struct
from tests.schemas import Plain, message_of

WIDTHS = {Kind.INT8: 8, Kind.INT16: 16, Kind.INT32: 32, Kind.INT64: 64}

KNOWN_ERROR_CODES = st.integers(-1, 127)
WHOLE_SECONDS_MS = st.just(-1) | st.integers(0, 4_000_000_000).map(lambda seconds: seconds * 1000)
TIMES = {"log_append_time_ms", "retention_time_ms"}

TEXT = st.one_of(
    st.text(st.characters(exclude_categories=["Cs"]), max_size=8),
    st.sampled_from(["", "topic-1", "x" * 126, "x" * 127, "x" * 200, "\0", "\u20ac\U0001f40d"]),
)
BYTES = st.one_of(st.binary(max_size=8), st.sampled_from([b"", bytes(127), bytes(300)]))


@cache
def messages(
    key: int, version: int, side: str, *, named_only: bool = False
) -> st.SearchStrategy[Plain]:
    """Values for every field of a message's version.

    With `named_only`, error codes are known ones and times are whole seconds of years
    that have a name, for codecs that read them as such.
    """
    return _structs(message_of(key, side), version, named_only)


def _structs(struct: Struct, version: int, named_only: bool) -> st.SearchStrategy[Plain]:
    return st.fixed_dictionaries(
        {
            field.name: _values(field, version, named_only)
            for field in struct.fields
            if field.is_in(version)
        }
    )


def _values(field: Field, version: int, named_only: bool) -> st.SearchStrategy[Any]:
    if named_only and field.name.endswith("error_code"):
        return KNOWN_ERROR_CODES
    if named_only and field.name in TIMES:
        return WHOLE_SECONDS_MS
    if isinstance(field.type, Struct):
        values = _structs(field.type, version, named_only)
    elif isinstance(field.type, Array):
        values = _arrays(field.type, version, named_only)
    else:
        values = _scalars(field.type)
    return st.none() | values if field.is_nullable_in(version) else values


def _arrays(array: Array, version: int, named_only: bool) -> st.SearchStrategy[list[Any]]:
    if isinstance(array.element, Struct):
        return st.lists(_structs(array.element, version, named_only), max_size=2)
    values = _scalars(array.element)
    return st.lists(values, max_size=3) | st.builds(lambda item: [item] * 130, values)


def _scalars(scalar: Scalar) -> st.SearchStrategy[Any]:
    kind = scalar.kind
    if kind in WIDTHS:
        bound = 1 << (WIDTHS[kind] - 1)
        return st.integers(-bound, bound - 1)
    if kind is Kind.BOOL:
        return st.booleans()
    if kind is Kind.UUID:
        return st.just(bytes(16)) | st.binary(min_size=16, max_size=16)
    if kind is Kind.STRING:
        return TEXT
    return BYTES
