"""Elects the controller; while it is this one, feeds it watches and answers as events.

Elections go through the store: the ephemeral /controller and the next /controller_epoch in one
multi (N1). The winner's Controller gets one event after the other; what it wants of the store is
done by `ControllerCommits`, what it releases goes to `ControllerChannels`. When the epoch or the
session is lost the whole controllership is dropped: nothing of it can leave any more.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from barnabas.broker.controller_channels import ControllerChannels
from barnabas.broker.controller_commits import ControllerCommits
from barnabas.broker.deadlines import Deadline
from barnabas.broker.event_stream import BrokerFailed
from barnabas.core.administration.topic_ids import new_uuid
from barnabas.core.controller.context import ControllerSettings
from barnabas.core.controller.controller import Controller
from barnabas.core.controller.effects import CloseChannel, OpenChannel, Outcome, StoreAnswered
from barnabas.core.controller.events import (
    ControllerElected,
    ControllerEvent,
    LeaderAndIsrAnswered,
    StopReplicaAnswered,
    UncleanElectionEnabled,
    event_of_watch,
)
from barnabas.core.controller.request_batch import (
    ControlRequest,
    SendLeaderAndIsr,
    SendStopReplica,
    SendUpdateMetadata,
)
from barnabas.core.image.cluster_image import ClusterImage
from barnabas.formats.znodes.controller import (
    CONTROLLER_EPOCH_PATH,
    CONTROLLER_PATH,
    ControllerRegistration,
    epoch_from_bytes,
    epoch_to_bytes,
)
from barnabas.model.epochs import INITIAL_CONTROLLER_EPOCH, ControllerEpoch
from barnabas.model.error_codes import ErrorCode
from barnabas.model.errors import DecodeError
from barnabas.model.ids import NO_BROKER, BrokerId, TopicId, TopicPartition
from barnabas.model.invariant import InvariantViolated
from barnabas.model.znode import (
    Check,
    Create,
    CreateMode,
    Delete,
    Exists,
    GetData,
    SessionChange,
    SessionState,
    SetData,
    StoreAnswer,
    StoreError,
    WatchEvent,
)
from barnabas.model.znode import (
    Outcome as StoreOutcome,
)

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker

STAND_AGAIN_AFTER_MS: Final = 1_000
"""After a bug ended its controllership a broker lets others stand first."""


@dataclass(frozen=True, slots=True)
class BecameController:
    """This broker won the election."""

    epoch: ControllerEpoch


@dataclass(frozen=True, slots=True)
class ControllerResigned:
    """This broker is the controller no more."""

    epoch: ControllerEpoch
    reason: str


@dataclass(frozen=True, slots=True)
class ControllerFailed:
    """A bug was met in a decision; the controllership ends, the broker goes on."""

    epoch: ControllerEpoch
    story: str
    bug: Exception


@dataclass(frozen=True, slots=True)
class ControllerEventTaken:
    """The controller began to deal with an event."""

    event: ControllerEvent


class Controllership:
    """One epoch: the Controller, its queue of events, its store side and its channels."""

    def __init__(self, role: ControllerRole, broker: Broker, image: ClusterImage) -> None:
        self._role = role
        self._broker = broker
        self._queue: deque[ControllerEvent] = deque()
        self._queued: set[ControllerEvent] = set()
        config = broker.config
        self.controller = Controller(
            ControllerSettings(
                delete_topic_enable=config.delete_topic_enable,
                unclean_leader_election_enable=config.unclean_leader_election_enable,
            ),
            image,
            lambda: TopicId(new_uuid(broker.random)),
        )
        self._channels = ControllerChannels(broker, self.controller.context, self._note_answer)
        self.commits = ControllerCommits(
            broker,
            image.controller_epoch_version,
            on_watch=self._note_watch,
            on_epoch_lost=lambda now_ms: role.resign("another controller was elected", now_ms),
        )

    @property
    def epoch(self) -> ControllerEpoch:
        return self.controller.image.controller_epoch

    def enqueue(self, event: ControllerEvent, now_ms: int) -> None:
        """Deal with an event after those before it; one that waits already is not told twice."""
        if event not in self._queued:
            self._queued.add(event)
            self._queue.append(event)
        self._take_next(now_ms)

    def close(self) -> None:
        """Undo the failover in reverse: no more events, no watch, no request, no answer (N1)."""
        self._queue.clear()
        self._queued.clear()
        self.commits.close()
        self._channels.close_all()

    def _take_next(self, now_ms: int) -> None:
        while self._queue and self.controller.is_idle:
            event = self._queue.popleft()
            self._queued.discard(event)
            self._broker.events.publish(ControllerEventTaken(event), now_ms)
            self._handle(event, now_ms)

    def _handle(self, event: ControllerEvent | StoreAnswered, now_ms: int) -> None:
        """One step of the Controller; a bug in it costs the controllership and nothing more."""
        try:
            outcome = self.controller.handle(event, now_ms)
        except Exception as bug:
            # The edge where a bug met in a decision is kept to the office: whoever is elected
            # next reads everything anew, and nothing of this step has left.
            self._role.give_up(bug, now_ms)
            return
        self._release(outcome, now_ms)
        if outcome.wanted is not None:
            self.commits.ask(outcome.wanted, self._note_settled)

    def _note_settled(self, answer: StoreAnswered, now_ms: int) -> None:
        self._handle(answer, now_ms)
        self._take_next(now_ms)

    def _release(self, outcome: Outcome, now_ms: int) -> None:
        for story in outcome.stories:
            self._broker.events.publish(story, now_ms)
        for effect in outcome.effects:
            match effect:
                case OpenChannel(peer):
                    self._channels.open(peer)
                case CloseChannel(broker_id):
                    self._channels.close(broker_id)
                case SendLeaderAndIsr() | SendUpdateMetadata() | SendStopReplica():
                    self._channels.send(effect, now_ms)

    def _note_watch(self, event: WatchEvent, now_ms: int) -> None:
        meaning = event_of_watch(event.path)
        if meaning is not None:
            self.enqueue(meaning, now_ms)

    def _note_answer(
        self,
        request: ControlRequest,
        error: ErrorCode,
        partition_errors: dict[TopicPartition, ErrorCode],
        now_ms: int,
    ) -> None:
        """A broker answered; one that obeys a later controller makes us look who it is."""
        if error is ErrorCode.STALE_CONTROLLER_EPOCH:
            self._role.look_again(now_ms)
        elif error is ErrorCode.STALE_BROKER_EPOCH:
            pass  # Another process by now: its registration is on its way to us.
        elif isinstance(request, SendLeaderAndIsr) and error is ErrorCode.NONE:
            event = LeaderAndIsrAnswered(request.broker_id, partition_errors)
            self.enqueue(event, now_ms)
        elif isinstance(request, SendStopReplica):
            deletions = [one.partition for one in request.entries if one.delete_partition]
            if error is ErrorCode.NONE:
                errors = {one: partition_errors.get(one, error) for one in deletions}
            else:
                errors = dict.fromkeys(deletions, error)
            if errors:
                self.enqueue(StopReplicaAnswered(request.broker_id, errors), now_ms)


class ControllerRole:
    """Stands for election whenever there is no controller, and holds the office when it won."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._controllership: Controllership | None = None
        self._is_registered = False
        """Only a registered broker stands for election."""
        self._is_watching = False
        self._is_looking = False
        self._must_look_again = False
        self._standing: Deadline | None = None
        """Set while this broker does not stand for election after a bug."""
        self.controller_id: BrokerId = NO_BROKER
        """Who /controller says it is, as far as this broker has read it."""

    @property
    def is_active(self) -> bool:
        """Whether this broker is the controller, as far as it knows."""
        return self._controllership is not None

    def is_queued_for_deletion(self, topic: str) -> bool:
        """Whether this broker, as the controller, is deleting a topic."""
        held = self._controllership
        return held is not None and held.controller.context.is_queued_for_deletion(topic)

    def topic_name(self, topic_id: TopicId) -> str | None:
        """The topic of an id, as this broker knows it as the controller."""
        held = self._controllership
        return None if held is None else held.controller.image.topic_name(topic_id)

    def note_unclean_election_enabled(self, topic: str, now_ms: int) -> None:
        """A topic's settings allow a leader that lacks records from now on."""
        if self._controllership is not None:
            self._controllership.enqueue(UncleanElectionEnabled(topic), now_ms)

    # -- the session -------------------------------------------------------------------------

    def start(self, now_ms: int) -> None:
        """This broker is registered, for the first time or anew: take part in elections."""
        self._is_registered = True
        self.look_again(now_ms)

    def stop(self, now_ms: int) -> None:
        """This broker stops: leave the office, and stand for it no more."""
        self._is_registered = False
        self._drop("its broker stops", now_ms)

    def note_session(self, change: SessionChange, now_ms: int) -> None:
        """The session with the store changed; its end pre-empts everything (N3)."""
        held = self._controllership
        if change.state is SessionState.EXPIRED:
            self._drop("its session expired", now_ms)
            self._is_registered = self._is_watching = self._is_looking = False
        elif held is not None:
            held.commits.note_session(change, now_ms)

    # -- elections ---------------------------------------------------------------------------

    def look_again(self, now_ms: int) -> None:
        """Read who the controller is; stand for election when nobody is, resign when another."""
        if not self._is_registered:
            return
        if self._is_looking:
            self._must_look_again = True
            return
        self._is_looking = True
        self._must_look_again = False
        if not self._is_watching:
            self._is_watching = True
            self._broker.metadata.on_watch(CONTROLLER_PATH, self._note_watch)
        self._broker.metadata.submit(
            [Exists(CONTROLLER_PATH, watch=True), GetData(CONTROLLER_PATH)], self._note_found
        )

    def _note_watch(self, _event: WatchEvent, now_ms: int) -> None:
        self._is_watching = False
        self.look_again(now_ms)

    def _note_found(self, answer: StoreAnswer, now_ms: int) -> None:
        if not self._is_looking:
            return
        found = answer.outcomes[1]
        if found.error is StoreError.NO_NODE:
            self.controller_id = NO_BROKER
            self._drop("/controller is gone", now_ms)
            self._stand(now_ms)
        elif found.is_ok:
            self._end_look(_controller_of(found), now_ms)
        else:
            self._look_later(now_ms)

    def _end_look(self, controller_id: BrokerId, now_ms: int) -> None:
        """Somebody is the controller."""
        self._is_looking = False
        self.controller_id = controller_id
        if controller_id != self._broker.broker_id:
            self._drop(f"broker {controller_id} is the controller", now_ms)
        if self._must_look_again:
            self.look_again(now_ms)

    def _look_later(self, now_ms: int) -> None:
        """The store could not be asked: again when it can, at the latest after a pause."""
        self._is_looking = False
        self._broker.deadlines.at(now_ms + STAND_AGAIN_AFTER_MS, self.look_again)

    def _stand(self, now_ms: int) -> None:
        """Nobody is the controller: find the epoch to go on from."""
        if self._standing is not None and self._standing.is_pending:
            self._is_looking = False
            return
        self._broker.metadata.submit([GetData(CONTROLLER_EPOCH_PATH)], self._note_epoch)

    def _note_epoch(self, answer: StoreAnswer, now_ms: int) -> None:
        if not self._is_looking:
            return
        found = answer.outcomes[0]
        if found.error is StoreError.NO_NODE:
            first = Create(CONTROLLER_EPOCH_PATH, epoch_to_bytes(INITIAL_CONTROLLER_EPOCH))
            self._broker.metadata.submit([first], lambda _, created_ms: self._stand(created_ms))
            return
        if not found.is_ok or found.stat is None:
            self._look_later(now_ms)
            return
        try:
            epoch = epoch_from_bytes(CONTROLLER_EPOCH_PATH, found.data)
        except DecodeError as problem:
            self._is_looking = False
            self._broker.events.publish(BrokerFailed(problem), now_ms)
            return
        self._claim(ControllerEpoch(epoch + 1), found.stat.version)

    def _claim(self, epoch: ControllerEpoch, version: int) -> None:
        """Become the controller and take the next epoch, both or neither."""
        broker = self._broker
        registration = ControllerRegistration(broker.broker_id, broker.wall_clock.epoch_ms())

        def on_claimed(answer: StoreAnswer, now_ms: int) -> None:
            if not self._is_looking:
                return
            if answer.is_ok:
                self._take_office(epoch, version + 1, now_ms)
            else:
                self._check_claim(epoch)

        broker.metadata.submit(
            [
                Create(CONTROLLER_PATH, registration.to_bytes(), CreateMode.EPHEMERAL),
                SetData(CONTROLLER_EPOCH_PATH, epoch_to_bytes(epoch), version),
            ],
            on_claimed,
            is_multi=True,
        )

    def _check_claim(self, epoch: ControllerEpoch) -> None:
        """The claim was refused, or its answer lost: look what became of it."""

        def on_read(answer: StoreAnswer, now_ms: int) -> None:
            if not self._is_looking:
                return
            holder, counter = answer.outcomes
            if holder.error is StoreError.NO_NODE:
                self._is_looking = False
                self.look_again(now_ms)
            elif not holder.is_ok or not counter.is_ok or counter.stat is None:
                self._look_later(now_ms)
            elif _is_ours(holder, counter, self._broker.broker_id, epoch):
                self._take_office(epoch, counter.stat.version, now_ms)
            else:
                self._end_look(_controller_of(holder), now_ms)

        self._broker.metadata.submit(
            [GetData(CONTROLLER_PATH), GetData(CONTROLLER_EPOCH_PATH)], on_read
        )

    def _take_office(self, epoch: ControllerEpoch, version: int, now_ms: int) -> None:
        self._is_looking = False
        self.controller_id = self._broker.broker_id
        image = ClusterImage(epoch, version)
        held = Controllership(self, self._broker, image)
        self._controllership = held
        self._broker.events.publish(BecameController(epoch), now_ms)
        held.enqueue(ControllerElected(), now_ms)
        if self._must_look_again:
            self.look_again(now_ms)

    # -- resignation -------------------------------------------------------------------------

    def resign(self, reason: str, now_ms: int) -> None:
        """The epoch is lost: drop everything, then see who has it."""
        self._drop(reason, now_ms)
        self.look_again(now_ms)

    def give_up(self, bug: Exception, now_ms: int) -> None:
        """A bug ended the controllership: leave the office to others, stand again later."""
        held = self._controllership
        if held is None:
            return
        version = held.controller.image.controller_epoch_version
        story = str(bug) if isinstance(bug, InvariantViolated) else repr(bug)
        self._broker.events.publish(ControllerFailed(held.epoch, story, bug), now_ms)
        self._drop(story, now_ms)
        self._standing = self._broker.deadlines.at(now_ms + STAND_AGAIN_AFTER_MS, self.look_again)
        self._broker.metadata.submit(
            [Check(CONTROLLER_EPOCH_PATH, version), Delete(CONTROLLER_PATH)],
            lambda _answer, deleted_ms: self.look_again(deleted_ms),
            is_multi=True,
        )

    def _drop(self, reason: str, now_ms: int) -> None:
        held = self._controllership
        if held is None:
            return
        self._controllership = None
        held.close()
        self._broker.events.publish(ControllerResigned(held.epoch, reason), now_ms)


def _controller_of(found: StoreOutcome) -> BrokerId:
    """The broker that a /controller node names; nobody we know when it makes no sense."""
    try:
        return ControllerRegistration.from_bytes(CONTROLLER_PATH, found.data).broker_id
    except DecodeError:
        return NO_BROKER


def _is_ours(
    holder: StoreOutcome, counter: StoreOutcome, broker_id: BrokerId, epoch: ControllerEpoch
) -> bool:
    """Whether the claim succeeded although its answer was lost: we hold what we asked for."""
    try:
        found = epoch_from_bytes(CONTROLLER_EPOCH_PATH, counter.data)
    except DecodeError:
        return False
    return _controller_of(holder) == broker_id and found == epoch
