"""What a broker and a topic are told, what holds when nobody says anything, and what is refused."""

from dataclasses import fields

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.model.config import (
    BrokerConfig,
    TopicConfig,
    check_topic_overrides,
    to_text,
)
from barnabas.model.config_definition import Mark, default_of, parse
from barnabas.model.config_keys import BROKER_KEYS
from barnabas.model.config_marks import (
    UNKNOWN_KEYS_MAX,
    check_marks,
    check_protocols,
    check_room,
    check_topic_marks,
)
from barnabas.model.errors import ConfigRefused
from barnabas.model.listeners import Listener
from barnabas.model.topic_config_keys import TOPIC_KEYS


def test_attributes_have_the_defaults_of_the_tables():
    assert BrokerConfig.resolve({}) == BrokerConfig()
    config = BrokerConfig()
    for name, key in BROKER_KEYS.items():
        attribute = name.replace(".", "_")
        value = getattr(config, attribute, None)
        if isinstance(value, (int, float, str, bool)) and key.default is not None:
            assert value == default_of(key), name
    topic = TopicConfig()
    for name, key in TOPIC_KEYS.items():
        assert getattr(topic, name.replace(".", "_")) == default_of(key), name
    assert len(fields(TopicConfig)) == len(TOPIC_KEYS)
    assert TopicConfig.resolve(config, {}) == topic


def test_every_honoured_key_has_an_attribute_and_no_attribute_is_without_a_key():
    attributes = {field.name for field in fields(BrokerConfig)}
    attributes -= {"explicit", "dynamic", "dynamic_default"}
    names = {name.replace(".", "_") for name in BROKER_KEYS}
    assert attributes <= names
    folded_into_others = {
        "node_id",
        "log_dir",
        "listener_security_protocol_map",
        "security_inter_broker_protocol",
    }
    honoured = {n.replace(".", "_") for n, key in BROKER_KEYS.items() if key.mark is Mark.HONOURED}
    assert honoured - attributes == folded_into_others


def test_a_topics_own_value_beats_its_brokers_and_the_brokers_beats_kafkas():
    broker = BrokerConfig.resolve({"log.retention.hours": "2", "message.max.bytes": "5000"})
    config = TopicConfig.resolve(
        broker, {"retention.ms": "77", "cleanup.policy": "compact, delete"}
    )
    assert config.retention_ms == 77
    assert config.cleanup_policy == ("compact", "delete")
    assert config.max_message_bytes == 5000
    assert TopicConfig.resolve(broker, {}).retention_ms == 2 * 3_600_000


def test_the_finer_unit_wins_and_any_negative_retention_is_unlimited():
    settings = {"log.retention.hours": "2", "log.retention.minutes": "3"}
    assert TopicConfig.resolve(BrokerConfig.resolve(settings), {}).retention_ms == 180_000
    settings["log.retention.ms"] = "-7"
    assert TopicConfig.resolve(BrokerConfig.resolve(settings), {}).retention_ms == -1


def test_an_override_that_somebody_else_broke_is_passed_over():
    broker = BrokerConfig.resolve({"log.segment.bytes": "1000"})
    config = TopicConfig.resolve(broker, {"segment.bytes": "many", "no.such.key": "1"})
    assert config.segment_bytes == 1000


def test_the_older_timestamp_bound_stands_in_for_the_newer_ones():
    broker = BrokerConfig()
    old = TopicConfig.resolve(broker, {"message.timestamp.difference.max.ms": "9"})
    assert (old.timestamp_before_max_ms, old.timestamp_after_max_ms) == (9, 9)
    new = TopicConfig.resolve(
        broker,
        {"message.timestamp.difference.max.ms": "9", "message.timestamp.after.max.ms": "4"},
    )
    assert (new.timestamp_before_max_ms, new.timestamp_after_max_ms) == (9, 4)


@pytest.mark.parametrize(
    ("overrides", "key"),
    [
        ({"no.such.key": "1"}, "no.such.key"),
        ({"retention.ms": "soon"}, "retention.ms"),
        ({"retention.ms": "-2"}, "retention.ms"),
        ({"cleanup.policy": "delete,forget"}, "cleanup.policy"),
        ({"max.message.bytes": str(2**31)}, "max.message.bytes"),
        ({"min.compaction.lag.ms": "5", "max.compaction.lag.ms": "4"}, "min.compaction.lag.ms"),
        ({"remote.storage.enable": "true"}, "remote.storage.enable"),
        ({"leader.replication.throttled.replicas": "1:x"}, "leader.replication.throttled.replicas"),
    ],
)
def test_bad_topic_settings_are_refused_by_name(overrides: dict[str, str], key: str):
    with pytest.raises(ConfigRefused) as refused:
        check_topic_overrides(overrides)
    assert refused.value.key == key


