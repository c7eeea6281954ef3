"""The mark that ties a test to the rows of the acceptance list it proves."""

from collections.abc import Callable
from typing import TypeVar

import pytest

Test = TypeVar("Test", bound=Callable[..., object])

MAX_ROWS_PER_TEST = 3
"""A test that cites more proves none of them well."""


def behaviour(*rows: str) -> Callable[[Test], Test]:
    """Cite rows of docs/behaviours.md: the test fails when one of them is broken."""
    if not 1 <= len(rows) <= MAX_ROWS_PER_TEST:
        raise ValueError(f"a test cites one to {MAX_ROWS_PER_TEST} rows, not {len(rows)}")
    return pytest.mark.behaviour(*rows)
