"""Whole frames: a length, a header and a body, with the cuts where a transport puts file slices.

The length counts what follows it, cuts included. A response without cuts is one part.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from librt.strings import BytesWriter, write_i32_be

from barnabas.formats.wire.catalog import (
    Message,
    request_encoder,
    response_decoder,
    response_encoder,
)
from barnabas.formats.wire.headers import (
    decode_response_header,
    encode_request_header,
    encode_response_header,
)
from barnabas.model.invariant import invariant

if TYPE_CHECKING:
    from barnabas.formats.codec.records import Cut, SizedRecords

LENGTH_SIZE = 4


def request_frame(
    api_key: int, api_version: int, correlation_id: int, client_id: str | None, body: Message
) -> bytes:
    """A request as it is sent, its length first; its records must be in memory."""
    writer = BytesWriter()
    write_i32_be(writer, 0)
    encode_request_header(writer, api_key, api_version, correlation_id, client_id)
    cuts: list[Cut] = []
    request_encoder(api_key, api_version)(writer, body, cuts)
    invariant(not cuts, "a request with records outside memory")
    put_length(writer, 0)
    return writer.getvalue()


def response_parts(
    api_key: int, api_version: int, correlation_id: int, body: Message
) -> list[bytes | SizedRecords]:
    """A response as it is sent, its length first: bytes, and what was cut out between them."""
    writer = BytesWriter()
    write_i32_be(writer, 0)
    encode_response_header(writer, api_key, api_version, correlation_id)
    cuts: list[Cut] = []
    response_encoder(api_key, api_version)(writer, body, cuts)
    if not cuts:
        put_length(writer, 0)
        return [writer.getvalue()]
    put_length(writer, sum(content.size_bytes for _, content in cuts))
    return split_at_cuts(writer.getvalue(), cuts)


def decode_response(api_key: int, api_version: int, frame: bytes) -> Message:
    """The body of a response's frame, which begins behind its length."""
    _, position = decode_response_header(frame, 0, len(frame), api_key, api_version)
    return response_decoder(api_key, api_version)(frame, position, len(frame))


def split_at_cuts(data: bytes, cuts: list[Cut]) -> list[bytes | SizedRecords]:
    """The written bytes with each cut's content put where it belongs."""
    parts: list[bytes | SizedRecords] = []
    start = 0
    for position, content in cuts:
        if position > start:
            parts.append(data[start:position])
            start = position
        parts.append(content)
    if start < len(data):
        parts.append(data[start:])
    return parts


def put_length(writer: BytesWriter, cut_size: int) -> None:
    """Fill the first four bytes with the length of all that follows them."""
    length: int = len(writer) - LENGTH_SIZE + cut_size
    writer[0] = (length >> 24) & 0xFF
    writer[1] = (length >> 16) & 0xFF
    writer[2] = (length >> 8) & 0xFF
    writer[3] = length & 0xFF
