"""Several brokers in one process in virtual time: the same code as in production, other ports.

There is no sleep and no thread. Time stands while anything is to be done and then jumps to the
next moment at which something is. What a controller would send is sent by the test.
"""

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from barnabas.broker.broker import Broker
from barnabas.broker.event_stream import BrokerFailed, BrokerStarted, ListenersWanted
from barnabas.broker.ports import ConnectionId, LinkId
from barnabas.core.administration.creation import CreateTopicPolicy
from barnabas.formats.wire import framing, headers
from barnabas.formats.wire.api_keys import ApiKey
from barnabas.formats.wire.generated.leader_and_isr import (
    LeaderAndIsrLiveLeader,
    LeaderAndIsrPartitionState,
    LeaderAndIsrRequest,
    LeaderAndIsrResponse,
    LeaderAndIsrTopicState,
)
from barnabas.formats.wire.generated.update_metadata import (
    UpdateMetadataBroker,
    UpdateMetadataEndpoint,
    UpdateMetadataPartitionState,
    UpdateMetadataRequest,
    UpdateMetadataResponse,
    UpdateMetadataTopicState,
)
from barnabas.model.config import BrokerConfig
from barnabas.model.ids import BrokerId, TopicId
from tests.worlds.memory_disk import MemoryDisk
from tests.worlds.memory_store import MemoryEnsemble
from tests.worlds.virtual_network import (
    Host,
    Opener,
    Scheduler,
    VirtualNetwork,
    VirtualTransport,
    Wire,
)

EPOCH_MS = 1_700_000_000_000
"""The time of day at which every world begins."""
LISTENER = "PLAINTEXT"
LOG_DIR = "/logs"
LONG_ENOUGH_MS = 60_000
"""Virtual time in which anything that is going to happen has happened."""


class VirtualClock:
    def __init__(self, scheduler: Scheduler) -> None:
        self._scheduler = scheduler

    def epoch_ms(self) -> int:
        return EPOCH_MS + self._scheduler.now_ms


@dataclass
class Told:
    """What a broker published, as a test reads it."""

    events: list[tuple[int, object]] = field(default_factory=list)

    def of(self, kind: type[Any]) -> list[Any]:
        return [event for _, event in self.events if isinstance(event, kind)]


