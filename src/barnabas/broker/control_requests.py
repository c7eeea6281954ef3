"""LeaderAndIsr, UpdateMetadata and StopReplica: the controller's word, taken up one at a time.

The order in which they came is the order in which they are carried out, to the end: one that has
to wait for the settings of a topic or for the disk holds up those behind it (L3). What each
partition is answered is decided here; what a role means stands in `partition` and `fetchers`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple, Protocol

from barnabas.broker.connections import Request
from barnabas.broker.event_stream import ControlRequestBegan, ControlRequestEnded
from barnabas.broker.partition import Partition
from barnabas.model.epochs import NO_EPOCH, ControllerEpoch
from barnabas.model.error_codes import ErrorCode
from barnabas.model.ids import BrokerId, TopicPartition

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker

ReplicaDeleted = Callable[[TopicPartition, int, int], None]
"""Takes the partition, the leader epoch of the request (NO_EPOCH: none) and the time (S9)."""


RolesChanged = Callable[[list[Partition], list[Partition], int], None]
"""Takes who leads now and did not before, who follows in a new epoch, and the time (L25)."""


class Sender(NamedTuple):
    """What every control request says of its sender and of whom it is meant for."""

    api: str
    controller_id: BrokerId
    controller_epoch: ControllerEpoch
    broker_epoch: int
    is_kraft_controller: bool


class ControlRequest(Protocol):
    """One request until it is answered."""

    @property
    def sender(self) -> Sender: ...

    @property
    def request(self) -> Request: ...

    def partitions(self) -> list[TopicPartition]: ...

    def refuse(self, error: ErrorCode) -> object:
        """The answer when the request as a whole is not obeyed."""
        ...

    def carry_out(self, done: Callable[[object, int], None], now_ms: int) -> None:
        """Obey; `done(response, now_ms)` once, at once or later."""
        ...

    def partition_errors(self, response: object) -> list[tuple[str, str]]:
        """Every partition of an answer with the name of its error, for the story (R23)."""
        ...


class ControlRequests:
    """The control requests of one broker, in the order of their coming."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._waiting: deque[ControlRequest] = deque()
        self._current: ControlRequest | None = None
        self._is_advancing = False
        self._deleted_listeners: list[ReplicaDeleted] = []
        self._role_listeners: list[RolesChanged] = []

    def on_roles_changed(self, listener: RolesChanged) -> None:
        """Call `listener` after every LeaderAndIsr that changed something, before its answer."""
        self._role_listeners.append(listener)

    def note_roles(self, led: list[Partition], followed: list[Partition], now_ms: int) -> None:
        """Tell those who keep state by leadership, in the order of the requests (L25)."""
        if led or followed:
            for listener in self._role_listeners:
                listener(led, followed, now_ms)

    def on_replica_deleted(self, listener: ReplicaDeleted) -> None:
        """Call `listener` for every replica that a StopReplica deleted here (S9)."""
        self._deleted_listeners.append(listener)

    def note_deleted(self, partition: TopicPartition, leader_epoch: int, now_ms: int) -> None:
        """Tell those who keep state by partition that this one is gone."""
        for listener in self._deleted_listeners:
            listener(partition, leader_epoch, now_ms)

    def submit(self, control: ControlRequest, now_ms: int) -> None:
        """Carry the request out when all before it are done; it answers itself."""
        self._waiting.append(control)
        self._advance(now_ms)

    def _advance(self, now_ms: int) -> None:
        if self._is_advancing:
            return
        self._is_advancing = True
        try:
            while self._current is None and self._waiting:
                control = self._current = self._waiting.popleft()
                try:
                    self._begin(control, now_ms)
                except BaseException:
                    # The bug stops this request's connection; those behind it must not hang.
                    self._current = None
                    raise
        finally:
            self._is_advancing = False

    def _begin(self, control: ControlRequest, now_ms: int) -> None:
        sender = control.sender
        self._broker.events.publish(
            ControlRequestBegan(
                sender.api,
                sender.controller_id,
                sender.controller_epoch,
                control.request.correlation_id,
                tuple(str(partition) for partition in control.partitions()),
            ),
            now_ms,
        )
        error = self._check(sender)
        if error != ErrorCode.NONE:
            self._finish(control, control.refuse(error), error, now_ms)
            return
        self._broker.replicas.controller_epoch = sender.controller_epoch

        def done(response: object, done_ms: int) -> None:
            self._finish(control, response, ErrorCode.NONE, done_ms)
            self._advance(done_ms)

        control.carry_out(done, now_ms)

    def _check(self, sender: Sender) -> ErrorCode:
        """Whether to obey this sender (L2, L4): a KRaft controller has no business here."""
        if sender.is_kraft_controller:
            return ErrorCode.UNKNOWN_SERVER_ERROR
        if NO_EPOCH != sender.broker_epoch < self._broker.broker_epoch:
            return ErrorCode.STALE_BROKER_EPOCH
        if sender.controller_epoch < self._broker.replicas.controller_epoch:
            return ErrorCode.STALE_CONTROLLER_EPOCH
        return ErrorCode.NONE

    def _finish(
        self, control: ControlRequest, response: object, error: ErrorCode, now_ms: int
    ) -> None:
        sender = control.sender
        self._current = None
        self._broker.events.publish(
            ControlRequestEnded(
                sender.api,
                sender.controller_id,
                sender.controller_epoch,
                control.request.correlation_id,
                error.name,
                tuple(control.partition_errors(response)),
            ),
            now_ms,
        )
        self._broker.answer(control.request, response)
