"""A topic whose settings cannot be read keeps what it has, until somebody sets them anew."""

import pytest

from barnabas.broker.topic_configs import TopicConfigUnreadable
from barnabas.model.config import TopicConfig
from barnabas.model.ids import TopicPartition
from barnabas.model.znode import SetData
from tests.worlds.cluster_world import ClusterWorld

NODE = "/config/topics/t"


def config_of(world: ClusterWorld) -> TopicConfig:
    log = world.hosts[1].broker.logs.log(TopicPartition("t", 0))
    assert log is not None
    return log.config


@pytest.mark.parametrize(
    ("data", "is_told"),
    [
        (b'{"version":1,"config":{"retention.ms":[]}}', True),
        (b"not even JSON", True),
        (b"[]", True),
        (b'{"version":1,"config":{"retention.ms":"for ever","retention.bytes":"all"}}', False),
    ],
)
def test_nothing_is_deleted_after_a_start_that_could_not_read_it(
    data: bytes, is_told: bool
) -> None:
    world = ClusterWorld()
    world.add_brokers(1, log_retention_bytes="1000")
    world.create("t", 1, 1, configs={"retention.ms": "-1"})
    world.hosts[1].broker.metadata.submit([SetData(NODE, data)], lambda answer, now_ms: None)
    world.run(100)
    assert config_of(world).retention_ms == -1
    assert config_of(world).retention_bytes == 1000
    world.crash(1)
    began = len(world.hosts[1].told.of(TopicConfigUnreadable))
    world.restart(1)
    config = config_of(world)
    assert (config.retention_ms, config.retention_bytes) == (-1, -1)
    assert bool(world.hosts[1].told.of(TopicConfigUnreadable)[began:]) == is_told
