"""Keys go where Kafka's own producer sends them; a conformance test asks it for many more."""

import pytest

from barnabas.client.partitioner import murmur2, partition_of


@pytest.mark.parametrize(
    ("key", "hashed"),
    [
        (b"21", -973932308),
        (b"foobar", -790332482),
        (b"a-little-bit-long-string", -985981536),
        (b"a-little-bit-longer-string", -1486304829),
        (b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8", -58897971),
        (b"abc", 479470107),
    ],
)
def test_the_hash_of_kafka_clients(key: bytes, hashed: int):
    assert murmur2(key) == hashed & 0xFFFF_FFFF


def test_the_sign_is_cut_off_and_not_turned():
    assert partition_of(b"21", 7) == (-973932308 & 0x7FFF_FFFF) % 7
