"""Settings changed over the wire: what is written, what holds then, and what is told of it."""

from typing import Any

import pytest

from barnabas.broker.broker_configs import BrokerConfigUnusable
from barnabas.formats.wire.api_keys import ApiKey
from barnabas.formats.wire.generated import alter_configs, incremental_alter_configs
from barnabas.formats.wire.generated.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
)
from barnabas.model.error_codes import ErrorCode
from barnabas.model.znode import ANY_VERSION, Check, Create, SetData
from tests.behaviours import behaviour
from tests.worlds.cluster_world import ClusterWorld
from tests.worlds.requests import batch, produce_request, produced

TOPIC, BROKER = 2, 4
SET, DELETE, APPEND = 0, 1, 2
DYNAMIC_BROKER, DYNAMIC_DEFAULT, DEFAULT = 2, 3, 5


class Settings(ClusterWorld):
    def change(
        self, kind: int, name: str, *edits: tuple[str, int, str | None], at: int = 1, **more: Any
    ) -> tuple[int, str | None]:
        """IncrementalAlterConfigs of one resource: its answer."""
        answers = self.change_all((kind, name, edits), at=at, **more)
        return answers[0].error_code, answers[0].error_message

    def change_all(self, *rows: Any, at: int = 1, only: bool = False, version: int = 1) -> Any:
        body = incremental_alter_configs.IncrementalAlterConfigsRequest(
            resources=[
                incremental_alter_configs.AlterConfigsResource(
                    resource_type=kind,
                    resource_name=name,
                    configs=[
                        incremental_alter_configs.AlterableConfig(
                            name=key, config_operation=operation, value=value
                        )
                        for key, operation, value in edits
                    ],
                )
                for kind, name, edits in rows
            ],
            validate_only=only,
        )
        answer = self.ask(ApiKey.INCREMENTAL_ALTER_CONFIGS, version, body, at)
        self.run(100)
        return answer.responses

    def replace(self, kind: int, name: str, version: int = 2, **settings: str) -> int:
        """AlterConfigs of one resource: its error."""
        body = alter_configs.AlterConfigsRequest(
            resources=[
                alter_configs.AlterConfigsResource(
                    resource_type=kind,
                    resource_name=name,
                    configs=[
                        alter_configs.AlterableConfig(name=key.replace("_", "."), value=value)
                        for key, value in settings.items()
                    ],
                )
            ]
        )
        answer = self.ask(ApiKey.ALTER_CONFIGS, version, body, 1)
        self.run(100)
        return int(answer.responses[0].error_code)

    def described(self, kind: int, name: str, *keys: str, at: int = 1) -> dict[str, Any]:
        resource = DescribeConfigsResource(
            resource_type=kind, resource_name=name, configuration_keys=list(keys) or None
        )
        body = DescribeConfigsRequest(resources=[resource])
        (result,) = self.ask(ApiKey.DESCRIBE_CONFIGS, 4, body, at).results
        assert result.error_code == ErrorCode.NONE
        return {one.name: (one.value, one.config_source) for one in result.configs}

    def config_of(self, broker_id: int, topic: str) -> Any:
        log = self.hosts[broker_id].broker.replicas.partitions_of(topic)[0].log
        assert log is not None
        return log.config


@pytest.fixture
def world() -> Settings:
    world = Settings()
    world.add_brokers(1, 2)
    world.create("t", assignments=[[1, 2]])
    world.written.clear()
    return world


@behaviour("M1")
def test_an_update_checks_that_there_is_a_controller_and_a_note_follows(world: Settings) -> None:
    assert world.change(TOPIC, "t", ("retention.ms", SET, "5"), at=2) == (0, None)
    (checks, write), (_, note) = world.written
    data = b'{"version":1,"config":{"retention.ms":"5"}}'
    assert checks == (Check("/controller", ANY_VERSION), write)
    assert write == SetData("/config/topics/t", data, 0)
    assert isinstance(note, Create)
    assert world.data("/config/changes/config_change_0000000000") == {
        "version": 2, "entity_path": "topics/t",
    }  # fmt: skip


@behaviour("M1")
def test_a_first_setting_creates_the_node_plainly(world: Settings) -> None:
    assert world.change(BROKER, "", ("log.retention.ms", SET, "1000000")) == (0, None)
    (alone, create), _ = world.written
    data = b'{"version":1,"config":{"log.retention.ms":"1000000"}}'
    assert alone == (create,)
    assert create == Create("/config/brokers/<default>", data)
    assert world.change(BROKER, "", ("log.retention.ms", DELETE, None)) == (0, None)
    assert world.data("/config/brokers/<default>") == {"version": 1, "config": {}}


def test_a_topics_settings_hold_on_every_broker(world: Settings) -> None:
    assert world.replace(TOPIC, "t", retention_ms="5", segment_ms="6") == 0
    assert world.change(TOPIC, "t", ("cleanup.policy", APPEND, "compact"), at=2) == (0, None)
    for broker_id in (1, 2):
        held = world.config_of(broker_id, "t")
        assert (held.retention_ms, held.segment_ms) == (5, 6)
        assert held.cleanup_policy == ("delete", "compact")
    assert world.replace(TOPIC, "t", version=0, segment_ms="7") == 0
    assert world.config_of(1, "t").retention_ms == 604800000
    assert world.described(TOPIC, "t", "segment.ms", "retention.ms") == {
        "segment.ms": ("7", 1), "retention.ms": ("604800000", DEFAULT),
    }  # fmt: skip


