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

    __slots__ = ("_last_offsets", "_positions", "floor_offset")

    def __init__(self, log_end_offset: int) -> None:
        self._last_offsets: array[int] = array("q")
        self._positions: array[int] = array("q")
        self.floor_offset: int = log_end_offset
        """A batch that ends at or after this offset is remembered, if there is one."""

    def forget(self, log_end_offset: int) -> None:
        """Begin anew, as after a roll or a cut."""
        self._last_offsets = array("q")
        self._positions = array("q")
        self.floor_offset = log_end_offset

    def note(self, last_offset: int, position: int) -> None:
        last_offsets = self._last_offsets
        if len(last_offsets) >= BATCHES_MAX:
            self.floor_offset = last_offsets[BATCHES_MAX // 2 - 1] + 1
            del last_offsets[: BATCHES_MAX // 2]
            del self._positions[: BATCHES_MAX // 2]
        last_offsets.append(last_offset)
        self._positions.append(position)

    def find(self, offset: int, segment_size: int) -> tuple[int, int]:
        """Position and size of the first batch that ends at or after `offset`; (-1, 0): none."""
        positions = self._positions
        number = bisect_left(self._last_offsets, offset)
        if number == len(positions):
            return -1, 0
        position: int = positions[number]
        if number + 1 < len(positions):
            return position, positions[number + 1] - position
        return position, segment_size - position
