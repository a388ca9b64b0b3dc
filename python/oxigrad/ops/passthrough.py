"""Functions of the standard and of NumPy without a derivative, dispatched to the array library of their arguments."""

import contextlib
import functools
import inspect
from collections.abc import Callable
from typing import Any

import numpy as np

from oxigrad.ops import numpy_protocols, undifferentiated
from oxigrad.ops.backends import standard_namespace


@functools.cache  # bounded by the number of NumPy's functions; one object for each name
def passthrough(name: str) -> Callable[..., Any]:
    """The function ``xp.<name>``: the array library's own, with the standard's signature, or NumPy's.

    Variables among its arguments are replaced by their plain arrays. Raises `DerivativeError` where the result is of
    floating-point dtype, so that a derivative would be lost.
    """

    def function(*args: Any, **named: Any) -> Any:
        def of_library(*args: Any, **named: Any) -> Any:
            return getattr(standard_namespace(*args), name)(*args, **named)

        return numpy_protocols.undifferentiated(of_library, f"xp.{name}", args, named)

    described = undifferentiated.stated(name) or getattr(np, name)
    function.__name__ = function.__qualname__ = name
    function.__module__, function.__doc__ = "oxigrad.xp", described.__doc__
    with contextlib.suppress(ValueError):  # a few of NumPy's functions have none
        function.__signature__ = inspect.signature(described)
    return function
