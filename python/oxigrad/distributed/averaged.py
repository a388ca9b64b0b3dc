"""Means over workers of gradients by key path, by collective operations."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from oxigrad.distributed.communicator import Communicator
from oxigrad.distributed.message import Layout
from oxigrad.stepping.sparse_rows import SparseRows

__all__ = ["mean_over_workers"]


def __dir__() -> list[str]:
    return list(__all__)


def mean_over_workers(
    sums: Mapping[str, Any], communicator: Communicator, *, count: int = 1, timeout: float | None = None
) -> dict[str, Any]:
    """The sum over all workers of ``sums``, arrays in host memory or `SparseRows`, divided by that of ``count``.

    ``count`` is the number of gradients in the sums of this worker, 0 for one that takes no part: its sums are not used. Rows that a
    worker does not have count as zeros. All workers call it; the sums themselves are not changed.
    """
    if communicator.size == 1:
        return {path: _divided(total, count) for path, total in sums.items()}
    dense = {path: total for path, total in sums.items() if not isinstance(total, SparseRows)}
    dtype = next((total.dtype for total in dense.values()), np.dtype(np.float64))
    own = dense if count else {path: np.zeros_like(total) for path, total in dense.items()}
    told = {**own, "": np.full(1, count, dtype)}  # one more element, whose sum is the number of gradients
    layout = Layout(told)
    buffers = layout.pack(told, layout.empty())
    communicator.all_reduce(buffers, op="sum", timeout=timeout)
    views = layout.views(buffers)
    gradients = int(views.pop("")[0])
    found: dict[str, Any] = {path: _divided(total, gradients) for path, total in views.items()}
    for path, total in sums.items():
        if isinstance(total, SparseRows):
            found[path] = _divided(_sum_of_rows(total if count else _no_rows(total), communicator, timeout), gradients)
    return found


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
