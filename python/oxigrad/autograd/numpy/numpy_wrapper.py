"""Functions of NumPy that convert lists of variables to arrays of variables first."""

import functools
from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np

from oxigrad._core import BatchLevel, Variable
from oxigrad.autodiff.transforms import stop_gradient
from oxigrad.autograd.modules import public
from oxigrad.ops.backends import has_variable
from oxigrad.ops.numpy import creation

#: Functions whose list is a list of arrays, which NumPy passes on to the variables among them.
_OF_SEQUENCES = frozenset(
    "block broadcast_arrays choose column_stack concat concatenate dstack einsum hstack lexsort meshgrid "
    "row_stack select stack vstack".split()
)
_CLASSES = (type, ModuleType, np.ufunc)


def lifted(module: ModuleType) -> dict[str, Any]:
    """Names of a module of NumPy: ufuncs, classes, constants, and functions that take lists of variables too."""
    names = public(module).items()
    return {name: _lifted(name, value) for name, value in names if not isinstance(value, ModuleType)}


def _lifted(name: str, value: Any) -> Any:
    if isinstance(value, type) and issubclass(value, np.integer):
        return _integers(value)
    if not callable(value) or isinstance(value, _CLASSES) or name in _OF_SEQUENCES:
        return value
    return converting_lists(value)


def _integers(kind: type) -> type:
    """Class of integers whose constructor takes variables: integers have no derivative."""
    return type(kind.__name__, (kind,), {"__new__": lambda _, x=0: kind(stop_gradient(x)), "__module__": "numpy"})


def converting_lists(f: Callable[..., Any]) -> Callable[..., Any]:
    """Function that converts lists with variables among its positional arguments to arrays."""

    @functools.wraps(f, updated=())
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        # A loop, as a generator for each call takes longer than many of the functions.
        for each in args:
            if isinstance(each, (list, tuple)) and _is_differentiable(each):
                args = tuple(array(x) if isinstance(x, (list, tuple)) and _is_differentiable(x) else x for x in args)
                break
        return f(*args, **kwargs)

    return wrapped


def _is_differentiable(values: Any) -> bool:
    """Whether a variable or a value of `vmap` or of a recording is among the values."""
    return has_variable(values, (Variable, BatchLevel))


def array(A: Any, *args: Any, **kwargs: Any) -> Any:
    """Array of numbers, arrays, variables, or nested lists of these."""
    return (creation.array if _is_differentiable([A]) else np.array)(A, *args, **kwargs)


asarray = array


def full(shape: Any, fill_value: Any, *args: Any, **kwargs: Any) -> Any:
    """Array filled with a number, a variable, or an array that is broadcast."""
    return (creation.full if _is_differentiable([fill_value]) else np.full)(shape, fill_value, *args, **kwargs)


def stack(arrays: Any, *args: Any, **kwargs: Any) -> Any:
    """Arrays of any iterable, joined along a new axis."""
    return np.stack(arrays if hasattr(arrays, "__len__") else [*arrays], *args, **kwargs)


def concatenate_args(axis: int, *args: Any) -> Any:
    """Arrays joined along an axis."""
    return np.concatenate(args, axis)


def array_from_args(args: Any, kwargs: Any, *items: Any) -> Any:
    """Array of the given items."""
    return array(list(items), *args, **kwargs)


def where(condition: Any, x: Any = None, y: Any = None) -> Any:
    """Elements of ``x`` where a condition holds, and of ``y`` elsewhere; the indices where it holds, without these.

    A condition that is one bool chooses between Python numbers or lists as they are, as in autograd.
    """
    if x is None and y is None:
        return np.where(condition)
    if isinstance(condition, bool) and not (hasattr(x, "dtype") or hasattr(y, "dtype")):
        return x if condition else y
    return np.where(condition, *(array(each) if isinstance(each, (list, tuple)) else each for each in (x, y)))


def make_diagonal(D: Any, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Any:
    """Square matrices with diagonals ``D``, along the last two axes."""
    if offset or {axis1, axis2} != {-1, -2}:
        raise NotImplementedError("make_diagonal: expected offset=0 and the axes -1 and -2")
    return D[..., None] * np.eye(np.shape(D)[-1])
