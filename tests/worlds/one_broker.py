"""One broker that leads a few partitions alone, and a client to talk to it."""

from typing import Any

from barnabas.broker.broker import Broker
from barnabas.broker.partition import Partition
from barnabas.formats.wire.api_keys import ApiKey
from barnabas.formats.wire.generated.fetch import FetchResponse, PartitionData
from barnabas.formats.wire.generated.produce import PartitionProduceResponse
from barnabas.model.ids import TopicId
from barnabas.storage.partition_log import PartitionLog
from tests.worlds.requests import batch, fetch_request, produce_request, produced
from tests.worlds.virtual_world import BrokerHost, Client, VirtualWorld, plan

TOPIC = "t"
TOPIC_ID = TopicId(b"\x0b" * 16)


class OneLeader(VirtualWorld):
    """Broker 1 leads t-0, t-1 and t-2; the topic may have settings of its own."""

    def __init__(self, overrides: dict[str, str] | None = None, **settings: str) -> None:
        super().__init__()
        self.host: BrokerHost = self.add_broker(1, **settings)
        self.lead(0, overrides)

    def lead(self, leader_epoch: int, overrides: dict[str, str] | None = None) -> None:
        decision = {index: plan(1, leader_epoch, (1,), (1,)) for index in range(3)}
        self.tell_metadata(1, TOPIC, TOPIC_ID, decision, [1])
        self.tell_leader(1, TOPIC, TOPIC_ID, decision, is_new=leader_epoch == 0)
        if overrides:
            self.broker.topic_configs.apply(TOPIC, overrides, self.now_ms)
        self._client: Client | None = None

    @property
    def broker(self) -> Broker:
        return self.host.broker

    @property
    def asking(self) -> Client:
        """A connection that is used again while it lasts."""
        if self._client is None or self._client.closed_reason:
            self._client = self.client(1)
        return self._client

    def partition(self, index: int = 0) -> Partition:
        partition = self.broker.replicas.find(TOPIC, index)
        assert partition is not None
        return partition

    def log(self, index: int = 0) -> PartitionLog:
        log = self.partition(index).log
        assert log is not None
        return log

    def produce(
        self, data: bytes | None, *, version: int = 11, index: int = 0, **how: Any
    ) -> PartitionProduceResponse:
        body = produce_request(TOPIC, {index: data}, **how)
        return produced(self.asking.call(ApiKey.PRODUCE, version, body))

    def write(self, *values: bytes, index: int = 0) -> int:
        """Produce records of these values; the offset of the first."""
        answer = self.produce(batch(values), index=index)
        assert answer.error_code == 0
        return answer.base_offset

    def fetch_all(self, offsets: dict[int, int], *, version: int = 17, **how: Any) -> FetchResponse:
        topic_id = TOPIC_ID if version >= 13 else TopicId(bytes(16))
        body = fetch_request(TOPIC, offsets, topic_id=topic_id, version=version, **how)
        return self.asking.call(ApiKey.FETCH, version, body)

    def fetch(self, offset: int = 0, *, index: int = 0, **how: Any) -> PartitionData:
        (topic,) = self.fetch_all({index: offset}, **how).responses
        (answer,) = topic.partitions
        return answer
