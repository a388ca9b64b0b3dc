"""Convolution along chosen axes, as in `autograd.scipy.signal`."""

import string
from collections.abc import Sequence
from typing import Any

import numpy as np


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
    letters = iter(string.ascii_letters)
    of_a, of_windows = [next(letters) for _ in range(np.ndim(a))], [next(letters) for _ in axes[0]]
    of_b = [next(letters) for _ in range(np.ndim(b))]
    for axis, letter in zip(axes[1], of_windows, strict=True):
        of_b[axis] = letter
    for axis, other in zip(dot_axes[1], dot_axes[0], strict=True):
        of_b[axis] = of_a[other]
    remaining = [
        [letter for axis, letter in enumerate(each) if axis not in (*conv, *dot)]
        for each, conv, dot in zip((of_a, of_b), axes, dot_axes, strict=True)
    ]
    result = "".join([*remaining[is_swapped], *remaining[not is_swapped], *(of_a[axis] for axis in axes[0])])
    return np.einsum(f"{''.join(of_a + of_windows)},{''.join(of_b)}->{result}", windows, np.flip(b, tuple(axes[1])))
