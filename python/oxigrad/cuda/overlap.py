"""The check that arrays which kernels write share no memory with others."""

from collections.abc import Sequence

import numpy as np

from oxigrad._core import AliasError
from oxigrad.ops.core.aliasing import first_overlap


class Spans:
    """The memory of leaves, by address columns: gradient, parameter, slots, scales and numbers.

    For each table, ``paths`` has an item for each row, ``sizes`` (in bytes) for each row and column, and ``written``
    for each column.
    """

    def __init__(
        self, paths: Sequence[Sequence[str]], sizes: Sequence[np.ndarray], written: Sequence[Sequence[bool]]
    ) -> None:
        self._names = [
            (path, column)
            for part, columns in zip(paths, written, strict=True)
            for path in part
            for column in range(len(columns))
        ]
        every = np.concatenate(
            [np.tile(np.array(part, bool), len(rows)) for part, rows in zip(written, paths, strict=True)]
        )
        whole = np.concatenate([part.reshape(-1) for part in sizes])
        self._used = np.flatnonzero(whole)
        self._sizes, self._written = whole[self._used], every[self._used]
        self._read = np.flatnonzero(~self._written)
        # Written arrays at the last check: their addresses, and their sorted starts and ends.
        self._last_check: tuple[np.ndarray, np.ndarray, np.ndarray] | None = None

    def check_again(self, addresses: Sequence[np.ndarray]) -> None:
        """As `check`, and faster where only arrays that are read have moved since the last one."""
        start = self._starts(addresses)
        if self._last_check is None or (start[self._written] != self._last_check[0]).any():
            self.check(addresses)
            return
        _, starts, ends = self._last_check
        first = start[self._read]
        # Written arrays share no memory: among arrays that begin before the end of an array, the last one ends last.
        before = np.searchsorted(starts, first + self._sizes[self._read])
        if (ends[before] > first).any():
            self.check(addresses)

    def _starts(self, addresses: Sequence[np.ndarray]) -> np.ndarray:
        return np.concatenate([part.reshape(-1) for part in addresses]).astype(np.int64)[self._used]

    def check(self, addresses: Sequence[np.ndarray]) -> None:
        """Raises `AliasError` if a written array shares memory with another one."""
        start, self._last_check = self._starts(addresses), None
        shared = first_overlap(start, self._sizes, self._written)
        if shared is None:
            written = start[self._written]
            ends = np.sort(written + self._sizes[self._written])
            self._last_check = written, np.sort(written), np.append(0, ends)
            return
        first, second = (self._name(int(self._used[each])) for each in shared)
        raise AliasError(
            f"{first} and {second} share memory: expected arrays apart, or the same array from the first step on"
        )

    def _name(self, number: int) -> str:
        path, column = self._names[number]
        return {0: f"the gradient of {path}", 1: path}.get(column, f"a slot of {path}")