def test_listeners_know_their_protocol_and_are_advertised_unless_told_otherwise():
    config = BrokerConfig.resolve(
        {
            "listeners": "internal://:9093, OUT://[::1]:9094",
            "listener.security.protocol.map": "INTERNAL:plaintext,OUT:PLAINTEXT",
            "inter.broker.listener.name": "internal",
        }
    )
    assert config.listeners == (Listener("INTERNAL", "", 9093), Listener("OUT", "::1", 9094))
    assert config.advertised_listeners == config.listeners
    assert config.inter_broker_listener == Listener("INTERNAL", "", 9093)
    assert str(config.listeners[1]) == "OUT://[::1]:9094"


def test_the_metadata_store_never_lives_inside_a_log_directory():
    assert (
        BrokerConfig.resolve({"log.dirs": "/data/a,/b"}).barnabas_metadata_dir == "/data/a-metadata"
    )
    for inside in ("/data/a", "/data/a/", "/data/a/meta", "/b/x"):
        with pytest.raises(ConfigRefused, match=r"inside log\.dirs"):
            BrokerConfig.resolve({"log.dirs": "/data/a,/b", "barnabas.metadata.dir": inside})
    given_beside = {"log.dirs": "/data/a", "barnabas.metadata.dir": "/data/ab"}
    assert BrokerConfig.resolve(given_beside).barnabas_metadata_dir == "/data/ab"


@pytest.mark.parametrize(
    ("name", "text", "reason"),
    [
        ("authorizer.class.name", "kafka.security.authorizer.AclAuthorizer", "security"),
        ("super.users", "User:a", "security"),
        ("sasl.enabled.mechanisms", "PLAIN", "security"),
        ("ssl.keystore.location", "/k", "security"),
        ("principal.builder.class", "x.Y", "security"),
        ("listener.name.sasl.plain.sasl.jaas.config", "secret", "security"),
        ("metric.reporters", "a.B", "Java class"),
        ("create.topic.policy.class.name", "a.B", "Java class"),
        ("client.quota.callback.class", "a.B", "Java class"),
        ("remote.log.storage.manager.class.name", "a.B", "tiered"),
        ("remote.log.storage.system.enable", "true", "tiered"),
        ("process.roles", "broker,controller", "KRaft"),
        ("controller.quorum.voters", "1@h:1", "KRaft"),
        ("zookeeper.connect", "h:2181", "ZooKeeper"),
    ],
)
def test_what_must_not_be_passed_over_is_refused_by_name(name: str, text: str, reason: str):
    with pytest.raises(ConfigRefused, match=reason) as refused:
        check_marks({name: text})
    assert refused.value.key == name
    warnings = check_marks({name: text}, accepted=[name])
    assert [warning.name for warning in warnings] in ([name], [])


def test_a_secret_is_in_no_message():
    for name in ("ssl.keystore.password", "listener.name.x.sasl.jaas.config"):
        with pytest.raises(ConfigRefused) as refused:
            check_marks({name: "geheim"})
        assert "geheim" not in str(refused.value)


def test_a_refused_key_at_its_default_asks_for_nothing():
    assert (
        check_marks({"authorizer.class.name": "", "process.roles": "", "ssl.protocol": "TLSv1.3"})
        == []
    )


def test_keys_without_effect_are_named_and_mistyped_ones_get_a_suggestion():
    settings = {
        "auto.leader.rebalance.enable": "false",
        "num.partition": "3",
        "num.io.threads": "9",
    }
    warnings = check_marks(settings)
    assert [(warning.name, warning.reason) for warning in warnings] == [
        ("auto.leader.rebalance.enable", "not honoured yet"),
        ("num.partition", "is no key of Kafka's; did you mean num.partitions?"),
    ]


def test_many_unknown_keys_are_told_as_a_number():
    names = [f"{number}-none" for number in range(700)]
    warnings = check_marks(dict.fromkeys(names, "x"))
    assert [warning.name for warning in warnings] == names[: UNKNOWN_KEYS_MAX + 1]
    assert "690 more keys" in warnings[-1].reason


