"""How hard tests try that try many cases: all of them, or some of each kind after an edit.

`./run test --fast` is what a person waits for; the whole run, CI and a test run by its path leave
nothing out. Which one it is stands in BARNABAS_HYPOTHESIS, the name of a profile in conftest.py.
"""

import os
from collections.abc import Sequence
from typing import TypeVar

Case = TypeVar("Case")

DEFAULT_PROFILE = "whole"
PROFILE = os.environ.get("BARNABAS_HYPOTHESIS", DEFAULT_PROFILE)


def some_of(cases: Sequence[Case], one_in: int) -> Sequence[Case]:
    """All cases; one in so many, the first of them included, where somebody waits."""
    return cases[:: one_in if PROFILE == "fast" else 1]
