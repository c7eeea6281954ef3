"""One controller over ZooKeeper's machine, without brokers: they are what it would tell them.

Everything happens in the order in which it was asked for, so that a test sees exactly which
transactions were committed and which requests each broker got.
"""

import random
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from barnabas.core.controller.context import ControllerSettings
from barnabas.core.controller.controller import Controller
from barnabas.core.controller.effects import (
    CloseChannel,
    ConditionalWrite,
    Effect,
    OpenChannel,
    Outcome,
    StoreAnswered,
    Story,
    Wanted,
    WriteResult,
)
from barnabas.core.controller.events import (
    ControllerElected,
    ControllerEvent,
    LeaderAndIsrAnswered,
    StopReplicaAnswered,
    event_of_watch,
)
from barnabas.core.controller.request_batch import (
    ControlRequest,
    SendLeaderAndIsr,
    SendStopReplica,
    SendUpdateMetadata,
)
from barnabas.core.image.cluster_image import ClusterImage
from barnabas.formats.znodes.brokers import BrokerRegistration, broker_path
from barnabas.formats.znodes.cluster import PERSISTENT_PATHS, parents_of
from barnabas.formats.znodes.controller import CONTROLLER_EPOCH_PATH, epoch_to_bytes
from barnabas.formats.znodes.topics import TopicAssignment, topic_path
from barnabas.model.epochs import ControllerEpoch
from barnabas.model.error_codes import ErrorCode
from barnabas.model.ids import BrokerId, TopicId, TopicPartition
from barnabas.model.listeners import Listener
from barnabas.model.partition import ReplicaAssignment
from barnabas.model.znode import (
    Check,
    Create,
    CreateMode,
    Delete,
    Operation,
    SetData,
    StoreError,
    Write,
)
from barnabas.model.znode import Outcome as StoreOutcome
from barnabas.zookeeper.machine import ZooKeeperMachine


