"""Brokers that come, go, bounce, move and lose directories."""

from barnabas.core.controller.effects import CloseChannel, OpenChannel, ZnodeIgnored
from barnabas.core.controller.events import LeaderAndIsrAnswered
from barnabas.core.controller.partition_states import PartitionState
from barnabas.core.controller.replica_states import ReplicaState
from barnabas.core.controller.request_batch import SendUpdateMetadata
from barnabas.formats.znodes.brokers import (
    BrokerRegistration,
    SupportedVersions,
    broker_path,
)
from barnabas.model.error_codes import ErrorCode
from barnabas.model.ids import BrokerId
from barnabas.model.listeners import Listener
from barnabas.model.znode import Create, SetData, StoreError
from tests.behaviours import behaviour
from tests.unit.core.controller.cluster import Cluster, shown, tp

S = ReplicaState
STALE = ErrorCode.STALE_CONTROLLER_EPOCH


def channels(cluster: Cluster) -> list[tuple[str, int]]:
    found: list[tuple[str, int]] = []
    for effect in cluster.effects:
        match effect:
            case OpenChannel(broker):
                found.append(("open", broker.broker_id))
            case CloseChannel(broker_id):
                found.append(("close", broker_id))
            case _:
                pass
    return found


@behaviour("N11")
def test_a_new_broker_learns_all_and_the_others_learn_of_it():
    cluster = Cluster()
    cluster.add("t", [1, 2])
    cluster.register(9)
    cluster.run()
    assert channels(cluster) == [("open", 9)]
    told = [one for one in cluster.requests if isinstance(one, SendUpdateMetadata)]
    assert [(one.broker_id, [str(e.partition) for e in one.entries]) for one in told] == [
        (1, []), (2, []), (3, []), (4, []), (9, ["t-0"]),
    ]  # fmt: skip
    assert all([b.broker_id for b in one.live_brokers] == [1, 2, 3, 4, 9] for one in told)


@behaviour("N11")
def test_a_broker_that_goes_without_replicas_is_only_taken_off_the_list():
    cluster = Cluster()
    cluster.add("t", [1, 2])
    cluster.kill(4)
    cluster.run()
    assert channels(cluster) == [("close", 4)]
    assert [shown(one) for one in cluster.requests] == [
        ("UpdateMetadata", broker_id, []) for broker_id in (1, 2, 3)
    ]


@behaviour("N12")
def test_a_bounced_broker_gets_a_new_channel_before_anything_else():
    cluster = Cluster()
    cluster.add("t", [4, 1])
    before = cluster.context.image.brokers[4].epoch
    cluster.bounce(4)
    cluster.run()
    assert channels(cluster) == [("close", 4), ("open", 4)]
    after = cluster.context.image.brokers[4].epoch
    assert after > before
    assert {one.broker_epoch for one in cluster.requests_to(4)} == {after}
    assert cluster.state("t").leader == 1
    assert cluster.replica_state("t", 0, 4) is S.ONLINE


def test_a_broker_that_listens_elsewhere_is_told_of_to_all():
    cluster = Cluster()
    epoch = cluster.context.image.brokers[2].epoch
    data = BrokerRegistration((Listener("PLAINTEXT", "elsewhere", 1),), 0).to_bytes()
    cluster.do(SetData(broker_path(BrokerId(2)), data))
    cluster.run()
    assert channels(cluster) == [("open", 2)]
    broker = cluster.context.image.brokers[2]
    assert (broker.epoch, broker.registration.listeners[0].host) == (epoch, "elsewhere")
    assert [shown(one)[:2] for one in cluster.requests] == [
        ("UpdateMetadata", one) for one in (1, 2, 3, 4)
    ]
    cluster.clear()
    cluster.do(SetData(broker_path(BrokerId(2)), data))
    cluster.run()
    assert cluster.effects == []
    # It is watched from then on, as is a broker that came later.
    cluster.register(9)
    cluster.run()
    for broker_id, host in ((2, "a"), (9, "b"), (9, "c")):
        moved = BrokerRegistration((Listener("PLAINTEXT", host, 1),), 0).to_bytes()
        cluster.do(SetData(broker_path(BrokerId(broker_id)), moved))
        cluster.run()
        known = cluster.context.image.brokers[BrokerId(broker_id)].registration
        assert known.listeners[0].host == host


