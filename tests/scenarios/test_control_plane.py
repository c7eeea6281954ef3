"""The control plane of whole brokers in virtual time: take-over, loss, crash points, its trace."""

from typing import Any

import pytest

from barnabas.broker.controller import BecameController, ControllerResigned
from barnabas.broker.controller_channels import ControlRequestAnswered, ControlRequestSent
from barnabas.broker.event_stream import ControlRequestBegan, ControlRequestEnded
from barnabas.core.controller.effects import PartitionMoved, ReplicaMoved
from barnabas.formats.wire.api_keys import ApiKey
from barnabas.formats.wire.generated.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreateTopicsRequest,
)
from barnabas.formats.wire.generated.delete_topics import DeleteTopicsRequest, DeleteTopicState
from barnabas.formats.wire.generated.init_producer_id import InitProducerIdRequest
from barnabas.model.error_codes import ErrorCode
from barnabas.model.ids import ProducerId
from tests.behaviours import behaviour
from tests.worlds.cluster_world import ClusterWorld
from tests.worlds.virtual_world import LOG_DIR

SESSION_MS = 18_000


def state(world: ClusterWorld, topic: str, partition: int = 0) -> Any:
    return world.data(f"/brokers/topics/{topic}/partitions/{partition}/state")


def leads(world: ClusterWorld, broker_id: int, topic: str, partition: int = 0) -> bool:
    """Whether the broker itself believes that it leads."""
    found = world.hosts[broker_id].broker.replicas.find(topic, partition)
    return found is not None and found.leader is not None


# -- one broker ----------------------------------------------------------------------------------


@behaviour("Q6", "R23")
def test_the_controller_tells_its_own_broker_over_the_wire_and_both_ends_tell_of_it():
    world = ClusterWorld()
    world.add_brokers(1)
    world.create("t", 1, 1)
    told = world.hosts[1].told
    assert [event.api for event in told.of(ControlRequestSent)] == [
        "UpdateMetadata", "LeaderAndIsr", "UpdateMetadata",
    ]  # fmt: skip
    began = told.of(ControlRequestBegan)
    ended = told.of(ControlRequestEnded)
    assert [event.api for event in began] == ["UpdateMetadata", "LeaderAndIsr", "UpdateMetadata"]
    assert began[1].partitions == ("t-0",)
    assert (began[1].controller_id, began[1].controller_epoch) == (1, 1)
    assert ended[1].partition_errors == (("t-0", "NONE"),)
    assert [event.correlation_id for event in began] == [e.correlation_id for e in ended]
    assert len(told.of(ControlRequestAnswered)) == 3
    crossed = told.of(PartitionMoved) + told.of(ReplicaMoved)
    assert [event.target.name for event in crossed] == ["NEW", "ONLINE", "NEW", "ONLINE"]


@behaviour("N1", "N2")
def test_a_restarted_broker_is_the_next_controller_and_tells_itself_what_it_leads():
    world = ClusterWorld()
    world.add_brokers(1)
    world.create("t", 3, 1)
    world.crash(1)
    world.restart(1)
    world.run(100)
    assert world.data("/controller_epoch") == 2
    assert all(leads(world, 1, "t", number) for number in range(3))
    # The broker was away and nobody could lead: the leader is elected anew.
    assert [state(world, "t", n)["leader"] for n in range(3)] == [1, 1, 1]
    assert world.metadata("t", at=1) == {"t": ErrorCode.NONE}


@behaviour("N1")
def test_a_clean_stop_leaves_the_office():
    world = ClusterWorld()
    world.add_brokers(1, 2)
    world.run(10)
    first = world.controller
    first.broker.stop(world.now_ms)
    assert not first.broker.controller.is_active
    assert len(first.told.of(ControllerResigned)) == 1


# -- several brokers -----------------------------------------------------------------------------


