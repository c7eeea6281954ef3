"""Metadata, DescribeCluster and InitProducerId: what clients are told, in every version."""

from typing import Any

import pytest

from barnabas.broker.handlers.metadata import CLUSTER_OPERATIONS, TOPIC_OPERATIONS
from barnabas.broker.metadata_cache import PartitionUpdate
from barnabas.formats.wire.api_keys import ApiKey
from barnabas.formats.wire.generated.describe_cluster import DescribeClusterRequest
from barnabas.formats.wire.generated.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
)
from barnabas.formats.wire.generated.update_metadata import (
    UpdateMetadataBroker,
    UpdateMetadataEndpoint,
    UpdateMetadataPartitionState,
)
from barnabas.model.error_codes import ErrorCode
from barnabas.model.ids import NO_TOPIC_ID, BrokerId, TopicId
from tests.behaviours import behaviour
from tests.worlds.virtual_world import VirtualWorld

ID = TopicId(b"\x0e" * 16)
INTERNAL_ID = TopicId(b"\x0f" * 16)
UNKNOWN_ID = TopicId(b"\x10" * 16)


class Known(VirtualWorld):
    """Broker 1 was told of topic t on brokers 1, 2 and 3, of which 3 is dead."""

    def __init__(self, **settings: str) -> None:
        super().__init__()
        self.host = self.add_broker(1, **settings)
        self.broker = self.host.broker
        self.told_live([1, 2])

    def told_live(self, live: list[int], listeners: dict[int, str] | None = None) -> None:
        def state(index: int, leader: int, isr: list[int]) -> UpdateMetadataPartitionState:
            return UpdateMetadataPartitionState(
                partition_index=index,
                leader=BrokerId(leader),
                leader_epoch=7,
                isr=isr,
                replicas=[1, 2, 3],
                offline_replicas=[3],
            )

        self.broker.metadata_cache.apply(
            BrokerId(2),
            [
                UpdateMetadataBroker(
                    id=BrokerId(broker_id),
                    rack=f"rack{broker_id}",
                    endpoints=[
                        UpdateMetadataEndpoint(
                            host=f"host{broker_id}",
                            port=9000 + broker_id,
                            listener=(listeners or {}).get(broker_id, "PLAINTEXT"),
                        )
                    ],
                )
                for broker_id in live
            ],
            [("t", ID), ("__consumer_offsets", INTERNAL_ID)],
            [
                PartitionUpdate("t", state(1, 2, [1, 2])),
                PartitionUpdate("t", state(0, 1, [1, 2])),
                PartitionUpdate("__consumer_offsets", state(0, 1, [1])),
            ],
            self.now_ms,
        )

    def ask(
        self, topics: list[MetadataRequestTopic] | None, version: int = 12, **how: Any
    ) -> MetadataResponse:
        body = MetadataRequest(topics=topics, **how)
        return self.client(1).call(ApiKey.METADATA, version, body)

    def ask_for(self, *names: str, version: int = 12, **how: Any) -> MetadataResponse:
        return self.ask([MetadataRequestTopic(name=name) for name in names], version, **how)


@pytest.fixture
def world() -> Known:
    return Known()


@pytest.mark.parametrize("version", range(13))
def test_every_version_tells_brokers_topics_and_leaders(world: Known, version: int) -> None:
    response = world.ask_for("t", version=version)
    assert [(b.node_id, b.host, b.port) for b in response.brokers] == [
        (1, "host1", 9001),
        (2, "host2", 9002),
    ]
    assert response.brokers[0].rack == ("rack1" if version >= 1 else None)
    assert response.controller_id == (2 if version >= 1 else -1)
    assert response.cluster_id == ("virtual-cluster-id" if version >= 2 else None)
    (topic,) = response.topics
    assert (topic.error_code, topic.name) == (0, "t")
    assert topic.topic_id == (ID if version >= 10 else NO_TOPIC_ID)
    assert [(p.partition_index, p.leader_id) for p in topic.partitions] == [(0, 1), (1, 2)]
    first = topic.partitions[0]
    assert first.leader_epoch == (7 if version >= 7 else -1)
    assert first.offline_replicas == ([3] if version >= 5 else [])


