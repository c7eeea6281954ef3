"""Producer ids: claimed from the store by the thousand, given out one by one, none twice.

A block is claimed by writing it over the last one on condition of its version, so that two brokers
never hold the same. What is left of a block when the broker stops is never given to anybody.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from barnabas.formats.znodes.producer_ids import PRODUCER_ID_BLOCK_PATH, ProducerIdBlock
from barnabas.model.errors import DecodeError
from barnabas.model.ids import ProducerId
from barnabas.model.znode import Create, GetData, Outcome, SetData, StoreAnswer, StoreError

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker

WAITING_MAX: Final = 10_000
"""Clients that may wait for a block; any more are told to try again."""

OnId = Callable[["ProducerId | None", int], None]
"""Takes an id, None when there is none to be had for now, and the time."""


@dataclass(frozen=True, slots=True)
class ProducerIdsClaimed:
    """This broker may give out these ids."""

    first_producer_id: ProducerId
    last_producer_id: ProducerId


@dataclass(frozen=True, slots=True)
class ProducerIdsUnavailable:
    """No block could be claimed; clients are told to try again."""

    reason: str


class ProducerIds:
    """The block this broker holds, and the clients that wait for the next."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._next_id = 0
        self._ids_left = 0
        self._waiting: deque[OnId] = deque()
        self._is_claiming = False

    def next_id(self, then: OnId) -> None:
        """Give an id, at once or when a block is claimed, in the order of asking."""
        if self._ids_left and not self._waiting:
            self._give(then, self._broker.now_ms)
        elif len(self._waiting) >= WAITING_MAX:
            then(None, self._broker.now_ms)
        else:
            self._waiting.append(then)
            if not self._is_claiming:
                self._is_claiming = True
                self._claim()

    def _give(self, then: OnId, now_ms: int) -> None:
        producer_id = ProducerId(self._next_id)
        self._next_id += 1
        self._ids_left -= 1
        then(producer_id, now_ms)

    def _claim(self) -> None:
        self._broker.metadata.submit([GetData(PRODUCER_ID_BLOCK_PATH)], self._note_last)

    def _note_last(self, answer: StoreAnswer, now_ms: int) -> None:
        """Write the block after the last one, on condition that it still is the last."""
        last = answer.outcomes[0]
        if not last.is_ok and last.error is not StoreError.NO_NODE:
            self._give_up(last.error.name, now_ms)
            return
        try:
            block = self._next_block(last)
        except DecodeError as problem:
            self._give_up(str(problem), now_ms)
            return
        if block is None:
            self._give_up("all producer ids have been given out", now_ms)
            return
        write = (
            Create(PRODUCER_ID_BLOCK_PATH, block.to_bytes())
            if last.stat is None
            else SetData(PRODUCER_ID_BLOCK_PATH, block.to_bytes(), last.stat.version)
        )
        self._broker.metadata.submit(
            [write], lambda written, claimed_ms: self._note_written(block, written, claimed_ms)
        )

    def _next_block(self, last: Outcome) -> ProducerIdBlock | None:
        if not last.data:
            return ProducerIdBlock.first(self._broker.broker_id)
        known = ProducerIdBlock.from_bytes(PRODUCER_ID_BLOCK_PATH, last.data)
        return known.next(self._broker.broker_id)

    def _note_written(self, block: ProducerIdBlock, answer: StoreAnswer, now_ms: int) -> None:
        error = answer.outcomes[0].error
        if error in (StoreError.BAD_VERSION, StoreError.NODE_EXISTS, StoreError.NO_NODE):
            self._claim()
            return
        if error is not StoreError.OK:
            # The claim may have been written: whoever asks next gets the block after it.
            self._give_up(error.name, now_ms)
            return
        self._is_claiming = False
        self._next_id = block.first_producer_id
        self._ids_left = block.last_producer_id - block.first_producer_id + 1
        self._broker.events.publish(
            ProducerIdsClaimed(block.first_producer_id, block.last_producer_id), now_ms
        )
        while self._waiting and self._ids_left:
            self._give(self._waiting.popleft(), now_ms)
        if self._waiting:
            self._is_claiming = True
            self._claim()

    def _give_up(self, reason: str, now_ms: int) -> None:
        self._is_claiming = False
        self._broker.events.publish(ProducerIdsUnavailable(reason), now_ms)
        waiting, self._waiting = self._waiting, deque()
        for then in waiting:
            then(None, now_ms)