@behaviour("N3", "N1")
def test_a_controller_whose_session_ends_is_followed_by_another_and_comes_back_as_a_broker():
    world = ClusterWorld()
    world.add_brokers(1, 2, 3)
    world.create("t", assignments=[[1, 2, 3], [2, 3, 1]])
    epoch = world.hosts[1].broker.broker_epoch
    sent = len(world.hosts[1].told.of(ControlRequestSent))
    link = world.hosts[1]._store
    link.is_paused = True
    world.ensemble.expire(link)
    world.run(200)
    assert world.hosts[1].broker.controller.is_active, "it has not heard of it yet"
    link.is_paused = False
    world.run(200)
    assert world.controller.broker_id != 1
    assert world.hosts[1].told.of(ControllerResigned)[0].reason == "its session expired"
    assert len(world.hosts[1].told.of(ControlRequestSent)) == sent
    assert world.hosts[1].broker.broker_epoch > epoch
    assert world.children("/brokers/ids") == ["1", "2", "3"]
    assert world.data("/controller_epoch") == 2
    # Its partition went to the next in line; it follows now.
    assert state(world, "t")["leader"] == 2
    assert leads(world, 2, "t")
    assert not leads(world, 1, "t")


@behaviour("P8", "Q7")
def test_a_dead_brokers_partitions_are_led_by_others():
    world = ClusterWorld()
    world.add_brokers(1, 2, 3)
    world.create("t", assignments=[[3, 2], [3, 1], [1, 3]])
    world.hosts[3].kill()
    world.run_until(lambda: "3" not in world.children("/brokers/ids"))
    world.run(200)
    assert [state(world, "t", n)["leader"] for n in range(3)] == [2, 1, 1]
    assert [state(world, "t", n)["isr"] for n in range(3)] == [[2], [1], [1]]
    assert leads(world, 2, "t", 0)
    assert leads(world, 1, "t", 1)
    world.restart(3)
    world.run(200)
    replica = world.hosts[3].broker.replicas.find("t", 0)
    assert replica is not None, "a returning broker is told its replicas"
    assert not leads(world, 3, "t", 0)


@behaviour("N11")
def test_every_broker_learns_of_every_broker():
    world = ClusterWorld()
    world.add_brokers(1, 2)
    world.add_brokers(3)
    for host in world.hosts.values():
        live = host.broker.metadata_cache.live_brokers()
        assert [one.broker_id for one in live] == [1, 2, 3]
        assert host.broker.metadata_cache.controller_id == 1


@behaviour("Q9")
def test_a_broker_that_cannot_be_reached_is_told_when_it_can():
    world = ClusterWorld()
    world.add_brokers(1, 2)
    world.network.stop_listening(world.hosts[2].address)
    world.hosts[2].transport.drop_all()
    answer = world.create("t", assignments=[[2, 1]], timeout_ms=1_000)
    assert answer.error_code == ErrorCode.NONE, "the controller's own metadata shows the leader"
    world.run(3_000)
    assert not leads(world, 2, "t")
    world.network.listen(world.hosts[2], world.hosts[2].address)
    world.run(500)
    assert leads(world, 2, "t")


# -- crash points --------------------------------------------------------------------------------


def create_request() -> CreateTopicsRequest:
    return CreateTopicsRequest(
        topics=[
            CreatableTopic(
                name="t",
                num_partitions=-1,
                replication_factor=-1,
                assignments=[
                    CreatableReplicaAssignment(partition_index=n, broker_ids=[1]) for n in range(3)
                ],
            )
        ],
        timeout_ms=5_000,
    )


def delete_request() -> DeleteTopicsRequest:
    return DeleteTopicsRequest(topics=[DeleteTopicState(name="t")], timeout_ms=5_000)


