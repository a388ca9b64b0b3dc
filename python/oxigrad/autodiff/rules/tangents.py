"""Tangents of ops, computed for the forward replay of a tape; ``batch`` tangents are stacked along a leading axis."""

from collections.abc import Sequence
from typing import Any

from oxigrad import tree, xp
from oxigrad._core import DerivativeError, DtypeError, ShapeError, StructureError, Tape, Variable, plain
from oxigrad._typing import Array, Dtype
from oxigrad.ops.backends import (
    beneath,
    device_of,
    dtype_of,
    is_array,
    is_complex,
    is_of_kind,
    is_smooth,
    namespace,
    on_host,
)
from oxigrad.ops.core import primitives as ops
from oxigrad.ops.core.host_calls import of_dtype
from oxigrad.ops.core.primitives import TupleCotangent

_DISCRETE = ("integral", "bool")


def spread(t: Array, y: Array, batch: int | None) -> Array:
    """The tangent ``t`` of an argument, repeated to the shape of the result ``y``, in its dtype or a complex one."""
    if not is_array(plain(y)):
        return t
    shape = tuple(y.shape)
    if batch is not None:
        inner_shape = tuple(t.shape)[1:]
        t, shape = ops.reshape(t, (batch, *(1,) * (len(shape) - len(inner_shape)), *inner_shape)), (batch, *shape)
    t = ops.broadcast_to(t, shape) if is_array(plain(t)) else ops.ones_like(y) * t
    return t if t.dtype == y.dtype or is_complex(t) else ops.astype(t, y.dtype)


def in_dtype(t: Array, y: Array) -> Array:
    """The tangent ``t`` of the result ``y`` cast to its dtype; the real part of ``t`` where ``y`` is real."""
    if not (is_array(plain(t)) and is_array(plain(y))) or t.dtype == y.dtype:
        return t
    t = ops.real(t) if is_complex(t) and not is_complex(y) else t
    return t if t.dtype == y.dtype else ops.astype(t, y.dtype)


def zero_tangent(value: Any, batch: int | None = None) -> Any:
    """The zero tangent of a value: of its dtype, and of the library's default one for integers and truth values."""
    if batch is None:
        return ops.zeros_like(value, dtype=tangent_dtype(value)) if is_array(plain(value)) else 0.0
    shape = (batch, *getattr(value, "shape", ()))
    return namespace(value).zeros(shape, dtype=tangent_dtype(value), device=device_of(plain(value)))


def tangent_dtype(value: Any) -> Dtype:
    """The dtype of a value's tangents: its own; the library's default one for integers and truth values."""
    dtype, library = dtype_of(value), namespace(value)
    return library.zeros(()).dtype if is_of_kind(dtype, _DISCRETE, library) else dtype


def zero_or_same(leaf: Any, batch: int | None = None) -> Any:
    """The derivative of a leaf that depends on no variable: zeros for a numeric leaf, else the leaf itself."""
    return zero_tangent(leaf, batch) if is_numeric(leaf) else leaf


def is_numeric(leaf: Any) -> bool:
    """Whether a leaf is a number or an array of numbers or booleans; all of these have a derivative.

    The derivative of integers is zero.
    """
    bare = plain(leaf)
    if not is_array(bare) or isinstance(bare, type):  # a class of scalars has the attributes of arrays
        return isinstance(bare, (bool, int, float, complex, Variable))
    return is_smooth(bare) or is_of_kind(bare.dtype, _DISCRETE, namespace(bare))


def zero_cotangent(tape: Tape, y: Array) -> tuple[Any, list[Variable]]:
    """A zero cotangent of the result ``y`` that consists of variables of ``tape``, and these variables."""
    value = plain(y)
    if not isinstance(value, tuple):
        variable = tape.watch(zero_tangent(value))
        return variable, [variable]
    parts = TupleCotangent({at: tape.watch(zero_tangent(leaf)) for at, leaf in enumerate(value) if is_smooth(leaf)})
    return parts, list(parts.values())


