"""What the wire client knows by heart is what Kafka's own clients know."""

import random

import pytest

from barnabas.client.partitioner import murmur2
from barnabas.client.retries import RETRIABLE
from tests.oracles.kafka_tools import murmur2_of, retriable_codes
from tests.tools import need


@pytest.fixture(scope="module", autouse=True)
def java() -> None:
    need("java")


def test_the_same_codes_are_asked_again_for():
    assert {code.name for code in RETRIABLE} == set(retriable_codes())


def test_keys_have_the_same_hash():
    chance = random.Random(1)
    keys = [b"", b"a", "schlüssel".encode(), *(chance.randbytes(size) for size in range(200))]
    assert [murmur2(key) for key in keys] == [each & 0xFFFF_FFFF for each in murmur2_of(keys)]
