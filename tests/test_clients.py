"""The page of libraries that run on oxigrad: its rows are those of the tool, and oxigrad passes what autograd does."""

from __future__ import annotations

import importlib.util
import json
import runpy
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parent.parent
PROGRAMS = {file.stem for file in (ROOT / "tests" / "clients").glob("*_*.py")}
TOOL: dict[str, Any] = runpy.run_path(str(ROOT / "tools" / "clients.py"))
PROGRAM = ROOT / "tests" / "clients" / "trainers.py"
LOOPS: dict[str, Any] = runpy.run_path(str(PROGRAM))


def rows(heading: str) -> dict[str, list[str]]:
    part = (ROOT / "docs" / "clients.md").read_text().partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    lines = [line.strip("| ").split(" | ") for line in part.splitlines() if line[:2] == "| "]
    return {library: cells for library, *cells in lines[1:]}


def test_the_page_has_a_row_for_each_program_with_its_pinned_release() -> None:
    table = rows("Programs with autograd")
    assert table.keys() == {TOOL["library_of"](name) for name in PROGRAMS}
    for library, (release, *_) in table.items():
        assert release == TOOL["release"](library)


def test_the_page_has_a_row_for_the_tests_of_each_library_with_its_pinned_release() -> None:
    for library, (release, *_) in rows("Tests of libraries").items():
        assert release == TOOL["release"](library, TOOL["SUITES"][library].lock)


def test_most_tests_of_autograd_pass() -> None:
    assert int(rows("Tests of libraries")["autograd"][3]) >= 600


def test_no_program_fails_on_oxigrad_alone() -> None:
    for library, (_, results, theirs, ours, *_) in rows("Programs with autograd").items():
        assert int(results) >= int(theirs) == int(ours) > 0, library


def test_tests_that_fail_on_oxigrad_alone_have_a_reason() -> None:
    table = rows("Tests of libraries")
    assert table.keys() == TOOL["SUITES"].keys()
    for library, (_, total, theirs, ours, _) in table.items():
        assert int(total) >= int(theirs) >= int(ours) >= 0.97 * int(theirs) > 0, library
        assert int(theirs) == int(ours) or TOOL["SUITES"][library].differences, library


def test_training_loops_train_and_resume() -> None:
    table = rows("Training loops")
    assert [*table] == [*TOOL["TRAINERS"]] == [*LOOPS["TRAINERS"]]
    for library, (_, _, before, after, difference) in table.items():
        assert float(after) < float(before), library
        assert float(difference) <= TOOL["TOLERANCE"], library


# The others need more than the packages of `make test-all`. Each library has a process to itself, as its own programs do.
@pytest.mark.parametrize(("needs", "name"), [("torch", "accelerate"), ("torch", "lightning"), ("jax", "equinox")])
def test_a_training_loop_resumes(library: Any, needs: str, name: str) -> None:
    library(needs)
    if importlib.util.find_spec(name) is None:
        pytest.skip(f"{name} is not installed")
    run = subprocess.run([sys.executable, str(PROGRAM), name], capture_output=True, text=True, timeout=300)
    assert run.returncode == 0, run.stderr[-2000:]
    outcome = json.loads(run.stdout.splitlines()[-1])
    assert outcome["after"] < outcome["before"]
    assert outcome["difference"] == 0.0


def test_numbers_are_compared_to_a_relative_tolerance() -> None:
    near = TOOL["are_near"]
    assert near([1.0 + 1e-6], [1.0])
    assert not near([1e-6], [2e-6])
    assert not near([float("nan")], [1.0])
    assert not near([1.0], [1.0, 2.0])
    assert not near(None, [1.0])
