"""Settings changed by real admin clients, and the answers of a real Kafka to the same requests."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import KafkaException
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewTopic,
    ResourceType,
)

from barnabas.formats.wire.generated import alter_configs, incremental_alter_configs
from tests.behaviours import behaviour
from tests.e2e.broker_process import BrokerProcess
from tests.e2e.codec_client import ask
from tests.e2e.subjects import KAFKA, Subject

TOPIC, BROKER = 2, 4
SET, DELETE, APPEND, SUBTRACT = range(4)
NONE, INVALID_CONFIG, INVALID_REQUEST = 0, 40, 42
ALTER_CONFIGS, INCREMENTAL_ALTER_CONFIGS = 33, 44
SECONDS = 20.0


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    directory: Path = tmp_path_factory.mktemp("settings")
    with BrokerProcess(directory, {"num.partitions": "1"}) as running:
        yield running


@behaviour("M1")
@pytest.mark.timeout(120)
def test_confluent_kafka_changes_topics_and_brokers(broker: BrokerProcess) -> None:
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    admin.create_topics([NewTopic("t", 1, 1)])["t"].result(SECONDS)

    def change(kind: ResourceType, name: str, *edits: tuple[str, AlterConfigOpType, str]) -> None:
        entries = [
            ConfigEntry(key, value, incremental_operation=operation)
            for key, operation, value in edits
        ]
        resource = ConfigResource(kind, name, incremental_configs=entries)
        admin.incremental_alter_configs([resource])[resource].result(SECONDS)

    change(ResourceType.TOPIC, "t", ("retention.ms", AlterConfigOpType.SET, "5000"))
    change(ResourceType.TOPIC, "t", ("cleanup.policy", AlterConfigOpType.APPEND, "compact"))
    resource = ConfigResource(ResourceType.TOPIC, "t")
    told = admin.describe_configs([resource])[resource].result(SECONDS)
    assert told["retention.ms"].value == "5000"
    assert told["cleanup.policy"].value == "delete,compact"
    change(ResourceType.BROKER, "1", ("message.max.bytes", AlterConfigOpType.SET, "2000"))
    resource = ConfigResource(ResourceType.BROKER, "1")
    told = admin.describe_configs([resource])[resource].result(SECONDS)
    assert (told["message.max.bytes"].value, told["message.max.bytes"].source) == ("2000", 2)
    with pytest.raises(KafkaException, match=r"broker\.id"):
        change(ResourceType.BROKER, "1", ("broker.id", AlterConfigOpType.SET, "7"))
    broker.kill()
    broker.start()
    told = admin.describe_configs([resource])[resource].result(SECONDS)
    assert told["message.max.bytes"].value == "2000"


def changed(
    subject: Subject, kind: int, name: str, *edits: tuple[str, int, str | None], version: int = 1
) -> tuple[int, str | None]:
    configs = [
        incremental_alter_configs.AlterableConfig(name=key, config_operation=how, value=value)
        for key, how, value in edits
    ]
    resource = incremental_alter_configs.AlterConfigsResource(
        resource_type=kind, resource_name=name, configs=configs
    )
    body = incremental_alter_configs.IncrementalAlterConfigsRequest(resources=[resource])
    (answer,) = ask(subject.port, INCREMENTAL_ALTER_CONFIGS, version, body).responses
    return answer.error_code, answer.error_message


def replaced(
    subject: Subject, kind: int, name: str, *settings: tuple[str, str | None], version: int = 2
) -> tuple[int, str | None]:
    configs = [alter_configs.AlterableConfig(name=key, value=value) for key, value in settings]
    resource = alter_configs.AlterConfigsResource(
        resource_type=kind, resource_name=name, configs=configs
    )
    body = alter_configs.AlterConfigsRequest(resources=[resource])
    (answer,) = ask(subject.port, ALTER_CONFIGS, version, body).responses
    return answer.error_code, answer.error_message


IN_TOPIC = "Invalid config value for resource ConfigResource(type=TOPIC, name='settings'): "
ANSWERS: list[tuple[int, str, Any, int, str | None]] = [
    (TOPIC, "settings", [("retention.ms", SET, "5000")], NONE, None),
    (TOPIC, "settings", [("foo", DELETE, None)], NONE, None),
    (TOPIC, "settings", [("cleanup.policy", APPEND, "compact")], NONE, None),
    (TOPIC, "settings", [("cleanup.policy", SUBTRACT, "delete")], NONE, None),
    (TOPIC, "settings", [], NONE, None),
    (TOPIC, "settings", [("flush.ms", SET, "5"), ("flush.ms", DELETE, None)], INVALID_REQUEST,
     "Error due to duplicate config keys"),
    (TOPIC, "settings", [("flush.ms", SET, None), ("segment.ms", SET, None)], INVALID_REQUEST,
     "Null value not supported for : flush.ms, segment.ms"),
    (TOPIC, "settings", [("foo", SET, "1")], INVALID_CONFIG, "Unknown topic config name: foo"),
    (TOPIC, "settings", [("retention.ms", SET, "abc")], INVALID_CONFIG, IN_TOPIC
     + "Invalid value abc for configuration retention.ms: Not a number of type LONG"),
    (TOPIC, "settings", [("retention.ms", SET, "-5")], INVALID_CONFIG, IN_TOPIC
     + "Invalid value -5 for configuration retention.ms: Value must be at least -1"),
    (TOPIC, "settings", [("segment.bytes", SET, "99999999999")], INVALID_CONFIG, IN_TOPIC
     + "Invalid value 99999999999 for configuration segment.bytes: Not a number of type INT"),
    (TOPIC, "settings", [("segment.bytes", SET, "")], INVALID_CONFIG, IN_TOPIC
     + "Invalid value  for configuration segment.bytes: Not a number of type INT"),
    (TOPIC, "settings", [("cleanup.policy", SET, "foo")], INVALID_CONFIG, IN_TOPIC
     + "Invalid value foo for configuration cleanup.policy: "
     "String must be one of: compact, delete"),
    (TOPIC, "settings", [("preallocate", SET, "foo")], INVALID_CONFIG, IN_TOPIC
     + "Invalid value foo for configuration preallocate: "
     "Expected value to be either true or false"),
    (TOPIC, "settings", [("compression.gzip.level", SET, "10")], INVALID_CONFIG, IN_TOPIC
     + "Invalid value 10 for configuration compression.gzip.level: "
     "Value must be between 1 and 9 or equal to -1"),
    (TOPIC, "settings", [("retention.ms", APPEND, "5")], INVALID_CONFIG,
     "Config value append is not allowed for config key: retention.ms"),
    (TOPIC, "nosuch", [("retention.ms", SET, "5")], 3, "The topic 'nosuch' does not exist."),
    (TOPIC, "", [("retention.ms", SET, "5")], INVALID_REQUEST,
     "Default topic resources are not allowed."),
    (3, "settings", [], INVALID_REQUEST, "Unknown resource type 3"),
    (16, "settings", [], INVALID_REQUEST,
     "AlterConfigs is only supported for topics and brokers, "
     "but resource type is CLIENT_METRICS"),
    (BROKER, "1", [("log.retention.ms", SET, "700000")], NONE, None),
    (BROKER, "1", [("log.cleanup.policy", APPEND, "delete")], NONE, None),
    (BROKER, "1", [("log.flush.interval.ms", DELETE, None)], NONE, None),
    (BROKER, "", [("message.max.bytes", SET, "2000000")], NONE, None),
    (BROKER, "2", [("log.retention.ms", SET, "5")], INVALID_REQUEST,
     "Unexpected broker id, expected 1, but received 2"),
    (BROKER, "x", [("log.retention.ms", SET, "5")], INVALID_REQUEST,
     "Node id must be an integer, but it is: x"),
    (BROKER, "1", [("broker.id", SET, "5"), ("log.dirs", SET, "x")], INVALID_REQUEST,
     "Cannot update these configs dynamically: Set(broker.id, log.dirs)"),
    (BROKER, "1", [("log.retention.ms", SET, "abc")], INVALID_REQUEST,
     "Invalid value abc for configuration log.retention.ms: Not a number of type LONG"),
    (BROKER, "", [("listeners", SET, "PLAINTEXT://:9")], INVALID_REQUEST,
     "Cannot update these configs at default cluster level, "
     "broker id must be specified: Set(listeners)"),
    (BROKER, "1", [("log.retention.ms", SUBTRACT, "5")], INVALID_CONFIG,
     "Config value subtract is not allowed for config key: log.retention.ms"),
]  # fmt: skip


@behaviour("M1")
@pytest.mark.parametrize("version", [0, 1])
def test_single_settings_get_kafkas_answers(subject: Subject, version: int) -> None:
    subject.topic("settings")
    for kind, name, edits, error, message in ANSWERS:
        answer = changed(subject, kind, name, *edits, version=version)
        assert answer == (error, message), (kind, name, edits)


@behaviour("M1")
@pytest.mark.parametrize("version", [0, 1, 2])
def test_replaced_settings_get_kafkas_answers(subject: Subject, version: int) -> None:
    subject.topic("settings")
    assert replaced(subject, 8, "1", version=version) == (
        INVALID_REQUEST,
        "Unknown resource type 8",
    )
    for kind, name, edits, error, message in ANSWERS:
        if all(operation == SET for _, operation, _ in edits):
            settings = [(key, value) for key, _, value in edits]
            answer = replaced(subject, kind, name, *settings, version=version)
            assert answer == (error, message), (kind, name, settings)


@pytest.mark.parametrize(
    ("key", "value"), [("num.io.threads", "9"), ("log.cleaner.threads", "2"), ("nosuch", "1")]
)
def test_what_we_do_not_honour_is_refused_though_kafka_takes_it(
    subject: Subject, key: str, value: str
) -> None:
    error, message = changed(subject, BROKER, "1", (key, SET, value))
    if subject.name == KAFKA:
        assert error in (NONE, INVALID_REQUEST)
        assert changed(subject, BROKER, "1", (key, DELETE, None)) == (NONE, None)
    else:
        assert error == INVALID_REQUEST
        assert key in (message or "")