def owned(tape: Tape, terms: Sequence[Any], name: str, what: str, symbol: str) -> list[bool]:
    """Whether each term of a rule's result depends on the variables of ``tape``, in which the rule is linear.

    Raises `DerivativeError` for another term that is not zero, as far as it is known without a wait for a device.
    """
    are_owned = [isinstance(term, Variable) and tape.owns(term) for term in terms]
    for term, is_owned in zip(terms, are_owned, strict=True):
        bare = None if is_owned or term is None else beneath(term)
        if bare is not None and (not is_array(bare) or on_host(bare)) and bool(xp.any(xp.not_equal(bare, 0))):
            raise DerivativeError(
                f"{name}: found a {what} that does not depend on {symbol}, expected one that is linear in {symbol}"
            )
    return are_owned


def like_cotangent(g: Array, tangents: Sequence[Array]) -> Array:
    """The tangents of a result, structured like its cotangent: a `TupleCotangent` for a tuple."""
    return TupleCotangent(zip(g, tangents, strict=True)) if isinstance(g, TupleCotangent) else tangents[0]


def part(tangents: Any, at: int) -> Any:
    """One of the stacked tangents, or None without tangents."""
    return None if tangents is None else ops.index(tangents, ops.along(0, at))


def stack_parts(tangents: Sequence[Array]) -> Array:
    """Tangents stacked along a new batch axis, or None without tangents."""
    like = next((tangent for tangent in tangents if tangent is not None), None)
    if like is None:
        return None
    if isinstance(like, TupleCotangent):
        return TupleCotangent({at: stack_parts([each and each[at] for each in tangents]) for at in like})
    zero = zero_tangent(like)
    return ops.stack([zero if tangent is None else tangent for tangent in tangents])


def check_several(primals: Any, tangents: Any, name: str) -> None:
    """Raises `TypeError` if the primals or the tangents of the transform ``name`` are neither tuple nor list."""
    for value, what in ((primals, "primals"), (tangents, "tangents")):
        if not isinstance(value, (tuple, list)):
            raise TypeError(
                f"{name}: {what} is {type(value).__name__}: expected a tuple, one for each argument: {name}(f, (x,), "
                "(v,))"
            )


def check_numeric(subject: str, value: Any, like: Any) -> None:
    """Raises `DtypeError` for a derivative that is no array of numbers and no number, or complex and ``like`` real."""
    if not is_numeric(value):
        raise DtypeError(f"{subject} {value!r}, expected an array or a number")
    if is_complex(value) and not is_complex(like):
        raise DtypeError(f"{subject} that is complex, expected a real one: xp.real takes its real part")


def _of_shape(name: str, t: Any, like: Any) -> Any:
    """The tangent in the shape and dtype of the value."""
    check_numeric(f"{name}: found a tangent", t, like if is_array(like) else t)
    shape, expected = (tuple(getattr(x, "shape", ())) for x in (t, like))
    if shape != expected:
        try:
            t = ops.broadcast_to(t, expected)
        except ValueError:
            raise ShapeError(f"{name}: found a tangent of shape {shape}, expected {expected}") from None
    return of_dtype(t, like) if is_array(like) else t


def summed(name: str, parts: Sequence[Any], structure: tree.Structure | None, likes: Sequence[Any]) -> dict[int, Any]:
    """The tangents of results like ``likes``, None for one without a tangent: the sums of the terms of a rule."""
    total: dict[int, Any] = {}
    for part in parts:
        if part is None:  # as of a rule without a return statement
            raise DerivativeError(f"{name}: the rule returned None: expected a tangent")
        leaves, other = tree.flatten(part)
        if other != structure:
            raise StructureError(
                f"{name}: found a tangent of type {type(part).__name__}, expected the structure of the value"
            )
        for at, (leaf, like) in enumerate(zip(leaves, likes, strict=True)):
            if like is not None:
                term = _of_shape(name, leaf, like)
                total[at] = total[at] + term if at in total else term
    return total
