"""The log of config changes: followed in order, read once, swept when old."""

from types import SimpleNamespace
from typing import Any

from barnabas.broker.dynamic_configs import (
    CHANGE_EXPIRATION_MS,
    RETRY_AFTER_MS,
    ConfigChangeIgnored,
    ConfigChangeUnreadable,
    DynamicConfigs,
    TopicConfigChanged,
)
from barnabas.formats.znodes.configs import CONFIG_CHANGE_PREFIX, ConfigChange
from barnabas.model.znode import Create, CreateMode, SetData
from tests.worlds.store_world import StoreWorld, events_of


def make(world: StoreWorld, *hosted: str) -> tuple[Any, DynamicConfigs, list[tuple[str, dict]]]:
    broker = world.add_broker(1)
    applied: list[tuple[str, dict]] = []
    broker.unclean = []
    broker.replicas = SimpleNamespace(partitions_of=lambda topic: [1] if topic in hosted else [])
    broker.topic_configs = SimpleNamespace(
        apply=lambda topic, overrides, _: applied.append((topic, dict(overrides)))
    )
    broker.loads = []
    broker.broker_configs = SimpleNamespace(load=broker.loads.append)
    broker.controller = SimpleNamespace(
        note_unclean_election_enabled=lambda topic, _: broker.unclean.append(topic)
    )
    return broker, DynamicConfigs(broker), applied


def world_with_paths() -> StoreWorld:
    world = StoreWorld()
    world.do(Create("/config"), Create("/config/changes"), Create("/config/topics"))
    return world


def change(world: StoreWorld, entity: str, data: bytes | None = None) -> None:
    """Write settings and the note that they were written."""
    if data is not None:
        created = world.do(Create(f"/config/{entity}", data))
        if not created[0].is_ok:
            world.do(SetData(f"/config/{entity}", data))
    note = ConfigChange(entity).to_bytes()
    world.do(Create(CONFIG_CHANGE_PREFIX, note, CreateMode.PERSISTENT_SEQUENTIAL))


def config(**settings: str) -> bytes:
    members = ",".join(f'"{k.replace("_", ".")}":"{v}"' for k, v in settings.items())
    return f'{{"version":1,"config":{{{members}}}}}'.encode()


def test_changes_before_and_after_the_start_are_followed_once():
    world = world_with_paths()
    change(world, "topics/t", config(retention_ms="1"))
    broker, configs, applied = make(world, "t")
    configs.start(0)
    world.run()
    assert applied == [("t", {"retention.ms": "1"})]
    change(world, "topics/t", config(retention_ms="2"))
    change(world, "topics/elsewhere", config(retention_ms="3"))
    world.run()
    assert applied == [("t", {"retention.ms": "1"}), ("t", {"retention.ms": "2"})]
    assert events_of(broker, TopicConfigChanged) == [TopicConfigChanged("t")] * 2


def test_settings_that_were_emptied_are_the_brokers_again():
    world = world_with_paths()
    _broker, configs, applied = make(world, "t", "gone")
    configs.start(0)
    change(world, "topics/t", b'{"version":1,"config":{}}')
    change(world, "topics/gone")
    world.run()
    assert sorted(applied) == [("gone", {}), ("t", {})]


def test_unclean_election_reaches_the_controller_also_for_topics_elsewhere():
    world = world_with_paths()
    broker, configs, _ = make(world)
    configs.start(0)
    change(world, "topics/t", config(unclean_leader_election_enable="true"))
    change(world, "topics/u", config(unclean_leader_election_enable="false"))
    world.run()
    assert broker.unclean == ["t"]


def test_what_cannot_be_followed_is_told_by_name():
    world = world_with_paths()
    world.do(Create("/config/clients"), Create("/config/users"))
    broker, configs, applied = make(world, "t")
    configs.start(0)
    change(world, "users/u%401", config(producer_byte_rate="1"))
    change(world, "clients/c", config(producer_byte_rate="1"))
    world.do(
        Create(CONFIG_CHANGE_PREFIX, b"nonsense", CreateMode.PERSISTENT_SEQUENTIAL),
        Create("/config/changes/stray", b"{}"),
    )
    change(world, "topics/t", b'{"version":1,"config":{"retention.ms":5}}')
    world.run()
    assert events_of(broker, ConfigChangeIgnored) == [
        ConfigChangeIgnored("users/u%401"),
        ConfigChangeIgnored("clients/c"),
    ]
    unreadable = [one.path for one in events_of(broker, ConfigChangeUnreadable)]
    assert "/config/changes/config_change_0000000002" in unreadable
    assert "/config/changes/stray" in unreadable
    assert "/config/topics/t" in unreadable
    assert applied == []


def test_a_brokers_own_settings_and_those_for_all_are_read_again_not_those_of_others():
    world = world_with_paths()
    world.do(Create("/config/brokers"))
    broker, configs, _ = make(world)
    configs.start(0)
    for entity, loads in (("brokers/<default>", 1), ("brokers/1", 2), ("brokers/2", 2)):
        change(world, entity, config(log_retention_ms="1"))
        world.run()
        assert len(broker.loads) == loads
    assert events_of(broker, ConfigChangeIgnored) == []
    broker.loads[-1](False, world.now_ms)
    world.run(RETRY_AFTER_MS, broker)
    assert len(broker.loads) == 3, "it could not be read, so it is read again"


def test_notes_older_than_a_quarter_of_an_hour_are_swept_with_the_next_change():
    world = world_with_paths()
    broker, configs, _ = make(world)
    configs.start(0)
    change(world, "topics/a")
    world.run(CHANGE_EXPIRATION_MS // 2, broker)
    change(world, "topics/b")
    world.run(CHANGE_EXPIRATION_MS // 2 + 1, broker)
    assert world.exists("/config/changes/config_change_0000000000")
    change(world, "topics/c")
    world.run()
    assert not world.exists("/config/changes/config_change_0000000000")
    assert world.exists("/config/changes/config_change_0000000001")
    assert world.exists("/config/changes/config_change_0000000002")


def test_a_cut_link_is_waited_for():
    world = world_with_paths()
    broker, configs, applied = make(world, "t")
    configs.start(0)
    world.run()
    broker.store.disconnect()
    change(world, "topics/t", config(retention_ms="1"))
    world.run()
    assert applied == []
    broker.store.restore()
    world.run(RETRY_AFTER_MS, broker)
    assert applied == [("t", {"retention.ms": "1"})]


def test_stopped_it_follows_nothing_and_started_again_it_has_missed_nothing():
    world = world_with_paths()
    broker, configs, applied = make(world, "t")
    configs.start(0)
    world.run()
    configs.stop()
    broker.metadata.forget_watchers()
    change(world, "topics/t", config(retention_ms="1"))
    world.run()
    assert applied == []
    configs.start(0)
    world.run()
    assert applied == [("t", {"retention.ms": "1"})]
