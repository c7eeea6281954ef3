"""Just enough of a broker for what talks to the store: session, deadlines, events and time."""

import random
from types import SimpleNamespace
from typing import Any

from barnabas.broker.deadlines import Deadlines
from barnabas.broker.event_stream import EventStream
from barnabas.broker.metadata_session import MetadataSession
from barnabas.model.config import BrokerConfig
from barnabas.model.epochs import NO_EPOCH, BrokerEpoch
from barnabas.model.ids import BrokerId
from barnabas.model.znode import Operation, Outcome
from tests.worlds.memory_store import MemoryEnsemble, MemoryStore

EPOCH_MS = 1_700_000_000_000


class StoreWorld:
    """A store and any number of such brokers."""

    def __init__(self) -> None:
        self.now_ms = 0
        self.ensemble = MemoryEnsemble(lambda: EPOCH_MS + self.now_ms)
        self.client = self.add_broker(99)

    def add_broker(self, broker_id: int, **settings: str) -> Any:
        """A stand-in with what the parts under test ask a broker for."""
        listener = f"PLAINTEXT://host{broker_id}:9092"
        texts = {"broker.id": str(broker_id), "listeners": listener}
        texts.update({key.replace("_", "."): text for key, text in settings.items()})
        broker = SimpleNamespace(
            config=BrokerConfig.resolve(texts),
            broker_id=BrokerId(broker_id),
            broker_epoch=BrokerEpoch(NO_EPOCH),
            random=random.Random(broker_id),
            wall_clock=SimpleNamespace(epoch_ms=lambda: EPOCH_MS + self.now_ms),
            deadlines=Deadlines(),
            events=EventStream(),
            now_ms=self.now_ms,
            told=[],
        )
        broker.events.subscribe(lambda event, _: broker.told.append(event))

        def on_store(event: Any, now_ms: int) -> None:
            broker.now_ms = now_ms
            broker.metadata.on_store(event, now_ms)

        broker.store = self.ensemble.connect(on_store)
        broker.metadata = MetadataSession(broker.store)
        return broker

    def run(self, duration_ms: int = 0, *brokers: Any) -> None:
        """Let so much time pass, heartbeats included, and do all that comes up."""
        end_ms = self.now_ms + duration_ms
        while True:
            self.ensemble.tick(self.now_ms)
            self.ensemble.pump(self.now_ms)
            for broker in brokers:
                broker.now_ms = self.now_ms
                broker.deadlines.run_due(self.now_ms)
            self.ensemble.pump(self.now_ms)
            if self.now_ms >= end_ms:
                return
            self.now_ms = min(self.now_ms + 100, end_ms)

    def do(self, *operations: Operation) -> tuple[Outcome, ...]:
        """What somebody else asks of the store."""
        answers: list[tuple[Outcome, ...]] = []
        self.client.metadata.submit(operations, lambda answer, _: answers.append(answer.outcomes))
        self.run()
        return answers[0]

    def data(self, path: str) -> bytes | None:
        node = self.ensemble.machine.tree.node(path)
        return None if node is None else node.data

    def exists(self, path: str) -> bool:
        return self.ensemble.machine.tree.node(path) is not None


def events_of(broker: Any, kind: type[Any]) -> list[Any]:
    return [event for event in broker.told if isinstance(event, kind)]


__all__ = ["EPOCH_MS", "MemoryStore", "StoreWorld", "events_of"]
