"""A partition's log read from start to end, a piece a turn, for whoever keeps state in it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from barnabas.broker.partition import Partition
from barnabas.formats.batches.header import BatchHeader
from barnabas.formats.batches.reader import Record, batches_in, read_records
from barnabas.model.errors import CorruptBatch, DiskError
from barnabas.storage.disk import FileSlice

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker

BYTES_PER_TURN: Final = 256 * 1024
"""Read and decoded before others get their turn; a larger batch comes whole."""


class LogScan:
    """Hands over the records of a log up to its end as it was at the beginning.

    `on_batch` gets them in order, `on_end` the reason when the log cannot be read, None when all
    of it was. Nothing is called any more after `stop`.
    """

    def __init__(
        self,
        broker: Broker,
        partition: Partition,
        on_batch: Callable[[BatchHeader, list[Record]], None],
        on_end: Callable[[str | None, int], None],
    ) -> None:
        self._broker = broker
        self._partition = partition
        self._on_batch = on_batch
        self._on_end = on_end
        log = partition.log
        self._offset = 0 if log is None else log.log_start_offset
        self._end_offset = 0 if log is None else log.log_end_offset
        self._is_stopped = False

    def start(self, now_ms: int) -> None:
        """Begin in a turn of its own."""
        self._broker.deadlines.at(now_ms, self._read_on)

    def stop(self) -> None:
        """Forget it: nobody wants to know any more."""
        self._is_stopped = True

    def _read_on(self, now_ms: int) -> None:
        if self._is_stopped:
            return
        if self._offset >= self._end_offset:
            self._on_end(None, now_ms)
            return
        try:
            data = self._read()
            if not data:
                # What was there before is gone: the log was cut, and leads to no state of ours.
                self._on_end(f"the log ends before offset {self._end_offset}", now_ms)
                return
            self._hand_over(data)
        except DiskError as problem:
            self._broker.replicas.take_offline(self._partition, problem.reason, now_ms)
            self._on_end(problem.reason, now_ms)
        except CorruptBatch as problem:
            self._on_end(str(problem), now_ms)
        else:
            self._broker.deadlines.at(now_ms, self._read_on)

    def _read(self) -> bytes:
        log = self._partition.log
        if log is None:
            return b""
        found = log.read(self._offset, BYTES_PER_TURN, self._end_offset, must_return_one=True)
        if isinstance(found, FileSlice):
            try:
                return found.disk.read(found.file, found.position, found.size_bytes)
            finally:
                found.disk.release(found.file)
        return found or b""

    def _hand_over(self, data: bytes) -> None:
        for position, header in batches_in(data, 0, len(data)):
            self._on_batch(header, read_records(data, header, position))
            self._offset = header.next_offset