class BrokerHost(Host):
    """One broker's place in the world: its disk outlives the process."""

    def __init__(self, world: "VirtualWorld", broker_id: int, settings: dict[str, str]) -> None:
        self.world = world
        self.broker_id = BrokerId(broker_id)
        self.name = f"broker{broker_id}"
        self.address = (self.name, 9092)
        self.disk = MemoryDisk(self._on_disk_done)
        self._settings = {
            "broker.id": str(broker_id),
            "listeners": f"{LISTENER}://{self.name}:9092",
            "log.dirs": LOG_DIR,
            **settings,
        }
        self.told = Told()
        self.broker: Broker
        self.transport: VirtualTransport
        self.is_running = False
        self.is_touched = False
        self.failure: Exception | None = None
        """Why the broker could not go on; a process would end."""
        self._store: Any = None

    # Life

    def start(self) -> None:
        """A new process on the same disk; a test tells it what a controller would."""
        world = self.world
        self._new_broker()
        self.broker.cluster_id = "virtual-cluster-id"
        opened: list[int] = []
        self.broker.logs.manager.directories.inspect()
        self.broker.logs.open(opened.append, self._on_refused, world.now_ms)
        self.is_touched = True
        world.run_until(lambda: bool(opened))
        world.network.listen(self, self.address)
        world.note(f"{self.name} started")

    def start_whole(self) -> None:
        """A new process that registers itself and may become the controller."""
        self._new_broker()
        began = len(self.told.events)
        self.broker.start(self.world.now_ms)
        self.is_touched = True
        self.world.run_until(
            lambda: (
                self.failure is not None
                or any(isinstance(e, BrokerStarted) for _, e in self.told.events[began:])
            )
        )
        if self.failure is not None:
            raise self.failure

    def _new_broker(self) -> None:
        world = self.world
        self.transport = VirtualTransport(world.network, self.name)
        self.transport.on_link_open = self._on_link_open
        self.transport.on_response = self._on_response
        self.transport.on_link_closed = self._on_link_closed
        self._store = world.ensemble.connect(self._on_store)
        self.disk.now_ms = world.clock.epoch_ms()
        for directory in self._settings["log.dirs"].split(","):
            self.disk.make_directory(directory)
        self.broker = Broker(
            BrokerConfig.resolve(self._settings),
            self.disk,
            self._store,
            self.transport,
            world.clock,
            random.Random(1000 + self.broker_id),
            world.now_ms,
            world.create_topic_policy,
        )
        self.broker.events.subscribe(self._on_event)
        self.is_running = True

    def kill(self) -> None:
        """kill -9: what was written stays, nothing else."""
        self.world.note(f"{self.name} killed")
        self._end()
        self.disk.kill_process()
        self.world.ensemble.kill(self._store)

    def stop(self) -> None:
        """A clean stop: logs are left so that nothing need be recovered."""
        self.world.note(f"{self.name} stopped")
        self.broker.fetchers.close()
        self.broker.logs.close(self.world.now_ms)
        self._end()
        self.disk.kill_process()
        self.world.ensemble.close(self._store)

    def _end(self) -> None:
        self.is_running = False
        self.world.network.stop_listening(self.address)
        self.transport.drop_all()

    def _on_refused(self, error: Exception) -> None:
        raise error

    def _on_event(self, event: object, now_ms: int) -> None:
        self.told.events.append((now_ms, event))
        if isinstance(event, ListenersWanted):
            self.world.network.listen(self, self.address)
        if isinstance(event, BrokerFailed):
            self.failure = event.error
        self.world.note(f"{self.name} {event}")

    # What reaches the broker

    def on_wire(self, wire: Wire) -> None:
        self.transport.wires[wire.connection] = wire
        self._touch()
        self.broker.on_connection(wire.connection, LISTENER, wire.opener.name, self.world.now_ms)

    def on_frame(self, connection: ConnectionId, frame: bytes) -> None:
        if self.is_running:
            self._touch()
            self.broker.on_request(connection, frame, 4, len(frame), self.world.now_ms)

    def on_wire_closed(self, connection: ConnectionId) -> None:
        self.transport.wires.pop(connection, None)
        if self.is_running:
            self._touch()
            self.broker.on_closed(connection, self.world.now_ms, "closed")

    def _on_link_open(self, link: LinkId) -> None:
        if self.is_running:
            self._touch()
            self.broker.on_link_open(link, self.world.now_ms)

    def _on_response(self, link: LinkId, frame: bytes) -> None:
        if self.is_running:
            self._touch()
            self.broker.on_response(link, frame, self.world.now_ms)

    def _on_link_closed(self, link: LinkId, reason: str) -> None:
        if self.is_running:
            self._touch()
            self.broker.on_link_closed(link, reason, self.world.now_ms)

    def _on_store(self, event: Any, now_ms: int) -> None:
        if self.is_running:
            self._touch()
            self.broker.on_store(event, now_ms)

    def _on_disk_done(self, job: Any) -> None:
        self._touch()
        self.broker.on_disk_done(job, self.world.now_ms)

    def _touch(self) -> None:
        self.is_touched = True

    def next_ms(self) -> int | None:
        return self.broker.next_deadline_ms() if self.is_running else None

    def tick_if_due(self) -> bool:
        deadline_ms = self.next_ms()
        if deadline_ms is None or deadline_ms > self.world.now_ms:
            return False
        self._touch()
        self.broker.tick(self.world.now_ms)
        return True

    def end_turn(self) -> bool:
        """End the turn, then let what it handed to the disk be done."""
        if not self.is_running:
            return False
        self.disk.now_ms = self.world.clock.epoch_ms()
        had_jobs = self.disk.run_jobs() > 0
        if not self.is_touched:
            return had_jobs
        self.is_touched = False
        self.broker.end_turn(self.world.now_ms)
        return True


