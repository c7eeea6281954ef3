"""Which names a topic may have (C7)."""

from collections.abc import Iterable
from typing import Final

MAX_LENGTH: Final = 249
"""A log directory's name is the topic's, a dash and a number; files have names of 255 at most."""

GROUP_TOPIC: Final = "__consumer_offsets"
TRANSACTION_TOPIC: Final = "__transaction_state"
INTERNAL_TOPICS: Final = (GROUP_TOPIC, TRANSACTION_TOPIC)

_LEGAL = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-")


def find_fault(name: str) -> str | None:
    """What is wrong with a topic's name; None when nothing is."""
    if not name:
        return "a topic's name must not be empty"
    if name in (".", ".."):
        return f"a topic must not be named '{name}'"
    if len(name) > MAX_LENGTH:
        return f"the name '{name}' has {len(name)} characters, {MAX_LENGTH} are allowed"
    if not _LEGAL.issuperset(name):
        return f"the name '{name}' may hold ASCII letters, digits, '.', '_' and '-' alone"
    return None


def is_valid_topic_name(name: str) -> bool:
    """Whether a topic may have this name, as far as the name alone can tell."""
    return find_fault(name) is None


class TopicNames:
    """The names that topics have already, found by what they collide with."""

    def __init__(self, names: Iterable[str]) -> None:
        self._by_folded: dict[str, dict[str, None]] = {}
        for name in names:
            self.add(name)

    def add(self, name: str) -> None:
        self._by_folded.setdefault(_fold(name), {})[name] = None

    def __contains__(self, name: str) -> bool:
        return name in self._by_folded.get(_fold(name), {})

    def collisions(self, name: str) -> list[str]:
        """The topics whose metrics would have the same name: there '.' and '_' are one."""
        return sorted(self._by_folded.get(_fold(name), {}))


def _fold(name: str) -> str:
    return name.replace(".", "_")
