"""/brokers/ids: the registration of a broker, whose czxid is the broker epoch; /brokers/seqid."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from barnabas.formats.znodes.json_fields import JsonObject, parse_object, to_json
from barnabas.model.errors import DecodeError
from barnabas.model.ids import BrokerId
from barnabas.model.listeners import SECURITY_PROTOCOLS, Listener

BROKER_IDS_PATH = "/brokers/ids"
BROKER_SEQUENCE_PATH = "/brokers/seqid"
"""Written without a condition; the version that the write gives it numbers a broker."""

REGISTRATION_VERSION = 5
_FIRST_VERSION_WITH_ENDPOINTS = 2

_ENDPOINT = re.compile(r"(.*)://\[?([0-9a-zA-Z\-%._:]*)\]?:(-?[0-9]{1,9})")


@dataclass(frozen=True, slots=True)
class SupportedVersions:
    """The levels of one feature that a broker can do."""

    min_version: int
    max_version: int


@dataclass(frozen=True, slots=True)
class BrokerRegistration:
    """How to reach a broker and where it stands; read at any version, written at 5."""

    listeners: tuple[Listener, ...]
    timestamp_ms: int
    rack: str | None = None
    jmx_port: int = -1
    features: Mapping[str, SupportedVersions] = field(default_factory=dict[str, SupportedVersions])
    version: int = REGISTRATION_VERSION
    """The version it was read at."""

    def listener(self, name: str) -> Listener | None:
        """The end point of a listener by its name."""
        return next((end for end in self.listeners if end.name == name), None)

    def to_bytes(self) -> bytes:
        plain = next((end for end in self.listeners if end.security_protocol == "PLAINTEXT"), None)
        members: dict[str, object] = {
            "features": {
                name: {"min_version": versions.min_version, "max_version": versions.max_version}
                for name, versions in self.features.items()
            },
            "listener_security_protocol_map": {
                end.name: end.security_protocol for end in self.listeners
            },
            "endpoints": [str(end) for end in self.listeners],
        }
        if self.rack is not None:
            members["rack"] = self.rack
        members["jmx_port"] = self.jmx_port
        members["port"] = plain.port if plain is not None else -1
        members["host"] = plain.host or None if plain is not None else None
        members["version"] = REGISTRATION_VERSION
        members["timestamp"] = str(self.timestamp_ms)
        return to_json(members)

    @classmethod
    def from_bytes(cls, path: str, data: bytes | None) -> "BrokerRegistration":
        found = parse_object(path, data)
        version = found.integer("version")
        if version < 1:
            raise DecodeError(f"{path}: found version {version}, expected 1 or a later one")
        if version < _FIRST_VERSION_WITH_ENDPOINTS:
            port = found.integer("port")
            listeners = (Listener("PLAINTEXT", found.text("host"), port),)
        else:
            listeners = _listeners(found)
        return cls(
            listeners=listeners,
            timestamp_ms=found.note_ms("timestamp"),
            rack=None if found.is_null("rack") else found.text("rack"),
            jmx_port=found.integer("jmx_port"),
            features=_features(found),
            version=version,
        )


def broker_path(broker_id: BrokerId) -> str:
    return f"{BROKER_IDS_PATH}/{broker_id}"


def _listeners(found: JsonObject) -> tuple[Listener, ...]:
    """The end points with their protocols; before version 4 a listener's name is its protocol."""
    protocols: dict[str, str] | None = None
    if "listener_security_protocol_map" in found:
        named = found.object("listener_security_protocol_map")
        protocols = {name.upper(): named.text(name) for name in named.names()}
    listeners: list[Listener] = []
    for text in found.texts("endpoints"):
        match = _ENDPOINT.fullmatch(text)
        if match is None:
            raise DecodeError(f"{found.where}: found end point {text!r}, expected NAME://host:port")
        name = match[1].upper()
        protocol = protocols.get(name) if protocols is not None else name
        if protocol not in SECURITY_PROTOCOLS:
            raise DecodeError(
                f"{found.where}: found protocol {protocol!r} of listener {name}, expected one of "
                f"{', '.join(SECURITY_PROTOCOLS)}"
            )
        if any(listener.name == name for listener in listeners):
            raise DecodeError(f"{found.where}: found listener {name} twice")
        listeners.append(Listener(name, match[2], int(match[3]), protocol))
    return tuple(listeners)


def _features(found: JsonObject) -> dict[str, SupportedVersions]:
    if found.is_null("features"):
        return {}
    features = found.object("features")
    supported: dict[str, SupportedVersions] = {}
    for name in features.names():
        levels = features.object(name)
        lowest, highest = levels.integer("min_version"), levels.integer("max_version")
        if not 0 <= lowest <= highest:
            raise DecodeError(f"{levels.where}: found levels from {lowest} to {highest}")
        supported[name] = SupportedVersions(lowest, highest)
    return supported