class TestFlagsOfC6:
    @behaviour("C6")
    def test_version_0_leaves_out_dead_replicas_and_says_so(self, world: Known) -> None:
        (topic,) = world.ask_for("t", version=0).topics
        first = topic.partitions[0]
        assert first.error_code == ErrorCode.REPLICA_NOT_AVAILABLE
        assert (first.leader_id, first.replica_nodes, first.isr_nodes) == (1, [1, 2], [1, 2])

    @behaviour("C6")
    def test_version_0_says_so_for_a_dead_member_of_the_isr(self, world: Known) -> None:
        world.told_live([1, 3])
        (topic,) = world.ask_for("t", version=0).topics
        assert topic.partitions[0].error_code == ErrorCode.REPLICA_NOT_AVAILABLE
        assert topic.partitions[0].isr_nodes == [1]

    @behaviour("C6")
    def test_later_versions_tell_all_replicas_without_an_error(self, world: Known) -> None:
        (topic,) = world.ask_for("t", version=1).topics
        first = topic.partitions[0]
        assert (first.error_code, first.replica_nodes) == (ErrorCode.NONE, [1, 2, 3])

    @behaviour("C6")
    @pytest.mark.parametrize("version", [0, 5, 6, 12])
    def test_a_dead_leader_is_not_available(self, world: Known, version: int) -> None:
        world.told_live([1])
        (topic,) = world.ask_for("t", version=version).topics
        second = topic.partitions[1]
        assert (second.error_code, second.leader_id) == (ErrorCode.LEADER_NOT_AVAILABLE, -1)

    @behaviour("C6")
    @pytest.mark.parametrize(
        ("version", "error"),
        [(5, ErrorCode.LEADER_NOT_AVAILABLE), (6, ErrorCode.LISTENER_NOT_FOUND)],
    )
    def test_a_leader_without_the_listener_that_was_asked(
        self, world: Known, version: int, error: ErrorCode
    ) -> None:
        world.told_live([1, 2], {2: "INTERNAL"})
        response = world.ask_for("t", version=version)
        assert [b.node_id for b in response.brokers] == [1]
        second = response.topics[0].partitions[1]
        assert (second.error_code, second.leader_id) == (error, -1)

    @behaviour("C6", "C4")
    def test_a_topic_that_may_not_be_created_is_unknown_or_invalid(self, world: Known) -> None:
        response = world.ask_for("new", "bad name", allow_auto_topic_creation=False)
        assert [(t.name, t.error_code) for t in response.topics] == [
            ("new", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
            ("bad name", ErrorCode.INVALID_TOPIC_EXCEPTION),
        ]


class TestWhichTopics:
    def test_all_topics_by_null_and_in_version_0_by_none_named(self, world: Known) -> None:
        for response in (world.ask(None), world.ask(None, 1), world.ask([], 0)):
            assert [t.name for t in response.topics] == ["__consumer_offsets", "t"]
        assert world.ask([], 1).topics == []

    def test_internal_topics_are_marked(self, world: Known) -> None:
        assert [t.is_internal for t in world.ask(None).topics] == [True, False]

    def test_a_topic_named_twice_is_told_once(self, world: Known) -> None:
        assert len(world.ask_for("t", "t").topics) == 1

    def test_topics_by_id(self, world: Known) -> None:
        asked = [
            MetadataRequestTopic(topic_id=ID, name=None),
            MetadataRequestTopic(topic_id=UNKNOWN_ID, name=None),
        ]
        response = world.ask(asked)
        assert [(t.name, t.topic_id, t.error_code) for t in response.topics] == [
            (None, UNKNOWN_ID, ErrorCode.UNKNOWN_TOPIC_ID),
            ("t", ID, ErrorCode.NONE),
        ]

    @pytest.mark.parametrize("version", [10, 11])
    def test_ids_and_null_names_are_refused_before_version_12(
        self, world: Known, version: int
    ) -> None:
        for asked in (
            MetadataRequestTopic(topic_id=ID, name="t"),
            MetadataRequestTopic(name=None),
        ):
            (topic,) = world.ask([asked], version).topics
            assert topic.error_code == ErrorCode.INVALID_REQUEST
            assert topic.partitions == []

    @pytest.mark.parametrize("version", range(8, 13))
    def test_allowed_operations_are_told_to_those_who_ask(self, world: Known, version: int) -> None:
        how: dict[str, Any] = {"include_topic_authorized_operations": True}
        if version <= 10:
            how["include_cluster_authorized_operations"] = True
        response = world.ask_for("t", version=version, **how)
        assert response.topics[0].topic_authorized_operations == TOPIC_OPERATIONS
        if version <= 10:
            assert response.cluster_authorized_operations == CLUSTER_OPERATIONS
        assert world.ask_for("t", version=version).topics[0].topic_authorized_operations < 0


class TestAutomaticCreation:
    """Whether it is asked for at all; what it then does is the administration's part."""

    class Administration:
        def __init__(self) -> None:
            self.wanted: list[list[str]] = []

        def create_automatically(self, topics: list[str], then: Any, request: Any) -> None:
            self.wanted.append(list(topics))
            then(dict.fromkeys(topics, ErrorCode.LEADER_NOT_AVAILABLE), 5)

    def with_administration(self, **settings: str) -> tuple[Known, "Administration"]:
        world = Known(**settings)
        administration = self.Administration()
        world.broker.administration = administration  # type: ignore[assignment]
        return world, administration

    @behaviour("C4", "C8")
    @pytest.mark.parametrize("version", [0, 3, 4, 12])
    def test_a_missing_topic_is_created_and_its_leader_not_available_yet(
        self, version: int
    ) -> None:
        world, administration = self.with_administration()
        response = world.ask_for("t", "new", version=version)
        assert administration.wanted == [["new"]]
        assert [(t.name, t.error_code) for t in response.topics] == [
            ("t", ErrorCode.NONE),
            ("new", ErrorCode.LEADER_NOT_AVAILABLE),
        ]

    @behaviour("C4")
    def test_not_when_the_broker_forbids_it(self) -> None:
        world, administration = self.with_administration(auto_create_topics_enable="false")
        (topic,) = world.ask_for("new").topics
        assert topic.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        assert administration.wanted == []

    @behaviour("C4")
    def test_not_when_the_request_forbids_it_or_asks_for_all(self) -> None:
        world, administration = self.with_administration()
        world.ask_for("new", allow_auto_topic_creation=False)
        world.ask(None)
        assert administration.wanted == []


class TestDescribeCluster:
    def ask(self, world: Known, version: int, **how: Any) -> Any:
        body = DescribeClusterRequest(**how)
        return world.client(1).call(ApiKey.DESCRIBE_CLUSTER, version, body)

    @pytest.mark.parametrize("version", [0, 1])
    def test_the_live_brokers_and_the_controller(self, world: Known, version: int) -> None:
        answer = self.ask(world, version, include_cluster_authorized_operations=True)
        assert (answer.error_code, answer.cluster_id) == (0, "virtual-cluster-id")
        assert answer.controller_id == 2
        assert [(b.broker_id, b.host, b.port, b.rack) for b in answer.brokers] == [
            (1, "host1", 9001, "rack1"),
            (2, "host2", 9002, "rack2"),
        ]
        assert answer.cluster_authorized_operations == CLUSTER_OPERATIONS

    def test_a_controller_that_is_not_alive_is_not_told(self, world: Known) -> None:
        world.told_live([1])
        assert self.ask(world, 1).controller_id == -1

    @pytest.mark.parametrize(
        ("kind", "error"),
        [(2, ErrorCode.MISMATCHED_ENDPOINT_TYPE), (9, ErrorCode.UNSUPPORTED_ENDPOINT_TYPE)],
    )
    def test_other_end_points_are_not_here(self, world: Known, kind: int, error: ErrorCode) -> None:
        answer = self.ask(world, 1, endpoint_type=kind)
        assert answer.error_code == error
        assert answer.brokers == []
