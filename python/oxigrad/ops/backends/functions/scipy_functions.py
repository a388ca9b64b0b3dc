"""SciPy's functions, imported when they are called for the first time."""

import importlib
from collections.abc import Callable
from typing import Any


def of_scipy(part: str, name: str) -> Callable[..., Any]:
    """SciPy's function ``scipy.<part>.<name>``. Raises `ModuleNotFoundError` if SciPy is not installed."""
    try:
        return getattr(importlib.import_module(f"scipy.{part}"), name)
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(f"xp.{part}.{name} needs SciPy: pip install scipy", name=error.name) from error
