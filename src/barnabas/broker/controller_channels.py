"""The controller's way to every broker, this one included: one request in flight, in order (Q5).

A request that gets no answer is sent again after a pause, for as long as its broker is registered
(Q9). What cannot leave is merged, never dropped; what was refused as a whole is told again as it
stands then.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from barnabas.broker.control_messages import to_message, to_partition_errors, top_level_error
from barnabas.broker.deadlines import Deadline
from barnabas.broker.links import Link, LinkState
from barnabas.core.controller.acknowledgements import Acknowledgements
from barnabas.core.controller.context import ControllerContext
from barnabas.core.controller.request_batch import ControlRequest
from barnabas.core.controller.unsent_requests import UnsentRequests
from barnabas.core.image.cluster_image import RegisteredBroker
from barnabas.model.error_codes import ErrorCode
from barnabas.model.ids import BrokerId, TopicPartition

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker

RETRY_BACKOFF_MS: Final = 100
OWED_BACKOFF_MS: Final = 100
OWED_BACKOFF_MS_MAX: Final = 30_000
"""A request that hits a bug over there is repeated ever more slowly."""

OnAnswer = Callable[[ControlRequest, ErrorCode, "dict[TopicPartition, ErrorCode]", int], None]
"""Takes the request, the error of the whole, those of its partitions, and the time."""


@dataclass(frozen=True, slots=True)
class ControlRequestSent:
    """The controller sent a control request to a broker, or sent it again."""

    broker_id: BrokerId
    api: str
    partitions: int


@dataclass(frozen=True, slots=True)
class ControlRequestUnanswered:
    """A control request got no answer; it is sent again."""

    broker_id: BrokerId
    api: str
    reason: str


@dataclass(frozen=True, slots=True)
class ControlRequestAnswered:
    """A broker answered a control request; only errors that mean something are told."""

    broker_id: BrokerId
    api: str
    error: ErrorCode
    failed_partitions: tuple[tuple[TopicPartition, ErrorCode], ...]


class BrokerChannel:
    """The requests to one registration of one broker."""

    def __init__(
        self,
        broker: Broker,
        peer: RegisteredBroker,
        context: ControllerContext,
        on_answer: OnAnswer,
    ) -> None:
        self._broker = broker
        self._peer = peer
        self._context = context
        self._on_answer = on_answer
        self._unsent = UnsentRequests()
        self._acknowledgements = Acknowledgements(peer.broker_id)
        self._in_flight: ControlRequest | None = None
        self._link: Link | None = None
        self._pause: Deadline | None = None
        """Set while the request in flight waits to be sent again."""
        self._owed_pause: Deadline | None = None
        self._owed_backoff_ms = OWED_BACKOFF_MS

    @property
    def peer(self) -> RegisteredBroker:
        return self._peer

    def reach_at(self, peer: RegisteredBroker) -> None:
        """The same registration listens elsewhere now: the next connection goes there."""
        self._peer = peer

    def send(self, request: ControlRequest, now_ms: int) -> None:
        """Send a request after all that were handed over before it."""
        self._unsent.add(request)
        if self._in_flight is None:
            self._send_next(now_ms)

    def close(self) -> None:
        """Forget everything: the broker is gone, or this broker is the controller no more."""
        self._unsent.clear()
        self._in_flight = None
        for pause in (self._pause, self._owed_pause):
            if pause is not None:
                pause.cancel()
        if self._link is not None:
            self._link.close()
            self._link = None

    def _send_next(self, now_ms: int) -> None:
        self._in_flight = self._unsent.take()
        if self._in_flight is not None:
            self._send(now_ms)

    def _send(self, now_ms: int) -> None:
        """Send the request in flight, over a new connection when the old one is gone."""
        self._pause = None
        request = self._in_flight
        if request is None:
            return
        if self._link is None or self._link.state is LinkState.CLOSED:
            self._link = self._connect()
        if self._link is None:
            self._note_silence("it has no listener for brokers", now_ms)
            return
        config = self._broker.config
        message = to_message(self._broker.broker_id, request, config.inter_broker_listener_name)
        self._publish(
            ControlRequestSent(self._peer.broker_id, _name(request), len(request.entries))
        )
        self._link.request(
            message.api,
            message.version,
            message.body,
            lambda response, answered_ms: self._note_response(request, response, answered_ms),
            timeout_ms=config.controller_socket_timeout_ms,
            now_ms=now_ms,
        )

    def _connect(self) -> Link | None:
        name = self._broker.config.inter_broker_listener_name
        listener = self._peer.registration.listener(name)
        if listener is None:
            return None
        return self._broker.links.open(
            f"controller to broker {self._peer.broker_id}",
            listener.host,
            listener.port,
            client_id=str(self._broker.broker_id),
        )

    def _note_response(self, request: ControlRequest, response: object | None, now_ms: int) -> None:
        if request is not self._in_flight:
            return
        if response is None:
            reason = self._link.close_reason if self._link is not None else ""
            self._note_silence(reason, now_ms)
            return
        self._in_flight = None
        error = top_level_error(response)
        partition_errors = to_partition_errors(request, response)
        self._publish_answer(request, error, partition_errors)
        self._acknowledgements.note_answered(request, error, partition_errors)
        if self._acknowledgements.is_anything_owed:
            self._pay_later(now_ms)
        else:
            self._owed_backoff_ms = OWED_BACKOFF_MS
        self._send_next(now_ms)
        self._on_answer(request, error, partition_errors, now_ms)

    def _note_silence(self, reason: str, now_ms: int) -> None:
        """No answer: the same request again after a pause (Q9)."""
        request = self._in_flight
        if request is None:
            return
        self._publish(ControlRequestUnanswered(self._peer.broker_id, _name(request), reason))
        self._pause = self._broker.deadlines.at(now_ms + RETRY_BACKOFF_MS, self._send)

    def _pay_later(self, now_ms: int) -> None:
        if self._owed_pause is not None and self._owed_pause.is_pending:
            return
        self._owed_pause = self._broker.deadlines.at(now_ms + self._owed_backoff_ms, self._pay)
        self._owed_backoff_ms = min(self._owed_backoff_ms * 2, OWED_BACKOFF_MS_MAX)

    def _pay(self, now_ms: int) -> None:
        """Tell the broker what it refused as a whole, as the image has it now (R4)."""
        for request in self._acknowledgements.requests_owed(self._context):
            self.send(request, now_ms)

    def _publish_answer(
        self,
        request: ControlRequest,
        error: ErrorCode,
        partition_errors: dict[TopicPartition, ErrorCode],
    ) -> None:
        quiet = (ErrorCode.NONE, ErrorCode.STALE_CONTROLLER_EPOCH)
        failed = tuple((one, code) for one, code in partition_errors.items() if code not in quiet)
        self._publish(ControlRequestAnswered(self._peer.broker_id, _name(request), error, failed))

    def _publish(self, event: object) -> None:
        self._broker.events.publish(event, self._broker.now_ms)


class ControllerChannels:
    """One channel for every registered broker, for as long as this broker is the controller."""

    def __init__(self, broker: Broker, context: ControllerContext, on_answer: OnAnswer) -> None:
        self._broker = broker
        self._context = context
        self._on_answer = on_answer
        self._channels: dict[BrokerId, BrokerChannel] = {}

    def open(self, peer: RegisteredBroker) -> None:
        """Open a channel to a broker, or learn where it listens now."""
        known = self._channels.get(peer.broker_id)
        if known is not None and known.peer.epoch == peer.epoch:
            known.reach_at(peer)
            return
        if known is not None:
            known.close()
        self._channels[peer.broker_id] = BrokerChannel(
            self._broker, peer, self._context, self._on_answer
        )

    def close(self, broker_id: BrokerId) -> None:
        """The broker is gone."""
        channel = self._channels.pop(broker_id, None)
        if channel is not None:
            channel.close()

    def send(self, request: ControlRequest, now_ms: int) -> None:
        """Queue a request; one for a broker that went in this very event is dropped (Q10)."""
        channel = self._channels.get(request.broker_id)
        if channel is not None and channel.peer.epoch == request.broker_epoch:
            channel.send(request, now_ms)

    def close_all(self) -> None:
        """This broker is the controller no more: what has not left never will (N1)."""
        for channel in self._channels.values():
            channel.close()
        self._channels.clear()


def _name(request: ControlRequest) -> str:
    """The name of the request's API."""
    return type(request).__name__.removeprefix("Send")
