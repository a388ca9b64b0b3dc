"""Extension of arrays beyond their edges, as the boundary modes of filters have it, with its transpose."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from oxigrad._typing import Array
from oxigrad.ops.core.host_calls import linear

# The modes of SciPy's filters, as those of `numpy.pad`.
MODES = {
    "reflect": "symmetric",
    "grid-mirror": "symmetric",
    "symm": "symmetric",
    "mirror": "reflect",
    "nearest": "edge",
    "wrap": "wrap",
    "grid-wrap": "wrap",
    "constant": "constant",
    "grid-constant": "constant",
    "fill": "constant",
}
Widths = Sequence[tuple[int, int]]


def for_each_axis(value: Any, ndim: int) -> list[Any]:
    """A parameter for each axis."""
    return list(value) if isinstance(value, (list, tuple, np.ndarray)) else [value] * ndim


def check_mode(name: str, mode: Any) -> None:
    """Raises `ValueError` for a mode that SciPy does not have."""
    if mode not in MODES:
        raise ValueError(f"{name}: mode is {mode!r}: expected one of {', '.join(map(repr, MODES))}")


def widened(x: np.ndarray, widths: Widths, modes: Sequence[str]) -> np.ndarray:
    """The array extended along each axis by so many elements before and after; zeros in the mode "constant", or where there are none."""
    for axis, (width, mode) in enumerate(zip(widths, modes, strict=True)):
        if any(width):
            whole = [width if at == axis else (0, 0) for at in range(x.ndim)]
            name = MODES[mode] if x.shape[axis] else "constant"
            x = np.pad(x, whole, mode=name)  # pyright: ignore[reportCallIssue, reportArgumentType]
    return x


def folded(x: np.ndarray, widths: Widths, modes: Sequence[str]) -> np.ndarray:
    """The transpose of `widened`: elements beyond the edges are added to those that they repeat."""
    for axis, ((before, after), mode) in enumerate(zip(widths, modes, strict=True)):
        size = x.shape[axis] - before - after
        x = np.moveaxis(x, axis, 0)
        inner = x[before : before + size].copy()
        if MODES[mode] != "constant" and (before or after) and size:
            sources = np.pad(np.arange(size), (before, after), mode=MODES[mode])  # pyright: ignore[reportCallIssue, reportArgumentType]
            np.add.at(inner, sources[:before], x[:before])
            np.add.at(inner, sources[before + size :], x[before + size :])
        x = np.moveaxis(inner, 0, axis)
    return x


def extended(x: Array, widths: Widths, modes: Sequence[str]) -> Array:
    """`widened` as a recorded linear map."""
    return linear("pad", lambda x: widened(x, widths, modes), lambda g: folded(g, widths, modes), x)


def extended_by(x: Array, widths: Widths, modes: Sequence[str], value: float) -> Array:
    """As `extended`, with a ``value`` beyond the edges in the mode "constant"."""
    return extended(x - value, widths, modes) + value if value else extended(x, widths, modes)


def filtered(
    name: str,
    function: Callable[[np.ndarray, Sequence[str]], np.ndarray],
    x: Array,
    radii: Sequence[int],
    modes: Sequence[str],
) -> Array:
    """A linear filter of SciPy that goes along each axis at most once: ``function(x, modes)``, where ``radii`` bound its reach.

    Without edges, the transpose of a filter is the filter of the reversed array. So that of a filter with edges extends by zeros,
    filters the reversed array, and folds what is beyond the edges.
    """
    for mode in modes:
        check_mode(name, mode)
    widths = [(radius, radius) for radius in radii]

    def adjoint(g: np.ndarray) -> np.ndarray:
        spread = np.pad(g, widths)
        return folded(np.flip(function(np.flip(spread), ["constant"] * g.ndim)), widths, modes)

    return linear(name, lambda x: function(x, modes), adjoint, x)
