"""Whom to ask: any broker, the controller, a coordinator, the leaders; and to ask again."""

import random
from collections.abc import Callable, Iterable, Mapping, Sequence

from barnabas.client.errors import (
    ApiUnsupported,
    BrokerUnreachable,
    ClusterUnreachable,
    RequestRefused,
    code_of,
)
from barnabas.client.metadata import (
    NOTHING_KNOWN,
    BrokerNode,
    ClusterMetadata,
    build_request,
    read_response,
)
from barnabas.client.retries import DEFAULT_POLICY, RETRIABLE, RetryPolicy
from barnabas.client.steps import (
    Address,
    Answer,
    Ask,
    Failure,
    FailureKind,
    Operation,
    Outcome,
    Pause,
    Request,
    Response,
)
from barnabas.formats.wire.api_keys import ApiKey
from barnabas.formats.wire.catalog import Message
from barnabas.formats.wire.generated.find_coordinator import FindCoordinatorRequest
from barnabas.model.error_codes import ErrorCode
from barnabas.model.ids import BrokerId, TopicPartition

Build = Callable[[int], Message]
GROUP = 0
"""The kind of coordinator that groups have."""
MOVED = frozenset(
    {
        ErrorCode.NOT_CONTROLLER,
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    }
)
"""Answers of a broker that is not the one to ask, or not yet."""


class Attempts:
    """The tries of one operation: how many, since when, and whether there may be another."""

    def __init__(self, policy: RetryPolicy, chance: random.Random) -> None:
        self._policy = policy
        self._chance = chance
        self.tries = 0
        self.started_ms = -1
        self.now_ms = -1

    @property
    def elapsed_ms(self) -> int:
        return self.now_ms - self.started_ms

    @property
    def left_ms(self) -> int:
        """Time for one request; never nothing, so that a last answer can still come."""
        left = self._policy.timeout_ms - max(0, self.elapsed_ms)
        return max(1, min(left, self._policy.request_timeout_ms))

    def note(self, outcome: Outcome) -> tuple[Answer, ...]:
        if self.started_ms < 0:
            self.started_ms = outcome.now_ms
        self.now_ms = outcome.now_ms
        return outcome.answers

    def begin(self) -> Operation[None]:
        """A try begins; the first one learns what time it is."""
        if self.started_ms < 0:
            self.note((yield Pause(0)))
        self.tries += 1

    @property
    def is_over(self) -> bool:
        return self.elapsed_ms >= self._policy.timeout_ms

    def wait(self) -> Operation[None]:
        """Back off before the next try, not beyond the end of the operation."""
        delay_ms = self._policy.delay_ms(self.tries, self._chance)
        left_ms = max(0, self._policy.timeout_ms - self.elapsed_ms)
        self.note((yield Pause(min(delay_ms, left_ms))))


