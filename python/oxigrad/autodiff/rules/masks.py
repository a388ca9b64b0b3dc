"""Masks of cotangents: which elements of an argument get no cotangent, since an op has not selected them.

A mask is a list of its kind, the number of ops that it goes through, and its parts. ``["if", 0, condition]`` has zeros
where a condition holds. ``["logical_or", n, mask, mask]`` has zeros where one mask has them, and ``["logical_and", n,
mask, mask]`` where both have them. ``["outside", n, parts]`` has zeros where no part reaches; ``parts`` nests lists. A
part is a rule with its arguments after the cotangent, the shape of the cotangent, and its mask or None. It reaches the
elements for which the rule maps ones to nonzero numbers.

The core describes a mask without computing it, and asks for it only if a rule gives more than zero for zero.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from oxigrad import xp
from oxigrad._core import plain
from oxigrad._typing import Array, Axis
from oxigrad.autodiff.rules import vjp_rules
from oxigrad.autodiff.rules.cotangents import unbroadcast
from oxigrad.ops.backends import is_array, is_complex, zeros_of

_MATRIX = (-2, -1)
_RULES: dict[str, Any] = vjp_rules.TABLE


def spoiled_zeros(mask: list[Any], g: Array) -> Array:
    """As `masked_zeros`, for elements of ``g`` that are not finite alone: a finite array on the host has none."""
    values = plain(g)
    if type(values) is np.ndarray and np.isfinite(values).all():
        return np.zeros(values.shape, dtype=bool)
    return masked_zeros(mask, g)


def masked_zeros(mask: list[Any], g: Array) -> Array:
    """The mask of a cotangent ``g`` as truth values, which it keeps."""
    kind, _, *parts = mask
    if kind == "if":
        return parts[0]
    zeros = (
        _outside(parts[0], plain(g)) if kind == "outside" else getattr(xp, kind)(*(masked_zeros(m, g) for m in parts))
    )
    mask[:] = ["if", 0, zeros]
    return zeros


def _outside(nested: list[Any], like: Array) -> Array:
    parts = _flat(nested)
    is_host = not is_array(like) or isinstance(like, np.ndarray)
    if is_host and all(rule is _INDEX and mask is None and _is_plain_key(args[0]) for rule, args, _, mask in parts):
        zeros = np.ones(parts[0][1][1], dtype=bool)
        for _, (key, _), _, _ in parts:
            zeros[key] = False
        return zeros
    reached = None
    for rule, args, shape, mask in parts:
        ones = _ones(shape, mask, like)
        each = unbroadcast(ones, *args) if rule is None else rule(ones, *args)
        reached = each if reached is None else reached + each
    return reached == 0.0


def _flat(nested: list[Any]) -> list[tuple[Any, ...]]:
    """The parts in nested lists, each list once."""
    parts: list[tuple[Any, ...]] = []
    lists, seen = [nested], {id(nested)}
    while lists:
        for each in lists.pop():
            if isinstance(each, tuple):
                parts.append(each)
            elif id(each) not in seen:
                seen.add(id(each))
                lists.append(each)
    return parts


def _is_plain_key(key: Any) -> bool:
    parts = key if isinstance(key, tuple) else (key,)
    return all(part is None or part is ... or type(part) in (int, slice, np.ndarray) for part in parts)


def _ones(shape: Sequence[int], mask: list[Any] | None, like: Array) -> Array:
    """Ones of a shape, and zeros where a mask has them."""
    like = like if is_array(like) else np.asarray(like)
    like = xp.real(like) if is_complex(like) else like
    zeros = zeros_of(shape, like)
    return zeros + 1.0 if mask is None else xp.where(masked_zeros(mask, like), zeros, 1.0)


def _any(g: Array, axis: Axis) -> Array:
    """One where an element along the axes is one, in a shape that broadcasts."""
    return xp.max(g, axis=axis, keepdims=True)


def _by_matrix(g: Array) -> Array:
    return _any(g, _MATRIX)


def _by_axes(g: Array, x_shape: tuple[int, ...], axis: Axis) -> Array:
    return _RULES["sum"][0](g, x_shape, axis)


def _extremum(g: Array, y: Array, x: Array, x_shape: tuple[int, ...], axis: Axis) -> Array:
    reached = _by_axes(g, x_shape, axis)
    is_undefined = vjp_rules.keep_dimensions(plain(y != y), x_shape, axis)  # no element equals NaN: each gets NaN
    return xp.where(xp.logical_or(vjp_rules.is_extremum(y, x, axis), is_undefined), reached, 0.0)


def _matmul(which: int) -> Any:
    rule = _RULES["matmul"][which]

    def first(g: Array, x1_shape: tuple[int, ...], x2_shape: tuple[int, ...]) -> Array:
        return unbroadcast(rule(g, zeros_of(x2_shape, g) + 1.0, x1_shape), x1_shape, g.dtype)

    def second(g: Array, x1_shape: tuple[int, ...], x2_shape: tuple[int, ...]) -> Array:
        return unbroadcast(rule(g, zeros_of(x1_shape, g) + 1.0, x2_shape), x2_shape, g.dtype)

    return (first, second)[which]


def _solve_x1(g: Array, x1_shape: tuple[int, ...], x2_shape: tuple[int, ...]) -> Array:
    by_matrix = xp.expand_dims(_any(g, -1), axis=-1) if len(x2_shape) == 1 else _by_matrix(g)
    full = xp.broadcast_to(by_matrix, (*by_matrix.shape[:-2], *x1_shape[-2:]))
    return unbroadcast(full, x1_shape, g.dtype)


def _solve_x2(g: Array, x2_shape: tuple[int, ...]) -> Array:
    by_column = _any(g, -1 if len(x2_shape) == 1 else -2)
    return unbroadcast(xp.broadcast_to(by_column, tuple(g.shape)), x2_shape, g.dtype)


_INDEX = _RULES["index"][0]

# Ops that move, repeat or add elements: their own rules, which read no values.
_LINEAR = (
    "sum",
    "mean",
    "cumulative_sum",
    "flip",
    "reshape",
    "permute_dims",
    "expand_dims",
    "squeeze",
    "broadcast_to",
    "concat",
    "stack",
    "astype",
    "take_along_axis",
    "index",
    "scatter_add",
)

# The rules of masks, by op and argument. An op without one, such as a decomposition with several results or a call of a
# function with a user-defined rule, gives a cotangent without a mask.
TABLE: dict[str, tuple[Any, ...]] = {
    **{name: _RULES[name] for name in _LINEAR},
    **dict.fromkeys(("max", "min"), (_extremum,)),
    "vector_norm": (_by_axes,),
    "matmul": (_matmul(0), _matmul(1)),
    **dict.fromkeys(("inv", "cholesky", "sqrtm", "pinv"), (_by_matrix,)),
    "solve": (_solve_x1, _solve_x2),
    "det": (lambda g: xp.expand_dims(xp.expand_dims(g, axis=-1), axis=-1),),
    "fftn": (lambda g, axes: _any(g, axes),),
    "ifftn": (lambda g, axes: _any(g, axes),),
    "rfft": (lambda g, axis: _any(g, axis),),
    "irfft": (lambda g, axis: _any(g, axis),),
}
