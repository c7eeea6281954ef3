"""Record batches inside a message: a span of the frame, never copied out of it by a decoder."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from mypy_extensions import i64


class RecordsSpan:
    """The batches at data[start:end]; keeps the whole of `data` alive."""

    __slots__ = ("data", "end", "start")

    def __init__(self, data: bytes, start: i64, end: i64) -> None:
        self.data = data
        self.start = start
        self.end = end

    @property
    def size_bytes(self) -> int:
        return self.end - self.start

    def to_bytes(self) -> bytes:
        """A copy of the batches alone."""
        return self.data[self.start : self.end]

    def __eq__(self, other: object) -> bool:
        if isinstance(other, RecordsSpan):
            return self.to_bytes() == other.to_bytes()
        if isinstance(other, bytes):
            return self.to_bytes() == other
        return NotImplemented

    def __repr__(self) -> str:
        return f"RecordsSpan({self.start}:{self.end}, {self.end - self.start} bytes)"


class SizedRecords(Protocol):
    """Batches that stay where they are until a transport takes them: a slice of a file."""

    @property
    def size_bytes(self) -> int: ...


Records = RecordsSpan | bytes | memoryview | SizedRecords
"""What a field of type records may hold; a decoder gives RecordsSpan."""

Cut = tuple[int, SizedRecords]
"""A position in the written bytes and what belongs there without having been copied."""