def test_features_of_a_broker_are_told_as_its_listeners_are():
    cluster = Cluster()
    listeners = cluster.context.image.brokers[BrokerId(2)].registration.listeners
    data = BrokerRegistration(listeners, 0, features={"f": SupportedVersions(1, 2)}).to_bytes()
    cluster.do(SetData(broker_path(BrokerId(2)), data))
    cluster.run()
    assert len(cluster.requests) == 4


def test_a_store_that_does_not_tell_of_a_broker_is_told_of():
    cluster = Cluster()
    cluster.refuse_reads["/brokers/ids/9"] = StoreError.NO_AUTH
    cluster.register(9)
    cluster.run()
    assert 9 not in cluster.context.image.brokers
    assert ZnodeIgnored("/brokers/ids/9", "NO_AUTH") in cluster.stories


def test_a_registration_that_makes_no_sense_is_no_broker():
    cluster = Cluster()
    cluster.do(Create("/brokers/ids/7", b"{}"), Create("/brokers/ids/seven", b"{}"))
    cluster.run()
    assert 7 not in cluster.context.image.brokers
    assert any(
        isinstance(story, ZnodeIgnored) and story.path == "/brokers/ids/7"
        for story in cluster.stories
    )


@behaviour("Q7")
def test_a_failed_directory_takes_its_replica_offline():
    cluster = Cluster()
    cluster.add("t", [1, 2], [2, 1])
    errors = {tp("t"): ErrorCode.KAFKA_STORAGE_ERROR, tp("t", 1): STALE}
    cluster.handle_event(LeaderAndIsrAnswered(BrokerId(1), errors))
    assert (cluster.state("t").leader, cluster.state("t").isr) == (2, (2,))
    assert cluster.replica_state("t", 0, 1) is S.OFFLINE
    assert cluster.state("t", 1).isr == (2, 1)
    assert cluster.replica_state("t", 1, 1) is S.ONLINE
    # Told again, it is no news; told to be well again, it may lead again.
    cluster.clear()
    cluster.handle_event(LeaderAndIsrAnswered(BrokerId(1), errors))
    assert (cluster.committed, cluster.effects, cluster.stories) == ([], [], [])
    cluster.handle_event(LeaderAndIsrAnswered(BrokerId(1), {tp("t"): ErrorCode.NONE}))
    assert cluster.context.is_online(BrokerId(1), tp("t"))


@behaviour("Q7")
def test_other_errors_of_a_partition_are_of_no_consequence():
    cluster = Cluster()
    cluster.add("t", [1, 2])
    for error in (STALE, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.INCONSISTENT_TOPIC_ID):
        cluster.handle_event(LeaderAndIsrAnswered(BrokerId(1), {tp("t"): error}))
    cluster.handle_event(LeaderAndIsrAnswered(BrokerId(77), {tp("t"): ErrorCode.NONE}))
    assert (cluster.committed, cluster.effects, cluster.stories) == ([], [], [])
    assert cluster.partition_state("t") is PartitionState.ONLINE


def test_a_broker_that_returns_may_lead_on_what_was_a_failed_directory():
    cluster = Cluster()
    cluster.add("t", [1])
    cluster.handle_event(LeaderAndIsrAnswered(1, {tp("t"): ErrorCode.KAFKA_STORAGE_ERROR}))
    assert cluster.state("t").leader == -1
    cluster.bounce(1)
    cluster.run()
    assert cluster.state("t").leader == 1


@behaviour("D13")
def test_a_broker_that_dies_during_a_deletion_makes_its_topic_wait():
    cluster = Cluster()
    cluster.add("t", [1, 2])
    cluster.silent.add(2)
    cluster.delete("t")
    assert cluster.replica_state("t", 0, 2) is S.DELETION_STARTED
    cluster.kill(2)
    cluster.run()
    assert cluster.replica_state("t", 0, 2) is S.OFFLINE
    assert "t" in cluster.context.topics_ineligible_for_deletion
