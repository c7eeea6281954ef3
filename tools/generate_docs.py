"""Writes the pages under docs/ that are made from code and tests, never by hand.

./run docs           writes them
./run docs --check   says which are stale
"""

import ast
import sys
from collections.abc import Sequence
from enum import Enum
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "src")]

from barnabas.model.transitions import TransitionTable  # noqa: E402
from tools.behaviour_rows import ROWS, SECTIONS, Row  # noqa: E402
from tools.from_kafka import TABLE  # noqa: E402

NOTICE = "<!-- Written by `./run docs`; changes go into {source}. -->\n"
MACHINES_MODULE = "barnabas.core.machines"
PACKAGES = (
    *("model", "formats", "core", "storage", "zookeeper"),
    *("client", "broker", "node", "admin"),
)
"""In the order of the map: what is imported stands before what imports it."""
UNMAPPED = {"generated", "apis"}
"""One module for each API, named after it, and nothing else."""
MAP_BEGIN = "<!-- map: written by `./run docs` -->"
MAP_END = "<!-- end of map -->"


class Citation(NamedTuple):
    """A test that cites rows, and where it stands."""

    file: str
    test: str
    rows: tuple[str, ...]


def main(arguments: list[str]) -> int:
    pages = all_pages()
    stale = [path for path, text in pages.items() if not _is_current(path, text)]
    leftover = [path for path in _machine_pages_there() if path not in pages]
    if arguments == ["--check"]:
        for path in stale + leftover:
            print(f"{path.relative_to(ROOT)} is stale: ./run docs")
        return 1 if stale or leftover else 0
    for path in stale:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(pages[path], encoding="utf-8")
        print(f"wrote {path.relative_to(ROOT)}")
    for path in leftover:
        path.unlink()
        print(f"removed {path.relative_to(ROOT)}")
    return 0


def all_pages() -> dict[Path, str]:
    """The text of every generated page by its path."""
    docs = ROOT / "docs"
    pages = {
        docs / "behaviours.md": behaviours_page(citations()),
        docs / "from-kafka.md": from_kafka_page(),
        docs / "architecture.md": architecture_page(docs / "architecture.md"),
    }
    for table in machines():
        pages[docs / "machines" / f"{_slug(table)}.md"] = machine_page(table)
    return pages


# -- docs/behaviours.md --------------------------------------------------------------------------


@cache
def citations() -> tuple[Citation, ...]:
    """Every test that cites rows, in the order of files and lines."""
    found: list[Citation] = []
    for path in sorted((ROOT / "tests").rglob("test_*.py")):
        text = path.read_text(encoding="utf-8")
        if "@behaviour(" not in text:
            continue
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
                rows = _cited_rows(node.decorator_list)
                if rows:
                    found.append(Citation(str(path.relative_to(ROOT)), node.name, rows))
    return tuple(found)


def _cited_rows(decorators: list[ast.expr]) -> tuple[str, ...]:
    rows: list[str] = []
    for decorator in decorators:
        match decorator:
            case ast.Call(func=ast.Name(id="behaviour"), args=arguments):
                rows += [str(ast.literal_eval(argument)) for argument in arguments]
            case _:
                pass
    return tuple(rows)


def behaviours_page(cited: Sequence[Citation]) -> str:
    """Row, status and tests, section by section."""
    by_row: dict[str, list[Citation]] = {}
    for citation in cited:
        for row in citation.rows:
            by_row.setdefault(row, []).append(citation)
    lines = [
        NOTICE.format(source="tools/behaviour_rows.py and the tests that cite rows"),
        "# Behaviours\n",
        "The acceptance list in short: what Kafka 3.9 with ZooKeeper does and this broker must.",
        "A test cites at most three rows and fails when one of them is broken. *n/a*: the row",
        "describes the inside of the JVM broker; what holds in its place is said. *not yet*: it",
        "comes with a later part.\n",
        _counts(by_row),
    ]
    for section in SECTIONS:
        lines += [f"## {section.title}\n", "| row | what | status | tests |", "|---|---|---|---|"]
        lines += [_row_line(row, by_row.get(row.id, [])) for row in section.rows]
        lines.append("")
    return "\n".join(lines)


def _row_line(row: Row, tests: list[Citation]) -> str:
    shown = "<br>".join(f"[{_spoken(test)}](../{test.file})" for test in tests)
    title = row.title + (f" *({row.instead})*" if row.instead else "")
    return f"| {row.id} | {title} | {status_of(row, bool(tests))} | {shown} |"


