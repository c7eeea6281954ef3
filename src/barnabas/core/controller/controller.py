"""The controller: takes an event, says what the store must hold before anybody is told.

Decide, commit, apply, release. An event starts a procedure; the procedure asks the store for
writes or reads and goes on with the answers; whatever is released comes out with the next
`Outcome`. The object lives for one controller epoch and is dropped whole when that is lost.
"""

from collections.abc import Callable
from typing import assert_never

from barnabas.core.controller import brokers, deletion, failover, topics
from barnabas.core.controller.context import ControllerContext, ControllerSettings
from barnabas.core.controller.effects import Outcome, Procedure, StoreAnswered, Wanted
from barnabas.core.controller.events import (
    BrokerModified,
    BrokersChanged,
    ControllerElected,
    ControllerEvent,
    LeaderAndIsrAnswered,
    StopReplicaAnswered,
    TopicDeletionRequested,
    TopicModified,
    TopicsChanged,
    UncleanElectionEnabled,
)
from barnabas.core.controller.partition_machine import bring_online
from barnabas.core.image.cluster_image import ClusterImage
from barnabas.model.ids import TopicId
from barnabas.model.invariant import invariant


class Controller:
    """One controllership: the image, what was derived from it, and the event under way."""

    def __init__(
        self, settings: ControllerSettings, image: ClusterImage, new_topic_id: Callable[[], TopicId]
    ) -> None:
        self.context = ControllerContext(settings, image, new_topic_id)
        self._procedure: Procedure[object] | None = None
        self._wanted: Wanted | None = None

    @property
    def image(self) -> ClusterImage:
        return self.context.image

    @property
    def is_idle(self) -> bool:
        """Whether the last event was dealt with, so that the next one may come."""
        return self._procedure is None

    def handle(self, event: ControllerEvent | StoreAnswered, now_ms: int) -> Outcome:
        """Deal with an event as far as it goes without the store, or go on with its answer."""
        if isinstance(event, StoreAnswered):
            invariant(self._procedure is not None, "the store answered and nothing was asked")
            self._check_answer(event)
            return self._advance(event)
        invariant(self._procedure is None, f"{event} came before the last event was dealt with")
        self._procedure = self._start(event)
        return self._advance(None)

    def _start(self, event: ControllerEvent) -> Procedure[object]:
        context = self.context
        match event:
            case ControllerElected():
                return failover.take_over(context)
            case BrokersChanged():
                return brokers.changed(context)
            case BrokerModified(broker_id):
                return brokers.modified(context, broker_id)
            case TopicsChanged():
                return topics.changed(context)
            case TopicModified(topic):
                return topics.modified(context, topic)
            case TopicDeletionRequested():
                return deletion.requested(context)
            case UncleanElectionEnabled(topic):
                return bring_online(context, (topic,))
            case LeaderAndIsrAnswered(broker_id, errors):
                return brokers.leader_and_isr_answered(context, broker_id, errors)
            case StopReplicaAnswered(broker_id, errors):
                return brokers.stop_replica_answered(context, broker_id, errors)
            case _:
                assert_never(event)

    def _check_answer(self, answer: StoreAnswered) -> None:
        wanted = self._wanted
        invariant(
            wanted is not None
            and len(answer.writes) == len(wanted.writes)
            and len(answer.reads) == len(wanted.reads),
            "the store answered something else than was asked",
        )

    def _advance(self, answer: StoreAnswered | None) -> Outcome:
        self._wanted = self._next_wanted(answer)
        context = self.context
        effects, context.effects = tuple(context.effects), []
        stories, context.stories = tuple(context.stories), []
        return Outcome(self._wanted, effects, stories)

    def _next_wanted(self, answer: StoreAnswered | None) -> Wanted | None:
        procedure = self._procedure
        if procedure is None:
            return None
        try:
            return next(procedure) if answer is None else procedure.send(answer)
        except StopIteration:
            self._procedure = None
            return None
