"""One whole broker in virtual time: it registers, is its own controller, and serves clients."""

from typing import Any

import pytest

from barnabas.broker.topic_configs import TopicSettingUnhonoured
from barnabas.formats.wire.api_keys import ApiKey
from barnabas.formats.wire.generated.create_topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from barnabas.formats.wire.generated.delete_topics import DeleteTopicsRequest
from barnabas.formats.wire.generated.init_producer_id import InitProducerIdRequest
from barnabas.formats.wire.generated.metadata import MetadataRequest, MetadataRequestTopic
from barnabas.model.error_codes import ErrorCode
from barnabas.model.ids import TopicId
from tests.behaviours import behaviour
from tests.worlds.requests import batch, fetch_request, produce_request, produced, values_of
from tests.worlds.virtual_world import BrokerHost, VirtualWorld


class Whole(VirtualWorld):
    def __init__(self, **settings: str) -> None:
        super().__init__()
        self.host: BrokerHost = self.add_host(1, **settings)
        self.host.start_whole()

    def metadata(self, topic: str) -> Any:
        body = MetadataRequest(topics=[MetadataRequestTopic(name=topic)])
        (answer,) = self.client(1).call(ApiKey.METADATA, 12, body).topics
        return answer

    def create(self, topic: str) -> TopicId:
        """Ask for a topic until it has a leader, as clients do."""
        for _ in range(10):
            answer = self.metadata(topic)
            if answer.error_code == ErrorCode.NONE and answer.partitions[0].leader_id == 1:
                return answer.topic_id
            self.run(100)
        raise AssertionError(f"{topic} has no leader: {answer}")

    def produce(self, topic: str, *values: bytes, **producer: int) -> tuple[int, int]:
        body = produce_request(topic, {0: batch(values, **producer)})
        answer = produced(self.client(1).call(ApiKey.PRODUCE, 11, body))
        return answer.error_code, answer.base_offset

    def consume(self, topic: str, topic_id: TopicId) -> list[bytes | None]:
        body = fetch_request(topic, {0: 0}, topic_id=topic_id)
        (answer,) = self.client(1).call(ApiKey.FETCH, 17, body).responses
        return values_of(answer.partitions[0])

    def producer_id(self, transactional_id: str | None = None) -> tuple[int, int, int]:
        body = InitProducerIdRequest(transactional_id=transactional_id)
        answer = self.client(1).call(ApiKey.INIT_PRODUCER_ID, 5, body)
        return answer.error_code, answer.producer_id, answer.producer_epoch


@pytest.fixture
def world() -> Whole:
    return Whole()


@behaviour("C4", "C9")
def test_a_topic_asked_for_is_created_and_can_be_used(world: Whole) -> None:
    assert world.metadata("t").error_code == ErrorCode.LEADER_NOT_AVAILABLE
    topic_id = world.create("t")
    assert world.produce("t", b"a", b"b") == (0, 0)
    assert world.consume("t", topic_id) == [b"a", b"b"]


def test_a_topic_that_asks_for_compaction_is_told_of_once_and_never_refused(world: Whole) -> None:
    for name, policy in (("a", "compact"), ("b", "delete"), ("c", "compact,delete")):
        config = CreatableTopicConfig(name="cleanup.policy", value=policy)
        topic = CreatableTopic(name=name, num_partitions=3, replication_factor=1, configs=[config])
        answer = world.client(1).call(ApiKey.CREATE_TOPICS, 7, CreateTopicsRequest(topics=[topic]))
        assert answer.topics[0].error_code == ErrorCode.NONE
        world.create(name)
    world.run(60_000)
    told = world.host.told.of(TopicSettingUnhonoured)
    assert [(one.setting, one.topics) for one in told] == [
        ("cleanup.policy=compact", ("a",)),
        ("cleanup.policy=compact,delete", ("c",)),
    ]
    assert "nothing is compacted yet" in told[0].reason
    world.host.kill()
    world.run(20_000)
    world.host.start_whole()
    world.create("a")
    assert len(world.host.told.of(TopicSettingUnhonoured)) == 4


def test_what_was_acknowledged_survives_a_kill(world: Whole) -> None:
    topic_id = world.create("t")
    assert world.produce("t", b"a") == (0, 0)
    world.host.kill()
    world.run(20_000)
    world.host.start_whole()
    assert world.create("t") == topic_id
    assert world.consume("t", topic_id) == [b"a"]
    assert world.produce("t", b"b") == (0, 1)


def test_producer_ids_are_given_once_also_across_a_kill(world: Whole) -> None:
    world.create("t")
    error, first, epoch = world.producer_id()
    assert (error, epoch) == (0, 0)
    error, second, _ = world.producer_id()
    assert second != first
    assert world.produce("t", b"a", producer_id=first, producer_epoch=0, base_sequence=0) == (0, 0)
    assert world.produce("t", b"a", producer_id=first, producer_epoch=0, base_sequence=0) == (0, 0)
    world.host.kill()
    world.run(20_000)
    world.host.start_whole()
    _, third, _ = world.producer_id()
    assert third not in (first, second)
    world.create("t")
    again = world.produce("t", b"a", producer_id=first, producer_epoch=0, base_sequence=0)
    assert again == (0, 0)
    assert world.produce("t", b"b", producer_id=first, producer_epoch=0, base_sequence=1) == (0, 1)


def test_a_transactional_id_is_refused_for_good_and_a_broken_request_too(world: Whole) -> None:
    refused = (ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED, -1, -1)
    assert world.producer_id("tx") == refused
    assert world.producer_id("") == (ErrorCode.INVALID_REQUEST, -1, -1)
    body = InitProducerIdRequest(transactional_id=None, producer_id=5, producer_epoch=-1)
    answer = world.client(1).call(ApiKey.INIT_PRODUCER_ID, 5, body)
    assert answer.error_code == ErrorCode.INVALID_REQUEST


@behaviour("D16", "S7")
def test_a_deleted_topic_is_unknown_and_its_log_is_renamed(world: Whole) -> None:
    world.create("t")
    world.produce("t", b"a")
    body = DeleteTopicsRequest(topic_names=["t"], timeout_ms=10_000)
    (answer,) = world.client(1).call(ApiKey.DELETE_TOPICS, 5, body).responses
    assert answer.error_code == ErrorCode.NONE
    world.run(1000)
    assert world.produce("t", b"b")[0] == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    names = {path.split("/")[0] for path in world.host.disk.snapshot("/logs")}
    assert "t-0" not in names
    assert any(name.startswith("t-0.") and name.endswith("-delete") for name in names)


def test_a_clean_stop_leaves_nothing_to_recover(world: Whole) -> None:
    topic_id = world.create("t")
    world.produce("t", b"a")
    world.host.broker.stop(world.now_ms)
    world.run(10)
    assert ".kafka_cleanshutdown" in world.host.disk.snapshot("/logs")
    world.host.kill()
    world.run(20_000)
    world.host.start_whole()
    assert world.create("t") == topic_id
    assert world.consume("t", topic_id) == [b"a"]
