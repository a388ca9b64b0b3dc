"""Copies between device memory and host memory, and the events that mark their completion."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from oxigrad._typing import Array


class Event(NamedTuple):
    """The end of a copy: ``is_done()`` is whether the copy is done, and ``wait()`` waits until it is."""

    is_done: Callable[[], bool]
    wait: Callable[[], Any]


#: The end of every copy that is done at once.
DONE = Event(lambda: True, lambda: None)


class Copies:
    """The copies of a device: base class. Those in one direction end in order; those down and those up overlap.

    `mark` and `join` have nothing to do where each copy is done at once.
    """

    def mark(self) -> None:
        """Lets later copies begin after the work that the device was given so far."""

    def copy_down(self, source: Array, target: Array) -> Event:
        """Begins the copy of an array of the device into one in host memory."""
        raise NotImplementedError

    def copy_up(self, source: Array, target: Array) -> Event:
        """Begins the copy of an array in host memory into one of the device."""
        raise NotImplementedError

    def join(self) -> None:
        """Makes later work of the device wait for the copies to it."""

    def like(self, array: Array) -> Array:
        """A new array in host memory, which copies read and write, with the shape and dtype of one of the device."""
        raise NotImplementedError

    def memory(self, count: int) -> Array:
        """New host memory of ``count`` bytes, for tensors."""
        raise NotImplementedError


class BlockingTransfers(Copies):
    """Copies by an ``adapter`` between arrays of its library and NumPy's, which are done at once."""

    def __init__(self, adapter: Any) -> None:
        self._adapter = adapter

    def like(self, array: Array) -> Array:
        """A new array of NumPy's: a copy."""
        return np.array(self._adapter.to_host(array))

    def copy_down(self, source: Array, target: Array) -> Event:
        """Copies an array."""
        target[...] = self._adapter.to_host(source)
        return DONE

    def copy_up(self, source: Array, target: Array) -> Event:
        """Copies an array."""
        self._adapter.assign(target, self._adapter.from_host(source, target))
        return DONE
