"""The gradients of a parameter that has several key paths: they are added up."""

from typing import Any

import numpy as np

from oxigrad import xp
from oxigrad.ops.core.aliasing import is_same_array
from oxigrad.step.arrays.sparse_rows import SparseRows


def summed(gradients: list[Any]) -> Any:
    """The sum of gradients, in the dtype of the first; an array that is given several times counts once."""
    first, *others = _distinct(gradients)
    total: Any = sum(others, first)
    total = np.asarray(total) if isinstance(total, np.generic) else total  # NumPy's sums of no axes are numbers
    return total if total.dtype == first.dtype else xp.astype(total, first.dtype)


def _distinct(gradients: list[Any]) -> list[Any]:
    """The gradients without repeated arrays."""
    distinct: list[Any] = []
    for g in gradients:
        if not any(_is_same(g, other) for other in distinct):
            distinct.append(g)
    return distinct


def _is_same(a: Any, b: Any) -> bool:
    if isinstance(a, SparseRows) and isinstance(b, SparseRows):
        return a is b or (is_same_array(a.values, b.values) and is_same_array(a.indices, b.indices))
    return is_same_array(a, b)
