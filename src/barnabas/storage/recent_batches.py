"""Where the last batches of a log begin: what readers at its end need, without the disk.

Hot: compiled by mypyc where a compiler is there.
"""

from array import array
from bisect import bisect_left
from typing import Final

BATCHES_MAX: Final = 128
"""How many are remembered; half are forgotten at a time."""


class RecentBatches:
    """Last offsets and positions of the batches at the end of the active segment."""

    __slots__ = ("_count", "_last_offsets", "_positions", "_room", "floor_offset")

    def __init__(self, log_end_offset: int) -> None:
        self._last_offsets: array[int] = array("q")
        self._positions: array[int] = array("q")
        self._room: int = 0
        """Places in the arrays; none before the first batch, for most logs never get one."""
        self._count: int = 0
        """Places that are taken."""
        self.floor_offset: int = log_end_offset
        """A batch that ends at or after this offset is remembered, if there is one."""

    def forget(self, log_end_offset: int) -> None:
        """Begin anew, as after a roll or a cut."""
        self._count = 0
        self.floor_offset = log_end_offset

    def note(self, last_offset: int, position: int) -> None:
        if self._count == self._room:
            self._make_room()
        # A place that is set costs a third of one that is appended: every batch pays for it.
        self._last_offsets[self._count] = last_offset
        self._positions[self._count] = position
        self._count += 1

    def _make_room(self) -> None:
        if self._room == 0:
            self._last_offsets = array("q", bytes(8 * BATCHES_MAX))
            self._positions = array("q", bytes(8 * BATCHES_MAX))
            self._room = BATCHES_MAX
            return
        half = BATCHES_MAX // 2
        self.floor_offset = self._last_offsets[half - 1] + 1
        self._last_offsets[:half] = self._last_offsets[half:]
        self._positions[:half] = self._positions[half:]
        self._count = half

    def find(self, offset: int, segment_size: int) -> tuple[int, int]:
        """Position and size of the first batch that ends at or after `offset`; (-1, 0): none."""
        positions = self._positions
        number = bisect_left(self._last_offsets, offset, 0, self._count)
        if number == self._count:
            return -1, 0
        position: int = positions[number]
        if number + 1 < self._count:
            return position, positions[number + 1] - position
        return position, segment_size - position
