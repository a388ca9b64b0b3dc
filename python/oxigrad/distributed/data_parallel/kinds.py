"""The kinds of the gradients of parameters, which workers tell each other beside their sums.

They are told by flags, numbers that are added up over workers: the count of gradients, then for each parameter whether
its gradient is an array, and for each whether it is rows.
"""

from collections.abc import Collection, Container, Mapping
from itertools import compress
from typing import Any

import numpy as np

from oxigrad import SparseRows


def flags_of(
    paths: Collection[str], gradients: Mapping[str, Any], count: int, released: Container[str] = ()
) -> np.ndarray:
    """The flags of a worker, whose gradients are missing where they are None.

    The ``released`` ones are arrays whose memory was given back.

    >>> flags_of(["a", "b", "c"], {"a": np.ones(1), "b": SparseRows([0], [1.0], (2,))}, 1)
    array([1., 1., 0., 0., 0., 1., 0.])
    """
    flags = np.zeros((2, len(paths)))
    for number, path in enumerate(paths):
        if path in gradients or path in released:
            flags[int(isinstance(gradients.get(path), SparseRows)), number] = 1.0
    return np.array([count, *flags.ravel()], np.float64)


def kinds_of(flags: np.ndarray, paths: Collection[str]) -> tuple[list[str], list[str], int]:
    """The parameters whose gradient is an array on any worker, those with rows alone, and the count of gradients.

    ``flags`` are the sums of the workers' flags.

    >>> kinds_of(np.array([2.0, 1.0, 0.0, 0.0, 1.0, 1.0, 0.0]), ["a", "b", "c"])
    (['a'], ['b'], 2)
    """
    counts = np.real(flags).astype(np.int64)
    dense, rows = counts[1:].reshape(2, len(paths))
    return [*compress(paths, dense)], [*compress(paths, rows * (dense == 0))], int(counts[0])
