"""The kinds of the gradients of parameters, which workers tell each other beside their sums."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from oxigrad import SparseRows

NONE, DENSE, ROWS = range(3)
"""The kind of the gradient of a parameter on a worker: None, an array, or rows."""


def kind_of(gradient: Any, *, is_released: bool = False) -> int:
    """The kind of a gradient, which is an array where its memory was given back."""
    if isinstance(gradient, SparseRows):
        return ROWS
    return NONE if gradient is None and not is_released else DENSE


def flags_of(codes: Sequence[int], count: int) -> np.ndarray:
    """The flags of the last bucket: the count of gradients, and for each parameter a one for an array and for rows."""
    kinds = np.array(codes)
    return np.concatenate([[count], kinds == DENSE, kinds == ROWS]).astype(np.float64)
