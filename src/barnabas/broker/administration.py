"""Topics as clients ask for them: what is written to the store, and when they get their answer.

Any broker writes what it is asked for; the controller sees the znodes and does the rest. A client
that gave time waits until this broker has been told by the controller that it was done.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, cast

from barnabas.broker.metadata_waits import MetadataWaits
from barnabas.broker.undertakings import Undertaking, Undertakings
from barnabas.core.administration.creation import (
    UNSET,
    CreateTopicPolicy,
    Surroundings,
    TopicPlan,
    TopicWish,
    automatic_wish,
    plan_creation,
)
from barnabas.core.administration.expansion import GrowthWish, plan_expansion, unknown_topic
from barnabas.core.administration.placement import (
    PARTITIONS_PER_REQUEST_MAX,
    Assigned,
    Place,
    too_many_partitions,
)
from barnabas.core.administration.refusals import Refused
from barnabas.core.administration.topic_ids import new_uuid
from barnabas.core.administration.topic_names import TopicNames, is_valid_topic_name
from barnabas.formats.znodes.admin import DELETE_TOPICS_PATH, delete_topic_path
from barnabas.formats.znodes.configs import config_path, config_to_bytes, topic_entity
from barnabas.formats.znodes.controller import CONTROLLER_PATH
from barnabas.formats.znodes.topics import TOPICS_PATH, TopicAssignment, topic_path
from barnabas.model.error_codes import ErrorCode, bounded_message
from barnabas.model.errors import DecodeError
from barnabas.model.ids import NO_TOPIC_ID, TopicId
from barnabas.model.partition import NO_LEADER, ReplicaAssignment
from barnabas.model.znode import (
    ANY_VERSION,
    Check,
    Create,
    Exists,
    GetChildren,
    GetData,
    SetData,
    StoreAnswer,
    StoreError,
)

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker
    from barnabas.broker.connections import Request
    from barnabas.broker.metadata_cache import CacheUpdate


class TopicAnswer:
    """What became of one topic; with the plan when it was written or could have been."""

    __slots__ = ("error", "message", "plan", "topic_id")

    def __init__(
        self,
        error: ErrorCode,
        message: str | None = None,
        plan: TopicPlan | None = None,
        topic_id: TopicId = NO_TOPIC_ID,
    ) -> None:
        self.error = error
        self.message = None if message is None else bounded_message(message)
        self.plan = plan
        self.topic_id = topic_id


BUSY: Final = TopicAnswer(
    ErrorCode.THROTTLING_QUOTA_EXCEEDED,
    "too many topics and partitions are being made, grown or deleted: ask again in a moment",
)
"""A client that knows the code waits; for versions that do not have it, see `busy_before`."""
BUSY_MS: Final = 1000
"""For how long a client is asked to stay away then."""

Answers = dict[str, TopicAnswer]
Answered = Callable[[Answers, int], None]
"""Takes the answers by topic, and the time."""
OnCreated = Callable[[dict[str, ErrorCode], int], None]

_LOST = frozenset({StoreError.CONNECTION_LOSS, StoreError.SESSION_EXPIRED})
"""The store may have done it or not: the client learns no more than that time is over."""


class _Creation:
    """One CreateTopics while its topics are planned and written."""

    __slots__ = ("around", "is_validation", "partitions", "timeout_ms")

    def __init__(self, around: Surroundings, is_validation: bool, timeout_ms: int) -> None:
        self.around = around
        self.is_validation = is_validation
        self.timeout_ms = timeout_ms
        self.partitions = 0
        """Of the topics that were granted."""


class _Growth:
    """One CreatePartitions while its topics are read and written."""

    __slots__ = ("is_validation", "partitions", "undertaking")

    def __init__(self, undertaking: Undertaking, is_validation: bool) -> None:
        self.undertaking = undertaking
        self.is_validation = is_validation
        self.partitions = 0
        """Added to the topics that were granted."""


def busy_before(answers: Answers, version: int, first_version: int) -> int:
    """How long to stay away; what is busy is a time-out where the version knows no quotas."""
    if not any(answer is BUSY for answer in answers.values()):
        return 0
    if version < first_version:
        timed_out = TopicAnswer(ErrorCode.REQUEST_TIMED_OUT, BUSY.message)
        answers.update(dict.fromkeys(answers, timed_out))
    return BUSY_MS


@dataclass(frozen=True, slots=True)
class CreateTopicPolicyFailed:
    """The policy for new topics met a bug of its own; the topic was not made."""

    topic: str
    problem: str
    bug: BaseException | None = None


class Administration:
    """Creates, grows and deletes topics in the store, and answers when the cluster knows."""

    def __init__(self, broker: Broker, create_topic_policy: CreateTopicPolicy | None) -> None:
        self._broker = broker
        self._policy = create_topic_policy
        self._waits = MetadataWaits(broker.deadlines)
        self.undertakings = Undertakings(broker)
        self._being_created: dict[str, None] = {}
        """Topics of automatic creations under way: nobody else starts one (C9)."""
        broker.metadata_cache.on_update(self._on_metadata)

    # -- creation ----------------------------------------------------------------------------

    def create_topics(
        self,
        wishes: Sequence[TopicWish],
        *,
        is_validation: bool,
        timeout_ms: int,
        then: Answered,
        request: Request | None = None,
    ) -> None:
        """Write the topics that may be created; `then` comes when they have leaders (C14)."""
        size = sum(map(self._size_of, wishes))
        undertaking = self.undertakings.begin(request, min(size, PARTITIONS_PER_REQUEST_MAX))
        if undertaking is None:
            then({wish.name: BUSY for wish in wishes}, self._broker.now_ms)
            return

        def on_read(answer: StoreAnswer, now_ms: int) -> None:
            if answer.is_ok:
                topics, marked = (frozenset(outcome.children) for outcome in answer.outcomes)
                creation = _Creation(self._surroundings(topics, marked), is_validation, timeout_ms)
                self._create(undertaking, wishes, creation, then, now_ms)
            else:
                undertaking.end()
                then({wish.name: answer_of_write(answer) for wish in wishes}, now_ms)

        self._broker.client_metadata.submit(
            [GetChildren(TOPICS_PATH), GetChildren(DELETE_TOPICS_PATH)], undertaking.guard(on_read)
        )

    def _size_of(self, wish: TopicWish) -> int:
        """How many partitions a topic asks for, as far as it can be told."""
        partitions = len(wish.assignments) or wish.partitions
        return max(1, self._broker.config.num_partitions if partitions == UNSET else partitions)

    def create_automatically(
        self, topics: Sequence[str], on_created: OnCreated, request: Request | None = None
    ) -> None:
        """Create topics that a client asked the metadata of; the error to tell for each (C9)."""
        errors: dict[str, ErrorCode] = {}
        wanted: list[str] = []
        for topic in topics:
            if not is_valid_topic_name(topic):
                errors[topic] = ErrorCode.INVALID_TOPIC_EXCEPTION
            elif topic in self._being_created:
                errors[topic] = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            else:
                errors[topic] = ErrorCode.LEADER_NOT_AVAILABLE
                wanted.append(topic)
        if not wanted:
            on_created(errors, self._broker.now_ms)
            return
        room = min(self.undertakings.room, PARTITIONS_PER_REQUEST_MAX)
        room //= max(1, self._broker.config.num_partitions)
        for topic in wanted[room:]:
            # As if another client were at it: who wants them asks again, and finds some made.
            errors[topic] = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        del wanted[room:]
        self._being_created.update(dict.fromkeys(wanted))

        def on_written(answers: Answers, now_ms: int) -> None:
            for topic in wanted:
                self._being_created.pop(topic, None)
                error = answers[topic].error
                if error not in (ErrorCode.TOPIC_ALREADY_EXISTS, ErrorCode.REQUEST_TIMED_OUT):
                    errors[topic] = error
            on_created(errors, now_ms)

        wishes = [automatic_wish(topic, self._broker.config) for topic in wanted]
        self.create_topics(
            wishes, is_validation=False, timeout_ms=0, then=on_written, request=request
        )

    def _surroundings(self, topics: frozenset[str], marked: frozenset[str]) -> Surroundings:
        broker = self._broker
        return Surroundings(
            places=self._places(),
            default_partitions=broker.config.num_partitions,
            default_replication_factor=broker.config.default_replication_factor,
            known_topics=frozenset(broker.metadata_cache.topic_names()),
            stored_topics=TopicNames(sorted(topics)),
            marked_topics=marked,
        )

    def _create(
        self,
        undertaking: Undertaking,
        wishes: Sequence[TopicWish],
        creation: _Creation,
        then: Answered,
        now_ms: int,
    ) -> None:
        """Plan the topics and write them, a slice per turn; then wait for their leaders."""
        answers: Answers = {}
        pending = dict.fromkeys(wish.name for wish in wishes)
        around = creation.around

        def on_topic(name: str, answer: TopicAnswer, written_ms: int) -> None:
            answers[name] = answer
            pending.pop(name, None)
            if pending:
                return
            undertaking.end()
            if creation.is_validation:
                then(answers, written_ms)
            else:
                has_leaders = self._leader_check(answers)
                self._wait(undertaking, answers, has_leaders, creation.timeout_ms, then, written_ms)

        def take(wish: TopicWish, planned_ms: int) -> None:
            plan = self._plan(wish, creation)
            if isinstance(plan, Refused):
                on_topic(wish.name, TopicAnswer(plan.error, plan.message), planned_ms)
                return
            around.stored_topics.add(wish.name)
            if creation.is_validation:
                on_topic(wish.name, TopicAnswer(ErrorCode.NONE, plan=plan), planned_ms)
            else:
                self._write_topic(undertaking, plan, on_topic)

        if not wishes:
            undertaking.end()
            then(answers, now_ms)
        self.undertakings.each(undertaking, wishes, take)

    def _plan(self, wish: TopicWish, creation: _Creation) -> TopicPlan | Refused:
        if creation.partitions >= PARTITIONS_PER_REQUEST_MAX:
            return too_many_partitions(creation.partitions + self._size_of(wish))
        plan = plan_creation(wish, creation.around, self._broker.random, self._judge)
        if isinstance(plan, TopicPlan):
            partitions = creation.partitions + len(plan.assigned)
            if partitions > PARTITIONS_PER_REQUEST_MAX:
                return too_many_partitions(partitions)
            creation.partitions = partitions
        return plan

    def _leader_check(self, answers: Answers) -> Callable[[str], bool]:
        cache = self._broker.metadata_cache

        def has_leaders(topic: str) -> bool:
            plan = answers[topic].plan
            states = [cache.partition(topic, n) for n in (() if plan is None else plan.assigned)]
            return all(state is not None and state.leader != NO_LEADER for state in states)

        return has_leaders

    def _judge(self, plan: TopicPlan) -> Refused | None:
        """Ask the policy of whoever runs this broker: it may refuse, and it may have bugs."""
        if self._policy is None:
            return None
        shown = TopicPlan(plan.name, dict(plan.assigned), dict(plan.configs))
        bug: BaseException | None = None
        try:
            reason = cast(object, self._policy(shown))
        except (Exception, SystemExit) as raised:
            bug = raised
            problem = f"{type(raised).__name__}: {raised}"
        else:
            if reason is None:
                return None
            if isinstance(reason, str):
                return Refused(ErrorCode.POLICY_VIOLATION, reason)
            problem = f"returned {type(reason).__name__} where the reason is text or None"
        broker = self._broker
        broker.events.publish(CreateTopicPolicyFailed(plan.name, problem, bug), broker.now_ms)
        return Refused(
            ErrorCode.UNKNOWN_SERVER_ERROR, f"the policy for new topics failed: {problem}"
        )

    def _write_topic(
        self,
        undertaking: Undertaking,
        plan: TopicPlan,
        then: Callable[[str, TopicAnswer, int], None],
    ) -> None:
        """The settings first, then the replicas: from then on the topic exists (C13)."""
        metadata = self._broker.client_metadata
        path = config_path(topic_entity(plan.name))
        data = config_to_bytes(plan.configs)
        topic_id = TopicId(new_uuid(self._broker.random))
        replicas = {one: ReplicaAssignment(given) for one, given in plan.assigned.items()}
        content = TopicAssignment(topic_id, replicas).to_bytes()

        def on_config(answer: StoreAnswer, now_ms: int) -> None:
            if answer.outcomes[0].error is StoreError.NODE_EXISTS:
                # Left behind by a creation that was cut short, or set before the topic was made.
                metadata.submit(
                    [Check(CONTROLLER_PATH, ANY_VERSION), SetData(path, data)],
                    undertaking.guard(on_config_set),
                    is_multi=True,
                )
            else:
                on_config_set(answer, now_ms)

        def on_config_set(answer: StoreAnswer, now_ms: int) -> None:
            if answer.is_ok:
                metadata.submit(
                    [Create(topic_path(plan.name), content)], undertaking.guard(on_topic)
                )
            else:
                then(plan.name, answer_of_write(answer), now_ms)

        def on_topic(answer: StoreAnswer, now_ms: int) -> None:
            if answer.is_ok:
                then(plan.name, TopicAnswer(ErrorCode.NONE, None, plan, topic_id), now_ms)
            elif answer.outcomes[0].error is StoreError.NODE_EXISTS:
                message = f"Topic '{plan.name}' already exists."
                then(plan.name, TopicAnswer(ErrorCode.TOPIC_ALREADY_EXISTS, message), now_ms)
            else:
                then(plan.name, answer_of_write(answer), now_ms)

        metadata.submit([Create(path, data)], undertaking.guard(on_config))

    # -- growth ------------------------------------------------------------------------------

    def grow_topics(
        self,
        wishes: Sequence[GrowthWish],
        *,
        is_validation: bool,
        timeout_ms: int,
        then: Answered,
        now_ms: int,
        request: Request | None = None,
    ) -> None:
        """Add partitions to topics; `then` comes when the new ones have leaders (M10)."""
        counts = {wish.topic: wish.count for wish in wishes}
        cache = self._broker.metadata_cache
        size = 0
        for wish in wishes:
            known = cache.topic(wish.topic)
            size += max(1, wish.count - (0 if known is None else len(known.partitions)))
        undertaking = self.undertakings.begin(request, min(size, PARTITIONS_PER_REQUEST_MAX))
        if undertaking is None:
            then(dict.fromkeys(counts, BUSY), now_ms)
            return
        growth = _Growth(undertaking, is_validation)
        answers: Answers = {}
        pending = dict.fromkeys(counts)

        def has_leaders(topic: str) -> bool:
            states = [cache.partition(topic, number) for number in range(counts[topic])]
            return all(state is not None and state.leader != NO_LEADER for state in states)

        def on_topic(topic: str, answer: TopicAnswer, written_ms: int) -> None:
            answers[topic] = answer
            pending.pop(topic, None)
            if pending:
                return
            undertaking.end()
            if is_validation:
                then(answers, written_ms)
            else:
                self._wait(undertaking, answers, has_leaders, timeout_ms, then, written_ms)

        if not wishes:
            undertaking.end()
            then(answers, now_ms)
        self.undertakings.each(
            undertaking, wishes, lambda wish, _: self._grow_topic(wish, growth, on_topic)
        )

    def _grow_topic(
        self,
        wish: GrowthWish,
        growth: _Growth,
        then: Callable[[str, TopicAnswer, int], None],
    ) -> None:
        """Read a topic, write it with its new partitions; again when it changed between (M7)."""
        metadata = self._broker.client_metadata
        guard = growth.undertaking.guard
        path = topic_path(wish.topic)

        def on_read(answer: StoreAnswer, now_ms: int) -> None:
            found = _read_topic(path, answer)
            if isinstance(found, TopicAnswer):
                if answer.outcomes[0].error is StoreError.NO_NODE:
                    refused = unknown_topic(wish.topic)
                    found = TopicAnswer(refused.error, refused.message)
                then(wish.topic, found, now_ms)
                return
            assignment, version = found
            added = plan_expansion(wish, assignment.partitions, self._places(), self._broker.random)
            if isinstance(added, Refused):
                then(wish.topic, TopicAnswer(added.error, added.message), now_ms)
            elif growth.partitions + len(added) > PARTITIONS_PER_REQUEST_MAX:
                refused = too_many_partitions(growth.partitions + len(added))
                then(wish.topic, TopicAnswer(refused.error, refused.message), now_ms)
            elif growth.is_validation:
                growth.partitions += len(added)
                then(wish.topic, TopicAnswer(ErrorCode.NONE), now_ms)
            else:
                growth.partitions += len(added)
                content = _grown(assignment, added).to_bytes()
                metadata.submit(
                    [SetData(path, content, version)],
                    guard(lambda written, written_ms: on_written(len(added), written, written_ms)),
                )

        def on_written(added: int, answer: StoreAnswer, now_ms: int) -> None:
            if answer.outcomes[0].error is StoreError.BAD_VERSION:
                growth.partitions -= added
                metadata.submit([GetData(path)], guard(on_read))
            else:
                then(wish.topic, answer_of_write(answer), now_ms)

        metadata.submit([GetData(path)], guard(on_read))

    # -- deletion ----------------------------------------------------------------------------

    def delete_topics(
        self,
        topics: Sequence[str],
        *,
        timeout_ms: int,
        then: Answered,
        now_ms: int,
        request: Request | None = None,
    ) -> None:
        """Mark topics to be deleted; `then` comes when they have left the metadata (D3, D17)."""
        answers: Answers = {}
        pending = dict.fromkeys(topics)
        size = min(len(pending), PARTITIONS_PER_REQUEST_MAX)
        undertaking = self.undertakings.begin(request, size)
        if undertaking is None:
            then(dict.fromkeys(topics, BUSY), now_ms)
            return

        def is_gone(topic: str) -> bool:
            return self._broker.metadata_cache.topic(topic) is None

        def on_topic(topic: str, answer: TopicAnswer, marked_ms: int) -> None:
            answers[topic] = answer
            pending.pop(topic, None)
            if not pending:
                undertaking.end()
                self._wait(undertaking, answers, is_gone, timeout_ms, then, marked_ms)

        if not topics:
            undertaking.end()
            then(answers, now_ms)
        self.undertakings.each(
            undertaking,
            list(pending),
            lambda topic, _: self._mark_topic(undertaking, topic, on_topic),
        )

    def _mark_topic(
        self,
        undertaking: Undertaking,
        topic: str,
        then: Callable[[str, TopicAnswer, int], None],
    ) -> None:
        metadata = self._broker.client_metadata

        def on_looked(answer: StoreAnswer, now_ms: int) -> None:
            if answer.is_ok:
                metadata.submit([Create(delete_topic_path(topic))], undertaking.guard(on_marked))
            elif answer.outcomes[0].error is StoreError.NO_NODE:
                then(topic, TopicAnswer(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION), now_ms)
            else:
                then(topic, answer_of_write(answer), now_ms)

        def on_marked(answer: StoreAnswer, now_ms: int) -> None:
            if answer.outcomes[0].error is StoreError.NODE_EXISTS:
                then(topic, TopicAnswer(ErrorCode.NONE), now_ms)
            else:
                then(topic, answer_of_write(answer), now_ms)

        metadata.submit([Exists(topic_path(topic))], undertaking.guard(on_looked))

    # -- what they share ---------------------------------------------------------------------

    def _places(self) -> list[Place]:
        """The brokers that may get replicas: those this broker knows to be live."""
        live = self._broker.metadata_cache.live_brokers()
        return [Place(broker.broker_id, broker.rack) for broker in live]

    def _wait(
        self,
        undertaking: Undertaking,
        answers: Answers,
        is_done: Callable[[str], bool],
        timeout_ms: int,
        then: Answered,
        now_ms: int,
    ) -> None:
        """Answer when everything that was written is done; who gave no time does not wait."""
        accepted = [topic for topic, one in answers.items() if one.error is ErrorCode.NONE]

        def on_waited(unfinished: Sequence[str], waited_ms: int) -> None:
            for topic in unfinished:
                known = answers[topic]
                answers[topic] = TopicAnswer(
                    ErrorCode.REQUEST_TIMED_OUT, None, known.plan, known.topic_id
                )
            then(answers, waited_ms)

        if timeout_ms <= 0:
            on_waited(accepted, now_ms)
        else:
            self._waits.wait(accepted, is_done, timeout_ms, undertaking.guard(on_waited), now_ms)

    def _on_metadata(self, update: CacheUpdate, now_ms: int) -> None:
        self._waits.note_updated(update.topics, now_ms)


def answer_of_write(answer: StoreAnswer) -> TopicAnswer:
    """The answer for what the store said of a write: done, or why not."""
    errors = [
        outcome.error
        for outcome in answer.outcomes
        if outcome.error not in (StoreError.OK, StoreError.RUNTIME_INCONSISTENCY)
    ]
    if not errors:
        return TopicAnswer(ErrorCode.NONE)
    if errors[0] in _LOST:
        return TopicAnswer(ErrorCode.REQUEST_TIMED_OUT)
    return TopicAnswer(
        ErrorCode.UNKNOWN_SERVER_ERROR, f"the metadata store refused: {errors[0].name}"
    )


def _read_topic(path: str, answer: StoreAnswer) -> tuple[TopicAssignment, int] | TopicAnswer:
    """A topic's content and version, or the answer for one that cannot be read."""
    outcome = answer.outcomes[0]
    if not outcome.is_ok or outcome.stat is None:
        return answer_of_write(answer)
    try:
        return TopicAssignment.from_bytes(path, outcome.data), outcome.stat.version
    except DecodeError as problem:
        return TopicAnswer(ErrorCode.UNKNOWN_SERVER_ERROR, str(problem))


def _grown(assignment: TopicAssignment, added: Assigned) -> TopicAssignment:
    """The topic with its new partitions; its id and its old ones stay as they are."""
    new: Mapping[int, ReplicaAssignment] = {
        partition: ReplicaAssignment(replicas) for partition, replicas in added.items()
    }
    return TopicAssignment(assignment.topic_id, {**assignment.partitions, **new})
