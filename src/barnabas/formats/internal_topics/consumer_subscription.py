"""The subscription that a consumer puts into its JoinGroup: the topics it wants to read.

Brokers pass it on unread, save here: they must not drop the offsets of a topic that is consumed.
"""

from typing import Final

from librt.strings import read_i16_be

from barnabas.formats.codec.decoding import (
    allow_memory,
    read_count,
    read_nullable_bytes,
    read_string,
    refuse_null,
    refuse_short,
)

CONSUMER_PROTOCOL_TYPE: Final = "consumer"
"""The protocol type of groups whose members' metadata are such subscriptions."""


def subscribed_topics(data: bytes) -> frozenset[str]:
    """What stands in every version alike; `DecodeError` for anything else."""
    end = len(data)
    if end < 2 or read_i16_be(data, 0) < 0:
        refuse_short("version", 0, end)
    allow_memory(end)
    count, position = read_count(data, 2, end, 2, 0)
    if count < 0:
        refuse_null("topics")
    topics: list[str] = []
    for _ in range(count):
        topic, position = read_string(data, position, end)
        topics.append(topic)
    read_nullable_bytes(data, position, end)
    return frozenset(topics)
