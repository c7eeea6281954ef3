"""A key is marked as honoured when, and only when, something reads its attribute."""

import ast
from dataclasses import fields

from barnabas.model.config import TopicConfig
from barnabas.model.config_definition import Mark
from barnabas.model.config_keys import BROKER_KEYS
from barnabas.model.topic_config_keys import TOPIC_KEYS
from tests.tidy.sources import name_of, python_files, tree_of

READ_WHILE_RESOLVING = (
    # Their values decide what other attributes become, inside model.config.
    "node_id",
    "log_dir",
    "listener_security_protocol_map",
    "security_inter_broker_protocol",
    "inter_broker_listener_name",
    "broker_id_generation_enable",
    "reserved_broker_max_id",
)


APART = tuple(f"src/barnabas/{package}/" for package in ("model", "client", "admin"))


def _attributes_read() -> frozenset[str]:
    """Every attribute that is read on the broker's side, outside the configuration itself."""
    return frozenset(
        node.attr
        for path in python_files("src")
        if not name_of(path).startswith(APART)
        for node in ast.walk(tree_of(path))
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load)
    )


def _stands_behind_topics(name: str) -> bool:
    return any(
        synonym.name == name
        for key in TOPIC_KEYS.values()
        if key.mark is Mark.HONOURED
        for synonym in key.synonyms
    )


def test_honoured_topic_keys_are_read_and_no_others():
    read = _attributes_read()
    own = {field.name for field in fields(TopicConfig)}
    aliases = {
        "message_timestamp_before_max_ms": "timestamp_before_max_ms",
        "message_timestamp_after_max_ms": "timestamp_after_max_ms",
        "message_timestamp_difference_max_ms": "timestamp_before_max_ms",
    }
    for name, key in TOPIC_KEYS.items():
        attribute = name.replace(".", "_")
        assert attribute in own
        is_read = attribute in read or aliases.get(attribute) in read
        assert is_read == (key.mark is Mark.HONOURED), f"{name} is marked {key.mark.value}"


def test_honoured_broker_keys_are_read_and_no_others():
    read = _attributes_read()
    for name, key in BROKER_KEYS.items():
        attribute = name.replace(".", "_")
        is_read = (
            attribute in read or attribute in READ_WHILE_RESOLVING or _stands_behind_topics(name)
        )
        assert is_read == (key.mark is Mark.HONOURED), f"{name} is marked {key.mark.value}"
