"""Where a broker listens and what it tells others to connect to."""

import re
from collections.abc import Mapping
from typing import NamedTuple

from barnabas.model.errors import ConfigRefused

_END_POINT = re.compile(r"(.*)://\[?([0-9a-zA-Z\-%._:]*)\]?:(-?[0-9]+)")
_SEPARATOR = re.compile(r"\s*,\s*")

SECURITY_PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")


class Listener(NamedTuple):
    """One end point; an empty host stands for every interface, port 0 for any free one."""

    name: str
    host: str
    port: int
    security_protocol: str = "PLAINTEXT"

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.name}://{host}:{self.port}"


def parse_protocol_map(key: str, text: str) -> dict[str, str]:
    """The security protocol of each listener name, from NAME:PROTOCOL,..."""
    protocols: dict[str, str] = {}
    for entry in _entries(text):
        name, colon, protocol = entry.rpartition(":")
        if not colon or protocol.strip().upper() not in SECURITY_PROTOCOLS:
            raise ConfigRefused(key, text, f"{entry} is not a listener's name and its protocol")
        if name.strip().upper() in protocols:
            raise ConfigRefused(key, text, f"{name.strip()} stands twice")
        protocols[name.strip().upper()] = protocol.strip().upper()
    return protocols


def parse_listeners(key: str, text: str, protocols: Mapping[str, str]) -> tuple[Listener, ...]:
    """The end points of NAME://host:port,..., each with its security protocol."""
    listeners: list[Listener] = []
    for entry in _entries(text):
        match = _END_POINT.fullmatch(entry)
        if match is None:
            raise ConfigRefused(key, text, f"{entry} is not of the form NAME://host:port")
        name = match[1].upper()
        if name not in protocols:
            raise ConfigRefused(
                key, text, f"listener {name} has no protocol in listener.security.protocol.map"
            )
        port = int(match[3][:9])
        if not 0 <= port <= 65535:
            raise ConfigRefused(key, text, f"{match[3]} is not a port")
        listeners.append(Listener(name, match[2], port, protocols[name]))
    return tuple(listeners)


def check_distinct(
    key: str, text: str, listeners: tuple[Listener, ...], *, are_ports_distinct: bool
) -> None:
    """Refuse two end points of one name and, where it would bind twice, of one port."""
    names = [listener.name for listener in listeners]
    if len(set(names)) != len(names):
        raise ConfigRefused(key, text, "each listener must have a name of its own")
    if not are_ports_distinct:
        return
    for index, listener in enumerate(listeners):
        for other in listeners[:index]:
            if listener.port == other.port != 0 and not _are_two_families(listener, other):
                raise ConfigRefused(key, text, "each listener must have a port of its own")


def _are_two_families(one: Listener, other: Listener) -> bool:
    """Whether one port may serve both: an IPv4 address beside an IPv6 one."""
    return bool(one.host and other.host) and (":" in one.host) != (":" in other.host)


def _entries(text: str) -> list[str]:
    return [entry for entry in _SEPARATOR.split(text.strip()) if entry]
