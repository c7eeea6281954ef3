"""The tables of configuration keys, and what is accepted, against Kafka's own jar."""

import base64
import random
import subprocess

from barnabas.model.config import BrokerConfig, TopicConfig, check_topic_overrides
from barnabas.model.config_definition import (
    Between,
    BetweenOr,
    ConfigKey,
    ConfigType,
    EachOf,
    Mark,
    OneOf,
    default_of,
)
from barnabas.model.config_keys import BROKER_KEYS, OUR_KEYS
from barnabas.model.errors import ConfigRefused
from barnabas.model.topic_config_keys import TOPIC_KEYS
from tests.tools import ROOT, java_command, need

SOURCE = ROOT / "tests" / "oracles" / "KafkaConfigs.java"


def _kafka(mode: str, lines: list[str]) -> list[str]:
    need("java")
    finished = subprocess.run(
        java_command(SOURCE, mode),
        input="\n".join(lines),
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    return finished.stdout.splitlines()


def _decoded(text: str) -> str | None:
    return None if text == "-" else base64.b64decode(text[1:]).decode()


def test_the_tables_hold_every_key_with_kafkas_type_default_importance_and_mode():
    theirs: dict[str, set[tuple[object, ...]]] = {"broker": set(), "topic": set()}
    for line in _kafka("keys", []):
        kind, name, type_name, default, importance, internal, mode, _, _ = line.split()
        row = (name, type_name, _decoded(default), importance, internal == "true", mode)
        theirs[kind].add(row)
    for kind, table in (("broker", BROKER_KEYS), ("topic", TOPIC_KEYS)):
        ours = {
            (
                key.name,
                key.type.name,
                key.default,
                key.importance.name,
                key.is_internal,
                str(key.mode.value),
            )
            for key in table.values()
            if key.name not in OUR_KEYS
        }
        assert ours == theirs[kind]


def test_topic_keys_have_kafkas_synonyms_with_their_factors():
    theirs: dict[str, list[tuple[str, int]]] = {}
    for line in _kafka("keys", []):
        kind, name, *_, synonyms = line.split()
        if kind == "topic":
            entries = [entry for entry in synonyms.removeprefix("-").split(",") if entry]
            theirs[name] = [
                (synonym, int(factor) if factor.isdigit() else 1)
                for synonym, factor in (entry.split("*") for entry in entries)
            ]
    assert {
        name: [(synonym.name, synonym.factor) for synonym in key.synonyms]
        for name, key in TOPIC_KEYS.items()
    } == theirs


def _probes(key: ConfigKey) -> list[str]:
    """Texts at and beyond every limit of a key, and of other types."""
    texts = [
        "",
        " ",
        "-1",
        "0",
        "1",
        "7 ",
        "+5",
        "007",
        "1.5",
        "1e3",
        ".5",
        "abc",
        "TRUE",
        " false ",
    ]
    texts += [str(2**15), str(2**31 - 1), str(2**31), str(-(2**31) - 1), str(2**63 - 1), str(2**63)]
    texts += ["-2", "0x10", "1_000", "NaNa", "*", "1:2,3:4", "1:2,*", "none", "a,b", "9" * 50]
    valid = key.valid
    if isinstance(valid, Between):
        texts += [f"{limit + step:g}" for limit in valid for step in (-1, 0, 1) if limit < 1e12]
    if isinstance(valid, BetweenOr):
        texts += [str(limit + step) for limit in valid for step in (-1, 0, 1)]
    if isinstance(valid, (OneOf, EachOf)):
        texts += [word.lower() for word in valid.words] + [",".join(valid.words)]
        texts += [word.upper() for word in valid.words] + [" , ".join(valid.words)]
    if key.name.endswith("version"):
        texts += [
            "3.9",
            "2.8.1",
            "0.10.2",
            "0.10",
            "2.8-IV1",
            "2.8-IV7",
            "3.0-IV1",
            "9.0",
            "0.11.0.1",
        ]
    return texts


def _topic_verdict(settings: dict[str, str]) -> str:
    try:
        check_topic_overrides(settings)
    except ConfigRefused as refused:
        return f"refused {refused}"
    return "ok"


def _broker_verdict(settings: dict[str, str]) -> str:
    try:
        BrokerConfig.resolve(settings)
    except ConfigRefused as refused:
        return f"refused {refused}"
    return "ok"


def _compare(kind: str, cases: list[dict[str, str]]) -> list[str]:
    judge = _topic_verdict if kind == "topic" else _broker_verdict
    lines = [
        f"{kind} "
        + base64.b64encode("\0".join(f"{k}={v}" for k, v in case.items()).encode()).decode()
        for case in cases
    ]
    unlike: list[str] = []
    for case, theirs in zip(cases, _kafka("judge", lines), strict=True):
        ours = judge(case)
        if ours.split()[0] != theirs.split()[0]:
            reason = _decoded(theirs.split()[1]) if theirs != "ok" else ""
            unlike.append(f"{case}: Kafka {theirs.split()[0]} {reason}; ours {ours}")
    return unlike


def test_topic_settings_are_accepted_and_refused_as_kafka_does():
    cases = [{key.name: text} for key in TOPIC_KEYS.values() for text in _probes(key)]
    cases += [
        {"min.compaction.lag.ms": "10", "max.compaction.lag.ms": str(other)}
        for other in (9, 10, 11)
    ]
    cases += [{"no.such.key": "1"}, {"segment.bytes": "100", "Segment.Bytes": "100"}]
    assert not _compare("topic", cases)


def test_broker_settings_are_accepted_and_refused_as_kafka_does():
    honoured = [key for key in BROKER_KEYS.values() if key.mark is Mark.HONOURED]
    cases = [
        {key.name: text}
        for key in honoured
        if key.name not in OUR_KEYS
        for text in _probes(key)
        # Java's own checks of a hostname and a path are the machine's, not the key's.
        if key.name not in ("listeners", "advertised.listeners")
    ]
    cases += [{"listeners": text} for text in LISTENERS]
    cases += [
        {"listeners": "A://:1,B://:2", "listener.security.protocol.map": MAP, **more}
        for more in (
            {},
            {"inter.broker.listener.name": "b"},
            {"inter.broker.listener.name": "C"},
            {"security.inter.broker.protocol": "PLAINTEXT"},
            {"inter.broker.listener.name": "A", "advertised.listeners": "A://x:1,B://x:1"},
            {"inter.broker.listener.name": "A", "advertised.listeners": "A://x:1"},
            {"inter.broker.listener.name": "A", "advertised.listeners": "B://x:1"},
            {"inter.broker.listener.name": "A", "advertised.listeners": "A://x:1,C://x:2"},
            {"inter.broker.listener.name": "A", "advertised.listeners": "A://0.0.0.0:1"},
        )
    ]
    cases += [
        {"broker.id": "1001"},
        {"broker.id": "1001", "reserved.broker.max.id": "1001"},
        {"broker.id": "1001", "broker.id.generation.enable": "false"},
        {"broker.id": "-1", "broker.id.generation.enable": "false"},
        {"broker.id": "3", "node.id": "3"},
        {"log.retention.ms": "-1", "log.retention.hours": "0"},
        {"log.retention.ms": "0", "log.retention.hours": "1"},
        {"replica.fetch.wait.max.ms": "40000", "replica.socket.timeout.ms": "50000"},
        {"max.connections.per.ip": "0", "max.connections.per.ip.overrides": "127.0.0.1:5"},
    ]
    assert not _compare("broker", cases)


# Ports beyond 65535 and below 0, which we refuse at once, Kafka meets only when it binds.
LISTENERS = [
    *("PLAINTEXT://:9092", "plaintext://h:1", "PLAINTEXT://[::1]:9092", "PLAINTEXT://h", "X://h:1"),
    *(
        "PLAINTEXT://h:1,PLAINTEXT://h:2",
        "h:9092",
        "://:1",
    ),
    *("PLAINTEXT://h:1 , SSL://h:1", "PLAINTEXT://h:1,SSL://h:2", "PLAINTEXT://0.0.0.0:9092"),
    *("PLAINTEXT://:0,SSL://:0", "PLAINTEXT://127.0.0.1:9,SSL://[::1]:9", "PLAINTEXT://a_b:9", ""),
]
MAP = "A:PLAINTEXT,B:PLAINTEXT,C:PLAINTEXT"


def test_what_is_refused_here_is_refused_by_kafka_for_every_key_known():
    others = [key for key in BROKER_KEYS.values() if key.mark is not Mark.HONOURED]
    cases = [
        {key.name: text}
        for key in others
        for text in _probes(key)
        if _broker_verdict({key.name: text}) != "ok"
    ]
    assert len(cases) > 1000
    assert not _compare("broker", cases)


def test_a_topic_without_overrides_gets_what_its_broker_was_told():
    source = random.Random(5)
    for key in TOPIC_KEYS.values():
        for synonym in key.synonyms:
            broker_key = BROKER_KEYS[synonym.name]
            if broker_key.type not in (ConfigType.INT, ConfigType.LONG):
                continue
            number = source.randint(14, 22)
            if isinstance(broker_key.valid, BetweenOr) or "compression" in key.name:
                number = 5
            config = TopicConfig.resolve(BrokerConfig.resolve({synonym.name: str(number)}), {})
            value = getattr(config, key.name.replace(".", "_"))
            assert value == number * synonym.factor, key.name
            assert default_of(key) != value
