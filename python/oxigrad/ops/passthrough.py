"""Functions of the standard and of NumPy that have no derivative here: passed on to their arguments' array library."""

import contextlib
import functools
import inspect
from collections.abc import Callable
from typing import Any

import numpy as np

from oxigrad.ops import numpy_protocols
from oxigrad.ops.backends import standard_namespace


@functools.cache  # as many as NumPy has functions, and always one object for one name
def passthrough(name: str) -> Callable[..., Any]:
    """The function ``xp.<name>``: the array library's own, with the docstring and the signature of NumPy's.

    Variables among its arguments count as plain arrays. Raises `DerivativeError` where a derivative would be lost, since
    the result has floating-point numbers.
    """

    def function(*args: Any, **named: Any) -> Any:
        def of_library(*args: Any, **named: Any) -> Any:
            return getattr(standard_namespace(*args), name)(*args, **named)

        return numpy_protocols.undifferentiated(of_library, f"xp.{name}", args, named)

    numpys = getattr(np, name)
    function.__name__ = function.__qualname__ = name
    function.__module__, function.__doc__ = "oxigrad.xp", numpys.__doc__
    with contextlib.suppress(ValueError):  # a few of NumPy's functions state none
        function.__signature__ = inspect.signature(numpys)  # type: ignore[attr-defined]
    return function
