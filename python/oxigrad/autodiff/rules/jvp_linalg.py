"""Derivative rules of matrix decompositions for forward mode.

The tangents of vectors of equal levels follow `oxigrad.autodiff.rules.vjp_linalg.quotient`. They are zero if the
tangent of the matrix does not mix them. Otherwise they do not exist, since forward mode cannot see whether the loss
depends on a rotation of them. They are computed when the vectors are read. The tangents of the levels always exist.
"""

import functools
import operator
from typing import Any

from oxigrad import _core, xp
from oxigrad._typing import Array
from oxigrad.autodiff.rules import vjp_linalg
from oxigrad.autodiff.rules.vjp_linalg import (
    between_levels,
    distances,
    is_diagonal,
    norm,
    precision,
    quotient,
    report_nan,
)
from oxigrad.ops.backends import is_complex
from oxigrad.ops.core import primitives
from oxigrad.ops.core.primitives import TupleCotangent, matmul
from oxigrad.ops.core.primitives import matrix_transpose as _t


def _h(x: Array) -> Array:
    return _t(xp.conjugate(x))


def _real_diagonal(x: Array) -> Array:
    x = xp.linalg.diagonal(x)
    return xp.real(x) if is_complex(x) else x


class _Tangents(TupleCotangent):
    """The tangents of levels and vectors, which functions give where they are read."""

    def __getitem__(self, which: int) -> Any:
        return super().__getitem__(which)()


def _checked(x: Array, t: Array) -> Array:
    return report_nan(x, _MIXED, None, t)


_MIXED = (
    "forward mode lacks the tangents of their vectors along a direction that mixes them, and so lacks second "
    "derivatives; reverse mode has the gradient of a loss that does not depend on a rotation of them"
)


def _push_eigh(tangents: Any, args: Any, y: Array, batch: int | None) -> Array:
    w, v = (primitives.item(y, which) for which in range(2))
    turn = matmul(matmul(_h(v), tangents[0]), v)
    turn = 0.5 * (turn + _h(turn))

    def of_vectors() -> Array:
        inner = between_levels(turn, w, precision(w, w.shape[-1]) * norm(turn))
        return matmul(v, _checked(inner, turn))

    return _Tangents({0: lambda: _real_diagonal(turn), 1: of_vectors})


def _push_svd(tangents: Any, args: Any, y: Array, batch: int | None) -> Array:
    u, s, vh = (primitives.item(y, which) for which in range(3))
    t, v, n = tangents[0], _h(vh), max(u.shape[-2], vh.shape[-1])
    left, right = matmul(t, v), matmul(_h(t), u)
    turn = matmul(_h(u), left)
    tolerance, noise = precision(s, n) * vjp_linalg.size_of_levels(s), precision(s, n) * norm(t)

    def inside(sign: float) -> Array:
        both = quotient(0.5 * (turn + _h(turn)), distances(s), tolerance, noise)
        each = quotient(0.5 * (turn - _h(turn)), distances(s, 1.0), tolerance, noise)
        is_phase = is_diagonal(turn)
        both, each = xp.where(is_phase, 0.0, both), each if is_complex(each) else xp.where(is_phase, 0.0, each)
        return _checked(both + sign * each, turn)

    def outside(x: Array, vectors: Array, along: Array) -> Array:
        if vectors.shape[-2] == s.shape[-1]:
            return along
        return along + _checked(quotient(x, xp.expand_dims(s, axis=-2), tolerance, noise), x)

    return _Tangents(
        {
            0: lambda: outside(left - matmul(u, turn), u, matmul(u, inside(1.0))),
            1: lambda: _real_diagonal(turn),
            2: lambda: _h(outside(right - matmul(v, _h(turn)), v, matmul(v, inside(-1.0)))),
        }
    )


def _push_eig(tangents: Any, args: Any, y: Array, batch: int | None) -> Array:
    w, v = (primitives.item(y, which) for which in range(2))
    turn = xp.linalg.solve(v, matmul(xp.astype(tangents[0], v.dtype), v))

    def of_vectors() -> Array:
        of_v = matmul(v, _checked(between_levels(turn, w, precision(w, w.shape[-1]) * norm(turn)), turn))
        along = xp.sum(xp.conjugate(v) * of_v, axis=-2, keepdims=True)
        return of_v - v * (xp.real(along) if is_complex(along) else along)

    return _Tangents({0: lambda: xp.linalg.diagonal(turn), 1: of_vectors})


def _push_det(tangents: Any, args: Any, y: Array, batch: int | None) -> Array:
    return xp.sum(tangents[0] * _core.record("cofactor", list(args)), axis=(-2, -1))


def _push_cofactor(tangents: Any, args: Any, y: Array, batch: int | None) -> Array:
    x, *directions = args
    terms = []
    for at, tangent in enumerate(tangents):
        if tangent is not None:
            others = [*directions[: at - 1], *directions[at:]] if at else directions
            terms.append(_core.record("cofactor", [x, *others, _in_front(tangent, y, batch)]))
    return functools.reduce(operator.add, terms)


def _in_front(t: Array, y: Array, batch: int | None) -> Array:
    """The tangents with the axis of the batch in front of all axes of the result."""
    if batch is None:
        return t
    shape = tuple(t.shape)[1:]
    return primitives.reshape(t, (batch, *(1,) * (len(y.shape) - len(shape)), *shape))


FORWARD = {"cofactor": _push_cofactor, "det": _push_det, "eig": _push_eig, "eigh": _push_eigh, "svd": _push_svd}
