"""Requests of the admin APIs by our own codec, to whatever broker listens on a port."""

from typing import Any

from barnabas.formats.wire import framing
from tests.e2e.raw_wire import Connection


def ask(port: int, api_key: int, version: int, body: Any) -> Any:
    """One request on a connection of its own; its decoded answer.

    The codec is compared with Kafka's definitions elsewhere; here it carries what is compared.
    """
    with Connection(port) as connection:
        connection.send_bytes(framing.request_frame(api_key, version, 7, "test", body))
        answer = connection.receive()
    assert answer is not None, f"api {api_key} version {version} got no answer"
    return framing.decode_response(api_key, version, answer)
