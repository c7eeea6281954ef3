"""Compiles the hot modules with mypyc, into a directory that `barnabas.compiled` puts in front.

    .venv/bin/python tools/compile_hot.py [--clean]

The modules stand in tools/hot_modules.txt. Each becomes a library of its own, so that after an
edit only what changed goes through the C compiler again (build/mypyc keeps the objects). A second
run with nothing changed compares one hash and ends. What decides about the result is in that
hash: the hot modules, every module of ours that they import, Python, mypy and librt.

Without mypy, a C compiler or Python's headers the sources stay interpreted; one line says so.
"""

import contextlib
import fcntl
import hashlib
import io
import os
import re
import shutil
import sys
import sysconfig
import time
from collections.abc import Iterator
from importlib import metadata
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path

os.environ["BARNABAS_INTERPRETED"] = "1"
ROOT = Path(__file__).resolve().parent.parent
SOURCE = ROOT / "src"
sys.path[:0] = [str(SOURCE), str(ROOT / "tools")]

from barnabas import compiled  # noqa: E402

HOT_MODULES = ROOT / "tools/hot_modules.txt"
WORK = ROOT / "build/mypyc" / (sys.implementation.cache_tag or "python")
OPTIMIZATION = "1"
"""-O2 makes the codec 5 % faster and takes half as long again to compile."""
IMPORT = re.compile(r"^\s*(?:from|import)\s+(barnabas[\w.]*)(?:\s+import\s+\(?([\w, ]*))?", re.M)


def main() -> int:
    """Compile what is out of date; the exit code."""
    is_clean = "--clean" in sys.argv
    names = hot_module_names()
    if not is_clean and is_built(inputs_digest(names)):
        return 0
    missing = missing_tool()
    if missing:
        print(f"hot modules stay interpreted: {missing}")
        return 0
    with alone():
        if is_clean:
            shutil.rmtree(WORK, ignore_errors=True)
            shutil.rmtree(compiled.DIRECTORY, ignore_errors=True)
        digest = inputs_digest(names)
        if not is_built(digest):
            started = time.monotonic()
            print(announcement(len(names), is_first=not WORK.exists()), flush=True)
            build(names, digest)
            print(f"hot modules: {len(names)} compiled in {time.monotonic() - started:.0f} s")
    return 0


def announcement(modules: int, *, is_first: bool) -> str:
    """What people read while they wait, the first time with the way not to."""
    patience = f"compiling {modules} hot modules: a minute or two, three on a busy machine"
    without = "; once, and BARNABAS_INTERPRETED=1 in front of the command goes without"
    return patience + without * is_first


