"""Extension of arrays beyond their edges, as the boundary modes of filters have it, with its transpose."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from oxigrad import ShapeError
from oxigrad._typing import Array
from oxigrad.ops.core.host_calls import linear

# Maps the modes of SciPy's filters to the modes of `numpy.pad`.
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


def for_each_axis(name: str, parameter: str, value: Any, count: int) -> list[Array]:
    """A parameter for each axis. Raises `ShapeError` for a sequence of another length."""
    values = list(value) if isinstance(value, (list, tuple, np.ndarray)) else [value] * count
    if len(values) != count:
        raise ShapeError(f"{name}: found {len(values)} values in {parameter}, expected {count}, one for each axis")
    return values


def check_mode(name: str, mode: str) -> None:
    """Raises `ValueError` for a mode that SciPy does not have."""
    if mode not in MODES:
        raise ValueError(f"{name}: mode is {mode!r}: expected one of {', '.join(map(repr, MODES))}")


def widened(x: np.ndarray, widths: Widths, modes: Sequence[str]) -> np.ndarray:
    """The array padded along each axis by the ``widths`` before and after its elements.

    The padding is zero in the mode "constant", and for an empty array.
    """
    for axis, (width, mode) in enumerate(zip(widths, modes, strict=True)):
        if any(width):
            whole = [width if at == axis else (0, 0) for at in range(x.ndim)]
            name = MODES[mode] if x.shape[axis] else "constant"
            x = np.pad(x, whole, mode=name)  # pyright: ignore[reportCallIssue, reportArgumentType]
    return x


def folded(x: np.ndarray, widths: Widths, modes: Sequence[str]) -> np.ndarray:
    """The transpose of `widened`: elements beyond the edges are added to the elements that they repeat."""
    for axis, ((before, after), mode) in enumerate(zip(widths, modes, strict=True)):
        size = x.shape[axis] - before - after
        x = np.moveaxis(x, axis, 0)
        inner = x[before : before + size].copy()
        if MODES[mode] != "constant" and (before or after) and size:
            name: Any = MODES[mode]
            sources = np.pad(np.arange(size), (before, after), mode=name)
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
    """A linear filter of SciPy that runs along each axis at most once, called as ``function(x, modes)``.

    ``radii`` bound the reach of the filter. Without edges, the transpose of a filter is the filter of the reversed
    array. The transpose of a filter with edges therefore pads with zeros, filters the reversed array, and folds the
    elements beyond the edges.
    """
    for mode in modes:
        check_mode(name, mode)
    widths = [(radius, radius) for radius in radii]

    def adjoint(g: np.ndarray) -> np.ndarray:
        spread = np.pad(g, widths)
        return folded(np.flip(function(np.flip(spread), ["constant"] * g.ndim)), widths, modes)

    return linear(name, lambda x: function(x, modes), adjoint, x)