def _spoken(test: Citation) -> str:
    return test.test.removeprefix("test_").removeprefix("Test").replace("_", " ")


def status_of(row: Row, is_cited: bool) -> str:
    """Tested, not applicable, or not yet."""
    if is_cited:
        return "tested"
    return "n/a" if row.instead else "not yet"


def _counts(by_row: dict[str, list[Citation]]) -> str:
    statuses = [status_of(row, row.id in by_row) for row in ROWS.values()]
    counted = ", ".join(f"{statuses.count(word)} {word}" for word in ("tested", "n/a", "not yet"))
    return f"{len(ROWS)} rows: {counted}.\n"


# -- docs/from-kafka.md --------------------------------------------------------------------------


def from_kafka_page() -> str:
    """Kafka's classes beside the modules that do their work here."""
    lines = [
        NOTICE.format(source="tools/from_kafka.py"),
        "# From Kafka\n",
        "Where the work of a class of Kafka's is done here.\n",
        "| Kafka | here | what is different |",
        "|---|---|---|",
    ]
    for theirs, target, difference in TABLE:
        module, _, name = target.partition(":")
        shown = f"`{module.removeprefix('barnabas.')}{'.' + name if name else ''}`"
        lines.append(f"| {theirs} | [{shown}](../{source_of(module)}) | {difference} |")
    return "\n".join([*lines, ""])


def source_of(module: str) -> str:
    """The path of a module of ours, relative to the root, whether or not it is there."""
    stem = "src/" + module.replace(".", "/")
    return stem if (ROOT / stem).is_dir() else f"{stem}.py"


# -- docs/architecture.md ------------------------------------------------------------------------


def architecture_page(path: Path) -> str:
    """The page as it stands, with the map between its two marks made anew."""
    before, _, rest = path.read_text(encoding="utf-8").partition(MAP_BEGIN)
    _, _, after = rest.partition(MAP_END)
    return f"{before}{MAP_BEGIN}\n{module_map()}{MAP_END}{after}"


def module_map() -> str:
    """Every module with the first sentence of its docstring, package by package."""
    lines: list[str] = []
    for package in PACKAGES:
        folder = ROOT / "src/barnabas" / package
        lines += [f"### {package}\n", f"{_first_sentence(folder / '__init__.py')}\n"]
        for path in sorted(folder.rglob("*.py")):
            is_listed = path.name != "__init__.py" and not UNMAPPED & set(path.parts)
            if is_listed:
                name = path.relative_to(folder).with_suffix("")
                lines.append(f"- `{name}`: {_first_sentence(path)}")
        lines.append("")
    return "\n".join([*lines, ""])


def _first_sentence(path: Path) -> str:
    text = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
    return text.splitlines()[0]


# -- docs/machines -------------------------------------------------------------------------------


def machines() -> tuple[TransitionTable[Any], ...]:
    """Every transition table of the program."""
    return import_module(MACHINES_MODULE).MACHINES


def machine_page(table: TransitionTable[Any]) -> str:
    """The states, the arrows and a diagram of one machine."""
    lines = [
        NOTICE.format(source=MACHINES_MODULE),
        f"# The {_slug(table)} machine\n",
        "```mermaid",
        "stateDiagram-v2",
        f"    [*] --> {_state(table.initial)}",
        *(f"    {_state(arrow.source)} --> {_state(arrow.target)}" for arrow in table.arrows),
        "```\n",
        "| state | value | meaning |",
        "|---|---|---|",
        *(f"| {_state(s)} | {s.value} | {meaning} |" for s, meaning in table.meanings.items()),
        "",
        "| from | to | cause | requests that may leave |",
        "|---|---|---|---|",
    ]
    for arrow in table.arrows:
        requests = ", ".join(arrow.requests) or "none"
        lines.append(
            f"| {_state(arrow.source)} | {_state(arrow.target)} | {arrow.cause} | {requests} |"
        )
    return "\n".join([*lines, ""])


def _state(state: Enum) -> str:
    return "".join(word.capitalize() for word in state.name.split("_"))


def _slug(table: TransitionTable[Any]) -> str:
    return table.name.lower().replace("_", "-").replace(" ", "-")


def _machine_pages_there() -> list[Path]:
    return sorted((ROOT / "docs" / "machines").glob("*.md"))


def _is_current(path: Path, text: str) -> bool:
    return path.is_file() and path.read_text(encoding="utf-8") == text


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
