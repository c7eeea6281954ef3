"""What a log says of a batch that was handed to it; compiled with the log."""

from barnabas.model.error_codes import ErrorCode


class AppendResult:
    """What became of a batch; for a duplicate, where it was appended the first time."""

    __slots__ = (
        "base_offset",
        "error",
        "is_duplicate",
        "last_offset",
        "log_append_time",
        "log_start_offset",
    )

    def __init__(
        self,
        error: ErrorCode,
        base_offset: int,
        last_offset: int,
        log_append_time: int,
        log_start_offset: int,
        is_duplicate: bool,
    ) -> None:
        self.error: ErrorCode = error
        self.base_offset: int = base_offset
        self.last_offset: int = last_offset
        self.log_append_time: int = log_append_time
        """-1 unless the topic has the broker's time in its records; for a duplicate its own."""
        self.log_start_offset: int = log_start_offset
        self.is_duplicate: bool = is_duplicate
