"""Linear filters of signals, and functions of least squares."""

from collections.abc import Callable
from typing import Any

import numpy as np

from oxigrad import DerivativeError, ShapeError, Variable
from oxigrad import xp as ops
from oxigrad._typing import Array, Results
from oxigrad.ops.backends import array_of, zeros_of
from oxigrad.ops.backends.functions.scipy_functions import of_scipy
from oxigrad.ops.core.dtypes import floating
from oxigrad.ops.core.host_calls import call_one, computed, is_recorded, linear
from oxigrad.ops.core.in_place import of_library
from oxigrad.ops.core.primitives import along, index
from oxigrad.ops.core.standard import axes_of
from oxigrad.ops.scipy_signatures import scipy_signature
from oxigrad.xp.ndimage import convolve1d

__all__ = [
    "detrend",
    "filtfilt",
    "lfilter",
    "savgol_filter",
    "sosfilt",
]


def constant(name: str, parameter: str, value: Any) -> np.ndarray:
    """A parameter of a filter as a NumPy array. Raises `DerivativeError` for a variable."""
    if isinstance(value, Variable):
        raise DerivativeError(f"{name} is not differentiable with respect to {parameter}")
    return np.asarray(value)


def _causal(name: str, x: Array, axis: int, run: Callable[[np.ndarray], np.ndarray]) -> Array:
    """A filter that begins at rest: its transpose is the filter of the reversed signal."""
    return linear(name, run, lambda g: np.flip(run(np.flip(g, axis)), axis), array_of(x))


@scipy_signature("b, a, x, axis=-1, zi=None")
def lfilter(b: Array, a: Array, x: Array, /, axis: int, zi: Array) -> Results:
    """The filter of coefficients ``b`` (numerator) and ``a`` (denominator) along an axis, beginning at rest.

    With an initial state ``zi``, of the shape of ``x`` with ``max(len(b), len(a)) - 1`` elements along the axis, the
    result is the signal and the final state.
    """
    b, a, x = (array_of(each, [b, a, x]) for each in (b, a, x))
    b, a = (each if each.shape else ops.expand_dims(each) for each in (b, a))
    are_constant = not is_recorded(b) and not is_recorded(a)
    if zi is not None:
        zi = array_of(zi, [x])
        if are_constant and not is_recorded(x) and not is_recorded(zi):
            run = lambda x, zi: of_scipy("signal", "lfilter")(np.asarray(b), np.asarray(a), x, axis, zi)  # noqa: E731
            return computed("lfilter", run, (x, zi))
        return _from_state(b, a, x, axis, zi)
    if are_constant:
        b, a = np.asarray(b), np.asarray(a)
        return _causal("lfilter", x, axis, lambda x: of_scipy("signal", "lfilter")(b, a, x, axis))

    def backwards(b: Array, a: Array, g: Array) -> Array:
        return ops.flip(lfilter(b, a, ops.flip(g, axis=axis), axis), axis=axis)

    def products(g: Array, x: Array, count: int) -> Array:
        size, place = x.shape[axis], axis % len(x.shape)
        late = [index(g, along(place, slice(min(k, size), None))) for k in range(count)]
        early = [index(x, along(place, slice(max(size - k, 0)))) for k in range(count)]
        return ops.stack([ops.sum(one * other) for one, other in zip(late, early, strict=True)])

    # With delays z, a(z) y = b(z) x: a filter of the same denominator maps each of the other terms of the differential
    # to dy.
    def pull(g: Array, y: Array, b: Array, a: Array, x: Array) -> tuple[Array, Array, Array]:
        inner = backwards(np.ones(1), a, g)
        return products(inner, x, b.shape[0]), -products(inner, y, a.shape[0]), backwards(b, a, g)

    def push(y: Array, b: Array, a: Array, x: Array, tb: Array, ta: Array, tx: Array) -> Array:
        terms = [] if tx is None else [lfilter(b, a, tx, axis)]
        terms += [] if tb is None else [lfilter(tb, a, x, axis)]
        terms += [] if ta is None else [-lfilter(ta, a, y, axis)]
        return sum(terms[1:], terms[0])

    return call_one("lfilter", lambda b, a, x: of_scipy("signal", "lfilter")(b, a, x, axis), [b, a, x], pull, push)


