"""State machines as data: states with a meaning, arrows with a cause."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import Enum
from typing import Generic, TypeVar

from barnabas.model.invariant import invariant

State = TypeVar("State", bound=Enum)


@dataclass(frozen=True, slots=True)
class Arrow(Generic[State]):
    """One allowed crossing, why it happens, and the requests that may leave while crossing."""

    source: State
    target: State
    cause: str
    requests: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class TransitionTable(Generic[State]):
    """The one place where a machine's states and arrows stand.

    The check in code, the generated page and diagram, the exhaustive test and the arrow coverage
    of the simulator all read this table.
    """

    name: str
    initial: State
    meanings: dict[State, str]
    arrows: tuple[Arrow[State], ...]
    _by_pair: dict[tuple[State, State], Arrow[State]] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        by_pair: dict[tuple[State, State], Arrow[State]] = {}
        for arrow in self.arrows:
            pair = (arrow.source, arrow.target)
            invariant(pair not in by_pair, f"{self.name}: arrow {pair} stands twice")
            invariant(
                arrow.source in self.meanings and arrow.target in self.meanings,
                f"{self.name}: arrow {pair} touches a state without a meaning",
            )
            by_pair[pair] = arrow
        object.__setattr__(self, "_by_pair", by_pair)
        for state in type(self.initial):
            invariant(state in self.meanings, f"{self.name}: {state} has no meaning")
        unreachable = [s for s in self.meanings if s not in self._reachable()]
        invariant(not unreachable, f"{self.name}: {unreachable} cannot be reached")

    def _reachable(self) -> set[State]:
        reached = {self.initial}
        frontier = [self.initial]
        while frontier:
            state = frontier.pop()
            for arrow in self.arrows:
                if arrow.source is state and arrow.target not in reached:
                    reached.add(arrow.target)
                    frontier.append(arrow.target)
        return reached

    def allows(self, source: State, target: State) -> bool:
        """Whether there is an arrow from `source` to `target`."""
        return (source, target) in self._by_pair

    def arrow(self, source: State, target: State) -> Arrow[State]:
        """The arrow of an allowed crossing."""
        return self._by_pair[(source, target)]

    def sources_of(self, target: State) -> tuple[State, ...]:
        """The states from which `target` may be entered, in the order of the table."""
        return tuple(arrow.source for arrow in self.arrows if arrow.target is target)

    def check_names(self, requests: Iterable[str], source: State, target: State) -> None:
        """Raise when a request leaves during a crossing whose arrow does not name it."""
        allowed = self.arrow(source, target).requests
        for request in requests:
            invariant(
                request in allowed,
                f"{self.name}: {request} may not leave from {source.name} to {target.name}",
            )
