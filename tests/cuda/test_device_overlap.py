"""The check that arrays which kernels write share no memory with others, in the first step and where some have moved."""

from __future__ import annotations

import numpy as np
import pytest

import oxigrad as ox
from oxigrad.cuda.overlap import Spans


def overlaps(starts: np.ndarray, sizes: np.ndarray, written: np.ndarray) -> bool:
    """Whether an array that is written shares memory with another one, by all pairs."""
    pairs = ((i, j) for i in range(len(starts)) for j in range(i))
    return any(
        (written[i] or written[j]) and max(starts[i], starts[j]) < min(starts[i] + sizes[i], starts[j] + sizes[j])
        for i, j in pairs
    )


def test_moves_are_refused_as_in_a_first_step() -> None:
    """Random layouts of four leaves of three arrays, of which the first is only read; then some arrays move."""
    random, refused = np.random.default_rng(0), 0
    written = np.tile([False, True, True], 4)
    for _ in range(300):
        sizes = random.integers(0, 12, 12)
        addresses = random.permutation(12) * 16 + 1000
        spans = Spans([["a", "b", "c", "d"]], [sizes.reshape(4, 3)], [[False, True, True]])
        spans.check([addresses.reshape(4, 3)])
        for _ in range(3):
            moved = random.choice(12 if random.random() < 0.3 else [0, 3, 6, 9], 2)
            addresses = addresses.copy()
            before, addresses[moved] = addresses.copy(), random.integers(990, 1200, 2)
            if overlaps(addresses, sizes, written):
                refused += 1
                with pytest.raises(ox.AliasError, match="share memory"):
                    spans.check_again([addresses.reshape(4, 3)])
                addresses = before
            else:
                spans.check_again([addresses.reshape(4, 3)])
    assert 100 < refused < 800
