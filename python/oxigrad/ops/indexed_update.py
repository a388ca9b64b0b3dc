"""Arrays that differ from another in places: ``x.at[key].set(value)``, and what assignment to a variable comes to."""

from collections.abc import Callable
from typing import Any

from oxigrad._core import DtypeError, ShapeError, plain
from oxigrad.ops import primitives, standard
from oxigrad.ops.backends import device_of, has_variable, is_array, is_complex, namespace, on_host


class At:
    """``x.at``: the places of ``x``, chosen by a key of any kind that indexing takes.

    >>> import numpy as np
    >>> import oxigrad as ox
    >>> ox.grad(lambda x: ox.xp.sum(x.at[1].set(5.0) ** 2))(np.array([1.0, 2.0, 3.0]))
    array([2., 0., 6.])
    """

    def __init__(self, x: Any) -> None:
        self._x = x

    def __getitem__(self, key: Any) -> "IndexedUpdate":
        """The places at ``key``."""
        return IndexedUpdate(self._x, key)


class IndexedUpdate:
    """Some places of an array. Each method returns a new array, of the same dtype; values are broadcast to the places.

    A key that names an element twice is refused with `ValueError` where the values may differ, but by `add` and
    `subtract`, which add up; where the host would have to wait for a device to find out, the element gets the sum of its
    values. `DtypeError` where complex values would go into a real array.
    """

    def __init__(self, x: Any, key: Any) -> None:
        self._x = x
        self._key = tuple(map(plain, key)) if isinstance(key, tuple) else plain(key)

    def get(self) -> Any:
        """The elements there: ``x[key]``."""
        return primitives.index(self._x, self._key)

    def set(self, value: Any) -> Any:
        """``x`` with ``value`` there."""
        part = namespace(self._x).ones_like(plain(self.get()))
        touched = primitives.scatter_add(part, self._key, self._x.shape)
        if not isinstance(value, (list, tuple)) and not getattr(plain(value), "shape", ()):
            return primitives.where(touched > 0, _cast_like(value, self._x), self._x)
        if on_host(touched) and bool(namespace(touched).any(touched > 1)):
            raise ValueError("the key names an element twice: which value it would get is not defined")
        return primitives.where(touched > 0, self._scattered(value), self._x)

    def add(self, value: Any) -> Any:
        """``x`` with ``value`` added there."""
        return self._x + self._scattered(value)

    def subtract(self, value: Any) -> Any:
        """``x`` with ``value`` subtracted there."""
        return self._x - self._scattered(value)

    def multiply(self, value: Any) -> Any:
        """``x`` multiplied by ``value`` there."""
        return self.apply(lambda part: part * value)

    def divide(self, value: Any) -> Any:
        """``x`` divided by ``value`` there."""
        return self.apply(lambda part: part / value)

    def apply(self, f: Callable[[Any], Any]) -> Any:
        """``x`` with a function of the elements in their place."""
        return self.set(f(self.get()))

    def _scattered(self, value: Any) -> Any:
        part = plain(self.get())
        value = _cast_like(value, self._x)
        if not is_array(value):
            return primitives.scatter_add(standard.full_like(part, value), self._key, self._x.shape)
        added = len(value.shape) - len(part.shape)
        if added > 0 and value.shape[:added] == (1,) * added:
            value = primitives.reshape(value, value.shape[added:])
        value = primitives.broadcast_to(value, part.shape)
        return primitives.scatter_add(value, self._key, self._x.shape)


def _cast_like(value: Any, x: Any) -> Any:
    """The value in the dtype of ``x``; a list of numbers as an array."""
    if isinstance(value, (list, tuple)):
        library = namespace(x)
        whole = standard.asarray(value) if has_variable(value) else library.asarray(value, device=device_of(plain(x)))
        return _cast_like(whole, x)
    if is_complex(value) and not is_complex(x):
        raise DtypeError(f"complex values do not go into an array of dtype {x.dtype}: take their real part")
    return value if not is_array(plain(value)) or value.dtype == x.dtype else primitives.astype(value, x.dtype)


def assigned(x: Any, key: Any, value: Any) -> Any:
    """What ``x`` is after ``x[key] = value``."""
    return At(x)[key].set(value)


def cast_in_place(x: Any, result: Any) -> Any:
    """What ``x`` is after ``x += y``, where ``x + y`` is ``result``."""
    shape, expected = tuple(getattr(result, "shape", ())), tuple(x.shape)
    if shape != expected:
        raise ShapeError(f"the result has shape {shape}, and the array that is changed in place {expected}")
    return _cast_like(result, x)
