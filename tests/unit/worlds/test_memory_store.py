"""The store in memory: several sessions on one tree, and the faults between broker and store."""

from barnabas.model.znode import (
    Create,
    CreateMode,
    Exists,
    GetChildren,
    GetData,
    Operation,
    Outcome,
    SessionChange,
    SessionState,
    SetData,
    StoreAnswer,
    StoreError,
    StoreEvent,
    WatchEvent,
    WatchKind,
)
from tests.worlds.memory_store import MemoryEnsemble, MemoryStore

TIMEOUT_MS = 6000
LOST = Outcome(StoreError.CONNECTION_LOSS)
EXPIRED = Outcome(StoreError.SESSION_EXPIRED)


class Broker:
    """Keeps what it is told, and answers nothing."""

    def __init__(self, world: "World") -> None:
        self.world = world
        self.told: list[StoreEvent] = []
        self.store: MemoryStore = world.ensemble.connect(self.take, TIMEOUT_MS)

    def take(self, event: StoreEvent, now_ms: int) -> None:
        assert now_ms == self.world.now_ms
        self.told.append(event)

    def ask(self, *operations: Operation) -> tuple[Outcome, ...]:
        ticket = self.store.submit(operations)
        self.world.pump()
        (answer,) = [e for e in self.told if isinstance(e, StoreAnswer) and e.ticket == ticket]
        return answer.outcomes

    def take_told(self) -> list[StoreEvent]:
        told, self.told = self.told, []
        return told


class World:
    def __init__(self, brokers: int = 2) -> None:
        self.now_ms = 0
        self.ensemble = MemoryEnsemble(lambda: 1_000_000 + self.now_ms)
        self.brokers = [Broker(self) for _ in range(brokers)]
        self.pump()
        for number, broker in enumerate(self.brokers, 1):
            assert broker.take_told() == [SessionChange(SessionState.CONNECTED, number)]

    def pump(self) -> None:
        self.ensemble.pump(self.now_ms)

    def pass_time(self, until_ms: int) -> None:
        self.now_ms = until_ms
        self.ensemble.tick(until_ms)
        self.pump()


def test_nothing_moves_until_the_world_pumps() -> None:
    world = World()
    one, _ = world.brokers
    ticket = one.store.submit([Create("/a")])
    assert world.ensemble.machine.tree.node("/a") is None
    world.pump()
    assert one.told == [StoreAnswer(ticket, (Outcome(StoreError.OK, path="/a"),))]


def test_a_watch_is_told_before_the_read_that_shows_what_it_saw() -> None:
    world = World()
    one, other = world.brokers
    one.ask(Create("/a", b"x"))
    other.ask(GetData("/a", watch=True))
    other.take_told()
    one.store.submit([SetData("/a", b"y")])
    ticket = other.store.submit([GetData("/a")])
    world.pump()
    fired, answer = other.take_told()
    assert fired == WatchEvent(WatchKind.DATA_CHANGED, "/a")
    assert isinstance(answer, StoreAnswer) and answer.ticket == ticket
    assert answer.outcomes[0].data == b"y"


def test_a_cut_link_loses_requests_or_only_their_answers() -> None:
    world = World()
    one, other = world.brokers
    lost = one.store.submit([Create("/lost")])
    one.store.disconnect()
    world.pump()
    assert one.take_told() == [
        StoreAnswer(lost, (LOST,)),
        SessionChange(SessionState.DISCONNECTED, 1),
    ]
    while_cut = one.store.submit([Create("/cut"), Create("/cut2")])
    world.pump()
    assert one.take_told() == [StoreAnswer(while_cut, (LOST, LOST))]
    one.store.restore()
    world.pump()
    assert one.take_told() == [SessionChange(SessionState.CONNECTED, 1)]
    done = one.store.submit([Create("/done", None, CreateMode.EPHEMERAL)])
    one.store.disconnect(apply_requests=True)
    world.pump()
    assert one.take_told()[0] == StoreAnswer(done, (LOST,))
    assert other.ask(GetChildren("/"))[0].children == ("done",)
    one.store.restore()
    world.pump()
    stat = one.ask(Exists("/done"))[0].stat
    assert stat is not None and stat.ephemeral_owner == one.store.session_id


def test_an_answer_under_way_is_lost_with_the_link() -> None:
    world = World()
    one, _ = world.brokers
    ticket = one.store.submit([Create("/a")])
    assert one.store.send_one()
    one.store.disconnect()
    world.pump()
    assert one.take_told()[0] == StoreAnswer(ticket, (LOST,))
    assert world.ensemble.machine.tree.node("/a") is not None


