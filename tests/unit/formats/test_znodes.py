"""The content of znodes: what a real cluster wrote, what older ones wrote, what nobody should."""

import json
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.formats.znodes import (
    admin,
    brokers,
    cluster,
    configs,
    controller,
    features,
    notifications,
    partition_states,
    producer_ids,
    topics,
    uuids,
)
from barnabas.model.epochs import ControllerEpoch, LeaderEpoch, PartitionEpoch
from barnabas.model.errors import DecodeError
from barnabas.model.ids import NO_TOPIC_ID, BrokerId, ProducerId, TopicId, TopicPartition
from barnabas.model.listeners import Listener
from barnabas.model.partition import LeaderAndIsr, LeaderRecoveryState, ReplicaAssignment
from tests.tools import ROOT

VECTORS = ROOT / "tests" / "vectors" / "znodes-3.9.jsonl"
"""Every distinct content in recordings of Kafka 3.9.2 clusters, keys in the order written."""

Rewrite = Callable[[str, bytes], bytes]

REWRITES: list[tuple[str, Rewrite]] = [
    ("/brokers/ids/", lambda p, d: brokers.BrokerRegistration.from_bytes(p, d).to_bytes()),
    ("/controller_epoch", lambda p, d: controller.epoch_to_bytes(_epoch(p, d))),
    ("/controller", lambda p, d: controller.ControllerRegistration.from_bytes(p, d).to_bytes()),
    ("/config/changes/", lambda p, d: configs.ConfigChange.from_bytes(p, d).to_bytes()),
    ("/config/", lambda p, d: configs.config_to_bytes(configs.config_from_bytes(p, d))),
    (
        "/admin/reassign_partitions",
        lambda p, d: admin.reassignments_to_bytes(admin.reassignments_from_bytes(p, d)),
    ),
    (
        "/admin/preferred_replica_election",
        lambda p, d: admin.partitions_to_bytes(admin.partitions_from_bytes(p, d)),
    ),
    ("/log_dir_event_", lambda p, d: notifications.LogDirFailure.from_bytes(p, d).to_bytes()),
    (
        "/latest_producer_id_block",
        lambda p, d: producer_ids.ProducerIdBlock.from_bytes(p, d).to_bytes(),
    ),
]
READERS: list[Callable[[bytes | None], object]] = [
    lambda d: brokers.BrokerRegistration.from_bytes("/n", d),
    lambda d: topics.TopicAssignment.from_bytes("/n", d),
    lambda d: partition_states.from_bytes("/n", d, 0),
    lambda d: controller.ControllerRegistration.from_bytes("/n", d),
    lambda d: _epoch("/n", d),
    lambda d: cluster.ClusterId.from_bytes("/n", d),
    lambda d: configs.ConfigChange.from_bytes("/n", d),
    lambda d: admin.reassignments_from_bytes("/n", d),
    lambda d: admin.partitions_from_bytes("/n", d),
    lambda d: notifications.LogDirFailure.from_bytes("/n", d),
    lambda d: producer_ids.ProducerIdBlock.from_bytes("/n", d),
    lambda d: features.FinalizedFeatures.from_bytes("/n", d),
]


def _epoch(path: str, data: bytes | None) -> ControllerEpoch:
    return controller.epoch_from_bytes(path, data)


def _rewrite(path: str, data: bytes) -> bytes:
    if path.startswith("/brokers/topics/"):
        if path.endswith("/state"):
            return partition_states.to_bytes(partition_states.from_bytes(path, data, 0))
        return topics.TopicAssignment.from_bytes(path, data).to_bytes()
    return next(rewrite for prefix, rewrite in REWRITES if path.startswith(prefix))(path, data)


def _vectors() -> list[tuple[str, str, bytes]]:
    """Who wrote it, where, and the bytes."""
    found: list[tuple[str, str, bytes]] = []
    for line in VECTORS.read_text("utf-8").splitlines():
        entry = json.loads(line)
        data = entry["data"]
        text = data if isinstance(data, str) else json.dumps(data, separators=(",", ":"))
        found.append((entry["by"], entry["path"], text.encode("utf-8")))
    return found


