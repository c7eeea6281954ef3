"""What a coordinator wants done: records to be replicated, with what hangs on them, and answers.

The records of the writes are appended in the order in which they are handed out. What depends on
a write is neither visible nor answered before its `then` was called.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

from barnabas.core.coordinator.group.group_states import GroupState
from barnabas.core.coordinator.group.requests import (
    CommitResult,
    DeleteGroupsResult,
    DeleteOffsetsResult,
    JoinResult,
    LeaveResult,
    SyncResult,
)
from barnabas.model.error_codes import ErrorCode

Waiter = object
"""Who asked: the caller's own, handed back with the answer; never None."""

Result = (
    JoinResult | SyncResult | LeaveResult | CommitResult | DeleteOffsetsResult | DeleteGroupsResult
)


class CoordinatorRecord(NamedTuple):
    """One record of the coordinator's partition; without a value it removes what had the key."""

    key: bytes
    value: bytes | None


@dataclass(slots=True)
class Write:
    """Records that belong into one batch, and what is to be done when they are replicated or lost.

    `then` is called once, with NONE or the error of the append as it came from the log; the calls
    of one shard come in the order of its writes as far as these succeeded.
    """

    records: tuple[CoordinatorRecord, ...]
    then: "Callable[[ErrorCode, int], Outcome]"


@dataclass(frozen=True, slots=True)
class GroupMoved:
    """A group crossed an arrow of its table."""

    group_id: str
    generation_id: int
    source: GroupState
    target: GroupState
    cause: str


class Answer(NamedTuple):
    """What somebody who asked is told, once."""

    waiter: Waiter
    result: Result


@dataclass(slots=True)
class Outcome:
    """What one call leads to; answers and stories may go out at once."""

    answers: list[Answer] = field(default_factory=list[Answer])
    writes: list[Write] = field(default_factory=list[Write])
    stories: list[GroupMoved] = field(default_factory=list[GroupMoved])

    def answer(self, waiter: Waiter, result: Result) -> None:
        self.answers.append(Answer(waiter, result))
