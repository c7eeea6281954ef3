"""What holds for every test: how hard hypothesis tries, and that a failure can be repeated."""

import os

from hypothesis import HealthCheck, settings

settings.register_profile(
    "fast",
    max_examples=50,
    deadline=None,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.register_profile("long", parent=settings.get_profile("fast"), max_examples=2000)
settings.register_profile("steady", parent=settings.get_profile("fast"), derandomize=True)
settings.load_profile(os.environ.get("BARNABAS_HYPOTHESIS", "fast"))
