"""Functions of NumPy that `oxigrad.xp` lacks or has with fewer arguments, each with NumPy's signature.

A NumPy function called on variables runs the function of ``xp`` if that accepts the arguments, and otherwise the one
here.
"""

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from oxigrad._core import ShapeError
from oxigrad._typing import Array
from oxigrad.ops.backends import is_complex
from oxigrad.ops.core import primitives as ops
from oxigrad.ops.core import products, standard
from oxigrad.ops.core.array_like import NO_VALUE, array
from oxigrad.ops.linalg import numpy_keywords as linalg
from oxigrad.ops.numpy import creation, extras, histograms, moves, polynomials, reductions, scimath, sets, ufuncs
from oxigrad.ops.numpy import order_statistics as order


def _i0(x: Array) -> Array:
    return ops.iv(0.0, array(x))


def _angle(z: Array, deg: bool = False) -> Array:
    angles = extras.angle(z)
    return extras.rad2deg(angles) if deg else angles


def _correlate(a: Array, v: Array, mode: str = "valid") -> Array:
    a, v = array(a), array(v)
    if len(a.shape) != 1 or len(v.shape) != 1:
        raise ShapeError(f"correlate: found shapes {tuple(a.shape)} and {tuple(v.shape)}: expected (m,) and (n,)")
    return products.convolve(a, ops.flip(ops.conj(v) if is_complex(v) else v), mode)


def _cross(a: Array, b: Array, axisa: int = -1, axisb: int = -1, axisc: int = -1, axis: int | None = None) -> Array:
    axisa, axisb, axisc = (axisa, axisb, axisc) if axis is None else (axis, axis, axis)
    a, b = standard.moveaxis(array(a), axisa, -1), standard.moveaxis(array(b), axisb, -1)
    return standard.moveaxis(products.cross(a, b), -1, axisc)


def _diff(a: Array, n: int = 1, axis: int = -1, prepend: Array = None, append: Array = None) -> Array:
    a = array(a)
    ends = [None if end is None or end is NO_VALUE else end for end in (prepend, append)]
    return standard.diff(a, axis=axis, n=n, prepend=ends[0], append=ends[1])


def _copy(a: Array, order: str = "K", subok: bool = False) -> Array:
    return ops.copied(a)


def _named(module: Any, names: str) -> dict[str, Callable[..., Any]]:
    return {name: getattr(module, name) for name in names.split()}


# Functions of NumPy that ``xp`` lacks, or has with another meaning of the same arguments, and their replacements.
_FUNCTIONS: dict[str, Callable[..., Any]] = {
    **_named(reductions, "average corrcoef cov ptp trapezoid"),
    **reductions.WITHOUT_NAN,
    **order.FORMS,
    **_named(polynomials, "poly polyadd polyder polydiv polyfit polyint polymul polysub polyval roots vander"),
    **_named(histograms, "bincount histogram histogram2d histogram_bin_edges histogramdd interp"),
    **_named(sets, "intersect1d setdiff1d setxor1d sort_complex trim_zeros union1d unique"),
    **_named(
        creation,
        """arange array asarray ascontiguousarray ediff1d empty_like full geomspace linspace logspace ones_like require
        unwrap zeros_like""",
    ),
    **_named(moves, "apply_along_axis apply_over_axes piecewise"),
    **{name: functools.partial(moves.moved, getattr(np, name)) for name in moves.ELEMENTS if hasattr(np, name)},
    "asanyarray": creation.asarray,
    "asfortranarray": creation.ascontiguousarray,
    "correlate": _correlate,
    "i0": _i0,
}
# Functions that ``xp`` has with fewer keywords, and their replacements for calls with further ones.
_KEYWORDS: dict[str, Callable[..., Any]] = {
    **_named(reductions, "prod std var"),
    **_named(sets, "partition sort"),
    **_named(creation, "concatenate full_like meshgrid stack"),
    "take": moves.take,
    "angle": _angle,
    "copy": _copy,
    "cross": _cross,
    "diff": _diff,
}
_LINALG = _named(linalg, "cond eig eigh eigvals eigvalsh lstsq matrix_rank multi_dot pinv svd tensorinv tensorsolve")
_SCIMATH = _named(scimath, "arccos arcsin arctanh log log10 log2 logn power sqrt")
_UFUNCS = _named(ufuncs, "divmod fmod frexp heaviside ldexp matvec modf vecmat")


@functools.cache
def _tables() -> tuple[dict[Any, Callable[..., Any]], dict[Any, Callable[..., Any]]]:
    """`_FUNCTIONS` and `_KEYWORDS` with their kin, by NumPy's function."""
    window = np.lib.stride_tricks.sliding_window_view
    forms: dict[Any, Callable[..., Any]] = {window: functools.partial(moves.moved, window)}
    for space, named in ((np, _FUNCTIONS), (np.linalg, _LINALG), (np.emath, _SCIMATH), (np, _UFUNCS)):
        forms |= {getattr(space, name): form for name, form in named.items() if hasattr(space, name)}
    return forms, {getattr(np, name): form for name, form in _KEYWORDS.items()}


def form_of(function: Any) -> Callable[..., Any] | None:
    """The replacement of a function or ufunc of NumPy; None if ``xp`` has it."""
    return _tables()[0].get(function)


def with_keywords(function: Any) -> Callable[..., Any] | None:
    """The replacement of a NumPy function with keywords that the function of ``xp`` lacks."""
    return _tables()[1].get(function)
