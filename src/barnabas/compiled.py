"""Puts the compiled form of the hot modules in front of their sources, when it fits them.

tools/compile_hot.py compiles the modules of tools/hot_modules.txt with mypyc into a directory of
their own below this package, with a manifest that says which source each was made from. Importing
barnabas reads the manifest and, when all is well, finds those modules there; their sources stay
importable and are what runs otherwise. All or nothing: compiled modules call each other directly,
so one that was edited, or that misses its library, turns all of them off until they are compiled
again. `BARNABAS_INTERPRETED=1` in the environment does the same by hand.

Whether a source is the one that was compiled is told by its size and time of change and, where
these differ, by its hash: a fresh checkout of the same text is not stale.
"""

import os  # noqa: TID251 - reads its own manifest, before there is a Disk
import sys
from collections.abc import Sequence
from importlib.machinery import EXTENSION_SUFFIXES, ExtensionFileLoader, ModuleSpec
from types import ModuleType
from typing import NamedTuple

PACKAGE = os.path.dirname(os.path.abspath(__file__))
DIRECTORY = os.path.join(PACKAGE, "_compiled", sys.implementation.cache_tag or "python")
MANIFEST = os.path.join(DIRECTORY, "manifest")
PROBE = "barnabas.formats.codec.decoding"
"""Imported first: where librt's ABI is not the one compiled for, this is where it shows."""


class HotModule(NamedTuple):
    """One line of the manifest; paths are relative to the package and to the directory."""

    name: str
    source: str
    size_bytes: int
    mtime_ns: int
    sha256: str
    build: str

    @property
    def files(self) -> dict[str, str]:
        """The two libraries of a module by the names they are imported under."""
        stem = os.path.join(DIRECTORY, self.build, *self.name.split("."))
        suffix = EXTENSION_SUFFIXES[0]
        return {self.name: stem + suffix, f"{self.name}__mypyc": f"{stem}__mypyc{suffix}"}

    def is_current(self) -> bool:
        """Whether the source is still what was compiled."""
        path = os.path.join(PACKAGE, self.source)
        try:
            status = os.stat(path)
        except FileNotFoundError:
            return False
        if status.st_size != self.size_bytes:
            return False
        if status.st_mtime_ns == self.mtime_ns:
            return True
        return source_sha256(path) == self.sha256


class HotFinder:
    """Finds the compiled modules; every other name is left to the finders behind it."""

    def __init__(self, files: dict[str, str]) -> None:
        self.files = files

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """The library of a compiled module."""
        file = self.files.get(fullname)
        if file is None:
            return None
        spec = ModuleSpec(fullname, ExtensionFileLoader(fullname, file), origin=file)
        spec.has_location = True
        return spec


_state: list[str] = ["interpreted: not asked yet"]


def describe() -> str:
    """One line for the start of a program: whether the hot modules are compiled, or why not."""
    return f"hot modules {_state[0]}"


def is_compiled() -> bool:
    return _state[0] == "compiled"


def install() -> None:
    """Make the compiled modules importable, or remember why they are not."""
    _state[0] = _install()


def _install() -> str:
    if os.environ.get("BARNABAS_INTERPRETED", "") not in ("", "0"):
        return "interpreted: BARNABAS_INTERPRETED is set"
    modules = read_manifest()
    if not modules:
        return "interpreted: not compiled (tools/compile_hot.py)"
    files: dict[str, str] = {}
    for module in modules:
        if not module.is_current():
            return f"interpreted: {module.name} changed since it was compiled"
        files.update(module.files)
    finder = HotFinder(files)
    sys.meta_path.insert(0, finder)
    try:
        __import__(PROBE)
    except (ImportError, ValueError) as error:
        sys.meta_path.remove(finder)
        for name in files:
            sys.modules.pop(name, None)
        return f"interpreted: {error}"
    return "compiled"


def read_manifest() -> list[HotModule]:
    """The compiled modules; none when there is no manifest."""
    try:
        with open(MANIFEST, encoding="utf-8") as file:
            lines = file.read().splitlines()
    except FileNotFoundError:
        return []
    modules: list[HotModule] = []
    for line in lines[1:]:
        name, source, size_bytes, mtime_ns, sha256, build = line.split("\t")
        modules.append(HotModule(name, source, int(size_bytes), int(mtime_ns), sha256, build))
    return modules


def source_sha256(path: str) -> str:
    """The hash of a source; rarely needed, and hashlib costs more than all the rest here."""
    import hashlib

    with open(path, "rb") as file:
        return hashlib.sha256(file.read()).hexdigest()
