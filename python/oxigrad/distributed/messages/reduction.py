"""Reductions of buffers in the order of ranks, so that all engines give the same bits."""

from collections.abc import Sequence
from typing import Literal, TypeAlias

import numpy as np

Op: TypeAlias = Literal["sum", "mean", "max"]
"""A reduction over workers."""


def reduce_in_order(contributions: Sequence[np.ndarray], op: Op, out: np.ndarray) -> None:
    """Reduces buffers, given in the order of ranks, into ``out``, which may be the first of them.

    A sum is ``((b0 + b1) + b2) + ...`` in the dtype of the buffers, or in float32 for dtypes of half precision; a mean is the sum
    divided by the number of buffers.

    >>> total = np.zeros(2)
    >>> reduce_in_order([np.array([1.0, 2.0]), np.array([3.0, 6.0])], "mean", total)
    >>> total
    array([2., 4.])
    """
    check_op(op)
    is_half = out.dtype.itemsize == 2 and out.dtype.kind not in "iu"
    combine = np.maximum if op == "max" else np.add
    total = contributions[0].astype(np.float32) if is_half else out
    if not is_half and out is not contributions[0]:
        out[...] = contributions[0]
    for buffer in contributions[1:]:
        combine(total, buffer, out=total, casting="same_kind")
    if op == "mean" and len(contributions) > 1:
        if total.dtype.kind in "iub":
            raise TypeError(f"the mean of buffers of dtype {total.dtype}: expected a floating-point dtype")
        np.divide(total, len(contributions), out=total)
    if is_half:
        out[...] = total.astype(out.dtype)


def part_of(counts: Sequence[int], rank: int, workers: int, size: int) -> slice:
    """The part of a rank in a buffer of ``size`` elements, of which rank k has ``counts[k]``. Raises `ValueError` for other counts.

    >>> part_of([2, 0, 3], 2, 3, 5)
    slice(2, 5, None)
    """
    if len(counts) != workers or any(count < 0 for count in counts) or sum(counts) != size:
        raise ValueError(f"counts are {[*counts]}: expected one for each of {workers} workers, {size} together")
    start = sum(counts[:rank])
    return slice(start, start + counts[rank])


def check_op(op: Op) -> None:
    """Raises `ValueError` for a reduction that there is not."""
    if op not in ("sum", "mean", "max"):
        raise ValueError(f"op is {op!r}: expected 'sum', 'mean' or 'max'")
