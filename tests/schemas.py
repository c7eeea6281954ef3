"""The schemas as tests read them, and messages as plain dictionaries.

A plain message has an entry for each field of its version: numbers, text, bytes, None, lists and
dictionaries. It is what generated objects, the definitions in Kafka's jar and kio are compared by.
"""

from functools import cache
from importlib import import_module
from types import ModuleType
from typing import Any

from librt.strings import BytesWriter

from barnabas.formats.codec.records import RecordsSpan
from barnabas.formats.codec.schema import Api, Array, Struct
from barnabas.formats.wire import catalog

Plain = dict[str, Any]

SIDES = ("request", "response")


@cache
def schema_of(key: int) -> Api:
    """The schema of an API; a running broker never imports it."""
    module = import_module(f"barnabas.formats.wire.apis.{catalog.APIS[key].module}")
    assert isinstance(module.API, Api)
    return module.API


def message_of(key: int, side: str) -> Struct:
    schema = schema_of(key)
    return schema.request if side == "request" else schema.response


def api_versions() -> list[tuple[int, int]]:
    """Every API in every version."""
    return [
        (api.key, version)
        for api in catalog.APIS.values()
        for version in range(api.min_version, api.max_version + 1)
    ]


def name_version(pair: tuple[int, int]) -> str:
    """Fetch-v12: how a test case of an API's version is called."""
    return f"{catalog.APIS[pair[0]].name}-v{pair[1]}"


def generated_module(key: int) -> ModuleType:
    return import_module(f"barnabas.formats.wire.generated.{catalog.APIS[key].module}")


def build(key: int, struct: Struct, plain: Plain) -> Any:
    """The generated object of a plain message; fields that it lacks have their defaults."""
    values: Plain = {}
    for field in struct.fields:
        if field.name not in plain:
            continue
        value = plain[field.name]
        if isinstance(field.type, Struct):
            value = build(key, field.type, value)
        elif isinstance(field.type, Array) and isinstance(field.type.element, Struct):
            element = field.type.element
            value = None if value is None else [build(key, element, item) for item in value]
        values[field.name] = value
    return getattr(generated_module(key), struct.name)(**values)


def to_plain(struct: Struct, version: int, value: Any) -> Plain:
    """What a generated object holds of a version's fields."""
    plain: Plain = {}
    for field in struct.fields:
        if not field.is_in(version):
            continue
        item = getattr(value, field.name)
        if isinstance(field.type, Struct):
            item = to_plain(field.type, version, item)
        elif isinstance(field.type, Array) and isinstance(field.type.element, Struct):
            element = field.type.element
            item = None if item is None else [to_plain(element, version, each) for each in item]
        elif isinstance(item, RecordsSpan):
            item = item.to_bytes()
        plain[field.name] = item
    return plain


def encode(key: int, version: int, side: str, value: Any) -> bytes:
    """The bytes of a message whose records are in memory."""
    encoder = (
        catalog.request_encoder(key, version)
        if side == "request"
        else catalog.response_encoder(key, version)
    )
    writer = BytesWriter()
    encoder(writer, value, [])
    return writer.getvalue()


def decode(key: int, version: int, side: str, data: bytes) -> Any:
    """The message that fills all of `data`."""
    decoder = (
        catalog.request_decoder(key, version)
        if side == "request"
        else catalog.response_decoder(key, version)
    )
    return decoder(data, 0, len(data))
