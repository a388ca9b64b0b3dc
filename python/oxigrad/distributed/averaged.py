"""Gradients by key path: their mean over workers, by collective operations."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from oxigrad.distributed.communicator import Communicator
from oxigrad.distributed.message import Layout
from oxigrad.stepping.sparse_rows import SparseRows

__all__ = ["mean_over_workers"]


def __dir__() -> list[str]:
    return list(__all__)


def mean_over_workers(gradients: Mapping[str, Any], communicator: Communicator) -> dict[str, Any]:
    """The means over all workers of their gradients, arrays in host memory or `SparseRows`. All of them call it.

    Rows that a worker does not have count as zeros. The gradients themselves are not changed.
    """
    if communicator.size == 1:
        return dict(gradients)
    dense = {path: gradient for path, gradient in gradients.items() if not isinstance(gradient, SparseRows)}
    layout = Layout(dense)
    buffers = layout.pack(dense, layout.empty())
    communicator.all_reduce(buffers, op="mean")
    found: dict[str, Any] = {**layout.views(buffers)}
    for path, gradient in gradients.items():
        if isinstance(gradient, SparseRows):
            found[path] = _mean_rows(gradient, communicator)
    return found


def _mean_rows(gradient: SparseRows, communicator: Communicator) -> SparseRows:
    values = np.ascontiguousarray(gradient.values)
    indices = communicator.all_gather_v(np.ascontiguousarray(gradient.indices, np.int64))
    parts = communicator.all_gather_v(values.reshape(-1))
    stacked = np.concatenate(parts).reshape(-1, *values.shape[1:]) / values.dtype.type(communicator.size)
    return SparseRows(np.concatenate(indices), stacked, gradient.shape).coalesce()
