"""What UpdateMetadata leaves in the cache: merged partitions, replaced brokers, ids."""

from barnabas.broker.metadata_cache import CacheUpdate, MetadataCache, Node, PartitionUpdate
from barnabas.formats.wire.generated.update_metadata import (
    UpdateMetadataBroker,
    UpdateMetadataEndpoint,
    UpdateMetadataPartitionState,
)
from barnabas.model.ids import NO_TOPIC_ID, BrokerId, TopicId, TopicPartition
from tests.behaviours import behaviour

ID_A = TopicId(b"a" * 16)
ID_B = TopicId(b"b" * 16)


def state(partition: int, leader: int, leader_epoch: int = 0) -> UpdateMetadataPartitionState:
    return UpdateMetadataPartitionState(
        partition_index=partition, leader=BrokerId(leader), leader_epoch=leader_epoch, isr=[1]
    )


def broker(broker_id: int, *listeners: str, rack: str | None = None) -> UpdateMetadataBroker:
    return UpdateMetadataBroker(
        id=BrokerId(broker_id),
        rack=rack,
        endpoints=[
            UpdateMetadataEndpoint(host=f"host{broker_id}", port=9000 + n, listener=name)
            for n, name in enumerate(listeners or ("PLAINTEXT",))
        ],
    )


def apply(
    cache: MetadataCache,
    *partitions: tuple[str, UpdateMetadataPartitionState],
    brokers: list[UpdateMetadataBroker] | None = None,
    ids: dict[str, TopicId] | None = None,
    controller: int = 1,
) -> CacheUpdate:
    return cache.apply(
        BrokerId(controller),
        brokers if brokers is not None else [broker(1)],
        list((ids or {}).items()),
        [PartitionUpdate(topic, told) for topic, told in partitions],
        now_ms=0,
    )


def test_a_partition_stays_as_told_until_it_is_told_again() -> None:
    cache = MetadataCache()
    apply(cache, ("a", state(0, 1)), ("a", state(1, 2)), ids={"a": ID_A})
    apply(cache, ("a", state(1, 3, leader_epoch=4)))
    assert cache.partition("a", 0) == state(0, 1)
    assert cache.partition("a", 1) == state(1, 3, leader_epoch=4)
    assert cache.topic_id("a") == ID_A


@behaviour("D16", "K1")
def test_leader_minus_two_takes_a_partition_away_and_the_topic_with_its_last() -> None:
    cache = MetadataCache()
    apply(cache, ("a", state(0, 1)), ("a", state(1, 1)), ids={"a": ID_A})
    assert apply(cache, ("a", state(0, -2))).deleted == (TopicPartition("a", 0),)
    assert cache.contains("a", 1)
    assert not cache.contains("a", 0)
    apply(cache, ("a", state(1, -2)), ids={"a": ID_A})
    assert cache.topic("a") is None
    assert cache.topic_name(ID_A) is None
    assert cache.topic_id("a") == NO_TOPIC_ID


def test_a_leaderless_partition_is_kept() -> None:
    cache = MetadataCache()
    apply(cache, ("a", state(0, -1)))
    assert cache.contains("a", 0)


@behaviour("N11")
def test_an_update_without_partitions_replaces_the_brokers_and_nothing_else() -> None:
    cache = MetadataCache()
    apply(cache, ("a", state(0, 1)), brokers=[broker(1), broker(2)])
    apply(cache, brokers=[broker(3)], controller=3)
    assert [live.broker_id for live in cache.live_brokers()] == [3]
    assert not cache.is_alive(BrokerId(1))
    assert cache.controller_id == 3
    assert cache.contains("a", 0)


def test_every_update_replaces_the_brokers() -> None:
    cache = MetadataCache()
    apply(cache, brokers=[broker(1), broker(2)])
    apply(cache, ("a", state(0, 1)), brokers=[broker(2)])
    assert not cache.is_alive(BrokerId(1))
    assert cache.is_alive(BrokerId(2))


def test_no_controller_is_no_broker() -> None:
    cache = MetadataCache()
    apply(cache, controller=-1)
    assert cache.controller_id == -1


def test_a_listener_sees_only_the_brokers_that_have_it() -> None:
    cache = MetadataCache()
    apply(cache, brokers=[broker(2, "OUT", "IN", rack="r"), broker(1, "IN")])
    assert cache.nodes("IN") == [
        Node(BrokerId(1), "host1", 9000, None),
        Node(BrokerId(2), "host2", 9001, "r"),
    ]
    assert [node.broker_id for node in cache.nodes("OUT")] == [2]
    assert cache.node(BrokerId(1), "OUT") is None
    assert cache.node(BrokerId(9), "IN") is None


def test_a_topic_created_again_has_the_new_id_alone() -> None:
    cache = MetadataCache()
    apply(cache, ("a", state(0, 1)), ids={"a": ID_A})
    apply(cache, ("a", state(0, 1)), ids={"a": ID_B})
    assert cache.topic_name(ID_A) is None
    assert cache.topic_name(ID_B) == "a"


def test_an_id_of_zeros_withdraws_the_id() -> None:
    cache = MetadataCache()
    apply(cache, ("a", state(0, 1)), ids={"a": ID_A})
    apply(cache, ("a", state(0, 1)), ids={"a": NO_TOPIC_ID})
    assert cache.topic_id("a") == NO_TOPIC_ID
    assert cache.topic_name(ID_A) is None
    apply(cache, ("a", state(0, 1)), ids={"a": ID_A})
    assert cache.topic_name(ID_A) == "a"


def test_those_who_wait_learn_what_was_touched() -> None:
    cache = MetadataCache()
    seen: list[CacheUpdate] = []
    cache.on_update(lambda update, now_ms: seen.append(update))
    apply(cache, ("b", state(0, 1)), ("a", state(0, 1)), ("b", state(1, -2)))
    assert seen == [CacheUpdate(("b", "a"), (TopicPartition("b", 1),))]


def test_a_partition_deleted_and_told_again_in_one_update_is_there() -> None:
    cache = MetadataCache()
    update = apply(cache, ("a", state(0, -2)), ("a", state(0, 1)))
    assert update.deleted == ()
    assert cache.contains("a", 0)
