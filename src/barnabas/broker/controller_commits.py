"""Takes the controller's writes and reads to the store and the answers back.

Many writes go in one multi, each multi under the check of the controller epoch, all of them at
once. When a multi loses, its writes are tried one by one, so that one lost version costs the
others nothing but the round trip. A failed check means that another controller was elected.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

from barnabas.core.controller.effects import (
    ConditionalWrite,
    StoreAnswered,
    Wanted,
    WriteResult,
)
from barnabas.formats.znodes.controller import CONTROLLER_EPOCH_PATH
from barnabas.model.znode import (
    Check,
    Create,
    GetChildren,
    GetData,
    Operation,
    Outcome,
    SessionChange,
    SessionState,
    SetData,
    StoreAnswer,
    StoreError,
    WatchEvent,
    Write,
)

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker

OPERATIONS_PER_MULTI_MAX: Final = 1_000
BYTES_PER_MULTI_MAX: Final = 512 * 1024
"""ZooKeeper refuses a request above jute.maxbuffer, 1 MiB by default."""
READS_PER_REQUEST_MAX: Final = 1_000

_BYTES_PER_OPERATION: Final = 64

OnSettled = Callable[[StoreAnswered, int], None]
OnWatch = Callable[[WatchEvent, int], None]
OnEpochLost = Callable[[int], None]


class ControllerCommits:
    """The store side of one controllership; after `close` nothing is reported any more."""

    def __init__(
        self,
        broker: Broker,
        epoch_version: int,
        *,
        on_watch: OnWatch,
        on_epoch_lost: OnEpochLost,
    ) -> None:
        self._broker = broker
        self._check = Check(CONTROLLER_EPOCH_PATH, epoch_version)
        self._on_watch = on_watch
        self._on_epoch_lost = on_epoch_lost
        self._is_closed = False
        self._watched: dict[str, None] = {}
        """Paths for which the session has our callback, however often they are read."""
        self._after_reconnect: list[Callable[[int], None]] = []

    def close(self) -> None:
        """The controllership is over: whatever the store still says is nobody's business."""
        self._is_closed = True
        self._after_reconnect.clear()

    def ask(self, wanted: Wanted, on_settled: OnSettled) -> None:
        """Do what is wanted; `on_settled` comes once with all answers in order."""
        if wanted.writes:
            _Commit(self, wanted.writes, on_settled).start()
        else:
            _Reading(self, wanted.reads, on_settled).start()

    def note_session(self, change: SessionChange, now_ms: int) -> None:
        """The link to the store is back: repeat the reads whose answers were lost."""
        if change.state is SessionState.CONNECTED:
            waiting, self._after_reconnect = self._after_reconnect, []
            for repeat in waiting:
                repeat(now_ms)

    # -- for the two below -------------------------------------------------------------------

    def submit_multi(
        self, writes: Sequence[ConditionalWrite], then: Callable[[StoreAnswer, int], None]
    ) -> None:
        operations: list[Write] = [self._check]
        for write in writes:
            operations.extend(write.operations)
        self._submit(operations, then, is_multi=True)

    def submit_reads(
        self, reads: Sequence[Operation], then: Callable[[StoreAnswer, int], None]
    ) -> None:
        for read in reads:
            is_watch = isinstance(read, GetData | GetChildren) and read.watch
            if is_watch and read.path not in self._watched:
                self._watched[read.path] = None
                self._broker.metadata.on_watch(read.path, self._note_watch)
        self._submit(reads, then, is_multi=False)

    def repeat_after_reconnect(self, repeat: Callable[[int], None]) -> None:
        self._after_reconnect.append(repeat)

    def lose_epoch(self, now_ms: int) -> None:
        if not self._is_closed:
            self._on_epoch_lost(now_ms)

    def _submit(
        self,
        operations: Sequence[Operation],
        then: Callable[[StoreAnswer, int], None],
        *,
        is_multi: bool,
    ) -> None:
        def unless_closed(answer: StoreAnswer, now_ms: int) -> None:
            if not self._is_closed:
                then(answer, now_ms)

        self._broker.metadata.submit(operations, unless_closed, is_multi=is_multi)

    def _note_watch(self, event: WatchEvent, now_ms: int) -> None:
        self._watched.pop(event.path, None)
        if not self._is_closed:
            self._on_watch(event, now_ms)


