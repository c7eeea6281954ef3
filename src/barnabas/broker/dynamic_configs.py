"""Follows /config/changes: the settings of topics are read again when somebody wrote them.

Every broker reads the notes in their order and, whenever it does, sweeps those that are older than
fifteen minutes. Settings of other things than topics and brokers cannot be changed while this
broker runs; it says so by name instead of passing them over.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from barnabas.core.controller.topic_configs import is_unclean_election_enabled
from barnabas.formats.znodes.configs import (
    BROKERS,
    CONFIG_CHANGES_PATH,
    DEFAULT_ENTITY,
    TOPICS,
    ConfigChange,
    check_config_node,
    config_from_bytes,
    config_path,
    topic_entity,
)
from barnabas.formats.znodes.notifications import sequence_number
from barnabas.model.errors import DecodeError
from barnabas.model.znode import (
    Delete,
    GetChildren,
    GetData,
    Outcome,
    StoreAnswer,
    StoreError,
    WatchEvent,
)

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker

CHANGE_EXPIRATION_MS: Final = 15 * 60 * 1000
NOTES_PER_REQUEST_MAX: Final = 500
RETRY_AFTER_MS: Final = 1_000


@dataclass(frozen=True, slots=True)
class TopicConfigChanged:
    """The settings of a topic with a replica here were read again."""

    topic: str


@dataclass(frozen=True, slots=True)
class ConfigChangeIgnored:
    """A change was told of that this broker cannot follow while it runs."""

    entity_path: str


@dataclass(frozen=True, slots=True)
class ConfigChangeUnreadable:
    """A note in the change log makes no sense."""

    path: str
    problem: str


class DynamicConfigs:
    """One broker's place in the change log."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._last_sequence = -1
        self._is_running = False
        self._is_watching = False
        self._is_busy = False
        self._must_look_again = False

    def start(self, now_ms: int) -> None:
        """Read what is in the log, then follow it."""
        self._is_running = True
        self._look(now_ms)

    def stop(self) -> None:
        """The session is over, or this broker stops: watch nothing any more."""
        self._is_running = self._is_watching = self._is_busy = self._must_look_again = False

    def _look(self, _now_ms: int) -> None:
        if not self._is_running:
            return
        if self._is_busy:
            self._must_look_again = True
            return
        self._is_busy = True
        self._must_look_again = False
        if not self._is_watching:
            self._is_watching = True
            self._broker.metadata.on_watch(CONFIG_CHANGES_PATH, self._note_watch)
        self._submit([GetChildren(CONFIG_CHANGES_PATH, watch=True)], self._note_listed)

    def _note_watch(self, _event: WatchEvent, now_ms: int) -> None:
        self._is_watching = False
        self._look(now_ms)

    def _note_listed(self, answer: StoreAnswer, now_ms: int) -> None:
        names: list[tuple[int, str]] = []
        for name in answer.outcomes[0].children:
            try:
                names.append((sequence_number(name), name))
            except DecodeError as problem:
                path = f"{CONFIG_CHANGES_PATH}/{name}"
                self._publish(ConfigChangeUnreadable(path, str(problem)), now_ms)
        self._read_notes([name for _, name in sorted(names)], now_ms)

    def _read_notes(self, names: Sequence[str], now_ms: int) -> None:
        """Read some notes in their order, then the rest."""
        if not names:
            self._finish(now_ms)
            return
        some, rest = names[:NOTES_PER_REQUEST_MAX], names[NOTES_PER_REQUEST_MAX:]
        paths = [f"{CONFIG_CHANGES_PATH}/{name}" for name in some]

        def on_read(answer: StoreAnswer, read_ms: int) -> None:
            self._take_notes(paths, answer.outcomes, read_ms)
            self._read_notes(rest, read_ms)

        self._submit([GetData(path) for path in paths], on_read)

    def _take_notes(self, paths: Sequence[str], found: Sequence[Outcome], now_ms: int) -> None:
        """Follow the notes that are new, sweep those that are old."""
        wall_ms = self._broker.wall_clock.epoch_ms()
        changed: dict[str, dict[str, None]] = {TOPICS: {}, BROKERS: {}}
        old: list[Delete] = []
        for path, outcome in zip(paths, found, strict=True):
            if not outcome.is_ok or outcome.stat is None:
                continue
            if sequence_number(path) > self._last_sequence:
                self._last_sequence = sequence_number(path)
                change = self._change_of(path, outcome, now_ms)
                if change is not None:
                    changed[change.entity_type][change.entity_name] = None
            if wall_ms - outcome.stat.ctime_ms > CHANGE_EXPIRATION_MS:
                old.append(Delete(path))
        if changed[TOPICS]:
            self._read_configs(list(changed[TOPICS]))
        if not changed[BROKERS].keys().isdisjoint((DEFAULT_ENTITY, str(self._broker.broker_id))):
            self._read_broker_configs(now_ms)
        if old:
            self._broker.metadata.submit(old, lambda _answer, _now_ms: None)

    def _change_of(self, path: str, outcome: Outcome, now_ms: int) -> ConfigChange | None:
        """What a note tells of, if it can be followed."""
        try:
            change = ConfigChange.from_bytes(path, outcome.data)
        except DecodeError as problem:
            self._publish(ConfigChangeUnreadable(path, str(problem)), now_ms)
            return None
        if change.entity_type in (TOPICS, BROKERS):
            return change
        self._publish(ConfigChangeIgnored(change.entity_path), now_ms)
        return None

    def _read_configs(self, topics: Sequence[str]) -> None:
        """Take over the settings of topics that have replicas here; tell the controller too."""
        paths = [config_path(topic_entity(topic)) for topic in topics]

        def on_read(answer: StoreAnswer, now_ms: int) -> None:
            for topic, path, outcome in zip(topics, paths, answer.outcomes, strict=True):
                self._apply(topic, path, outcome, now_ms)

        self._submit([GetData(path) for path in paths], on_read)

    def _apply(self, topic: str, path: str, outcome: Outcome, now_ms: int) -> None:
        if not outcome.is_ok and outcome.error is not StoreError.NO_NODE:
            return
        try:
            check_config_node(path, outcome.data)
            overrides = config_from_bytes(path, outcome.data)
        except DecodeError as problem:
            self._publish(ConfigChangeUnreadable(path, str(problem)), now_ms)
            return
        if self._broker.replicas.partitions_of(topic):
            self._broker.topic_configs.apply(topic, overrides, now_ms)
            self._publish(TopicConfigChanged(topic), now_ms)
        if is_unclean_election_enabled(path, outcome, default=False):
            self._broker.controller.note_unclean_election_enabled(topic, now_ms)

    def _read_broker_configs(self, _now_ms: int) -> None:
        """Take over what was set for this broker or for all; later when it cannot be read."""

        def on_loaded(could_read: bool, loaded_ms: int) -> None:
            if not could_read and self._is_running:
                self._broker.deadlines.at(loaded_ms + RETRY_AFTER_MS, self._read_broker_configs)

        self._broker.broker_configs.load(on_loaded)

    def _finish(self, now_ms: int) -> None:
        self._is_busy = False
        if self._must_look_again:
            self._look(now_ms)

    def _submit(
        self,
        operations: Sequence[GetData | GetChildren],
        then: Callable[[StoreAnswer, int], None],
    ) -> None:
        """Ask the store; when it could not be asked, look at everything again in a while."""

        def on_answer(answer: StoreAnswer, now_ms: int) -> None:
            if not self._is_running:
                return
            if any(one.error is StoreError.CONNECTION_LOSS for one in answer.outcomes):
                self._is_busy = False
                self._broker.deadlines.at(now_ms + RETRY_AFTER_MS, self._look)
            else:
                then(answer, now_ms)

        self._broker.metadata.submit(operations, on_answer)

    def _publish(self, event: object, now_ms: int) -> None:
        self._broker.events.publish(event, now_ms)
