"""What may be changed by AlterConfigs and IncrementalAlterConfigs, and what a change comes to."""

import json
from pathlib import Path

import pytest

from barnabas.core.administration.alteration import (
    BROKER,
    BROKER_LOGGER,
    CLIENT_METRICS,
    TOPIC,
    Alteration,
    ConfigEdit,
    ConfigOperation,
    find_form_fault,
    plan_broker_alteration,
    plan_topic_alteration,
)
from barnabas.core.administration.refusals import Refused
from barnabas.model.config import RUN_TIME_KEYS, BrokerConfig
from barnabas.model.config_keys import BROKER_KEYS
from barnabas.model.error_codes import ErrorCode
from tests.behaviours import behaviour

SET, DELETE, APPEND, SUBTRACT = ConfigOperation
INVALID = ErrorCode.INVALID_REQUEST
RECORDED = Path(__file__).parents[3] / "vectors" / "controller" / "o-config-changes.jsonl"


def wish(
    *edits: tuple[str, int, str | None], kind: int = TOPIC, name: str = "t", whole: bool = False
) -> Alteration:
    return Alteration(kind, name, [ConfigEdit(*edit) for edit in edits], whole)


def topic(stored: dict[str, str], *edits: tuple[str, int, str | None]) -> object:
    return plan_topic_alteration(wish(*edits), stored)


def broker(
    stored: dict[str, str], *edits: tuple[str, int, str | None], name: str = "1"
) -> dict[str, str] | Refused:
    return plan_broker_alteration(wish(*edits, kind=BROKER, name=name), stored, BrokerConfig())


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        (wish(("a", SET, "1"), ("a", DELETE, None)), "Error due to duplicate config keys"),
        (wish(("a", SET, None), ("b", APPEND, None)), "Null value not supported for : a, b"),
        (wish(name=""), "Default topic resources are not allowed."),
        (wish(kind=BROKER, name="x"), "Node id must be an integer, but it is: x"),
        (wish(kind=BROKER, name="٢"), "Node id must be an integer, but it is: ٢"),
        (wish(kind=BROKER, name="2"), "Unexpected broker id, expected 1, but received 2"),
        (wish(kind=BROKER_LOGGER, name="1"), "This broker has no log levels that could be set."),
        (wish(kind=BROKER_LOGGER, name="1", whole=True), "Unknown resource type 8"),
        (wish(kind=3), "Unknown resource type 3"),
    ],
)
def test_what_is_refused_by_its_form(asked: Alteration, message: str) -> None:
    assert find_form_fault(asked, 1) == Refused(INVALID, message)


def test_what_has_a_right_form() -> None:
    assert find_form_fault(wish(("a", DELETE, None), ("b", SET, "")), 1) is None
    assert find_form_fault(wish(kind=BROKER, name=""), 1) is None
    assert find_form_fault(wish(kind=BROKER, name="1"), 1) is None
    refused = find_form_fault(wish(kind=CLIENT_METRICS), 1)
    assert refused is not None
    assert refused.error is INVALID


@behaviour("M1")
def test_single_settings_are_set_removed_and_edited_and_the_others_stay() -> None:
    stored = {"segment.ms": "7", "retention.ms": "5"}
    assert topic(stored, ("retention.ms", SET, "6")) == {"segment.ms": "7", "retention.ms": "6"}
    assert topic(stored, ("retention.ms", DELETE, None)) == {"segment.ms": "7"}
    assert topic(stored, ("flush.ms", DELETE, "x")) == stored
    assert stored == {"segment.ms": "7", "retention.ms": "5"}


def test_a_list_begins_with_its_default_and_holds_no_word_twice() -> None:
    policy = "cleanup.policy"
    assert topic({}, (policy, APPEND, "compact")) == {policy: "delete,compact"}
    assert topic({policy: "compact"}, (policy, APPEND, "compact,delete")) == {
        policy: "compact,delete"
    }
    assert topic({policy: "compact,delete"}, (policy, SUBTRACT, "delete")) == {policy: "compact"}
    assert topic({policy: "compact"}, (policy, SUBTRACT, "compact")) == {policy: ""}
    for operation, word in ((APPEND, "append"), (SUBTRACT, "subtract")):
        message = f"Config value {word} is not allowed for config key: retention.ms"
        refused = Refused(ErrorCode.INVALID_CONFIG, message)
        assert topic({}, ("retention.ms", operation, "5")) == refused


def test_a_replacement_forgets_what_it_does_not_name() -> None:
    asked = wish(("segment.ms", SET, "7"), whole=True)
    assert plan_topic_alteration(asked, {"retention.ms": "5"}) == {"segment.ms": "7"}


