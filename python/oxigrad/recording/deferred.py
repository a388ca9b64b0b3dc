"""Values of a recording that are not computed: only their shape and dtype are known, until Python sees one of them.

The function itself has computed its result already. A recording needs what was done, and values where the function looks at one: in a branch, as a
number, or in a call whose result's shape depends on them. Large arrays are not computed a second time for that.
"""

import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from oxigrad.recording.targets import ARITHMETIC, OPS_OF_OPERATORS, Target

# Smaller arrays are computed at once, unless a value that they need is not.
_LARGE = 1 << 12
_FLOATS = "<f4 <f8".split()
_NUMBERS = (float, int)


class Deferred:
    """A value to be computed: ``like`` has its shape and dtype, in the memory of one element."""

    __slots__ = ("_args", "_function", "_named", "_result", "is_known", "like")

    def __init__(self, like: Any, function: Callable[..., Any], args: Any, named: dict[str, Any]) -> None:
        self.like: Any = like
        self.is_known: bool = False
        self._function, self._args, self._named, self._result = function, args, named, None

    def value(self) -> Any:
        """The value, computed once, after those that it needs: without recursion, since chains are long."""
        waiting = [self]
        while waiting:
            last = waiting[-1]
            needed = [] if last.is_known else [held for held in map(_held, last._args) if _is_unknown(held)]
            if needed:
                waiting.extend(needed)
                continue
            waiting.pop()
            if not last.is_known:
                last._compute()
        return self._result

    def _compute(self) -> None:
        args = [held.value() if isinstance(held := _held(arg), Deferred) else held for arg in self._args]
        self._result, self.is_known = self._function(*args, **self._named), True
        self._args = ()


def _held(arg: Any) -> Any:
    """The value of a traced argument, deferred or not; any other as it is."""
    return getattr(arg, "held", arg)


def _is_unknown(held: Any) -> bool:
    return isinstance(held, Deferred) and not held.is_known


def is_deferrable(held: Any) -> bool:
    """Whether a call with this argument may be deferred: a large array, or a value that is deferred itself."""
    return type(held) is Deferred or (type(held) is np.ndarray and held.size >= _LARGE)


def deferred(target: Target, function: Callable[..., Any], args: Any, named: dict[str, Any]) -> Deferred | None:
    """The result of a call as a value to be computed; None where it has to be computed at once."""
    shaped = _SHAPED.get(target)
    if shaped is None:
        return None
    likes, is_any_unknown, is_any_large = [], False, False
    for arg in args:
        held = getattr(arg, "held", arg)
        if type(held) is Deferred:
            is_any_unknown = is_any_unknown or not held.is_known
            held = held.like
        is_any_large = is_any_large or (type(held) is np.ndarray and held.size >= _LARGE)
        likes.append(held)
    if not (is_any_unknown or is_any_large):
        return None
    form = shaped(likes, named)
    if form is None or not (is_any_unknown or target.name in _REDUCTIONS or math.prod(form[0]) >= _LARGE):
        return None
    return Deferred(_like(*form), function, args, named)


@functools.lru_cache(maxsize=256)
def _like(shape: tuple[int, ...], dtype: Any) -> Any:
    """An array, or a scalar of NumPy, of this shape and dtype, in the memory of one element."""
    one = np.zeros((), dtype)
    return np.broadcast_to(one, shape) if shape else one[()]


@functools.lru_cache(maxsize=256)
def _broadcast(*shapes: tuple[int, ...]) -> tuple[int, ...]:
    return np.broadcast_shapes(*shapes)


# --- the shape and dtype of a result, or None where they are left to the function ----------------------------------------


def _dtype(likes: list[Any]) -> Any:
    """The dtype that arrays and scalars of NumPy share, if it is one of floats, and all others are numbers of Python."""
    dtype = None
    for one in likes:
        if isinstance(one, (np.ndarray, np.generic)):
            if dtype is not None and one.dtype != dtype:
                return None
            dtype = one.dtype
        elif type(one) not in _NUMBERS:
            return None
    return dtype if dtype is not None and dtype.str in _FLOATS else None


