"""Every test file belongs to a part of `./run test`, and every error to its page."""

import re

from tests.tidy.sources import lines_of, python_files
from tests.tools import ROOT
from tools.run_tests import PARTS, files_of, part_of
from tools.run_tests import test_files as all_test_files


def test_every_test_file_is_run_by_exactly_one_part():
    assert all_test_files()
    assert not [file for file in all_test_files() if part_of(file) is None]
    listed = [file for part in PARTS for file in files_of(part)]
    assert sorted(listed) == all_test_files()


def test_every_error_points_to_a_heading_and_every_heading_is_pointed_to():
    headings = {
        line.removeprefix("## ").strip()
        for line in (ROOT / "docs" / "errors.md").read_text().splitlines()
        if line.startswith("## ")
    }
    pointed = {
        name
        for path in python_files("src")
        for name in re.findall(r'\bsee ?= ?"([a-z-]+)"', "\n".join(lines_of(path)))
    }
    assert pointed == headings
