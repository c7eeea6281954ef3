"""Which partition of a coordinator's topic holds a group or a transactional id."""

_INT_SIGN = 0x8000_0000


def java_string_hash(text: str) -> int:
    """Java's String.hashCode: over UTF-16 units, as a signed 32-bit number."""
    value = 0
    encoded = text.encode("utf-16-be", "surrogatepass")
    for position in range(0, len(encoded), 2):
        unit = encoded[position] << 8 | encoded[position + 1]
        value = (value * 31 + unit) & 0xFFFF_FFFF
    return value - 2 * _INT_SIGN if value & _INT_SIGN else value


def coordinator_partition(name: str, partition_count: int) -> int:
    """The partition of `__consumer_offsets` for a group; 0 stands in where |hash| has no place."""
    value = java_string_hash(name)
    return (0 if value == -_INT_SIGN else abs(value)) % partition_count
