"""What a broker refused as a whole is told again, as the cluster is then (R4)."""

from barnabas.core.controller.acknowledgements import Acknowledgements
from barnabas.core.controller.replica_states import ReplicaState
from barnabas.core.controller.request_batch import (
    SendLeaderAndIsr,
    SendStopReplica,
    SendUpdateMetadata,
)
from barnabas.model.error_codes import ErrorCode
from barnabas.model.ids import BrokerId
from tests.behaviours import behaviour
from tests.unit.core.controller.cluster import Cluster, replica, shown, tp

OOPS = ErrorCode.UNKNOWN_SERVER_ERROR


def sent(cluster: Cluster, kind: type, to: int):
    return next(one for one in cluster.requests_to(to) if isinstance(one, kind))


@behaviour("R4")
def test_a_refused_request_is_owed_until_it_is_confirmed():
    cluster = Cluster()
    cluster.create_topic("t", [1, 2], [2, 1])
    cluster.run()
    request = sent(cluster, SendLeaderAndIsr, 2)
    acknowledgements = Acknowledgements(BrokerId(2))
    acknowledgements.note_answered(request, OOPS, {})
    assert acknowledgements.is_anything_owed
    (again,) = acknowledgements.requests_owed(cluster.context)
    assert shown(again) == ("LeaderAndIsr", 2, [("t-0", 1, 0, True), ("t-1", 2, 0, True)])
    # One partition confirmed, whatever its own error: the other is still owed.
    acknowledgements.note_answered(
        again, ErrorCode.NONE, {tp("t"): ErrorCode.STALE_CONTROLLER_EPOCH}
    )
    (rest,) = acknowledgements.requests_owed(cluster.context)
    assert [str(one.partition) for one in rest.entries] == ["t-1"]
    acknowledgements.note_answered(rest, ErrorCode.NONE, {tp("t", 1): ErrorCode.NONE})
    assert not acknowledgements.is_anything_owed


@behaviour("R4")
def test_what_is_owed_is_told_as_it_is_by_then():
    cluster = Cluster()
    cluster.create_topic("t", [1, 2, 3])
    cluster.run()
    acknowledgements = Acknowledgements(BrokerId(2))
    acknowledgements.note_answered(sent(cluster, SendLeaderAndIsr, 2), OOPS, {})
    cluster.kill(1)
    cluster.run()
    (again,) = acknowledgements.requests_owed(cluster.context)
    assert shown(again) == ("LeaderAndIsr", 2, [("t-0", 2, 1, True)])


def test_nothing_is_owed_for_a_replica_that_is_none_any_more():
    cluster = Cluster()
    cluster.create_topic("t", [1, 2])
    cluster.run()
    acknowledgements = Acknowledgements(BrokerId(2))
    acknowledgements.note_answered(sent(cluster, SendLeaderAndIsr, 2), OOPS, {})
    cluster.delete("t")
    assert acknowledgements.requests_owed(cluster.context) == ()
    assert not acknowledgements.is_anything_owed


@behaviour("R4")
def test_what_was_confirmed_before_and_is_still_so_is_not_owed():
    cluster = Cluster()
    cluster.create_topic("t", [1, 2], [2, 1])
    cluster.run()
    acknowledgements = Acknowledgements(BrokerId(2))
    request = sent(cluster, SendLeaderAndIsr, 2)
    both = {tp("t"): ErrorCode.NONE, tp("t", 1): ErrorCode.NONE}
    acknowledgements.note_answered(request, ErrorCode.NONE, both)
    acknowledgements.note_answered(request, OOPS, {})
    assert acknowledgements.requests_owed(cluster.context) == ()
    assert not acknowledgements.is_anything_owed
    # Not told as new before, it is not told as new again.
    cluster.kill(1)
    cluster.run()
    later = [one for one in cluster.requests_to(2) if isinstance(one, SendLeaderAndIsr)][-1]
    acknowledgements.note_answered(later, OOPS, {})
    (again,) = acknowledgements.requests_owed(cluster.context)
    assert [one.is_new for one in again.entries] == [False, False]


def test_what_was_stopped_is_neither_confirmed_nor_owed():
    cluster = Cluster()
    cluster.create_topic("t", [1, 2])
    cluster.run()
    acknowledgements = Acknowledgements(BrokerId(2))
    request = sent(cluster, SendLeaderAndIsr, 2)
    acknowledgements.note_answered(request, ErrorCode.NONE, {tp("t"): ErrorCode.NONE})
    cluster.silent.add(2)
    cluster.delete("t")
    stop = sent(cluster, SendStopReplica, 2)
    acknowledgements.note_answered(request, OOPS, {})
    acknowledgements.note_answered(stop, ErrorCode.NONE, {tp("t"): ErrorCode.NONE})
    assert not acknowledgements.is_anything_owed
    # Told the same state once more, it is owed although it was confirmed before the stop.
    cluster.context.replica_states[replica("t", 0, 2)] = ReplicaState.ONLINE
    state = request.entries[0].state
    cluster.context.image.partition_states[tp("t")] = state
    acknowledgements.note_answered(request, OOPS, {})
    assert len(acknowledgements.requests_owed(cluster.context)) == 1


def test_metadata_that_was_refused_is_owed_whole():
    cluster = Cluster()
    cluster.add("t", [1], [2])
    cluster.create_topic("u", [1])
    cluster.run()
    acknowledgements = Acknowledgements(BrokerId(4))
    request = sent(cluster, SendUpdateMetadata, 4)
    acknowledgements.note_answered(request, OOPS, {})
    (again,) = acknowledgements.requests_owed(cluster.context)
    assert shown(again) == ("UpdateMetadata", 4, [("t-0", 1), ("t-1", 2), ("u-0", 1)])
    acknowledgements.note_answered(again, ErrorCode.NONE, {})
    assert not acknowledgements.is_anything_owed


def test_a_broker_that_obeys_somebody_else_is_owed_nothing():
    cluster = Cluster()
    cluster.create_topic("t", [1, 2])
    cluster.run()
    for error in (ErrorCode.STALE_CONTROLLER_EPOCH, ErrorCode.STALE_BROKER_EPOCH):
        acknowledgements = Acknowledgements(BrokerId(2))
        acknowledgements.note_answered(sent(cluster, SendLeaderAndIsr, 2), error, {})
        acknowledgements.note_answered(sent(cluster, SendUpdateMetadata, 2), error, {})
        assert not acknowledgements.is_anything_owed
