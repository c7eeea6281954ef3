"""How a broker becomes a member, what refuses it, and what the end of its session means."""

from types import SimpleNamespace
from typing import Any

import pytest

from barnabas.broker.event_stream import BrokerFailed
from barnabas.broker.registration import RETRY_AFTER_MS, BrokerRegistered, Registration, SessionLost
from barnabas.formats.znodes.brokers import BrokerRegistration
from barnabas.formats.znodes.cluster import PERSISTENT_PATHS
from barnabas.model.ids import BrokerId
from barnabas.model.listeners import Listener
from barnabas.model.znode import Create, CreateMode, SessionChange, SessionState, SetData
from tests.behaviours import behaviour
from tests.worlds.store_world import EPOCH_MS, StoreWorld, events_of


class Recorded(list[Any]):
    """What the other rooms were told, in order."""


def make(world: StoreWorld, broker_id: int, **settings: str) -> tuple[Any, Registration, Recorded]:
    broker = world.add_broker(broker_id, **settings)
    told = Recorded()
    broker.controller = SimpleNamespace(
        note_session=lambda change, _: told.append(change.state.value),
        start=lambda _: told.append("elections"),
    )
    broker.dynamic_configs = SimpleNamespace(
        start=lambda _: told.append("configs"), stop=lambda: told.append("configs end")
    )
    return broker, Registration(broker), told


def join(world: StoreWorld, registration: Registration, broker: Any) -> list[int]:
    done: list[int] = []
    registration.prepare(lambda cluster_id, _: registration.register(done.append))
    world.run(0, broker)
    return done


def failure(broker: Any) -> str:
    (failed,) = events_of(broker, BrokerFailed)
    return str(failed.error)


def test_paths_in_the_recorded_order_and_only_the_missing_ones():
    world = StoreWorld()
    world.do(Create("/brokers"), Create("/brokers/ids", b"kept"))
    before = world.ensemble.machine.last_zxid
    _broker, registration, _ = make(world, 1)
    ids: list[str] = []
    registration.prepare(lambda cluster_id, _: ids.append(cluster_id))
    world.run()
    tree = world.ensemble.machine.tree
    made = {path: tree.node(path) for path in PERSISTENT_PATHS}
    assert all(node is not None for node in made.values())
    czxids = [node.czxid for path, node in made.items() if path != "/brokers/ids" and node]
    assert czxids == sorted(czxids)
    assert min(czxids) > before
    assert world.data("/brokers/ids") == b"kept"
    assert world.data("/consumers") is None


def test_the_first_broker_names_the_cluster_and_all_others_read_it():
    world = StoreWorld()
    names: list[str] = []
    for broker_id in (1, 2):
        _broker, registration, _ = make(world, broker_id)
        registration.prepare(lambda cluster_id, _: names.append(cluster_id))
        world.run()
    assert len(names[0]) == 22
    assert names[0] == names[1]
    assert world.data("/cluster/id") == f'{{"version":"1","id":"{names[0]}"}}'.encode()


def test_a_new_store_takes_no_logs_of_a_cluster_and_stays_without_an_id():
    world = StoreWorld()
    broker, registration, _ = make(world, 1)
    registration.prepare(lambda *_: pytest.fail("went on"), "former")
    world.run()
    assert "the metadata store is new" in failure(broker)
    assert "found cluster.id=former" in failure(broker)
    assert world.ensemble.machine.tree.node("/cluster/id") is None


def test_a_cluster_id_that_makes_no_sense_fails_the_broker():
    world = StoreWorld()
    world.do(Create("/cluster"), Create("/cluster/id", b"{}"))
    broker, registration, _ = make(world, 1)
    registration.prepare(lambda cluster_id, _: pytest.fail("went on"))
    world.run()
    assert "/cluster/id" in failure(broker)


def test_an_id_for_a_broker_that_has_none():
    world = StoreWorld()
    world.do(Create("/brokers"), Create("/brokers/seqid"))
    given: list[int] = []
    for _ in range(2):
        _, registration, _ = make(world, 5)
        registration.generate_broker_id(lambda broker_id, _: given.append(broker_id))
        world.run()
    _, registration, _ = make(world, 5, reserved_broker_max_id="7")
    registration.generate_broker_id(lambda broker_id, _: given.append(broker_id))
    world.run()
    assert given == [1001, 1002, 10]


