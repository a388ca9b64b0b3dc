"""SciPy's own names for differentiable functions: in a context, or as a backend of `scipy.fft`."""

import contextlib
import functools
import importlib
import types
from collections.abc import Callable, Iterator
from typing import Any

from oxigrad import xp
from oxigrad._core import BatchLevel, Variable
from oxigrad.ops.backends.functions.scipy_functions import REPLACED
from oxigrad.scipy import linalg
from oxigrad.scipy.closures import reads_variables

# The parts of SciPy whose functions `oxigrad.xp` has.
_PARTS = ("fft", "integrate", "interpolate", "linalg", "ndimage", "signal", "spatial.distance", "special")
# Values that SciPy's own functions do not take: `vmap` and recordings have classes of their own.
_KINDS = (Variable, BatchLevel)


@contextlib.contextmanager
def names() -> Iterator[None]:
    """A context in which SciPy's functions take variables: each is its twin in `oxigrad.xp` for variables.

    The context changes the names of SciPy's modules and the methods of its distributions, for all threads. A name that
    a program has imported before, as ``from scipy.linalg import det``, stays SciPy's function.

    >>> import numpy as np
    >>> import scipy.linalg
    >>> import oxigrad as ox
    >>> with names():
    ...     ox.grad(lambda x: scipy.linalg.det(np.diag(x)))(np.array([2.0, 3.0])).round(6)
    array([3., 2.])
    """
    with contextlib.ExitStack() as stack:
        for part in _PARTS:
            _replace(importlib.import_module(f"scipy.{part}"), counterpart(part), stack)
        stats: Any = importlib.import_module("scipy.stats")
        for name in xp.stats.__all__:
            if hasattr(stats, name):
                _replace(getattr(stats, name), getattr(xp.stats, name), stack)
        yield


def counterpart(part: str) -> Any:
    """The functions of `oxigrad.xp` under the names of a part of SciPy, with SciPy's arguments and results."""
    ours = functools.reduce(getattr, part.split("."), xp)
    if part != "linalg":
        return ours
    functions = {name: getattr(module, name) for module in (ours, linalg) for name in module.__all__}
    return types.SimpleNamespace(**functions)


def _replace(theirs: Any, ours: Any, stack: contextlib.ExitStack) -> None:
    """Replaces the functions of a module or a distribution of SciPy, until the stack is closed."""
    for name, function in twins(theirs, ours).items():
        if name in vars(theirs):
            stack.callback(setattr, theirs, name, vars(theirs)[name])
        else:  # a method
            stack.callback(delattr, theirs, name)
        setattr(theirs, name, function)


def twins(theirs: Any, ours: Any) -> dict[str, Callable[..., Any]]:
    """The functions that a module or a distribution of SciPy and its twin have: for variables, the twin's.

    Variables may be in containers, and functions among the arguments may read them.
    """
    shared = [name for name in dir(ours) if not name.startswith("_") and callable(getattr(theirs, name, None))]
    return {name: _either(getattr(theirs, name), getattr(ours, name)) for name in shared}


def _either(theirs: Callable[..., Any], ours: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(theirs, updated=())
    def called(*args: Any, **named: Any) -> Any:
        return (ours if reads_variables((args, named), _KINDS) else theirs)(*args, **named)

    setattr(called, REPLACED, theirs)
    return called


def fft_backend(method: Callable[..., Any], args: tuple[Any, ...], named: dict[str, Any]) -> Any:
    """A backend of `scipy.fft` whose transforms take variables, a function for `scipy.fft.set_backend`.

    Args:
        method: function of `scipy.fft` that SciPy dispatches.
        args: positional arguments of the function.
        named: arguments of the function by keyword.

    >>> import numpy as np
    >>> import scipy.fft
    >>> import oxigrad as ox
    >>> with scipy.fft.set_backend(fft_backend):
    ...     ox.grad(lambda x: scipy.fft.dct(x)[0])(np.ones(3))
    array([2., 2., 2.])
    """
    name = method.__name__
    return getattr(xp.fft, name)(*args, **named) if name in xp.fft.__all__ else NotImplemented


# The names by which SciPy finds and calls a backend.
vars(fft_backend).update(__ua_domain__="numpy.scipy.fft", __ua_function__=fft_backend)
