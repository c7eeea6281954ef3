"""Options of Kafka's scripts, addresses, and the order of Java's maps."""

import pytest

from barnabas.admin.addresses import parse_addresses
from barnabas.admin.kafka_scripts.java_order import in_map_order, partition_hash, string_hash
from barnabas.admin.kafka_scripts.options import BadOption, Options, Takes
from barnabas.client.steps import Address
from barnabas.model.ids import TopicPartition

KNOWN = {
    "topic": Takes.TEXT,
    "list": Takes.NOTHING,
    "partitions": Takes.NUMBER,
    "state": Takes.MAYBE,
}


def test_values_stand_behind_a_space_or_an_equals_sign():
    options = Options(KNOWN, ["--topic", "a", "--partitions=3", "--state", "--list"])
    assert (options.value("topic"), options.number("partitions")) == ("a", 3)
    assert options.has("state") and options.value("state") is None
    assert options.has("list")


def test_a_beginning_that_means_one_option_is_that_option():
    assert Options(KNOWN, ["--par", "3"]).number("partitions") == 3


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--nonsense"], "nonsense is not a recognized option"),
        (["--topic"], "Option topic requires an argument"),
        (["--topic", "--list"], "Option topic requires an argument"),
    ],
)
def test_what_is_no_option_is_refused(arguments: list[str], told: str):
    with pytest.raises(BadOption, match=told):
        Options(KNOWN, arguments)


def test_one_value_is_one():
    with pytest.raises(BadOption, match="Found multiple arguments"):
        Options(KNOWN, ["--topic", "a", "--topic", "b"]).value("topic")


def test_hashes_are_those_of_java():
    assert string_hash("hello") == 99162322
    assert string_hash("min.insync.replicas") < 1 << 32
    assert partition_hash(TopicPartition("a", 1)) == 31 * 32 + 97
    assert in_map_order(["b", "a", "q"], string_hash) == ["a", "q", "b"]


def test_addresses_are_read_as_people_write_them():
    assert parse_addresses("a:1, b ,[::1]:2") == [
        Address("a", 1),
        Address("b", 9092),
        Address("::1", 2),
    ]
    for text in ("", "a:x", "a:0", "PLAINTEXT://a:1"):
        with pytest.raises(ValueError):
            parse_addresses(text)
