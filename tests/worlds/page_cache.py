"""Which pages of a disk in memory are taken for cached; the others would have to be waited for."""

PAGE_BYTES = 4096


class PageCache:
    """Everything, until it is forgotten; then what was read or written since."""

    def __init__(self) -> None:
        self._is_everything = True
        self._pages: set[tuple[int, int]] = set()
        self._known: list[bytearray] = []
        """Keeps the identities of contents from being given again."""

    def forget(self) -> None:
        """Nothing of any file is in memory any more."""
        self._is_everything = False
        self._pages.clear()
        self._known.clear()

    def take(self, data: bytearray, position: int, size_bytes: int) -> None:
        if self._is_everything:
            return
        self._known.append(data)
        self._pages.update((id(data), page) for page in _pages(data, position, size_bytes))

    def holds(self, data: bytearray, position: int, size_bytes: int) -> bool:
        return self._is_everything or all(
            (id(data), page) in self._pages for page in _pages(data, position, size_bytes)
        )


def _pages(data: bytearray, position: int, size_bytes: int) -> range:
    end = min(position + size_bytes, len(data))
    return range(position // PAGE_BYTES, -(-end // PAGE_BYTES))