def test_the_node_and_its_epoch():
    world = StoreWorld()
    broker, registration, _ = make(world, 3, broker_rack="r1")
    assert join(world, registration, broker) == [0]
    node = world.ensemble.machine.tree.node("/brokers/ids/3")
    assert node is not None
    assert broker.broker_epoch == node.czxid
    assert node.ephemeral_owner == broker.store.session_id
    assert node.version == 1
    found = BrokerRegistration.from_bytes("", node.data)
    assert found == BrokerRegistration((Listener("PLAINTEXT", "host3", 9092),), EPOCH_MS, "r1")
    assert events_of(broker, BrokerRegistered) == [BrokerRegistered(BrokerId(3), node.czxid)]


def test_an_address_of_another_broker_is_refused_and_its_node_untouched():
    world = StoreWorld()
    first, registration, _ = make(world, 1)
    join(world, registration, first)
    second, registration, _ = make(world, 2, listeners="PLAINTEXT://host1:9092")
    assert join(world, registration, second) == []
    assert "host1:9092" in failure(second)
    assert not world.exists("/brokers/ids/2")


def test_an_id_of_another_live_broker_is_refused():
    world = StoreWorld()
    first, registration, _ = make(world, 1)
    join(world, registration, first)
    twin, registration, _ = make(world, 1, listeners="PLAINTEXT://other:9092")
    assert join(world, registration, twin) == []
    assert "another live broker" in failure(twin)
    node = world.ensemble.machine.tree.node("/brokers/ids/1")
    assert node is not None
    assert node.czxid == first.broker_epoch


def test_a_registration_whose_answer_was_lost_is_recognised():
    world = StoreWorld()
    broker, registration, _ = make(world, 1)
    done: list[int] = []
    registration.prepare(lambda *_: None)
    world.run()
    registration.register(done.append)
    world.ensemble.pump_round(0)
    broker.store.disconnect(apply_requests=True)
    world.run()
    assert done == []
    assert world.exists("/brokers/ids/1")
    broker.store.restore()
    world.run(RETRY_AFTER_MS, broker)
    assert len(done) == 1
    node = world.ensemble.machine.tree.node("/brokers/ids/1")
    assert node is not None
    assert broker.broker_epoch == node.czxid


def test_the_node_of_an_earlier_session_of_this_process_is_replaced():
    world = StoreWorld()
    broker, registration, _ = make(world, 1)
    join(world, registration, broker)
    old = world.ensemble.machine.tree.node("/brokers/ids/1")
    # The session moves on while the store has not buried the old one yet.
    fresh = world.ensemble.open_session(broker.store, 18_000)
    broker.store.session_id = fresh
    broker.metadata.on_store(SessionChange(SessionState.CONNECTED, fresh), 0)
    world.run(0, broker)
    new = world.ensemble.machine.tree.node("/brokers/ids/1")
    assert old is not None
    assert new is not None
    assert new.czxid > old.czxid
    assert new.ephemeral_owner == fresh
    assert broker.broker_epoch == new.czxid


@behaviour("N3")
def test_after_the_session_ends_everything_stops_then_registers_and_only_then_elects():
    world = StoreWorld()
    broker, registration, told = make(world, 1)
    join(world, registration, broker)
    epoch = broker.broker_epoch
    told.clear()
    world.ensemble.expire(broker.store)
    assert not world.exists("/brokers/ids/1")
    world.run(0, broker)
    assert told == ["expired", "configs end", "connected", "elections", "configs"]
    assert len(events_of(broker, SessionLost)) == 1
    assert broker.broker_epoch > epoch
    assert len(events_of(broker, BrokerRegistered)) == 2


def test_a_cut_link_is_waited_for():
    world = StoreWorld()
    broker, registration, told = make(world, 1)
    world.run()
    broker.store.disconnect()
    done = join(world, registration, broker)
    world.run(3_000, broker)
    assert done == []
    broker.store.restore()
    world.run(2_000, broker)
    assert len(done) == 1
    assert events_of(broker, BrokerFailed) == []
    assert told.count("elections") == 0


def test_others_that_make_no_sense_are_no_reason_to_refuse():
    world = StoreWorld()
    broker, registration, _ = make(world, 1)
    registration.prepare(lambda *_: None)
    world.run()
    world.do(
        Create("/brokers/ids/7", b"?", CreateMode.EPHEMERAL), Create("/brokers/ids/x", b"?"),
        SetData("/brokers/ids/7", b"{}"),
    )  # fmt: skip
    assert len(join(world, registration, broker)) == 1
