"""Removing znodes under the controller's check, whatever is below them by now."""

from collections.abc import Iterable, Sequence

from barnabas.core.controller.context import ControllerContext
from barnabas.core.controller.effects import (
    ConditionalWrite,
    Procedure,
    StoreAnswered,
    Wanted,
    WriteFailed,
)
from barnabas.core.controller.state_nodes import CHANGED_UNDER_US
from barnabas.model.znode import Delete, GetChildren

DELETES_PER_WRITE_MAX = 500
"""A multi has a limit in bytes; the nodes of a large topic go in several."""


def remove_trees(context: ControllerContext, roots: Sequence[str]) -> Procedure[bool]:
    """Remove everything at and below these paths, in their order, leaves first.

    What is there is listed first, and again whenever it changed meanwhile. False when the store
    refuses for good.
    """
    while True:
        found = yield from _list_trees(roots)
        writes = _removals(found)
        if not writes:
            return True
        answer = yield Wanted(writes=writes)
        for write, result in zip(writes, answer.writes, strict=True):
            if not result.is_committed and result.error not in CHANGED_UNDER_US:
                context.stories.append(WriteFailed(write.operations[0].path, result.error))
                return False
        if all(result.is_committed for result in answer.writes):
            return True


def _removals(found: Sequence[str]) -> tuple[ConditionalWrite, ...]:
    return tuple(
        ConditionalWrite(tuple(map(Delete, found[start : start + DELETES_PER_WRITE_MAX])))
        for start in range(0, len(found), DELETES_PER_WRITE_MAX)
    )


def _list_trees(roots: Sequence[str]) -> Procedure[list[str]]:
    """What is there at and below each root, children before their parents."""
    children: dict[str, list[str]] = {}
    frontier: list[str] = list(roots)
    while frontier:
        answer: StoreAnswered = yield Wanted(reads=tuple(GetChildren(path) for path in frontier))
        deeper: list[str] = []
        for path, outcome in zip(frontier, answer.reads, strict=True):
            if outcome.is_ok:
                names = sorted(outcome.children, key=lambda name: (len(name), name))
                children[path] = [f"{path}/{name}" for name in names]
                deeper.extend(children[path])
        frontier = deeper
    listed: list[str] = []
    for root in roots:
        listed.extend(_leaves_first(root, children))
    return listed


def _leaves_first(path: str, children: dict[str, list[str]]) -> Iterable[str]:
    if path not in children:
        return
    for child in children[path]:
        yield from _leaves_first(child, children)
    yield path
