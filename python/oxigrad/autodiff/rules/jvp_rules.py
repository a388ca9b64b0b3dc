"""Derivative rules for forward mode (Jacobian-vector products) of structured ops.

The rule of an elementwise op in `oxigrad.autodiff.rules.vjp_rules` is also its forward rule, with the tangent of the
argument as ``g``. An op in `LINEAR` is its own forward rule. Its row returns its attributes for a batch of tangents
along a leading axis, or None without such attributes. `FORWARD` has the rules of a few other ops. An op in neither
table is transposed: its reverse rule, which is linear in ``g``, is recorded and replayed in reverse.
"""

import math
from collections.abc import Callable
from typing import Any

from oxigrad import _core, xp
from oxigrad._typing import Array, Axis
from oxigrad.autodiff.rules import jvp_linalg
from oxigrad.autodiff.rules.tangents import in_dtype, owned, spread, zero_cotangent
from oxigrad.autodiff.rules.vjp_rules import keep_dimensions, tie_weights
from oxigrad.ops.backends import is_array, is_complex, namespace, size_of, zeros_of
from oxigrad.ops.core import primitives


def shifted_axes(axis: Axis, t: Array) -> Axis:
    """``axis`` for an array with a leading batch dimension."""
    if axis is None:
        return tuple(range(1, len(t.shape)))
    return tuple(map(_shifted, axis)) if isinstance(axis, tuple) else _shifted(axis)


def _shifted(axis: int) -> int:
    return axis if axis < 0 else axis + 1


def shifted_reduction(t: Array, axis: Axis, keepdims: bool) -> dict[str, Any]:
    """The attributes of a reduction for an array with a leading batch dimension."""
    return {"axis": shifted_axes(axis, t), "keepdims": keepdims}


def _shifted_key(key: Any) -> Any:
    """``key`` for an array with a leading batch dimension; None if indexing would move that dimension."""
    key = key if isinstance(key, tuple) else (key,)
    arrays = [i for i, part in enumerate(key) if is_array(part) or isinstance(part, list)]
    if arrays:
        integers = [i for i, part in enumerate(key) if i in arrays or isinstance(part, int)]
        if integers[-1] - integers[0] != len(integers) - 1 or any(
            not len(getattr(key[i], "shape", (1,))) for i in arrays
        ):
            return None
    return (slice(None), *key)


def _shifted_take(t: Array, indices: Array, axis: int) -> dict[str, Any]:
    shape = (t.shape[0], *indices.shape)
    return {"indices": namespace(indices).broadcast_to(indices, shape), "axis": shifted_axes(axis, t)}


# Ops that are jointly linear in their array arguments, and so their own forward rule, with their attributes for a batch
# of tangents ``t``, or None without such attributes.
LINEAR: dict[str, Callable[..., dict[str, Any] | None]] = {
    "sum": shifted_reduction,
    "mean": shifted_reduction,
    "cumulative_sum": lambda t, axis: {"axis": shifted_axes(axis, t)},
    "flip": lambda t, axis: {"axis": shifted_axes(axis, t)},
    "fftn": lambda t, axes, norm: {"axes": shifted_axes(axes, t), "norm": norm},
    "ifftn": lambda t, axes, norm: {"axes": shifted_axes(axes, t), "norm": norm},
    "rfft": lambda t, n, axis, norm: {"n": n, "axis": shifted_axes(axis, t), "norm": norm},
    "irfft": lambda t, n, axis, norm: {"n": n, "axis": shifted_axes(axis, t), "norm": norm},
    "reshape": lambda t, shape, copy=None: {"shape": (t.shape[0], *shape)},
    "permute_dims": lambda t, axes: {"axes": (0, *(a + 1 for a in axes))},
    "expand_dims": lambda t, axis: {"axis": shifted_axes(axis, t)},
    "squeeze": lambda t, axis: {"axis": shifted_axes(axis, t)},
    "concat": lambda t, axis, ends: {"axis": axis + 1, "ends": ends},
    "stack": lambda t, axis: {"axis": axis + 1},
    "astype": lambda t, **named: named,
    "take_along_axis": _shifted_take,
    "index": lambda t, key: None if (behind := _shifted_key(key)) is None else {"key": behind},
    "scatter_add": lambda t, key, shape: (
        None if (behind := _shifted_key(key)) is None else {"key": behind, "shape": (t.shape[0], *shape)}
    ),
}


def _matrix(shape: tuple[int, ...], as_column: bool) -> tuple[int, ...]:
    return shape if len(shape) > 1 else (*shape, 1) if as_column else (1, *shape)


