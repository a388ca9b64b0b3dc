"""The table of derivative rules (VJPs): one line per op, written over ``xp`` for every mode, order and array library.

A rule computes the cotangent of one argument. The tape keeps only the values that the rule's parameters name: ``g``,
the cotangent of the result; ``y``, the result; ``x``, ``x1``, ``x2`` or ``condition``, the arguments; ``x_shape`` and
``x_dtype``, their shapes and dtypes; ``which``, the position of the argument, for ops with any number of them; and any
attribute of the op by its name. ``None`` instead of a rule means that the derivative is zero. A string means that the
derivative does not exist, and completes the error message "<op> is not differentiable with respect to ...". The
cotangent is unbroadcast and cast in one place, after the rule.

The core traces rules into programs, which it runs without Python. Elementwise rules become kernels when they are
installed. Structured rules become programs over NumPy arrays at the first call with arguments of these ranks and dtypes
(`oxigrad.autodiff.rules.symbols` defines what such a rule may read; ``tests/autodiff/test_structured.py`` compares both
ways).

For complex values, the cotangent ``g`` of ``y`` is defined by ``dL = Re(sum(g * dy))`` for a real loss ``L``, as in JAX
and HIPS autograd. The rule of a holomorphic function is ``g * f'(x)``, and linear ops need no conjugation. The gradient
of a real function of ``x = a + ib`` is ``dL/da - i dL/db``, whose conjugate is the direction of steepest ascent. The
gradient of a real argument is real.

Ops with several results (``svd``, ``eigh``, ``qr``, ``slogdet``, ``call``): the value of the entry is a tuple, which is
not visible to users, and one entry ``item`` selects each result. In the reverse replay, the rule of ``item`` returns a
`TupleCotangent`, the cotangent of the tuple by index of result. These are summed by index. The rule of the
decomposition is thus called once, with the cotangents of all used results, and None for the others.

Constants of an outer tape: if a rule reads variables of an enclosing tape (derivatives of derivatives), the plain
arrays that it reads become constants of that tape first, because the operators of some array libraries fail with a
variable on their right. No cotangent flows to a constant, or to a value computed from constants alone.
"""

import math
from collections.abc import Callable
from typing import Any

from oxigrad import _core, xp
from oxigrad._names import parameter_kinds
from oxigrad._typing import Array, Axis
from oxigrad.autodiff.rules import vjp_fft, vjp_linalg
from oxigrad.autodiff.rules.cotangents import match_dtype, unbroadcast
from oxigrad.autodiff.rules.symbols import quotient
from oxigrad.ops.backends import device_of, is_complex, namespace, size_of
from oxigrad.ops.core import primitives
from oxigrad.ops.core.guarded import beta_density, beta_density_slope, digamma_rise, gamma_density
from oxigrad.ops.core.primitives import along
from oxigrad.xp import (
    cos,
    cosh,
    digamma,
    exp,
    expit,
    gammainc_a,
    hypot,
    iv,
    jn,
    log,
    polygamma,
    pow,
    sign,
    sin,
    sinh,
    sqrt,
    square,
    where,
    yn,
)

Rule = Callable[..., Any] | str | None


def _real(x: Array) -> Array:
    """The real part of ``x``; ``x`` itself if it is real."""
    return xp.real(x) if is_complex(x) else x


def _conj(x: Array) -> Array:
    """The conjugate of ``x``; ``x`` itself if it is real."""
    return xp.conj(x) if is_complex(x) else x


def _abs(g: Array, x: Array, y: Array) -> Array:
    if not is_complex(x):
        return g * sign(x)
    return primitives.modulus_slope(g, xp.conj(x), y)


def _split_ties(g: Array, larger: Array, equal: Array) -> Array:
    """The cotangent of one of two arguments: ``g`` if it is the result, ``g / 2`` if they are equal, else zero."""
    return where(larger, g, where(equal, 0.5 * g, 0.0))


def _difference(x1: Array, x2: Array) -> Array:
    """``x1 - x2``; zero where both are the same infinity."""
    return where(xp.logical_and(xp.isinf(x1), x1 == x2), 0.0, x1 - x2)


