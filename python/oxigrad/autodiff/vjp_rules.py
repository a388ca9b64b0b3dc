"""The table of derivative rules (VJPs): one line per op, written over ``xp`` for every mode, order and array library.

A rule computes the cotangent of one argument. The tape keeps only the values that the rule's parameters name: ``g``, the
cotangent of the result; ``y``, the result; ``x``, ``x1``, ``x2`` or ``condition``, the arguments; ``x_shape`` and ``x_dtype``,
their shapes and dtypes; ``which``, the position of the argument, for ops with any number of them; and any attribute of the op
by its name. ``None`` in place of a rule states that the derivative is zero. A string states that there is none, and completes
the error message "<op> is not differentiable with respect to ...". Broadcasting and dtype promotion are undone in one place,
after the rule.

The core runs elementwise rules, which it traces, by itself. For NumPy arrays it runs the frequent structured rules by itself,
too: ``rust/python/src/autodiff/structured.rs`` repeats them, with the same bits, and changes along with them
(``tests/autodiff/test_structured.py`` compares the two).

For complex values, the cotangent ``g`` of ``y`` is defined by ``dL = Re(sum(g * dy))`` for a real loss ``L``, as in JAX and
HIPS autograd: the rule of a holomorphic function is ``g * f'(x)``, linear ops need no conjugation, and the gradient of a
real function of ``x = a + ib`` is ``dL/da - i dL/db``, whose conjugate is the direction of steepest ascent. The gradient of
a real argument is real.

Ops with several results (``svd``, ``eigh``, ``qr``, ``slogdet``, ``call``): the value of the entry is a tuple, which
users never see, and an entry ``item`` takes each result out of it. In the reverse replay, the rule of ``item`` gives a
`TupleCotangent`, the cotangent of the tuple by index of result. These add up by index, so that the rule of the
decomposition is called once, with the cotangents of all results in use, and reads None for the others.

Constants of an outer tape: where a rule reads variables of an enclosing tape (derivatives of derivatives), the plain
arrays that it reads become constants of that tape first, because the operators of some array libraries fail with a
variable on their right. No cotangent flows to a constant, or to a value computed from constants alone.
"""

import inspect
import math
from collections.abc import Callable
from typing import Any

from oxigrad import _core, xp
from oxigrad.autodiff import vjp_fft, vjp_linalg
from oxigrad.autodiff.cotangents import match_dtype, unbroadcast
from oxigrad.autodiff.tangents import in_dtype, like_cotangent, spread, zero_cotangent
from oxigrad.ops import primitives
from oxigrad.ops.backends import device_of, is_array, is_complex, namespace, size_of
from oxigrad.ops.primitives import along

Rule = Callable[..., Any] | str | None

cos, cosh, exp, expit, log, maximum, pow, sign, sin, sinh, sqrt, square, where = (
    getattr(xp, name) for name in "cos cosh exp expit log maximum pow sign sin sinh sqrt square where".split()
)
digamma, gammainc_a, gammaln, iv, jn, polygamma, yn = (
    getattr(xp, name) for name in "digamma gammainc_a gammaln iv jn polygamma yn".split()
)


def _real(x: Any) -> Any:
    """The real part of a complex ``x``; a real one as it is."""
    return xp.real(x) if is_complex(x) else x


def _abs(g: Any, x: Any, y: Any) -> Any:
    if not is_complex(x):
        return g * sign(x)
    return g * where(y == 0.0, 0.0, xp.conj(x) / where(y == 0.0, 1.0, y))


def _split_ties(g: Any, larger: Any, equal: Any) -> Any:
    """Cotangent of one of two arguments: ``g`` where it is the result, half of ``g`` where both are, zero elsewhere."""
    return where(larger, g, where(equal, 0.5 * g, 0.0))


def _difference(x1: Any, x2: Any) -> Any:
    """``x1 - x2``; zero where both are the same infinity."""
    return where(xp.logical_and(xp.isinf(x1), x1 == x2), 0.0, x1 - x2)


def _cosine(x: Any, y: Any) -> Any:
    """``x / y``; zero at the origin."""
    return where(y == 0.0, 0.0, x / where(y == 0.0, 1.0, y))


def _times_log(a: Any, x: Any) -> Any:
    """``a log(x)``; zero where ``a`` is."""
    return a * log(where(a == 0.0, 1.0, x))


