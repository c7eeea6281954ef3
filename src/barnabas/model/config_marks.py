"""What becomes of a key that this broker does not honour: passed over, warned about, or refused."""

from collections.abc import Collection, Mapping
from typing import NamedTuple

from barnabas.model.config import BrokerConfig
from barnabas.model.config_definition import ConfigKey, Mark, default_of, parse, shown
from barnabas.model.config_keys import BROKER_KEYS
from barnabas.model.errors import ConfigRefused, SettingUnsupported

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


class Unhonoured(NamedTuple):
    """A key that has no effect, and why; `suggestion` is a known key that resembles it."""

    name: str
    reason: str
    suggestion: str | None = None


def check_marks(settings: Mapping[str, str], accepted: Collection[str] = ()) -> list[Unhonoured]:
    """Refuse what must not be passed over; the rest that has no effect, to be told at start.

    A key at its default asks for nothing and is fine. `accepted` names refusals to live with.
    """
    warnings: list[Unhonoured] = []
    for name, text in settings.items():
        key = BROKER_KEYS.get(name)
        if key is None:
            if not name.startswith(_REFUSED_OUTSIDE_THE_TABLE):
                warnings.append(Unhonoured(name, "is no key of Kafka's", nearest_key(name)))
            elif name not in accepted:
                raise SettingUnsupported(name, "[hidden]", _reason(name))
            continue
        if key.mark is Mark.HONOURED or _asks_for_the_default(key, text):
            continue
        if key.mark is Mark.REFUSED and name not in accepted:
            raise SettingUnsupported(name, shown(key, text), _reason(name))
        if key.mark is not Mark.HARMLESS:
            reason = "not honoured, as told" if key.mark is Mark.REFUSED else "not honoured yet"
            warnings.append(Unhonoured(name, reason))
    return warnings


def check_protocols(config: BrokerConfig) -> None:
    """Refuse listeners that would promise encryption or authentication; no word overrides it."""
    for listener in config.listeners:
        if listener.security_protocol != "PLAINTEXT":
            raise ConfigRefused(
                "listeners", str(listener), f"{listener.security_protocol}: {_SECURITY}"
            )


def nearest_key(name: str) -> str | None:
    """The known key that somebody may have meant."""
    # Needed by a mistake alone, so that no start pays for it.
    from difflib import get_close_matches

    near = get_close_matches(name, BROKER_KEYS, n=1, cutoff=0.75)
    return near[0] if near else None


def _asks_for_the_default(key: ConfigKey, text: str) -> bool:
    value = parse(key, text)
    return value == default_of(key) or (key.default is None and value in ("", ()))


def _reason(name: str) -> str:
    return next(reason for beginning, reason in _REASONS if name.startswith(beginning))