def _at_kink(is_kink: Array, no_effect: Array, away: Array) -> Array:
    """``away``; at the kink of a modulus NaN, or zero where nothing has an effect."""
    return where(is_kink, where(no_effect, 0.0, math.nan), away)


# The slope ``x1 * x2 / x3`` of a modulus ``x3`` of ``x2``, for its cotangent ``x1``. It has no derivative at zero. A
# zero cotangent ``x1`` there, as behind a mask, has no effect.
def _of_cotangent(g: Array, x2: Array, x3: Array) -> Array:
    # If the modulus includes more than ``x2``, a zero cotangent may be the cotangent of a square of zero.
    return _at_kink(x3 == 0.0, xp.logical_and(x2 == 0.0, g == 0.0), primitives.modulus_slope(g, x2, x3))


def _of_tangent(g: Array, x2: Array, x3: Array) -> Array:
    return _at_kink(x3 == 0.0, g == 0.0, primitives.modulus_slope(g, x2, x3))


def _of_argument(g: Array, x1: Array, x3: Array) -> Array:
    return _at_kink(x3 == 0.0, g * x1 == 0.0, g * x1 / where(x3 == 0.0, 1.0, x3))


def _of_modulus(g: Array, y: Array, x1: Array, x2: Array, x3: Array) -> Array:
    return _at_kink(x3 == 0.0, x1 * x2 == 0.0, -g * y / where(x3 == 0.0, 1.0, x3))


def _kink(g: Array, x: Array, of_tangents: bool | None) -> Array:
    return where(x == 0.0, math.nan if of_tangents else where(g == 0.0, g, math.nan), g)


def _cosine(x: Array, y: Array) -> Array:
    """``x / y``; zero at the origin."""
    return where(y == 0.0, 0.0, x / where(y == 0.0, 1.0, y))


def _hypot(x1: Array, x2: Array, y: Array) -> Array:
    """``x1 / y``, with derivative ``x2**2 / y**3`` without cancellation for small ``x2``; zero at the origin."""
    is_larger = xp.abs(x1) > xp.abs(x2)
    # By functions, as operators of some libraries refuse variables on the right.
    larger = xp.divide(sign(x1), hypot(1.0, xp.divide(x2, where(is_larger, x1, 1.0))))
    return where(is_larger, larger, _cosine(x1, y))


def _divided_twice(x: Array, by: Array) -> Array:
    """``x / by**2``, where the square may overflow or underflow."""
    return x / by / by


def _by_square(x: Array, x1: Array, x2: Array) -> Array:
    """``x / (x1**2 + x2**2)``, whose squares neither overflow nor underflow; zero at the origin."""
    size = hypot(x1, x2)
    is_origin = size == 0.0
    return where(is_origin, 0.0, _divided_twice(x, where(is_origin, 1.0, size)))


def _bell(x: Array) -> Array:
    """``exp(-x**2)``: zero beyond 40, where an infinity would meet the derivative of the square."""
    near = primitives.minimum(primitives.maximum(x, -40.0), 40.0)
    return exp(-near * near)


def _one_minus_square(x: Array) -> Array:
    """``1 - x**2`` without cancellation, also in its derivative."""
    product = (1.0 - x) * (1.0 + x)
    return product if is_complex(x) else where(x * x < 0.5, 1.0 - x * x, product)


def _tanh(g: Array, y: Array, x: Array) -> Array:
    """``1 - y**2``; by an exponential where that would cancel, as ``y`` is near one."""
    if is_complex(x):
        return g * (1.0 - y * y)
    power = exp(-2.0 * xp.abs(x))
    return g * where(y * y < 0.5, 1.0 - y * y, 4.0 * power / square(1.0 + power))


_INTEGER_ORDER = "its integer order"


def _no_closed_form(parameter: str) -> str:
    return f"{parameter}: the derivative has no closed form"


_THIRD = tuple(
    f"its {argument}: derivatives of betainc and betaincc by parameters end at second order"
    for argument in ("parameter a", "parameter b", "argument x")
)


