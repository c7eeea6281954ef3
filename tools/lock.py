"""Writes requirements/*.txt: every dependency with its version and hashes, and no registry's name.

./run lock            after a change of pyproject.toml or requirements/*.in
./run lock --upgrade  to move to the newest versions
"""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LEVELS = ("runtime", "demo", "development")
"""Each a superset of the one before it, with the same versions."""


def main(arguments: list[str]) -> int:
    command = [sys.executable, "-m", "uv", "pip", "compile", "--quiet", "--universal"]
    command += ["--python-version", "3.11", "--generate-hashes", "--no-emit-index-url"]
    command += ["--no-annotate", "--no-header", *arguments]
    for below, level in zip(("", *LEVELS), LEVELS, strict=False):
        inputs = ["pyproject.toml"] + ([f"requirements/{level}.in"] if below else [])
        constraints = ["--constraint", f"requirements/{below}.txt"] if below else []
        output = ["--output-file", f"requirements/{level}.txt"]
        subprocess.run([*command, *inputs, *constraints, *output], cwd=ROOT, check=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
