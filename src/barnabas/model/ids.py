"""Names of things: brokers, topics, partitions, producers."""

from typing import NamedTuple, NewType

BrokerId = NewType("BrokerId", int)
"""A replica id is a broker id (row K6)."""

TopicId = NewType("TopicId", bytes)
"""Sixteen bytes; all zero means that no id is known."""

ProducerId = NewType("ProducerId", int)

NO_BROKER = BrokerId(-1)
NO_TOPIC_ID = TopicId(bytes(16))
NO_PRODUCER_ID = ProducerId(-1)


class TopicPartition(NamedTuple):
    """A partition by the name of its topic; the key of every map on the data plane."""

    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"
