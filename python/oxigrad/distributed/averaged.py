"""Means over workers of gradients by key path, by collective operations."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from oxigrad.distributed.communicator import Communicator
from oxigrad.distributed.message import Layout
from oxigrad.stepping.sparse_rows import SparseRows

__all__ = ["COUNT", "Kept", "mean_over_workers"]

COUNT = "."
"""The name beside key paths of the number of gradients: no key path prints so, and a bare array has the empty one."""


def mean_over_workers(
    sums: Mapping[str, Any],
    communicator: Communicator,
    *,
    count: int = 1,
    timeout: float | None = None,
    kept: "Kept | None" = None,
) -> dict[str, Any]:
    """The sum over all workers of ``sums``, arrays in host memory or `SparseRows`, divided by that of ``count``.

    ``count`` is the number of gradients in the sums of this worker, 0 for one that takes no part: its sums are not used. Rows that a
    worker does not have count as zeros. All workers call it; the sums themselves are not changed. Dense means are views of ``kept``,
    where it is given, until the next call.
    """
    if communicator.size == 1:
        return {path: _divided(total, count) for path, total in sums.items()}
    dense = {path: total for path, total in sums.items() if not isinstance(total, SparseRows)}
    dtype = next((total.dtype for total in dense.values()), np.dtype(np.float64))
    own = dense if count else {path: np.zeros_like(total) for path, total in dense.items()}
    told = {**own, COUNT: np.full(1, count, dtype)}  # one more element, whose sum is the number of gradients
    layout, buffers = (kept or Kept()).of(told)
    layout.pack(told, buffers)
    communicator.all_reduce(buffers, op="sum", timeout=timeout)
    views = layout.views(buffers)
    gradients = int(views.pop(COUNT)[0])
    if gradients != 1:
        for buffer in buffers:
            np.divide(buffer, buffer.dtype.type(gradients), out=buffer)
    found: dict[str, Any] = {**views}
    for path, total in sums.items():
        if isinstance(total, SparseRows):
            found[path] = _divided(_sum_of_rows(total if count else _no_rows(total), communicator, timeout), gradients)
    return found


class Kept:
    """Buffers that are kept between calls of `mean_over_workers`, since the first touch of new memory costs more than a copy."""

    def __init__(self) -> None:
        self._found: tuple[tuple[Any, ...], Layout, list[np.ndarray]] | None = None

    def of(self, arrays: Mapping[str, np.ndarray]) -> tuple[Layout, list[np.ndarray]]:
        """The layout of arrays, and its buffers; the former ones for the same names, shapes and dtypes."""
        key = tuple((path, array.shape, array.dtype) for path, array in arrays.items())
        if self._found is None or self._found[0] != key:
            layout = Layout(arrays)
            self._found = key, layout, layout.empty()
        return self._found[1:]


def _sum_of_rows(gradient: SparseRows, communicator: Communicator, timeout: float | None) -> SparseRows:
    values = np.ascontiguousarray(gradient.values)
    indices = communicator.all_gather_v(np.ascontiguousarray(gradient.indices, np.int64), timeout=timeout)
    parts = communicator.all_gather_v(values.reshape(-1), timeout=timeout)
    stacked = np.concatenate(parts).reshape(-1, *values.shape[1:])
    return SparseRows(np.concatenate(indices), stacked, gradient.shape)


def _no_rows(gradient: SparseRows) -> SparseRows:
    return SparseRows(gradient.indices[:0], gradient.values[:0], gradient.shape)


def _divided(total: Any, count: int) -> Any:
    if isinstance(total, SparseRows):
        return SparseRows(total.indices, _divided(total.values, count), total.shape).coalesce()
    return total if count == 1 else total / total.dtype.type(count)
