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


Loaded = Callable[[bool, int], None]
"""Takes whether everything could be read, and the time."""


class TopicConfigs:
    """What holds for each topic with a replica here."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._configs: dict[str, TopicConfig] = {}

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
            for topic, outcome in zip(wanted, answer.outcomes, strict=True):
                could_read = self._take(topic, outcome, answered_ms) and could_read
            then(could_read, answered_ms)

        self._broker.metadata.submit(
            [GetData(config_path(topic_entity(topic))) for topic in wanted], on_read
        )

    def _take(self, topic: str, outcome: Outcome, now_ms: int) -> bool:
        """One topic's node as it was read; False when the store could not say."""
        if outcome.error is StoreError.NO_NODE:
            self.apply(topic, {}, now_ms)
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
        self.apply(topic, overrides, now_ms)
        return True

    def apply(self, topic: str, overrides: Mapping[str, str], now_ms: int) -> None:
        """These are the topic's own settings from now on, also for the logs that are open."""
        config = TopicConfig.resolve(self._broker.config, overrides)
        self._configs[topic] = config
        for partition in self._broker.replicas.partitions_of(topic):
            if partition.log is not None:
                partition.log.configure(config)
                partition.apply_config(config)

    def forget(self, topic: str) -> None:
        """No replica of the topic is left here."""
        self._configs.pop(topic, None)
