"""Means over workers of gradients by key path, by collective operations."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from oxigrad import SparseRows
from oxigrad.distributed.communicator import Communicator
from oxigrad.distributed.errors import Refused
from oxigrad.distributed.messages.gradients import GradientSpec
from oxigrad.distributed.messages.message import Layout
from oxigrad.distributed.parameters import promoted

COUNT = "."
"""Key of the count of gradients and the flags of rows. No key path prints so; a bare array has the empty one."""


def mean_over_workers(
    sums: Mapping[str, Any],
    communicator: Communicator,
    *,
    count: int = 1,
    timeout: float | None = None,
) -> dict[str, Any]:
    """The sum over all workers of ``sums``, arrays in host memory or `SparseRows`, divided by that of ``count``.

    ``count`` is the number of gradients in the sums of this worker, 0 for one that takes no part: its sums are not
    used. Rows that a worker does not have count as zeros. The result is empty where no worker takes part. All workers
    call it; the sums themselves are not changed. Means of half precision are of float32, in which sums do not overflow.
    Raises `Refused` where a gradient has rows on some workers, and is an array on others.
    """
    sums = {path: promoted(total) for path, total in sums.items()}
    if communicator.size == 1:
        return {path: divided(total, count) for path, total in sums.items() if count}
    dense = {path: total for path, total in sums.items() if not isinstance(total, SparseRows)}
    dtype = next((total.dtype for total in dense.values()), np.dtype(np.float64))
    contributed = dense if count else {path: np.zeros_like(total) for path, total in dense.items()}
    contributed = {
        **contributed,
        COUNT: np.array([count, *(path not in dense for path in sums)], dtype),
    }  # the sums of further elements are the number of gradients, and of the workers that have rows
    layout = Layout(contributed)
    flat = layout.pack(contributed, layout.empty())
    communicator.all_reduce(flat, op="sum", timeout=timeout)
    means: dict[str, Any] = layout.views(flat)
    gradients, *with_rows = map(int, means.pop(COUNT))
    if mixed := [path for path, times in zip(sums, with_rows, strict=True) if times % communicator.size]:
        raise Refused("kind", f"{mixed[0]}: the gradient is SparseRows on some workers alone: expected one kind on all")
    if not gradients:
        return {}
    if gradients != 1:
        for buffer in flat:
            np.divide(buffer, buffer.dtype.type(gradients), out=buffer)
    for path, total in sums.items():
        if isinstance(total, SparseRows):
            means[path] = divided(sum_of_rows(total if count else no_rows(total), communicator, timeout), gradients)
    return means


def sum_of_rows(gradient: SparseRows, communicator: Communicator, timeout: float | None) -> SparseRows:
    """The sum over all workers of their rows, which may repeat indices: those of each worker in the order of ranks."""
    values = np.ascontiguousarray(gradient.values)
    indices = communicator.all_gather_v(np.ascontiguousarray(gradient.indices, np.int64), timeout=timeout)
    parts = communicator.all_gather_v(values.reshape(-1), timeout=timeout)
    stacked = np.concatenate(parts).reshape(-1, *values.shape[1:])
    return SparseRows(np.concatenate(indices), stacked, gradient.shape)


def no_rows(like: SparseRows | GradientSpec) -> SparseRows:
    """A gradient without rows, of the shape and dtype of another one."""
    return SparseRows(np.zeros(0, np.int64), np.zeros((0, *like.shape[1:]), like.dtype), like.shape)


def divided(total: Any, count: int) -> Any:
    """The mean of ``count`` gradients with this sum: an array, or unique rows in order."""
    if isinstance(total, SparseRows):
        return SparseRows(total.indices, divided(total.values, count), total.shape).coalesce()
    return total if count == 1 else total / total.dtype.type(count)
