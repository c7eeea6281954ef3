"""The life of a broker: the steps from its first input to serving, and the steps to a clean end.

Each step begins when the one before it is done, and what cannot be done fails the broker
(`BrokerFailed`): directories are looked at, the cluster's id is read, the settings of the topics
found are read, logs are opened, listeners accept, the broker registers, takes part in elections.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from barnabas.broker.deadlines import Deadline
from barnabas.broker.event_stream import (
    BrokerFailed,
    BrokerStarted,
    BrokerStopped,
    ListenersWanted,
)
from barnabas.model.errors import BarnabasError, DiskError, DiskLost
from barnabas.model.ids import NO_BROKER, BrokerId
from barnabas.storage.log_opening import topics_in

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker
    from barnabas.broker.metadata_cache import CacheUpdate

UNTOLD_MS_MAX: Final = 2_000
"""How long a registered broker waits for a controller before it says that it is there."""


class Life:
    """Where one broker stands between its start and its end."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._is_started = False
        self._untold: Deadline | None = None
        broker.logs.on_last_directory_lost(self._note_last_directory_lost)
        broker.metadata_cache.on_update(self._note_told)

    # -- the start ---------------------------------------------------------------------------

    def start(self) -> None:
        """Begin; `BarnabasError` when the directories cannot be ours, else news by events."""
        directories = self._broker.logs.manager.directories
        directories.inspect()
        self._broker.registration.prepare(self._note_cluster, directories.stored_cluster_id)

    def _note_cluster(self, cluster_id: str, now_ms: int) -> None:
        broker = self._broker
        broker.cluster_id = cluster_id
        if broker.broker_id == NO_BROKER:
            stored = broker.logs.manager.directories.stored_broker_id
            if stored is None:
                broker.registration.generate_broker_id(self._note_broker_id)
                return
            broker.broker_id = BrokerId(stored)
        self._read_topics(now_ms)

    def _note_broker_id(self, broker_id: BrokerId, now_ms: int) -> None:
        self._broker.broker_id = broker_id
        self._read_topics(now_ms)

    def _read_topics(self, now_ms: int) -> None:
        """The settings of this broker, then of the topics that have logs here, since logs are
        opened by them."""
        self._broker.broker_configs.load(self._read_topic_configs)

    def _read_topic_configs(self, could_read: bool, now_ms: int) -> None:
        if not could_read:
            self._open_logs(False, now_ms)
            return
        online = self._broker.logs.manager.directories.online()
        topics = [topic for directory in online for topic in topics_in(directory)]
        self._broker.topic_configs.load(topics, self._open_logs, now_ms)

    def _open_logs(self, could_read: bool, now_ms: int) -> None:
        if not could_read:
            # The store went away: by what the topics would be opened is not known.
            self._broker.deadlines.at(now_ms + UNTOLD_MS_MAX, self._read_topics)
            return
        try:
            self._broker.logs.open(self._note_logs_opened, self._note_refused, now_ms)
        except BarnabasError as error:
            self._note_refused(error)

    def _note_refused(self, error: Exception) -> None:
        self._broker.events.publish(BrokerFailed(error), self._broker.now_ms)

    def _note_logs_opened(self, now_ms: int) -> None:
        """The controller will call back at once, so listeners accept before we register."""
        self._broker.events.publish(ListenersWanted(), now_ms)
        self._broker.registration.register(self._note_registered)

    def _note_registered(self, now_ms: int) -> None:
        broker = self._broker
        broker.controller.start(now_ms)
        broker.dynamic_configs.start(now_ms)
        self._untold = broker.deadlines.at(now_ms + UNTOLD_MS_MAX, self._say_started)

    def _note_told(self, update: CacheUpdate, now_ms: int) -> None:
        """A broker that a controller has told of the cluster can answer its first client."""
        if self._untold is not None and self._broker.metadata_cache.is_alive(
            self._broker.broker_id
        ):
            self._untold.cancel()
            self._say_started(now_ms)

    def _say_started(self, now_ms: int) -> None:
        self._untold = None
        if not self._is_started:
            self._is_started = True
            self._broker.events.publish(BrokerStarted(self._broker.broker_id), now_ms)

    # -- the end -----------------------------------------------------------------------------

    def stop(self, now_ms: int) -> None:
        """Leave everything so that the next start has nothing to mend."""
        broker = self._broker
        if broker.is_stopping:
            return
        broker.is_stopping = True
        if self._untold is not None:
            self._untold.cancel()
        broker.controller.stop(now_ms)
        broker.dynamic_configs.stop()
        broker.fetchers.close()
        broker.links.close_all()
        broker.replicas.end_turn(now_ms)
        broker.logs.close(now_ms)
        broker.events.publish(BrokerStopped(), now_ms)

    def _note_last_directory_lost(self, error: DiskError, now_ms: int) -> None:
        paths = ", ".join(self._broker.config.log_dirs)
        lost = DiskLost(paths, f"no log directory is left; the last one: {error}")
        self._broker.events.publish(BrokerFailed(lost), now_ms)
