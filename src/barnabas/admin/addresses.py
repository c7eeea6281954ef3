"""Bootstrap addresses as people write them: host:port, several with commas."""

from barnabas.client.steps import Address

DEFAULT_PORT = 9092


def parse_addresses(text: str) -> list[Address]:
    """The addresses; `ValueError` with a reason for what is none."""
    found = [_parse(part.strip()) for part in text.split(",") if part.strip()]
    if not found:
        raise ValueError("no address given")
    return found


def _parse(text: str) -> Address:
    if "://" in text:
        raise ValueError(f"{text}: an address is host:port, without the name of a protocol")
    host, colon, port = text.rpartition(":")
    if not colon or (text.startswith("[") and text.endswith("]")):
        host, port = text, str(DEFAULT_PORT)
    if not port.isdigit() or not 0 < int(port) < 65536:
        raise ValueError(f"{text}: {port!r} is no port")
    return Address(host.removeprefix("[").removesuffix("]"), int(port))
