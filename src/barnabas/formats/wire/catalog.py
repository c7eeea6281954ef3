"""Every API with its versions, and its encoders and decoders, imported when first asked for.

The rows come from the schemas: `generated/rows.py` is written with the codecs themselves. What a
broker serves is its router's business; this is what can be written and read.
"""

from collections.abc import Callable
from importlib import import_module
from typing import Any, NamedTuple

from librt.strings import BytesWriter

from barnabas.formats.codec.records import Cut
from barnabas.formats.wire.api_keys import NAMES_WITHOUT_SCHEMA, ApiKey
from barnabas.formats.wire.generated.rows import ROWS
from barnabas.model.errors import DecodeError

Message = Any
"""A request or response: an instance of a generated class."""

Encoder = Callable[[BytesWriter, Message, list[Cut]], None]
Decoder = Callable[[bytes, int, int], Message]


class Api(NamedTuple):
    """One API as the schemas have it."""

    key: ApiKey
    name: str
    module: str
    min_version: int
    max_version: int
    first_flexible_version: int
    """Above `max_version` when none is flexible."""

    def has_version(self, version: int) -> bool:
        return self.min_version <= version <= self.max_version

    def request_header_version(self, version: int) -> int:
        """2 for flexible versions; 0, without a client id, for the oldest ControlledShutdown."""
        if version >= self.first_flexible_version:
            return 2
        if self.key is ApiKey.CONTROLLED_SHUTDOWN and version == 0:
            return 0
        return 1

    def response_header_version(self, version: int) -> int:
        """1 for flexible versions, save ApiVersions: its reader knows no version yet."""
        if self.key is ApiKey.API_VERSIONS:
            return 0
        return 1 if version >= self.first_flexible_version else 0


APIS: dict[int, Api] = {row[0]: Api(ApiKey(row[0]), *row[1:]) for row in ROWS}
"""By key; an unknown key is not there."""

_functions: dict[tuple[str, int, int], Any] = {}


def describe_key(key: int) -> str:
    """An API as people know it, also one that nobody here speaks."""
    api = APIS.get(key)
    name = NAMES_WITHOUT_SCHEMA.get(key) if api is None else api.name
    return f"api key {key}" if name is None else f"{name} (api key {key})"


def find_api(key: int) -> Api:
    """The API of a key that came from the wire."""
    api = APIS.get(key)
    if api is None:
        raise DecodeError(f"{describe_key(key)} is not served")
    return api


def request_encoder(key: int, version: int) -> Encoder:
    return _function("encode_request", key, version)


def request_decoder(key: int, version: int) -> Decoder:
    return _function("decode_request", key, version)


def response_encoder(key: int, version: int) -> Encoder:
    return _function("encode_response", key, version)


def response_decoder(key: int, version: int) -> Decoder:
    return _function("decode_response", key, version)


def _function(name: str, key: int, version: int) -> Any:
    place = (name, key, version)
    function = _functions.get(place)
    if function is None:
        api = find_api(key)
        if not api.has_version(version):
            raise DecodeError(f"{api.name} has no version {version}")
        module = import_module(f"barnabas.formats.wire.generated.{api.module}")
        function = _functions[place] = getattr(module, f"{name}_v{version}")
    return function