class _Commit:
    """One set of writes on its way."""

    def __init__(
        self, commits: ControllerCommits, writes: Sequence[ConditionalWrite], on_settled: OnSettled
    ) -> None:
        self._commits = commits
        self._writes = writes
        self._on_settled = on_settled
        self._results: list[WriteResult | None] = [None] * len(writes)
        self._open = len(writes)

    def start(self) -> None:
        for indexes in group_writes(self._writes):
            self._submit(indexes)

    def _submit(self, indexes: Sequence[int]) -> None:
        def on_answer(answer: StoreAnswer, now_ms: int) -> None:
            self._note_answer(indexes, answer, now_ms)

        self._commits.submit_multi([self._writes[index] for index in indexes], on_answer)

    def _note_answer(self, indexes: Sequence[int], answer: StoreAnswer, now_ms: int) -> None:
        if answer.is_ok:
            self._settle(indexes, StoreError.OK, now_ms)
            return
        if answer.outcomes[0].error in (StoreError.BAD_VERSION, StoreError.NO_NODE):
            self._commits.lose_epoch(now_ms)
            return
        error = refusal_of(answer.outcomes)
        if len(indexes) > 1 and error not in (
            StoreError.CONNECTION_LOSS,
            StoreError.SESSION_EXPIRED,
        ):
            for index in indexes:
                self._submit([index])
            return
        self._settle(indexes, error, now_ms)

    def _settle(self, indexes: Sequence[int], error: StoreError, now_ms: int) -> None:
        for index in indexes:
            self._results[index] = WriteResult(error)
        self._open -= len(indexes)
        if self._open == 0:
            results = tuple(result for result in self._results if result is not None)
            self._on_settled(StoreAnswered(writes=results), now_ms)


class _Reading:
    """One set of reads on its way; it is repeated until the store could be asked."""

    def __init__(
        self, commits: ControllerCommits, reads: Sequence[Operation], on_settled: OnSettled
    ) -> None:
        self._commits = commits
        self._reads = reads
        self._on_settled = on_settled
        self._outcomes: dict[int, tuple[Outcome, ...]] = {}
        self._open = 0

    def start(self) -> None:
        starts = range(0, len(self._reads), READS_PER_REQUEST_MAX)
        self._open = len(starts)
        for at in starts:
            self._submit(at)

    def _submit(self, at: int) -> None:
        def on_answer(answer: StoreAnswer, now_ms: int) -> None:
            self._note_answer(at, answer, now_ms)

        self._commits.submit_reads(self._reads[at : at + READS_PER_REQUEST_MAX], on_answer)

    def _note_answer(self, at: int, answer: StoreAnswer, now_ms: int) -> None:
        errors = [outcome.error for outcome in answer.outcomes]
        if StoreError.CONNECTION_LOSS in errors:
            self._commits.repeat_after_reconnect(lambda _: self._submit(at))
            return
        if StoreError.SESSION_EXPIRED in errors:
            return
        self._outcomes[at] = answer.outcomes
        self._open -= 1
        if self._open == 0:
            found = tuple(one for start in sorted(self._outcomes) for one in self._outcomes[start])
            self._on_settled(StoreAnswered(reads=found), now_ms)


def group_writes(writes: Sequence[ConditionalWrite]) -> list[list[int]]:
    """The indexes of the writes by multi: as many as fit, in their order."""
    groups: list[list[int]] = []
    operations = size = 0
    for index, write in enumerate(writes):
        write_size = sum(_size(operation) for operation in write.operations)
        is_full = (
            operations + len(write.operations) > OPERATIONS_PER_MULTI_MAX
            or size + write_size > BYTES_PER_MULTI_MAX
        )
        if not groups or is_full:
            groups.append([])
            operations = size = 0
        groups[-1].append(index)
        operations += len(write.operations)
        size += write_size
    return groups


def refusal_of(outcomes: Sequence[Outcome]) -> StoreError:
    """Why a multi was refused: the error of the operation that was, not of those with it."""
    for outcome in outcomes:
        if outcome.error not in (StoreError.OK, StoreError.RUNTIME_INCONSISTENCY):
            return outcome.error
    return StoreError.RUNTIME_INCONSISTENCY


def _size(operation: Write) -> int:
    data = operation.data if isinstance(operation, Create | SetData) else None
    return _BYTES_PER_OPERATION + len(operation.path) + (0 if data is None else len(data))
