"""Top-k sparsification of gradients with momentum correction, and the messages of sparse values.

The numerics of Deep Gradient Compression (Lin et al. 2018, arXiv:1712.01887), for one worker and one flat array.
Nothing here communicates; `oxigrad.distributed.methods.compression` exchanges the messages.
"""

import dataclasses
import math
from collections.abc import Sequence

import numpy as np

from oxigrad.distributed.errors import Refused

# Stages of the warm-up, as in the paper: densities 25 %, 6.25 %, 1.5625 % and 0.4 %.
_STAGES = 4


def density(ratio: float, warmup: int, step: int) -> float:
    """The share of elements that is sent in a step, counted from 0: ``ratio``, and more in the first ``warmup`` steps.

    The warm-up has four stages of equal length, of densities 1/4, 1/16, 1/64 and 1/256, or ``ratio`` where that is
    larger.

    >>> [density(0.001, 8, step) for step in (0, 2, 4, 6, 8)]
    [0.25, 0.0625, 0.015625, 0.00390625, 0.001]
    """
    if step >= warmup:
        return ratio
    return max(ratio, 0.25 ** (1 + _STAGES * step // warmup))


def largest(values: np.ndarray, count: int) -> np.ndarray:
    """The indices, in increasing order, of the ``count`` elements of a flat array with the largest magnitudes.

    Of elements with equal magnitudes, those of lower index come first. NaN counts as larger than any number. Zeros are
    left out, so that there may be fewer.

    >>> largest(np.array([1.0, -3.0, 0.0, 2.0, -2.0]), 2)
    array([1, 3])
    """
    magnitudes = np.abs(values)
    magnitudes[np.isnan(magnitudes)] = np.inf
    if count >= values.size:
        return np.flatnonzero(magnitudes)
    if count == 0:
        return np.empty(0, np.int64)
    threshold = np.partition(magnitudes, values.size - count)[values.size - count]
    above = np.flatnonzero(magnitudes > threshold)
    if threshold == 0:
        return above
    equal = np.flatnonzero(magnitudes == threshold)[: count - above.size]
    return np.sort(np.concatenate([above, equal]))


@dataclasses.dataclass(frozen=True)
class Memory:
    """The memory of one parameter on one worker, as flat arrays.

    ``residual`` is the sum of what was not sent yet. ``velocity`` is the local momentum, None without momentum
    correction.
    """

    residual: np.ndarray
    velocity: np.ndarray | None = None

    @classmethod
    def zeros(cls, size: int, dtype: np.dtype, *, velocity: bool) -> "Memory":
        """The memory before the first step."""
        return cls(np.zeros(size, dtype), np.zeros(size, dtype) if velocity else None)

    def accumulated(self, gradient: np.ndarray, momentum: float, *, nesterov: bool) -> "Memory":
        """The memory after a gradient, by momentum correction (section 3.2 of the paper).

        ``u = momentum * u + g`` and ``v = v + u``; with ``nesterov`` ``u = momentum * (u + g)`` and ``v = v + u + g``.
        Without a velocity ``v = v + g``.
        """
        if self.velocity is None:
            return Memory(self.residual + gradient)
        scale = self.residual.dtype.type(momentum)
        if nesterov:
            velocity = scale * (self.velocity + gradient)
            return Memory(self.residual + velocity + gradient, velocity)
        velocity = scale * self.velocity + gradient
        return Memory(self.residual + velocity, velocity)

    def without(self, indices: np.ndarray) -> "Memory":
        """The memory after elements at ``indices`` were sent: zero there, velocity too (momentum factor masking)."""
        for array in (self.residual, self.velocity):
            if array is not None:
                array[indices] = 0
        return self


def count_sent(size: int, share: float) -> int:
    """The number of elements of a parameter that are sent: at least one.

    >>> count_sent(10_000, 0.001), count_sent(10, 0.001), count_sent(0, 0.001)
    (10, 1, 0)
    """
    return min(size, math.ceil(share * size))


def clip_factor(gradients: Sequence[np.ndarray], limit: float, workers: int) -> float:
    """The factor of local gradient clipping: by the global norm over all ``gradients``, to ``limit / sqrt(workers)``.

    The norm is computed in float64. 1 where the norm is within the limit, or is not finite.
    """
    norm = math.sqrt(
        math.fsum(float(np.dot(g, g)) for g in (each.astype(np.float64, copy=False) for each in gradients))
    )
    bound = limit / math.sqrt(workers)
    return bound / norm if bound < norm < math.inf else 1.0


# --- messages ---------------------------------------------------------------------------------------------------------


def pack(indices: np.ndarray, values: np.ndarray) -> np.ndarray:
    """A message of sparse values: the indices as uint32 (little-endian), then the values, as bytes."""
    return np.concatenate([indices.astype("<u4").view(np.uint8), np.ascontiguousarray(values).view(np.uint8)])


def unpack(message: np.ndarray, size: int, dtype: np.dtype) -> tuple[np.ndarray, np.ndarray]:
    """The indices and values of a message for a flat array of ``size`` elements.

    Raises `Refused` where the message is truncated, or its indices are out of range or not increasing.
    """
    count, rest = divmod(message.nbytes, 4 + dtype.itemsize)
    if rest:
        raise Refused(
            "length",
            f"a message of sparse values has {message.nbytes} bytes: expected a multiple of {4 + dtype.itemsize}",
        )
    raw = np.ascontiguousarray(message).view(np.uint8)
    indices, values = raw[: 4 * count].view("<u4"), raw[4 * count :].copy().view(dtype)
    if count and (indices[-1] >= size or (indices[1:] <= indices[:-1]).any()):
        raise Refused("indices", f"a message of sparse values has indices that are not increasing, or not below {size}")
    return indices, values


def mean(messages: Sequence[np.ndarray], size: int, dtype: np.dtype) -> np.ndarray:
    """The mean over workers of their sparse values, as a flat array of ``size`` elements.

    Summed in the order of ``messages``.

    >>> one, two = pack(np.array([0]), np.array([2.0])), pack(np.array([0, 2]), np.array([4.0, 6.0]))
    >>> mean([one, two], 4, np.dtype(float))
    array([3., 0., 3., 0.])
    """
    parts = [unpack(message, size, dtype) for message in messages]
    total = np.zeros(size, dtype)
    for indices, values in parts:
        total[indices] += values
    return total / dtype.type(len(messages))
