"""In-place functions of NumPy as assignments: ``out=``, ``ufunc.at``, `numpy.put` and related functions.

Assignment binds the variable to a new array; see `oxigrad.ops.core.indexed_update`. Writing a variable to a plain array
raises an error, since its derivative would be lost.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from oxigrad._core import DerivativeError, DtypeError, ShapeError, Variable, plain
from oxigrad._typing import Array, Function, Key, Results
from oxigrad.ops.backends import (
    batched_of,
    device_of,
    has_derivative,
    has_variable,
    is_array,
    is_of_vmap,
    namespace,
    strip,
)
from oxigrad.ops.core import primitives as ops
from oxigrad.ops.core import standard
from oxigrad.ops.core.indexed_update import At
from oxigrad.ops.core.shapes import position

# --- out= -------------------------------------------------------------------------------------------------------------


def written(called: str, result: Array, out: Any, *, broadcasts: bool = False) -> Results:
    """Assigns the result of the function ``called`` to ``out``, and returns ``out``.

    The result is cast by NumPy's rule ``casting="same_kind"``. With ``broadcasts``, as for ufuncs, it is broadcast to
    the shape of ``out``. ``out`` is a tuple if the function has several results. For an item that is None the result
    itself is returned.

    Raises `DerivativeError` if the result is a variable and ``out`` a plain array. Raises `ShapeError` or `DtypeError`
    if the result cannot be broadcast or cast to ``out``.
    """
    if isinstance(out, tuple):
        results = result if isinstance(result, tuple) else (result,)
        pairs = zip(results, out, strict=True)
        each = [part if to is None else written(called, part, to, broadcasts=broadcasts) for part, to in pairs]
        return each[0] if len(each) == 1 else tuple(each)
    check_target(f"{called} with out=", out, result)
    shape, expected = tuple(getattr(result, "shape", ())), tuple(out.shape)
    fits = np.broadcast_shapes(shape, expected) == expected if broadcasts else shape == expected
    if not fits:
        raise ShapeError(f"{called}: found out of shape {expected}, expected {shape}, the shape of the result")
    check_cast(called, result, out, "same_kind")
    out[...] = result
    return out


def written_where(called: str, ufunc: Function, inputs: Sequence[Array], where: Array, out: Any) -> Results:
    """``ufunc(*inputs, out=out, where=where)``: derivatives flow only through the selected elements."""
    (out,) = out
    inputs = [_array(x, out) if isinstance(x, (list, tuple)) else x for x in inputs]
    check_target(f"{called} with out=", out, (*inputs, where))
    if is_of_vmap(plain(where)):
        return written(called, ops.where(where, ufunc(*inputs), out), out, broadcasts=True)
    where = np.asarray(plain(where))
    shape = np.broadcast_shapes(where.shape, out.shape, *(tuple(getattr(x, "shape", ())) for x in inputs))
    if shape != tuple(out.shape):
        raise ShapeError(f"{called}: found out of shape {tuple(out.shape)}, expected {shape}, the shape of the result")
    mask = np.broadcast_to(where, shape)
    chosen = _indices(np.flatnonzero(mask), out)
    result = ufunc(*(masked(ops.broadcast_to(x, shape), mask)[chosen] if is_array(plain(x)) else x for x in inputs))
    check_cast(called, result, out, "same_kind")
    out[chosen] = result
    return out


def masked(x: Array, mask: np.ndarray) -> Array:
    """``x``, whose derivatives flow only through the mask, also behind infinite ones."""
    return ops.where(of_library(mask, x), x, plain(x)) if isinstance(x, Variable) else x


def check_target(called: str, target: Array, values: Array) -> None:
    """Raises `DerivativeError` if a variable would be written to a plain array; ``target`` may be a 1-tuple."""
    if isinstance(target, tuple):
        (target,) = target
    if not is_array(plain(target)):
        raise TypeError(f"{called}: found {type(plain(target)).__name__}, expected an array to write to")
    if isinstance(target, Variable):
        return
    if is_of_vmap(target):
        raise TypeError(f"vmap: {called} would write to a batched value, which is immutable: use x.at[key].set(value)")
    if batched_of((values,)) is not None:
        raise TypeError(
            f"vmap: {called} would write a batched value to an array that is the same for all examples: use "
            "xp.at(array)[key].set(value), which makes a new array"
        )
    if has_derivative((values,)):
        raise DerivativeError(
            f"{called} would write a variable to a plain array, which loses its derivative: use the result "
            "(a = a + x instead of a += x), or xp.at(array)[key].set(value), which makes a new array"
        )


def check_cast(called: str, value: Any, target: Array, casting: Any) -> None:
    """Raises `DtypeError` if NumPy's rule ``casting`` forbids a cast of ``value`` to the dtype of ``target``."""
    dtype, expected = getattr(value, "dtype", None), target.dtype
    if isinstance(dtype, np.dtype) and isinstance(expected, np.dtype) and not np.can_cast(dtype, expected, casting):
        raise DtypeError(f"{called}: values of dtype {dtype} cannot be cast to {expected} with casting={casting!r}")


