"""The project's own files, as the tidy tests read them."""

import ast
import functools
import subprocess
from pathlib import Path

from tests.tools import ROOT

PURE = ("model", "formats", "core")
DETERMINISTIC = ("storage", "zookeeper", "client", "broker")
BINARY = (".gz", ".bin", ".png", ".jar")


@functools.cache
def project_files() -> tuple[Path, ...]:
    """Every file that git has or would take, sorted."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        check=True,
    )
    names = listed.stdout.decode().split("\0")
    paths = sorted({ROOT / name for name in names if name})
    return tuple(path for path in paths if path.is_file())


def python_files(*folders: str) -> list[Path]:
    """Our Python files below these folders of the project."""
    roots = [ROOT / folder for folder in folders]
    return [
        path
        for path in project_files()
        if path.suffix == ".py" and any(path.is_relative_to(root) for root in roots)
    ]


def package_files(*packages: str) -> list[Path]:
    """The modules of some packages of the program."""
    return python_files(*(f"src/barnabas/{package}" for package in packages))


def name_of(path: Path) -> str:
    """The path as messages show it."""
    return str(path.relative_to(ROOT))


@functools.cache
def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


@functools.cache
def lines_of(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8").splitlines()
