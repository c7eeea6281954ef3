"""One broker: takes the world's inputs to its rooms, and owns what they share."""

from __future__ import annotations

import random

from barnabas.broker.administration import Administration
from barnabas.broker.broker_logs import BrokerLogs
from barnabas.broker.client_metadata import ClientMetadata
from barnabas.broker.cold_reads import ColdReads
from barnabas.broker.connections import Connection, Request
from barnabas.broker.control_requests import ControlRequests
from barnabas.broker.controller import ControllerRole
from barnabas.broker.deadlines import Deadlines
from barnabas.broker.dynamic_configs import DynamicConfigs
from barnabas.broker.event_stream import ConnectionRefused, ConnectionsTurnedAway, EventStream
from barnabas.broker.fetch_sessions import FetchSessions
from barnabas.broker.fetchers import ReplicaFetchers
from barnabas.broker.life import Life
from barnabas.broker.links import Links
from barnabas.broker.metadata_cache import MetadataCache
from barnabas.broker.metadata_session import MetadataSession
from barnabas.broker.ports import ConnectionId, LinkId, MetadataStore, Transport, WallClock
from barnabas.broker.producer_ids import ProducerIds
from barnabas.broker.registration import Registration
from barnabas.broker.replicas import Replicas
from barnabas.broker.router import Router
from barnabas.broker.topic_configs import TopicConfigs
from barnabas.core.administration.creation import CreateTopicPolicy
from barnabas.model.config import BrokerConfig
from barnabas.model.epochs import NO_EPOCH, BrokerEpoch
from barnabas.model.ids import BrokerId
from barnabas.model.znode import StoreEvent
from barnabas.storage.disk import Disk, DiskJob


class Broker:
    """The rooms of one broker and the inputs that reach them (`ports.BrokerInputs`)."""

    def __init__(
        self,
        config: BrokerConfig,
        disk: Disk,
        store: MetadataStore,
        transport: Transport,
        wall_clock: WallClock,
        random_source: random.Random,
        now_ms: int,
        create_topic_policy: CreateTopicPolicy | None = None,
    ) -> None:
        self.config = config
        self.disk = disk
        self.transport = transport
        self.wall_clock = wall_clock
        self.random = random_source
        self.now_ms = now_ms
        self.broker_id = BrokerId(config.broker_id)
        self.cluster_id = ""
        """As /cluster/id says; empty until it is read."""
        self.broker_epoch = BrokerEpoch(NO_EPOCH)
        """The czxid of our registration; a control request meant for an earlier one is refused."""
        self.is_stopping = False
        """Nothing new is begun any more."""
        self.events = EventStream()
        self.deadlines = Deadlines()
        self.metadata = MetadataSession(store)
        self.client_metadata = ClientMetadata(self)
        self.links = Links(transport, self.deadlines)
        self.router = Router(self)
        self.connections: dict[ConnectionId, Connection] = {}
        self.metadata_cache = MetadataCache()
        self.topic_configs = TopicConfigs(self)
        self.replicas = Replicas(self)
        self.logs = BrokerLogs(self)
        self.fetch_sessions = FetchSessions(
            config.max_incremental_fetch_session_cache_slots, random_source
        )
        self.cold_reads = ColdReads(self)
        self.fetchers = ReplicaFetchers(self)
        self.control_requests = ControlRequests(self)
        self.administration = Administration(self, create_topic_policy)
        self.producer_ids = ProducerIds(self)
        self.controller = ControllerRole(self)
        self.dynamic_configs = DynamicConfigs(self)
        self.registration = Registration(self)
        self.life = Life(self)

    def start(self, now_ms: int) -> None:
        """Begin to be a broker; `BarnabasError` when the log directories are not for us."""
        self.now_ms = now_ms
        self.life.start()

    def stop(self, now_ms: int) -> None:
        """Stop cleanly; `BrokerStopped` is published when nothing is left to do."""
        self.now_ms = now_ms
        self.life.stop(now_ms)

    # -- inputs ------------------------------------------------------------------------------

    def on_connection(
        self, connection: ConnectionId, listener: str, peer_host: str, now_ms: int
    ) -> None:
        self.now_ms = now_ms
        self.connections[connection] = Connection(connection, listener, peer_host, self.transport)

    def on_request(
        self, connection: ConnectionId, data: bytes, start: int, end: int, now_ms: int
    ) -> None:
        self.now_ms = now_ms
        known = self.connections.get(connection)
        if known is not None and not known.is_closed:
            self.router.on_request(known, data, start, end, now_ms)

    def on_frame_refused(self, connection: ConnectionId, reason: str, now_ms: int) -> None:
        self.now_ms = now_ms
        known = self.connections.get(connection)
        if known is not None and not known.is_closed:
            self.refuse(known, reason, now_ms)

    def on_turned_away(self, count: int, now_ms: int) -> None:
        self.now_ms = now_ms
        self.events.publish(ConnectionsTurnedAway(count), now_ms)

    def on_closed(self, connection: ConnectionId, now_ms: int, reason: str) -> None:
        self.now_ms = now_ms
        known = self.connections.pop(connection, None)
        if known is not None:
            known.note_closed()
            self.replicas.note_closed(known)

    def on_link_open(self, link: LinkId, now_ms: int) -> None:
        self.now_ms = now_ms
        self.links.on_link_open(link)

    def on_response(self, link: LinkId, frame: bytes, now_ms: int) -> None:
        self.now_ms = now_ms
        self.links.on_response(link, frame, now_ms)

    def on_link_closed(self, link: LinkId, reason: str, now_ms: int) -> None:
        self.now_ms = now_ms
        self.links.on_link_closed(link, reason, now_ms)

    def on_disk_done(self, job: DiskJob, now_ms: int) -> None:
        self.now_ms = now_ms
        job.done(job)

    def on_store(self, event: StoreEvent, now_ms: int) -> None:
        self.now_ms = now_ms
        self.metadata.on_store(event, now_ms)

    def end_turn(self, now_ms: int) -> None:
        self.now_ms = now_ms
        self.replicas.end_turn(now_ms)

    def tick(self, now_ms: int) -> None:
        self.now_ms = now_ms
        self.deadlines.run_due(now_ms)
        self.logs.tick(now_ms)

    def next_deadline_ms(self) -> int | None:
        deadline_ms = self.deadlines.next_ms()
        logs_ms = self.logs.next_deadline_ms()
        if deadline_ms is None or (logs_ms is not None and logs_ms < deadline_ms):
            return logs_ms
        return deadline_ms

    # -- what handlers ask for ---------------------------------------------------------------

    def answer(self, request: Request, response: object) -> None:
        """Answer a request that its handler had kept."""
        self.router.answer(request, response)

    def answer_nothing(self, request: Request) -> None:
        """Let the answers behind this request pass: its sender expects none (acks=0)."""
        request.connection.answer(request, ())

    def refuse(self, connection: Connection, reason: str, now_ms: int) -> None:
        """Close a connection for what it sent."""
        self.events.publish(ConnectionRefused(connection.id, connection.peer_host, reason), now_ms)
        self.close_connection(connection)

    def close_connection(self, connection: Connection) -> None:
        """Close after the answers that were sent; requests in flight are given up."""
        connection.note_closed()
        self.transport.close(connection.id)
