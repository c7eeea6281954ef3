"""A flood of clients at the metadata store: bounded, in order, and never before the controller."""

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import pytest

from barnabas.broker.client_metadata import ClientMetadata
from barnabas.broker.metadata_session import MetadataSession
from barnabas.model.znode import GetData, Operation, Outcome, StoreAnswer, StoreError
from barnabas.node import embedded_store
from barnabas.node.embedded_store import EmbeddedStore
from barnabas.zookeeper.journal import Image


class SlowStore:
    """Answers when the test says so."""

    def __init__(self) -> None:
        self.asked: list[tuple[int, Sequence[Operation]]] = []
        self.tickets = 0
        self.most = 0

    def submit(self, operations: Sequence[Operation], *, is_multi: bool = False) -> int:
        self.tickets += 1
        self.asked.append((self.tickets, operations))
        self.most = max(self.most, sum(len(one) for _, one in self.asked))
        return self.tickets

    def reconnect(self) -> None: ...


class Flood:
    """Clients and a controller at one store."""

    def __init__(self, under_way_max: int, waiting_max: int) -> None:
        self.store = SlowStore()
        self.session = MetadataSession(self.store)
        broker: Any = SimpleNamespace(metadata=self.session, now_ms=7)
        self.clients = ClientMetadata(broker, under_way_max, waiting_max)
        self.answered: list[tuple[str, StoreError]] = []

    def ask(self, *paths: str) -> None:
        self.clients.submit([GetData(path) for path in paths], self._note(paths[0]))

    def decide(self, path: str) -> None:
        """What the controller asks."""
        self.session.submit([GetData(path)], self._note(path))

    def _note(self, path: str) -> Any:
        return lambda answer, _: self.answered.append((path, answer.outcomes[0].error))

    def answer_one(self) -> None:
        ticket, operations = self.store.asked.pop(0)
        outcomes = (Outcome(StoreError.OK),) * len(operations)
        self.session.on_store(StoreAnswer(ticket, outcomes), 8)


def test_the_controller_waits_for_what_is_at_the_store_and_for_no_line() -> None:
    flood = Flood(under_way_max=3, waiting_max=1000)
    for number in range(100):
        flood.ask(f"/{number}")
    flood.decide("/controller")
    for _ in range(4):
        flood.answer_one()
    assert [path for path, _ in flood.answered] == ["/0", "/1", "/2", "/controller"]


def test_all_are_answered_in_the_order_of_asking_and_few_are_at_the_store() -> None:
    flood = Flood(under_way_max=3, waiting_max=1000)
    for number in range(100):
        flood.ask(f"/{number}")
    while flood.store.asked:
        flood.answer_one()
    assert flood.answered == [(f"/{number}", StoreError.OK) for number in range(100)]
    assert flood.store.most == 3


def test_who_finds_the_line_full_is_told_that_the_store_is_away() -> None:
    flood = Flood(under_way_max=1, waiting_max=2)
    for number in range(4):
        flood.ask(f"/{number}")
    assert flood.answered == [("/3", StoreError.CONNECTION_LOSS)]
    flood.answer_one()
    flood.ask("/4")
    while flood.store.asked:
        flood.answer_one()
    assert [path for path, _ in flood.answered] == ["/3", "/0", "/1", "/2", "/4"]


def test_a_request_larger_than_the_limit_goes_alone() -> None:
    flood = Flood(under_way_max=3, waiting_max=1000)
    flood.ask("/first")
    flood.ask(*[f"/{number}" for number in range(10)])
    flood.ask("/last")
    sizes: list[int] = []
    while flood.store.asked:
        sizes.append(sum(len(one) for _, one in flood.store.asked))
        flood.answer_one()
    assert sizes == [1, 10, 1]


class NoJournal:
    """Never durable: nothing is answered."""

    def start(self, on_durable: Any, on_failed: Any) -> None: ...

    def append(self, transactions: Any) -> None: ...

    def close(self) -> None: ...


def test_clients_cannot_use_up_what_the_embedded_store_takes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(embedded_store, "UNANSWERED_MAX", 1000)
    store = EmbeddedStore(
        NoJournal(),
        Image(),
        post=lambda callback, *arguments: None,
        on_event=lambda event: None,
        on_failed=lambda error: None,
        epoch_ms=lambda: 0,
    )
    session = MetadataSession(store)
    broker: Any = SimpleNamespace(metadata=session, now_ms=0)
    clients = ClientMetadata(broker)
    for number in range(10_000):
        clients.submit([GetData(f"/{number}")], lambda answer, now_ms: None)
    for _ in range(400):
        session.submit([GetData("/controller")], lambda answer, now_ms: None)
