"""The tables of the migration pages: each of our names exists, and theirs where the library is installed."""

from __future__ import annotations

import importlib
import itertools
import re
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import oxigrad as ox
from migration import of_autograd
from migration_jax import of_jax, shown_by_jax, shown_by_ours
from migration_keras import of_keras
from migration_optax import of_optax
from migration_torch import of_torch
from oxigrad import optim, schedules, xp

DOCS = Path(__file__).parent.parent / "docs"
PAGES = sorted(DOCS.glob("from_*.md"))
# By page, what runs its rows, and the rows that are not run, with the reason.
ROWS: dict[str, tuple[Callable[[], dict[str, Any]], dict[str, str]]] = {
    "from_autograd": (of_autograd, {}),
    "from_jax": (of_jax, {}),
    "from_keras": (of_keras, {"single precision": "over PyTorch; Keras chooses its backend once for a process"}),
    "from_optax": (of_optax, {}),
    "from_torch": (of_torch, {}),
}
OURS = {"ox": ox, "optim": optim, "schedules": schedules, "xp": xp}


def rows(page: Path) -> Iterator[list[str]]:
    """The cells of each row of the tables of a page, without their headings."""
    for line, following in itertools.pairwise([*page.read_text().splitlines(), ""]):
        if line.startswith("|") and not (is_ruled(line) or is_ruled(following)):
            yield [cell.strip() for cell in line.strip("|").split("|")]


def is_ruled(line: str) -> bool:
    return line.startswith("|") and set(line) <= {"|", "-"}


def key(cells: list[str]) -> str:
    """Name of a row: the first name in it, or its first cell."""
    return next(iter(names(cells[0])), cells[0])


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


def imported(page: Path, request: pytest.FixtureRequest) -> AbstractContextManager[Any]:
    """Imports the library of a page, or skips the test; within the context JAX computes in double precision."""
    library = page.stem.removeprefix("from_")
    if library == "keras":
        return nullcontext(request.getfixturevalue("keras"))
    request.getfixturevalue("library")(library)
    return request.getfixturevalue("precision")(True) if library in ("jax", "optax") else nullcontext()


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
    with imported(page, request):
        found = [name for cells in rows(page) for name in names(cells[0]) if name.startswith(f"{library}.")]
        assert len(found) >= 14
        for name in found:
            assert resolved(name) is not None, name


@pytest.mark.filterwarnings("ignore:.torch.jit.script. is deprecated")  # torch's own, at the first jacfwd
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_rows_are_so(page: Path, request: pytest.FixtureRequest) -> None:
    """Each row is run, beside the library; one that is not run is listed with its reason."""
    with imported(page, request):
        run, left_out = ROWS[page.stem]
        runs, keys = run(), [key(cells) for cells in rows(page)]
        assert sorted(keys) == sorted([*runs, *left_out])
        for name, pairs in runs.items():
            count = 0
            for theirs, ours, *tolerance in pairs():
                close = {"rtol": (tolerance or [1e-9])[0], "atol": 1e-12}
                np.testing.assert_allclose(np.asarray(ours, float), np.asarray(theirs, float), **close, err_msg=name)
                count += 1
            assert count, name


def test_results_that_differ_from_jax(library: Any, precision: Any) -> None:
    """The expressions in docs/jax.md give what stands beside them, in JAX and here."""
    library("jax")
    table = [cells for cells in rows(DOCS / "jax.md") if len(cells) == 3]
    assert len(table) >= 16
    with precision(True):
        for expression, *expected in table:
            code = expression.strip("`")
            assert [f"`{shown_by_jax(code)}`", f"`{shown_by_ours(code)}`"] == expected, code
