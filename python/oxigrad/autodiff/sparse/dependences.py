"""Dependences: for each element of an array, the set of inputs that it depends on.

The sets of an array of several elements are a boolean CSR matrix, one row for each element in C order. The set of a
single number is an int whose bits are the inputs: programs of many numbers would spend their time creating matrices.
"""

import dataclasses
import functools
import importlib
import math
import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

Shape = tuple[int, ...]

# Ints below this number of bits are decomposed bit by bit.
_FEW = 32


def scipy_sparse() -> Any:
    """The module `scipy.sparse`. Raises `ImportError` if SciPy is not installed."""
    try:
        return importlib.import_module("scipy.sparse")
    except ImportError as error:
        raise ImportError(
            "sparse derivatives are matrices of scipy.sparse: install SciPy (pip install scipy)"
        ) from error


@dataclasses.dataclass(frozen=True, eq=False)
class Dependence:
    """The inputs that each element of an array depends on.

    ``sets`` is a CSR matrix, or an int for the shape ``()``.
    """

    shape: Shape
    sets: Any

    @classmethod
    def of_matrix(cls, shape: Shape, matrix: Any) -> "Dependence":
        """The dependence whose sets are the rows of a CSR matrix."""
        return cls(shape, matrix if shape else bits_of(matrix.indices, matrix.shape[1]))

    def matrix(self, inputs: int) -> Any:
        """The sets as a CSR matrix."""
        return rows_of([indices_of(self.sets)], inputs) if isinstance(self.sets, int) else self.sets

    def reshaped(self, shape: Shape, inputs: int) -> "Dependence":
        """The same elements in another shape."""
        if shape == self.shape:
            return self
        return Dependence.of_matrix(shape, self.matrix(inputs))

    def spread(self, shape: Shape, inputs: int) -> "Dependence":
        """The elements broadcast to a shape."""
        if shape == self.shape:
            return self
        if math.prod(shape) == math.prod(self.shape):
            return self.reshaped(shape, inputs)
        places = np.broadcast_to(places_of(self.shape), shape)
        return Dependence.of_matrix(shape, self.matrix(inputs)[np.ravel(places)])


def places_of(shape: Shape) -> np.ndarray:
    """The position of each element of an array, in C order, in its shape."""
    return np.arange(math.prod(shape)).reshape(shape)


def bits_of(indices: np.ndarray, inputs: int) -> int:
    """The int whose bits at ``indices`` are set."""
    if len(indices) < _FEW:
        return functools.reduce(operator.or_, (1 << int(index) for index in indices), 0)
    flags = np.zeros(inputs, bool)
    flags[indices] = True
    return int.from_bytes(np.packbits(flags, bitorder="little").tobytes(), "little")


def indices_of(bits: int) -> np.ndarray:
    """The positions of the bits that are set, ascending."""
    if bits.bit_count() < _FEW:
        positions = []
        while bits:
            lowest = bits & -bits
            positions.append(lowest.bit_length() - 1)
            bits ^= lowest
        return np.array(positions, np.int64)
    packed = np.frombuffer(bits.to_bytes((bits.bit_length() + 7) // 8, "little"), np.uint8)
    return np.flatnonzero(np.unpackbits(packed, bitorder="little"))


def rows_of(rows: Sequence[np.ndarray], inputs: int) -> Any:
    """A CSR matrix with these columns in each row."""
    ends = np.cumsum([0, *map(len, rows)])
    indices = np.concatenate(rows) if rows else np.zeros(0, np.int64)
    return scipy_sparse().csr_array((np.ones(len(indices), bool), indices, ends), shape=(len(rows), inputs))


def selection(to: np.ndarray, at: np.ndarray, shape: tuple[int, int]) -> Any:
    """The CSR matrix that adds row ``at`` of its right factor to row ``to`` of the product."""
    return scipy_sparse().csr_array((np.ones(len(to), bool), (to, at)), shape=shape)


def union(parts: Sequence[Dependence], shape: Shape, inputs: int) -> Dependence:
    """The dependence of an elementwise function of arrays that are broadcast to ``shape``."""
    if not shape:
        return Dependence((), functools.reduce(operator.or_, (_bits(part, inputs) for part in parts)))
    spread = [part.spread(shape, inputs).matrix(inputs) for part in parts]
    return Dependence(shape, functools.reduce(_either, spread))


def _bits(part: Dependence, inputs: int) -> int:
    return part.sets if isinstance(part.sets, int) else bits_of(part.sets.indices, inputs)


def _either(a: Any, b: Any) -> Any:
    """The union of two CSR matrices; one of them if it contains the other, so equal sets share one object."""
    if a is b:
        return a
    both = a + b
    return a if both.nnz == a.nnz else b if both.nnz == b.nnz else both


def reduced(part: Dependence, axes: Sequence[int], inputs: int) -> Dependence:
    """The union along axes, which have size 1 in the result."""
    shape = tuple(1 if axis in axes else size for axis, size in enumerate(part.shape))
    if shape == part.shape:
        return part
    to = np.ravel(np.broadcast_to(places_of(shape), part.shape))
    adds = selection(to, np.arange(len(to)), (math.prod(shape), len(to)))
    return Dependence.of_matrix(shape, adds @ part.matrix(inputs))


def gathered(parts: Sequence[Dependence | None], places: np.ndarray, inputs: int) -> Dependence:
    """The elements of the concatenated arrays at ``places``; -1 is an element that depends on nothing."""
    dependences = [part for part in parts if part is not None]
    if not places.shape and places >= 0 and all(isinstance(part.sets, int) for part in dependences):
        return Dependence((), dependences[int(places)].sets)
    matrices = [part.matrix(inputs) for part in dependences]
    if not places.shape and len(matrices) == 1 and places >= 0:
        begin, end = matrices[0].indptr[int(places) : int(places) + 2]
        return Dependence((), bits_of(matrices[0].indices[begin:end], inputs))
    empty = rows_of([np.zeros(0, np.int64)], inputs)  # the last row, at -1
    stacked = scipy_sparse().vstack([*matrices, empty], format="csr")
    chosen = np.where(places < 0, stacked.shape[0] - 1, places)
    return Dependence.of_matrix(places.shape, stacked[np.ravel(chosen)])