def keep_dimensions(g: Array, x_shape: tuple[int, ...], axis: Axis) -> Array:
    """``g`` reshaped as by ``keepdims=True``: with the reduced dimensions of size 1."""
    axes = range(len(x_shape)) if axis is None else axis if isinstance(axis, tuple) else (axis,)
    gone = {a % len(x_shape) for a in axes} if x_shape else set()
    return xp.reshape(g, tuple(1 if a in gone else size for a, size in enumerate(x_shape)))


def _unreduce(g: Array, x_shape: tuple[int, ...], axis: Axis) -> Array:
    """``g`` repeated along the reduced dimensions: the cotangent of ``sum``."""
    if not x_shape:
        return g
    is_number = axis is None and len(g.shape) == 0
    return xp.broadcast_to(g if is_number else keep_dimensions(g, x_shape, axis), x_shape)


def _mean(g: Array, x_shape: tuple[int, ...], axis: Axis) -> Array:
    return _unreduce(g * quotient(size_of(g.shape), size_of(x_shape)), x_shape, axis)


def _is_large(shape: tuple[int, ...]) -> bool:
    """Whether passes over an array of this shape take longer than calls; false for sizes that are not known."""
    return all(type(size) is int for size in shape) and size_of(shape) >= _core.LARGE_EXTREMUM


def is_extremum(y: Array, x: Array, axis: Axis) -> Array:
    """The places where ``x`` equals its extremum along the axes, as a plain array."""
    return _core.plain(x == keep_dimensions(y, tuple(x.shape), axis))


def tie_weights(y: Array, x: Array, axis: Axis) -> Array:
    """Weights that sum to one: ``1 / n`` at each of the ``n`` elements of ``x`` that equal the extremum, else zero."""
    if isinstance(_core.plain(x), (int, float)):
        return 1.0
    chosen = _core.record("astype", [is_extremum(y, x, axis)], {"dtype": x.dtype, "copy": True})
    return chosen / primitives.sum(chosen, axis=axis, keepdims=True) if x.shape else chosen


def _among_ties(g: Array, y: Array, x: Array, axis: Axis) -> Array:
    """``g``, of the shape of ``y`` with ``keepdims=True``, times `tie_weights`, with the same bits.

    It allocates one array of the size of ``x`` rather than four.
    """
    is_chosen = is_extremum(y, x, axis)
    n = xp.count_nonzero(is_chosen, axis=axis, keepdims=True)
    n = _core.record("astype", [n], {"dtype": x.dtype, "copy": True})
    return where(is_chosen, g * (1.0 / xp.maximum(n, 1.0)), g * ((n - n) / n))


def _vector_norm(g: Array, y: Array, x: Array, x_shape: tuple[int, ...], axis: Axis) -> Array:
    return primitives.modulus_slope(_unreduce(g, x_shape, axis), xp.conjugate(x), keep_dimensions(y, x_shape, axis))


def _extremum(g: Array, y: Array, x: Array, x_shape: tuple[int, ...], axis: Axis) -> Array:
    if _is_large(x_shape):
        return _among_ties(keep_dimensions(g, x_shape, axis), y, x, axis)
    return _unreduce(g, x_shape, axis) * tie_weights(y, x, axis)


def _rows(x: Array) -> Array:
    """The rows of a stack of matrices, as one matrix."""
    shape = x.shape
    return xp.reshape(x, (size_of(shape[:-1]), shape[-1]))


def _matmul_x1(g: Array, x2: Array, x1_shape: tuple[int, ...]) -> Array:
    if len(x2.shape) == 1:
        return g * x2 if len(x1_shape) == 1 else xp.expand_dims(g, axis=-1) * x2
    if len(x1_shape) == 1:
        return xp.squeeze(xp.matmul(x2, xp.expand_dims(g, axis=-1)), axis=-1)
    if len(x2.shape) == 2 < len(x1_shape):  # one product rather than one for each matrix of the stack
        return xp.reshape(xp.matmul(_rows(g), xp.matrix_transpose(x2)), x1_shape)
    return xp.matmul(g, xp.matrix_transpose(x2))


