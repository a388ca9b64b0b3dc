"""Prints the table of what the tools around PyTorch expect of an optimizer: ``python tools/torch_table.py`` writes it into docs/torch.md."""

import importlib.metadata
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
PATH = ROOT / "docs" / "torch.md"
BEGIN, END = "<!-- printed by tools/torch_table.py -->\n", "<!-- end -->\n"
PEERS = ("torch", "bitsandbytes")


def sentence(requirement: Callable[..., Any]) -> str:
    """The property in a line."""
    return (requirement.__doc__ or "").partition("\n")[0].replace("``", "`")


def version(peer: str) -> str:
    """The release of a peer, without what it is built for."""
    return importlib.metadata.version(peer).partition("+")[0]


def documented() -> tuple[dict[str, str], dict[str, dict[str, str]]]:
    """The releases of the peers in the table, and by sentence whether each library has a property."""
    head, _, *rows = PATH.read_text().partition(BEGIN)[2].partition(END)[0].strip().splitlines()
    _, *names = cells(head)
    releases = dict(name.split() for name in names[1:])
    return releases, {
        row[0]: dict(zip(("oxigrad.torch", *releases), row[1:], strict=True)) for row in map(cells, rows)
    }


def cells(line: str) -> list[str]:
    """The cells of a row."""
    return [cell.strip() for cell in line.strip().strip("|").split("|")]


def table() -> str:
    """The table, of what the installed releases do."""
    from torch_problems import BITSANDBYTES, OURS, TORCH
    from torch_requirements import REQUIREMENTS, outcome

    lines = [f"| | oxigrad.torch | {' | '.join(f'{peer} {version(peer)}' for peer in PEERS)} |", "|---|---|---|---|"]
    for requirement in REQUIREMENTS:
        found = [outcome(requirement, library) for library in (OURS, TORCH, BITSANDBYTES)]
        lines.append(f"| {sentence(requirement)} | {' | '.join(found)} |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    sys.path.insert(0, str(ROOT / "tests" / "tables"))
    before, _, rest = PATH.read_text().partition(BEGIN)
    PATH.write_text(before + BEGIN + table() + END + rest.partition(END)[2])
