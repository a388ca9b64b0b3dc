"""Convolution along chosen axes, as in `autograd.scipy.signal`."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from oxigrad.autodiff.function_calls import replaced


def convolve(
    A: Any,
    B: Any,
    axes: Sequence[Sequence[int]] | None = None,
    dot_axes: Sequence[Sequence[int]] = ((), ()),
    mode: str = "full",
) -> Any:
    """Convolution of two arrays along pairs of ``axes``, all by default, summed over pairs of ``dot_axes``.

    The result has the other axes of ``A``, the other axes of ``B``, and the axes of the convolution, of sizes n + m - 1
    for "full", n for "same" and abs(n - m) + 1 for "valid".
    """
    if mode not in ("full", "same", "valid"):
        raise ValueError(f"convolve: found mode {mode!r}, expected 'full', 'same' or 'valid'")
    axes = axes or (range(np.ndim(A)), range(np.ndim(A)))
    sizes = [(np.shape(A)[a], np.shape(B)[b]) for a, b in zip(*axes, strict=True)]
    if mode == "valid" and any(n < m for n, m in sizes):
        if any(n > m for n, m in sizes):
            raise ValueError("convolve: found neither array the larger along all axes, expected that with mode='valid'")
        return _of_windows(B, A, axes[::-1], dot_axes[::-1], is_swapped=True)
    widths = [(0, 0)] * np.ndim(A)
    for axis, (_, m) in zip(axes[0], sizes, strict=True):
        after = {"full": m - 1, "same": (m - 1) // 2, "valid": 0}[mode]
        widths[axis] = (0 if mode == "valid" else m - 1 if mode == "full" else m - 1 - after, after)
    return _of_windows(np.pad(A, widths), B, axes, dot_axes, is_swapped=False)


def _of_windows(
    a: Any, b: Any, axes: Sequence[Sequence[int]], dot_axes: Sequence[Sequence[int]], *, is_swapped: bool
) -> Any:
    """Products of the windows of ``a`` and the reversed ``b``."""
    windows = np.lib.stride_tricks.sliding_window_view(a, [np.shape(b)[axis] for axis in axes[1]], tuple(axes[0]))
    # Numbers of axes in einsum: of `a`, of its windows, and of `b`, whose axes are among the others or remain.
    of_windows = range(np.ndim(windows))
    of_b = [np.ndim(windows) + axis for axis in range(np.ndim(b))]
    of_b = replaced(of_b, [*axes[1], *dot_axes[1]], [*of_windows[np.ndim(a) :], *dot_axes[0]])
    remaining = [
        [axis for axis in range(np.ndim(a)) if axis not in (*axes[0], *dot_axes[0])],
        [axis for axis in of_b if axis >= np.ndim(windows)],
    ]
    result = [*remaining[is_swapped], *remaining[not is_swapped], *axes[0]]
    return np.einsum(windows, [*of_windows], np.flip(b, tuple(axes[1])), of_b, result)