class Client(Opener):
    """A test's connection to one broker; requests are numbered and answers kept by number."""

    def __init__(self, world: "VirtualWorld", name: str, address: tuple[str, int]) -> None:
        self.world = world
        self.name = name
        self._wire: Wire | None = None
        self.closed_reason = ""
        self._asked: dict[int, tuple[ApiKey, int]] = {}
        self.answers: dict[int, Any] = {}
        """Decoded answers by the number of their request, in the order of arriving."""
        self.answered_ms: dict[int, int] = {}
        self._is_raw = False
        self._raw: bytes | None = None
        world.network.open(self, address)
        world.run_until(lambda: self._wire is not None or bool(self.closed_reason))

    def on_open(self, wire: Wire) -> None:
        self._wire = wire

    def on_frame(self, frame: bytes) -> None:
        body = frame[4:]
        if self._is_raw:
            self._raw = body
            return
        number = headers.read_correlation_id(body)
        api_key, version = self._asked[number]
        self.answers[number] = framing.decode_response(api_key, version, body)
        self.answered_ms[number] = self.world.now_ms

    def on_closed(self, reason: str) -> None:
        self.closed_reason = reason

    def send(self, api_key: ApiKey, version: int, body: Any, client_id: str = "test") -> int:
        """Send and do not wait; the number under which the answer will be found."""
        assert self._wire is not None, f"{self.name} is not connected: {self.closed_reason}"
        number = len(self._asked) + 1
        self._asked[number] = (api_key, version)
        self._wire.to_host(framing.request_frame(api_key, version, number, client_id, body))
        return number

    def call(self, api_key: ApiKey, version: int, body: Any, client_id: str = "test") -> Any:
        """Send and let the world run until the answer is there."""
        number = self.send(api_key, version, body, client_id)
        self.world.run_until(lambda: number in self.answers or bool(self.closed_reason))
        assert number in self.answers, f"{self.name}: {self.closed_reason}"
        return self.answers[number]

    def call_raw(self, request: bytes) -> bytes:
        """Send a frame as it was recorded, from its api key on; the answer's frame likewise."""
        assert self._wire is not None, f"{self.name} is not connected: {self.closed_reason}"
        self._raw = None
        self._is_raw = True
        self._wire.to_host(len(request).to_bytes(4, "big") + request)
        self.world.run_until(lambda: self._raw is not None or bool(self.closed_reason))
        self._is_raw = False
        assert self._raw is not None, f"{self.name}: {self.closed_reason}"
        return self._raw

    def close(self) -> None:
        if self._wire is not None:
            self._wire.close_from_opener()


