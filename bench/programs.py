"""The two programs in C: built when they are wanted and a compiler is there."""

import hashlib
import shutil
import subprocess
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parent.parent
SOURCES = ROOT / "bench" / "load"
OUTPUT = ROOT / "build" / "bench"
FLAGS = ["-O2", "-std=gnu11", "-D_GNU_SOURCE", "-Wall", "-Wextra"]
BUILD_SECONDS = 120


class NoCompiler(Exception):
    """The programs cannot be built here; the text says what to do."""


class Programs(NamedTuple):
    """Where the load generator and the reference broker are."""

    load: Path
    reference: Path


def build_programs() -> Programs:
    """Both programs, compiled again only when a source changed."""
    compiler = shutil.which("cc")
    if compiler is None:
        raise NoCompiler("no C compiler; on Debian: apt-get install gcc libc6-dev")
    others = sorted(SOURCES.glob("*.c"))
    reference = SOURCES / "reference.c"
    return Programs(
        load=_build(compiler, "load", [source for source in others if source != reference]),
        reference=_build(compiler, "reference", [reference, SOURCES / "crc32c.c"]),
    )


def _build(compiler: str, name: str, sources: list[Path]) -> Path:
    digest = hashlib.sha256(" ".join(FLAGS).encode())
    for source in [*sources, *sorted(SOURCES.glob("*.h"))]:
        digest.update(source.read_bytes())
    program = OUTPUT / f"{name}-{digest.hexdigest()[:12]}"
    if not program.exists():
        OUTPUT.mkdir(parents=True, exist_ok=True)
        building = program.with_suffix(".building")
        command = [compiler, *FLAGS, "-o", str(building), *map(str, sources)]
        finished = subprocess.run(
            command, capture_output=True, text=True, timeout=BUILD_SECONDS, check=False
        )
        if finished.returncode != 0:
            raise NoCompiler(f"{' '.join(command)}\n{finished.stderr}")
        building.rename(program)
    return program
