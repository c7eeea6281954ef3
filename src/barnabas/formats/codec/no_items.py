"""The one empty list that all decoded messages share where an array is empty.

Half of the memory of a decoded control request would otherwise be empty lists. Changing it is a
bug of whoever does so: a decoded message is read, a new one is built.
"""

from collections.abc import Iterable
from typing import Any, Final, NoReturn, SupportsIndex

from barnabas.model.invariant import InvariantViolated


class NoItems(list[Any]):
    """An empty list that stays empty."""

    __slots__ = ()

    def append(self, item: Any, /) -> NoReturn:
        _refuse()

    def extend(self, items: Iterable[Any], /) -> NoReturn:
        _refuse()

    def insert(self, index: SupportsIndex, item: Any, /) -> NoReturn:
        _refuse()

    def __iadd__(self, items: Iterable[Any], /) -> NoReturn:
        _refuse()

    def __setitem__(self, index: Any, item: Any, /) -> NoReturn:
        _refuse()


def _refuse() -> NoReturn:
    raise InvariantViolated("an empty array of a decoded message was to be changed: it is shared")


NO_ITEMS: Final = NoItems()