def _gamma_density(a: Any, x: Any) -> Any:
    return exp(_times_log(a - 1.0, x) - x - gammaln(a))


def _beta_density(a: Any, b: Any, x: Any) -> Any:
    return exp(_times_log(a - 1.0, x) + _times_log(b - 1.0, 1.0 - x) + gammaln(a + b) - gammaln(a) - gammaln(b))


_INTEGER_ORDER = "its integer order"


def _no_closed_form(parameter: str) -> str:
    return f"{parameter}: the derivative has no closed form"


def _keepdims(g: Any, x_shape: tuple[int, ...], axis: Any) -> Any:
    """``g`` reshaped as by ``keepdims=True``: with the reduced dimensions of size 1."""
    axes = range(len(x_shape)) if axis is None else axis if isinstance(axis, tuple) else (axis,)
    gone = {a % len(x_shape) for a in axes} if x_shape else set()
    return xp.reshape(g, tuple(1 if a in gone else size for a, size in enumerate(x_shape)))


def _unreduce(g: Any, x_shape: tuple[int, ...], axis: Any) -> Any:
    """``g`` repeated along the reduced dimensions: the cotangent of ``sum``."""
    if axis is None and len(g.shape) == 0:
        return xp.broadcast_to(g, x_shape)
    return xp.broadcast_to(_keepdims(g, x_shape, axis), x_shape) if x_shape else g


def _mean(g: Any, x_shape: tuple[int, ...], axis: Any) -> Any:
    return _unreduce(g * (size_of(g.shape) / (size_of(x_shape) or 1)), x_shape, axis)  # 0 / 1 for empty arrays


def _tie_weights(y: Any, x: Any, axis: Any) -> Any:
    """Weights that sum to one: ``1 / n`` at each of the ``n`` elements of ``x`` that equal the extremum, zero elsewhere."""
    library, x_shape = namespace(x), tuple(x.shape)
    chosen = library.astype(_core.plain(x == _keepdims(y, x_shape, axis)), x.dtype)
    return chosen / library.sum(chosen, axis=axis, keepdims=True) if x_shape else chosen


def _vector_norm(g: Any, y: Any, x: Any, x_shape: tuple[int, ...], axis: Any) -> Any:
    size = _keepdims(y, x_shape, axis)
    return _unreduce(g, x_shape, axis) * where(size == 0.0, 0.0, xp.conjugate(x) / where(size == 0.0, 1.0, size))


def _extremum(g: Any, y: Any, x: Any, x_shape: tuple[int, ...], axis: Any) -> Any:
    return _unreduce(g, x_shape, axis) * _tie_weights(y, x, axis)


def _matmul_x1(g: Any, x2: Any, x1_shape: tuple[int, ...]) -> Any:
    if len(x2.shape) == 1:
        return g * x2 if len(x1_shape) == 1 else xp.expand_dims(g, axis=-1) * x2
    if len(x1_shape) == 1:
        return xp.squeeze(xp.matmul(x2, xp.expand_dims(g, axis=-1)), axis=-1)
    return xp.matmul(g, x2.mT)


def _matmul_x2(g: Any, x1: Any, x2_shape: tuple[int, ...]) -> Any:
    if len(x1.shape) == 1:
        return g * x1 if len(x2_shape) == 1 else xp.expand_dims(x1, axis=-1) * xp.expand_dims(g, axis=-2)
    if len(x2_shape) == 1:
        return xp.squeeze(xp.matmul(x1.mT, xp.expand_dims(g, axis=-1)), axis=-1)
    return xp.matmul(x1.mT, g)


def _along_axis(indices: Any, axis: int, shape: tuple[int, ...]) -> tuple[Any, ...]:
    """The indexing key equivalent to ``take_along_axis``."""
    library, ndim = namespace(indices), len(shape)
    key = []
    for a, size in enumerate(shape):
        along = library.arange(size, device=device_of(indices))
        key.append(indices if a == axis % ndim else library.reshape(along, (1,) * a + (-1,) + (1,) * (ndim - a - 1)))
    return tuple(library.broadcast_arrays(*key))


def _inverse(axes: tuple[int, ...]) -> tuple[int, ...]:
    """The inverse permutation of ``axes``."""
    return tuple(axes.index(a) for a in range(len(axes)))