def _matmul_x2(g: Array, x1: Array, x2_shape: tuple[int, ...]) -> Array:
    if len(x1.shape) == 1:
        return g * x1 if len(x2_shape) == 1 else xp.expand_dims(x1, axis=-1) * xp.expand_dims(g, axis=-2)
    if len(x2_shape) == 1:
        return xp.squeeze(xp.matmul(xp.matrix_transpose(x1), xp.expand_dims(g, axis=-1)), axis=-1)
    if len(x2_shape) == 2 < len(x1.shape):  # likewise, and no stack of products to be summed
        columns = _core.record("permute_dims", [_rows(x1)], {"axes": (1, 0)})
        return xp.matmul(columns, _rows(g))
    return xp.matmul(xp.matrix_transpose(x1), g)


def _along_axis(indices: Array, axis: int, shape: tuple[int, ...]) -> tuple[Array, ...]:
    """The indexing key equivalent to ``take_along_axis``."""
    library, ndim = namespace(indices), len(shape)
    key = []
    for a, size in enumerate(shape):
        along = library.arange(size, device=device_of(indices))
        key.append(indices if a == axis % ndim else library.reshape(along, (1,) * a + (-1,) + (1,) * (ndim - a - 1)))
    is_broadcast = all(part.shape == key[0].shape for part in key)
    return tuple(key if is_broadcast else library.broadcast_arrays(*key))


def _inverse(axes: tuple[int, ...]) -> tuple[int, ...]:
    """The inverse permutation of ``axes``."""
    return tuple(axes.index(a) for a in range(len(axes)))


def _concat_part(g: Array, axis: int, ends: tuple[int, ...], which: int) -> Array:
    return primitives.index(g, along(axis, slice(ends[which], ends[which + 1])))


