"""Generated pages are current, what they point to exists, and no row of today is without a test."""

import ast
from pathlib import Path

from tests.behaviours import MAX_ROWS_PER_TEST
from tests.tidy.sources import tree_of
from tests.tools import ROOT
from tools.behaviour_rows import ROWS
from tools.from_kafka import TABLE
from tools.generate_docs import all_pages, citations, source_of, status_of


def test_generated_pages_say_what_code_and_tests_say():
    stale = [
        str(path.relative_to(ROOT))
        for path, text in all_pages().items()
        if not path.is_file() or path.read_text(encoding="utf-8") != text
    ]
    assert not stale, "./run docs writes: " + ", ".join(stale)


def test_every_target_of_from_kafka_exists():
    missing = [
        f"{theirs}: {target}" for theirs, target, _ in TABLE if not _exists(*target.split(":"))
    ]
    assert not missing, "\n".join(missing)


def _exists(module: str, name: str = "") -> bool:
    path = ROOT / source_of(module)
    if path.is_dir():
        return not name
    return path.is_file() and (not name or name in _defined(path))


def _defined(path: Path) -> list[str]:
    definitions = (ast.ClassDef, ast.FunctionDef)
    return [node.name for node in tree_of(path).body if isinstance(node, definitions)]


def test_tests_cite_rows_that_exist_and_not_too_many():
    for citation in citations():
        assert len(citation.rows) <= MAX_ROWS_PER_TEST, citation
        unknown = [row for row in citation.rows if row not in ROWS]
        assert not unknown, citation


def test_every_row_of_today_has_a_test_or_what_stands_in_its_place():
    cited = {row for citation in citations() for row in citation.rows}
    missing = [
        f"{row.id}: {row.title}"
        for row in ROWS.values()
        if row.now and status_of(row, row.id in cited) == "not yet"
    ]
    assert not missing, "\n".join(missing)
