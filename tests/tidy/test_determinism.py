"""Nothing that would make two runs of one history differ stands in the code that is repeated."""

import ast

import pytest

from tests.tidy.set_order import EXCUSE, SetWalks
from tests.tidy.sources import DETERMINISTIC, PURE, lines_of, name_of, package_files, tree_of

FORBIDDEN_CALLS = {
    "hash": "its result for text differs from process to process",
    "open": "files are the Disk port's",
    "input": "nobody is asked in the middle of a decision",
    "globals": "state is handed in",
}


def test_no_builtin_brings_the_process_or_the_outside_in():
    found = [
        f"{name_of(path)}:{node.lineno}: {node.func.id}(): {FORBIDDEN_CALLS[node.func.id]}"
        for path in package_files(*PURE, *DETERMINISTIC)
        for node in ast.walk(tree_of(path))
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id in FORBIDDEN_CALLS
    ]
    assert not found, "\n".join(found)


def test_the_order_of_sets_never_gets_out():
    found = [
        f"{name_of(path)}:{line}: {lines_of(path)[line - 1].strip()}"
        for path in package_files(*PURE, *DETERMINISTIC)
        for line in SetWalks(tree_of(path)).lines
        if EXCUSE not in lines_of(path)[line - 1]
    ]
    assert not found, "sort first, or say why any order will do:\n" + "\n".join(found)


@pytest.mark.parametrize(
    "code",
    [
        "for x in {1, 2}: f(x)",
        "for x in set(a) - b: f(x)",
        "def g(a: set[int]): return [x for x in a]",
        "def g(a: frozenset[int]): return tuple(a)",
        "class C:\n def __init__(s): s.a: set[int] = set()\n def g(s): return list(s.a)",
        "class C:\n a: frozenset[int]\n def g(self): return ','.join(self.a)",
        "a = {x for x in b}\nfor x in a: f(x)",
        "def g(a: set[int]):\n while a: f(a.pop())",
        "def g(a: set[int]): return f(*a)",
        "def g(a: set[int], b: set[int]): return {x: 1 for x in a | b}",
        "def g(a: set[int] | None): return next(iter(a))",
    ],
)
def test_walks_over_sets_are_seen(code: str):
    assert SetWalks(ast.parse(code)).lines


@pytest.mark.parametrize(
    "code",
    [
        "for x in sorted({1, 2}): f(x)",
        "def g(a: set[int]): return any(f(x) for x in a)",
        "def g(a: set[int]): return sorted(f(x) for x in a)",
        "def g(a: set[int]): return {f(x) for x in a}",
        "def g(a: set[int]): return frozenset(x for x in a)",
        "def g(a: set[int], b: list[int]): return [x for x in b if x in a]",
        "def g(a: list[int]): return [x for x in a]",
        "def g(a: set[int]): return len(a)",
        "def h(a: set[int]): pass\ndef g(a: list[int]): return list(a)",
    ],
)
def test_what_loses_the_order_is_fine(code: str):
    assert not SetWalks(ast.parse(code)).lines