@contextlib.contextmanager
def alone() -> Iterator[None]:
    """Wait until nobody else compiles."""
    WORK.parent.mkdir(parents=True, exist_ok=True)
    with open(WORK.parent / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def hot_module_names() -> list[str]:
    """What the list says, without its comments."""
    lines = (line.strip() for line in HOT_MODULES.read_text().splitlines())
    return [line for line in lines if line and not line.startswith("#")]


def source_path(name: str) -> Path | None:
    """The file of one of our modules; None when there is no such module."""
    stem = SOURCE.joinpath(*name.split("."))
    for path in (stem.with_suffix(".py"), stem / "__init__.py"):
        if path.exists():
            return path
    return None


def imported_sources(names: list[str]) -> list[Path]:
    """The sources of the modules and of all that they import from here."""
    found: dict[str, Path] = {}
    waiting = list(names)
    while waiting:
        name = waiting.pop()
        path = source_path(name)
        if path is None or name in found:
            continue
        found[name] = path
        for module, members in IMPORT.findall(path.read_text(encoding="utf-8")):
            waiting.append(module)
            waiting += [f"{module}.{member.strip()}" for member in members.split(",")]
    return sorted(found.values())


def inputs_digest(names: list[str]) -> str:
    """The hash of everything that decides what is built."""
    digest = hashlib.sha256(f"{sys.version} {OPTIMIZATION} {names}".encode())
    for distribution in ("mypy", "librt"):
        with contextlib.suppress(metadata.PackageNotFoundError):
            digest.update(f"{distribution} {metadata.version(distribution)}".encode())
    digest.update(Path(__file__).read_bytes())
    for path in imported_sources(names):
        digest.update(str(path.relative_to(SOURCE)).encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()[:16]


def is_built(digest: str) -> bool:
    """Whether the manifest is that of these inputs."""
    manifest = Path(compiled.MANIFEST)
    return manifest.exists() and manifest.read_text().split("\n", 1)[0] == digest


def missing_tool() -> str | None:
    """What is needed and not there, with the command that brings it."""
    try:
        import mypyc.build
        import setuptools  # noqa: F401

        del mypyc
    except ImportError:
        return "mypy is not installed (pip install mypy setuptools)"
    compiler = (sysconfig.get_config_var("CC") or "cc").split()[0]
    if not (shutil.which(compiler) or shutil.which("cc")):
        return "no C compiler (apt-get install gcc python3-dev)"
    if not Path(sysconfig.get_path("include"), "Python.h").exists():
        return "no Python.h (apt-get install python3-dev)"
    return None


def build(names: list[str], digest: str) -> None:
    """Compile, put the libraries under a directory of this digest, then swap the manifest."""
    from mypyc.build import mypycify
    from setuptools import Distribution

    if not shutil.which((sysconfig.get_config_var("CC") or "cc").split()[0]):
        os.environ["CC"] = "cc"
    sources = {name: source_path(name) for name in names}
    lines = [digest]
    for name, path in sources.items():
        if path is None:
            raise SystemExit(f"{HOT_MODULES}: there is no module {name}")
        status = path.stat()
        fields = (
            name,
            str(path.relative_to(compiled.PACKAGE)),
            str(status.st_size),
            str(status.st_mtime_ns),
            compiled.source_sha256(str(path)),
            digest,
        )
        lines.append("\t".join(fields))
    paths = [str(path.relative_to(SOURCE)) for path in sources.values() if path is not None]
    library = WORK / "lib"
    os.chdir(SOURCE)
    # Without mypy's cache: what mypyc keeps in it forgets which attributes are native integers.
    extensions = mypycify(
        ["--follow-imports=silent", f"--cache-dir={os.devnull}", *paths],
        opt_level=OPTIMIZATION,
        debug_level="0",
        separate=True,
        target_dir=str(WORK / "c"),
    )
    command = Distribution({"name": "barnabas-hot", "ext_modules": extensions}).get_command_obj(
        "build_ext"
    )
    command.build_lib = str(library)
    command.build_temp = str(WORK / "objects")
    command.parallel = os.cpu_count()
    command.ensure_finalized()
    with contextlib.redirect_stdout(io.StringIO()):
        command.run()
    publish(names, library, digest, "\n".join([*lines, ""]))


def publish(names: list[str], library: Path, digest: str, manifest: str) -> None:
    """Copy the libraries to their place; what ran before is removed after the swap."""
    directory = Path(compiled.DIRECTORY)
    target = directory / digest
    shutil.rmtree(target, ignore_errors=True)
    for name in names:
        stem = Path(*name.split("."))
        (target / stem).parent.mkdir(parents=True, exist_ok=True)
        for file in (stem.name, f"{stem.name}__mypyc"):
            relative = stem.with_name(file + EXTENSION_SUFFIXES[0])
            shutil.copy2(library / relative, target / relative)
    temporary = directory / "manifest.new"
    temporary.write_text(manifest)
    os.replace(temporary, compiled.MANIFEST)
    for path in directory.iterdir():
        if path.is_dir() and path != target:
            shutil.rmtree(path)


if __name__ == "__main__":
    sys.exit(main())
