"""Gradient trees as messages, and means of the gradients of several workers.

A message has a table of eight-byte integers: a number for each parameter, -1 for a dense gradient and otherwise the
number of rows of a sparse one. The dense gradients follow in flat buffers, one for each dtype, then indices and values
of each sparse one. Every part fills whole words of eight bytes. Gradients of parameters of half precision are sent in
float32.
"""

import functools
from collections.abc import Callable, Mapping
from itertools import chain, compress
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np

from oxigrad import SparseRows
from oxigrad.distributed.errors import Refused
from oxigrad.distributed.messages.message import Layout
from oxigrad.extend import as_array, dtype_name

HALVES = ("float16", "bfloat16")

Gradients: TypeAlias = dict[str, np.ndarray | SparseRows]
"""Gradients by key path."""

SparseMean: TypeAlias = Literal["replicas", "touches"]
"""The divisor of the sum of a row: the number of gradients, or the number of those that have the row."""

_WORD = 8


class GradientCodec:
    """Encodes and decodes gradients of parameters of known key paths, shapes and dtypes.

    >>> codec = GradientCodec({"w": np.ones((3, 2)), "b": np.ones(1, np.float32)})
    >>> from oxigrad.distributed.messages.message import as_bytes
    >>> rows = SparseRows([2], [[1.0, 2.0]], (3, 2))
    >>> bufs = codec.encode({"w": rows, "b": np.ones(1, np.float32)})
    >>> codec.decode(np.concatenate([as_bytes(buffer) for buffer in bufs]))
    {'w': SparseRows(array([2]), array([[1., 2.]]), (3, 2)), 'b': array([1.], dtype=float32)}
    """

    digest: bytes
    most_bytes: int

    def __init__(self, parameters: Mapping[str, Any], extra: str = "") -> None:
        self._arrays = specs = {path: GradientSpec.of(array) for path, array in parameters.items()}
        #: The layout of the dense gradients, by their key paths.
        self._layout: Callable[[tuple[str, ...]], Layout] = functools.lru_cache(64)(
            lambda dense: Layout({path: specs[path] for path in dense})
        )
        whole = Layout(self._arrays, extra)
        self.digest = whole.digest
        rows = sum(spec.shape[0] for spec in self._arrays.values() if spec.shape)
        #: The bytes of the largest message.
        self.most_bytes = _WORD * (len(self._arrays) + len(whole.dtypes) + 2 * rows) + whole.nbytes

    def encode(self, gradients: Mapping[str, np.ndarray | SparseRows], *, copy: bool = False) -> list[np.ndarray]:
        """The buffers of a message: without ``copy``, they may be views of the gradients."""
        table = np.full(len(self._arrays), -1, np.int64)
        dense: dict[str, np.ndarray] = {}
        rest: list[np.ndarray] = []
        for number, (path, spec) in enumerate(self._arrays.items()):
            gradient = gradients[path]
            if isinstance(gradient, SparseRows):
                table[number] = len(gradient.indices)
                values = np.ascontiguousarray(gradient.values, spec.dtype).reshape(-1)
                rest += [np.ascontiguousarray(gradient.indices, np.int64), *padded(values)]
            else:
                dense[path] = np.asarray(gradient, spec.dtype)
        layout = self._layout(tuple(dense))
        packed = layout.pack(dense, layout.empty() if copy else None)
        return [table, *chain.from_iterable(map(padded, packed)), *rest]

    def decode(self, payload: np.ndarray) -> Gradients:
        """The gradients of a payload of bytes, as views.

        Raises `Refused` for a payload that is not of these parameters.
        """
        reader = Reader(payload)
        table = reader.take(np.dtype(np.int64), len(self._arrays))
        layout = self._layout(tuple(compress(self._arrays, table == -1)))
        views = layout.views([*map(reader.take, layout.dtypes, layout.sizes)])
        gradients: Gradients = {}
        for (path, spec), count in zip(self._arrays.items(), table.tolist(), strict=True):
            gradients[path] = views[path] if count == -1 else _rows(reader, path, spec, count)
        if reader.data.size:
            raise Refused("length", f"a gradient has {reader.data.size} bytes too many")
        return gradients


