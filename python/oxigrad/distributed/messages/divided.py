"""Gradients in parts, each of which another process adds up.

A parameter is cut along its first axis, so that its rows, and those of sparse gradients, stay whole; the parts have about as many bytes. A
message has the bytes of each part as a table of eight-byte integers, then each part as `GradientCodec` encodes it. Sums and means of parts are those of the
whole, to the bit, since every number is added up by itself.
"""

import itertools
from collections.abc import Mapping, Sequence
from typing import overload

import numpy as np

from oxigrad.distributed.errors import Refused
from oxigrad.distributed.messages.gradients import GradientCodec, Gradients, GradientSpec
from oxigrad.distributed.messages.message import size_of
from oxigrad.stepping.arrays.sparse_rows import SparseRows, as_array

_WORD = 8


class DividedCodec(GradientCodec):
    """Encodes and decodes gradients in ``count`` parts, of which `parts` has the codecs.

    >>> codec = DividedCodec({"w": np.ones((3, 2)), "b": np.ones(())}, 2)
    >>> from oxigrad.distributed.messages.message import as_bytes
    >>> table, *bufs = codec.encode({"w": np.arange(6.0).reshape(3, 2), "b": np.array(6.0)})
    >>> table, [part.digest != codec.digest for part in codec.parts]
    (array([40, 40]), [True, True])
    >>> codec.decode(np.concatenate([as_bytes(buffer) for buffer in (table, *bufs)]))
    {'w': array([[0., 1.],
           [2., 3.],
           [4., 5.]]), 'b': array(6.)}
    """

    parts: list[GradientCodec]

    def __init__(self, parameters: Mapping[str, np.ndarray], count: int, extra: str = "") -> None:
        super().__init__(parameters, f"{extra}\nin {count} parts")
        self._specs = {path: GradientSpec(array) for path, array in parameters.items()}
        #: The rows of the parameters of each part.
        self._rows = _cut(self._specs, count)
        self.parts = [
            GradientCodec(
                {path: _taken(parameters[path], span) for path, span in rows.items()},
                f"{extra}\npart {number} of {count}",
            )
            for number, rows in enumerate(self._rows)
        ]
        self.most_bytes: int = _WORD * count + sum(part.most_bytes for part in self.parts)

    def encode(self, gradients: Mapping[str, np.ndarray | SparseRows]) -> list[np.ndarray]:
        """See `GradientCodec.encode`."""
        encoded = [
            part.encode({path: _taken(gradients[path], span) for path, span in rows.items()})
            for part, rows in zip(self.parts, self._rows, strict=True)
        ]
        return [np.array([size_of(bufs) for bufs in encoded], np.int64), *itertools.chain.from_iterable(encoded)]

    def split(self, bufs: Sequence[np.ndarray]) -> list[list[np.ndarray]]:
        """The buffers of each part of what `encode` returns."""
        sizes, rest = bufs[0].tolist(), iter(bufs[1:])
        parts: list[list[np.ndarray]] = []
        for size in sizes:
            parts.append([])
            while size_of(parts[-1]) < size:
                parts[-1].append(next(rest))
        return parts

    def decode(self, payload: np.ndarray) -> Gradients:
        """See `GradientCodec.decode`; arrays that were cut are copied."""
        ends = payload[: _WORD * len(self.parts)]
        if ends.size < _WORD * len(self.parts):
            raise Refused("length", "a gradient has no table of its parts")
        table = [_WORD * len(self.parts), *ends.view(np.int64).tolist()]
        if min(table) < 0 or sum(table) != payload.size:
            raise Refused("length", f"a gradient has {payload.size} bytes: expected {sum(table)}")
        ends = itertools.accumulate(table)
        return self.joined(
            [
                part.decode(payload[start:end])
                for part, (start, end) in zip(self.parts, itertools.pairwise(ends), strict=True)
            ]
        )

    def joined(self, parts: Sequence[Gradients]) -> Gradients:
        """The gradients whose parts these are."""
        pieces: dict[str, list[np.ndarray | SparseRows]] = {path: [] for path in self._specs}
        starts: dict[str, list[int]] = {path: [] for path in self._specs}
        for rows, part in zip(self._rows, parts, strict=True):
            for path, span in rows.items():
                pieces[path].append(part[path])
                starts[path].append(span.start if span else 0)
        return {path: _joined(pieces[path], starts[path], spec) for path, spec in self._specs.items()}


def whole_payload(parts: Sequence[np.ndarray]) -> list[np.ndarray]:
    """The buffers of a message of parts of these bytes."""
    return [np.array([part.nbytes for part in parts], np.int64), *parts]


def _cut(specs: Mapping[str, GradientSpec], count: int) -> list[dict[str, slice | None]]:
    """The rows of each part; None of a parameter without rows, or without elements, which is in one part."""
    total, start = sum(spec.nbytes for spec in specs.values()), 0
    parts: list[dict[str, slice | None]] = [{} for _ in range(count)]
    for path, spec in specs.items():
        rows = spec.shape[0] if spec.shape and spec.nbytes else 1
        nbytes = spec.nbytes // rows
        for number, part in enumerate(parts):
            bounds = [total * each // count for each in (number, number + 1)]
            if number == count - 1:
                bounds[1] = total + 1
            first, last = (min(max(-(-(bound - start) // max(nbytes, 1)), 0), rows) for bound in bounds)
            if first < last:
                part[path] = slice(first, last) if spec.shape and spec.nbytes else None
        start += spec.nbytes
    return parts


@overload
def _taken(gradient: np.ndarray, rows: slice | None) -> np.ndarray: ...


@overload
def _taken(gradient: np.ndarray | SparseRows, rows: slice | None) -> np.ndarray | SparseRows: ...


def _taken(gradient: np.ndarray | SparseRows, rows: slice | None) -> np.ndarray | SparseRows:
    if rows is None:
        return gradient
    if not isinstance(gradient, SparseRows):
        return gradient[rows]
    first, last = np.searchsorted(gradient.indices, [rows.start, rows.stop])
    shape = (rows.stop - rows.start, *gradient.shape[1:])
    return SparseRows(gradient.indices[first:last] - rows.start, gradient.values[first:last], shape)


def _joined(
    pieces: Sequence[np.ndarray | SparseRows], starts: Sequence[int], spec: GradientSpec
) -> np.ndarray | SparseRows:
    if len(pieces) == 1:
        return pieces[0]
    sparse = [piece for piece in pieces if isinstance(piece, SparseRows)]
    if len(sparse) < len(pieces):
        return np.concatenate([as_array(piece) for piece in pieces])
    indices = np.concatenate([piece.indices + start for piece, start in zip(sparse, starts, strict=True)])
    return SparseRows(indices, np.concatenate([piece.values for piece in sparse]), spec.shape)
