"""Who holds the office: elections, lost answers, lost epochs, bugs and resignations."""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from barnabas.broker.controller import (
    STAND_AGAIN_AFTER_MS,
    BecameController,
    ControllerEventTaken,
    ControllerFailed,
    ControllerResigned,
    ControllerRole,
    Controllership,
)
from barnabas.broker.controller_channels import ControlRequestSent
from barnabas.broker.event_stream import BrokerFailed
from barnabas.broker.links import LinkState
from barnabas.core.controller.controller import Controller
from barnabas.core.controller.effects import Outcome
from barnabas.core.controller.events import (
    ControllerElected,
    LeaderAndIsrAnswered,
    TopicModified,
    TopicsChanged,
    UncleanElectionEnabled,
)
from barnabas.core.image.cluster_image import ClusterImage
from barnabas.formats.wire.generated.leader_and_isr import (
    LeaderAndIsrPartitionError,
    LeaderAndIsrResponse,
    LeaderAndIsrTopicError,
)
from barnabas.formats.wire.generated.update_metadata import UpdateMetadataResponse
from barnabas.formats.znodes.brokers import BrokerRegistration, broker_path
from barnabas.formats.znodes.cluster import PERSISTENT_PATHS, parents_of
from barnabas.formats.znodes.controller import CONTROLLER_PATH, ControllerRegistration
from barnabas.model.epochs import ControllerEpoch
from barnabas.model.error_codes import ErrorCode
from barnabas.model.ids import BrokerId, TopicId, TopicPartition
from barnabas.model.invariant import InvariantViolated
from barnabas.model.listeners import Listener
from barnabas.model.znode import (
    Create,
    CreateMode,
    Delete,
    SessionChange,
    SessionState,
    SetData,
)
from tests.behaviours import behaviour
from tests.worlds.store_world import EPOCH_MS, StoreWorld, events_of

EPOCH = "/controller_epoch"


class SilentLink:
    """A connection on which nobody answers; the test may break it."""

    def __init__(self) -> None:
        self.state = LinkState.OPEN
        self.close_reason = ""
        self.in_flight: list[Callable[[object, int], None]] = []

    def request(
        self, _key: Any, _version: Any, _body: Any, then: Callable[[object, int], None], **_: Any
    ) -> None:
        self.in_flight.append(then)

    def close(self) -> None:
        self.state = LinkState.CLOSED


def make_world() -> StoreWorld:
    world = StoreWorld()
    for path in PERSISTENT_PATHS:
        world.do(*[Create(one) for one in (*parents_of(path), path)])
    return world


def make(world: StoreWorld, broker_id: int) -> tuple[Any, ControllerRole]:
    """A registered broker that takes part in elections."""
    broker = world.add_broker(broker_id)
    broker.opened = []

    def open_link(*_arguments: Any, **_options: Any) -> SilentLink:
        broker.opened.append(SilentLink())
        return broker.opened[-1]

    broker.links = SimpleNamespace(open=open_link)
    role = broker.controller = ControllerRole(broker)
    broker.metadata.on_session_change(role.note_session)
    content = BrokerRegistration((Listener("PLAINTEXT", f"host{broker_id}", 9092),), 0).to_bytes()
    node = Create(broker_path(BrokerId(broker_id)), content, CreateMode.EPHEMERAL)
    broker.metadata.submit([node], lambda *_: None)
    world.run()
    return broker, role


def sent(broker: Any) -> int:
    return len(events_of(broker, ControlRequestSent))


@behaviour("N1")
def test_the_first_controller_makes_the_counter_and_takes_epoch_one_in_one_transaction():
    world = make_world()
    broker, role = make(world, 1)
    role.start(0)
    before = world.ensemble.machine.last_zxid
    world.run()
    assert role.is_active
    assert role.controller_id == 1
    assert world.data(EPOCH) == b"1"
    holder = world.ensemble.machine.tree.node(CONTROLLER_PATH)
    counter = world.ensemble.machine.tree.node(EPOCH)
    assert holder is not None
    assert counter is not None
    assert holder.czxid == counter.mzxid
    assert holder.ephemeral_owner == broker.store.session_id
    assert counter.czxid > before
    assert ControllerRegistration.from_bytes("", holder.data) == ControllerRegistration(
        BrokerId(1), EPOCH_MS
    )
    assert events_of(broker, BecameController) == [BecameController(1)]


