"""Cotangents in the shape and dtype of their values: initial cotangents of a reverse replay, unbroadcasting, casts."""

import math
from collections.abc import Sequence
from typing import Any, cast

import numpy as np

from oxigrad import _core, xp
from oxigrad._core import DtypeError, ShapeError, plain
from oxigrad._typing import Array, Dtype
from oxigrad.autodiff.rules.symbols import Symbol
from oxigrad.ops.backends import (
    beneath,
    device_of,
    dtype_name,
    dtype_of,
    is_array,
    is_complex,
    is_of_vmap,
    namespace,
    widest_float,
)
from oxigrad.ops.core import primitives
from oxigrad.ops.core.aliasing import is_same_array


def initial_cotangent(value: Any, cotangent: Array) -> Array:
    """The initial cotangent of a reverse replay: ``cotangent`` if given, else one for a value of one element."""
    shape, expected = tuple(getattr(cotangent, "shape", ())), tuple(getattr(value, "shape", ()))
    if cotangent is None and math.prod(expected) != 1:
        raise ShapeError(f"the target: found shape {expected}, expected a scalar, or a cotangent of that shape")
    if cotangent is not None and shape != expected:
        raise ShapeError(f"the cotangent: found shape {shape}, expected {expected}, the shape of the target")
    if cotangent is None:
        require_real(value, "the target")
    if not is_array(plain(value)):
        return 1.0 if cotangent is None else cotangent
    if cotangent is None:
        like = _like(value)
        return type(like)(1) if isinstance(like, np.generic) else primitives.ones_like(value)
    return cotangent if is_array(plain(cotangent)) else primitives.ones_like(value) * cotangent


def zeros_like(value: Any) -> Array:
    """The gradient of a value that the target does not depend on: zeros, of a number the number 0."""
    return 0.0 if isinstance(_like(value), float) and not is_array(plain(value)) else primitives.zeros_like(value)


def _like(value: Any) -> Any:
    """A value of the same class, shape and dtype: of one that is recorded the one in this call, or one in its place."""
    return getattr(value, "like", value)


def require_real(value: Any, what: str) -> None:
    """Raises `DtypeError` for a complex ``value``, named ``what``: only a real value has a gradient."""
    if not isinstance(value, float) and is_complex(value):
        raise DtypeError(
            f"{what} is complex, and only a real value has a gradient: take its real part, imaginary part or absolute "
            "value, or pass holomorphic=True to ox.grad for a holomorphic function, use ox.jacobian, or ox.vjp with "
            "a cotangent"
        )


def require_complex(values: Sequence[Any], name: str) -> None:
    """Raises `DtypeError` for a real value: the transform ``name`` was called with ``holomorphic=True``."""
    for value in values:
        if not is_complex(value):
            raise DtypeError(
                f"{name} with holomorphic=True: found a value of dtype {dtype_name(dtype_of(plain(value)))}, "
                "expected complex arguments and a complex value"
            )


def unbroadcast(g: Array, shape: tuple[int, ...], dtype: Dtype) -> Array:
    """The cotangent ``g`` summed over the broadcast axes, in the dtype of the argument.

    Of a symbol it is one step, since the axes depend on the shapes; so is `match_dtype`.
    """
    if isinstance(g, Symbol):
        return g.program.step("fit", (g,), {"shape": tuple(shape), "dtype": dtype})
    added = len(g.shape) - len(shape)
    axes = [axis for axis, size in enumerate(g.shape) if axis < added or shape[axis - added] != size]
    if axes:
        g = primitives.reshape(primitives.sum(g, axis=tuple(axes)), tuple(shape))
    return match_dtype(g, dtype)


def match_dtype(g: Array, dtype: Dtype) -> Array:
    """The cotangent ``g`` in the dtype of the argument; its real part if the argument is real.

    It is unchanged for a ``dtype`` of None, which is a number's: the replay makes a number of it.
    """
    if isinstance(g, Symbol):
        return g.program.step("fit", (g,), {"dtype": dtype})
    if dtype is None:
        return g
    if dtype is np.float64:  # the dtype of a Python number, stated as a class; the library may lack it
        array = beneath(g)
        dtype = widest_float(namespace(array), device_of(array)) if is_array(array) else dtype
    if g.dtype == dtype:
        return g
    if is_complex(g) and not namespace(g).isdtype(dtype, "complex floating"):
        g = primitives.real(g)
    return g if g.dtype == dtype else primitives.astype(g, dtype)


def unbroadcast_to_number(g: Array) -> Array:
    """The cotangent ``g`` summed to one number."""
    total = primitives.sum(g) if len(getattr(g, "shape", ())) else g
    total = primitives.real(total) if is_complex(total) else total
    if isinstance(total, _core.Variable) or is_of_vmap(total):
        return total
    number = getattr(total, "number", None) if isinstance(total, _core.BatchLevel) else None  # of a recording
    return float(cast("Any", total)) if number is None else number


def copy_duplicates(primals: Sequence[Array], gradients: Sequence[Array]) -> list[Array]:
    """The gradients, with repeated arrays among the gradients of one primal copied.

    An optimizer sums the gradients of a parameter with several key paths, and counts a repeated array once.
    """
    result: list[Any] = []
    by_primal: dict[int, list[Any]] = {}
    for primal, g in zip(primals, gradients, strict=True):
        others = by_primal.setdefault(id(primal), [])
        is_another = is_array(g) and any(is_same_array(g, other) for other in others)
        result.append(xp.asarray(g, copy=True) if is_another else g)
        others.append(result[-1])
    return result
