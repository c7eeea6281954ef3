"""Requests of the admin APIs by our own codec, to whatever broker listens on a port."""

import struct
from typing import Any

from librt.strings import BytesWriter

from barnabas.formats.wire import catalog
from tests.e2e.raw_wire import Connection


def ask(port: int, api_key: int, version: int, body: Any) -> Any:
    """One request on a connection of its own; its decoded answer.

    The codec is compared with Kafka's definitions elsewhere; here it carries what is compared.
    """
    api = catalog.find_api(api_key)
    writer = BytesWriter()
    catalog.request_encoder(api_key, version)(writer, body, [])
    tags = b"\0" if api.request_header_version(version) == 2 else b""
    frame = struct.pack(">hhihs", api_key, version, 7, 1, b"x") + tags + writer.getvalue()
    with Connection(port) as connection:
        connection.send_bytes(struct.pack(">i", len(frame)) + frame)
        answer = connection.receive()
    assert answer is not None, f"{api.name} version {version} got no answer"
    start = 4 + api.response_header_version(version)
    return catalog.response_decoder(api_key, version)(answer, start, len(answer))
