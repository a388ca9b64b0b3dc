"""New arrays that differ from another in places: ``x.at[key].set(value)``, what assignment is to arrays that can change."""

from collections.abc import Callable
from typing import Any

from oxigrad import functions, primitives
from oxigrad._core import plain
from oxigrad.libraries import is_array, namespace, on_host


class At:
    """``x.at``: the places of ``x``, chosen by a key of any kind that indexing takes.

    >>> import numpy as np
    >>> import oxigrad as ox
    >>> ox.grad(lambda x: ox.xp.sum(x.at[1].set(5.0) ** 2))(np.array([1.0, 2.0, 3.0]))
    array([2., 0., 6.])
    """

    def __init__(self, x: Any) -> None:
        self._x = x

    def __getitem__(self, key: Any) -> "Place":
        """The places at ``key``."""
        return Place(self._x, key)


class Place:
    """Some places of an array. Each method returns a new array; values are broadcast to the places.

    A key that names an element twice is refused with `ValueError`, but by `add` and `subtract`, which add up; where the
    host would have to wait for a device to find out, the element gets the sum of its values.
    """

    def __init__(self, x: Any, key: Any) -> None:
        self._x, self._key = x, key

    def get(self) -> Any:
        """The elements there: ``x[key]``."""
        return primitives.index(self._x, self._key)

    def set(self, value: Any) -> Any:
        """``x`` with ``value`` there."""
        touched = primitives.scatter_add(namespace(self._x).ones_like(plain(self.get())), self._key, self._x.shape)
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
        value = primitives.broadcast_to(value, part.shape) if is_array(value) else functions.full_like(part, value)
        return primitives.scatter_add(value, self._key, self._x.shape)
