"""Which names a topic may have (C7)."""

from collections.abc import Iterable
from typing import Final

MAX_LENGTH: Final = 249
"""A log directory's name is the topic's, a dash and a number; files have names of 255 at most."""

INTERNAL_TOPICS: Final = ("__consumer_offsets", "__transaction_state")

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


def find_collisions(name: str, topics: Iterable[str]) -> list[str]:
    """The topics whose metrics would have the same name: there '.' and '_' are one."""
    if "." not in name and "_" not in name:
        return []
    folded = name.replace(".", "_")
    return sorted(topic for topic in topics if topic.replace(".", "_") == folded)
