"""How much a decompressor may give back: bounded by size and by ratio, counted as it comes."""

from typing import NamedTuple

from barnabas.model.errors import DecompressedTooLarge


class DecompressionLimits(NamedTuple):
    """What one compressed payload may become.

    Highly repetitive records compress by thousands, so that a ratio alone would refuse honest
    batches: up to `free_bytes` no ratio is asked for.
    """

    output_bytes_max: int = 128 * 1024 * 1024
    ratio_max: int = 1024
    free_bytes: int = 8 * 1024 * 1024

    def allowed_bytes(self, compressed_bytes: int) -> int:
        """How many bytes may come out of so many."""
        by_ratio = max(self.free_bytes, compressed_bytes * self.ratio_max)
        return min(self.output_bytes_max, by_ratio)


DEFAULT_LIMITS = DecompressionLimits()


class BoundedOutput:
    """The pieces of decompressed output so far; raises as soon as they are too many."""

    __slots__ = ("_pieces", "allowed_bytes", "size_bytes")

    def __init__(self, allowed_bytes: int) -> None:
        self.allowed_bytes = allowed_bytes
        self.size_bytes = 0
        self._pieces: list[bytes] = []

    @property
    def remaining_bytes(self) -> int:
        return self.allowed_bytes - self.size_bytes

    def check_room(self, more_bytes: int) -> None:
        """Raise unless `more_bytes` may still come; called before they are allocated."""
        if more_bytes > self.remaining_bytes:
            raise DecompressedTooLarge(
                f"decompression stopped: more than the {self.allowed_bytes} bytes allowed"
            )

    def add(self, piece: bytes) -> None:
        self.check_room(len(piece))
        self.size_bytes += len(piece)
        self._pieces.append(piece)

    def to_bytes(self) -> bytes:
        return self._pieces[0] if len(self._pieces) == 1 else b"".join(self._pieces)
