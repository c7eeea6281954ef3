"""The broker's own settings as they were set at run time: for it alone, and for all brokers.

They lie in two config nodes, are read before any log is opened, and again when a change is told
of. What holds then is the broker's configuration from that moment on.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from barnabas.formats.znodes.configs import broker_entity, config_from_bytes, config_path
from barnabas.model.config import BrokerConfig
from barnabas.model.errors import ConfigRefused, DecodeError
from barnabas.model.znode import GetData, Outcome, StoreAnswer, StoreError

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker


@dataclass(frozen=True, slots=True)
class BrokerConfigChanged:
    """What is set at run time is this from now on; nothing of it is a secret."""

    settings: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class BrokerConfigUnusable:
    """Somebody wrote settings for this broker that it cannot work by."""

    problem: str


Loaded = Callable[[bool, int], None]
"""Takes whether everything could be read, and the time."""


class BrokerConfigs:
    """What was read at the start, and what was set over it since."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self.static: BrokerConfig = broker.config
        """As the broker was started."""

    def load(self, then: Loaded) -> None:
        """Read both config nodes and work by them; then call `then(could_read, now_ms)`."""
        entities = (broker_entity(None), broker_entity(self._broker.broker_id))
        paths = [config_path(entity) for entity in entities]

        def on_read(answer: StoreAnswer, now_ms: int) -> None:
            could_read = all(
                one.is_ok or one.error is StoreError.NO_NODE for one in answer.outcomes
            )
            if could_read:
                default, own = (
                    self._settings(path, outcome, now_ms)
                    for path, outcome in zip(paths, answer.outcomes, strict=True)
                )
                self._apply(default, own, now_ms)
            then(could_read, now_ms)

        self._broker.metadata.submit([GetData(path) for path in paths], on_read)

    def _settings(self, path: str, outcome: Outcome, now_ms: int) -> dict[str, str]:
        try:
            return config_from_bytes(path, outcome.data) if outcome.is_ok else {}
        except DecodeError as problem:
            self._broker.events.publish(BrokerConfigUnusable(str(problem)), now_ms)
            return {}

    def _apply(self, default: dict[str, str], own: dict[str, str], now_ms: int) -> None:
        broker = self._broker
        try:
            config = self.static.with_dynamic(default, own)
        except ConfigRefused as problem:
            broker.events.publish(BrokerConfigUnusable(str(problem)), now_ms)
            return
        unknown = sorted({*default, *own} - {*config.dynamic, *config.dynamic_default})
        if unknown:
            problem = f"{', '.join(unknown)} cannot be changed while it runs"
            broker.events.publish(BrokerConfigUnusable(problem), now_ms)
        if config == broker.config:
            return
        broker.config = config
        broker.logs.manager.configure(config)
        broker.topic_configs.apply_again(now_ms)
        settings = {**config.dynamic_default, **config.dynamic}
        broker.events.publish(BrokerConfigChanged(tuple(sorted(settings.items()))), now_ms)
