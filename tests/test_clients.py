"""The page of libraries that stand on autograd: its rows are the programs of `tests/clients`, and oxigrad passes what autograd does."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
PROGRAMS = {file.stem for file in (ROOT / "tests" / "clients").glob("*_*.py")}
TOOL: dict[str, Any] = runpy.run_path(str(ROOT / "tools" / "clients.py"))


def rows() -> dict[str, list[str]]:
    lines = [
        line.strip("| ").split(" | ")
        for line in (ROOT / "docs" / "clients.md").read_text().splitlines()
        if line[:2] == "| "
    ]
    return {library: cells for library, *cells in lines[1:]}


def test_the_page_has_a_row_for_each_program_with_its_pinned_release() -> None:
    table = rows()
    libraries = {TOOL["library_of"](name): name for name in PROGRAMS}
    assert table.keys() == libraries.keys()
    for library, (release, *_) in table.items():
        assert release == TOOL["release"](library)


def test_no_program_fails_on_oxigrad_alone() -> None:
    table = rows()
    excepted = {TOOL["library_of"](name) for name in TOOL["WITHOUT_COUNTERPART"]}
    assert excepted < table.keys()
    for library, (_, results, theirs, ours, _) in table.items():
        assert int(results) >= int(theirs) > 0, library
        assert library in excepted or ours == theirs, library


def test_numbers_are_compared_to_a_relative_tolerance() -> None:
    near = TOOL["are_near"]
    assert near([1.0 + 1e-6], [1.0])
    assert not near([1e-6], [2e-6])
    assert not near([float("nan")], [1.0])
    assert not near([1.0], [1.0, 2.0])
    assert not near(None, [1.0])
