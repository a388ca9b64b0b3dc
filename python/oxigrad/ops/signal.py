"""Convolutions and linear filters of signals, named as in `scipy.signal`: `oxigrad.xp.signal`.

A convolution is differentiable in both arguments, `lfilter` and `sosfilt` in the signal and the coefficients, to all
orders. Other filters are linear in the signal, and their coefficients are constants. Values are SciPy's. Arrays of
other libraries are copied to host memory; `NotImplementedError` is raised if the host cannot read them. Rank filters
are in `oxigrad.xp.ndimage`: ``medfilt`` is `median_filter` in the mode "constant".

>>> import oxigrad as ox
>>> ox.grad(lambda h: convolve(np.array([1.0, 2.0, 3.0]), h)[1])(np.array([0.0, 1.0]))
array([2., 1.])
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from oxigrad import DerivativeError, DtypeError, ShapeError, Variable
from oxigrad._names import without
from oxigrad._typing import Array
from oxigrad.ops.backends import array_of, dtype_of, is_complex, zeros_of
from oxigrad.ops.backends.functions.scipy_functions import of_scipy
from oxigrad.ops.core import primitives as ops
from oxigrad.ops.core.dtypes import floating
from oxigrad.ops.core.host_calls import call_one, computed, is_recorded, linear
from oxigrad.ops.core.in_place import of_library
from oxigrad.ops.core.primitives import along
from oxigrad.ops.core.standard import axes_of
from oxigrad.ops.ndimage import convolve1d
from oxigrad.ops.ndimage.extension import extended_by
from oxigrad.ops.scipy_signatures import scipy_signature
from oxigrad.xp import fft

__all__ = [
    "convolve",
    "convolve2d",
    "correlate",
    "correlate2d",
    "detrend",
    "fftconvolve",
    "filtfilt",
    "hilbert",
    "lfilter",
    "oaconvolve",
    "resample",
    "savgol_filter",
    "sosfilt",
    "upfirdn",
]
__dir__: Callable[[], list[str]] = __all__.copy

__getattr__ = without("oxigrad.xp.signal", __all__)


# --- convolutions -----------------------------------------------------------------------------------------------------


def _full(name: str, x: Array, h: Array, axes: tuple[int, ...] | None = None) -> Array:
    """The full convolution of two arrays along ``axes``, all by default; other axes are broadcast.

    Its transposes are convolutions with the other argument reversed, in which broadcast elements are summed.
    """
    if axes == ():
        return ops.multiply(x, h)
    named: dict[str, Any] = {} if axes is None else {"axes": axes}
    chosen = range(len(x.shape)) if axes is None else axes

    def function(x: np.ndarray, h: np.ndarray) -> np.ndarray:
        return of_scipy("signal", name)(x, h, mode="full", **named)

    if not is_recorded(x) and not is_recorded(h):
        return computed(name, function, (x, h))[0]

    def transposed(g: Array, other: Array, size: Sequence[int]) -> Array:
        if 0 in (*other.shape, *size):  # SciPy's result has the shape (0,)
            return zeros_of(tuple(size), g)
        whole = _full(name, g, ops.flip(other, axis=axes), axes)
        starts = [n - 1 if at in chosen else 0 for at, n in enumerate(other.shape)]
        ends = [
            s + (n if at in chosen else whole.shape[at]) for at, (s, n) in enumerate(zip(starts, size, strict=True))
        ]
        part = ops.index(whole, tuple(map(slice, starts, ends)))
        repeated = tuple(at for at, (m, n) in enumerate(zip(part.shape, size, strict=True)) if m != n)
        return ops.sum(part, axis=repeated, keepdims=True) if repeated else part

    def pull(g: Array, y: Array, x: Array, h: Array) -> tuple[Array, Array]:
        return transposed(g, h, x.shape), transposed(g, x, h.shape)

    def push(y: Array, x: Array, h: Array, t: Any, u: Any) -> Array:
        terms = [_full(name, t, h, axes)] if t is not None else []
        terms += [_full(name, x, u, axes)] if u is not None else []
        return terms[0] if len(terms) == 1 else terms[0] + terms[1]

    return call_one(name, function, [x, h], pull, push)


def _part(
    whole: Array,
    sizes: Sequence[int],
    others: Sequence[int],
    mode: str,
    *,
    late: bool = False,
    axes: tuple[int, ...] | None = None,
) -> Array:
    """The part of a full convolution for a ``mode``: "full", "same" or "valid".

    "same" has the size of the first argument; ``late`` shifts it by half an element.
    """
    if mode == "full" or (mode in ("same", "valid") and 0 in whole.shape):
        return whole
    if mode == "same":
        spare = [(n - m + late) // 2 for n, m in zip(whole.shape, sizes, strict=True)]
        return ops.index(whole, tuple(slice(s, s + m) for s, m in zip(spare, sizes, strict=True)))
    if mode != "valid":
        raise ValueError(f"mode is {mode!r}: expected 'full', 'same' or 'valid'")
    pairs = [
        (n, m) if axes is None or at in axes else (1, whole.shape[at])
        for at, (n, m) in enumerate(zip(sizes, others, strict=True))
    ]
    convolved = pairs if axes is None else [pairs[at] for at in axes]
    if not (all(n <= m for n, m in convolved) or all(n >= m for n, m in convolved)):
        raise ShapeError(
            f"found shapes {tuple(sizes)}, {tuple(others)} with mode='valid', expected one not to exceed the other"
        )
    return ops.index(whole, tuple(slice(min(pair) - 1, max(pair)) for pair in pairs))


def _pair(name: str, x: Array, h: Array) -> tuple[Array, Array]:
    x = array_of(x, [h])
    h = array_of(h, [x])
    if len(x.shape) != len(h.shape):
        raise ShapeError(f"{name}: found {len(x.shape)} and {len(h.shape)} dimensions, expected the same number")
    return x, h


def _along_axes(name: str, x: Array, h: Array, mode: str, axes: Any) -> Array:
    x, h = _pair(name, x, h)
    chosen = _convolved(name, x.shape, h.shape, axes)
    return _part(_full(name, x, h, chosen), x.shape, h.shape, mode, axes=chosen)


def _convolved(name: str, sizes: Sequence[int], others: Sequence[int], axes: Any) -> tuple[int, ...]:
    """The axes (all of them if None) without the axes along which one of the arrays is broadcast."""
    chosen = axes_of(axes, len(sizes))
    if len(set(chosen)) < len(chosen) or (not chosen and len(sizes)):
        raise ValueError(f"{name}: axes is {axes!r}: expected at least one axis, and none of them twice")
    pairs = [*zip(sizes, others, strict=True)]
    if any(n != m and 1 not in (n, m) for at, (n, m) in enumerate(pairs) if at not in chosen):
        raise ShapeError(
            f"{name}: found shapes {tuple(sizes)}, {tuple(others)}, expected equal sizes, or 1, of the axes other "
            f"than {chosen}"
        )
    return tuple(at for at in sorted(chosen) if 1 not in pairs[at])


@scipy_signature('in1, in2, mode="full", method="auto"', ignored="method=direct,fft")
def convolve(x: Array, h: Array, /, mode: str) -> Array:
    """The convolution of two arrays of equal rank; ``mode`` is "full", "same" (the size of ``x``) or "valid"."""
    x, h = _pair("convolve", x, h)
    return _part(_full("convolve", x, h), x.shape, h.shape, mode)


@scipy_signature('in1, in2, mode="full", axes=None')
def fftconvolve(x: Array, h: Array, /, mode: str, axes: Any) -> Array:
    """As `convolve`, by Fourier transforms, along all axes or some, while the others are broadcast."""
    return _along_axes("fftconvolve", x, h, mode, axes)


@scipy_signature('in1, in2, mode="full", axes=None')
def oaconvolve(x: Array, h: Array, /, mode: str, axes: Any) -> Array:
    """As `convolve`, by the overlap-add method, along all axes or some; the others are broadcast.

    It is fast for arrays of very different sizes.
    """
    return _along_axes("oaconvolve", x, h, mode, axes)


@scipy_signature('in1, in2, mode="full", method="auto"', ignored="method=direct,fft")
def correlate(x: Array, h: Array, /, mode: str) -> Array:
    """The correlation of two arrays of equal rank: the convolution with the reversed and conjugate ``h``."""
    x, h = _pair("correlate", x, h)
    return _part(_full("convolve", x, ops.conjugate(ops.flip(h))), x.shape, h.shape, mode)


def _planar(name: str, x: Array, h: Array, mode: str, boundary: str, fillvalue: float) -> Array:
    x, h = _pair(name, x, h)
    if len(x.shape) != 2 or boundary not in ("fill", "wrap", "symm"):
        arguments = f"{len(x.shape)} dimensions, boundary={boundary!r}"
        raise ShapeError(f"{name}: found {arguments}, expected 2 dimensions, and boundary 'fill', 'wrap' or 'symm'")
    late = name == "correlate2d"  # as SciPy has the middle of weights of an even size
    if late and mode == "valid" and any(m < n for m, n in zip(x.shape, h.shape, strict=True)):
        x, h = ops.conjugate(x), ops.flip(h)  # SciPy exchanges the two, and so which one it conjugates
    elif late:
        h = ops.conjugate(ops.flip(h))
    if mode == "valid" or (boundary == "fill" and fillvalue == 0.0):
        return _part(_full("convolve", x, h), x.shape, h.shape, mode, late=late)
    widths = [(n - 1, n - 1) for n in h.shape]
    whole = _full("convolve", extended_by(x, widths, [boundary] * 2, fillvalue if boundary == "fill" else 0.0), h)
    full = ops.index(whole, tuple(slice(n - 1, n - 1 + m + n - 1) for m, n in zip(x.shape, h.shape, strict=True)))
    return _part(full, x.shape, h.shape, mode, late=late)


@scipy_signature('in1, in2, mode="full", boundary="fill", fillvalue=0')
def convolve2d(x: Array, h: Array, /, mode: str, boundary: str, fillvalue: float) -> Array:
    """The convolution of matrices; ``boundary`` is "fill" (with ``fillvalue``), "wrap" or "symm"."""
    return _planar("convolve2d", x, h, mode, boundary, fillvalue)


@scipy_signature('in1, in2, mode="full", boundary="fill", fillvalue=0')
def correlate2d(x: Array, h: Array, /, mode: str, boundary: str, fillvalue: float) -> Array:
    """The correlation of matrices: `convolve2d` with the reversed and conjugate ``h``.

    In the mode "valid" with an ``h`` that is larger than ``x``, the latter is conjugate, as SciPy's.
    """
    return _planar("correlate2d", x, h, mode, boundary, fillvalue)


# --- filters ----------------------------------------------------------------------------------------------------------


def _constant(name: str, parameter: str, value: Any) -> np.ndarray:
    """A parameter of a filter as a NumPy array. Raises `DerivativeError` for a variable."""
    if isinstance(value, Variable):
        raise DerivativeError(f"{name} is not differentiable with respect to {parameter}")
    return np.asarray(value)


def _causal(name: str, x: Array, axis: int, run: Callable[[np.ndarray], np.ndarray]) -> Array:
    """A filter that begins at rest: its transpose is the filter of the reversed signal."""
    return linear(name, run, lambda g: np.flip(run(np.flip(g, axis)), axis), array_of(x))


@scipy_signature("b, a, x, axis=-1, zi=None")
def lfilter(b: Any, a: Any, x: Array, /, axis: int) -> Array:
    """The filter of coefficients ``b`` (numerator) and ``a`` (denominator) along an axis, beginning at rest."""
    if not is_recorded(b) and not is_recorded(a):
        b, a = np.asarray(b), np.asarray(a)
        return _causal("lfilter", x, axis, lambda x: of_scipy("signal", "lfilter")(b, a, x, axis))
    b, a, x = (array_of(each, [b, a, x]) for each in (b, a, x))

    def backwards(b: Any, a: Array, g: Array) -> Array:
        return ops.flip(lfilter(b, a, ops.flip(g, axis=axis), axis), axis=axis)

    def products(g: Array, x: Array, count: int) -> Array:
        size, place = x.shape[axis], axis % len(x.shape)
        late = [ops.index(g, along(place, slice(min(k, size), None))) for k in range(count)]
        early = [ops.index(x, along(place, slice(max(size - k, 0)))) for k in range(count)]
        return ops.stack([ops.sum(one * other) for one, other in zip(late, early, strict=True)])

    # With delays z, a(z) y = b(z) x: a filter of the same denominator maps each of the other terms of the differential
    # to dy.
    def pull(g: Array, y: Array, b: Array, a: Array, x: Array) -> tuple[Array, Array, Array]:
        inner = backwards(np.ones(1), a, g)
        return products(inner, x, b.shape[0]), -products(inner, y, a.shape[0]), backwards(b, a, g)

    def push(y: Array, b: Array, a: Array, x: Array, tb: Any, ta: Any, tx: Any) -> Array:
        terms = [] if tx is None else [lfilter(b, a, tx, axis)]
        terms += [] if tb is None else [lfilter(tb, a, x, axis)]
        terms += [] if ta is None else [-lfilter(ta, a, y, axis)]
        return sum(terms[1:], terms[0])

    return call_one("lfilter", lambda b, a, x: of_scipy("signal", "lfilter")(b, a, x, axis), [b, a, x], pull, push)


@scipy_signature("sos, x, axis=-1, zi=None")
def sosfilt(sos: Any, x: Array, /, axis: int) -> Array:
    """The filter of second-order sections ``sos`` (n, 6) along an axis, beginning at rest."""
    if not is_recorded(sos):
        sos = np.asarray(sos)
        return _causal("sosfilt", x, axis, lambda x: of_scipy("signal", "sosfilt")(sos, x, axis))
    if len(sos.shape) != 2 or sos.shape[1] != 6:
        raise ShapeError(f"sosfilt: found sos of shape {tuple(sos.shape)}, expected (n, 6)")
    for section in range(sos.shape[0]):
        b, a = (ops.index(sos, (section, part)) for part in (slice(3), slice(3, None)))
        x = lfilter(b, a, x, axis)
    return x


@scipy_signature('b, a, x, axis=-1, padtype="odd", padlen=None, method="pad", irlen=None')
def filtfilt(b: Any, a: Any, x: Array, /, axis: int, padtype: str | None, padlen: int | None) -> Array:
    """The filter of coefficients ``b`` and ``a`` applied forwards and backwards.

    The signal is extended by ``padlen`` at its ends; ``padtype`` is "odd", "even", "constant" or None.
    """
    x = array_of(x)
    b, a = (np.atleast_1d(_constant("filtfilt", *each)) for each in (("b", b), ("a", a)))
    x = ops.permute_dims(x, _to_last(len(x.shape), axis))
    count = 0 if padtype is None else 3 * max(len(a), len(b)) if padlen is None else padlen
    if x.shape[-1] <= count:
        raise ShapeError(
            f"filtfilt: found {x.shape[-1]} elements along the axis, expected more than padlen, which is {count}"
        )
    state = of_scipy("signal", "lfilter_zi")(b, a)
    whole = _prolonged(x, count, padtype)
    response = of_scipy("signal", "lfilter")(b, a, np.zeros(whole.shape[-1], state.dtype), zi=state)[0]
    for _ in range(2):
        start = ops.index(whole, (..., slice(0, 1)))
        whole = lfilter(b, a, whole) + start * of_library(response, x)
        whole = ops.flip(whole, axis=-1)
    y = ops.index(whole, (..., slice(count, whole.shape[-1] - count)))
    return ops.permute_dims(y, tuple(int(at) for at in np.argsort(_to_last(len(x.shape), axis))))


def _to_last(ndim: int, axis: int) -> tuple[int, ...]:
    return (*(at for at in range(ndim) if at != axis % ndim), axis % ndim)


def _prolonged(x: Array, count: int, padtype: str | None) -> Array:
    if padtype not in ("odd", "even", "constant", None):
        raise ValueError(f"filtfilt: padtype is {padtype!r}: expected 'odd', 'even', 'constant' or None")
    if not count:
        return x
    ends = [ops.index(x, (..., slice(0, 1))), ops.index(x, (..., slice(-1, None)))]
    if padtype == "constant":
        shape = (*x.shape[:-1], count)
        return ops.concat([ops.broadcast_to(ends[0], shape), x, ops.broadcast_to(ends[1], shape)], axis=-1)
    sides = [ops.index(x, (..., slice(1, count + 1))), ops.index(x, (..., slice(-count - 1, -1)))]
    sides = [ops.flip(side, axis=-1) for side in sides]
    if padtype == "odd":
        sides = [2.0 * end - side for end, side in zip(ends, sides, strict=True)]
    return ops.concat([sides[0], x, sides[1]], axis=-1)


@scipy_signature('data, axis=-1, type="linear", bp=0, overwrite_data=False')
def detrend(x: Array, /, axis: int, type: str, bp: Any) -> Array:
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
    fit = lambda x: of_scipy("signal", "savgol_filter")(x, window_length, polyorder, deriv=deriv, delta=delta, axis=0)  # noqa: E731
    matrix, at = fit(np.eye(window_length)), axis % len(x.shape)

    def edge(part: slice, rows: np.ndarray) -> Array:
        """The elements near an edge: products of a matrix with the window there."""
        forward = lambda x: np.moveaxis(np.tensordot(rows, x, axes=(1, at)), 0, at).astype(x.dtype)  # noqa: E731
        adjoint = lambda g: np.moveaxis(np.tensordot(rows, g, axes=(0, at)), 0, at).astype(g.dtype)  # noqa: E731
        return linear("savgol_filter", forward, adjoint, ops.index(x, along(at, part)))

    first = edge(slice(0, window_length), matrix[:half])
    last = edge(slice(size - window_length, size), matrix[window_length - half :])
    return ops.concat([first, ops.index(inner, along(at, slice(half, size - half))), last], axis=at)


# --- sampling ---------------------------------------------------------------------------------------------------------


@scipy_signature('h, x, up=1, down=1, axis=-1, mode="constant", cval=0')
def upfirdn(h: Any, x: Array, /, up: int, down: int, axis: int) -> Array:
    """The signal with zeros inserted (``up``), filtered by constant weights ``h``, then decimated (``down``)."""
    h, x = _constant("upfirdn", "h", h), array_of(x)
    size = x.shape[axis]

    def forward(x: np.ndarray) -> np.ndarray:
        return of_scipy("signal", "upfirdn")(h, x, up, down, axis)

    def adjoint(g: np.ndarray) -> np.ndarray:
        g = np.moveaxis(g, axis, -1)
        back = of_scipy("signal", "upfirdn")(h[::-1], g, down, 1)[..., len(h) - 1 :: up][..., :size]
        back = np.pad(back, [*[(0, 0)] * (g.ndim - 1), (0, size - back.shape[-1])])
        return np.moveaxis(back, -1, axis)

    return linear("upfirdn", forward, adjoint, x)


@scipy_signature('x, num, t=None, axis=0, window=None, domain="time"')
def resample(x: Array, num: int, /, axis: int) -> Array:
    """A real, periodic signal at ``num`` points, by its Fourier series."""
    x = _real("resample", x)
    size, at = x.shape[axis], axis % len(x.shape)
    common = min(num, size)
    spectrum = ops.index(fft.rfft(x, axis=at), along(at, slice(0, common // 2 + 1)))
    if common % 2 == 0 and num != size:  # the highest frequency stands for two, of which one is folded, or missing
        factor = np.ones(common // 2 + 1)
        factor[-1] = 2.0 if num < size else 0.5
        spectrum = spectrum * _like_axis(x, factor, at)
    return fft.irfft(spectrum, n=num, axis=at) * (num / size)


@scipy_signature("x, N=None, axis=-1")
def hilbert(x: Array, /, N: int | None, axis: int) -> Array:
    """The complex analytic signal of ``x``, whose imaginary part is the Hilbert transform of ``x``.

    The signal is cropped or zero-padded to ``N`` elements.
    """
    x = _real("hilbert", x)
    size, at = x.shape[axis] if N is None else N, axis % len(x.shape)
    if size <= 0:
        raise ValueError(f"hilbert: N is {N!r}: expected a positive number")
    factor = np.zeros(size)
    factor[0], factor[1 : (size + 1) // 2] = 1.0, 2.0
    if size % 2 == 0:
        factor[size // 2] = 1.0
    return fft.ifft(fft.fft(x, n=N, axis=at) * _like_axis(x, factor, at), axis=at)


def _real(name: str, x: Array) -> Array:
    """The signal in floating point. Raises `DtypeError`, which names the function, for a complex one."""
    x = floating(array_of(x))
    if is_complex(x):
        raise DtypeError(f"{name}: found a complex signal, expected a real one")
    return x


def _like_axis(x: Array, values: np.ndarray, axis: int) -> Array:
    """The values along an axis of ``x``, as an array of its library and dtype."""
    shape = [-1 if at == axis else 1 for at in range(len(x.shape))]
    return ops.astype(of_library(values.reshape(shape), x), dtype_of(x), copy=False)
