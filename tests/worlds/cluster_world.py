"""A cluster that controls itself in virtual time: brokers register, elect a controller, obey it."""

import json
from collections import defaultdict
from collections.abc import Sequence
from typing import Any

from barnabas.broker.controller_channels import ControlRequestSent
from barnabas.formats.wire.api_keys import ApiKey
from barnabas.formats.wire.generated.create_partitions import (
    CreatePartitionsAssignment,
    CreatePartitionsRequest,
    CreatePartitionsTopic,
)
from barnabas.formats.wire.generated.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from barnabas.formats.wire.generated.delete_topics import DeleteTopicsRequest, DeleteTopicState
from barnabas.formats.wire.generated.metadata import MetadataRequest, MetadataRequestTopic
from barnabas.model.error_codes import ErrorCode
from barnabas.model.znode import Create, Delete, GetChildren, Operation, SetData
from barnabas.zookeeper.machine import Applied, ZooKeeperMachine
from tests.worlds.memory_store import MemoryStore
from tests.worlds.virtual_world import BrokerHost, Client, VirtualWorld


class ClusterWorld(VirtualWorld):
    """Brokers, their store and a client for each question."""

    def __init__(self) -> None:
        super().__init__()
        self.written: list[tuple[tuple[Operation, ...], Operation]] = []
        """Every committed operation after the transaction that it was a part of."""
        self.writers: dict[str, int] = {}
        """The broker that last wrote a path."""
        self._freeze: tuple[MemoryStore | None, int] = (None, 0)
        self._apply = self.ensemble.apply
        self.ensemble.apply = self._apply_and_note  # type: ignore[method-assign]

    def _apply_and_note(
        self, link: MemoryStore, operations: Sequence[Operation], is_multi: bool
    ) -> Applied:
        applied = self._apply(link, operations, is_multi)
        written = tuple(operations)
        for operation, outcome in zip(operations, applied.outcomes, strict=True):
            if outcome.is_ok and isinstance(operation, Create | SetData | Delete):
                self.written.append((written if is_multi else (operation,), operation))
                self.writers[operation.path] = self._broker_of(link)
        frozen, left = self._freeze
        if link is frozen and applied.transactions:
            left -= len(applied.transactions)
            link.is_paused = left <= 0
            self._freeze = (link, left)
        return applied

    def _broker_of(self, link: MemoryStore) -> int:
        return next(host.broker_id for host in self.hosts.values() if host._store is link)

    def add_brokers(self, *broker_ids: int, **settings: str) -> None:
        """Start brokers one after the other and wait until all know of all."""
        for broker_id in broker_ids:
            self.add_host(broker_id, **settings).start_whole()
        self.run_until_controlled()

    def restart(self, broker_id: int) -> None:
        """A new process of a broker that was killed."""
        self.hosts[broker_id].start_whole()
        self.run_until_controlled()

    def crash(self, broker_id: int) -> None:
        """Kill a broker whose store is in its own process: its session ends with it."""
        host = self.hosts[broker_id]
        host._end()
        host.disk.kill_process()
        self.ensemble.close(host._store)

    def freeze_after(self, broker_id: int, transactions: int) -> None:
        """After so many transactions more nothing reaches the broker from the store or back."""
        self._freeze = (self.hosts[broker_id]._store, transactions)

    def is_frozen(self, broker_id: int) -> bool:
        return self.hosts[broker_id]._store.is_paused

    @property
    def machine(self) -> ZooKeeperMachine:
        return self.ensemble.machine

    @property
    def controller(self) -> BrokerHost:
        """The broker that is the controller now."""
        active = [h for h in self.hosts.values() if h.is_running and h.broker.controller.is_active]
        assert len(active) == 1, f"{len(active)} controllers"
        return active[0]

    def run_until_controlled(self) -> None:
        """Let time pass until every running broker was told of all of them by a controller."""
        running = [host for host in self.hosts.values() if host.is_running]
        ids = sorted(host.broker_id for host in running)

        def knows_all(host: BrokerHost) -> bool:
            return [one.broker_id for one in host.broker.metadata_cache.live_brokers()] == ids

        self.run_until(lambda: all(knows_all(host) for host in running))

    def data(self, path: str) -> Any:
        """The JSON of a znode; None when there is no such node."""
        node = self.machine.tree.node(path)
        if node is None:
            return None
        return json.loads(node.data) if node.data else {}

    def children(self, path: str) -> list[str]:
        return sorted(self.machine.tree.read(GetChildren(path)).children)

    def ask(self, api_key: ApiKey, version: int, body: Any, at: int | None = None) -> Any:
        """Ask a broker, the controller unless another is named."""
        broker_id = self.controller.broker_id if at is None else at
        client: Client = self.client(broker_id)
        answer = client.call(api_key, version, body)
        client.close()
        return answer

    # -- what clients ask for ----------------------------------------------------------------

    def create(
        self,
        name: str,
        partitions: int = -1,
        replicas: int = -1,
        *,
        assignments: list[list[int]] | None = None,
        given: Sequence[tuple[int, list[int]]] = (),
        configs: dict[str, str | None] | None = None,
        timeout_ms: int = 5_000,
        is_validation: bool = False,
        at: int | None = None,
        version: int = 7,
    ) -> Any:
        """CreateTopics for one topic; its result."""
        topic = CreatableTopic(
            name=name,
            num_partitions=partitions,
            replication_factor=replicas,
            assignments=[
                CreatableReplicaAssignment(partition_index=number, broker_ids=brokers)
                for number, brokers in (given or enumerate(assignments or []))
            ],
            configs=[
                CreatableTopicConfig(name=key, value=value)
                for key, value in (configs or {}).items()
            ],
        )
        body = CreateTopicsRequest(
            topics=[topic], timeout_ms=timeout_ms, validate_only=is_validation
        )
        return self.ask(ApiKey.CREATE_TOPICS, version, body, at).topics[0]

    def grow(
        self,
        name: str,
        count: int,
        assignments: list[list[int]] | None = None,
        *,
        timeout_ms: int = 5_000,
        is_validation: bool = False,
        at: int | None = None,
    ) -> Any:
        """CreatePartitions for one topic; its result."""
        body = self.growth(name, count, assignments)
        body.timeout_ms, body.validate_only = timeout_ms, is_validation
        return self.ask(ApiKey.CREATE_PARTITIONS, 3, body, at).results[0]

    def growth(
        self, name: str, count: int, assignments: list[list[int]] | None = None
    ) -> CreatePartitionsRequest:
        """The request to grow a topic."""
        given = None
        if assignments is not None:
            given = [CreatePartitionsAssignment(broker_ids=brokers) for brokers in assignments]
        return CreatePartitionsRequest(
            topics=[CreatePartitionsTopic(name=name, count=count, assignments=given)],
            timeout_ms=5_000,
        )

    def delete(
        self,
        name: str | None = None,
        *,
        topic_id: bytes = bytes(16),
        timeout_ms: int = 5_000,
        at: int | None = None,
        version: int = 6,
    ) -> Any:
        """DeleteTopics for one topic; its result."""
        body = DeleteTopicsRequest(timeout_ms=timeout_ms)
        if version < 6:
            body.topic_names = [name or ""]
        else:
            body.topics = [DeleteTopicState(name=name, topic_id=topic_id)]
        return self.ask(ApiKey.DELETE_TOPICS, version, body, at).responses[0]

    def metadata(self, *names: str, at: int, allow: bool = True) -> dict[str, ErrorCode]:
        """Metadata of topics; the error of each."""
        body = MetadataRequest(
            topics=[MetadataRequestTopic(name=name) for name in names],
            allow_auto_topic_creation=allow,
        )
        answer = self.ask(ApiKey.METADATA, 12, body, at)
        return {topic.name: ErrorCode(topic.error_code) for topic in answer.topics}

    # -- what was sent -----------------------------------------------------------------------

    def sent(self, by: int) -> dict[int, list[str]]:
        """The control requests that a broker sent, by receiver."""
        found: dict[int, list[str]] = defaultdict(list)
        for event in self.hosts[by].told.of(ControlRequestSent):
            found[event.broker_id].append(event.api)
        return dict(found)
