"""What the log manager tells the broker: recovery, lost directories, the end of opening."""

from typing import NamedTuple, Protocol

from barnabas.model.errors import DiskError
from barnabas.model.ids import TopicPartition
from barnabas.storage.recovery import SegmentRecovered


class DirectoryLost(NamedTuple):
    """A log directory went offline, and with it these partitions."""

    path: str
    error: DiskError
    topic_partitions: tuple[TopicPartition, ...]
    is_last: bool
    """No log directory is left: a broker without any stops."""


class LogListener(Protocol):
    """Told on the loop, from `LogManager.tick` or from a finished job, never in between."""

    def on_segment_recovered(self, progress: SegmentRecovered) -> None:
        """One of the segments behind the recovery point was read."""
        ...

    def on_log_complaint(self, complaint: str) -> None:
        """Something was not as it should be, and was put right without loss."""
        ...

    def on_logs_opened(self, now_ms: int) -> None:
        """Every log that was found is open."""
        ...

    def on_logs_refused(self, error: Exception) -> None:
        """The directories cannot be opened: what is in them is not ours, or a bug."""
        ...

    def on_directory_lost(self, lost: DirectoryLost, now_ms: int) -> None: ...
