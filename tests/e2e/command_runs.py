"""Runs commands as a shell would: a process each, its output and its exit code."""

import os
import subprocess
import sys
from collections.abc import Mapping

SECONDS_MAX = 60


def run_barnabas(
    *arguments: str, given: str = "", variables: Mapping[str, str] | None = None
) -> "subprocess.CompletedProcess[str]":
    """Run `barnabas` with these arguments; what was said in the environment counts for nothing."""
    clean = {name: text for name, text in os.environ.items() if "KAFKA_" not in name}
    clean.pop("BARNABAS_BOOTSTRAP_SERVER", None)
    return subprocess.run(
        [sys.executable, "-m", "barnabas", *arguments],
        input=given,
        capture_output=True,
        text=True,
        timeout=SECONDS_MAX,
        env={**clean, **(variables or {})},
    )
