"""What members of a consumer group tell each other: which partitions a member has."""

from barnabas.model.errors import DecodeError
from barnabas.model.ids import TopicPartition

PARTITIONS_MAX = 1_000_000


def read_assignment(data: bytes) -> list[TopicPartition]:
    """The partitions of an assignment of any version; none for a member without one."""
    if not data:
        return []
    reader = _Reader(data, 2)
    found: list[TopicPartition] = []
    for _ in range(reader.count()):
        topic = reader.string()
        count = reader.count()
        if count > PARTITIONS_MAX - len(found):
            raise DecodeError("an assignment of too many partitions")
        found += [TopicPartition(topic, reader.int32()) for _ in range(count)]
    return found


class _Reader:
    def __init__(self, data: bytes, position: int) -> None:
        self._data = data
        self._position = position

    def count(self) -> int:
        number = self.int32()
        if not 0 <= number <= len(self._data):
            raise DecodeError(f"{number} items in an assignment of {len(self._data)} bytes")
        return number

    def int32(self) -> int:
        return int.from_bytes(self._take(4), "big", signed=True)

    def string(self) -> str:
        size = int.from_bytes(self._take(2), "big", signed=True)
        return self._take(max(0, size)).decode("utf-8", "replace")

    def _take(self, size: int) -> bytes:
        end = self._position + size
        if end > len(self._data):
            raise DecodeError("an assignment that ends too early")
        taken = self._data[self._position : end]
        self._position = end
        return taken
