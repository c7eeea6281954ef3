"""What a partition knows of its producers: sequences, duplicates, open and aborted transactions.

Hot: compiled by mypyc where a compiler is there. An append by a producer with an id is checked
here before it is staged; followers and recovery only take note.
"""

from collections.abc import Iterable
from typing import Final

from barnabas.formats.batches.header import BatchHeader
from barnabas.formats.logdir.producer_snapshot import ProducerSnapshotEntry
from barnabas.formats.logdir.transaction_index import AbortedTransaction
from barnabas.model.error_codes import ErrorCode
from barnabas.model.ids import ProducerId
from barnabas.model.invariant import invariant

BATCHES_KEPT: Final = 5
NO_OFFSET: Final = -1
SEQUENCE_MAX: Final = 0x7FFF_FFFF

NONE: Final = ErrorCode.NONE
INVALID_PRODUCER_EPOCH: Final = ErrorCode.INVALID_PRODUCER_EPOCH
OUT_OF_ORDER_SEQUENCE_NUMBER: Final = ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
INVALID_TXN_STATE: Final = ErrorCode.INVALID_TXN_STATE
TRANSACTION_COORDINATOR_FENCED: Final = ErrorCode.TRANSACTION_COORDINATOR_FENCED


class BatchMetadata:
    """What is kept of a batch in order to know it again."""

    __slots__ = ("last_offset", "last_sequence", "offset_delta", "timestamp")

    def __init__(
        self, last_sequence: int, last_offset: int, offset_delta: int, timestamp: int
    ) -> None:
        self.last_sequence: int = last_sequence
        self.last_offset: int = last_offset
        self.offset_delta: int = offset_delta
        self.timestamp: int = timestamp

    @property
    def first_offset(self) -> int:
        return self.last_offset - self.offset_delta

    @property
    def first_sequence(self) -> int:
        """Sequences wrap at 2^31, as `increment_sequence` says."""
        return (self.last_sequence - self.offset_delta) & SEQUENCE_MAX


class ProducerEntry:
    """One producer id; the batches are those of its current epoch, oldest first."""

    __slots__ = (
        "batches",
        "coordinator_epoch",
        "last_timestamp",
        "producer_epoch",
        "producer_id",
        "transaction_first_offset",
    )

    def __init__(self, producer_id: int) -> None:
        self.producer_id: int = producer_id
        self.producer_epoch: int = -1
        self.coordinator_epoch: int = -1
        self.last_timestamp: int = -1
        self.transaction_first_offset: int = NO_OFFSET
        """Where its open transaction begins; NO_OFFSET when none is open."""
        self.batches: list[BatchMetadata] = []

    def start_epoch(self, producer_epoch: int) -> None:
        if self.producer_epoch != producer_epoch:
            self.batches.clear()
            self.producer_epoch = producer_epoch


class OpenTransaction:
    """A transaction in this partition, until its end is known and replicated."""

    __slots__ = ("first_offset", "last_offset", "producer_id")

    def __init__(self, producer_id: int, first_offset: int) -> None:
        self.producer_id: int = producer_id
        self.first_offset: int = first_offset
        self.last_offset: int = NO_OFFSET
        """Where the marker stands that ended it."""