class VirtualWorld:
    """The brokers, the network between them, the store, and one clock for all."""

    def __init__(self) -> None:
        self.scheduler = Scheduler()
        self.network = VirtualNetwork(self.scheduler)
        self.clock = VirtualClock(self.scheduler)
        self.ensemble = MemoryEnsemble(self.clock.epoch_ms)
        self.hosts: dict[int, BrokerHost] = {}
        self.controller_epoch = 1
        self.create_topic_policy: CreateTopicPolicy | None = None
        """What brokers that start from now on ask about new topics."""
        self._clients = 0

    @property
    def now_ms(self) -> int:
        return self.scheduler.now_ms

    @property
    def trace(self) -> list[str]:
        return self.scheduler.trace

    def note(self, story: str) -> None:
        self.scheduler.note(story)

    def add_host(self, broker_id: int, **settings: str) -> BrokerHost:
        """A place for a broker; settings are Kafka's keys with underscores for dots."""
        host = BrokerHost(
            self, broker_id, {key.replace("_", "."): value for key, value in settings.items()}
        )
        self.hosts[broker_id] = host
        return host

    def add_broker(self, broker_id: int, **settings: str) -> BrokerHost:
        """Start a broker without a controller's part of its own."""
        host = self.add_host(broker_id, **settings)
        host.start()
        return host

    def client(self, broker_id: int) -> Client:
        self._clients += 1
        return Client(self, f"client{self._clients}", self.hosts[broker_id].address)

    # Time

    def settle(self) -> None:
        """Do all that can be done at this moment."""
        is_any = True
        while is_any:
            is_any = self.scheduler.run_due()
            for host in self.hosts.values():
                is_any = host.tick_if_due() or is_any
            self.ensemble.tick(self.now_ms)
            is_any = self.ensemble.pump(self.now_ms) > 0 or is_any
            for host in self.hosts.values():
                is_any = host.end_turn() or is_any

    def _next_ms(self) -> int | None:
        moments = [self.scheduler.next_ms(), self.ensemble.next_deadline_ms()]
        moments += [host.next_ms() for host in self.hosts.values()]
        return min((moment for moment in moments if moment is not None), default=None)

    def run(self, duration_ms: int) -> None:
        """Let so much time pass."""
        end_ms = self.now_ms + duration_ms
        self.settle()
        while True:
            next_ms = self._next_ms()
            if next_ms is None or next_ms > end_ms:
                self.scheduler.now_ms = end_ms
                return
            self.scheduler.now_ms = max(self.now_ms, next_ms)
            self.settle()

    def run_until(self, is_reached: Callable[[], bool], limit_ms: int = LONG_ENOUGH_MS) -> None:
        """Let time pass until something is so; a failure when it never comes to be."""
        end_ms = self.now_ms + limit_ms
        self.settle()
        while not is_reached():
            next_ms = self._next_ms()
            assert next_ms is not None, "nothing will ever happen again"
            assert next_ms <= end_ms, f"not reached in {limit_ms} ms"
            self.scheduler.now_ms = max(self.now_ms, next_ms)
            self.settle()

    # The controller's part, played by the test

    def tell_metadata(
        self,
        to: int,
        topic: str,
        topic_id: TopicId,
        states: dict[int, "PartitionPlan"],
        live: list[int],
    ) -> UpdateMetadataResponse:
        """UpdateMetadata 8 to one broker."""
        body = UpdateMetadataRequest(
            controller_id=BrokerId(1),
            controller_epoch=self.controller_epoch,
            broker_epoch=-1,
            topic_states=[
                UpdateMetadataTopicState(
                    topic_name=topic,
                    topic_id=topic_id,
                    partition_states=[
                        UpdateMetadataPartitionState(
                            partition_index=index,
                            controller_epoch=self.controller_epoch,
                            leader=plan.leader,
                            leader_epoch=plan.leader_epoch,
                            isr=list(plan.isr),
                            zk_version=plan.partition_epoch,
                            replicas=list(plan.replicas),
                        )
                        for index, plan in states.items()
                    ],
                )
            ],
            live_brokers=[
                UpdateMetadataBroker(
                    id=BrokerId(broker_id),
                    endpoints=[
                        UpdateMetadataEndpoint(
                            host=f"broker{broker_id}", port=9092, listener=LISTENER
                        )
                    ],
                )
                for broker_id in live
            ],
        )
        return self._as_controller(to, ApiKey.UPDATE_METADATA, 8, body)

    def tell_leader(
        self,
        to: int,
        topic: str,
        topic_id: TopicId,
        states: dict[int, "PartitionPlan"],
        *,
        is_new: bool = False,
    ) -> LeaderAndIsrResponse:
        """LeaderAndIsr 7 to one broker."""
        body = LeaderAndIsrRequest(
            controller_id=BrokerId(1),
            controller_epoch=self.controller_epoch,
            broker_epoch=-1,
            topic_states=[
                LeaderAndIsrTopicState(
                    topic_name=topic,
                    topic_id=topic_id,
                    partition_states=[
                        LeaderAndIsrPartitionState(
                            partition_index=index,
                            controller_epoch=self.controller_epoch,
                            leader=plan.leader,
                            leader_epoch=plan.leader_epoch,
                            isr=list(plan.isr),
                            partition_epoch=plan.partition_epoch,
                            replicas=list(plan.replicas),
                            is_new=is_new,
                        )
                        for index, plan in states.items()
                    ],
                )
            ],
            live_leaders=[
                LeaderAndIsrLiveLeader(
                    broker_id=plan.leader, host_name=f"broker{plan.leader}", port=9092
                )
                for plan in states.values()
            ],
        )
        return self._as_controller(to, ApiKey.LEADER_AND_ISR, 7, body)

    def _as_controller(self, to: int, api_key: ApiKey, version: int, body: Any) -> Any:
        client = self.client(to)
        answer = client.call(api_key, version, body, client_id="1")
        client.close()
        return answer


@dataclass(frozen=True)
class PartitionPlan:
    """What the controller has decided about one partition."""

    leader: BrokerId
    leader_epoch: int
    isr: tuple[BrokerId, ...]
    replicas: tuple[BrokerId, ...]
    partition_epoch: int


def plan(
    leader: int, leader_epoch: int, isr: tuple[int, ...], replicas: tuple[int, ...] = (1, 2)
) -> PartitionPlan:
    """A plan whose partition epoch grows with the leader epoch."""
    return PartitionPlan(
        BrokerId(leader),
        leader_epoch,
        tuple(BrokerId(one) for one in isr),
        tuple(BrokerId(one) for one in replicas),
        leader_epoch,
    )
