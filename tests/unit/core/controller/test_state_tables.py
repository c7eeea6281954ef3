"""The two tables are Kafka's: states, numbers and every pair that is allowed or not."""

from itertools import product

import pytest

from barnabas.core.controller.context import ControllerContext, ControllerSettings
from barnabas.core.controller.effects import PartitionMoveRefused, ReplicaMoveRefused
from barnabas.core.controller.partition_states import PARTITION, PartitionState
from barnabas.core.controller.replica_states import REPLICA, ReplicaState
from barnabas.core.image.cluster_image import ClusterImage, Replica
from barnabas.core.machines import MACHINES
from barnabas.model.epochs import (
    EPOCH_DURING_DELETE,
    INITIAL_LEADER_EPOCH,
    INITIAL_PARTITION_EPOCH,
    NO_EPOCH,
    ControllerEpoch,
)
from barnabas.model.ids import NO_TOPIC_ID, BrokerId, TopicPartition
from barnabas.model.invariant import InvariantViolated
from barnabas.model.partition import LEADER_DURING_DELETE, NO_LEADER
from tests.behaviours import behaviour

R, P = ReplicaState, PartitionState

REPLICA_SOURCES = {
    R.NEW: {R.NON_EXISTENT},
    R.ONLINE: {R.NEW, R.ONLINE, R.OFFLINE, R.DELETION_INELIGIBLE},
    R.OFFLINE: {R.NEW, R.ONLINE, R.OFFLINE, R.DELETION_INELIGIBLE},
    R.DELETION_STARTED: {R.OFFLINE},
    R.DELETION_SUCCESSFUL: {R.DELETION_STARTED},
    R.DELETION_INELIGIBLE: {R.OFFLINE, R.DELETION_STARTED},
    R.NON_EXISTENT: {R.DELETION_SUCCESSFUL},
}
PARTITION_SOURCES = {
    P.NEW: {P.NON_EXISTENT},
    P.ONLINE: {P.NEW, P.ONLINE, P.OFFLINE},
    P.OFFLINE: {P.NEW, P.ONLINE, P.OFFLINE},
    P.NON_EXISTENT: {P.OFFLINE},
}

T0 = TopicPartition("t", 0)
REPLICA_OF_1 = Replica("t", 0, BrokerId(1))


def context() -> ControllerContext:
    image = ClusterImage(ControllerEpoch(1), 1)
    return ControllerContext(ControllerSettings(), image, lambda: NO_TOPIC_ID)


@behaviour("K1")
def test_reserved_numbers():
    assert (NO_LEADER, LEADER_DURING_DELETE) == (-1, -2)
    assert (NO_EPOCH, EPOCH_DURING_DELETE) == (-1, -2)
    assert (INITIAL_LEADER_EPOCH, INITIAL_PARTITION_EPOCH) == (0, 0)


@behaviour("K2", "K3")
def test_states_have_kafkas_numbers():
    assert [(state.name, state.value) for state in R] == [
        ("NEW", 1),
        ("ONLINE", 2),
        ("OFFLINE", 3),
        ("DELETION_STARTED", 4),
        ("DELETION_SUCCESSFUL", 5),
        ("DELETION_INELIGIBLE", 6),
        ("NON_EXISTENT", 7),
    ]
    assert [(state.name, state.value) for state in P] == [
        ("NEW", 0),
        ("ONLINE", 1),
        ("OFFLINE", 2),
        ("NON_EXISTENT", 3),
    ]


@behaviour("K4")
@pytest.mark.parametrize(("source", "target"), list(product(R, R)))
def test_every_pair_of_replica_states(source: ReplicaState, target: ReplicaState):
    known = context()
    known.replica_states[REPLICA_OF_1] = source
    is_allowed = source in REPLICA_SOURCES[target]
    assert REPLICA.allows(source, target) == is_allowed
    assert known.valid_replicas([REPLICA_OF_1], target) == ([REPLICA_OF_1] if is_allowed else [])
    if is_allowed:
        known.cross_replica(REPLICA_OF_1, target)
        assert known.replica_state(REPLICA_OF_1) is target
    else:
        (refused,) = known.stories
        assert isinstance(refused, ReplicaMoveRefused)
        assert (refused.source, refused.target) == (source, target)
        assert set(refused.expected) == REPLICA_SOURCES[target]
        assert known.replica_state(REPLICA_OF_1) is source


@behaviour("K5")
@pytest.mark.parametrize(("source", "target"), list(product(P, P)))
def test_every_pair_of_partition_states(source: PartitionState, target: PartitionState):
    known = context()
    known.partition_states[T0] = source
    is_allowed = source in PARTITION_SOURCES[target]
    assert PARTITION.allows(source, target) == is_allowed
    assert known.valid_partitions([T0], target) == ([T0] if is_allowed else [])
    if is_allowed:
        known.cross_partition(T0, target)
        assert known.partition_state(T0) is target
    else:
        (refused,) = known.stories
        assert isinstance(refused, PartitionMoveRefused)
        assert set(refused.expected) == PARTITION_SOURCES[target]
        assert known.partition_state(T0) is source


def test_a_request_that_the_arrow_does_not_name_is_a_bug():
    known = context()
    known.replica_states[REPLICA_OF_1] = R.OFFLINE
    with pytest.raises(InvariantViolated, match="LeaderAndIsr may not leave"):
        known.cross_replica(REPLICA_OF_1, R.DELETION_STARTED, "LeaderAndIsr")
    known.partition_states[T0] = P.ONLINE
    with pytest.raises(InvariantViolated, match="LeaderAndIsr may not leave"):
        known.cross_partition(T0, P.OFFLINE, "LeaderAndIsr")


def test_all_machines_are_listed_once():
    names = [table.name for table in MACHINES]
    assert names == ["REPLICA", "PARTITION", "FOLLOWER", "GROUP"]
