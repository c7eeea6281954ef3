"""Up to where DeleteRecords may delete: what is replicated, in topics that delete records."""

from collections.abc import Collection
from typing import Final

from barnabas.model.error_codes import ErrorCode

HIGH_WATERMARK: Final = -1
"""Asks for all that is replicated."""


def deletion_end(
    offset: int, high_watermark: int, cleanup_policy: Collection[str]
) -> int | ErrorCode:
    """The offset at which the log shall begin; the error when it must not be moved there."""
    if "delete" not in cleanup_policy:
        return ErrorCode.POLICY_VIOLATION
    end = high_watermark if offset == HIGH_WATERMARK else offset
    return end if 0 <= end <= high_watermark else ErrorCode.OFFSET_OUT_OF_RANGE
