"""A controller that ends after any of its transactions: the next one finishes the work.

The store is all that the next controller has. Creation, growth and deletion are cut off after the
first, second, third ... committed transaction, and must end as if nothing had happened.
"""

from collections.abc import Callable

import pytest

from barnabas.core.controller.effects import ConditionalWrite, WriteResult
from barnabas.core.controller.replica_states import ReplicaState
from barnabas.model.znode import Create, StoreError
from tests.behaviours import behaviour
from tests.unit.core.controller.cluster import Cluster

Act = Callable[[Cluster], None]


class Crashed(Exception):
    """The controller's process is gone."""


class MortalCluster(Cluster):
    """Its controller dies before it commits one transaction too many."""

    transactions_left: int | None = None

    def commit(self, write: ConditionalWrite) -> WriteResult:
        if self.transactions_left == 0:
            raise Crashed
        if self.transactions_left is not None:
            self.transactions_left -= 1
        return super().commit(write)


def create(cluster: Cluster) -> None:
    cluster.create_topic("t", [1, 2], [2, 3], [3, 1])


def grow(cluster: Cluster) -> None:
    cluster.set_topic("t", [1, 2], [2, 3], [3, 1], [4, 1], [2, 4])


def delete(cluster: Cluster) -> None:
    cluster.do(Create("/admin/delete_topics/t"))


def lose_a_broker(cluster: Cluster) -> None:
    cluster.kill(2)


def transactions_of(before: list[Act], act: Act) -> int:
    """How many transactions the work takes when nothing comes between."""
    cluster = MortalCluster()
    for earlier in before:
        earlier(cluster)
        cluster.run()
    cluster.clear()
    act(cluster)
    cluster.run()
    return len(cluster.transactions)


def crash_in(before: list[Act], act: Act, after: int) -> MortalCluster:
    """The cluster after the controller died in the middle and another took over."""
    cluster = MortalCluster()
    for earlier in before:
        earlier(cluster)
        cluster.run()
    cluster.transactions_left = after
    act(cluster)
    with pytest.raises(Crashed):
        cluster.run()
    cluster.transactions_left = None
    cluster.elect()
    cluster.run()
    return cluster


def check_online(cluster: Cluster, partitions: int) -> None:
    for number in range(partitions):
        state = cluster.state("t", number)
        replicas = cluster.context.image.topics["t"].assignments[number].replicas
        assert state.leader == replicas[0]
        assert state.isr == replicas
        for broker_id in replicas:
            assert cluster.replica_state("t", number, broker_id) is ReplicaState.ONLINE
            told = [one for request in cluster.requests_to(broker_id) for one in request.entries]
            assert any(one.partition.partition == number for one in told)


@behaviour("N2", "P4")
@pytest.mark.parametrize("after", range(7))
def test_creation_cut_off(after: int):
    assert transactions_of([], create) == 7
    check_online(crash_in([], create, after), 3)


@behaviour("N2", "M8")
@pytest.mark.parametrize("after", range(4))
def test_growth_cut_off(after: int):
    assert transactions_of([create], grow) == 4
    check_online(crash_in([create], grow, after), 5)


@behaviour("N2", "D14")
@pytest.mark.parametrize("after", range(7))
def test_deletion_cut_off(after: int):
    assert transactions_of([create], delete) == 7
    cluster = crash_in([create], delete, after)
    for path in ("/brokers/topics/t", "/config/topics/t", "/admin/delete_topics/t"):
        assert not cluster.exists(path)
    assert not cluster.context.replica_states


@behaviour("R22", "N2")
@pytest.mark.parametrize("after", range(2))
def test_loss_of_a_broker_cut_off(after: int):
    assert transactions_of([create], lose_a_broker) == 2
    cluster = crash_in([create], lose_a_broker, after)
    assert [cluster.state("t", number).leader for number in range(3)] == [1, 3, 3]
    assert [cluster.state("t", number).isr for number in range(3)] == [(1,), (3,), (3, 1)]


@pytest.mark.parametrize("lost", range(7))
def test_an_answer_that_was_lost_is_looked_up(lost: int):
    """The write was done and its answer lost: it is neither done twice nor forgotten."""

    class LossyCluster(Cluster):
        commits = 0

        def commit(self, write: ConditionalWrite) -> WriteResult:
            result = super().commit(write)
            self.commits += 1
            return WriteResult(StoreError.CONNECTION_LOSS) if self.commits == lost else result

    cluster = LossyCluster()
    cluster.commits = -1
    create(cluster)
    cluster.run()
    check_online(cluster, 3)
    cluster.commits = -1
    cluster.clear()
    cluster.kill(2)
    cluster.run()
    assert [cluster.state("t", number).leader for number in range(3)] == [1, 3, 3]
    assert [cluster.state("t", number).leader_epoch for number in range(3)] == [1, 1, 0]
    cluster.register(2)
    cluster.run()
    cluster.commits = -1
    cluster.delete("t")
    assert not cluster.exists("/brokers/topics/t")
    assert not cluster.exists("/admin/delete_topics/t")


@pytest.mark.parametrize("lost", range(7))
def test_a_write_that_was_lost_is_made_again(lost: int):
    """The link is cut before one write of a creation arrives: it is made whole all the same."""

    class CutCluster(Cluster):
        commits = -100

        def commit(self, write: ConditionalWrite) -> WriteResult:
            self.commits += 1
            if self.commits == lost:
                return WriteResult(StoreError.CONNECTION_LOSS)
            return super().commit(write)

    cluster = CutCluster()
    cluster.commits = -1
    create(cluster)
    cluster.run()
    assert cluster.commits >= 7
    check_online(cluster, 3)
    assert cluster.failures() == []