@behaviour("N1")
def test_one_wins_the_others_watch_and_one_of_them_is_next():
    world = make_world()
    brokers = [make(world, number) for number in (1, 2, 3)]
    for _, role in brokers:
        role.start(0)
    world.run()
    active = [broker.broker_id for broker, role in brokers if role.is_active]
    assert len(active) == 1
    assert [role.controller_id for _, role in brokers] == active * 3
    world.do(Delete(CONTROLLER_PATH))
    again = [broker.broker_id for broker, role in brokers if role.is_active]
    assert len(again) == 1
    assert world.data(EPOCH) == b"2"
    first = next(broker for broker, _ in brokers if broker.broker_id == active[0])
    assert [one.epoch for one in events_of(first, ControllerResigned)] == [1]


@behaviour("N1")
def test_a_claim_whose_answer_was_lost_is_an_office_all_the_same():
    world = make_world()
    broker, role = make(world, 1)
    world.do(Create(EPOCH, b"41"))
    role.start(0)
    for _ in range(10):
        world.ensemble.pump_round(0)
        if world.exists(CONTROLLER_PATH):
            break
        pending = broker.store._requests
        if pending and isinstance(pending[0].operations[0], Create):
            broker.store.disconnect(apply_requests=True)
            broker.store.restore()
    world.run()
    assert role.is_active
    assert world.data(EPOCH) == b"42"
    (became,) = events_of(broker, BecameController)
    assert became.epoch == 42
    world.do(Create("/brokers/topics/t", b'{"version":3,"partitions":{"0":[1]}}'))
    assert world.exists("/brokers/topics/t/partitions/0/state"), "the office does its work"


@behaviour("N1")
def test_a_claim_that_came_too_late_is_none():
    world = make_world()
    broker, role = make(world, 1)
    world.do(Create(EPOCH, b"0"))
    role.start(0)
    while not (
        broker.store._requests and isinstance(broker.store._requests[0].operations[0], Create)
    ):
        world.ensemble.pump_round(0)
    other = ControllerRegistration(BrokerId(9), 0).to_bytes()
    for operation in (Create(CONTROLLER_PATH, other), SetData(EPOCH, b"1")):
        world.ensemble.apply(world.client.store, [operation], False)
    world.run()
    assert not role.is_active
    assert role.controller_id == 9
    assert world.data(EPOCH) == b"1"
    world.do(Delete(CONTROLLER_PATH))
    assert role.is_active
    assert world.data(EPOCH) == b"2"


@behaviour("N1", "R3")
def test_a_controller_whose_epoch_is_taken_resigns_with_the_first_write():
    world = make_world()
    broker, role = make(world, 1)
    role.start(0)
    world.run()
    world.do(SetData(EPOCH, b"7"))
    assert role.is_active, "it cannot know yet"
    requests = sent(broker)
    world.do(Create("/brokers/topics/t", b'{"version":3,"partitions":{"0":[1]}}'))
    (resigned,) = events_of(broker, ControllerResigned)
    assert "another controller" in resigned.reason
    assert not world.exists("/brokers/topics/t/partitions")
    assert sent(broker) == requests


@behaviour("N1")
def test_a_controller_that_was_replaced_resigns_and_hears_no_watch():
    world = make_world()
    broker, role = make(world, 1)
    role.start(0)
    world.run()
    world.do(SetData(CONTROLLER_PATH, ControllerRegistration(BrokerId(9), 0).to_bytes()))
    assert not role.is_active
    assert role.controller_id == 9
    told = len(broker.told)
    world.do(Create("/brokers/topics/t", b'{"version":3,"partitions":{"0":[1]}}'))
    assert len(broker.told) == told


def replace_controller(world: StoreWorld, _broker: Any, _role: ControllerRole) -> None:
    world.do(SetData(CONTROLLER_PATH, ControllerRegistration(BrokerId(9), 0).to_bytes()))


def expire_session(world: StoreWorld, broker: Any, _role: ControllerRole) -> None:
    world.ensemble.expire(broker.store)
    world.run()


def stop_broker(world: StoreWorld, _broker: Any, role: ControllerRole) -> None:
    role.stop(world.now_ms)


@behaviour("N1")
@pytest.mark.parametrize("end", [replace_controller, expire_session, stop_broker])
def test_the_channels_of_a_controller_that_resigned_are_closed_and_send_nothing(
    end: Callable[[StoreWorld, Any, ControllerRole], None],
):
    world = make_world()
    broker, role = make(world, 1)
    make(world, 2)
    role.start(0)
    world.run()
    links = list(broker.opened)
    assert [len(link.in_flight) for link in links] == [1, 1], "one to itself, one to the other"
    requests = sent(broker)
    end(world, broker, role)
    assert not role.is_active
    assert [link.state for link in links] == [LinkState.CLOSED] * 2
    # Neither an answer that comes late nor one that never comes makes it send again.
    for link in links:
        link.in_flight[0](None, world.now_ms)
    world.run(5_000, broker)
    assert broker.opened == links
    assert sent(broker) == requests


