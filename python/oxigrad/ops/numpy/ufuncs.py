"""NumPy's ufuncs that are no ops, and the methods of all: ``outer``, ``reduce``, ``accumulate`` and ``reduceat``."""

import functools
import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from oxigrad._core import DerivativeError, plain
from oxigrad._typing import Array, Axis, Dtype, Function
from oxigrad.ops.backends import dtype_of, has_variable, is_array, is_complex, namespace
from oxigrad.ops.core import primitives as ops
from oxigrad.ops.core import standard
from oxigrad.ops.core.array_like import array, values
from oxigrad.ops.core.in_place import of_library
from oxigrad.ops.core.primitives import along
from oxigrad.ops.core.shapes import check_shapes, position
from oxigrad.ops.numpy import reductions as numpy_reductions


def divmod(x1: Array, x2: Array, /) -> tuple[Array, Array]:
    """Quotient rounded down, a plain value, and remainder."""
    return ops.floor_divide(x1, x2), ops.remainder(x1, x2)


def fmod(x1: Array, x2: Array, /) -> Array:
    """Remainder with the sign of ``x1``."""
    sign = plain(ops.where(ops.less(x1, 0.0), -1.0, 1.0))
    sign = ops.astype(sign, dtype_of(plain(x1)), copy=False) if is_array(plain(x1)) else sign
    return sign * ops.remainder(ops.abs(x1), ops.abs(x2))


def frexp(x: Array, /) -> tuple[Array, Array]:
    """Mantissa, between 0.5 and 1, and exponent of 2, a plain value."""
    exponents = of_library(np.frexp(np.asarray(plain(x)))[1], array(x))
    return ldexp(x, -exponents), exponents


def ldexp(x1: Array, x2: Array, /) -> Array:
    """``x1`` times 2 to the power of the whole number ``x2``."""
    dtype = dtype_of(plain(array(x1)))
    bound = int(math.log2(float(namespace(array(x1)).finfo(dtype).max))) - 1  # of exponents of normal numbers
    rest, factors = values(x2), []
    for _ in range(3):  # enough for all exponents from the smallest number to the largest
        part = np.clip(rest, -bound, bound)
        rest = rest - part
        factors.append(part)
    for part in reversed(factors):  # the largest one at last, so that one factor at most rounds
        if part is factors[0] or part.any():
            x1 = x1 * ops.astype(of_library(np.ldexp(1.0, part), array(x1)), dtype, copy=False)
    return x1


def heaviside(x1: Array, x2: Array, /) -> Array:
    """Zero below zero, one above, and ``x2`` at zero: a plain value, unless ``x2`` is a variable."""
    bare = (values(x) if is_array(plain(x)) else plain(x) for x in (x1, x2))
    step = of_library(np.heaviside(*bare), array(x1 if is_array(plain(x1)) else x2))
    return ops.where(ops.equal(x1, 0.0), x2, step) if has_variable((x2,)) else step


def modf(x: Array, /) -> tuple[Array, Array]:
    """Fractional part, and whole part, a plain value; both have the sign of ``x``."""
    whole = plain(ops.trunc(x))
    return ops.where(ops.isinf(x), 0.0, x - whole) if np.isinf(values(x)).any() else x - whole, whole


def matvec(x1: Array, x2: Array, /) -> Array:
    """Matrix times vector, over stacks of both."""
    check_shapes("matvec", [tuple(x1.shape), tuple(x2.shape)])
    return ops.matmul(x1, ops.expand_dims(x2, -1))[..., 0]


def vecmat(x1: Array, x2: Array, /) -> Array:
    """Conjugate of a vector times matrix, over stacks of both."""
    check_shapes("vecmat", [tuple(x1.shape), tuple(x2.shape)])
    x1 = ops.conj(x1) if is_complex(x1) else x1
    return ops.matmul(ops.expand_dims(x1, -2), x2)[..., 0, :]


# --- methods ----------------------------------------------------------------------------------------------------------

_REDUCTIONS: dict[str, Callable[..., Any]] = {
    "add": ops.sum,
    "maximum": ops.max,
    "minimum": ops.min,
    "multiply": numpy_reductions.prod,
}
_ACCUMULATIONS: dict[str, Callable[..., Any]] = {
    "add": standard.cumulative_sum,
    "multiply": standard.cumulative_prod,
}