class CrashWorld(ClusterWorld):
    """One broker that can be stopped after its n-th committed transaction."""

    def __init__(self) -> None:
        super().__init__()
        self.add_brokers(1)
        self.run(100)

    def crash_after(self, transactions: int, api_key: ApiKey, version: int, body: Any) -> bool:
        """Ask, kill after so many transactions, start anew; False when there were not so many."""
        self.freeze_after(1, transactions)
        self.client(1).send(api_key, version, body)
        self.run(2_000)
        was_reached = self.is_frozen(1)
        self.crash(1)
        self.restart(1)
        self.run(500)
        return was_reached

    def check_topic(self, partitions: int) -> None:
        """The topic is there whole, led, and taken note of by its broker."""
        for number in range(partitions):
            assert state(self, "t", number)["leader"] == 1
            assert leads(self, 1, "t", number)
        assert len(self.data("/brokers/topics/t")["partitions"]) == partitions
        assert self.metadata("t", at=1) == {"t": ErrorCode.NONE}

    def check_no_topic(self) -> None:
        """Nothing of the topic is left, neither in the store nor in the metadata."""
        for path in ("/brokers/topics", "/config/topics", "/admin/delete_topics"):
            assert self.children(path) == []
        assert self.metadata("t", at=1, allow=False) == {"t": ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}
        assert self.hosts[1].broker.replicas.find("t", 0) is None


@behaviour("N2", "C13")
def test_a_broker_killed_after_any_transaction_of_a_creation():
    reached = 0
    for transactions in range(1, 20):
        world = CrashWorld()
        if not world.crash_after(transactions, ApiKey.CREATE_TOPICS, 7, create_request()):
            break
        reached += 1
        if world.data("/brokers/topics/t") is None:
            # Only the settings were written: as if nobody had asked, and asking again works.
            assert world.create("t", assignments=[[1]] * 3).error_code == ErrorCode.NONE
        world.check_topic(3)
    assert reached == 3, "settings, topic, states"


@behaviour("N2", "M7")
def test_a_broker_killed_after_any_transaction_of_a_growth():
    reached = 0
    for transactions in range(1, 20):
        world = CrashWorld()
        world.create("t", assignments=[[1]])
        body = world.growth("t", 4)
        if not world.crash_after(transactions, ApiKey.CREATE_PARTITIONS, 3, body):
            break
        reached += 1
        world.check_topic(4)
    assert reached == 2, "topic, states"


@behaviour("N2", "D14")
def test_a_broker_killed_after_any_transaction_of_a_deletion():
    reached = 0
    for transactions in range(1, 20):
        world = CrashWorld()
        world.create("t", assignments=[[1]] * 3)
        if not world.crash_after(transactions, ApiKey.DELETE_TOPICS, 6, delete_request()):
            break
        reached += 1
        world.check_no_topic()
        left = world.hosts[1].disk.list_directory(LOG_DIR)
        assert not [name for name in left if name.startswith("t-") and "-delete" not in name]
        assert world.create("t", 1, 1).error_code == ErrorCode.NONE
    assert reached == 3, "marker, states, removal"


@pytest.mark.parametrize("kills", range(3))
def test_no_producer_id_is_given_twice(kills: int):
    world = CrashWorld()
    given: list[int] = []
    for _ in range(kills + 1):
        for _ in range(3):
            body = InitProducerIdRequest(
                transactional_id=None, producer_id=ProducerId(-1), producer_epoch=-1
            )
            answer = world.ask(ApiKey.INIT_PRODUCER_ID, 5, body, 1)
            assert answer.error_code == ErrorCode.NONE
            given.append(answer.producer_id)
        world.crash(1)
        world.restart(1)
    assert given == [block * 1000 + at for block in range(kills + 1) for at in range(3)]


def test_the_same_trace_twice():
    def trace() -> list[str]:
        world = ClusterWorld()
        world.add_brokers(1, 2, 3)
        world.create("t", 6, 3)
        world.hosts[1].kill()
        world.run(SESSION_MS + 5_000)
        world.restart(1)
        world.delete("t")
        world.run(1_000)
        return world.trace

    assert trace() == trace()


def test_elections_are_told():
    world = ClusterWorld()
    world.add_brokers(1)
    assert [event.epoch for event in world.hosts[1].told.of(BecameController)] == [1]
