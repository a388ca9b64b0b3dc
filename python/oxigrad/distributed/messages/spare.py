"""Memory that is used again, since the first touch of new pages costs more than a copy."""

import numpy as np


class Spare:
    """Arrays of bytes that are not in use: the last ``count`` of at least ``least`` bytes, ``most`` bytes in all.

    >>> spare = Spare()
    >>> first = spare.take(1 << 20)
    >>> spare.give(first)
    >>> np.shares_memory(first, spare.take(1_000_000))
    True
    """

    def __init__(self, count: int = 4, least: int = 1 << 14, most: int = 1 << 28) -> None:
        self._count, self._least, self._most = count, least, most
        self._arrays: list[np.ndarray] = []

    def take(self, nbytes: int) -> np.ndarray:
        """So many bytes, not initialized."""
        fitting = [array for array in self._arrays if nbytes <= array.size <= 2 * nbytes]
        if not fitting:
            return np.empty(nbytes, np.uint8)
        smallest = min(fitting, key=lambda array: array.size)
        self._arrays = [array for array in self._arrays if array is not smallest]
        return smallest[:nbytes]

    def give(self, data: np.ndarray) -> None:
        """Takes back bytes that `take` has returned and that nothing uses any more."""
        whole = data if data.base is None else data.base
        if not isinstance(whole, np.ndarray) or not self._least <= whole.size <= self._most:
            return
        self._arrays = [*self._arrays[-(self._count - 1) :], whole]
        while sum(array.size for array in self._arrays) > self._most:
            del self._arrays[0]
