"""Why a request about a topic was not granted: the answer its client gets."""

from typing import NamedTuple

from barnabas.model.error_codes import ErrorCode


class Refused(NamedTuple):
    """An error code, and words for people; None where Kafka sends none."""

    error: ErrorCode
    message: str | None = None