class ProducerState:
    """All producers of one partition, and which offsets are not stable yet."""

    __slots__ = ("_completed", "_ongoing", "_producers", "first_unstable_offset")

    def __init__(self) -> None:
        self._producers: dict[int, ProducerEntry] = {}
        self._ongoing: dict[int, OpenTransaction] = {}
        """By first offset; there are few at a time."""
        self._completed: dict[int, OpenTransaction] = {}
        """Ended, but the marker is not below the high watermark yet; by first offset."""
        self.first_unstable_offset: int = NO_OFFSET
        """Where the first transaction begins that is open or whose end is not replicated."""

    def __len__(self) -> int:
        return len(self._producers)

    def producer(self, producer_id: int) -> ProducerEntry | None:
        return self._producers.get(producer_id)

    def producers(self) -> Iterable[ProducerEntry]:
        return self._producers.values()

    # Appends of a leader

    def find_duplicate(self, header: BatchHeader) -> BatchMetadata | None:
        """The kept batch with the same epoch and sequences: it was appended before."""
        entry = self._producers.get(header.producer_id)
        if entry is None or entry.producer_epoch != header.producer_epoch:
            return None
        first_sequence = header.base_sequence
        last_sequence = header.last_sequence
        for batch in entry.batches:
            if batch.last_sequence == last_sequence and batch.first_sequence == first_sequence:
                return batch
        return None

    def check(self, header: BatchHeader) -> ErrorCode:
        """Whether a client's batch may be appended: epoch, sequence, transaction."""
        entry = self._producers.get(header.producer_id)
        if entry is None:
            return NONE
        epoch = header.producer_epoch
        if epoch < entry.producer_epoch:
            return INVALID_PRODUCER_EPOCH
        if header.base_sequence >= 0:
            if epoch != entry.producer_epoch:
                if header.base_sequence != 0 and entry.producer_epoch != -1:
                    return OUT_OF_ORDER_SEQUENCE_NUMBER
            elif entry.producer_epoch != -1:
                last_sequence = entry.batches[-1].last_sequence if entry.batches else -1
                if header.base_sequence != last_sequence + 1 and not (
                    header.base_sequence == 0 and last_sequence == SEQUENCE_MAX
                ):
                    return OUT_OF_ORDER_SEQUENCE_NUMBER
        if entry.transaction_first_offset >= 0 and not header.is_transactional:
            return INVALID_TXN_STATE
        return NONE

    def check_marker(
        self, producer_id: int, producer_epoch: int, coordinator_epoch: int
    ) -> ErrorCode:
        """Whether a coordinator's end marker may be appended."""
        entry = self._producers.get(producer_id)
        if entry is None:
            return NONE
        if producer_epoch < entry.producer_epoch:
            return INVALID_PRODUCER_EPOCH
        if coordinator_epoch < entry.coordinator_epoch:
            return TRANSACTION_COORDINATOR_FENCED
        return NONE

    # What was appended, by a leader, a follower or in recovery

    def note_batch(self, header: BatchHeader, base_offset: int, timestamp: int) -> None:
        """Keep a data batch of a producer with an id."""
        producer_id = header.producer_id
        entry = self._producers.get(producer_id)
        if entry is None:
            entry = ProducerEntry(producer_id)
            self._producers[producer_id] = entry
        entry.start_epoch(header.producer_epoch)
        delta = header.last_offset_delta
        batches = entry.batches
        if len(batches) == BATCHES_KEPT:
            del batches[0]
        batches.append(BatchMetadata(header.last_sequence, base_offset + delta, delta, timestamp))
        entry.last_timestamp = timestamp
        if header.is_transactional and entry.transaction_first_offset < 0:
            entry.transaction_first_offset = base_offset
            self._ongoing[base_offset] = OpenTransaction(producer_id, base_offset)
            self._find_first_unstable()

    def note_marker(
        self,
        header: BatchHeader,
        is_commit: bool,
        coordinator_epoch: int,
        offset: int,
        timestamp: int,
    ) -> AbortedTransaction | None:
        """Keep an end marker; what the transaction index must hold when it aborted something."""
        producer_id = header.producer_id
        entry = self._producers.get(producer_id)
        if entry is None:
            entry = ProducerEntry(producer_id)
            self._producers[producer_id] = entry
        entry.start_epoch(header.producer_epoch)
        first_offset = entry.transaction_first_offset
        entry.coordinator_epoch = coordinator_epoch
        entry.transaction_first_offset = NO_OFFSET
        entry.last_timestamp = timestamp
        if first_offset < 0:
            return None
        last_stable_offset = offset + 1
        for transaction in self._ongoing.values():
            if transaction.producer_id != producer_id:
                last_stable_offset = min(last_stable_offset, transaction.first_offset)
        ended = self._ongoing.pop(first_offset, None)
        invariant(ended is not None, f"the transaction at {first_offset} is not open")
        if ended is not None:
            ended.last_offset = offset
            self._completed[first_offset] = ended
        self._find_first_unstable()
        if is_commit:
            return None
        return AbortedTransaction(ProducerId(producer_id), first_offset, offset, last_stable_offset)

    def note_replicated(self, high_watermark: int) -> None:
        """Ends of transactions below the high watermark are stable."""
        if not self._completed:
            return
        replicated = [
            first
            for first, transaction in self._completed.items()
            if transaction.last_offset < high_watermark
        ]
        for first in replicated:
            del self._completed[first]
        if replicated:
            self._find_first_unstable()

    def _find_first_unstable(self) -> None:
        first = NO_OFFSET
        if self._ongoing:
            first = min(self._ongoing)
        if self._completed:
            completed = min(self._completed)
            if first < 0 or completed < first:
                first = completed
        self.first_unstable_offset = first

    # Snapshots, expiry

    def expire(self, wall_ms: int, expiration_ms: int) -> int:
        """Forget producers that wrote nothing for so long and have no open transaction."""
        expired = [
            producer_id
            for producer_id, entry in self._producers.items()
            if _is_expired(
                entry.transaction_first_offset, entry.last_timestamp, wall_ms, expiration_ms
            )
        ]
        for producer_id in expired:
            del self._producers[producer_id]
        return len(expired)

    def to_snapshot(self) -> list[ProducerSnapshotEntry]:
        """What a snapshot file keeps: of each producer, by its id, the last batch alone."""
        entries: list[ProducerSnapshotEntry] = []
        for producer_id in sorted(self._producers):
            entry = self._producers[producer_id]
            last = entry.batches[-1] if entry.batches else None
            entries.append(
                ProducerSnapshotEntry(
                    entry.producer_id,
                    entry.producer_epoch,
                    -1 if last is None else last.last_sequence,
                    -1 if last is None else last.last_offset,
                    0 if last is None else last.offset_delta,
                    entry.last_timestamp,
                    entry.coordinator_epoch,
                    entry.transaction_first_offset,
                )
            )
        return entries

    def load(
        self, entries: Iterable[ProducerSnapshotEntry], wall_ms: int, expiration_ms: int
    ) -> None:
        """Begin anew with what a snapshot tells, without those that have expired since."""
        self.clear()
        for kept in entries:
            first_offset = max(kept.current_transaction_first_offset, NO_OFFSET)
            if _is_expired(first_offset, kept.timestamp, wall_ms, expiration_ms):
                continue
            entry = ProducerEntry(kept.producer_id)
            entry.producer_epoch = kept.producer_epoch
            entry.coordinator_epoch = kept.coordinator_epoch
            entry.last_timestamp = kept.timestamp
            entry.transaction_first_offset = first_offset
            if kept.last_offset >= 0:
                entry.batches.append(
                    BatchMetadata(
                        kept.last_sequence, kept.last_offset, kept.offset_delta, kept.timestamp
                    )
                )
            self._producers[kept.producer_id] = entry
            if first_offset >= 0:
                self._ongoing[first_offset] = OpenTransaction(kept.producer_id, first_offset)
        self._find_first_unstable()

    def clear(self) -> None:
        self._producers.clear()
        self._ongoing.clear()
        self._completed.clear()
        self.first_unstable_offset = NO_OFFSET


def _is_expired(
    transaction_first_offset: int, last_timestamp: int, wall_ms: int, expiration_ms: int
) -> bool:
    return transaction_first_offset < 0 and wall_ms - last_timestamp >= expiration_ms
