"""The order in which Java's hash maps give things back: the scripts print settings in it."""

from collections.abc import Callable, Iterable
from typing import TypeVar

from barnabas.model.ids import TopicPartition

T = TypeVar("T")

SMALLEST_TABLE = 16


def string_hash(text: str) -> int:
    """`String.hashCode`, as an unsigned number."""
    hashed = 0
    units = text.encode("utf-16-be")
    for at in range(0, len(units), 2):
        hashed = (31 * hashed + (units[at] << 8 | units[at + 1])) & 0xFFFF_FFFF
    return hashed


def partition_hash(place: TopicPartition) -> int:
    """`TopicPartition.hashCode`, as an unsigned number."""
    return (31 * (31 + place.partition) + string_hash(place.topic)) & 0xFFFF_FFFF


def in_map_order(items: Iterable[T], hash_of: Callable[[T], int]) -> list[T]:
    """Items as a `HashMap` that grew with them walks over them."""
    given = list(items)
    size = SMALLEST_TABLE
    while len(given) > size * 3 // 4:
        size *= 2

    def bucket_of(item: T) -> int:
        hashed = hash_of(item)
        return (hashed ^ (hashed >> 16)) & (size - 1)

    return sorted(given, key=bucket_of)
