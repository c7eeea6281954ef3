"""What becomes of a key that this broker does not honour: passed over, warned about, or refused."""

from collections.abc import Collection, Mapping
from typing import NamedTuple

from barnabas.model.config import BrokerConfig
from barnabas.model.config_definition import (
    ConfigKey,
    ConfigValue,
    Mark,
    default_of,
    parse,
    shown,
)
from barnabas.model.config_keys import BROKER_KEYS
from barnabas.model.errors import ConfigRefused, SettingUnsupported
from barnabas.model.listeners import parse_listeners, parse_protocol_map
from barnabas.model.topic_config_keys import TOPIC_KEYS

_SECURITY = "security is not built yet, and a broker that only looked secure would be worse"
_PLUG_IN = "names a Java class, which this broker cannot load"
_CREATE_TOPIC_POLICY = "barnabas.create.topic.policy names a Python entry point in its place"
_KRAFT = "belongs to KRaft; this broker works as Kafka does with ZooKeeper"
_TIERED = "tiered storage is not part of this broker"
_ZOOKEEPER = (
    "an external ZooKeeper cannot be used yet; without this key the broker keeps its metadata "
    "itself, in barnabas.metadata.dir"
)

_REASONS = (
    ("remote.", _TIERED),
    ("metric", _PLUG_IN),
    ("kafka.metrics.reporters", _PLUG_IN),
    ("create.topic.policy", f"{_PLUG_IN}; {_CREATE_TOPIC_POLICY}"),
    ("alter.config.policy", _PLUG_IN),
    ("client.quota.callback", _PLUG_IN),
    ("replica.selector", _PLUG_IN),
    ("config.providers", _PLUG_IN),
    ("process.roles", _KRAFT),
    ("controller.", _KRAFT),
    ("early.start.listeners", _KRAFT),
    ("metadata.log.dir", _KRAFT),
    ("zookeeper.metadata.migration", _KRAFT),
    ("zookeeper.connect", _ZOOKEEPER),
    ("", _SECURITY),
)
"""The reason by the beginning of the key; the first that fits. What is left is security."""

_REFUSED_OUTSIDE_THE_TABLE = (
    "super.users",
    "allow.everyone.if.no.acl.found",
    "config.providers",
    "listener.name.",
)
"""Beginnings of keys that Kafka takes without having them in its table."""


_NOT_COMPACTED = "nothing is compacted yet: old records of a key stay"

UNKNOWN_KEYS_MAX = 10
"""Unknown keys that are told one by one; a file with more of them and no known key is no file of
settings at all."""


class Unhonoured(NamedTuple):
    """A key, or its value, that has no effect, and why; `value` where only the value has none."""

    name: str
    reason: str
    value: str | None = None


def check_marks(settings: Mapping[str, str], accepted: Collection[str] = ()) -> list[Unhonoured]:
    """Refuse what must not be passed over; the rest that has no effect, to be told at start.

    A key at its default asks for nothing and is fine. `accepted` names refusals to live with.
    """
    warnings: list[Unhonoured] = []
    unknown: list[str] = []
    for name, text in settings.items():
        key = BROKER_KEYS.get(name)
        if key is None:
            if not name.startswith(_REFUSED_OUTSIDE_THE_TABLE):
                unknown.append(name)
            elif name not in accepted:
                raise SettingUnsupported(name, "[hidden]", _reason(name))
            continue
        if key.mark is Mark.HONOURED:
            warnings += _unhonoured_value(name, parse(key, text), text)
            continue
        if _asks_for_the_default(key, text):
            continue
        if key.mark is Mark.REFUSED and name not in accepted:
            raise SettingUnsupported(name, shown(key, text), _reason(name))
        if key.mark is not Mark.HARMLESS:
            reason = "not honoured, as told" if key.mark is Mark.REFUSED else "not honoured yet"
            warnings.append(Unhonoured(name, reason))
    return warnings + _unknown(unknown)


