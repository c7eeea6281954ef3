"""server.properties, the environment, and which of them wins."""

import pytest

from barnabas.formats.properties import merge, read_environment, read_properties, to_variable
from barnabas.model.config_keys import BROKER_KEYS
from barnabas.model.errors import DecodeError


def test_every_setting_says_on_which_line_it_stands():
    text = b"# a comment\n\nbroker.id=1\nlog.dirs=/a,\\\n    /b\r\nnum.partitions : 3\n! no\nx y\n"
    settings = read_properties(text, "server.properties")
    assert [(*setting,) for setting in settings] == [
        ("broker.id", "1", "server.properties:3"),
        ("log.dirs", "/a,/b", "server.properties:4"),
        ("num.partitions", "3", "server.properties:6"),
        ("x", "y", "server.properties:8"),
    ]


def test_a_broken_escape_names_its_line():
    with pytest.raises(DecodeError, match=r"server\.properties:2"):
        read_properties(b"a=1\nb=\\u12\n", "server.properties")


@pytest.mark.parametrize(
    ("variable", "name"),
    [
        ("KAFKA_BROKER_ID", "broker.id"),
        ("KAFKA_ADVERTISED_LISTENERS", "advertised.listeners"),
        ("KAFKA_ZOOKEEPER_CLIENTCNXNSOCKET", "zookeeper.clientCnxnSocket"),
        ("KAFKA_A__B", "a_b"),
        ("KAFKA_A___B", "a-b"),
        ("KAFKA_A_B__C___D", "a.b_c-d"),
    ],
)
def test_variables_name_keys(variable: str, name: str):
    assert [setting.name for setting in read_environment({variable: "v"}, BROKER_KEYS)] == [name]


def test_every_key_comes_back_from_its_variable():
    for name in BROKER_KEYS:
        settings = read_environment({to_variable(name): "v"}, BROKER_KEYS)
        assert [setting.name for setting in settings] == [name]


def test_variables_of_kafkas_scripts_are_no_settings():
    environment = {"KAFKA_HEAP_OPTS": "-Xmx1g", "KAFKA_OPTS": "", "PATH": "/bin"}
    assert read_environment(environment, BROKER_KEYS) == []


def test_the_environment_beats_the_file_and_a_later_line_an_earlier_one():
    lines = read_properties(b"num.partitions=1\nnum.partitions=2\nbroker.id=1\n", "f")
    variables = read_environment({"KAFKA_BROKER_ID": "7"}, BROKER_KEYS)
    merged = merge(lines, variables)
    assert (merged["num.partitions"].text, merged["num.partitions"].origin) == ("2", "f:2")
    assert (merged["broker.id"].text, merged["broker.id"].origin) == ("7", "KAFKA_BROKER_ID")
