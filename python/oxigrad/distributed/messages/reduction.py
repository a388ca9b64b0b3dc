"""Reductions of buffers in the order of ranks, so that all engines give the same bits."""

import operator
from collections.abc import Sequence
from typing import Literal, TypeAlias

import numpy as np

Op: TypeAlias = Literal["sum", "mean", "max"]
"""A reduction over workers."""


_BLOCK = 1 << 17
"""Bytes that are reduced at once: sums stay in the cache, so that each buffer takes one pass over memory."""


def reduce_in_order(contributions: Sequence[np.ndarray], op: Op, out: np.ndarray) -> None:
    """Reduces one-dimensional buffers, given in the order of ranks, into ``out``, which may be one of them.

    A sum is ``((b0 + b1) + b2) + ...`` in the dtype of the buffers, or in float32 for dtypes of half precision; a mean
    is the sum divided by the number of buffers.

    >>> total = np.zeros(2)
    >>> reduce_in_order([np.array([1.0, 2.0]), np.array([3.0, 6.0])], "mean", total)
    >>> total
    array([2., 4.])
    """
    check_op(op)
    is_half = out.dtype.itemsize == 2 and out.dtype.kind not in "iu"
    dtype = np.dtype(np.float32) if is_half else out.dtype
    if op == "mean" and len(contributions) > 1 and dtype.kind in "iub":
        raise TypeError(f"the mean of buffers of dtype {dtype}: expected a floating-point dtype")
    step = _BLOCK // dtype.itemsize
    total = np.empty(min(step, out.size), dtype)
    for start in range(0, out.size, step):
        block = slice(start, start + step)
        target = out[block]
        _reduce([*map(operator.itemgetter(block), contributions)], op, target, total[: target.size])


def _reduce(blocks: list[np.ndarray], op: Op, out: np.ndarray, total: np.ndarray) -> None:
    """As `reduce_in_order`; ``total`` is memory for the sum. ``out`` is written last, when all blocks were read."""
    combine = np.maximum if op == "max" else np.add
    running, *others = blocks
    if running.dtype != total.dtype:
        np.copyto(total, running)
        running = total
    is_mean = op == "mean" and len(blocks) > 1
    last = total if is_mean or out.dtype != total.dtype else out
    for block in others:
        into = last if block is others[-1] else total
        running = combine(running, block, out=into, casting="same_kind")
    if is_mean:
        running = np.divide(running, len(blocks), out=out if out.dtype == total.dtype else total)
    if running is not out:
        np.copyto(out, running, casting="unsafe")


def part_of(counts: Sequence[int], rank: int, workers: int, size: int) -> slice:
    """The part of a rank in a buffer of ``size`` elements, of which rank k has ``counts[k]``.

    Raises `ValueError` for other counts.

    >>> part_of([2, 0, 3], 2, 3, 5)
    slice(2, 5, None)
    """
    if len(counts) != workers or min(counts) < 0 or sum(counts) != size:
        raise ValueError(f"counts are {[*counts]}: expected one for each of {workers} workers, {size} together")
    start = sum(counts[:rank])
    return slice(start, start + counts[rank])


def check_op(op: Op) -> None:
    """Raises `ValueError` for a reduction that there is not."""
    if op not in ("sum", "mean", "max"):
        raise ValueError(f"op is {op!r}: expected 'sum', 'mean' or 'max'")