def check_topic_marks(overrides: Mapping[str, str]) -> list[Unhonoured]:
    """What a topic asks for that it does not get; what it may not ask for was refused before.

    A value that is malformed all the same (somebody else wrote the znode) is passed over here.
    """
    warnings: list[Unhonoured] = []
    for name, text in overrides.items():
        key = TOPIC_KEYS.get(name)
        if key is None:
            continue
        try:
            value = parse(key, text)
        except ConfigRefused:
            continue
        if key.mark is Mark.HONOURED:
            warnings += _unhonoured_value(name, value, text)
        elif key.mark is Mark.NOT_YET and value != default_of(key):
            warnings.append(Unhonoured(name, "not honoured yet", text))
    return warnings


def check_room(config: BrokerConfig) -> list[Unhonoured]:
    """Limits that leave no room for the connection the controller makes to this very broker.

    Kafka would hang just the same, so they are not refused.
    """
    host = config.inter_broker_listener.host
    reason = "leaves no room for the controller's connection to this broker: no topic gets a leader"
    warnings: list[Unhonoured] = []
    if config.max_connections < 1:
        warnings.append(Unhonoured("max.connections", reason, str(config.max_connections)))
    of_host = config.max_connections_per_ip_overrides.get(host)
    if of_host == 0:
        name = "max.connections.per.ip.overrides"
        warnings.append(Unhonoured(name, reason, f"{host}:0"))
    elif of_host is None and config.max_connections_per_ip == 0:
        warnings.append(Unhonoured("max.connections.per.ip", reason, "0"))
    return warnings


def check_protocols(settings: Mapping[str, str]) -> None:
    """Refuse listeners that would promise encryption or authentication; no word overrides it."""
    protocols = parse_protocol_map(
        "listener.security.protocol.map", _text(settings, "listener.security.protocol.map")
    )
    for listener in parse_listeners("listeners", _text(settings, "listeners"), protocols):
        if listener.security_protocol != "PLAINTEXT":
            raise ConfigRefused(
                "listeners",
                str(listener),
                f"{listener.security_protocol}: {_SECURITY}",
                f"listeners={listener._replace(name='PLAINTEXT')}    (where plain text may pass)",
            )


def is_any_known(names: Collection[str]) -> bool:
    """Whether a file that sets these keys can be meant for a broker."""
    return len(names) <= UNKNOWN_KEYS_MAX or any(name in BROKER_KEYS for name in names)


def nearest_key(name: str) -> str | None:
    """The known key that somebody may have meant."""
    # Needed by a mistake alone, so that no start pays for it.
    from difflib import get_close_matches

    near = get_close_matches(name, BROKER_KEYS, n=1, cutoff=0.75)
    return near[0] if near else None


def _unhonoured_value(name: str, value: ConfigValue, text: str) -> list[Unhonoured]:
    """The key is honoured; this value of it asks for what is not there."""
    is_policy = name in ("log.cleanup.policy", "cleanup.policy")
    if is_policy and isinstance(value, tuple) and "compact" in value:
        return [Unhonoured(name, _NOT_COMPACTED, text.strip())]
    return []


def _unknown(names: list[str]) -> list[Unhonoured]:
    """The first of them by name, with the known key each resembles; the rest as a number."""
    told: list[Unhonoured] = []
    for name in names[:UNKNOWN_KEYS_MAX]:
        near = nearest_key(name)
        reason = "is no key of Kafka's" + (f"; did you mean {near}?" if near else "")
        told.append(Unhonoured(name, reason))
    if len(names) > UNKNOWN_KEYS_MAX:
        rest = f"and what follows it: {len(names) - UNKNOWN_KEYS_MAX} more keys are none of Kafka's"
        told.append(Unhonoured(names[UNKNOWN_KEYS_MAX], rest))
    return told


def _text(settings: Mapping[str, str], name: str) -> str:
    return settings.get(name, BROKER_KEYS[name].default or "")


def _asks_for_the_default(key: ConfigKey, text: str) -> bool:
    value = parse(key, text)
    return value == default_of(key) or (key.default is None and value in ("", ()))


def _reason(name: str) -> str:
    return next(reason for beginning, reason in _REASONS if name.startswith(beginning))