# --- ufunc.at ---------------------------------------------------------------------------------------------------------


def ufunc_at(called: str, ufunc: np.ufunc, target: Array, key: Key, *operands: Array) -> None:
    """``ufunc.at(target, key, *operands)``: repeated elements of the key are updated repeatedly."""
    if not isinstance(target, Variable):
        check_target(called, target, operands)
        return ufunc.at(target, strip(key), *map(strip, operands))
    if ufunc in (np.add, np.subtract):
        place = At(target)[key]
        target[...] = place.add(*operands) if ufunc is np.add else place.subtract(*operands)
        return None
    key = tuple(map(plain, key)) if isinstance(key, tuple) else plain(key)
    named = np.arange(_size(target)).reshape(target.shape)[key]
    elements = np.ravel(named)
    operands = tuple(_flat(operand, named.shape) for operand in operands)
    turns = _occurrences(elements)
    for turn in range(int(turns.max(initial=-1)) + 1):
        now = np.flatnonzero(turns == turn)
        chosen = _indices(elements[now], target)
        target[chosen] = ufunc(target[chosen], *(operand[of_library(now, target)] for operand in operands))
    return None


def _occurrences(elements: np.ndarray) -> np.ndarray:
    """The number of earlier occurrences of each element."""
    order = np.argsort(elements, stable=True)
    ordered = elements[order]
    before = np.empty_like(order)
    before[order] = np.arange(elements.size) - np.searchsorted(ordered, ordered)
    return before


# --- functions --------------------------------------------------------------------------------------------------------


def _copyto(dst: Array, src: Array, casting: str = "same_kind", where: Array = True) -> None:
    src = _array(src, dst)
    check_cast("np.copyto", src, dst, casting)
    dst[...] = src if where is True else ops.where(of_library(np.asarray(plain(where), dtype=bool), dst), src, dst)


def _put(a: Array, ind: Array, v: Array, mode: str = "raise") -> None:
    elements, size = np.ravel(np.asarray(plain(ind))), _size(a)
    if mode == "raise" and elements.size and not (-size <= elements.min() and elements.max() < size):
        raise IndexError(f"np.put: an index is out of bounds for an array of {size} elements")
    elements = np.clip(elements, 0, size - 1) if mode == "clip" else elements % max(size, 1)
    _assign(a, elements, v, np.arange(elements.size))


def _chosen(called: str, array: Array, mask: Array) -> np.ndarray:
    """The flat indices of the elements that a mask selects."""
    mask = np.asarray(plain(mask), dtype=bool)
    if mask.size != _size(array):
        raise ShapeError(
            f"{called}: found a mask of shape {mask.shape}, expected {tuple(array.shape)}, the shape of the array"
        )
    return np.flatnonzero(mask)


def _place(arr: Array, mask: Array, vals: Array) -> None:
    elements = _chosen("np.place", arr, mask)
    if elements.size and not _size(_array(vals, arr)):
        raise ValueError("np.place: found no values")
    _assign(arr, elements, vals, np.arange(elements.size))


def _putmask(a: Array, mask: Array, values: Array) -> None:
    elements = _chosen("np.putmask", a, mask)
    _assign(a, elements, values, elements)


def _fill_diagonal(a: Array, val: Array, wrap: bool = False) -> None:
    shape = tuple(a.shape)
    if len(shape) < 2 or (len(shape) > 2 and len(set(shape)) > 1):
        raise ShapeError(f"np.fill_diagonal: found shape {shape}, expected a matrix, or an array with equal sizes")
    step = 1 + sum(int(np.prod(shape[axis:])) for axis in range(1, len(shape)))
    end = shape[1] ** 2 if len(shape) == 2 and not wrap else None
    elements = np.arange(_size(a))[:end:step]
    _assign(a, elements, val, np.arange(elements.size))


