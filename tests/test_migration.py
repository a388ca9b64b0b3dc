"""The tables of the migration pages: each of our names exists, and theirs where the library is installed."""

from __future__ import annotations

import importlib
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import oxigrad as ox
from oxigrad import optim, schedules, xp

DOCS = Path(__file__).parent.parent / "docs"
PAGES = sorted(DOCS.glob("from_*.md"))
OURS = {"ox": ox, "optim": optim, "schedules": schedules, "xp": xp}


def rows(page: Path) -> Iterator[list[str]]:
    for line in page.read_text().splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if line.startswith("|") and not set(line) <= {"|", "-"} and "where they differ" not in line:
            yield cells


def names(cell: str) -> list[str]:
    return re.findall(r"`([A-Za-z_][\w.]*)`", cell)


def resolved(name: str) -> Any:
    """The object of a dotted name: the longest module of it, then attributes."""
    parts = name.split(".")
    for end in range(len(parts), 0, -1):
        try:
            found = importlib.import_module(".".join(parts[:end]))
        except ImportError:
            continue
        for part in parts[end:]:
            found = getattr(found, part)
        return found
    raise ImportError(name)


def test_there_are_five_pages_with_tables() -> None:
    assert [page.stem for page in PAGES] == ["from_autograd", "from_jax", "from_keras", "from_optax", "from_torch"]
    for page in PAGES:
        found = [*rows(page)]
        assert len(found) >= 14 and all(len(cells) == 3 for cells in found)
        assert any(f"({page.name})" in other.read_text() for other in [DOCS.parent / "README.md", *DOCS.glob("*.md")])


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_our_names_exist(page: Path) -> None:
    count = 0
    for cells in rows(page):
        for name in names(cells[1]):
            first, *rest = name.split(".")
            if first in OURS and rest:
                found = OURS[first]
                for part in rest:
                    found = getattr(found, part)
                count += 1
    assert count >= 14


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_their_names_exist(page: Path, request: pytest.FixtureRequest) -> None:
    library = page.stem.removeprefix("from_")
    if library == "keras":
        request.getfixturevalue("keras")
    else:
        request.getfixturevalue("library")(library)
    found = [name for cells in rows(page) for name in names(cells[0]) if name.startswith(f"{library}.")]
    assert len(found) >= 14
    for name in found:
        assert resolved(name) is not None, name
