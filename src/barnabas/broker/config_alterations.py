"""Settings as clients change them: read, edited, written, and noted for all brokers (M1).

A node that is there is written under a check that there is a controller, and only if nobody wrote
it since it was read; a first one is plainly created. Then comes the note that makes every broker
look at it. Resources are dealt with one after the other, as they were named.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from barnabas.broker.administration import TopicAnswer, answer_of_write
from barnabas.core.administration.alteration import (
    TOPIC,
    Alteration,
    find_form_fault,
    plan_broker_alteration,
    plan_topic_alteration,
)
from barnabas.core.administration.refusals import Refused
from barnabas.formats.znodes.configs import (
    CONFIG_CHANGE_PREFIX,
    ConfigChange,
    broker_entity,
    config_from_bytes,
    config_path,
    config_to_bytes,
    topic_entity,
)
from barnabas.formats.znodes.controller import CONTROLLER_PATH
from barnabas.model.error_codes import ErrorCode
from barnabas.model.errors import DecodeError
from barnabas.model.znode import (
    ANY_VERSION,
    Check,
    Create,
    CreateMode,
    GetData,
    SetData,
    StoreAnswer,
    StoreError,
)

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker

Altered = Callable[[list[TopicAnswer], int], None]
"""Takes the answers, in the order of the wishes, and the time."""
Answered = Callable[[TopicAnswer, int], None]

_TWICE = Refused(ErrorCode.INVALID_REQUEST, "Each resource must appear at most once.")


class ConfigAlterations:
    """Carries out what clients ask to be altered."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker

    def alter(
        self, wishes: Sequence[Alteration], *, is_validation: bool, then: Altered, now_ms: int
    ) -> None:
        """Alter every resource that may be; `then` comes when all are written and noted."""
        counts = Counter((wish.resource_type, wish.name) for wish in wishes)
        answers: list[TopicAnswer] = []
        begun = 0
        is_going_on = False

        def go_on(at_ms: int) -> None:
            """Up to the next one that has to wait for the store, which comes back here."""
            nonlocal begun, is_going_on
            is_going_on = True
            while begun == len(answers) < len(wishes):
                wish = wishes[begun]
                begun += 1
                is_twice = counts[wish.resource_type, wish.name] > 1
                refused = _TWICE if is_twice else self._find_fault(wish)
                if refused is None:
                    _Alteration(self._broker, wish, is_validation, on_answer).begin()
                else:
                    answers.append(TopicAnswer(refused.error, refused.message))
            is_going_on = False
            if len(answers) == len(wishes):
                then(answers, at_ms)

        def on_answer(answer: TopicAnswer, answered_ms: int) -> None:
            """Perhaps at once, when the line to the store is full."""
            answers.append(answer)
            if not is_going_on:
                go_on(answered_ms)

        go_on(now_ms)

    def _find_fault(self, wish: Alteration) -> Refused | None:
        fault = find_form_fault(wish, self._broker.broker_id)
        if fault is not None or wish.resource_type != TOPIC:
            return fault
        if self._broker.metadata_cache.topic(wish.name) is None:
            return Refused(
                ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"The topic '{wish.name}' does not exist."
            )
        return None


class _Alteration:
    """One resource until it is written and noted."""

    def __init__(
        self, broker: Broker, wish: Alteration, is_validation: bool, then: Answered
    ) -> None:
        self._broker = broker
        self._wish = wish
        self._is_validation = is_validation
        self._is_first = False
        self._then = then
        if wish.resource_type == TOPIC:
            self._entity = topic_entity(wish.name)
        else:
            self._entity = broker_entity(broker.broker_id if wish.name else None)
        self._path = config_path(self._entity)

    def begin(self) -> None:
        self._broker.client_metadata.submit([GetData(self._path)], self._on_read)

    def _on_read(self, answer: StoreAnswer, now_ms: int) -> None:
        outcome = answer.outcomes[0]
        if not outcome.is_ok and outcome.error is not StoreError.NO_NODE:
            self._then(answer_of_write(answer), now_ms)
            return
        try:
            stored = config_from_bytes(self._path, outcome.data) if outcome.is_ok else {}
        except DecodeError as problem:
            self._then(TopicAnswer(ErrorCode.UNKNOWN_SERVER_ERROR, str(problem)), now_ms)
            return
        if self._wish.resource_type == TOPIC:
            planned = plan_topic_alteration(self._wish, stored)
        else:
            static = self._broker.broker_configs.static
            planned = plan_broker_alteration(self._wish, stored, static)
        if isinstance(planned, Refused):
            self._then(TopicAnswer(planned.error, planned.message), now_ms)
        elif self._is_validation:
            self._then(TopicAnswer(ErrorCode.NONE), now_ms)
        else:
            self._is_first = outcome.stat is None
            version = ANY_VERSION if outcome.stat is None else outcome.stat.version
            self._write(config_to_bytes(planned), version)

    def _write(self, data: bytes, version: int) -> None:
        submit = self._broker.client_metadata.submit
        if self._is_first:
            submit([Create(self._path, data)], self._on_written)
        else:
            submit(
                [Check(CONTROLLER_PATH, ANY_VERSION), SetData(self._path, data, version)],
                self._on_written,
                is_multi=True,
            )

    def _on_written(self, answer: StoreAnswer, now_ms: int) -> None:
        if answer.is_ok:
            note = ConfigChange(self._entity).to_bytes()
            create = Create(CONFIG_CHANGE_PREFIX, note, CreateMode.PERSISTENT_SEQUENTIAL)
            self._broker.client_metadata.submit([create], self._on_noted)
        elif answer.outcomes[-1].error in self._lost_race:
            self.begin()
        else:
            self._then(answer_of_write(answer), now_ms)

    @property
    def _lost_race(self) -> tuple[StoreError, ...]:
        """Somebody else made, wrote or removed the node since it was read."""
        if self._is_first:
            return (StoreError.NODE_EXISTS,)
        return (StoreError.BAD_VERSION, StoreError.NO_NODE)

    def _on_noted(self, answer: StoreAnswer, now_ms: int) -> None:
        """Settings of this broker hold before it says so; other brokers follow the note."""
        done = answer_of_write(answer)
        if self._wish.resource_type == TOPIC:
            self._then(done, now_ms)
        else:
            self._broker.broker_configs.load(lambda _, loaded_ms: self._then(done, loaded_ms))