def _concat_part(g: Any, axis: int, ends: tuple[int, ...], which: int) -> Any:
    return primitives.index(g, along(axis, slice(ends[which], ends[which + 1])))


TABLE: dict[str, tuple[Rule, ...]] = {
    "add": (lambda g: g, lambda g: g),
    "subtract": (lambda g: g, lambda g: -g),
    "multiply": (lambda g, x2: g * x2, lambda g, x1: g * x1),
    "divide": (lambda g, x2: g / x2, lambda g, y, x2: -g * y / x2),
    "pow": (
        lambda g, x1, x2: g * where(x2 == 0.0, 0.0, x2 * pow(x1, where(x2 == 0.0, 1.0, x2 - 1.0))),
        lambda g, y, x1, x2: where(
            x1 == 0.0, where(_real(x2) > 0.0, 0.0, g * y), g * y * log(where(x1 == 0.0, 1.0, x1))
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
        lambda g, x1, x2: g * x2 / (square(x1) + square(x2)),
        lambda g, x1, x2: -g * x1 / (square(x1) + square(x2)),
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
    "expm1": (lambda g, y: g * (y + 1.0),),
    "log": (lambda g, x: g / x,),
    "log1p": (lambda g, x: g / (x + 1.0),),
    "sin": (lambda g, x: g * cos(x),),
    "cos": (lambda g, x: -g * sin(x),),
    "tan": (lambda g, y: g * (1.0 + y * y),),
    "tanh": (lambda g, y: g * (1.0 - y * y),),
    "sinh": (lambda g, x: g * cosh(x),),
    "cosh": (lambda g, x: g * sinh(x),),
    "asin": (lambda g, x: g / sqrt((1.0 - x) * (1.0 + x)),),
    "acos": (lambda g, x: -g / sqrt((1.0 - x) * (1.0 + x)),),
    "atan": (lambda g, x: g / (1.0 + x * x),),
    "asinh": (lambda g, x: g / sqrt(x * x + 1.0),),
    "acosh": (lambda g, x: g / sqrt((x - 1.0) * (x + 1.0)),),
    "atanh": (lambda g, x: g / ((1.0 - x) * (1.0 + x)),),
    "log2": (lambda g, x: g / (x * math.log(2.0)),),
    "log10": (lambda g, x: g / (x * math.log(10.0)),),
    "hypot": (lambda g, y, x1: g * _cosine(x1, y), lambda g, y, x2: g * _cosine(x2, y)),
    "logaddexp": (
        lambda g, x1, x2: g * expit(_difference(x1, x2)),
        lambda g, x1, x2: g * expit(_difference(x2, x1)),
    ),
    "logaddexp2": (
        lambda g, x1, x2: g * expit(_difference(x1, x2) * math.log(2.0)),
        lambda g, x1, x2: g * expit(_difference(x2, x1) * math.log(2.0)),
    ),
    "cbrt": (lambda g, y: g / (3.0 * y * y),),
    "expit": (lambda g, y: g * y * (1.0 - y),),
    "erf": (lambda g, x: g * (2.0 / math.sqrt(math.pi)) * exp(-x * x),),
    "erfc": (lambda g, x: -g * (2.0 / math.sqrt(math.pi)) * exp(-x * x),),
    "erfinv": (lambda g, y: g * (0.5 * math.sqrt(math.pi)) * exp(y * y),),
    "erfcinv": (lambda g, y: g * (-0.5 * math.sqrt(math.pi)) * exp(y * y),),
    "beta": (
        lambda g, y, x1, x2: g * y * (digamma(x1) - digamma(x1 + x2)),
        lambda g, y, x1, x2: g * y * (digamma(x2) - digamma(x1 + x2)),
    ),
    "betaln": (
        lambda g, x1, x2: g * (digamma(x1) - digamma(x1 + x2)),
        lambda g, x1, x2: g * (digamma(x2) - digamma(x1 + x2)),
    ),
    "gamma": (lambda g, y, x: g * y * digamma(x),),
    "gammaln": (lambda g, x: g * digamma(x),),
    "digamma": (lambda g, x: g * polygamma(1.0, x),),
    "polygamma": (_INTEGER_ORDER, lambda g, x1, x2: g * polygamma(x1 + 1.0, x2)),
    "jn": (_INTEGER_ORDER, lambda g, x1, x2: g * 0.5 * (jn(x1 - 1.0, x2) - jn(x1 + 1.0, x2))),
    "yn": (_INTEGER_ORDER, lambda g, x1, x2: g * 0.5 * (yn(x1 - 1.0, x2) - yn(x1 + 1.0, x2))),
    "iv": (_no_closed_form("its order"), lambda g, x1, x2: g * 0.5 * (iv(x1 - 1.0, x2) + iv(x1 + 1.0, x2))),
    "gammainc": (lambda g, x1, x2: g * gammainc_a(x1, x2), lambda g, x1, x2: g * _gamma_density(x1, x2)),
    "gammaincc": (lambda g, x1, x2: -g * gammainc_a(x1, x2), lambda g, x1, x2: -g * _gamma_density(x1, x2)),
    "gammainc_a": (
        _no_closed_form("its shape parameter a"),
        lambda g, x1, x2: g * _gamma_density(x1, x2) * (log(x2) - digamma(x1)),
    ),
    "betainc": (
        _no_closed_form("its parameter a"),
        _no_closed_form("its parameter b"),
        lambda g, x1, x2, x3: g * _beta_density(x1, x2, x3),
    ),
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


# --- forward mode (JVPs) -----------------------------------------------------------------------------------------------
#
# An elementwise rule is also its forward rule, with the tangent of the argument in place of ``g``. The forward rule of any
# other op that is in neither of these tables is the transpose of its reverse rule, which is linear in ``g``: two calls for
# each tangent. The tables state faster rules for frequent ops.


def _shifted_axes(axis: Any, t: Any) -> Any:
    """``axis`` for an array with one more leading dimension."""
    if axis is None:
        return tuple(range(1, len(t.shape)))
    return tuple(_shifted_axes(a, t) for a in axis) if isinstance(axis, tuple) else axis if axis < 0 else axis + 1


def _shifted_reduction(t: Any, axis: Any, keepdims: bool) -> dict[str, Any]:
    return {"axis": _shifted_axes(axis, t), "keepdims": keepdims}


def _shifted_key(key: Any) -> Any:
    """``key`` for an array with one more leading dimension; None where indexing would move that dimension."""
    key = key if isinstance(key, tuple) else (key,)
    arrays = [i for i, part in enumerate(key) if is_array(part) or isinstance(part, list)]
    if arrays:
        integers = [i for i, part in enumerate(key) if i in arrays or isinstance(part, int)]
        if integers[-1] - integers[0] != len(integers) - 1 or any(
            not len(getattr(key[i], "shape", (1,))) for i in arrays
        ):
            return None
    return (slice(None), *key)


def _shifted_take(t: Any, indices: Any, axis: int) -> dict[str, Any]:
    shape = (t.shape[0], *indices.shape)
    return {"indices": namespace(indices).broadcast_to(indices, shape), "axis": _shifted_axes(axis, t)}


# Ops that are jointly linear in their array arguments, and so their own forward rule, with their attributes for tangents
# ``t`` that have a leading batch axis: None where there are no such attributes.
LINEAR: dict[str, Callable[..., dict[str, Any] | None]] = {
    "sum": _shifted_reduction,
    "mean": _shifted_reduction,
    "cumulative_sum": lambda t, axis: {"axis": _shifted_axes(axis, t)},
    "flip": lambda t, axis: {"axis": _shifted_axes(axis, t)},
    "fftn": lambda t, axes, norm: {"axes": _shifted_axes(axes, t), "norm": norm},
    "ifftn": lambda t, axes, norm: {"axes": _shifted_axes(axes, t), "norm": norm},
    "rfft": lambda t, n, axis, norm: {"n": n, "axis": _shifted_axes(axis, t), "norm": norm},
    "irfft": lambda t, n, axis, norm: {"n": n, "axis": _shifted_axes(axis, t), "norm": norm},
    "reshape": lambda t, shape, copy=None: {"shape": (t.shape[0], *shape)},
    "permute_dims": lambda t, axes: {"axes": (0, *(a + 1 for a in axes))},
    "expand_dims": lambda t, axis: {"axis": _shifted_axes(axis, t)},
    "squeeze": lambda t, axis: {"axis": _shifted_axes(axis, t)},
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


def _product(t: Any, x: Any, y: Any, batch: int | None, swapped: bool) -> Any:
    """The matrix product of a tangent with the other argument; of the other argument with a tangent if ``swapped``."""
    if batch is None:
        return x @ t if swapped else t @ x
    own: tuple[int, ...] = tuple(t.shape)[1:]
    other: tuple[int, ...] = tuple(x.shape)
    if not swapped and len(other) <= 2:  # a product of matrices, rather than a stack of them
        rows = xp.reshape(t, (batch * size_of(own[:-1]), own[-1]))
        return xp.reshape(rows @ x, (batch, *y.shape))
    own, other = _matrix(own, swapped), _matrix(other, not swapped)
    t = xp.reshape(t, (batch, *(1,) * (len(other) - len(own)), *own))
    x = xp.reshape(x, other)
    return xp.reshape(x @ t if swapped else t @ x, (batch, *y.shape))


def _push_matmul(tangents: Any, args: Any, y: Any, batch: int | None) -> Any:
    (t1, t2), (x1, x2) = tangents, args
    terms = [] if t1 is None else [_product(t1, x2, y, batch, False)]
    terms += [] if t2 is None else [_product(t2, x1, y, batch, True)]
    return terms[0] if len(terms) == 1 else terms[0] + terms[1]


def _push_extremum(tangents: Any, args: Any, y: Any, batch: int | None, axis: Any, keepdims: bool) -> Any:
    along = tangents[0] * _tie_weights(y, args[0], axis)
    return xp.sum(along, axis=axis if batch is None else _shifted_axes(axis, along), keepdims=keepdims)


def _push_call(tangents: Any, args: Any, y: Any, batch: int | None, pull: Any, push: Any, function: Any) -> Any:
    if batch is not None:
        return NotImplemented
    if push is not None:
        return primitives.TupleCotangent(push(args, tangents))
    with _core.Tape() as tape:
        g, variables = zero_cotangent(tape, y)
        pulled = pull(g, primitives.items(y), args)
    given = [(p, t) for p, t in zip(pulled, tangents, strict=True) if t is not None and isinstance(p, _core.Variable)]
    seeds = [(p, t) for p, t in given if tape.owns(p)]
    return like_cotangent(g, tape.pull(seeds, variables))


FORWARD: dict[str, Callable[..., Any]] = {
    "matmul": _push_matmul,
    "max": _push_extremum,
    "min": _push_extremum,
    "broadcast_to": lambda tangents, args, y, batch, shape: spread(tangents[0], y, batch),
    "call": _push_call,
    "item": lambda tangents, args, y, batch, index: tangents[0][index],
}


def _with_zeros(tangents: Any, named: dict[str, Any]) -> list[Any]:
    """The tangents of all arguments of ``concat`` and ``stack``, zeros in place of None."""
    like = next(t for t in tangents if t is not None)
    shape, ends = list(getattr(like, "shape", ())), named.get("ends")
    filled = []
    for which, t in enumerate(tangents):
        if t is None and ends is not None:
            shape[named["axis"]] = ends[which + 1] - ends[which]
        filled.append(_zeros(like, tuple(shape)) if t is None else t)
    return filled


def _zeros(like: Any, shape: tuple[int, ...]) -> Any:
    if not is_array(_core.plain(like)):
        return 0.0
    return namespace(like).zeros(shape, dtype=like.dtype, device=device_of(_core.plain(like)))


def push(name: str, tangents: Any, args: Any, y: Any, named: dict[str, Any] | None, batch: int | None) -> Any:
    """The tangent of a structured op's result; None where it is zero, NotImplemented where the reverse rule is to be used."""
    named = named or {}
    if name in FORWARD:
        pushed = FORWARD[name](tangents, args, y, batch, **named)
    elif name in LINEAR:
        if batch is not None:
            behind = LINEAR[name](next(t for t in tangents if t is not None), **named)
            if behind is None:
                return NotImplemented
            named = behind
        pushed = _core.record(name, _with_zeros(tangents, named), named)
    else:
        return NotImplemented
    return in_dtype(pushed, y)


def install() -> None:
    """Registers the tables with the core, which traces the elementwise rules."""
    rows = []
    for name, rules in TABLE.items():
        for which, rule in enumerate(rules):
            stated = (rule, list(inspect.signature(rule).parameters)) if callable(rule) else rule
            rows.append((name, which, stated))
    _core.install(rows, push)