def _elementwise(likes: list[Any], named: dict[str, Any]) -> Any:
    dtype = _dtype(likes)
    if named or dtype is None:
        return None
    return _broadcast(*[getattr(one, "shape", ()) for one in likes]), dtype


def _matmul(likes: list[Any], named: dict[str, Any]) -> Any:
    dtype = _dtype(likes)
    if named or dtype is None or [np.ndim(one) for one in likes] != [2, 2]:
        return None
    return (likes[0].shape[0], likes[1].shape[1]), dtype


def _sum(likes: list[Any], named: dict[str, Any]) -> Any:
    dtype = _dtype(likes)
    if dtype is None or len(likes) != 1 or named.keys() - {"axis", "keepdims"}:
        return None
    shape, axis = np.shape(likes[0]), named.get("axis")
    if axis is not None and type(axis) not in (int, tuple):
        return None
    axes = range(len(shape)) if axis is None else [at % len(shape) for at in (axis if type(axis) is tuple else (axis,))]
    if named.get("keepdims"):
        return tuple(1 if at in axes else extent for at, extent in enumerate(shape)), dtype
    return tuple(extent for at, extent in enumerate(shape) if at not in axes), dtype


def _getitem(likes: list[Any], named: dict[str, Any]) -> Any:
    array, key = likes
    parts = key if type(key) is tuple else (key,)
    if named or not isinstance(array, np.ndarray) or not all(map(is_plain_part, parts)):
        return None
    item = array[key]
    return item.shape, item.dtype


def is_plain_part(part: Any) -> bool:
    """Whether a part of a key is a slice of integers, an integer, None or an ellipsis."""
    if type(part) is slice:
        return all(bound is None or type(bound) is int for bound in (part.start, part.stop, part.step))
    return part is None or part is Ellipsis or type(part) is int


def _transposed(likes: list[Any], named: dict[str, Any]) -> Any:
    return (likes[0].shape[::-1], likes[0].dtype) if isinstance(likes[0], np.ndarray) else None


def _to_shape(likes: list[Any], named: dict[str, Any]) -> Any:
    shape = named.get("shape")
    is_plain = type(shape) is tuple and all(type(extent) is int and extent >= 0 for extent in shape)
    return (shape, likes[0].dtype) if is_plain and len(likes) == 1 and _dtype(likes) is not None else None


def _permuted(likes: list[Any], named: dict[str, Any]) -> Any:
    axes = named.get("axes")
    if not isinstance(likes[0], np.ndarray) or type(axes) is not tuple or not all(type(axis) is int for axis in axes):
        return None
    return tuple(likes[0].shape[axis] for axis in axes), likes[0].dtype


def _scattered(likes: list[Any], named: dict[str, Any]) -> Any:
    total, g, key, shape = likes
    parts = key if type(key) is tuple else (key,)
    is_plain = all(map(is_plain_part, parts)) and (total is None or np.shape(total) == shape)
    dtype = _dtype([g] if total is None else [total, g])
    return (shape, dtype) if is_plain and dtype is not None and shape else None


_FUNCTIONS = """add subtract multiply divide negative sqrt square reciprocal exp expm1 log log1p sin cos tan tanh expit
maximum minimum abs""".split()
_REDUCTIONS = ("sum", "mean")
_SHAPED: dict[Any, Callable[[list[Any], dict[str, Any]], Any]] = {
    **{Target(kind, name): _elementwise for kind in ("op", "rule") for name in _FUNCTIONS},
    **{Target("numpy", name): _elementwise for name in _FUNCTIONS if isinstance(getattr(np, name, None), np.ufunc)},
    **{Target("operator", name): _elementwise for name, op in OPS_OF_OPERATORS.items() if op in ARITHMETIC},
    **{Target("op", name): _sum for name in _REDUCTIONS},
    **{Target(kind, "matmul"): _matmul for kind in ("op", "operator", "numpy")},
    **{Target("op", name): _to_shape for name in ("reshape", "broadcast_to")},
    Target("op", "permute_dims"): _permuted,
    Target("operator", "getitem"): _getitem,
    Target("attribute", "T"): _transposed,
    Target("core", "scatter_into"): _scattered,
}
