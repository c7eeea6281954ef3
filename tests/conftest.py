"""What holds for every test: how hard hypothesis tries, and that a failure can be repeated."""

import pytest
from hypothesis import HealthCheck, Phase, settings

from barnabas import compiled
from tests.effort import DEFAULT_PROFILE, PROFILE

settings.register_profile(
    DEFAULT_PROFILE,
    max_examples=50,
    deadline=None,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow],
)
WHOLE = settings.get_profile(DEFAULT_PROFILE)
settings.register_profile("fast", parent=WHOLE, max_examples=15)
settings.register_profile("long", parent=WHOLE, max_examples=2000)
# What fails under a mutant is wanted as it is, not as small as it can be made.
settings.register_profile(
    "unshrunk",
    parent=WHOLE,
    derandomize=True,
    phases=[Phase.explicit, Phase.generate],
)
settings.load_profile(PROFILE)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave the tests of the interpreted modules to the part that runs them interpreted."""
    if compiled.is_compiled():
        left_out = [item for item in items if item.get_closest_marker("interpreted")]
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if item not in left_out]
