"""Prints the tables of docs/torch.md for the installed PyTorch and bitsandbytes: ``python tools/torch_table.py``."""

import importlib.metadata
import inspect
import sys
from collections.abc import Callable
from typing import Any

from printed_tables import DOCS, PrintedTable, cells, markdown

PROPERTIES, CLASSES = (PrintedTable("torch.md", name, "torch_table") for name in ("properties", "classes"))
PEERS = ("torch", "bitsandbytes")
FLAGS = ("params", "maximize", "foreach", "capturable", "differentiable", "fused")


# --- properties ----------------------------------------------------------------------------------------------------------


def sentence(requirement: Callable[..., Any]) -> str:
    """The first line of a requirement."""
    return (requirement.__doc__ or "").partition("\n")[0].replace("``", "`")


def version(peer: str) -> str:
    """The release of a peer, without its build tag."""
    return importlib.metadata.version(peer).partition("+")[0]


def documented() -> tuple[dict[str, str], dict[str, dict[str, str]]]:
    """The releases of the peers, and the outcomes of each requirement, by library."""
    head, _, *rows = PROPERTIES.printed().splitlines()
    releases = dict(name.split() for name in cells(head)[2:])
    libraries = ("oxigrad.torch", *releases)
    return releases, {row[0]: dict(zip(libraries, row[1:], strict=True)) for row in map(cells, rows)}


def properties() -> str:
    """The table of requirements, for the installed releases."""
    from torch_problems import BITSANDBYTES, OURS, TORCH
    from torch_requirements import REQUIREMENTS, outcome

    rows = (
        (sentence(requirement), *(outcome(requirement, library) for library in (OURS, TORCH, BITSANDBYTES)))
        for requirement in REQUIREMENTS
    )
    return markdown(("", "oxigrad.torch", *(f"{peer} {version(peer)}" for peer in PEERS)), rows)


# --- classes -------------------------------------------------------------------------------------------------------------


def classes() -> str:
    """The table of optimizers with their arguments."""
    import torch

    from oxigrad.torch.optimizer import OPTIONS
    from torch_problems import OURS

    rows: list[tuple[str, str, str]] = []
    for name in sorted(OURS.names, key=str.lower):
        parameters = inspect.signature(OURS.type(name)).parameters.values()
        own = [f"{p.name}={p.default!r}" for p in parameters if p.name not in (*FLAGS, *OPTIONS)]
        there = "yes" if hasattr(torch.optim, name) else ""
        rows.append((name, there, f"`{', '.join(own)}`"))
    return markdown(("optimizer", "also in torch", "arguments"), rows)


if __name__ == "__main__":
    sys.path.insert(0, str(DOCS.parent / "tests" / "tables"))
    PROPERTIES.print(properties())
    CLASSES.print(classes())
