"""Which test runs which line, and the import of a module with one thing changed in it."""

import ast
import gc
import importlib.machinery
import importlib.util
import os
import pickle
import signal
import sys
import tempfile
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from types import CodeType, FrameType, ModuleType
from typing import Any, NamedTuple

import pytest

from tools.mutation_sites import sites_in

TRACED_TESTS_MAX = 400
"""A line that more tests run than this is judged by the quickest of them."""


class Coverage(NamedTuple):
    """The tests of every line, the seconds of every test, and what they imported in all."""

    lines: dict[tuple[str, int], list[str]]
    files: dict[str, list[str]]
    seconds: dict[str, float]
    modules: list[str]

    def tests_of(self, path: str, line: int, module: str) -> tuple[str, ...]:
        """The tests that run a line, quickest first.

        What runs at import is judged by the tests of the files that name its module, then by those
        that run anything else of it.
        """
        tests = self.lines.get((path, line))
        if tests is None:
            naming = [test for test in self.seconds if module in _text_of(test.partition("::")[0])]
            others = self._by_speed(self.files.get(path, []))
            tests = list(dict.fromkeys((*self._by_speed(naming), *others)))
        else:
            tests = self._by_speed(tests)
        return tuple(tests[:TRACED_TESTS_MAX])

    def _by_speed(self, tests: Iterable[str]) -> list[str]:
        return sorted(tests, key=lambda test: (self.seconds[test], test))


@cache
def _text_of(file: str) -> str:
    return Path(file).read_text(encoding="utf-8")


class Tracer:
    """A pytest plugin that notes the lines below a folder that each test runs."""

    def __init__(self, folder: Path) -> None:
        self._folder = str(folder) + os.sep
        self._seen: set[tuple[str, int]] = set()
        self.coverage = Coverage({}, {}, {}, [])

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item, nextitem: pytest.Item | None) -> Any:
        self._seen = set()
        began = time.monotonic()
        sys.settrace(self._on_call)
        try:
            return (yield)
        finally:
            sys.settrace(None)
            self._note(item.nodeid, time.monotonic() - began)

    def _note(self, test: str, seconds: float) -> None:
        self.coverage.seconds[test] = seconds
        for place in sorted(self._seen):
            self.coverage.lines.setdefault(place, []).append(test)
        for path in sorted({path for path, _ in self._seen}):
            self.coverage.files.setdefault(path, []).append(test)

    def _on_call(self, frame: FrameType, event: str, argument: Any) -> Any:
        return self._on_line if frame.f_code.co_filename.startswith(self._folder) else None

    def _on_line(self, frame: FrameType, event: str, argument: Any) -> Any:
        if event == "line":
            self._seen.add((frame.f_code.co_filename, frame.f_lineno))
        return self._on_line


def traced_run(arguments: Sequence[str], folder: Path) -> Coverage:
    """Run the tests once, in a child, so that this process stays free of what they import."""
    with tempfile.TemporaryDirectory() as directory:
        noted = Path(directory, "coverage")
        pid = os.fork()
        if pid == 0:
            status = 1
            try:
                tracer = Tracer(folder)
                status = int(pytest.main(list(arguments), plugins=[tracer]))
                tracer.coverage.modules.extend(sorted(sys.modules))
                noted.write_bytes(pickle.dumps(tuple(tracer.coverage)))
            finally:
                sys.stdout.flush()
                os._exit(status)
        _, status = os.waitpid(pid, 0)
        if status != 0:
            raise SystemExit("the tests fail before anything was changed")
        return Coverage(*pickle.loads(noted.read_bytes()))  # noqa: S301 - written above


class TimeLimit:
    """A pytest plugin that ends the process when a test works much longer than it did unchanged.

    Only processor time counts, so that a busy or stopped machine makes no verdict.
    """

    SLACK_SECONDS = 5
    SLACK_FACTOR = 5

    def __init__(self, seconds: Mapping[str, float]) -> None:
        self._seconds = seconds
        signal.setitimer(signal.ITIMER_PROF, 60)
        # A test that waits for what never comes works not at all.
        signal.alarm(1_800)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item, nextitem: pytest.Item | None) -> Any:
        limit = self.SLACK_SECONDS + self.SLACK_FACTOR * self._seconds.get(item.nodeid, 0)
        signal.setitimer(signal.ITIMER_PROF, limit)
        return (yield)


class RefusedImport:
    """A finder that refuses a package, so that nothing which needs it can be imported."""

    def __init__(self, package: str) -> None:
        self._package = package

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if name == self._package or name.startswith(f"{self._package}."):
            raise ImportError(f"{name} is about to be changed")
        return None


def import_all_but(package: str, modules: Sequence[str]) -> None:
    """Import what does not need `package`, so that children forked from here need not."""
    refusing = RefusedImport(package)
    sys.meta_path.insert(0, refusing)
    for name in modules:
        if not name.startswith(("tests", "test_", "conftest", "__")):
            # What needs the package, and what is no module but a name in the table.
            with suppress(Exception):
                importlib.import_module(name)
    sys.meta_path.remove(refusing)
    gc.freeze()


class MutatedImport(importlib.machinery.SourceFileLoader):
    """A finder and loader for one module: its source with one site changed."""

    def __init__(self, module: str, number: int) -> None:
        self._module = module
        self._number = number
        spec = importlib.util.find_spec(module.rpartition(".")[0])
        assert spec is not None
        assert spec.submodule_search_locations is not None
        folder = next(iter(spec.submodule_search_locations))
        name = module.rpartition(".")[2]
        path = Path(folder, "__init__.py" if name == "__init__" else f"{name}.py")
        super().__init__(module, str(path))

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if name != self._module:
            return None
        return importlib.util.spec_from_loader(name, self, origin=self.path)

    def get_code(self, fullname: str) -> CodeType:
        tree = ast.parse(Path(self.path).read_text(encoding="utf-8"))
        sites_in(tree)[self._number].apply()
        ast.fix_missing_locations(tree)
        return compile(tree, self.path, "exec")
