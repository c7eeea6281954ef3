"""Every API and version against the definitions inside Kafka's own jar: facts, bytes and values."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from barnabas.formats.codec.schema import ZERO, Array, Field, Kind, Scalar, Struct, Versions
from barnabas.formats.wire import catalog
from tests.oracles import kafka_json
from tests.schemas import (
    SIDES,
    api_versions,
    build,
    decode,
    encode,
    message_of,
    name_version,
    schema_of,
    to_plain,
)
from tests.strategies.messages import messages
from tests.tools import need

ZK_BROKER_KEYS = (*range(17), 18, 19, 20, 21, 22, 23, 32, 33, 35, 37, 42, 44, 47, 56, 60, 61, 67)


@pytest.fixture(autouse=True, scope="module")
def jar() -> None:
    need("java")


@pytest.mark.parametrize("pair", api_versions(), ids=name_version)
@settings(max_examples=12)
@given(data=st.data())
def test_bytes_and_values_are_those_of_kafkas_definitions(
    pair: tuple[int, int], data: st.DataObject
) -> None:
    key, version = pair
    for side in SIDES:
        plain = data.draw(messages(key, version, side))
        oracle = kafka_json.JsonCodec(kafka_json.definitions()[(key, side)], version)
        expected = oracle.encode(plain)
        struct = message_of(key, side)
        value = build(key, struct, plain)
        assert encode(key, version, side, value) == expected
        decoded = decode(key, version, side, expected)
        assert decoded == value
        assert to_plain(struct, version, decoded) == plain == oracle.decode(expected)


def test_every_api_is_there_in_every_version_of_a_zookeeper_broker() -> None:
    assert tuple(sorted(catalog.APIS)) == ZK_BROKER_KEYS
    for key, api in catalog.APIS.items():
        request = kafka_json.definitions()[(key, "request")]
        assert "zkBroker" in request["listeners"]
        assert f"{api.name}Request" == request["name"]
        valid = kafka_json.version_range(request["validVersions"])
        assert (api.min_version, api.max_version) == (valid[0], valid[-1])
        flexible = kafka_json.version_range(request["flexibleVersions"])
        assert [v >= api.first_flexible_version for v in valid] == [v in flexible for v in valid]


@pytest.mark.parametrize("key", ZK_BROKER_KEYS, ids=lambda key: catalog.APIS[key].name)
@pytest.mark.parametrize("side", SIDES)
def test_fields_are_those_of_kafkas_definitions(key: int, side: str) -> None:
    theirs = kafka_json.json_fields(kafka_json.definitions()[(key, side)])
    ours = dict(_structs(message_of(key, side)))
    short = {_kafka_name(name, theirs): struct for name, struct in ours.items()}
    assert short.keys() == theirs.keys()
    for name, struct in short.items():
        described = [_describe(field, theirs) for field in struct.fields]
        assert described == theirs[name], name


def _structs(struct: Struct) -> list[tuple[str, Struct]]:
    found = [(struct.name, struct)]
    for field in struct.fields:
        kind = field.type.element if isinstance(field.type, Array) else field.type
        if isinstance(kind, Struct):
            found += _structs(kind)
    return found


def _kafka_name(name: str, theirs: dict[str, list[kafka_json.JsonField]]) -> str:
    """A struct that an API's request and response both have carries the side before its name."""
    if name in theirs:
        return name
    return name.removeprefix("Request").removeprefix("Response")


def _describe(field: Field, theirs: dict[str, list[kafka_json.JsonField]]) -> kafka_json.JsonField:
    is_array = isinstance(field.type, Array)
    kind = field.type.element if isinstance(field.type, Array) else field.type
    name = _kafka_name(kind.name, theirs) if isinstance(kind, Struct) else kind.kind.value
    return kafka_json.JsonField(
        field.name,
        f"[]{name}" if is_array else name,
        _range(field.versions),
        _range(field.nullable),
        field.tag,
        _default(field),
        field.ignorable,
    )


def _range(text: str) -> range:
    versions = Versions.parse(text)
    return range(versions.first, versions.last + 1)


def _default(field: Field) -> object:
    if field.default is not ZERO:
        return field.default
    if isinstance(field.type, Array):
        return []
    if isinstance(field.type, Struct):
        return {each.name: _default(each) for each in field.type.fields}
    assert isinstance(field.type, Scalar)
    zeros = {
        Kind.BOOL: False,
        Kind.UUID: bytes(16),
        Kind.STRING: "",
        Kind.BYTES: b"",
        Kind.RECORDS: None,
    }
    return zeros.get(field.type.kind, 0)


def test_flexible_versions_of_schema_and_catalog_agree() -> None:
    for key, version in api_versions():
        api = catalog.APIS[key]
        assert schema_of(key).is_flexible_in(version) == (version >= api.first_flexible_version)