def _put_along_axis(arr: Array, indices: Array, values: Array, axis: int | None) -> None:
    indices = np.asarray(plain(indices))
    shape = (_size(arr),) if axis is None else tuple(arr.shape)
    axis = position(0 if axis is None else axis, len(shape))
    if indices.ndim != len(shape):
        raise ShapeError(
            f"np.put_along_axis: found indices of {indices.ndim} dimensions, expected {len(shape)}, as the array has"
        )
    if indices.size and not (-shape[axis] <= indices.min() and indices.max() < shape[axis]):
        raise IndexError(f"np.put_along_axis: an index is out of bounds for axis {axis} of size {shape[axis]}")
    others = np.ogrid[tuple(slice(size) for size in shape)]
    key = [indices % max(shape[a], 1) if a == axis else other for a, other in enumerate(others)]
    elements = np.ravel_multi_index(tuple(key), shape)
    _assign(arr, np.ravel(elements), _flat(_array(values, arr), elements.shape), np.arange(elements.size))


# Functions of NumPy that write to their first argument.
_FUNCTIONS: dict[str, Callable[..., None]] = {
    "copyto": _copyto,
    "fill_diagonal": _fill_diagonal,
    "place": _place,
    "put": _put,
    "put_along_axis": _put_along_axis,
    "putmask": _putmask,
}


def writing(function: Any) -> Callable[..., None] | None:
    """The differentiable form of a NumPy function that writes to its first argument; None for any other function."""
    form = _FUNCTIONS.get(function.__name__)
    if form is None or getattr(np, function.__name__, None) is not function:
        return None

    def called(*args: Any, **named: Any) -> None:
        target, *others = (*args, *named.values())
        if isinstance(target, Variable):
            return form(*args, **named)
        check_target(f"np.{function.__name__}", target, others)
        return function(*map(strip, args), **{key: strip(value) for key, value in named.items()})

    return called


def _assign(target: Array, elements: np.ndarray, values: Array, which: np.ndarray) -> None:
    """Assigns value ``which[i]`` to element ``elements[i]`` of the flattened target; the values are repeated as needed.

    The last of several values for one element is assigned.
    """
    values = _array(values, target)
    count = _size(values)
    if not elements.size or not count:
        return
    last = elements.size - 1 - np.unique(elements[::-1], return_index=True)[1]
    chosen = of_library(which[last] % count, target)
    target[_indices(elements[last], target)] = ops.index(ops.ravel(values), chosen)


def _indices(elements: np.ndarray, like: Array) -> tuple[Array, ...]:
    """The index arrays of elements, given by position in the flattened array; a mask of an array without dimensions."""
    if not like.shape:
        return (of_library(np.asarray(elements.size > 0), like),)
    return tuple(of_library(part, like) for part in np.unravel_index(elements, tuple(like.shape)))


def of_library(values: np.ndarray, like: Array) -> Array:
    """Numbers, indices or a mask as an array of the library and on the device of ``like``."""
    library = namespace(plain(like))
    if library is np:
        return values
    # PyTorch warns of arrays that are read-only, such as repeated ones.
    writable = values if values.flags.writeable else values.copy()
    return library.asarray(writable, device=device_of(plain(like)))


def of_examples(values: np.ndarray, like: Array) -> Array:
    """As `of_library`, for ``values`` with a leading axis per enclosing `vmap` of ``like``, outermost first."""
    bare = plain(like)
    return type(bare).of(bare.level, of_examples(values, bare.value)) if is_of_vmap(bare) else of_library(values, bare)


def _array(value: Any, like: Array) -> Array:
    """The value as an array, of the library of ``like`` if it is a number or a list."""
    if is_array(plain(value)) or (isinstance(value, Variable) and not value.shape):
        return value if is_array(plain(value)) else standard.asarray([value])
    if has_variable((value,)):
        return standard.asarray(value)
    return namespace(plain(like)).asarray(value, device=device_of(plain(like)))


def _flat(value: Any, shape: tuple[int, ...]) -> Array:
    """The value broadcast to a shape, then flattened."""
    return ops.ravel(ops.broadcast_to(value if is_array(plain(value)) else standard.asarray([value]), shape))


def _size(x: Array) -> int:
    return int(np.prod(tuple(x.shape)))
