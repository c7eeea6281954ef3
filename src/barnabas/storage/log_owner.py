"""What a log asks of whoever keeps it: the log manager, or a test."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

from barnabas.model.config import TopicConfig
from barnabas.model.errors import DiskError

if TYPE_CHECKING:
    from barnabas.storage.partition_log import PartitionLog


class LogOwner(Protocol):
    """Does what does not belong on the path of a produce or fetch; none of it may block."""

    def on_log_work(self, log: "PartitionLog") -> None:
        """There is something to flush or to write in the background."""
        ...

    def draw_roll_jitter_ms(self, config: TopicConfig) -> int:
        """How much younger than its topic's limit a new segment is rolled (segment.jitter.ms)."""
        ...

    def on_log_failed(self, log: "PartitionLog", error: DiskError) -> None:
        """The disk refused something: the log's directory is lost."""
        ...

    def on_cut(self, log: "PartitionLog") -> None:
        """Records that a checkpoint counts on are about to go: have it lowered first."""
        ...

    def on_files_deleted(self, log: "PartitionLog", paths: Sequence[str]) -> None:
        """Files were renamed; they are to be removed after the topic's delay."""
        ...