def own_method(ufunc: np.ufunc, name: str) -> Function | None:
    """The function for the method ``reduce`` or ``accumulate`` of a ufunc, or None."""
    return {"reduce": _REDUCTIONS, "accumulate": _ACCUMULATIONS}.get(name, {}).get(ufunc.__name__)


def method(ufunc: np.ufunc, name: str, inputs: Sequence[Array], named: dict[str, Any]) -> Array:
    """A method of a ufunc, called on variables; ``named`` has neither ``out`` nor arguments that are None."""
    return _METHODS[name](ufunc, *inputs, **named)


def _outer(ufunc: np.ufunc, a: Array, b: Array, **named: Any) -> Array:
    a, b = (array(x) if has_variable((x,)) or is_array(x) else np.asarray(x) for x in (a, b))
    return ufunc(ops.reshape(a, tuple(a.shape) + (1,) * b.ndim), b, **named)


def _reduce(
    ufunc: np.ufunc,
    x: Array,
    axis: Axis = 0,
    dtype: Dtype = None,
    keepdims: bool = False,
    initial: Array = None,
    where: Array = None,
) -> Array:
    function = own_method(ufunc, "reduce")
    if function is not None:
        return function(array(x, dtype), axis=axis, keepdims=keepdims, initial=initial, where=where)
    if where is not None:
        raise DerivativeError(
            f"np.{ufunc.__name__}.reduce of a variable does not take where: use np.where on its argument"
        )
    x = array(x, dtype)
    axes = sorted(standard.axes_of(axis, x.ndim), reverse=True)
    is_empty = not math.prod(x.shape[place] for place in axes)
    # The identity of logaddexp, minus infinity, would take half of the derivative at an element that equals it.
    if initial is None and (is_empty or ufunc.identity != -math.inf):
        initial = ufunc.identity
    if len(axes) > 1:
        ufunc.reduce(np.ones((1,) * x.ndim), axis=tuple(axes))  # raises where the order of elements matters
    if is_empty:
        if initial is None:
            raise ValueError(f"np.{ufunc.__name__}.reduce: found no elements, and the function has no identity")
        result = ops.sum(x, axis=tuple(axes)) + initial
    elif axes:
        result = x
        for place in axes[:-1]:
            result = functools.reduce(ufunc, _slices(result, place))
        result = functools.reduce(ufunc, ([] if initial is None else [initial]) + _slices(result, axes[-1]))
    else:
        result = x if initial is None else ufunc(initial, x)
    shape = tuple(1 if place in axes else size for place, size in enumerate(x.shape))
    return ops.reshape(result, shape) if keepdims else result


def _accumulate(ufunc: np.ufunc, x: Array, axis: int = 0, dtype: Dtype = None) -> Array:
    x = array(x, dtype)
    function = own_method(ufunc, "accumulate")
    if function is not None:
        return function(x, axis=axis)
    axis = position(axis, x.ndim)
    if not x.shape[axis]:
        return x
    return ops.stack(list(itertools.accumulate(_slices(x, axis), ufunc)), axis=axis)


def _reduceat(ufunc: np.ufunc, x: Array, indices: Array, axis: int = 0, dtype: Dtype = None) -> Array:
    x = array(x, dtype)
    axis, starts = position(axis, x.ndim), np.asarray(plain(indices)).tolist()
    size = x.shape[axis]
    if any(not 0 <= start < size for start in starts):
        raise IndexError(f"np.{ufunc.__name__}.reduceat: found indices {starts}, expected numbers from 0 to {size - 1}")
    if not starts:
        return x[along(axis, slice(0))]
    ends, function = [*starts[1:], size], own_method(ufunc, "reduce")
    fold = function or (lambda part, axis: functools.reduce(ufunc, _slices(part, axis)))
    parts = [
        fold(x[along(axis, slice(start, end))], axis=axis) if start < end else x[along(axis, start)]
        for start, end in zip(starts, ends, strict=True)
    ]
    return ops.stack(parts, axis=axis)


_METHODS: dict[str, Callable[..., Any]] = {
    "accumulate": _accumulate,
    "outer": _outer,
    "reduce": _reduce,
    "reduceat": _reduceat,
}


def _slices(x: Array, axis: int) -> list[Array]:
    return [x[along(axis, place)] for place in range(x.shape[axis])]