@dataclass
class ControllerWorld:
    """The store, the sessions of brokers, and one controller at a time."""

    settings: ControllerSettings = field(default_factory=ControllerSettings)
    machine: ZooKeeperMachine = field(default_factory=ZooKeeperMachine)
    controller: Controller | None = None
    committed: list[Write] = field(default_factory=list)
    """Operations that the controller committed, without the checks."""
    transactions: list[tuple[Write, ...]] = field(default_factory=list)
    requests: list[ControlRequest] = field(default_factory=list)
    effects: list[Effect] = field(default_factory=list)
    stories: list[Story] = field(default_factory=list)
    silent: set[int] = field(default_factory=set)
    """Brokers that never answer a StopReplica; nothing else reaches them until they are gone."""
    stop_errors: dict[int, ErrorCode] = field(default_factory=dict)
    storage_errors: dict[int, set[TopicPartition]] = field(default_factory=dict)
    refuse_with: StoreError | None = None
    """The store refuses every write of the controller with this."""
    refuse_reads: dict[str, StoreError] = field(default_factory=dict)
    """The store refuses to read these paths for the controller."""
    before_commit: Callable[[Sequence[ConditionalWrite]], None] | None = None
    """What somebody else does just before the controller's writes arrive."""

    def __post_init__(self) -> None:
        self._events: deque[ControllerEvent] = deque()
        self._sessions: dict[int, int] = {}
        self._stuck: set[int] = set()
        self.client = self._open_session()
        self._us = self._open_session()
        for path in (*PERSISTENT_PATHS, CONTROLLER_EPOCH_PATH):
            for parent in (*parents_of(path), path):
                self.do(Create(parent))

    # -- what others do ----------------------------------------------------------------------

    def _open_session(self) -> int:
        opened = self.machine.open_session(10_000, 0)
        assert opened is not None
        return opened.session_id

    def do(self, *operations: Operation, session: int | None = None) -> tuple[StoreOutcome, ...]:
        """A client's operations, each for itself; their watches reach the controller."""
        applied = self.machine.apply(
            session or self.client, operations, is_multi=False, now_ms=0, wall_ms=0
        )
        for fired in applied.fired:
            if fired.session_id == self._us:
                event = event_of_watch(fired.event.path)
                if event is not None and event not in self._events:
                    self._events.append(event)
        return applied.outcomes

    def register(self, broker_id: int, rack: str | None = None, port: int | None = None) -> None:
        """A broker comes up: its node is made empty, then written, as Kafka does."""
        session = self._sessions[broker_id] = self._open_session()
        listener = Listener("PLAINTEXT", "localhost", port or 9000 + broker_id)
        data = BrokerRegistration((listener,), 0, rack).to_bytes()
        path = broker_path(BrokerId(broker_id))
        self.do(Create(path, None, CreateMode.EPHEMERAL), SetData(path, data, 0), session=session)

    def kill(self, broker_id: int) -> None:
        """A broker's session ends."""
        self._stuck.discard(broker_id)
        applied = self.machine.close_session(self._sessions.pop(broker_id), 0)
        for fired in applied.fired:
            event = event_of_watch(fired.event.path)
            if fired.session_id == self._us and event is not None and event not in self._events:
                self._events.append(event)

    def bounce(self, broker_id: int) -> None:
        """A broker's session ends and it is back before the controller looks."""
        self.kill(broker_id)
        self.register(broker_id)

    def create_topic(self, topic: str, *replicas: Sequence[int], topic_id: bytes = b"") -> None:
        """Write a topic's node, as any broker does to create it."""
        content = TopicAssignment(TopicId(topic_id or topic_id_of(topic)), assignments(*replicas))
        self.do(Create(f"/config/topics/{topic}", b'{"version":1,"config":{}}'))
        self.do(Create(topic_path(topic), content.to_bytes()))

    def set_topic(self, topic: str, *replicas: Sequence[int]) -> None:
        content = TopicAssignment(TopicId(topic_id_of(topic)), assignments(*replicas))
        self.do(SetData(topic_path(topic), content.to_bytes()))

    # -- the controller ----------------------------------------------------------------------

    def elect(self, epoch: int | None = None) -> Controller:
        """A new controller takes the place of the old one, which is dropped without a word."""
        node = self.machine.tree.node(CONTROLLER_EPOCH_PATH)
        assert node is not None
        last = int(node.data) if node.data else 0
        wanted = ControllerEpoch(last + 1 if epoch is None else epoch)
        self._us = self._open_session()
        (outcome,) = self.do(SetData(CONTROLLER_EPOCH_PATH, epoch_to_bytes(wanted)))
        assert outcome.stat is not None
        image = ClusterImage(wanted, outcome.stat.version)
        source = random.Random(wanted)
        self._events.clear()
        self._stuck.clear()
        self.controller = Controller(self.settings, image, lambda: TopicId(source.randbytes(16)))
        self._events.append(ControllerElected())
        return self.controller

    def run(self) -> None:
        """Deal with everything that happened until nothing is left to do."""
        for _ in range(10_000):
            if not self._events:
                return
            self.handle(self._events.popleft())
        raise AssertionError("the controller does not come to rest")

    def handle(self, event: ControllerEvent) -> None:
        """Take one event through to its end."""
        assert self.controller is not None
        outcome = self.controller.handle(event, 0)
        self.take(outcome)
        while outcome.wanted is not None:
            outcome = self.controller.handle(self.ask(outcome.wanted), 0)
            self.take(outcome)

    def ask(self, wanted: Wanted) -> StoreAnswered:
        """Let the store do what the controller wants, one multi per write."""
        if wanted.reads:
            found = self.do(*wanted.reads, session=self._us)
            refused = [self.refuse_reads.get(read.path) for read in wanted.reads]
            return StoreAnswered(
                reads=tuple(
                    outcome if error is None else StoreOutcome(error)
                    for outcome, error in zip(found, refused, strict=True)
                )
            )
        if self.before_commit is not None:
            self.before_commit(wanted.writes)
        return StoreAnswered(writes=tuple(self.commit(write) for write in wanted.writes))

    def commit(self, write: ConditionalWrite) -> WriteResult:
        assert self.controller is not None
        if self.refuse_with is not None:
            return WriteResult(self.refuse_with)
        check = Check(CONTROLLER_EPOCH_PATH, self.controller.image.controller_epoch_version)
        operations = (check, *write.operations)
        applied = self.machine.apply(self._us, operations, is_multi=True, now_ms=0, wall_ms=0)
        for fired in applied.fired:
            event = event_of_watch(fired.event.path)
            if fired.session_id == self._us and event is not None and event not in self._events:
                self._events.append(event)
        if all(outcome.is_ok for outcome in applied.outcomes):
            self.committed.extend(write.operations)
            self.transactions.append(write.operations)
            return WriteResult(StoreError.OK)
        return WriteResult(
            next(
                outcome.error
                for outcome in applied.outcomes
                if outcome.error not in (StoreError.OK, StoreError.RUNTIME_INCONSISTENCY)
            )
        )

    def take(self, outcome: Outcome) -> None:
        """Let the brokers have what was released, and answer."""
        self.stories.extend(outcome.stories)
        self.effects.extend(outcome.effects)
        for effect in outcome.effects:
            match effect:
                case OpenChannel() | CloseChannel():
                    pass
                case SendLeaderAndIsr() | SendUpdateMetadata() | SendStopReplica():
                    if effect.broker_id not in self._stuck:
                        self.requests.append(effect)
                        self._answer(effect)

    def _answer(self, request: ControlRequest) -> None:
        broker_id = request.broker_id
        if broker_id in self.silent and isinstance(request, SendStopReplica):
            self._stuck.add(broker_id)
        elif isinstance(request, SendLeaderAndIsr):
            failing = self.storage_errors.get(broker_id, set())
            errors = {
                entry.partition: ErrorCode.KAFKA_STORAGE_ERROR
                if entry.partition in failing
                else ErrorCode.NONE
                for entry in request.entries
            }
            self._events.append(LeaderAndIsrAnswered(broker_id, errors))
        elif isinstance(request, SendStopReplica):
            error = self.stop_errors.get(broker_id, ErrorCode.NONE)
            deleted = {one.partition: error for one in request.entries if one.delete_partition}
            if deleted:
                self._events.append(StopReplicaAnswered(broker_id, deleted))

    def clear(self) -> None:
        """Forget what was seen so far."""
        self.committed.clear()
        self.transactions.clear()
        self.requests.clear()
        self.effects.clear()
        self.stories.clear()

    # -- looking -----------------------------------------------------------------------------

    def data(self, path: str) -> bytes | None:
        node = self.machine.tree.node(path)
        return None if node is None else node.data

    def exists(self, path: str) -> bool:
        return self.machine.tree.node(path) is not None

    def requests_to(self, broker_id: int) -> list[ControlRequest]:
        return [request for request in self.requests if request.broker_id == broker_id]


def assignments(*replicas: Sequence[int]) -> dict[int, ReplicaAssignment]:
    """Partitions from 0 on with these replicas."""
    return {
        number: ReplicaAssignment(tuple(BrokerId(one) for one in of_one))
        for number, of_one in enumerate(replicas)
    }


def topic_id_of(topic: str) -> bytes:
    """An id that a test can tell from its topic."""
    return topic.encode().ljust(16, b".")[:16]


def delete_topic(world: ControllerWorld, topic: str) -> None:
    world.do(Create(f"/admin/delete_topics/{topic}"))


__all__ = ["ControllerWorld", "Delete", "assignments", "delete_topic", "topic_id_of"]