@behaviour("N1")
def test_a_controller_that_resigned_goes_on_with_nothing_that_was_under_way():
    world = make_world()
    broker, role = make(world, 1)
    role.start(0)
    world.run()
    topic = Create("/brokers/topics/t", b'{"version":3,"partitions":{"0":[1]}}')
    world.client.metadata.submit([topic], lambda *_: None)
    while not events_of(broker, ControllerEventTaken)[1:]:
        world.ensemble.pump_round(0)
    assert events_of(broker, ControllerEventTaken)[-1].event == TopicsChanged()
    told = len(broker.told)
    # The epoch is still its own, so that the store would take whatever it wrote.
    role.stop(0)
    world.run()
    assert [type(event) for event in broker.told[told:]] == [ControllerResigned]
    assert not world.exists("/brokers/topics/t/partitions")


@behaviour("N3")
def test_the_end_of_the_session_pre_empts_everything():
    world = make_world()
    broker, role = make(world, 1)
    role.start(0)
    world.run()
    world.ensemble.expire(broker.store)
    broker.metadata.forget_watchers()
    world.run()
    assert not role.is_active
    assert events_of(broker, ControllerResigned)[0].reason == "its session expired"
    told = len(broker.told)
    world.do(Create("/brokers/topics/t", b"{}"))
    role.look_again(0)
    broker.metadata.reconnect()
    world.run(5_000, broker)
    assert len(broker.told) == told, "without a registration it takes no part"
    role.start(0)
    world.run()
    assert role.is_active
    assert world.data(EPOCH) == b"2"
    world.do(Delete(CONTROLLER_PATH))
    assert role.is_active, "the new session watches too"
    assert world.data(EPOCH) == b"3"


@behaviour("Q7")
def test_an_answer_to_leader_and_isr_is_an_event_of_the_controller():
    world = make_world()
    broker, role = make(world, 1)
    role.start(0)
    world.run()
    (link,) = broker.opened
    link.in_flight.pop()(UpdateMetadataResponse(), 0)
    content = b'{"version":3,"partitions":{"0":[1]},"topic_id":"eHh4eHh4eHh4eHh4eHh4eA"}'
    world.do(Create("/brokers/topics/t", content))
    failed = LeaderAndIsrPartitionError(partition_index=0, error_code=ErrorCode.KAFKA_STORAGE_ERROR)
    topic = LeaderAndIsrTopicError(topic_id=TopicId(b"x" * 16), partition_errors=[failed])
    link.in_flight.pop(0)(LeaderAndIsrResponse(topics=[topic]), 0)
    world.run()
    taken = [one.event for one in events_of(broker, ControllerEventTaken)]
    [answered] = [event for event in taken if isinstance(event, LeaderAndIsrAnswered)]
    assert answered.broker_id == 1
    assert answered.partition_errors == {TopicPartition("t", 0): ErrorCode.KAFKA_STORAGE_ERROR}
    state = world.data("/brokers/topics/t/partitions/0/state")
    assert state is not None
    assert b'"leader":-1' in state


class CountedEvent(TopicModified):
    """Knows how often one of its kind was compared."""

    compared = 0

    def __eq__(self, other: object) -> bool:
        CountedEvent.compared += 1
        return isinstance(other, CountedEvent) and other.topic == self.topic

    def __hash__(self) -> int:
        return hash(self.topic)


def test_an_event_that_waits_already_is_told_once_and_a_long_queue_costs_nothing(
    monkeypatch: pytest.MonkeyPatch,
):
    taken: list[Any] = []

    def handle(_self: Controller, event: Any, _now_ms: int) -> Outcome:
        taken.append(event)
        return Outcome(None, (), ())

    monkeypatch.setattr(Controller, "handle", handle)
    monkeypatch.setattr(Controller, "is_idle", False)
    broker, role = make(make_world(), 1)
    held = Controllership(role, broker, ClusterImage(ControllerEpoch(1), 0))
    for number in [*range(5_000), *range(5_000)]:
        held.enqueue(CountedEvent(f"t{number}"), 0)
    assert taken == []
    assert CountedEvent.compared <= 10_000, "twice 5,000 times 2,500 if all were looked at"
    monkeypatch.setattr(Controller, "is_idle", True)
    held.enqueue(TopicsChanged(), 0)
    assert [event.topic for event in taken[:-1]] == [f"t{number}" for number in range(5_000)]
    held.enqueue(TopicsChanged(), 0)
    assert taken[-2:] == [TopicsChanged(), TopicsChanged()], "told again once it was taken"


