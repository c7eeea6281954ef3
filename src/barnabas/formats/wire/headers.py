"""The headers of requests and responses in all their versions.

A request's header says which API and version its body has; which version the header itself has
follows from these two. The client id is a plain string even where the header is flexible, so that
any broker can read the header of any ApiVersions request.
"""

# Native integers of one width become another without a word here; pyright checks the rest.
# mypy: disable-error-code="arg-type,assignment"

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from librt.strings import BytesWriter, read_i16_be, read_i32_be, write_i16_be, write_i32_be

from barnabas.formats.codec.decoding import refuse_short, skip_tagged_fields
from barnabas.formats.codec.encoding import write_nullable_string
from barnabas.formats.wire.catalog import APIS, describe_key, find_api
from barnabas.model.errors import DecodeError

if TYPE_CHECKING:
    from mypy_extensions import i64


_FIRST_FLEXIBLE: Final[list[int]] = [
    APIS[key].first_flexible_version if key in APIS else -1 for key in range(max(APIS) + 1)
]
"""By API key, -1 where there is no such API: the header of every request is read through it."""

_CONTROLLED_SHUTDOWN: Final = 7


def decode_request_header(
    data: bytes, start: int, end: int
) -> tuple[int, int, int, str | None, int]:
    """The API's key, its version, the correlation id, the client id, and where the body starts.

    The version may be one that is not known. An unknown API is a DecodeError: nothing behind its
    key can be read. A tuple is no object in compiled code, and a small one where interpreted.
    """
    position: i64 = start
    limit: i64 = end
    if limit - position < 8:
        refuse_short("request header", position, limit)
    api_key = read_i16_be(data, position)
    api_version = read_i16_be(data, position + 2)
    correlation_id = read_i32_be(data, position + 4)
    position += 8
    if not 0 <= api_key < len(_FIRST_FLEXIBLE) or _FIRST_FLEXIBLE[api_key] < 0:
        raise DecodeError(f"{describe_key(api_key)} is not served")
    client_id: str | None = None
    if api_version != 0 or api_key != _CONTROLLED_SHUTDOWN:
        client_id, position = _read_client_id(data, position, limit)
    if api_version >= _FIRST_FLEXIBLE[api_key]:
        position = skip_tagged_fields(data, position, limit)
    return api_key, api_version, correlation_id, client_id, position


def _read_client_id(data: bytes, position: i64, end: i64) -> tuple[str | None, i64]:
    """A label for people: one that is no UTF-8 keeps nobody out, as with Kafka."""
    if end - position < 2:
        refuse_short("string", position, end)
    size: i64 = read_i16_be(data, position)
    position += 2
    if size < 0:
        return None, position
    if size > end - position:
        refuse_short("string", position, end)
    label = data[position : position + size]
    try:
        # Naming a handler of errors makes this three times as slow.
        return label.decode("utf-8"), position + size
    except UnicodeDecodeError:
        return label.decode("utf-8", "replace"), position + size


def encode_request_header(
    writer: BytesWriter, api_key: int, api_version: int, correlation_id: int, client_id: str | None
) -> None:
    """Write the header that belongs to an API's version."""
    header_version = find_api(api_key).request_header_version(api_version)
    write_i16_be(writer, api_key)
    write_i16_be(writer, api_version)
    write_i32_be(writer, correlation_id)
    if header_version >= 1:
        write_nullable_string(writer, client_id)
    if header_version >= 2:
        writer.append(0)


def read_correlation_id(frame: bytes) -> int:
    """Which request a response belongs to, before its API and version are known."""
    if len(frame) < 4:
        refuse_short("response header", 0, len(frame))
    return read_i32_be(frame, 0)


def decode_response_header(
    data: bytes, start: int, end: int, api_key: int, api_version: int
) -> tuple[int, int]:
    """The correlation id, and where the body starts."""
    position: i64 = start
    limit: i64 = end
    if limit - position < 4:
        refuse_short("response header", position, limit)
    correlation_id = read_i32_be(data, position)
    position += 4
    if find_api(api_key).response_header_version(api_version) >= 1:
        position = skip_tagged_fields(data, position, limit)
    return correlation_id, position


def encode_response_header(
    writer: BytesWriter, api_key: int, api_version: int, correlation_id: int
) -> None:
    """Write the header that belongs to an API's version."""
    write_i32_be(writer, correlation_id)
    if find_api(api_key).response_header_version(api_version) >= 1:
        writer.append(0)