@pytest.mark.parametrize(
    ("edit", "beginning"),
    [
        (("nosuch", SET, "1"), "Unknown topic config name: nosuch"),
        (("segment.bytes", SET, "1"), "Invalid config value for resource ConfigResource(type="
         "TOPIC, name='t'): Invalid value 1 for configuration segment.bytes: Value must be"),
        (("min.compaction.lag.ms", SET, str(2**62)), ""),
        (("remote.storage.enable", SET, "true"), "remote.storage.enable=true: needs tiered"),
    ],
)  # fmt: skip
def test_what_a_topic_cannot_be_set_to(edit: tuple[str, int, str], beginning: str) -> None:
    stored = {"max.compaction.lag.ms": "5"}
    refused = topic(stored, edit)
    assert isinstance(refused, Refused)
    assert refused.error is ErrorCode.INVALID_CONFIG
    assert (refused.message or "").startswith(beginning)


def test_an_unknown_operation_is_refused() -> None:
    assert topic({}, ("retention.ms", 9, "5")) == Refused(
        INVALID, "Unknown operation 9 on retention.ms"
    )


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("broker.id", "5", "Cannot update these configs dynamically: Set(broker.id)"),
        ("log.retention.hours", "5",
         "Cannot update these configs dynamically: Set(log.retention.hours)"),
        ("log.retention.ms", "abc",
         "Invalid value abc for configuration log.retention.ms: Not a number of type LONG"),
        ("log.retention.ms", "0",
         "log.retention.ms=0: must be at least 1, or negative for unlimited"),
        ("nosuch", "5", "nosuch is not a setting that this broker knows."),
        ("num.io.threads", "9", "num.io.threads has no effect in this broker."),
        ("log.cleaner.threads", "9", "This broker does not honour log.cleaner.threads."),
        ("max.connections", "9",
         "This broker takes max.connections at its start alone, from server.properties."),
    ],
)  # fmt: skip
def test_what_a_broker_cannot_be_set_to(name: str, value: str, message: str) -> None:
    assert broker({}, (name, SET, value)) == Refused(INVALID, message)


def test_a_listener_is_one_brokers() -> None:
    edit = ("listeners", SET, "PLAINTEXT://:9")
    refused = broker({}, edit, name="")
    assert isinstance(refused, Refused)
    assert refused.message == (
        "Cannot update these configs at default cluster level, "
        "broker id must be specified: Set(listeners)"
    )
    refused = broker({}, edit)
    assert isinstance(refused, Refused)
    assert refused.message is not None
    assert refused.message.startswith("This broker takes listeners at its start")


def test_what_another_kind_of_broker_wrote_stays_and_can_be_removed() -> None:
    stored = {"num.io.threads": "9", "log.cleaner.threads": "2"}
    edit = ("log.retention.ms", SET, "5")
    assert broker(stored, edit) == {**stored, "log.retention.ms": "5"}
    assert broker(stored, ("num.io.threads", DELETE, None)) == {"log.cleaner.threads": "2"}


def test_every_key_that_can_be_changed_has_an_effect_on_what_holds() -> None:
    assert "log.retention.ms" in RUN_TIME_KEYS
    assert "message.max.bytes" in RUN_TIME_KEYS
    for name in sorted(RUN_TIME_KEYS):
        default = BROKER_KEYS[name].default or "0"
        for text in ("5", "50", "gzip", "compact", "LogAppendTime", "false", "0"):
            changed = broker({}, (name, SET, text))
            if text != default and not isinstance(changed, Refused):
                held = BrokerConfig().with_dynamic({}, changed)
                assert getattr(held, name.replace(".", "_")) != getattr(
                    BrokerConfig(), name.replace(".", "_")
                )
                break
        else:
            raise AssertionError(f"nothing could be set for {name}")


def test_values_that_somebody_wrote_past_the_checks_are_passed_over() -> None:
    held = BrokerConfig().with_dynamic(
        {"log.retention.ms": "7", "broker.id": "5"}, {"log.retention.ms": "x", "nosuch": "1"}
    )
    assert (held.log_retention_ms, held.broker_id, held.dynamic) == (7, -1, {})
    assert held.with_dynamic({}, {}).dynamic_default == {}


@behaviour("M1")
@pytest.mark.parametrize("line", RECORDED.read_text().splitlines())
def test_a_topics_settings_are_those_that_were_recorded(line: str) -> None:
    recorded = json.loads(line)
    edits = [ConfigEdit(*edit) for edit in recorded["edits"]]
    planned = plan_topic_alteration(Alteration(TOPIC, "o", edits), recorded["stored"])
    if isinstance(planned, Refused):
        assert planned.message == recorded["message"]
    else:
        assert dict(sorted(planned.items())) == dict(sorted(recorded["written"].items()))