def test_a_validation_and_a_refusal_write_nothing(world: Settings) -> None:
    assert world.change(TOPIC, "t", ("retention.ms", SET, "5"), only=True) == (0, None)
    error, _ = world.change(TOPIC, "t", ("retention.ms", SET, "x"), only=True)
    assert error == ErrorCode.INVALID_CONFIG
    error, message = world.change(TOPIC, "nosuch", ("retention.ms", SET, "5"))
    assert error == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert message == "The topic 'nosuch' does not exist."
    assert world.written == []


def test_each_resource_is_answered_for_itself_and_none_may_stand_twice(world: Settings) -> None:
    five = (("retention.ms", SET, "5"),)
    answers = world.change_all((TOPIC, "t", five), (TOPIC, "u", five), (TOPIC, "t", five))
    twice = (ErrorCode.INVALID_REQUEST, "Each resource must appear at most once.")
    assert [(one.resource_name, one.error_code, one.error_message) for one in answers] == [
        ("t", *twice),
        ("u", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "The topic 'u' does not exist."),
        ("t", *twice),
    ]


def test_two_clients_at_once_lose_nothing_of_each_other(world: Settings) -> None:
    def asked(name: str) -> Any:
        edit = incremental_alter_configs.AlterableConfig(name=name, config_operation=SET, value="5")
        resource = incremental_alter_configs.AlterConfigsResource(
            resource_type=TOPIC, resource_name="t", configs=[edit]
        )
        return incremental_alter_configs.IncrementalAlterConfigsRequest(resources=[resource])

    clients = [world.client(broker_id) for broker_id in (1, 2)]
    for client, name in zip(clients, ("retention.ms", "segment.ms"), strict=True):
        client.send(ApiKey.INCREMENTAL_ALTER_CONFIGS, 1, asked(name))
    world.run(200)
    assert world.data("/config/topics/t")["config"] == {"retention.ms": "5", "segment.ms": "5"}


def test_a_brokers_settings_hold_for_its_topics_at_once(world: Settings) -> None:
    assert world.change(BROKER, "", ("message.max.bytes", SET, "100")) == (0, None)
    assert world.change(BROKER, "1", ("message.max.bytes", SET, "200000")) == (0, None)
    assert [world.config_of(one, "t").max_message_bytes for one in (1, 2)] == [200000, 100]
    assert world.described(BROKER, "1", "message.max.bytes") == {
        "message.max.bytes": ("200000", DYNAMIC_BROKER)
    }
    assert world.described(BROKER, "", at=2) == {"message.max.bytes": ("100", DYNAMIC_DEFAULT)}
    assert world.change(BROKER, "1", ("message.max.bytes", DELETE, None)) == (0, None)
    body = produce_request("t", {0: batch([b"v" * 200])})
    refused = produced(world.client(1).call(ApiKey.PRODUCE, 11, body))
    assert refused.error_code == ErrorCode.MESSAGE_TOO_LARGE
    assert world.described(TOPIC, "t", "max.message.bytes") == {
        "max.message.bytes": ("100", DYNAMIC_DEFAULT)
    }


def test_only_the_broker_itself_takes_its_settings(world: Settings) -> None:
    edit = ("log.retention.ms", SET, "5")
    refused = (ErrorCode.INVALID_REQUEST, "Unexpected broker id, expected 2, but received 1")
    assert world.change(BROKER, "1", edit, at=2) == refused


def test_a_restarted_broker_opens_its_logs_by_what_was_set(world: Settings) -> None:
    world.change(BROKER, "2", ("log.segment.bytes", SET, "1000"), at=2)
    world.change(BROKER, "", ("producer.id.expiration.ms", SET, "7000"))
    world.crash(2)
    world.run(100)
    world.restart(2)
    config = world.hosts[2].broker.config
    assert (config.log_segment_bytes, config.producer_id_expiration_ms) == (1000, 7000)
    world.run(1000)
    assert world.config_of(2, "t").segment_bytes == 1000
    log = world.hosts[2].broker.replicas.partitions_of("t")[0].log
    assert log is not None
    assert log.producer_expiration_ms == 7000


def test_what_somebody_else_wrote_for_a_broker_is_passed_over_by_name(world: Settings) -> None:
    data = b'{"version":1,"config":{"num.io.threads":"9","log.retention.ms":"5"}}'
    note = b'{"version":2,"entity_path":"brokers/1"}'
    world.hosts[2].broker.metadata.submit(
        [
            Create("/config/brokers/1", data),
            Create("/config/changes/config_change_0000000007", note),
        ],
        lambda *_: None,
    )
    world.run(100)
    assert world.config_of(1, "t").retention_ms == 5
    (problem,) = world.hosts[1].told.of(BrokerConfigUnusable)
    assert "num.io.threads" in problem.problem
    assert world.change(BROKER, "1", ("log.retention.ms", SET, "6")) == (0, None)
    assert world.data("/config/brokers/1")["config"] == {
        "num.io.threads": "9", "log.retention.ms": "6",
    }  # fmt: skip