def test_what_a_cluster_wrote_is_read_and_written_the_same() -> None:
    written = [(by, path, data) for by, path, data in _vectors() if data]
    assert len(written) > 350
    for by, path, data in written:
        ours = _rewrite(path, data)
        assert json.loads(ours) == json.loads(data), path
        if by == "kafka":
            assert ours == data, path


def test_keys_nobody_knows_are_tolerated() -> None:
    for _, path, data in _vectors():
        if data.startswith(b"{"):
            more = data[:-1] + b',"unknown":{"deeper":[1,null]}}'
            assert _rewrite(path, more) == _rewrite(path, data)


def test_registrations_of_older_brokers() -> None:
    read = brokers.BrokerRegistration.from_bytes
    first = read("/n", b'{"version":1,"host":"h","port":9,"jmx_port":7,"timestamp":"12"}')
    assert first.listeners == (Listener("PLAINTEXT", "h", 9, "PLAINTEXT"),)
    assert (first.jmx_port, first.timestamp_ms, first.rack) == (7, 12, None)
    second = read("/n", b'{"version":2,"jmx_port":-1,"endpoints":["SSL://[::1]:9"]}')
    assert second.listeners == (Listener("SSL", "::1", 9, "SSL"),)
    third = read("/n", b'{"version":3,"jmx_port":-1,"endpoints":["SSL://h:9"],"rack":"r"}')
    assert third.rack == "r"
    fourth = read(
        "/n",
        b'{"version":4,"jmx_port":-1,"endpoints":["IN://:9","out://h:8"],"rack":null,'
        b'"listener_security_protocol_map":{"in":"SSL","OUT":"PLAINTEXT"}}',
    )
    assert fourth.listener("IN") == Listener("IN", "", 9, "SSL")
    assert fourth.listener("OUT") == Listener("OUT", "h", 8, "PLAINTEXT")
    assert fourth.listener("out") is None
    assert (fourth.version, fourth.features) == (4, {})


def test_a_registration_names_its_first_plaintext_end_point() -> None:
    secured = Listener("IN", "a", 1, "SSL")
    plain = Listener("OUT", "b", 2, "PLAINTEXT")
    both = json.loads(brokers.BrokerRegistration((secured, plain), 5).to_bytes())
    assert (both["host"], both["port"]) == ("b", 2)
    neither = json.loads(brokers.BrokerRegistration((secured,), 5).to_bytes())
    assert (neither["host"], neither["port"]) == (None, -1)


def test_assignments_of_older_clusters() -> None:
    first = topics.TopicAssignment.from_bytes("/n", b'{"version":1,"partitions":{"0":[1,2]}}')
    assert first == topics.TopicAssignment(
        NO_TOPIC_ID, {0: ReplicaAssignment((BrokerId(1), BrokerId(2)))}
    )
    second = topics.TopicAssignment.from_bytes(
        "/n",
        b'{"version":2,"partitions":{"10":[1],"9":[3,1]},"adding_replicas":{"9":[3]},'
        b'"removing_replicas":{"9":[1]}}',
    )
    assert list(second.partitions) == [9, 10]
    moving = second.partitions[9]
    assert (moving.adding_replicas, moving.removing_replicas) == ((3,), (1,))
    assert b"topic_id" not in second.to_bytes()


def test_a_state_read_takes_its_epoch_from_the_znode() -> None:
    state = LeaderAndIsr(
        BrokerId(-1),
        (BrokerId(3), BrokerId(1)),
        ControllerEpoch(4),
        LeaderEpoch(5),
        LeaderRecoveryState.RECOVERING,
    )
    data = partition_states.to_bytes(state)
    assert b'"leader_recovery_state":1' in data
    assert partition_states.from_bytes("/n", data, 9) == state.at_version(PartitionEpoch(9))
    recovered = LeaderAndIsr(BrokerId(1), (BrokerId(1),), ControllerEpoch(4))
    assert b"leader_recovery_state" not in partition_states.to_bytes(recovered)