def _from_state(b: Array, a: Array, x: Array, axis: int, zi: Array) -> tuple[Array, Array]:
    """The filter that begins in a state: with delays z, a(z) y = b(z) x + a[0] zi, and the final state is the rest."""
    axis, size, count = axis % len(x.shape), x.shape[axis], max(b.shape[0], a.shape[0]) - 1
    shape = (*x.shape[:axis], count, *x.shape[axis + 1 :])
    if len(zi.shape) != len(shape) or any(n not in (1, m) for n, m in zip(zi.shape, shape, strict=True)):
        raise ShapeError(f"lfilter: zi has the shape {tuple(zi.shape)}, expected {shape}")
    later = zeros_of(shape, x)
    b, a, one = b / a[0], a / a[0], zeros_of((1,), a) + 1.0
    begun = ops.concat([ops.broadcast_to(zi, shape), zeros_of(tuple(x.shape), x)], axis=axis)
    whole = lfilter(b, one, ops.concat([x, later], axis=axis), axis) + begun
    y = lfilter(one, a, index(whole, along(axis, slice(size))), axis)
    rest = whole - lfilter(a, one, ops.concat([y, later], axis=axis), axis)
    return y, index(rest, along(axis, slice(size, None)))


@scipy_signature("sos, x, axis=-1, zi=None")
def sosfilt(sos: Array, x: Array, /, axis: int, zi: Array) -> Results:
    """The filter of second-order sections ``sos`` (n, 6) along an axis, beginning at rest.

    With an initial state ``zi``, of the shape of ``x`` with 2 elements along the axis and the sections in front, the
    result is the signal and the final state.
    """
    sos, x = array_of(sos, [x]), array_of(x, [sos])
    zi = None if zi is None else array_of(zi, [x])
    if zi is None and not is_recorded(sos):
        sos = np.ascontiguousarray(sos)  # SciPy reads no others
        return _causal("sosfilt", x, axis, lambda x: of_scipy("signal", "sosfilt")(sos, x, axis))
    if not any(map(is_recorded, (sos, x, zi))):
        sos = np.ascontiguousarray(sos)
        return computed("sosfilt", lambda x, zi: of_scipy("signal", "sosfilt")(sos, x, axis, zi), (x, zi))
    if len(sos.shape) != 2 or sos.shape[1] != 6:
        raise ShapeError(f"sosfilt: found sos of shape {tuple(sos.shape)}, expected (n, 6)")
    states = []
    for section in range(sos.shape[0]):
        b, a = (index(sos, (section, part)) for part in (slice(3), slice(3, None)))
        if zi is None:
            x = lfilter(b, a, x, axis)
        else:
            x, state = lfilter(b, a, x, axis, zi[section])
            states.append(state)
    return x if zi is None else (x, ops.stack(states))


@scipy_signature('b, a, x, axis=-1, padtype="odd", padlen=None, method="pad", irlen=None')
def filtfilt(b: Array, a: Array, x: Array, /, axis: int, padtype: str | None, padlen: int | None) -> Array:
    """The filter of coefficients ``b`` and ``a`` applied forwards and backwards.

    The signal is extended by ``padlen`` at its ends; ``padtype`` is "odd", "even", "constant" or None.
    """
    x = array_of(x)
    b, a = (np.atleast_1d(constant("filtfilt", *each)) for each in (("b", b), ("a", a)))
    (at,) = axes_of(axis, len(x.shape))
    to_last = (*(each for each in range(len(x.shape)) if each != at), at)
    x = ops.permute_dims(x, to_last)
    count = 0 if padtype is None else 3 * max(len(a), len(b)) if padlen is None else padlen
    if x.shape[-1] <= count:
        raise ShapeError(
            f"filtfilt: found {x.shape[-1]} elements along the axis, expected more than padlen, which is {count}"
        )
    state = of_scipy("signal", "lfilter_zi")(b, a)
    whole = _prolonged(x, count, padtype)
    response = of_scipy("signal", "lfilter")(b, a, np.zeros(whole.shape[-1], state.dtype), zi=state)[0]
    for _ in range(2):
        start = index(whole, (..., slice(0, 1)))
        whole = lfilter(b, a, whole) + start * of_library(response, x)
        whole = ops.flip(whole, axis=-1)
    y = index(whole, (..., slice(count, whole.shape[-1] - count)))
    return ops.permute_dims(y, tuple(np.argsort(to_last).tolist()))


