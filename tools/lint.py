"""Everything that reads the sources without running them; every check runs, whatever failed.

./run lint
"""

import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BIN = Path(sys.executable).parent

CHECKS: tuple[tuple[str, list[str]], ...] = (
    ("ruff", [str(BIN / "ruff"), "check", "--quiet", "."]),
    ("format", [str(BIN / "ruff"), "format", "--check", "--quiet", "."]),
    ("imports", [str(BIN / "lint-imports"), "--no-cache"]),
    ("pyright", [str(BIN / "pyright")]),
    ("tidy", [sys.executable, "-m", "pytest", "-q", "tests/tidy"]),
)


def main() -> int:
    failed: list[str] = []
    for name, command in CHECKS:
        began = time.monotonic()
        finished = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
        seconds = time.monotonic() - began
        if finished.returncode == 0:
            print(f"{name:10} ok      {seconds:5.1f} s", flush=True)
        else:
            failed.append(name)
            print(f"{name:10} FAILED  {seconds:5.1f} s", flush=True)
            print(finished.stdout + finished.stderr, flush=True)
    if failed:
        print(f"lint: {', '.join(failed)} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