class GradientSpec(NamedTuple):
    """Shape and dtype of the gradient of a parameter."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]

    @classmethod
    def of(cls, array: Any) -> "GradientSpec":
        """The spec of the gradient of a parameter: float32 for one of half precision."""
        name = dtype_name(array.dtype)
        return cls(tuple(array.shape), np.dtype(np.float32 if name in HALVES else name))  # in native byte order

    @property
    def size(self) -> int:
        """The number of elements."""
        return int(np.prod(self.shape, dtype=np.int64))

    @property
    def nbytes(self) -> int:
        """The bytes of a dense gradient."""
        return self.dtype.itemsize * self.size


class Reader:
    """Takes arrays from bytes, one after the other."""

    def __init__(self, data: np.ndarray) -> None:
        #: The bytes that are left.
        self.data: np.ndarray = data

    def take(self, dtype: np.dtype, count: int) -> np.ndarray:
        """The next array, with the bytes that pad it skipped."""
        size = count * dtype.itemsize
        whole = -(-size // _WORD) * _WORD
        if whole > self.data.size:
            raise Refused("length", f"a gradient ends {whole - self.data.size} bytes too early")
        taken, self.data = self.data[:size], self.data[whole:]
        return taken.view(dtype)

    def rest(self, size: int) -> np.ndarray:
        """The next bytes, which are not padded."""
        if not 0 <= size <= self.data.size:
            raise Refused("length", f"a message ends {size - self.data.size} bytes too early")
        taken, self.data = self.data[:size], self.data[size:]
        return taken


def _rows(reader: Reader, path: str, spec: GradientSpec, count: int) -> SparseRows:
    if not spec.shape or not 0 <= count <= spec.shape[0]:
        raise Refused("rows", f"{path}: a gradient has {count} rows: expected at most {spec.shape[:1]}")
    indices = reader.take(np.dtype(np.int64), count)
    values = reader.take(spec.dtype, count * int(np.prod(spec.shape[1:], dtype=np.int64)))
    if count and not (indices[0] >= 0 and indices[-1] < spec.shape[0] and np.all(indices[1:] > indices[:-1])):
        raise Refused("rows", f"{path}: the rows of a gradient are not in order or not in 0 to {spec.shape[0] - 1}")
    return SparseRows(indices, values.reshape(count, *spec.shape[1:]), spec.shape)


def padded(buffer: np.ndarray) -> list[np.ndarray]:
    """A buffer, and the zeros that fill its last word."""
    missing = -buffer.nbytes % _WORD
    return [buffer, np.zeros(missing, np.uint8)] if missing else [buffer]


class RunningMean:
    """The weighted sum of gradients, added in the order in which they come, and its quotient by their number.

    With ``sparse_mean="touches"``, the sum of each row of a sparse gradient is divided by the number of gradients that
    have the row, as TensorFlow 1 did (tensorflow/core/kernels/sparse_conditional_accumulator.h at e0807946). The dense
    arrays of the first gradient become the sum. Sparse gradients have unique indices in order.

    >>> mean = RunningMean()
    >>> for gradient in ([1.0, 2.0], [5.0, 4.0]):
    ...     mean.add({"w": np.array(gradient)})
    >>> mean.count, mean.result()
    (2, {'w': array([3., 3.])})
    """

    count: int

    def __init__(self, sparse_mean: SparseMean = "replicas") -> None:
        self.sparse_mean: SparseMean = sparse_mean
        self.count = 0
        self._sums: Gradients = {}
        #: The number of gradients that have each row.
        self._touches: dict[str, SparseRows] = {}

    def add(self, gradients: Gradients, weight: float = 1.0) -> None:
        """Adds the gradients of a worker, multiplied by a weight; dense arrays are written to."""
        for path, gradient in gradients.items():
            if self.sparse_mean == "touches" and isinstance(gradient, SparseRows):
                ones = SparseRows(gradient.indices, np.ones(len(gradient.indices)), gradient.shape[:1])
                self._touches[path] = (self._touches[path] + ones).coalesce() if path in self._touches else ones
            scaled = gradient if weight == 1.0 else _scaled(gradient, weight)
            self._sums[path] = _added(self._sums[path], scaled) if self.count else scaled
        self.count += 1

    def result(self) -> Gradients:
        """The mean, in the memory of the sum."""
        return {path: self._mean(path, total) for path, total in self._sums.items()}

    def _mean(self, path: str, total: Any) -> Any:
        if not isinstance(total, SparseRows):
            return np.divide(total, total.dtype.type(self.count), out=total) if self.count > 1 else total
        divisor: Any = self.count
        if path in self._touches:
            divisor = self._touches[path].values.reshape(-1, *(1,) * (total.values.ndim - 1))
        return SparseRows(total.indices, total.values / np.asarray(divisor, total.values.dtype), total.shape)


def _scaled(gradient: Any, weight: float) -> Any:
    factor = gradient.dtype.type(weight)
    if isinstance(gradient, SparseRows):
        return SparseRows(gradient.indices, gradient.values * factor, gradient.shape)
    return np.multiply(gradient, factor, out=gradient)


def _added(total: Any, gradient: Any) -> Any:
    if isinstance(total, SparseRows) and isinstance(gradient, SparseRows):
        return (total + gradient).coalesce()
    dense = as_array(total)
    return np.add(dense, as_array(gradient), out=dense)
