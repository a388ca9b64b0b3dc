"""Prints the tables of docs/torch.md for the installed PyTorch and bitsandbytes: ``python tools/torch_table.py``."""

import importlib.metadata
import inspect
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
PATH = ROOT / "docs" / "torch.md"
END = "<!-- end -->\n"
PEERS = ("torch", "bitsandbytes")
FLAGS = ("params", "maximize", "foreach", "capturable", "differentiable", "fused")


def begin(name: str) -> str:
    """The line that begins a table."""
    return f"<!-- {name}, printed by tools/torch_table.py -->\n"


def printed(name: str) -> str:
    """A table of the page."""
    return PATH.read_text().partition(begin(name))[2].partition(END)[0]


def cells(line: str) -> list[str]:
    """The cells of a row."""
    return [cell.strip() for cell in line.strip().strip("|").split("|")]


# --- properties ----------------------------------------------------------------------------------------------------------


def sentence(requirement: Callable[..., Any]) -> str:
    """The first line of a requirement."""
    return (requirement.__doc__ or "").partition("\n")[0].replace("``", "`")


def version(peer: str) -> str:
    """The release of a peer, without its build tag."""
    return importlib.metadata.version(peer).partition("+")[0]


def documented() -> tuple[dict[str, str], dict[str, dict[str, str]]]:
    """The releases of the peers, and the outcomes of each requirement, by library."""
    head, _, *rows = printed("properties").splitlines()
    releases = dict(name.split() for name in cells(head)[2:])
    libraries = ("oxigrad.torch", *releases)
    return releases, {row[0]: dict(zip(libraries, row[1:], strict=True)) for row in map(cells, rows)}


def properties() -> str:
    """The table of requirements, for the installed releases."""
    from torch_problems import BITSANDBYTES, OURS, TORCH
    from torch_requirements import REQUIREMENTS, outcome

    lines = [f"| | oxigrad.torch | {' | '.join(f'{peer} {version(peer)}' for peer in PEERS)} |", "|---|---|---|---|"]
    for requirement in REQUIREMENTS:
        found = [outcome(requirement, library) for library in (OURS, TORCH, BITSANDBYTES)]
        lines.append(f"| {sentence(requirement)} | {' | '.join(found)} |")
    return "\n".join(lines) + "\n"


# --- classes -------------------------------------------------------------------------------------------------------------


def classes() -> str:
    """The table of optimizers with their arguments."""
    import torch

    from oxigrad.torch.optimizer import OPTIONS
    from torch_problems import OURS

    lines = ["| optimizer | also in torch | arguments |", "|---|---|---|"]
    for name in sorted(OURS.names, key=str.lower):
        parameters = inspect.signature(OURS.type(name)).parameters.values()
        own = [f"{p.name}={p.default!r}" for p in parameters if p.name not in (*FLAGS, *OPTIONS)]
        there = "yes" if hasattr(torch.optim, name) else ""
        lines.append(f"| {name} | {there} | `{', '.join(own)}` |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    sys.path.insert(0, str(ROOT / "tests" / "tables"))
    for name, table in (("properties", properties), ("classes", classes)):
        before, _, rest = PATH.read_text().partition(begin(name))
        PATH.write_text(before + begin(name) + table() + END + rest.partition(END)[2])