TABLE: dict[str, tuple[Rule, ...]] = {
    "add": (lambda g: g, lambda g: g),
    "subtract": (lambda g: g, lambda g: -g),
    "multiply": (lambda g, x2: g * x2, lambda g, x1: g * x1),
    "divide": (lambda g, x2: g / x2, lambda g, y, x2: -g * y / x2),
    "pow": (
        lambda g, x1, x2: g * where(x2 == 0.0, 0.0, x2 * pow(x1, where(x2 == 0.0, 1.0, x2 - 1.0))),
        # Zero to the power of zero jumps: it has no derivative by the exponent.
        lambda g, y, x1, x2: where(
            x1 == 0.0, where(_real(x2) >= 0.0, 0.0, -g * y), g * y * log(where(x1 == 0.0, 1.0, x1))
        ),
    ),
    "remainder": (lambda g: g, lambda g, x1, x2: -g * xp.floor(x1 / x2)),
    "maximum": (
        lambda g, x1, x2: _split_ties(g, x1 > x2, x1 == x2),
        lambda g, x1, x2: _split_ties(g, x2 > x1, x1 == x2),
    ),
    "minimum": (
        lambda g, x1, x2: _split_ties(g, x1 < x2, x1 == x2),
        lambda g, x1, x2: _split_ties(g, x2 < x1, x1 == x2),
    ),
    "atan2": (
        lambda g, x1, x2: g * _by_square(x2, x1, x2),
        lambda g, x1, x2: -g * _by_square(x1, x1, x2),
    ),
    "negative": (lambda g: -g,),
    "positive": (lambda g: g,),
    "round_to_bfloat16": (lambda g: g,),  # as for astype
    "round_to_float16": (lambda g: g,),
    "abs": (_abs,),
    "real": (lambda g, x: xp.astype(g, x.dtype) if is_complex(x) else xp.real(g),),
    "imag": (lambda g, x: xp.astype(g, x.dtype) * -1j if is_complex(x) else 0.0 * g,),
    "conj": (lambda g: xp.conj(g),),
    "square": (lambda g, x: g * 2.0 * x,),
    "sqrt": (lambda g, y: g * 0.5 / y,),
    "reciprocal": (lambda g, y: -g * y * y,),
    "exp": (lambda g, y: g * y,),
    "expm1": (lambda g, x: g * exp(x),),
    "log": (lambda g, x: g / x,),
    "log1p": (lambda g, x: g / (x + 1.0),),
    "sin": (lambda g, x: g * cos(x),),
    "cos": (lambda g, x: -g * sin(x),),
    "tan": (lambda g, y: g * (1.0 + y * y),),
    "tanh": (_tanh,),
    "sinh": (lambda g, x: g * cosh(x),),
    "cosh": (lambda g, x: g * sinh(x),),
    "asin": (lambda g, x: g / sqrt(_one_minus_square(x)),),
    "acos": (lambda g, x: -g / sqrt(_one_minus_square(x)),),
    "atan": (lambda g, x: g / (1.0 + x * x) if is_complex(x) else _divided_twice(g, hypot(1.0, x)),),
    "asinh": (lambda g, x: g / sqrt(x * x + 1.0) if is_complex(x) else g / hypot(1.0, x),),
    "acosh": (lambda g, x: g / sqrt(x - 1.0) / sqrt(x + 1.0),),
    "atanh": (lambda g, x: g / _one_minus_square(x),),
    "log2": (lambda g, x: g / (x * math.log(2.0)),),
    "log10": (lambda g, x: g / (x * math.log(10.0)),),
    "hypot": (
        lambda g, y, x1, x2: where(y == 0.0, primitives.modulus_slope(g, x1, y), g * _hypot(x1, x2, y)),
        lambda g, y, x1, x2: where(y == 0.0, primitives.modulus_slope(g, x2, y), g * _hypot(x2, x1, y)),
    ),
    "root_or_zero": (lambda g, y: primitives.modulus_slope(0.5 * g, 1.0, y),),
    "modulus_slope": (_of_cotangent, _of_argument, _of_modulus),
    "kink": (_kink,),
    "logaddexp": (
        lambda g, x1, x2: g * expit(_difference(x1, x2)),
        lambda g, x1, x2: g * expit(_difference(x2, x1)),
    ),
    "logaddexp2": (
        lambda g, x1, x2: g * expit(_difference(x1, x2) * math.log(2.0)),
        lambda g, x1, x2: g * expit(_difference(x2, x1) * math.log(2.0)),
    ),
    "cbrt": (lambda g, y: g / (3.0 * y) / y,),
    "expit": (lambda g, y, x: g * y * expit(-x),),
    "erf": (lambda g, x: g * (2.0 / math.sqrt(math.pi)) * _bell(x),),
    "erfc": (lambda g, x: -g * (2.0 / math.sqrt(math.pi)) * _bell(x),),
    "erfinv": (lambda g, y: g * (0.5 * math.sqrt(math.pi)) * exp(y * y),),
    "erfcinv": (lambda g, y: g * (-0.5 * math.sqrt(math.pi)) * exp(y * y),),
    "beta": (
        lambda g, y, x1, x2: -g * y * digamma_rise(x1, x2),
        lambda g, y, x1, x2: -g * y * digamma_rise(x2, x1),
    ),
    "betaln": (
        lambda g, x1, x2: -g * digamma_rise(x1, x2),
        lambda g, x1, x2: -g * digamma_rise(x2, x1),
    ),
    "gamma": (lambda g, y, x: g * y * digamma(x),),
    "gammaln": (lambda g, x: g * digamma(x),),
    "digamma": (lambda g, x: g * polygamma(1.0, x),),
    "polygamma": (_INTEGER_ORDER, lambda g, x1, x2: g * polygamma(x1 + 1.0, x2)),
    "jn": (_INTEGER_ORDER, lambda g, x1, x2: g * 0.5 * (jn(x1 - 1.0, x2) - jn(x1 + 1.0, x2))),
    "yn": (_INTEGER_ORDER, lambda g, x1, x2: g * 0.5 * (yn(x1 - 1.0, x2) - yn(x1 + 1.0, x2))),
    "iv": (_no_closed_form("its order"), lambda g, x1, x2: g * 0.5 * (iv(x1 - 1.0, x2) + iv(x1 + 1.0, x2))),
    "gammainc": (lambda g, x1, x2: g * gammainc_a(x1, x2), lambda g, x1, x2: g * gamma_density(x1, x2)),
    "gammaincc": (lambda g, x1, x2: -g * gammainc_a(x1, x2), lambda g, x1, x2: -g * gamma_density(x1, x2)),
    "gammainc_a": (
        "its shape parameter a: derivatives of gammainc and gammaincc by a end at first order",
        lambda g, x1, x2: g * gamma_density(x1, x2) * (log(x2) - digamma(x1)),
    ),
    "betainc": (
        lambda g, x1, x2, x3: g * xp.betainc_a(x1, x2, x3),
        lambda g, x1, x2, x3: g * xp.betainc_b(x1, x2, x3),
        lambda g, x1, x2, x3: g * beta_density(x1, x2, x3),
    ),
    "betainc_a": (
        lambda g, x1, x2, x3: g * xp.betainc_aa(x1, x2, x3),
        lambda g, x1, x2, x3: g * xp.betainc_ab(x1, x2, x3),
        lambda g, x1, x2, x3: g * beta_density_slope(x1, x2, x3),
    ),
    "betainc_b": (
        lambda g, x1, x2, x3: g * xp.betainc_ab(x1, x2, x3),
        lambda g, x1, x2, x3: g * xp.betainc_bb(x1, x2, x3),
        lambda g, x1, x2, x3: g * beta_density_slope(x2, x1, 1.0 - x3),
    ),
    **dict.fromkeys(("betainc_aa", "betainc_ab", "betainc_bb"), _THIRD),
    "where": (None, lambda g, condition: where(condition, g, 0.0), lambda g, condition: where(condition, 0.0, g)),
    "sum": (lambda g, x_shape, axis: _unreduce(g, x_shape, axis),),
    "mean": (_mean,),
    "vector_norm": (_vector_norm,),
    "max": (_extremum,),
    "min": (_extremum,),
    "cumulative_sum": (lambda g, axis: xp.flip(xp.cumulative_sum(xp.flip(g, axis=axis), axis=axis), axis=axis),),
    "flip": (lambda g, axis: xp.flip(g, axis=axis),),
    "matmul": (_matmul_x1, _matmul_x2),
    "reshape": (lambda g, x_shape: xp.reshape(g, x_shape),),
    "permute_dims": (lambda g, axes: xp.permute_dims(g, _inverse(axes)),),
    "expand_dims": (lambda g, x_shape: xp.reshape(g, x_shape),),
    "squeeze": (lambda g, x_shape: xp.reshape(g, x_shape),),
    "broadcast_to": (lambda g, x_shape, x_dtype: unbroadcast(g, x_shape, x_dtype),),
    "concat": (_concat_part,),
    "stack": (lambda g, axis, which: primitives.index(g, along(axis, which)),),
    "astype": (lambda g, x_dtype: match_dtype(g, x_dtype),),
    "take_along_axis": (
        lambda g, indices, axis, x_shape: primitives.scatter_add(g, _along_axis(indices, axis, x_shape), x_shape),
    ),
    "index": (lambda g, key, x_shape: primitives.scatter_add(g, key, x_shape),),
    "scatter_add": (lambda g, key: primitives.index(g, key),),
    "call": (lambda g, y, args, pull: pull(g, primitives.items(y), args),),
    **vjp_linalg.TABLE,
    **vjp_fft.TABLE,
}


# The squares of moduli, which are smooth where the modulus is zero: rules of the arguments of the modulus for the
# cotangent ``g`` of its square.
SQUARES: dict[str, tuple[Rule, ...]] = {
    "abs": (lambda g, x: g * 2.0 * _conj(x),),
    "hypot": (lambda g, x1: g * 2.0 * x1, lambda g, x2: g * 2.0 * x2),
    "vector_norm": (lambda g, x, x_shape, axis: _unreduce(g * 2.0, x_shape, axis) * xp.conjugate(x),),
    "root_or_zero": (lambda g: g,),
    "sqrt": (lambda g: g,),
}

# The rules for tangents that differ from the rules for cotangents.
TANGENTS: dict[str, tuple[Rule, ...]] = {"modulus_slope": (_of_tangent, _of_argument, _of_modulus)}


def rows(rules_of: dict[str, tuple[Rule, ...]]) -> list[tuple[str, int, Any]]:
    """The rows of a table for the core: op, position of the argument, and the rule with the names of its parameters."""
    table = []
    for name, rules in rules_of.items():
        for which, rule in enumerate(rules):
            stated = (rule, list(parameter_kinds(rule))) if callable(rule) else rule
            table.append((name, which, stated))
    return table
