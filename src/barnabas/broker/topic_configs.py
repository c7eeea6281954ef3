"""The settings of the topics whose replicas are here, read when a log is made and then kept.

A topic's settings are read from its config node before its first log is opened (L16), again
whenever a log of it is made, and when a change is told of.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from barnabas.formats.znodes.configs import (
    check_config_node,
    config_from_bytes,
    config_path,
    topic_entity,
)
from barnabas.model.config import TopicConfig
from barnabas.model.config_marks import Unhonoured, check_topic_marks
from barnabas.model.errors import DecodeError
from barnabas.model.znode import GetData, Outcome, StoreAnswer, StoreError

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker

NOTHING_IS_DELETED: Final = {
    "retention.ms": "-1",
    "retention.bytes": "-1",
    "cleanup.policy": "delete",
}
"""Until the settings can be read."""


@dataclass(frozen=True, slots=True)
class TopicConfigUnreadable:
    """A config node holds no settings that can be read: the broker's own hold for the topic, but
    nothing of it is deleted, since it may have been meant to stay for ever."""

    topic: str
    problem: str


@dataclass(frozen=True, slots=True)
class TopicSettingUnhonoured:
    """Topics with replicas here ask for something that they do not get, told once of each."""

    setting: str
    reason: str
    topics: tuple[str, ...]


Loaded = Callable[[bool, int], None]
"""Takes whether everything could be read, and the time."""


class TopicConfigs:
    """What holds for each topic with a replica here."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._configs: dict[str, TopicConfig] = {}
        self._overrides: dict[str, Mapping[str, str]] = {}
        """The topics' own settings, kept because the broker's may change below them."""
        self._unhonoured: dict[str, list[Unhonoured]] = {}
        """What was told of each topic that has such settings."""

    def config(self, topic: str) -> TopicConfig:
        """What holds for a topic; the broker's own settings where none are known."""
        known = self._configs.get(topic)
        return TopicConfig.resolve(self._broker.config, {}) if known is None else known

    def load(self, topics: Iterable[str], then: Loaded, now_ms: int) -> None:
        """Read the settings of topics, then call `then(could_read, now_ms)`, perhaps at once."""
        wanted = sorted(set(topics))
        if not wanted:
            then(True, now_ms)
            return

        def on_read(answer: StoreAnswer, answered_ms: int) -> None:
            could_read = True
            before = {topic: self._unhonoured.get(topic, []) for topic in wanted}
            for topic, outcome in zip(wanted, answer.outcomes, strict=True):
                could_read = self._take(topic, outcome, answered_ms) and could_read
            self._tell_unhonoured(before, answered_ms)
            then(could_read, answered_ms)

        self._broker.metadata.submit(
            [GetData(config_path(topic_entity(topic))) for topic in wanted], on_read
        )

    def _take(self, topic: str, outcome: Outcome, now_ms: int) -> bool:
        """One topic's node as it was read; False when the store could not say."""
        if outcome.error is StoreError.NO_NODE:
            self._adopt(topic, {})
            return True
        if not outcome.is_ok:
            return False
        overrides: Mapping[str, str] = NOTHING_IS_DELETED
        try:
            path = config_path(topic_entity(topic))
            check_config_node(path, outcome.data)
            overrides = config_from_bytes(path, outcome.data)
        except DecodeError as problem:
            self._broker.events.publish(TopicConfigUnreadable(topic, str(problem)), now_ms)
        self._adopt(topic, overrides)
        return True

    def apply(self, topic: str, overrides: Mapping[str, str], now_ms: int) -> None:
        """These are the topic's own settings from now on, also for the logs that are open."""
        before = {topic: self._unhonoured.get(topic, [])}
        self._adopt(topic, overrides)
        self._tell_unhonoured(before, now_ms)

    def _adopt(self, topic: str, overrides: Mapping[str, str]) -> None:
        config = TopicConfig.resolve(self._broker.config, overrides)
        self._configs[topic] = config
        self._overrides[topic] = overrides
        for partition in self._broker.replicas.partitions_of(topic):
            if partition.log is not None:
                partition.log.configure(config)
                partition.apply_config(config)
        unhonoured = check_topic_marks(overrides)
        if unhonoured:
            self._unhonoured[topic] = unhonoured
        else:
            self._unhonoured.pop(topic, None)

    def _tell_unhonoured(self, before: Mapping[str, list[Unhonoured]], now_ms: int) -> None:
        """One event for each setting that is new, with all the topics that have it."""
        new: dict[Unhonoured, list[str]] = {}
        for topic, told in before.items():
            for one in self._unhonoured.get(topic, ()):
                if one not in told:
                    new.setdefault(one, []).append(topic)
        for one, topics in new.items():
            told_of = TopicSettingUnhonoured(f"{one.name}={one.value}", one.reason, tuple(topics))
            self._broker.events.publish(told_of, now_ms)

    def apply_again(self, now_ms: int) -> None:
        """The broker's settings have changed, and with them those of every topic."""
        for topic, overrides in list(self._overrides.items()):
            self.apply(topic, overrides, now_ms)

    def forget(self, topic: str) -> None:
        """No replica of the topic is left here."""
        self._configs.pop(topic, None)
        self._overrides.pop(topic, None)
        self._unhonoured.pop(topic, None)
