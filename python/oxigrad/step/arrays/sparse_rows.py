"""Sparse gradients, which are zero except in some rows of a table, such as those of embeddings.

An optimizer's option ``sparse`` selects one of three treatments:

* "dense": the step of the dense gradient, whose other rows are zeros. Slots decay and rows move everywhere, to the same
  numbers, so that it costs what a dense step does. It is the default: the representation of a gradient changes no
  result.
* "lazy": the rows that are touched, and their slots, are updated as by a dense step, bias correction by the step of the
  optimizer; no other row changes (torch's SparseAdam, TensorFlow's LazyAdam). What the step costs grows with the rows
  touched.
* "catch_up": as "lazy", but first the slots of a touched row are multiplied by what the steps that skipped it would
  have multiplied them by: their decay, to the power of the number of steps, which the slot `LAST_STEP` gives.

Sums over a leaf (the norms of LAMB, of clipping) and totals over all of them are over the rows that are touched: for
gradients, which are zero elsewhere, this is exact; for "lazy" and "catch_up", norms of parameters and of updates are
those of the touched rows.

The core receives rows as buffers. `oxigrad.step.writes.touch` coalesces a gradient: its values, with repeated rows
added up, take the gradient's place, and its indices, in increasing order, go to the core as the touched rows. The
buffers of the parameter and its slots are then these rows of the tables (``Buffer::of_rows`` in
``rust/core/src/array/buffer.rs``): the leaf of the kernel is the rows, and the kernel is that of a dense step. Random
numbers are counted by the element's position in the table. With "catch_up", the kernel also takes one factor per row
for each slot, which Python computes from the slot `LAST_STEP`.
"""

import operator
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from oxigrad import xp
from oxigrad._core import ArrayMemoryError, DtypeError, ShapeError, plain
from oxigrad.ops.backends import (
    REFUSALS,
    adapter_of,
    fetched,
    has_variable,
    is_array,
    is_of_kind,
    namespace,
    refuse_masked_or_units,
    size_of,
    standard_namespace,
    to_host,
    widest_float,
)
from oxigrad.ops.core import primitives

FAMILIES = ("dense", "lazy", "catch_up")
# The slot of the step in which each row was last updated.
LAST_STEP = "last-step"


