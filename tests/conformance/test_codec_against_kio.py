"""Every API and version against kio, whose codec shares nothing with ours or with Kafka's.

kio 0.6.5 has the versions that Kafka 4 kept; 0.5.0 has the older ones and the control requests.
"""

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from barnabas.formats.codec.schema import TOPIC_ID, UUID, Array, Field, Struct
from barnabas.formats.wire import catalog
from tests.oracles.kio import Kio, running_kio
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
from tests.tools import KIO_050, need

DROPPED_BY_KAFKA_4 = {
    catalog.APIS[key].name: versions
    for key, versions in {
        0: range(3),
        1: range(4),
        2: range(1),
        4: range(8),
        5: range(5),
        6: range(9),
        7: range(4),
        8: range(2),
        9: range(1),
        19: range(2),
        20: range(1),
        23: range(2),
        32: range(1),
        35: range(1),
        56: range(2),
    }.items()
}
"""What kio 0.6.5 cannot read."""

TIME_OF_DAY = "log_append_time_ms"
"""Read by kio as None for -1."""


@pytest.fixture(scope="module")
def kio_065() -> Iterator[Kio]:
    with running_kio(None) as kio:
        yield kio


@pytest.fixture(scope="module")
def kio_050() -> Iterator[Kio]:
    need("kio050")
    with running_kio(KIO_050) as kio:
        yield kio


def in_kio_065(pair: tuple[int, int]) -> bool:
    key, version = pair
    return version not in DROPPED_BY_KAFKA_4.get(catalog.APIS[key].name, ())


@pytest.mark.parametrize("pair", list(filter(in_kio_065, api_versions())), ids=name_version)
@settings(max_examples=8)
@given(data=st.data())
def test_kio_065_reads_and_writes_the_same(
    pair: tuple[int, int], data: st.DataObject, kio_065: Kio
) -> None:
    compare(pair, data, kio_065)


@pytest.mark.parametrize("pair", api_versions(), ids=name_version)
@settings(max_examples=4)
@given(data=st.data())
def test_kio_050_reads_and_writes_the_same(
    pair: tuple[int, int], data: st.DataObject, kio_050: Kio
) -> None:
    compare(pair, data, kio_050)


def compare(pair: tuple[int, int], data: st.DataObject, kio: Kio) -> None:
    """Both sides of an API: our bytes read and written by kio, its bytes read by us."""
    key, version = pair
    for side in SIDES:
        plain = data.draw(messages(key, version, side, named_only=True))
        struct = message_of(key, side)
        value = build(key, struct, plain)
        encoded = encode(key, version, side, value)
        answer = kio.decode_and_encode(key, version, side, encoded)
        assert "error" not in answer, answer
        assert_same(struct, version, plain, answer["plain"])
        assert answer["size"] == len(encoded)
        assert answer["hex"] == encoded.hex()
        assert decode(key, version, side, bytes.fromhex(answer["hex"])) == value


def assert_same(struct: Struct, version: int, plain: Plain, theirs: Plain) -> None:
    """What kio read is what was written, in the same order."""
    fields = [field for field in struct.fields if field.is_in(version)]
    assert [kio_name(name) for name in theirs] == [kio_name(field.name) for field in fields]
    for field, value in zip(fields, theirs.values(), strict=True):
        assert_same_value(field, version, plain[field.name], value)


def kio_name(name: str) -> str:
    """kio leaves the unit out of the names of times, and no name is that of a builtin."""
    return name.removesuffix("_ms").removesuffix("_millis").removesuffix("_")


def assert_same_value(field: Field, version: int, ours: Any, theirs: Any) -> None:
    if isinstance(field.type, Struct):
        assert_same(field.type, version, ours, theirs)
    elif isinstance(field.type, Array) and isinstance(field.type.element, Struct) and ours:
        assert len(ours) == len(theirs)
        for our, their in zip(ours, theirs, strict=True):
            assert_same(field.type.element, version, our, their)
    else:
        assert theirs == as_kio(field, ours), field.name


def as_kio(field: Field, value: Any) -> Any:
    """A value as the worker prints it."""
    if isinstance(field.type, Array) and value is not None:
        return [as_kio(Field(field.name, field.type.element), item) for item in value]
    if field.type == UUID or field.type == TOPIC_ID:
        return None if value == bytes(16) else value.hex()
    if field.name == TIME_OF_DAY and value == -1:
        return None
    return value.hex() if isinstance(value, bytes) else value