@pytest.mark.parametrize("text", ["compact", "compact,delete", " delete , compact "])
def test_a_value_that_asks_for_what_is_not_there_is_warned_of_at_a_key_that_is_honoured(text: str):
    [of_broker] = check_marks({"log.cleanup.policy": text, "num.partitions": "2"})
    [of_topic] = check_topic_marks({"cleanup.policy": text, "retention.ms": "5"})
    assert (of_broker.name, of_broker.value) == ("log.cleanup.policy", text.strip())
    assert (of_topic.name, of_topic.value) == ("cleanup.policy", text.strip())
    assert "nothing is compacted yet" in of_topic.reason == of_broker.reason
    assert check_marks({"log.cleanup.policy": "delete"}) == []


def test_topic_keys_without_effect_are_named_and_what_somebody_broke_is_passed_over():
    overrides = {
        "min.compaction.lag.ms": "5",
        "delete.retention.ms": "86400000",
        "preallocate": "true",
        "cleanup.policy": "compress",
        "nobody.knows": "1",
    }
    assert [one.name for one in check_topic_marks(overrides)] == ["min.compaction.lag.ms"]


@pytest.mark.parametrize("text", ["7", " 7", "-1"])
def test_two_different_ids_are_refused(text: str):
    with pytest.raises(ConfigRefused, match=r"broker\.id=1 is another id") as refused:
        BrokerConfig.resolve({"broker.id": "1", "node.id": text})
    assert refused.value.key == "node.id"
    assert BrokerConfig.resolve({"broker.id": "7", "node.id": " 7"}).broker_id == 7


@pytest.mark.parametrize(
    ("settings", "names"),
    [
        ({"max.connections": "0"}, ["max.connections"]),
        ({"max.connections": "1"}, []),
        (
            {"max.connections.per.ip": "0", "max.connections.per.ip.overrides": "10.0.0.1:5"},
            ["max.connections.per.ip"],
        ),
        ({"max.connections.per.ip": "0", "max.connections.per.ip.overrides": "h:5"}, []),
        ({"max.connections.per.ip.overrides": "h:0"}, ["max.connections.per.ip.overrides"]),
    ],
)
def test_limits_that_shut_out_the_broker_itself_are_warned_of(
    settings: dict[str, str], names: list[str]
):
    config = BrokerConfig.resolve({"listeners": "PLAINTEXT://h:1", **settings})
    assert [warning.name for warning in check_room(config)] == names


def test_a_listener_that_promises_encryption_is_refused():
    with pytest.raises(ConfigRefused, match="SSL"):
        check_protocols({"listeners": "PLAINTEXT://:1,SSL://:2"})
    check_protocols({})


@pytest.mark.parametrize(
    ("settings", "key", "fix"),
    [
        (
            {"broker.id": "-1", "broker.id.generation.enable": "false"},
            "broker.id",
            "broker.id=1    (or remove broker.id.generation.enable)",
        ),
        (
            {"listeners": "INT://h:1", "listener.security.protocol.map": "INT:PLAINTEXT"},
            "listeners",
            "inter.broker.listener.name=INT",
        ),
        (
            {"listeners": "PLAINTEXT://h:1", "security.inter.broker.protocol": "SSL"},
            "security.inter.broker.protocol",
            "inter.broker.listener.name=PLAINTEXT    (in its place)",
        ),
        (
            {"listeners": "PLAINTEXT://h:1", "inter.broker.listener.name": "B"},
            "inter.broker.listener.name",
            "inter.broker.listener.name=PLAINTEXT",
        ),
        (
            {"listeners": "PLAINTEXT://0.0.0.0:7"},
            "listeners",
            "advertised.listeners=PLAINTEXT://localhost:7"
            "    (or the name by which clients reach this machine)",
        ),
    ],
)
def test_what_would_mend_it_is_said_by_the_rule_that_refuses(
    settings: dict[str, str], key: str, fix: str
):
    with pytest.raises(ConfigRefused) as refused:
        BrokerConfig.resolve(settings)
    assert refused.value.key == key
    assert refused.value.fix == fix


@given(st.sampled_from(sorted(BROKER_KEYS)), st.text(max_size=30))
def test_any_text_is_a_value_or_refused(name: str, text: str):
    key = BROKER_KEYS[name]
    try:
        value = parse(key, text)
    except ConfigRefused as refused:
        assert refused.key == name
    else:
        shown = to_text(value)
        assert shown is not None
        assert parse(key, shown) == value
