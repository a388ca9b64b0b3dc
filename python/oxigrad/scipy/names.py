"""SciPy's own names for differentiable functions: in a context, or as a backend of `scipy.fft`."""

import contextlib
import functools
import importlib
from collections.abc import Callable, Iterator
from typing import Any

from oxigrad import tree, xp
from oxigrad._core import Variable

# The parts of SciPy whose functions `oxigrad.xp` has.
_PARTS = ("fft", "integrate", "interpolate", "linalg", "ndimage", "signal", "spatial.distance", "special")


@contextlib.contextmanager
def names() -> Iterator[None]:
    """A context in which SciPy's functions take variables: each is its twin in `oxigrad.xp` for variables.

    The context changes the names of SciPy's modules, for all threads. A name that a program has imported before, as
    ``from scipy.linalg import det``, stays SciPy's function.

    >>> import numpy as np
    >>> import scipy.linalg
    >>> import oxigrad as ox
    >>> with names():
    ...     ox.grad(lambda x: scipy.linalg.det(np.diag(x)))(np.array([2.0, 3.0])).round(6)
    array([3., 2.])
    """
    with contextlib.ExitStack() as stack:
        for part in _PARTS:
            module = importlib.import_module(f"scipy.{part}")
            twins: Any = functools.reduce(getattr, part.split("."), xp)
            for name in twins.__all__:
                theirs = getattr(module, name, None)
                if callable(theirs):
                    stack.callback(setattr, module, name, theirs)
                    setattr(module, name, _either(theirs, getattr(twins, name)))
        yield


def _either(theirs: Callable[..., Any], ours: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(theirs, updated=())
    def called(*args: Any, **named: Any) -> Any:
        takes = any(isinstance(leaf, Variable) for leaf in tree.leaves((args, named)))
        return (ours if takes else theirs)(*args, **named)

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
