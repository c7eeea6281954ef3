"""/latest_producer_id_block: the producer ids claimed last; all below are spent."""

from dataclasses import dataclass

from barnabas.formats.znodes.json_fields import INT64_MAX, parse_object, to_json
from barnabas.model.errors import DecodeError
from barnabas.model.ids import BrokerId, ProducerId

PRODUCER_ID_BLOCK_PATH = "/latest_producer_id_block"
PRODUCER_ID_BLOCK_SIZE = 1000

_VERSION = 1


@dataclass(frozen=True, slots=True)
class ProducerIdBlock:
    """A range of producer ids, both ends included, and the broker it was claimed for."""

    broker_id: BrokerId
    first_producer_id: ProducerId
    last_producer_id: ProducerId

    @classmethod
    def first(cls, broker_id: BrokerId) -> "ProducerIdBlock":
        """The block of a cluster that has given none so far."""
        return cls(broker_id, ProducerId(0), ProducerId(PRODUCER_ID_BLOCK_SIZE - 1))

    def next(self, broker_id: BrokerId) -> "ProducerIdBlock | None":
        """The block after this one; None when the ids are used up."""
        first = self.last_producer_id + 1
        last = self.last_producer_id + PRODUCER_ID_BLOCK_SIZE
        if last > INT64_MAX:
            return None
        return ProducerIdBlock(broker_id, ProducerId(first), ProducerId(last))

    def to_bytes(self) -> bytes:
        return to_json(
            {
                "version": _VERSION,
                "broker": self.broker_id,
                "block_start": str(self.first_producer_id),
                "block_end": str(self.last_producer_id),
            }
        )

    @classmethod
    def from_bytes(cls, path: str, data: bytes | None) -> "ProducerIdBlock":
        found = parse_object(path, data)
        first, last = found.long_text("block_start"), found.long_text("block_end")
        if not 0 <= first <= last:
            raise DecodeError(f"{path}: found a block from {first} to {last}")
        return cls(BrokerId(found.integer("broker")), ProducerId(first), ProducerId(last))