def _product(t: Array, x: Array, y: Array, batch: int | None, swapped: bool) -> Array:
    """The matrix product of a tangent and the other argument, in the opposite order if ``swapped``."""
    if batch is None:
        return x @ t if swapped else t @ x
    shape: tuple[int, ...] = tuple(t.shape)[1:]
    other: tuple[int, ...] = tuple(x.shape)
    if not swapped and len(other) <= 2:  # one product of matrices instead of a stack of them
        rows = xp.reshape(t, (batch * size_of(shape[:-1]), shape[-1]))
        return xp.reshape(rows @ x, (batch, *y.shape))
    shape, other = _matrix(shape, swapped), _matrix(other, not swapped)
    t = xp.reshape(t, (batch, *(1,) * (len(other) - len(shape)), *shape))
    x = xp.reshape(x, other)
    return xp.reshape(x @ t if swapped else t @ x, (batch, *y.shape))


def _push_matmul(tangents: Any, args: Any, y: Array, batch: int | None) -> Array:
    (t1, t2), (x1, x2) = tangents, args
    terms = [] if t1 is None else [_product(t1, x2, y, batch, False)]
    terms += [] if t2 is None else [_product(t2, x1, y, batch, True)]
    return terms[0] if len(terms) == 1 else terms[0] + terms[1]


def _push_extremum(tangents: Any, args: Any, y: Array, batch: int | None, axis: Axis, keepdims: bool) -> Array:
    weights = tie_weights(y, args[0], axis)
    along = weights * xp.where(weights == 0.0, 0.0, tangents[0])  # of the others it may be infinite
    return xp.sum(along, axis=axis if batch is None else shifted_axes(axis, along), keepdims=keepdims)


def _push_norm(tangents: Any, args: Any, y: Array, batch: int | None, axis: Axis, keepdims: bool) -> Array:
    (t,), (x,) = tangents, args
    if not x.shape:
        return NotImplemented
    along = primitives.modulus_slope(t, xp.conjugate(x), keep_dimensions(y, tuple(x.shape), axis))
    along = xp.real(along) if is_complex(along) else along
    return xp.sum(along, axis=axis if batch is None else shifted_axes(axis, along), keepdims=keepdims)


def _push_kink(tangents: Any, args: Any, y: Array, batch: int | None, of_tangents: bool = False) -> Array:
    return xp.where(y == 0.0, math.nan, tangents[0])


def _push_call(tangents: Any, args: Any, y: Array, batch: int | None, pull: Any, push: Any, function: Any) -> Array:
    if batch is not None:
        return NotImplemented
    if push is not None:
        return primitives.TupleCotangent(push(args, tangents))
    with _core.Tape() as tape:
        g, variables = zero_cotangent(tape, y)
        pulled = pull(g, primitives.items(y), args)
    pairs = [(p, t) for p, t in zip(pulled, tangents, strict=True) if p is not None and t is not None]
    name = getattr(getattr(pull, "__self__", pull), "name", "the rule")
    are_owned = owned(tape, [p for p, _ in pairs], name, "cotangent", "g")
    seeds = [pair for pair, of in zip(pairs, are_owned, strict=True) if of]
    along = zip(g, tape.pull(seeds, variables, zeros=False), strict=True)
    return primitives.TupleCotangent({at: t for at, t in along if t is not None})


FORWARD: dict[str, Callable[..., Any]] = {
    "matmul": _push_matmul,
    "max": _push_extremum,
    "min": _push_extremum,
    "vector_norm": _push_norm,
    "broadcast_to": lambda tangents, args, y, batch, shape: spread(tangents[0], y, batch),
    "call": _push_call,
    "kink": _push_kink,
    **jvp_linalg.FORWARD,
    "item": lambda tangents, args, y, batch, index: tangents[0][index],
}


def _with_zeros(tangents: Any, named: dict[str, Any]) -> list[Any]:
    """The tangents of all arguments of ``concat`` and ``stack``, with zeros for None."""
    like = next(t for t in tangents if t is not None)
    shape, ends = list(getattr(like, "shape", ())), named.get("ends")
    filled = []
    for which, t in enumerate(tangents):
        if t is None and ends is not None:
            shape[named["axis"]] = ends[which + 1] - ends[which]
        filled.append(t if t is not None else zeros_of(shape, like) if is_array(_core.plain(like)) else 0.0)
    return filled


# The attributes that may be batched where the argument is not.
_KEYS = {"index": "key", "scatter_add": "key", "take_along_axis": "indices"}


def push(name: str, tangents: Any, args: Any, y: Array, named: dict[str, Any] | None, batch: int | None) -> Array:
    """The tangent of a structured op's result: None for zero, NotImplemented if the op must be transposed."""
    named = named or {}
    if name in FORWARD:
        pushed = FORWARD[name](tangents, args, y, batch, **named)
    elif name in LINEAR:
        if batch is not None:
            behind = LINEAR[name](next(t for t in tangents if t is not None), **named)
            if behind is None:
                return NotImplemented
            named = behind
        parts = _with_zeros(tangents, named)
        if name in _KEYS:
            parts = [primitives.for_examples(part, named[_KEYS[name]]) for part in parts]
        pushed = _core.record(name, parts, named)
    else:
        return NotImplemented
    return in_dtype(pushed, y)