def _prolonged(x: Array, count: int, padtype: str | None) -> Array:
    if padtype not in ("odd", "even", "constant", None):
        raise ValueError(f"filtfilt: padtype is {padtype!r}: expected 'odd', 'even', 'constant' or None")
    if not count:
        return x
    ends = [index(x, (..., slice(0, 1))), index(x, (..., slice(-1, None)))]
    if padtype == "constant":
        shape = (*x.shape[:-1], count)
        return ops.concat([ops.broadcast_to(ends[0], shape), x, ops.broadcast_to(ends[1], shape)], axis=-1)
    sides = [index(x, (..., slice(1, count + 1))), index(x, (..., slice(-count - 1, -1)))]
    sides = [ops.flip(side, axis=-1) for side in sides]
    if padtype == "odd":
        sides = [2.0 * end - side for end, side in zip(ends, sides, strict=True)]
    return ops.concat([sides[0], x, sides[1]], axis=-1)


@scipy_signature('data, axis=-1, type="linear", bp=0, overwrite_data=False')
def detrend(x: Array, /, axis: int, type: str, bp: Array) -> Array:
    """The signal without its least-squares line or its mean: a projection.

    ``type`` is "linear", between breakpoints ``bp``, or "constant".
    """

    def project(x: np.ndarray) -> np.ndarray:
        return of_scipy("signal", "detrend")(x, axis, type, bp)

    return linear("detrend", project, project, array_of(x))


@scipy_signature('x, window_length, polyorder, deriv=0, delta=1.0, axis=-1, mode="interp", cval=0.0')
def savgol_filter(
    x: Array, /, window_length: int, polyorder: int, deriv: int, delta: float, axis: int, mode: str, cval: float
) -> Array:
    """The Savitzky-Golay filter: a polynomial of least squares in a window around each element."""
    x = floating(array_of(x))
    weights = of_scipy("signal", "savgol_coeffs")(window_length, polyorder, deriv=deriv, delta=delta)
    if mode != "interp":
        return convolve1d(x, weights, axis, mode=mode, cval=cval)
    size, half = x.shape[axis], window_length // 2
    if window_length > size:
        raise ShapeError(
            f"savgol_filter: found {size} elements along the axis, expected at least window_length, {window_length}"
        )
    inner = convolve1d(x, weights, axis, mode="constant")
    fit = lambda x: of_scipy("signal", "savgol_filter")(  # noqa: E731
        x, window_length, polyorder, deriv=deriv, delta=delta, axis=0
    )
    matrix, at = fit(np.eye(window_length)), axis % len(x.shape)

    def edge(part: slice, rows: np.ndarray) -> Array:
        """The elements near an edge: products of a matrix with the window there."""
        forward = lambda x: np.moveaxis(np.tensordot(rows, x, axes=(1, at)), 0, at).astype(x.dtype)  # noqa: E731
        adjoint = lambda g: np.moveaxis(np.tensordot(rows, g, axes=(0, at)), 0, at).astype(g.dtype)  # noqa: E731
        return linear("savgol_filter", forward, adjoint, index(x, along(at, part)))

    first = edge(slice(0, window_length), matrix[:half])
    last = edge(slice(size - window_length, size), matrix[window_length - half :])
    return ops.concat([first, index(inner, along(at, slice(half, size - half))), last], axis=at)
