"""Indexed updates: ``x.at[key].set(value)`` and related methods, and assignment to elements of a variable.

Assignment to a variable, ``x[key] = value`` or ``x += y``, writes to no array. The tape records an entry for the new
array, ``x.at[key].set(value)``. From then on the variable object refers to that entry. ``x[key] += y`` changes the view
``x[key]`` and assigns it back.

Views do not see such a change. The tape therefore has one counter of changes for all variables that would share memory
if the program ran on plain arrays (``rust/core/src/autodiff/aliasing.rs`` lists the ops whose results may be views). A
variable whose count is behind is stale: reading it raises `ArrayMemoryError`. A tape keeps the entries of variables of
enclosing tapes at the time of reading. Functions that write to an argument, and ``out=``, are assignments too
(`oxigrad.ops.core.in_place`).
"""

from collections.abc import Callable
from typing import Any

from oxigrad._core import DtypeError, ShapeError, plain
from oxigrad._typing import Array, Key
from oxigrad.ops.backends import device_of, has_variable, is_array, is_complex, namespace, on_host
from oxigrad.ops.core import primitives, standard


class At:
    """The property ``x.at``: ``x.at[key]`` is an `IndexedUpdate`, for every kind of key that indexing takes.

    >>> import numpy as np
    >>> import oxigrad as ox
    >>> ox.grad(lambda x: ox.xp.sum(x.at[1].set(5.0) ** 2))(np.array([1.0, 2.0, 3.0]))
    array([2., 0., 6.])
    """

    def __init__(self, x: Array) -> None:
        self._x = x

    def __getitem__(self, key: Key) -> "IndexedUpdate":
        """The elements of ``x`` at ``key``, as an `IndexedUpdate`."""
        return IndexedUpdate(self._x, key)


class IndexedUpdate:
    """The elements of an array at a key, with methods that return an updated copy.

    The copy has the same dtype; values are broadcast to the elements. Repeated elements accumulate in `add` and
    `subtract`. The other methods raise `ValueError` for repeated elements. The exceptions are a scalar value, and
    arrays on a device, where the check would synchronize: there the result is the sum of the values. Raises
    `DtypeError` if complex values would be assigned to a real array.
    """

    def __init__(self, x: Array, key: Key) -> None:
        self._x = x
        self._key = tuple(map(plain, key)) if isinstance(key, tuple) else plain(key)

    def get(self) -> Array:
        """``x[key]``."""
        return primitives.index(self._x, self._key)

    def set(self, value: Array) -> Array:
        """``x`` with its elements at the key replaced by ``value``."""
        part = namespace(self._x).ones_like(plain(self.get()))
        touched = primitives.scatter_add(part, self._key, self._x.shape)
        if not isinstance(value, (list, tuple)) and not getattr(plain(value), "shape", ()):
            return primitives.where(touched > 0, _cast_like(value, self._x), self._x)
        if on_host(touched) and bool(namespace(touched).any(touched > 1)):
            raise ValueError(
                "found a key with repeated elements, for which set is not defined: expected each element once"
            )
        return primitives.where(touched > 0, self._scattered(value), self._x)

    def add(self, value: Array) -> Array:
        """``x`` with ``value`` added at the key."""
        return self._x + self._scattered(value)

    def subtract(self, value: Array) -> Array:
        """``x`` with ``value`` subtracted at the key."""
        return self._x - self._scattered(value)

    def multiply(self, value: Array) -> Array:
        """``x`` with its elements at the key multiplied by ``value``."""
        return self.apply(lambda part: part * value)

    def divide(self, value: Array) -> Array:
        """``x`` with its elements at the key divided by ``value``."""
        return self.apply(lambda part: part / value)

    def apply(self, f: Callable[[Any], Any]) -> Array:
        """``x`` with its elements at the key replaced by ``f`` of them."""
        return self.set(f(self.get()))

    def _scattered(self, value: Array) -> Array:
        part = plain(self.get())
        value = _cast_like(value, self._x)
        if not is_array(value):
            return primitives.scatter_add(standard.full_like(part, value), self._key, self._x.shape)
        added = len(value.shape) - len(part.shape)
        if added > 0 and value.shape[:added] == (1,) * added:
            value = primitives.reshape(value, value.shape[added:])
        value = primitives.broadcast_to(value, part.shape)
        return primitives.scatter_add(value, self._key, self._x.shape)


def _cast_like(value: Array, x: Array) -> Array:
    """The value cast to the dtype of ``x``; a list of numbers as an array."""
    if isinstance(value, (list, tuple)):
        library = namespace(x)
        whole = standard.asarray(value) if has_variable(value) else library.asarray(value, device=device_of(plain(x)))
        return _cast_like(whole, x)
    if is_complex(value) and not is_complex(x):
        raise DtypeError(f"found complex values, expected values that can be cast to {x.dtype}: take their real part")
    return value if not is_array(plain(value)) or value.dtype == x.dtype else primitives.astype(value, x.dtype)


def assigned(x: Array, key: Key, value: Array) -> Array:
    """The new array of ``x`` after ``x[key] = value``."""
    return At(x)[key].set(value)


def cast_in_place(x: Array, result: Array) -> Array:
    """The new array of ``x`` after ``x += y``: ``result``, which is ``x + y``, cast to the dtype of ``x``."""
    shape, expected = tuple(getattr(result, "shape", ())), tuple(x.shape)
    if shape != expected:
        raise ShapeError(
            f"found a result of shape {shape}, expected {expected}, the shape of the array that is changed in place"
        )
    return _cast_like(result, x)
