"""The long form of the frame fuzzer: other seeds, more frames, every processor.

./run test --long fuzz [--frames N] [--seed S] [--jobs N]

A seed is drawn and printed unless one is given; what fails prints how to run it again.
"""

import argparse
import os
import secrets
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TEST = "tests/e2e/test_frame_fuzzing.py"
SOCKET_SHARE = 10
"""One frame of so many goes over a socket to a process."""


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="./run test --long fuzz")
    parser.add_argument("--frames", type=int, default=2_000_000)
    parser.add_argument("--seed", default=secrets.token_hex(4))
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    options = parser.parse_args(arguments)
    print(f"seed {options.seed}, {options.frames} frames, {options.jobs} jobs", flush=True)
    environment = {
        **os.environ,
        "BARNABAS_FUZZ_SEED": options.seed,
        "BARNABAS_FUZZ_FRAMES": str(options.frames),
        "BARNABAS_FUZZ_SOCKET_FRAMES": str(options.frames // SOCKET_SHARE),
        "BARNABAS_FUZZ_SHARDS": str(options.jobs),
    }
    command = [sys.executable, "-m", "pytest", TEST, "-n", str(options.jobs + 1), "-rA", "-s"]
    return subprocess.run(command, cwd=ROOT, env=environment).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