class SparseRows:
    """A gradient of an array of ``shape`` that is zero except in the rows ``indices``, where it is ``values``.

    Args:
        indices: row numbers, one axis of integers; a number may occur repeatedly.
        values: rows of the gradient, of shape ``(len(indices), *shape[1:])``.
        shape: shape of the whole array.

    ``indices`` is one axis of integers, from 0 to below ``shape[0]``, in any order; values of the same index are added
    up. ``values`` has the shape ``(len(indices), *shape[1:])`` and the dtype of the parameter. In a tree it is one
    leaf.

    Raises `ShapeError`, `DtypeError` or `IndexError`. The range of traced indices, as under
    ``jax.jit``, is not checked.

    For such a gradient of a lookup, differentiate with respect to the rows that were looked up, not to the table.

    >>> import oxigrad as ox
    >>> model = {"table": np.zeros((1000, 2)), "scale": np.ones(2)}
    >>> ids = np.array([7, 3, 7])
    >>> def loss(rows, scale):
    ...     return ox.xp.sum(rows * scale + rows)
    >>> rows, scale = ox.grad(loss, argnums=(0, 1))(model["table"][ids], model["scale"])
    >>> opt = ox.optim.Adam(learning_rate=0.5, sparse="lazy")
    >>> model = opt.update(model, {"table": SparseRows(ids, rows, (1000, 2)), "scale": scale})
    >>> model["table"][[3, 7, 9]]
    array([[-0.5, -0.5],
           [-0.5, -0.5],
           [ 0. ,  0. ]])
    """

    indices: Any
    shape: tuple[int, ...]
    values: Any

    __slots__ = ("indices", "shape", "values")
    __array_ufunc__ = None  # so that `array + SparseRows` of NumPy's arrays calls `__radd__`

    def __init__(self, indices: Any, values: Any, shape: tuple[int, ...]) -> None:
        self.values = values if is_array(values) else np.asarray(values, np.float64)
        self.indices = _as_indices(indices, self.values)
        self.shape = tuple(map(operator.index, shape))
        refuse_masked_or_units(self.values, "SparseRows: the argument values")
        self.shape = tuple(map(int, shape))
        self._check()

    @classmethod
    def _checked(cls, indices: Any, values: Any, shape: tuple[int, ...]) -> "SparseRows":
        """Makes an object without checks, of parts that were checked before."""
        rows = cls.__new__(cls)
        rows.indices, rows.values, rows.shape = indices, values, shape
        return rows

    def _check(self) -> None:
        if not self.shape:
            raise ShapeError("the shape is (): expected that of a table, whose first axis counts its rows")
        library = standard_namespace(self.indices)
        if not is_of_kind(self.values.dtype, "real floating", namespace(self.values)):
            raise DtypeError(f"values have dtype {self.values.dtype}: expected a real floating-point dtype")
        if why := adapter_of(self.indices).unreadable(self.indices):
            raise ArrayMemoryError(f"SparseRows: the indices are {why}")
        if len(self.indices.shape) != 1:
            raise ShapeError(f"indices have shape {tuple(self.indices.shape)}: expected one axis")
        expected = (self.indices.shape[0], *self.shape[1:])
        if tuple(self.values.shape) != expected:
            raise ShapeError(f"values have shape {tuple(self.values.shape)}: expected {expected}")
        outside = (self.indices < 0) | (self.indices >= self.shape[0])
        if _truth(library.any(outside)):
            at = int(fetched(library.argmax(library.astype(outside, library.int32))))
            index, last = int(fetched(self.indices[at])), self.shape[0] - 1
            raise IndexError(
                f"indices[{at}] is {index}: expected 0 to {last}, the rows of an array of shape {self.shape}"
            )

    @property
    def dtype(self) -> Any:
        """The dtype of the values."""
        return self.values.dtype

    def coalesce(self) -> "SparseRows":
        """The same gradient with unique row indices in increasing order: values of the same index are added up.

        With traced indices, a repeated row stays repeated, each time with the sum.

        >>> SparseRows([4, 1, 4], [[1.0], [2.0], [3.0]], (5, 1)).coalesce()
        SparseRows(array([1, 4]), array([[2.], [4.]]), (5, 1))
        """
        library, indices = standard_namespace(self.indices), self.indices
        if indices.shape[0] < 2:
            return self
        grows = library.all(indices[1:] > indices[:-1])
        if _truth(grows):
            return self
        order = library.argsort(indices, stable=True)
        indices, values = library.take(indices, order), xp.take(self.values, order, axis=0)
        if _truth(grows) is None:
            return self._checked(indices, _sums_spread(library, indices, values), self.shape)
        is_new = indices[1:] != indices[:-1]
        if _truth(library.all(is_new)):
            return self._checked(indices, values, self.shape)
        is_first = library.concat([library.ones_like(is_new[:1]), is_new])
        return self._checked(
            adapter_of(indices).op_index(indices, key=is_first), _sums(library, is_first, values), self.shape
        )

    def map(self, f: Callable[[Any], Any]) -> "SparseRows":
        """The rows with ``f`` applied to indices and values, such as a copy."""
        return self._checked(f(self.indices), f(self.values), self.shape)

    def todense(self) -> Any:
        """The gradient as an array of ``shape``.

        >>> SparseRows([2, 0], [1.0, 2.0], (3,)).todense()
        array([2., 0., 1.])
        """
        rows = self.coalesce()
        device = _device_of(self.values)
        zeros = namespace(self.values).zeros(self.shape, dtype=self.dtype, device=device)
        if isinstance(zeros, np.ndarray) and not has_variable((self.values,)):
            zeros[rows.indices] = rows.values
            return zeros
        return put_rows(zeros, rows.indices, rows.values)

    def __add__(self, other: Any) -> Any:
        """The sum of two gradients: of rows, or, with an array, an array."""
        if not isinstance(other, SparseRows):
            if isinstance(other, int) and other == 0:  # the start value of `sum`
                return self
            return self.todense() + other if is_array(other) else NotImplemented
        if other.shape != self.shape:
            raise ShapeError(f"rows of an array of shape {other.shape} are added to those of one of {self.shape}")
        library = standard_namespace(self.indices)
        indices = library.concat([self.indices, library.astype(other.indices, self.indices.dtype)])
        return SparseRows(indices, xp.concat([self.values, other.values]), self.shape)

    __radd__ = __add__

    def __repr__(self) -> str:
        indices, values = (" ".join(repr(array).split()) for array in (self.indices, self.values))
        return f"SparseRows({indices}, {values}, {self.shape})"


def _as_indices(indices: Any, values: Any) -> Any:
    """Indices in the array library of the values, of its default integer dtype."""
    library, device = standard_namespace(values), _device_of(values)
    if not is_array(indices):
        indices = np.asarray(indices, np.int64)
    refuse_masked_or_units(indices, "SparseRows: the argument indices")
    if standard_namespace(indices) is not library:
        indices = library.asarray(indices, device=device)
    if not library.isdtype(indices.dtype, "integral"):
        raise DtypeError(f"indices have dtype {indices.dtype}: expected integers")
    dtype = library.__array_namespace_info__().default_dtypes(device=device)["integral"]
    return indices if indices.dtype == dtype else library.astype(indices, dtype)


