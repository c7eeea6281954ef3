"""Which partition a record goes to: by the hash of its key, as Kafka's own producer does it."""

from typing import Final

SEED: Final = 0x9747B28C
MULTIPLIER: Final = 0x5BD1E995
SHIFT: Final = 24
MASK: Final = 0xFFFF_FFFF


def murmur2(data: bytes) -> int:
    """The 32-bit hash of Kafka's clients, as an unsigned number."""
    size = len(data)
    hashed = (SEED ^ size) & MASK
    whole = size & ~3
    for at in range(0, whole, 4):
        word = int.from_bytes(data[at : at + 4], "little") * MULTIPLIER & MASK
        word = (word ^ (word >> SHIFT)) * MULTIPLIER & MASK
        hashed = (hashed * MULTIPLIER & MASK) ^ word
    if size != whole:
        hashed ^= int.from_bytes(data[whole:], "little")
        hashed = hashed * MULTIPLIER & MASK
    hashed = (hashed ^ (hashed >> 13)) * MULTIPLIER & MASK
    return hashed ^ (hashed >> 15)


def partition_of(key: bytes, partitions: int) -> int:
    """The partition of a record with a key."""
    return (murmur2(key) & 0x7FFF_FFFF) % partitions
