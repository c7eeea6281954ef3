"""Files that fit in a head, words in full, a first sentence for each module, no promises left."""

import ast
import re
from pathlib import Path

from tests.tidy.sources import lines_of, name_of, project_files, python_files, tree_of

FILE_LINES_MAX = 600
FUNCTION_LINES_MAX = 60
EXCUSE = "# tidy: long because "
ALL = ("src", "tests", "tools", "bench")

Function = ast.FunctionDef | ast.AsyncFunctionDef


def test_a_longer_file_says_why():
    found = [
        f"{name_of(path)}: {len(lines_of(path))} lines"
        for path in python_files(*ALL)
        if len(lines_of(path)) > FILE_LINES_MAX
        and not any(line.startswith(EXCUSE) for line in lines_of(path))
    ]
    assert not found, f"'{EXCUSE}...' on a line of its own, or a wall between:\n" + "\n".join(found)


def test_a_longer_function_says_why():
    found = [
        f"{name_of(path)}:{node.lineno}: {node.name} has {_length(node)} lines"
        for path in python_files(*ALL)
        for node in ast.walk(tree_of(path))
        if isinstance(node, Function)
        and _length(node) > FUNCTION_LINES_MAX
        and not _is_excused(path, node)
    ]
    assert not found, f"'{EXCUSE}...' on the line before it, or a part of it apart:\n" + "\n".join(
        found
    )


def _length(function: Function) -> int:
    return (function.end_lineno or function.lineno) - function.lineno + 1


def _is_excused(path: Path, function: Function) -> bool:
    first = min([function.lineno, *(decorator.lineno for decorator in function.decorator_list)])
    return EXCUSE in lines_of(path)[first - 2]


def test_every_module_begins_with_its_line_on_the_map():
    found: list[str] = []
    for path in python_files(*ALL):
        text = ast.get_docstring(tree_of(path))
        first = (text or "").split("\n\n")[0].splitlines()
        if not first:
            found.append(f"{name_of(path)}: no docstring")
        elif len(first) > 1:
            found.append(f"{name_of(path)}: the first sentence takes more than its line")
        elif not first[0].rstrip().endswith("."):
            found.append(f"{name_of(path)}: the first line is no sentence: {first[0]}")
    assert not found, "\n".join(found)


VAGUE = re.compile(r"(^|_)(utils?|common|base|helpers?|misc|shared|stuff|core_functions)(_|$)")


def test_no_module_is_named_after_nothing():
    found = [
        name_of(path)
        for path in python_files(*ALL)
        if VAGUE.search(path.stem) or VAGUE.search(path.parent.name)
    ]
    assert not found, "\n".join(found)


ABBREVIATIONS = ("hw", "leo", "tp", "mgr", "cfg", "ctx", "tmp", "req", "resp")


def test_words_are_written_in_full():
    found: list[str] = []
    for path in python_files("src"):
        for node in ast.walk(tree_of(path)):
            names: list[str] = []
            if isinstance(node, ast.Name):
                names = [node.id]
            elif isinstance(node, ast.arg):
                names = [node.arg]
            elif isinstance(node, (ast.Attribute,)):
                names = [node.attr]
            elif isinstance(node, (*Function.__args__, ast.ClassDef)):
                names = [node.name]
            found += [
                f"{name_of(path)}:{getattr(node, 'lineno', 0)}: {name}"
                for name in names
                for word in name.strip("_").lower().split("_")
                if word in ABBREVIATIONS
            ]
    assert not found, "\n".join(found)


PROMISES = re.compile(r"\b(TO" + r"DO|FIX" + r"ME|XX" + r"X|HA" + r"CK)\b")


def test_no_promise_is_left_for_somebody_else():
    found = [
        f"{name_of(path)}:{number}: {line.strip()}"
        for path in python_files(*ALL)
        for number, line in enumerate(lines_of(path), start=1)
        if PROMISES.search(line)
    ]
    assert not found, "\n".join(found)


def test_tests_wait_for_events_and_not_for_time():
    found = [
        f"{name_of(path)}:{node.lineno}"
        for path in python_files("tests")
        for node in ast.walk(tree_of(path))
        if isinstance(node, ast.Call)
        and ast.unparse(node.func) in ("time.sleep", "asyncio.sleep")
        and "# tidy: sleeps because " not in lines_of(path)[node.lineno - 1]
    ]
    assert not found, "a sleep hides a missing event:\n" + "\n".join(found)


# Written in pieces, so that this file is not its own finding.
PLACES = re.compile(
    "|".join(
        (
            r"(?<![\w.])/(wo" + r"rk|fa" + r"rm|ro" + r"ot|Us" + r"ers)/",
            r"(?<![\w.])/ho" + r"me/\w",
            r"\bpy" + r"pi\.org",
            r"python" + r"hosted\.org",
            r"index-" + r"url\s*=",
            r"(arti" + r"factory|nex" + r"us)[./]",
            r"repo[.1]*\.ma" + r"ven\.",
            r"regis" + r"try\.npm",
        )
    )
)
TEXT_BYTES_MAX = 4 * 1024 * 1024


def test_no_machine_and_no_registry_stands_in_the_project():
    found: list[str] = []
    for path in project_files():
        data = path.read_bytes()
        if b"\0" in data[:4096] or len(data) > TEXT_BYTES_MAX:
            continue
        for number, line in enumerate(data.decode("utf-8", "replace").splitlines(), start=1):
            if PLACES.search(line):
                found.append(f"{name_of(path)}:{number}: {line.strip()[:120]}")
    assert not found, "\n".join(found)