def test_watches_that_fired_while_the_link_was_cut_are_told_once_it_is_mended() -> None:
    world = World()
    one, other = world.brokers
    one.ask(Exists("/a", watch=True), GetChildren("/", watch=True))
    one.take_told()
    one.store.disconnect()
    other.ask(Create("/a"))
    assert one.take_told() == [SessionChange(SessionState.DISCONNECTED, 1)]
    one.store.restore()
    world.pump()
    assert one.take_told() == [
        SessionChange(SessionState.CONNECTED, 1),
        WatchEvent(WatchKind.CREATED, "/a"),
        WatchEvent(WatchKind.CHILDREN_CHANGED, "/"),
    ]


def test_a_session_ends_when_nothing_is_heard_of_it() -> None:
    world = World()
    one, other = world.brokers
    one.ask(Create("/e", None, CreateMode.EPHEMERAL))
    other.ask(Exists("/e", watch=True))
    one.take_told()
    other.take_told()
    world.pass_time(5000)
    one.store.disconnect()
    world.pass_time(10_999)
    assert other.take_told() == []
    assert world.ensemble.next_deadline_ms() == 11_000
    world.pass_time(11_000)
    assert other.take_told() == [WatchEvent(WatchKind.DELETED, "/e")]
    assert one.take_told() == [SessionChange(SessionState.DISCONNECTED, 1)]
    one.store.restore()
    late = one.store.submit([Create("/late")])
    world.pump()
    assert one.take_told() == [
        SessionChange(SessionState.EXPIRED, 1),
        StoreAnswer(late, (EXPIRED,)),
    ]
    one.store.reconnect()
    world.pump()
    assert one.take_told() == [SessionChange(SessionState.CONNECTED, 3)]
    assert one.ask(Create("/e", None, CreateMode.EPHEMERAL))[0].is_ok


def test_a_paused_broker_hears_of_its_expiry_when_it_continues() -> None:
    world = World()
    one, other = world.brokers
    one.ask(Create("/e", None, CreateMode.EPHEMERAL))
    one.take_told()
    one.store.is_paused = True
    pending = one.store.submit([Exists("/e")])
    world.pass_time(TIMEOUT_MS)
    assert other.ask(Exists("/e"))[0].error is StoreError.NO_NODE
    assert one.take_told() == []
    one.store.is_paused = False
    world.pump()
    assert one.take_told() == [
        StoreAnswer(pending, (EXPIRED,)),
        SessionChange(SessionState.EXPIRED, 1),
    ]


def test_an_expired_session_and_its_broker_part_at_once() -> None:
    world = World()
    one, other = world.brokers
    one.ask(Create("/e", None, CreateMode.EPHEMERAL))
    other.ask(GetChildren("/", watch=True))
    one.take_told()
    other.take_told()
    pending = one.store.submit([Exists("/e")])
    world.ensemble.expire(one.store)
    world.pump()
    assert one.take_told() == [
        StoreAnswer(pending, (EXPIRED,)),
        SessionChange(SessionState.EXPIRED, 1),
    ]
    assert other.take_told() == [WatchEvent(WatchKind.CHILDREN_CHANGED, "/")]


def test_a_killed_broker_lives_on_in_the_store_and_a_closed_one_does_not() -> None:
    world = World(3)
    killed, closed, left = world.brokers
    killed.ask(Create("/killed", None, CreateMode.EPHEMERAL))
    closed.ask(Create("/closed", None, CreateMode.EPHEMERAL))
    world.ensemble.kill(killed.store)
    world.ensemble.close(closed.store)
    assert left.ask(GetChildren("/"))[0].children == ("killed",)
    world.pass_time(TIMEOUT_MS)
    assert left.ask(GetChildren("/"))[0].children == ()


def test_brokers_interleave_the_same_way_in_every_run() -> None:
    orders: list[list[str]] = []
    for _ in range(2):
        world = World()
        for number in range(3):
            for broker in world.brokers:
                broker.store.submit([Create(f"/{number}-", None, CreateMode.PERSISTENT_SEQUENTIAL)])
        world.pump()
        told = [event for broker in world.brokers for event in broker.told]
        orders.append([e.outcomes[0].path for e in told if isinstance(e, StoreAnswer)])
    assert orders[0] == orders[1]
    assert orders[0][0] == "/0-0000000000"
    assert orders[0][3] == "/0-0000000001"
