"""Settings as DescribeConfigs tells them: values, sources and synonyms."""

from barnabas.core.administration.config_description import (
    ConfigSource,
    ConfigSynonym,
    DescribedConfig,
    describe_broker,
    describe_cluster_default,
    describe_topic,
    only,
)
from barnabas.model.config import BrokerConfig
from barnabas.model.config_definition import ConfigType
from barnabas.model.config_keys import BROKER_KEYS
from barnabas.model.topic_config_keys import TOPIC_KEYS

TOPIC, STATIC, DEFAULT = (
    ConfigSource.TOPIC_CONFIG,
    ConfigSource.STATIC_BROKER_CONFIG,
    ConfigSource.DEFAULT_CONFIG,
)


def topic(name: str, overrides: dict[str, str], **settings: str) -> DescribedConfig:
    config = BrokerConfig.resolve({key.replace("_", "."): text for key, text in settings.items()})
    return next(one for one in describe_topic(config, overrides) if one.name == name)


def broker(name: str, **settings: str) -> DescribedConfig:
    config = BrokerConfig.resolve({key.replace("_", "."): text for key, text in settings.items()})
    return next(one for one in describe_broker(config) if one.name == name)


def test_sources_have_kafkas_numbers():
    assert [(source.name, source.value) for source in ConfigSource] == [
        ("TOPIC_CONFIG", 1),
        ("DYNAMIC_BROKER_CONFIG", 2),
        ("DYNAMIC_DEFAULT_BROKER_CONFIG", 3),
        ("STATIC_BROKER_CONFIG", 4),
        ("DEFAULT_CONFIG", 5),
    ]


def test_every_key_is_described_once():
    described = describe_topic(BrokerConfig(), {})
    assert [one.name for one in described] == list(TOPIC_KEYS)
    described = describe_broker(BrokerConfig())
    assert [one.name for one in described] == [
        name for name, key in BROKER_KEYS.items() if not key.is_internal
    ]


def test_a_topics_value_is_its_own_its_brokers_or_the_default():
    own = topic("segment.bytes", {"segment.bytes": "2048"}, log_segment_bytes="4096")
    assert (own.value, own.source, own.is_read_only) == ("2048", TOPIC, False)
    assert own.synonyms == (
        ConfigSynonym("segment.bytes", "2048", TOPIC),
        ConfigSynonym("log.segment.bytes", "4096", STATIC),
        ConfigSynonym("log.segment.bytes", "1073741824", DEFAULT),
    )
    static = topic("segment.bytes", {}, log_segment_bytes="4096")
    assert (static.value, static.source) == ("4096", STATIC)
    default = topic("segment.bytes", {})
    assert (default.value, default.source, default.type) == ("1073741824", DEFAULT, ConfigType.INT)
    assert default.synonyms == (ConfigSynonym("log.segment.bytes", "1073741824", DEFAULT),)


def test_a_value_that_comes_from_another_unit_has_no_synonyms():
    hours = topic("retention.ms", {}, log_retention_hours="2")
    assert (hours.value, hours.source, hours.synonyms) == ("7200000", DEFAULT, ())
    millis = topic("retention.ms", {}, log_retention_ms="5", log_retention_hours="2")
    assert (millis.value, millis.source) == ("5", STATIC)
    assert [one.name for one in millis.synonyms] == [
        "log.retention.ms", "log.retention.hours", "log.retention.hours",
    ]  # fmt: skip


def test_lists_and_a_key_without_a_broker_key():
    assert topic("cleanup.policy", {"cleanup.policy": "compact,delete"}).value == "compact,delete"
    throttled = topic("leader.replication.throttled.replicas", {})
    assert (throttled.value, throttled.source, throttled.synonyms) == ("", DEFAULT, ())


def test_a_brokers_settings():
    retention = broker("log.retention.hours", log_retention_hours="2")
    assert (retention.value, retention.source) == ("2", STATIC)
    assert retention.synonyms == (
        ConfigSynonym("log.retention.hours", "2", STATIC),
        ConfigSynonym("log.retention.hours", "168", DEFAULT),
    )
    unset = broker("log.retention.ms")
    assert (unset.value, unset.source, unset.synonyms) == (None, DEFAULT, ())
    assert broker("broker.id", broker_id="5").is_read_only
    assert not broker("log.retention.ms").is_read_only
    flush = broker("log.flush.interval.ms", log_flush_interval_ms="7")
    assert [one.name for one in flush.synonyms] == [
        "log.flush.interval.ms", "log.flush.scheduler.interval.ms",
    ]  # fmt: skip


def test_what_was_set_at_run_time_stands_before_what_the_broker_was_started_with():
    static = BrokerConfig.resolve({"log.retention.ms": "3", "log.retention.hours": "4"})
    config = static.with_dynamic({"log.retention.ms": "2"}, {"log.retention.ms": "1"})
    ways = [
        ConfigSynonym("log.retention.ms", "1", ConfigSource.DYNAMIC_BROKER_CONFIG),
        ConfigSynonym("log.retention.ms", "2", ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG),
        ConfigSynonym("log.retention.ms", "3", STATIC),
        ConfigSynonym("log.retention.hours", "4", STATIC),
        ConfigSynonym("log.retention.hours", "168", DEFAULT),
    ]
    (told,) = only(describe_broker(config), ["log.retention.ms"])
    assert (told.value, told.source) == ("1", ConfigSource.DYNAMIC_BROKER_CONFIG)
    assert list(told.synonyms) == ways
    (told,) = only(describe_topic(config, {}), ["retention.ms"])
    assert (told.value, told.source) == ("1", ConfigSource.DYNAMIC_BROKER_CONFIG)
    assert list(told.synonyms) == ways
    (told,) = describe_cluster_default(config)
    assert (told.name, told.value, list(told.synonyms)) == ("log.retention.ms", "2", [ways[1]])


def test_secrets_are_told_to_nobody():
    secrets = [one for one in describe_broker(BrokerConfig()) if one.is_sensitive]
    assert secrets
    secret = broker("ssl.keystore.password", ssl_keystore_password="hush")
    assert secret.value is None
    assert [one.value for one in secret.synonyms] == [None]


def test_only_what_was_asked_for():
    described = describe_topic(BrokerConfig(), {})
    assert [one.name for one in only(described, ["retention.ms", "nosuch"])] == ["retention.ms"]
    assert only(described, None) == described
    assert only(described, []) == described
