"""A cluster of four brokers around the pure controller, and short ways to look at what it did."""

from collections.abc import Iterable

from barnabas.core.controller.effects import (
    PartitionMoved,
    PartitionMoveFailed,
    PartitionMoveRefused,
    Procedure,
    ReplicaMoved,
    ReplicaMoveFailed,
    ReplicaMoveRefused,
    StoreAnswered,
)
from barnabas.core.controller.events import ControllerEvent
from barnabas.core.controller.partition_machine import move_partitions
from barnabas.core.controller.partition_states import PartitionState
from barnabas.core.controller.replica_machine import move_replicas
from barnabas.core.controller.replica_states import ReplicaState
from barnabas.core.controller.request_batch import (
    ControlRequest,
    SendLeaderAndIsr,
    SendStopReplica,
    SendUpdateMetadata,
)
from barnabas.core.image.cluster_image import Replica
from barnabas.formats.znodes.partition_states import from_bytes, state_path, to_bytes
from barnabas.model.epochs import ControllerEpoch, LeaderEpoch
from barnabas.model.ids import BrokerId, TopicPartition
from barnabas.model.partition import LeaderAndIsr, LeaderRecoveryState
from barnabas.model.znode import SetData
from tests.worlds.controller_world import ControllerWorld, delete_topic


class Cluster(ControllerWorld):
    """Brokers 1 to 4 and a controller that has taken over."""

    def __post_init__(self) -> None:
        super().__post_init__()
        for broker_id in (1, 2, 3, 4):
            self.register(broker_id)
        self.elect()
        self.run()
        self.clear()

    @property
    def context(self):
        assert self.controller is not None
        return self.controller.context

    def add(self, topic: str, *replicas: list[int]) -> None:
        """A topic that is created and online."""
        self.create_topic(topic, *replicas)
        self.run()
        self.clear()

    def delete(self, topic: str) -> None:
        """Ask for a topic's deletion and let the controller work."""
        delete_topic(self, topic)
        self.run()

    def do_step(self, procedure: Procedure[object]) -> object:
        """Run one procedure of the controller to its end, as its engine would."""
        answer: StoreAnswered | None = None
        while True:
            try:
                wanted = next(procedure) if answer is None else procedure.send(answer)
            except StopIteration as done:
                self._collect()
                return done.value
            assert bool(wanted.writes) != bool(wanted.reads)
            answer = self.ask(wanted)

    def _collect(self) -> None:
        context = self.context
        self.stories.extend(context.stories)
        self.effects.extend(context.effects)
        self.requests.extend(
            effect
            for effect in context.effects
            if isinstance(effect, SendLeaderAndIsr | SendUpdateMetadata | SendStopReplica)
        )
        context.stories, context.effects = [], []

    def move_replicas(self, replicas: Iterable[Replica], target: ReplicaState) -> None:
        self.do_step(move_replicas(self.context, replicas, target))

    def move_partitions(self, partitions: Iterable[TopicPartition], target: PartitionState):
        return self.do_step(move_partitions(self.context, partitions, target))

    def set_state(self, topic: str, partition: int, state: LeaderAndIsr) -> None:
        """Somebody else writes a state."""
        (outcome,) = self.do(SetData(state_path(topic, partition), to_bytes(state)))
        assert outcome.is_ok

    def state(self, topic: str, partition: int = 0) -> LeaderAndIsr:
        """The state as it is in the store."""
        path = state_path(topic, partition)
        node = self.machine.tree.node(path)
        assert node is not None
        return from_bytes(path, node.data, node.version)

    def replica_state(self, topic: str, partition: int, broker_id: int) -> ReplicaState:
        return self.context.replica_state(Replica(topic, partition, BrokerId(broker_id)))

    def partition_state(self, topic: str, partition: int = 0) -> PartitionState:
        return self.context.partition_state(TopicPartition(topic, partition))

    def moves(self) -> list[tuple[str, str, str]]:
        """The crossings of replicas and partitions in their order."""
        return [
            (str(story.replica), story.source.name, story.target.name)
            if isinstance(story, ReplicaMoved)
            else (str(story.partition), story.source.name, story.target.name)
            for story in self.stories
            if isinstance(story, ReplicaMoved | PartitionMoved)
        ]

    def failures(self) -> list[ReplicaMoveFailed | PartitionMoveFailed]:
        return [
            story
            for story in self.stories
            if isinstance(story, ReplicaMoveFailed | PartitionMoveFailed)
        ]

    def refusals(self) -> list[ReplicaMoveRefused | PartitionMoveRefused]:
        return [
            story
            for story in self.stories
            if isinstance(story, ReplicaMoveRefused | PartitionMoveRefused)
        ]

    def handle_event(self, event: ControllerEvent) -> None:
        self.handle(event)
        self.run()


def replica(topic: str, partition: int, broker_id: int) -> Replica:
    return Replica(topic, partition, BrokerId(broker_id))


def tp(topic: str, partition: int = 0) -> TopicPartition:
    return TopicPartition(topic, partition)


def leader_and_isr(
    leader: int,
    isr: list[int],
    leader_epoch: int = 0,
    controller_epoch: int = 1,
    *,
    is_recovering: bool = False,
) -> LeaderAndIsr:
    return LeaderAndIsr(
        BrokerId(leader),
        tuple(BrokerId(one) for one in isr),
        ControllerEpoch(controller_epoch),
        LeaderEpoch(leader_epoch),
        LeaderRecoveryState.RECOVERING if is_recovering else LeaderRecoveryState.RECOVERED,
    )


def shown(request: ControlRequest) -> tuple[str, int, list[object]]:
    """A request in a few words: its kind, its receiver, what it says of each partition."""
    match request:
        case SendLeaderAndIsr():
            entries: list[object] = [
                (str(one.partition), one.state.leader, one.state.leader_epoch, one.is_new)
                for one in request.entries
            ]
            return "LeaderAndIsr", request.broker_id, entries
        case SendUpdateMetadata():
            entries = [(str(one.partition), one.state.leader) for one in request.entries]
            return "UpdateMetadata", request.broker_id, entries
        case SendStopReplica():
            entries = [
                (str(one.partition), one.leader_epoch, one.delete_partition)
                for one in request.entries
            ]
            return "StopReplica", request.broker_id, entries
