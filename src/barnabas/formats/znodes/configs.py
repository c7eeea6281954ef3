"""/config: settings of topics, brokers, clients, users and addresses, and the log of changes."""

from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import quote, unquote_plus

from barnabas.formats.znodes.json_fields import parse_object, to_json
from barnabas.model.errors import DecodeError
from barnabas.model.ids import BrokerId

CONFIG_PATH = "/config"
CONFIG_CHANGES_PATH = "/config/changes"
CONFIG_CHANGE_PREFIX = "/config/changes/config_change_"
"""A sequential create completes it."""

TOPICS = "topics"
BROKERS = "brokers"
CLIENTS = "clients"
USERS = "users"
IPS = "ips"
ENTITY_TYPES = (TOPICS, CLIENTS, USERS, BROKERS, IPS)

DEFAULT_ENTITY = "<default>"
"""Stands for every entity of its type that has no settings of its own."""

CONFIG_VERSION = 1
CHANGE_VERSION = 2
_CHANGE_VERSION_WITH_TYPE = 1


@dataclass(frozen=True, slots=True)
class ConfigChange:
    """The note that an entity's settings were written; read at versions 1 and 2, written at 2."""

    entity_path: str
    """Below /config: `topics/t`, `users/<default>/clients/c%201`."""

    @property
    def entity_type(self) -> str:
        return self.entity_path.partition("/")[0]

    @property
    def entity_name(self) -> str:
        """What stands after the type, still sanitised."""
        return self.entity_path.partition("/")[2]

    def to_bytes(self) -> bytes:
        return to_json({"version": CHANGE_VERSION, "entity_path": self.entity_path})

    @classmethod
    def from_bytes(cls, path: str, data: bytes | None) -> "ConfigChange":
        found = parse_object(path, data)
        version = found.integer("version")
        if version == _CHANGE_VERSION_WITH_TYPE:
            entity_path = f"{found.text('entity_type')}/{found.text('entity_name')}"
        elif version == CHANGE_VERSION:
            entity_path = found.text("entity_path")
        else:
            raise DecodeError(f"{path}: found version {version}, expected 1 or 2")
        change = cls(entity_path)
        if change.entity_type not in ENTITY_TYPES or not change.entity_name:
            raise DecodeError(
                f"{path}: found entity {entity_path!r}, expected one of {', '.join(ENTITY_TYPES)} "
                "and a name"
            )
        return change


def config_to_bytes(config: Mapping[str, str]) -> bytes:
    """Settings as they are kept: every value is text."""
    return to_json({"version": CONFIG_VERSION, "config": config})


def config_from_bytes(path: str, data: bytes | None) -> dict[str, str]:
    """The settings of a config node; as in Kafka none when it holds anything but settings.

    A setting whose value is not text is refused all the same.
    """
    try:
        config = parse_object(path, data).object("config")
    except DecodeError:
        return {}
    return {key: config.text(key) for key in config.names()}


def check_config_node(path: str, data: bytes | None) -> None:
    """`DecodeError` for what `config_from_bytes` takes for no settings, as Kafka does, though
    somebody may have meant some; an empty node is none."""
    if data:
        parse_object(path, data).object("config")


def config_path(entity_path: str) -> str:
    """The config node of an entity."""
    return f"{CONFIG_PATH}/{entity_path}"


def topic_entity(topic: str) -> str:
    return f"{TOPICS}/{topic}"


def broker_entity(broker_id: BrokerId | None) -> str:
    """One broker's entity path, or the one for all."""
    return f"{BROKERS}/{broker_id if broker_id is not None else DEFAULT_ENTITY}"


def client_entity(client_id: str | None) -> str:
    """One client id's entity path, or the one for all."""
    return f"{CLIENTS}/{_name(client_id)}"


def user_entity(user: str | None) -> str:
    """One user's entity path, or the one for all."""
    return f"{USERS}/{_name(user)}"


def user_client_entity(user: str | None, client_id: str | None) -> str:
    """The entity path of a client id of a user, either of them or both for all."""
    return f"{user_entity(user)}/{client_entity(client_id)}"


def ip_entity(address: str | None) -> str:
    """One address's entity path, or the one for all."""
    return f"{IPS}/{address if address is not None else DEFAULT_ENTITY}"


def sanitise(name: str) -> str:
    """A name in characters that a path may hold: the others as %XX."""
    return quote(name, safe="").replace("~", "%7E")


def desanitise(name: str) -> str:
    """The name that was sanitised."""
    return unquote_plus(name)


def _name(name: str | None) -> str:
    return sanitise(name) if name is not None else DEFAULT_ENTITY
