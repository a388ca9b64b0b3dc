"""Calls of filters of images: functions of a namespace and an image."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

MODES = ["reflect", "grid-mirror", "mirror", "nearest", "wrap", "grid-wrap", "constant", "grid-constant"]
X = np.random.default_rng(0).standard_normal((7, 6))
K = np.random.default_rng(1).standard_normal((3, 4))
W = K[0]
LABELS = np.arange(42).reshape(7, 6) % 5
POINTS = np.random.default_rng(2).uniform(0.2, 4.8, (2, 5))

Call = Callable[..., Any]
# Calls of filters with a boundary mode.
FILTERS: dict[str, Call] = {
    "correlate": lambda nd, x, **k: nd.correlate(x, K, **k),
    "correlate-origin": lambda nd, x, **k: nd.correlate(x, K, origin=(1, -2), **k),
    "convolve": lambda nd, x, **k: nd.convolve(x, K, **k),
    "convolve-origin": lambda nd, x, **k: nd.convolve(x, K, origin=(-1, 1), **k),
    "correlate1d": lambda nd, x, **k: nd.correlate1d(x, W, 0, **k),
    "correlate1d-origin": lambda nd, x, **k: nd.correlate1d(x, W, origin=-2, **k),
    "convolve1d": lambda nd, x, **k: nd.convolve1d(x, W, 0, **k),
    "convolve1d-origin": lambda nd, x, **k: nd.convolve1d(x, W, origin=1, **k),
    "gaussian_filter": lambda nd, x, **k: nd.gaussian_filter(x, (0.7, 3.0), **k),
    "gaussian_filter-order": lambda nd, x, **k: nd.gaussian_filter(x, 0.8, order=(1, 2), truncate=3.0, **k),
    "gaussian_filter1d": lambda nd, x, **k: nd.gaussian_filter1d(x, 0.8, 0, **k),
    "gaussian_filter1d-order": lambda nd, x, **k: nd.gaussian_filter1d(x, 0.8, order=1, radius=2, **k),
    "gaussian_laplace": lambda nd, x, **k: nd.gaussian_laplace(x, 0.9, **k),
    "laplace": lambda nd, x, **k: nd.laplace(x, **k),
    "prewitt": lambda nd, x, **k: nd.prewitt(x, 0, **k),
    "sobel": lambda nd, x, **k: nd.sobel(x, **k),
    "uniform_filter": lambda nd, x, **k: nd.uniform_filter(x, (3, 4), **k),
    "uniform_filter-origin": lambda nd, x, **k: nd.uniform_filter(x, 4, origin=(-2, 1), **k),
    "uniform_filter1d": lambda nd, x, **k: nd.uniform_filter1d(x, 4, 0, **k),
    "shift": lambda nd, x, **k: nd.shift(x, (0.7, -1.6), **k),
    "shift-linear": lambda nd, x, **k: nd.shift(x, (0.7, -1.6), order=1, **k),
    "zoom": lambda nd, x, **k: nd.zoom(x, (1.7, 0.6), **k),
    "zoom-grid": lambda nd, x, **k: nd.zoom(x, 1.5, order=2, grid_mode=True, **k),
}

FOOTPRINT = np.array([[1, 0, 1, 1], [0, 1, 1, 0], [1, 0, 0, 1]], bool)
_WINDOWS: dict[str, dict[str, Any]] = {
    "size": {"size": 3},
    "sizes": {"size": (4, 3), "origin": (1, -1)},
    "axes": {"size": (2, 3), "axes": (1, 0), "origin": (0, -1)},
    "axis": {"footprint": FOOTPRINT[0], "axes": (1,)},
    "footprint": {"footprint": FOOTPRINT, "origin": (1, -2)},
}
_STRUCTURES: dict[str, dict[str, Any]] = {
    "structure": {"structure": K},
    "structure-footprint": {"structure": K, "footprint": FOOTPRINT, "origin": (0, 1)},
    "structure-axis": {"structure": W, "axes": (0,)},
}
_GREY = """grey_erosion grey_dilation grey_opening grey_closing morphological_gradient morphological_laplace white_tophat
    black_tophat""".split()


def _selection(name: str, named: dict[str, Any], *args: Any) -> Call:
    return lambda nd, x, **k: getattr(nd, name)(x, *args, **named, **k)


# Calls of filters that select elements of windows.
SELECTIONS: dict[str, Call] = {
    **{f"{name}-{way}": _selection(name, of) for name in _GREY for way, of in (_WINDOWS | _STRUCTURES).items()},
    **{
        f"{name}-{way}": _selection(name, of, *args)
        for name, *args in (
            ("minimum_filter",),
            ("maximum_filter",),
            ("median_filter",),
            ("rank_filter", 2),
            ("rank_filter", -3),
            ("percentile_filter", 30.0),
            ("percentile_filter", -20.0),
        )
        for way, of in _WINDOWS.items()
    },
    **{
        f"{name}-{way}": _selection(name, of)
        for name in ("minimum_filter1d", "maximum_filter1d")
        for way, of in {"": {"size": 3}, "axis": {"size": 4, "axis": 0, "origin": -2}, "one": {"size": 1}}.items()
    },
}
