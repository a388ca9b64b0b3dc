"""Reads the tables of Markdown pages, so that other pages say what they say."""

import re
from collections.abc import Iterator
from pathlib import Path

import oxigrad
from oxigrad.autodiff.inspection.support import Support

DOCS = Path(__file__).parents[2] / "docs"

# The pages of names in other libraries, by the library.
MIGRATION = {
    "PyTorch": "from_torch.md",
    "JAX": "from_jax.md",
    "optax": "from_optax.md",
    "Keras": "from_keras.md",
    "autograd": "from_autograd.md",
}


def cells(line: str) -> list[str]:
    """The cells of a line of a table."""
    return [cell.strip() for cell in re.split(r"(?<!\\)\|", line.strip().strip("|"))]


def rows(page: Path) -> Iterator[dict[str, str]]:
    """The rows of all tables of a page, by the heading of the column."""
    head: list[str] = []
    for line in page.read_text().splitlines():
        if not line.startswith("|"):
            head = []
        elif not head:
            head = cells(line)
        elif not set(line) <= set("|-: "):
            yield dict(zip(head, cells(line), strict=False))


def code(text: str) -> list[str]:
    """The texts in backticks."""
    return re.findall(r"`([^`]+)`", text)


def elsewhere() -> dict[str, dict[str, list[str]]]:
    """By a public name without ``oxigrad.``: by library, its names there, as the pages of migration have them."""
    found: dict[str, dict[str, list[str]]] = {}
    for library, page in MIGRATION.items():
        for row in rows(DOCS / page):
            theirs, ours, *_ = [*row.values(), ""]
            names, others = code(ours), code(theirs)
            in_pairs = len(names) == len(others)
            for at, name in enumerate(names):
                place = re.sub(r"\(.*", "", name).removeprefix("ox.")
                found.setdefault(place, {}).setdefault(library, []).extend([others[at]] if in_pairs else others)
    return found


def support() -> dict[str, Support]:
    """By the name of a function of NumPy or SciPy: its row of the catalogue."""
    found: dict[str, Support] = {}
    for row in oxigrad.support():
        if row.origin != "Array API":
            found.setdefault(row.function, row)
    return found
