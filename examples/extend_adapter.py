"""An adapter of an array library that is not of the Array API standard: `shelf.py`, whose arrays share no memory.

It says how the host reads an array, and completes the namespace. Derivatives and optimizers then run over the library.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import shelf
from array_api_compat import numpy as standard
from array_api_compat.numpy import fft, linalg
from shelf import Array

from oxigrad import extend, grad, optim, xp


def complete(module: Any) -> Any:
    """The standard's namespace: with ``device`` and ``copy``, and the extensions."""
    space = shelf.namespace(module.__name__, standard)
    space.linalg, space.fft = (
        shelf.namespace("shelf.linalg", linalg),
        shelf.namespace("shelf.fft", fft),
    )
    return space


class ShelfAdapter(extend.Adapter):
    """The arrays of `shelf`."""

    is_immutable = True

    def to_host(self, array: Array) -> np.ndarray:
        """The numbers of an array."""
        return array.read()

    def from_host(self, array: np.ndarray, like: Array) -> Array:
        """An array of numbers of the host, in the dtype of ``like``."""
        return Array(array.astype(like.dtype))

    def special(self, name: str) -> Callable[..., Any] | None:
        """A function that the library lacks: it is computed on the host."""
        function = getattr(xp, name, None)
        return None if function is None else shelf.lifted(function)


extend.register_adapter("shelf", ShelfAdapter, namespace=complete)


def main() -> np.ndarray:
    """Minimizes a function of an array of `shelf`."""
    model, optimizer = {"x": Array([3.0, -2.0])}, optim.Adam(0.1)
    for _ in range(300):
        model = optimizer.update(model, grad(lambda model: xp.sum(xp.special.erf(model["x"]) ** 2))(model))
    return model["x"].read()


if __name__ == "__main__":
    print("minimum at", main().round(3))