class Cluster:
    """A cluster as one client knows it: where to begin, and what it has been told."""

    def __init__(
        self,
        bootstrap: Sequence[Address],
        chance: random.Random,
        policy: RetryPolicy = DEFAULT_POLICY,
    ) -> None:
        self.bootstrap = tuple(bootstrap)
        self.chance = chance
        self.policy = policy
        self.known = NOTHING_KNOWN
        """Brokers and controller of the last answer, and the topics of all of them."""
        self._reached: set[Address] = set()
        """Who answered once: asked again until time is over, where others are given up earlier."""

    def attempts(self) -> Attempts:
        """The tries of a new operation."""
        return Attempts(self.policy, self.chance)

    def exchange(
        self, attempts: Attempts, requests: Sequence[Request]
    ) -> Operation[tuple[Answer, ...]]:
        """Send requests and remember who answered."""
        answers = attempts.note((yield Ask(tuple(requests))))
        for request, answer in zip(requests, answers, strict=True):
            if isinstance(answer, Response):
                self._reached.add(request.address)
        return answers

    # -- metadata ----------------------------------------------------------------------------

    def describe(
        self, topics: Iterable[str] | None = (), *, may_create: bool = False
    ) -> Operation[ClusterMetadata]:
        """Ask for these topics; for all of them with None."""
        names = None if topics is None else tuple(topics)
        response = yield from self.ask_any(
            ApiKey.METADATA, lambda version: build_request(names, version, may_create)
        )
        told = read_response(response.body)
        topics_known = told.topics if names is None else {**self.known.topics, **told.topics}
        self.known = told._replace(topics=topics_known)
        return told

    # -- one broker of many ------------------------------------------------------------------

    def ask_any(
        self, api_key: ApiKey, build: Build, *, max_version: int | None = None
    ) -> Operation[Response]:
        """The first broker that answers, those given at the start last."""
        attempts = self.attempts()
        while True:
            yield from attempts.begin()
            reasons: list[tuple[Address, FailureKind, str]] = []
            for address in self._addresses():
                request = Request(address, api_key, build, attempts.left_ms, max_version)
                (answer,) = yield from self.exchange(attempts, [request])
                if isinstance(answer, Response):
                    return answer
                if answer.kind is FailureKind.UNSUPPORTED:
                    raise ApiUnsupported(address, answer.reason)
                reasons.append((address, answer.kind, answer.reason))
            is_hopeless = not self._reached and attempts.tries >= self.policy.unreachable_tries
            if attempts.is_over or is_hopeless:
                raise ClusterUnreachable(tuple(reasons), attempts.tries, attempts.elapsed_ms)
            yield from attempts.wait()

    def _addresses(self) -> list[Address]:
        known = [node.address for node in self.known.brokers.values()]
        self.chance.shuffle(known)
        known.sort(key=lambda address: address not in self._reached)
        return [*known, *(address for address in self.bootstrap if address not in known)]

    def ask_broker(
        self,
        broker_id: BrokerId,
        api_key: ApiKey,
        build: Build,
        *,
        max_version: int | None = None,
    ) -> Operation[Response]:
        """That very broker."""
        node = yield from self.find_broker(broker_id)
        attempts = self.attempts()
        while True:
            yield from attempts.begin()
            request = Request(node.address, api_key, build, attempts.left_ms, max_version)
            (answer,) = yield from self.exchange(attempts, [request])
            if isinstance(answer, Response):
                return answer
            self.give_up_on(node, answer, attempts)
            yield from attempts.wait()

    def find_broker(self, broker_id: BrokerId) -> Operation[BrokerNode]:
        """Where a broker listens, as the cluster says."""
        if broker_id not in self.known.brokers:
            yield from self.describe()
        node = self.known.brokers.get(broker_id)
        if node is None:
            raise RequestRefused(
                f"broker {broker_id}",
                ErrorCode.BROKER_NOT_AVAILABLE,
                f"the cluster has no live broker {broker_id}",
            )
        return node

    def give_up_on(self, node: BrokerNode, failure: Failure, attempts: Attempts) -> None:
        """Raise when asking this broker again makes no sense."""
        if failure.kind is FailureKind.UNSUPPORTED:
            raise ApiUnsupported(node.address, failure.reason)
        tries_max = self.policy.unreachable_tries
        is_hopeless = node.address not in self._reached and attempts.tries >= tries_max
        if attempts.is_over or is_hopeless:
            raise BrokerUnreachable(
                node.id, node.address, failure.reason, attempts.tries, attempts.elapsed_ms
            )

    # -- controller and coordinator ----------------------------------------------------------

    def ask_controller(
        self,
        api_key: ApiKey,
        build: Build,
        codes: Callable[[Message], Iterable[int]],
    ) -> Operation[Response]:
        """The controller; another one when it says that it is not."""

        def find() -> Operation[BrokerNode | None]:
            if self.known.controller_id not in self.known.brokers:
                yield from self.describe()
            return self.known.brokers.get(self.known.controller_id)

        return (yield from self._ask_found("the controller", find, api_key, build, codes))

    def ask_coordinator(
        self,
        group: str,
        api_key: ApiKey,
        build: Build,
        codes: Callable[[Message], Iterable[int]],
        *,
        max_version: int | None = None,
    ) -> Operation[Response]:
        """The coordinator of a group; another one when it says that it is not."""

        def find() -> Operation[BrokerNode | None]:
            return (yield from self.find_coordinator(group))

        what = f"the coordinator of group {group}"
        return (yield from self._ask_found(what, find, api_key, build, codes, max_version))

    def _ask_found(
        self,
        what: str,
        find: Callable[[], Operation[BrokerNode | None]],
        api_key: ApiKey,
        build: Build,
        codes: Callable[[Message], Iterable[int]],
        max_version: int | None = None,
    ) -> Operation[Response]:
        attempts = self.attempts()
        while True:
            yield from attempts.begin()
            node = yield from find()
            code = ErrorCode.BROKER_NOT_AVAILABLE
            if node is not None:
                request = Request(node.address, api_key, build, attempts.left_ms, max_version)
                (answer,) = yield from self.exchange(attempts, [request])
                if isinstance(answer, Failure):
                    self.give_up_on(node, answer, attempts)
                    code = ErrorCode.NETWORK_EXCEPTION
                else:
                    told = [code_of(number) for number in codes(answer.body)]
                    moved = [each for each in told if each in MOVED]
                    if not moved:
                        return answer
                    code = moved[0]
            if attempts.is_over:
                raise RequestRefused(what, code)
            self.known = self.known._replace(brokers={})
            yield from attempts.wait()

    def find_coordinator(self, group: str) -> Operation[BrokerNode | None]:
        """Who coordinates a group; None when nobody does yet."""
        response = yield from self.ask_any(
            ApiKey.FIND_COORDINATOR, lambda version: _coordinator_request(group, version)
        )
        found = response.body if response.version < 4 else response.body.coordinators[0]
        code = code_of(found.error_code)
        if code is ErrorCode.NONE:
            return BrokerNode(found.node_id, Address(found.host, found.port), None)
        if code in RETRIABLE:
            return None
        raise RequestRefused(f"group {group}", code, found.error_message)

    # -- every broker, every leader ----------------------------------------------------------

    def ask_every_broker(self, api_key: ApiKey, build: Build) -> Operation[list[Response]]:
        """Every live broker; all of them answer or it is an error."""
        told = yield from self.describe()
        responses: list[Response] = []
        for broker_id in sorted(told.brokers):
            responses.append((yield from self.ask_broker(broker_id, api_key, build)))
        return responses

    def find_leaders(
        self, partitions: Iterable[TopicPartition]
    ) -> Operation[dict[BrokerNode, list[TopicPartition]]]:
        """Partitions by their leader, as far as it is known; those without one are not there."""
        wanted = sorted(partitions)
        unknown = {place.topic for place in wanted if self._leader_of(place) is None}
        if unknown:
            yield from self.describe(sorted(unknown))
        leaders: dict[BrokerNode, list[TopicPartition]] = {}
        for place in wanted:
            node = self._leader_of(place)
            if node is not None:
                leaders.setdefault(node, []).append(place)
        return leaders

    def _leader_of(self, place: TopicPartition) -> BrokerNode | None:
        topic = self.known.topics.get(place.topic)
        if topic is None or place.partition >= len(topic.partitions):
            return None
        return self.known.brokers.get(topic.partitions[place.partition].leader_id)

    def forget(self, topics: Iterable[str]) -> None:
        """What was known of these topics is out of date."""
        for topic in topics:
            self.known.topics.pop(topic, None)

    def ask_leaders(
        self,
        partitions: Iterable[TopicPartition],
        request_for: Callable[[Sequence[TopicPartition]], tuple[ApiKey, Build]],
        read: Callable[[Response], Mapping[TopicPartition, tuple[ErrorCode, Message]]],
    ) -> Operation[dict[TopicPartition, Message]]:
        """Each partition's leader, again for those whose answer was retriable."""
        attempts = self.attempts()
        left = sorted(partitions)
        done: dict[TopicPartition, Message] = {}
        while left:
            yield from attempts.begin()
            leaders = yield from self.find_leaders(left)
            asked = list(leaders.items())
            requests: list[Request] = []
            for node, places in asked:
                api_key, build = request_for(places)
                requests.append(Request(node.address, api_key, build, attempts.left_ms))
            code = ErrorCode.LEADER_NOT_AVAILABLE
            answers = yield from self.exchange(attempts, requests)
            for (node, _), answer in zip(asked, answers, strict=True):
                if isinstance(answer, Failure):
                    self.give_up_on(node, answer, attempts)
                    continue
                for place, (told, result) in read(answer).items():
                    if told is ErrorCode.NONE:
                        done[place] = result
                    elif told in RETRIABLE:
                        code = told
                    else:
                        raise RequestRefused(str(place), told)
            left = [place for place in left if place not in done]
            if left:
                if attempts.is_over:
                    raise RequestRefused(str(left[0]), code)
                self.forget({place.topic for place in left})
                yield from attempts.wait()
        return done


def _coordinator_request(group: str, version: int) -> Message:
    if version >= 4:
        return FindCoordinatorRequest(key_type=GROUP, coordinator_keys=[group])
    return FindCoordinatorRequest(key=group)