def test_config_changes_of_both_versions() -> None:
    read = configs.ConfigChange.from_bytes
    old = read("/n", b'{"version":1,"entity_type":"topics","entity_name":"t"}')
    assert old == configs.ConfigChange("topics/t")
    new = read("/n", b'{"version":2,"entity_path":"users/<default>/clients/c%201"}')
    assert (new.entity_type, new.entity_name) == ("users", "<default>/clients/c%201")
    for refused in (
        b'{"version":3,"entity_path":"topics/t"}',
        b'{"version":2,"entity_path":"cats/t"}',
        b'{"version":2,"entity_path":"topics"}',
        b'{"version":1,"entity_type":"topics"}',
    ):
        with pytest.raises(DecodeError):
            read("/n", refused)


def test_a_config_node_without_settings_is_empty() -> None:
    for data in (None, b"", b"x", b"[]", b"{}", b'{"version":1,"config":null}'):
        assert configs.config_from_bytes("/n", data) == {}
    with pytest.raises(DecodeError, match=r"/n: config.a: found 1, expected text"):
        configs.config_from_bytes("/n", b'{"version":1,"config":{"a":1}}')


def test_entity_paths() -> None:
    paths = [
        configs.config_path(entity)
        for entity in (
            configs.topic_entity("t"),
            configs.broker_entity(BrokerId(1)),
            configs.broker_entity(None),
            configs.client_entity("c 1"),
            configs.user_entity("u@1"),
            configs.user_client_entity(None, None),
            configs.user_client_entity("~*", "a+b/\u00e9"),
            configs.ip_entity("127.0.0.9"),
        )
    ]
    assert paths == [
        "/config/topics/t",
        "/config/brokers/1",
        "/config/brokers/<default>",
        "/config/clients/c%201",
        "/config/users/u%401",
        "/config/users/<default>/clients/<default>",
        "/config/users/%7E%2A/clients/a%2Bb%2F%C3%A9",
        "/config/ips/127.0.0.9",
    ]


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_a_sanitised_name_comes_back(name: str) -> None:
    assert configs.desanitise(configs.sanitise(name)) == name
    assert "/" not in configs.sanitise(name)


@given(st.binary(min_size=16, max_size=16))
def test_a_topic_id_comes_back_from_its_text(uuid: bytes) -> None:
    text = uuids.uuid_text(uuid)
    assert len(text) == 22
    assert uuids.uuid_from_text("/n", text) == uuid


def test_a_topic_id_that_is_none() -> None:
    for text in (
        "",
        "x",
        "BHTJI27eRhGq0oU0qLGia",
        "BHTJI27eRhGq0oU0qLGiag=",
        "BHTJI27eRhGq0oU0qLGi\u00e9g",
    ):
        with pytest.raises(DecodeError, match="topic_id"):
            uuids.uuid_from_text("/n: topic_id", text)
    empty = topics.TopicAssignment(TopicId(bytes(16)), {})
    assert topics.TopicAssignment.from_bytes("/n", empty.to_bytes()) == empty


def test_blocks_of_producer_ids_follow_each_other() -> None:
    first = producer_ids.ProducerIdBlock.first(BrokerId(1))
    assert first.to_bytes() == b'{"version":1,"broker":1,"block_start":"0","block_end":"999"}'
    second = first.next(BrokerId(2))
    assert second == producer_ids.ProducerIdBlock(BrokerId(2), ProducerId(1000), ProducerId(1999))
    last = 2**63 - 1
    spent = producer_ids.ProducerIdBlock(BrokerId(1), ProducerId(0), ProducerId(last - 999))
    assert spent.next(BrokerId(1)) is None
    enough = producer_ids.ProducerIdBlock(BrokerId(1), ProducerId(0), ProducerId(last - 1000))
    assert enough.next(BrokerId(1)) is not None


