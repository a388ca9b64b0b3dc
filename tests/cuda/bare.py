"""A plugin of pytest: a machine with PyTorch, NumPy and the wheels of ``make wheels`` alone, on which PyTorch finds a GPU."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from typing import Any

# What is there: of the group gpu in pyproject.toml, and PyTorch with what it needs, which has the bindings of the driver.
THERE = """
oxigrad numpy torch cuda array_api_compat hypothesis sortedcontainers iniconfig packaging pluggy pygments pytest _pytest safetensors
typing_extensions sympy mpmath networkx jinja2 markupsafe fsspec filelock setuptools pkg_resources triton nvidia torchgen functorch
"""


class Absent(MetaPathFinder):
    """Finds no other package of the environment."""

    def find_spec(self, name: str, path: Sequence[str] | None, target: Any = None) -> Any:
        package = name.partition(".")[0]
        if (
            path is not None
            or package in THERE.split()
            or package in sys.stdlib_module_names
            or package.startswith("_")
        ):
            return None
        for finder in sys.meta_path:
            if finder is not self and (found := finder.find_spec(name, None)) is not None:
                if "-packages" in str(found.origin or found.submodule_search_locations):
                    raise ModuleNotFoundError(f"No module named {name!r} on a machine with a GPU", name=name)
                return found
        return None


sys.meta_path.insert(0, Absent())

import torch  # noqa: E402 - where nothing else is

torch.cuda.is_available = lambda: True
