"""UpdateMetadata in all its versions: the same knowledge in other shapes."""

from typing import Any

import pytest

from barnabas.formats.wire.api_keys import ApiKey
from barnabas.formats.wire.generated.update_metadata import (
    UpdateMetadataBroker,
    UpdateMetadataEndpoint,
    UpdateMetadataPartitionState,
    UpdateMetadataRequest,
    UpdateMetadataTopicState,
)
from barnabas.model.ids import NO_TOPIC_ID, BrokerId, TopicId
from tests.worlds.virtual_world import VirtualWorld

ID = TopicId(b"\x05" * 16)


@pytest.mark.parametrize("version", range(9))
def test_every_version_reaches_the_cache(version: int) -> None:
    world = VirtualWorld()
    broker = world.add_broker(1).broker
    state = UpdateMetadataPartitionState(
        topic_name="t", leader=BrokerId(2), leader_epoch=4, isr=[2], replicas=[2, 3]
    )
    endpoint = UpdateMetadataEndpoint(host="h", port=7, security_protocol=0)
    live = UpdateMetadataBroker(id=BrokerId(2), v0_host="h", v0_port=7, rack=None)
    live.endpoints = [endpoint]
    if version >= 3:
        endpoint.listener = "OUTSIDE"
    body = UpdateMetadataRequest(controller_id=BrokerId(9), controller_epoch=1, live_brokers=[live])
    if version < 5:
        body.ungrouped_partition_states = [state]
    else:
        body.topic_states = [
            UpdateMetadataTopicState(topic_name="t", topic_id=ID, partition_states=[state])
        ]
    assert world.client(1).call(ApiKey.UPDATE_METADATA, version, body).error_code == 0
    cache = broker.metadata_cache
    told: Any = cache.partition("t", 0)
    assert (told.leader, told.leader_epoch, told.replicas) == (2, 4, [2, 3])
    listener = "PLAINTEXT" if version < 3 else "OUTSIDE"
    assert cache.node(BrokerId(2), listener) == (2, "h", 7, "" if version < 2 else None)
    assert cache.topic_id("t") == (ID if version >= 7 else NO_TOPIC_ID)
    assert cache.controller_id == 9