def test_paths() -> None:
    assert brokers.broker_path(BrokerId(3)) == "/brokers/ids/3"
    assert topics.topic_path("t") == "/brokers/topics/t"
    assert topics.partitions_path("t") == "/brokers/topics/t/partitions"
    assert topics.partition_path("t", 3) == "/brokers/topics/t/partitions/3"
    assert partition_states.state_path("t", 3) == "/brokers/topics/t/partitions/3/state"
    assert admin.delete_topic_path("t") == "/admin/delete_topics/t"
    assert cluster.parents_of("/a/b/c") == ("/a", "/a/b")
    assert cluster.parents_of("/a") == ()
    assert notifications.sequence_number("config_change_0000000012") == 12
    for name in ("config_change_", "12", "config_change_00000000x2"):
        with pytest.raises(DecodeError):
            notifications.sequence_number(name)


def test_of_two_reassignments_of_a_partition_the_last_counts() -> None:
    entry = b'{"topic":"t","partition":0,"replicas":[%d]}'
    data = b'{"version":1,"partitions":[' + entry % 1 + b"," + entry % 2 + b"]}"
    assert admin.reassignments_from_bytes("/n", data) == {TopicPartition("t", 0): (2,)}
    elected = admin.partitions_from_bytes("/n", data)
    assert elected == (TopicPartition("t", 0),)


MALFORMED = [
    *(
        None,
        b"",
        b"x",
        b"[]",
        b"null",
        b"5",
        b'"text"',
        b"{",
        b"\xff",
        b'{"version":NaN}',
        b"[" * 50_000,
    ),
    *(b'{"version":1,"a":"\\ud800"}', b'{"version":' + b"9" * 5000 + b"}", b"\xef\xbb\xbf{}"),
]


@pytest.mark.parametrize("reader", READERS)
def test_what_is_not_json_is_refused_with_its_path(
    reader: Callable[[bytes | None], object],
) -> None:
    for data in MALFORMED:
        if data == b"5":
            continue
        with pytest.raises(DecodeError, match=r"^/n: "):
            reader(data)


@given(st.data())
def test_a_changed_byte_gives_a_value_or_the_decode_error(draw: st.DataObject) -> None:
    _, path, data = draw.draw(st.sampled_from([vector for vector in _ALL_VECTORS if vector[2]]))
    position = draw.draw(st.integers(0, len(data) - 1))
    changed = bytearray(data)
    changed[position] = draw.draw(st.integers(0, 255))
    try:
        again = _rewrite(path, bytes(changed))
    except DecodeError:
        return
    assert _rewrite(path, again) == again


_ALL_VECTORS = _vectors()


def test_reasons_name_the_field() -> None:
    cases = [
        (b'{"version":true}', "/n: version: found True, expected a whole number"),
        (b'{"version":4294967296}', "/n: version: found 4294967296, expected a number of 32 bits"),
        (b'{"version":0}', "/n: found version 0, expected 1 or a later one"),
        (b'{"version":5,"endpoints":"x"}', "/n: endpoints: found 'x', expected a list"),
        (
            b'{"version":5,"endpoints":["h:1"]}',
            "/n: found end point 'h:1', expected NAME://host:port",
        ),
        (
            b'{"version":5,"endpoints":["A://h:1"]}',
            "/n: found protocol 'A' of listener A, expected one of PLAINTEXT, SSL, SASL_PLAINTEXT, "
            "SASL_SSL",
        ),
        (
            b'{"version":5,"endpoints":["SSL://h:1","ssl://g:2"]}',
            "/n: found listener SSL twice",
        ),
    ]
    for data, reason in cases:
        with pytest.raises(DecodeError) as refused:
            brokers.BrokerRegistration.from_bytes("/n", data)
        assert str(refused.value) == reason