def test_a_bug_in_a_decision_costs_the_office_and_nothing_else(monkeypatch: pytest.MonkeyPatch):
    world = make_world()
    broker, role = make(world, 1)
    role.start(0)
    world.run()
    handle = Controller.handle

    def stumble(self: Controller, event: Any, now_ms: int) -> Any:
        if isinstance(event, TopicsChanged):
            raise InvariantViolated("two and two are five")
        return handle(self, event, now_ms)

    monkeypatch.setattr(Controller, "handle", stumble)
    world.do(Create("/brokers/topics/t", b'{"version":3,"partitions":{"0":[1]}}'))
    (failed,) = events_of(broker, ControllerFailed)
    assert failed.story == "two and two are five"
    assert not role.is_active
    assert not world.exists(CONTROLLER_PATH), "others may stand"
    world.run(STAND_AGAIN_AFTER_MS - 100, broker)
    assert not role.is_active
    monkeypatch.undo()
    world.run(200, broker)
    assert role.is_active
    assert world.exists("/brokers/topics/t/partitions/0/state"), "the next office finishes it"


@behaviour("N1")
def test_no_event_that_waited_is_taken_after_the_one_that_cost_the_office(
    monkeypatch: pytest.MonkeyPatch,
):
    world = make_world()
    broker, role = make(world, 1)
    role.start(0)
    world.run()
    handle = Controller.handle
    fatal = UncleanElectionEnabled("fatal")

    def stumble(self: Controller, event: Any, now_ms: int) -> Any:
        if event == fatal:
            raise InvariantViolated("two and two are five")
        return handle(self, event, now_ms)

    monkeypatch.setattr(Controller, "handle", stumble)
    topic = Create("/brokers/topics/t", b'{"version":3,"partitions":{"0":[1]}}')
    world.client.metadata.submit([topic], lambda *_: None)
    while not events_of(broker, ControllerEventTaken)[1:]:
        world.ensemble.pump_round(0)
    for name in ("fatal", "late"):
        role.note_unclean_election_enabled(name, 0)
    world.run()
    assert not role.is_active
    taken = [one.event for one in events_of(broker, ControllerEventTaken)]
    assert taken == [ControllerElected(), TopicsChanged(), fatal]


def test_a_counter_that_makes_no_sense_fails_the_broker():
    world = make_world()
    world.do(Create(EPOCH, b"many"))
    broker, role = make(world, 1)
    role.start(0)
    world.run()
    (failed,) = events_of(broker, BrokerFailed)
    assert EPOCH in str(failed.error)
    assert not role.is_active


def test_a_holder_that_makes_no_sense_is_somebody_else():
    world = make_world()
    world.do(Create(CONTROLLER_PATH, b"?"))
    _, role = make(world, 1)
    role.start(0)
    world.run()
    assert not role.is_active
    assert role.controller_id == -1
    world.do(Delete(CONTROLLER_PATH))
    assert role.is_active


def test_a_cut_link_is_waited_for():
    world = make_world()
    broker, role = make(world, 1)
    broker.store.disconnect()
    role.start(0)
    world.run(500, broker)
    assert not role.is_active
    broker.store.restore()
    world.run(2 * STAND_AGAIN_AFTER_MS, broker)
    assert role.is_active


def test_names_of_topics_and_deletions_are_known_to_the_holder_alone():
    world = make_world()
    broker, role = make(world, 1)
    assert role.topic_name(b"x" * 16) is None
    assert not role.is_queued_for_deletion("t")
    role.start(0)
    world.run()
    data = b'{"version":3,"partitions":{"0":[1]},"topic_id":"eHh4eHh4eHh4eHh4eHh4eA"}'
    world.do(Create("/brokers/topics/t", data))
    assert role.topic_name(b"x" * 16) == "t"
    assert role.topic_name(b"y" * 16) is None
    world.do(Create("/admin/delete_topics/t"))
    assert role.is_queued_for_deletion("t")
    role.note_session(SessionChange(SessionState.EXPIRED, 0), 0)
    assert not role.is_queued_for_deletion("t")
    assert sent(broker) > 0
