"""SciPy's functions, imported when they are called for the first time."""

import importlib

from oxigrad._typing import Function

# The attribute of a function in the place of SciPy's own, which is its value.
REPLACED = "__oxigrad_replaced__"


def of_scipy(part: str, name: str) -> Function:
    """SciPy's function ``scipy.<part>.<name>``. Raises `ModuleNotFoundError` if SciPy is not installed."""
    try:
        function = getattr(importlib.import_module(f"scipy.{part}"), name)
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(f"xp.{part}.{name} needs SciPy: pip install scipy", name=error.name) from error
    return getattr(function, REPLACED, function)
