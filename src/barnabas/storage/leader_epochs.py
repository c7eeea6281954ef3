"""The leader epochs of one log: which epoch began at which offset (leader-epoch-checkpoint)."""

from bisect import bisect_right
from collections.abc import Iterable
from typing import Final, NamedTuple

from barnabas.formats.logdir.checkpoints import EpochEntry
from barnabas.model.invariant import invariant

NO_EPOCH: Final = -1
UNDEFINED_OFFSET: Final = -1


class EpochEnd(NamedTuple):
    """The largest epoch of a log that is not above the one asked for, and where it ends."""

    epoch: int
    end_offset: int


UNDEFINED_EPOCH_END: Final = EpochEnd(NO_EPOCH, UNDEFINED_OFFSET)


class LeaderEpochs:
    """Epochs and their start offsets, both growing.

    The file is written when `is_dirty` is found set: at a flush, at closing, or soon after the
    change, off the loop. What a crash takes from it is either told again by the batches behind
    the recovery point or belongs to an epoch nobody wrote in.
    """

    __slots__ = ("_entries", "is_dirty", "latest_epoch")

    def __init__(self, entries: Iterable[EpochEntry] = ()) -> None:
        self._entries: list[EpochEntry] = []
        self.latest_epoch: int = NO_EPOCH
        self.is_dirty: bool = False
        for entry in entries:
            self.assign(entry.epoch, entry.start_offset)
        self.is_dirty = False

    def entries(self) -> tuple[EpochEntry, ...]:
        return tuple(self._entries)

    def __len__(self) -> int:
        return len(self._entries)

    def assign(self, epoch: int, start_offset: int) -> None:
        """Note that `epoch` began at `start_offset`; what contradicts it is dropped.

        A repetition changes nothing. Entries at or above the epoch, or at or above the offset,
        were of records that are gone.
        """
        if epoch < 0 or start_offset < 0:
            return
        entries = self._entries
        if entries and epoch == entries[-1].epoch and start_offset >= entries[-1].start_offset:
            return
        while entries and (entries[-1].epoch >= epoch or entries[-1].start_offset >= start_offset):
            entries.pop()
        entries.append(EpochEntry(epoch, start_offset))
        self.latest_epoch = epoch
        self.is_dirty = True

    def end_offset_for(self, epoch: int, log_end_offset: int) -> EpochEnd:
        """Where the largest epoch not above `epoch` ends; the log's end for the latest.

        Undefined when the epoch is unknown, younger than all, or there are none. An epoch older
        than all ends where the first known one starts, and is answered as asked for.
        """
        entries = self._entries
        if epoch == NO_EPOCH or not entries:
            return UNDEFINED_EPOCH_END
        if epoch == self.latest_epoch:
            return EpochEnd(epoch, log_end_offset)
        if epoch > self.latest_epoch:
            return UNDEFINED_EPOCH_END
        above = bisect_right(entries, epoch, key=_epoch_of)
        if above == 0:
            return EpochEnd(epoch, entries[0].start_offset)
        return EpochEnd(entries[above - 1].epoch, entries[above].start_offset)

    def epoch_at(self, offset: int) -> int:
        """The epoch of the record at an offset; NO_EPOCH before the first known one."""
        above = bisect_right(self._entries, offset, key=_start_of)
        return NO_EPOCH if above == 0 else self._entries[above - 1].epoch

    def truncate_from_end(self, end_offset: int) -> None:
        """Forget epochs that start at or behind the new end of the log."""
        entries = self._entries
        while entries and entries[-1].start_offset >= end_offset:
            entries.pop()
            self.is_dirty = True
        self.latest_epoch = entries[-1].epoch if entries else NO_EPOCH

    def truncate_from_start(self, start_offset: int) -> None:
        """Forget epochs that end before the new start; the one around it then starts there."""
        entries = self._entries
        below = bisect_right(entries, start_offset, key=_start_of)
        if below == 0:
            return
        around = entries[below - 1]
        if below == 1 and around.start_offset == start_offset:
            return
        entries[:below] = [EpochEntry(around.epoch, start_offset)]
        self.is_dirty = True
        invariant(entries[-1].epoch == self.latest_epoch, "the latest epoch was cut at the start")

    def clear(self) -> None:
        if self._entries:
            self._entries.clear()
            self.is_dirty = True
        self.latest_epoch = NO_EPOCH


def _epoch_of(entry: EpochEntry) -> int:
    return entry.epoch


def _start_of(entry: EpochEntry) -> int:
    return entry.start_offset
