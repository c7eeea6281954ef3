"""The mutation tester breaks what it says, and nothing that is a story for people."""

import ast

import pytest

from tools.mutation_sites import sites_in


def _mutants(code: str) -> list[str]:
    """The source of every mutant of some code."""
    broken: list[str] = []
    for number in range(len(sites_in(ast.parse(code)))):
        tree = ast.parse(code)
        sites_in(tree)[number].apply()
        broken.append(ast.unparse(ast.fix_missing_locations(tree)))
    return broken


@pytest.mark.parametrize(
    ("code", "mutants"),
    [
        ("a < b", ["a <= b"]),
        ("a is None", ["a is not None"]),
        ("a and b", ["a or b"]),
        ("a + b", ["a - b"]),
        ("x = True", ["x = False"]),
        ("x = 5", ["x = 6"]),
        ("if a:\n    pass", ["if not a:\n    pass"]),
        ("if not a:\n    pass", ["if a:\n    pass"]),
        ("while x:\n    break", ["while not x:\n    break", "while x:\n    continue"]),
        ("def f():\n    self.x = y", ["def f():\n    pass"]),
        ("def f():\n    g(x)", ["def f():\n    pass"]),
        ("def f():\n    x += y", ["def f():\n    x -= y", "def f():\n    pass"]),
    ],
)
def test_each_break_is_one_change(code: str, mutants: list[str]):
    assert sorted(_mutants(code)) == sorted(mutants)


@pytest.mark.parametrize(
    "code",
    [
        '"""A docstring with 5 words."""',
        "invariant(a < b, f'{a} is not below 5')",
        "raise Wrong(5)",
        "assert_never(a)",
        "x = zip(a, b, strict=True)",
        "__slots__ = ('a', 5)",
        "x: Literal[5]",
        "import a",
        "@cache(5)\ndef f():\n    return x",
    ],
)
def test_stories_and_declarations_are_left_alone(code: str):
    assert _mutants(code) == []