def _device_of(array: Any) -> Any:
    """The device of an array; None, the default device of its library, while it is traced."""
    return getattr(plain(array), "device", None)


def _truth(array: Any) -> bool | None:
    """Whether an array of one element is true; None where it is traced, as under ``jax.jit``, or lazy."""
    if adapter_of(array).is_lazy:
        return None
    for look in (plain, fetched):
        try:
            return bool(look(array))
        except RecursionError:
            raise
        except REFUSALS:  # on a device, or traced
            continue
    return None


def _sums(library: Any, is_first: Any, values: Any) -> Any:
    """The sums of runs of neighbours; `is_first` marks the start of each run."""
    group = library.cumulative_sum(library.astype(is_first, library.int64)) - 1
    count, rest = int(fetched(group[-1])) + 1, tuple(values.shape[1:])
    if not isinstance(values, np.ndarray):
        return primitives.scatter_add(values, (group, ...), (count, *rest))
    sums = values[is_first]  # NumPy adds at flat places in a tenth of the time that it takes for rows
    width, others = size_of(rest), ~is_first
    places = group[others, None] * width + np.arange(width)
    np.add.at(sums.reshape(-1), places.reshape(-1), values[others].reshape(-1))
    return sums


def _sums_spread(library: Any, indices: Any, values: Any) -> Any:
    """The sum of all values of the same index, at each of its positions; indices are sorted."""
    width, count = 1, indices.shape[0]
    while width < count:
        same = like_column(indices[width:] == indices[:-width], values.shape)
        later = values[width:, ...]
        added = xp.where(same, later, xp.zeros_like(later))
        values = xp.concat([values[:-width, ...] + added, values[-width:, ...]])
        width *= 2
    return xp.take(values, library.searchsorted(indices, indices), axis=0)


def like_column(numbers: Any, shape: tuple[int, ...]) -> Any:
    """One number for each row of an array of this shape, so that they broadcast to it."""
    return xp.reshape(numbers, (numbers.shape[0], *(1,) * (len(shape) - 1)))


def put_rows(array: Any, indices: Any, rows: Any) -> Any:
    """A new array with other rows at these indices, which are in order; equal ones must have equal rows."""
    native = adapter_of(array).put_rows
    if native is not None and not has_variable((array, rows)):
        return native(array, indices, rows)
    if not indices.shape[0]:
        return array
    library = standard_namespace(indices)
    wanted = library.arange(array.shape[0], dtype=indices.dtype, device=_device_of(indices))
    place = library.clip(library.searchsorted(indices, wanted), max=indices.shape[0] - 1)
    touched = library.take(indices, place) == wanted
    return xp.where(like_column(touched, array.shape), xp.take(rows, place, axis=0), array)


def factors(decays: Mapping[str, Any], last: Any, taken: Any) -> dict[str, Any]:
    """The factors of the slots of rows last updated in the steps ``last``, where ``taken`` steps have been taken."""
    library = standard_namespace(last)
    skipped = library.astype(taken - last, widest_float(library, _device_of(last)))
    with np.errstate(under="ignore"):
        return {name: decay**skipped for name, decay in decays.items()}


def caught_up(decays: Mapping[str, Any], last: Any, rows: Any, taken: int, shape: tuple[int, ...]) -> list[Any]:
    """The factors of each slot that catches up, which broadcast to the ``rows`` of a parameter; None for all rows.

    ``last`` is the slot `LAST_STEP`, None where there is none, and nothing decays; ``taken`` is the number of steps
    taken.
    """
    if last is None:
        return [np.ones(()) for _ in decays]
    by_slot = factors(decays, last if rows is None else last[rows], taken)
    return [like_column(factor, shape) for factor in by_slot.values()]


def touched_rows(
    g: Any, decays: Mapping[str, Any], last: Any, taken: int, shape: tuple[int, ...]
) -> tuple[Any, Any, list[Any]]:
    """The values of a gradient as the core reads them, its rows (None for all), and the factors by `caught_up`."""
    rows = None
    if isinstance(g, SparseRows):
        g = g.map(to_host).coalesce()
        g, rows = g.values, g.indices
    return g, rows, caught_up(decays, last, rows, taken, shape)


def as_array(gradient: Any) -> Any:
    """The gradient as an array, where it is `SparseRows`; another one as it is."""
    return gradient.todense() if isinstance(gradient, SparseRows) else gradient
