"""Fast Hankel transforms of functions at logarithmic steps, as `scipy.fft` has them."""

from typing import Any

import numpy as np

from oxigrad._typing import Array
from oxigrad.ops.backends import array_of
from oxigrad.ops.backends.functions.scipy_functions import of_scipy
from oxigrad.ops.core.host_calls import linear
from oxigrad.ops.scipy_signatures import scipy_signature

__all__ = ["fht", "ifht"]


def _symmetric(name: str, x: Array, *settings: float) -> Array:
    """A transform along the last axis: a product with a matrix, which is symmetric for any bias."""

    def transform(x: np.ndarray) -> np.ndarray:
        skipped: Any = of_scipy("fft", "set_backend")("scipy")  # as a backend of ours calls this function
        with skipped:
            return of_scipy("fft", name)(x, *settings)

    return linear(name, transform, transform, array_of(x))


@scipy_signature("a, dln, mu, offset=0.0, bias=0.0")
def fht(a: Array, /, dln: float, mu: float, offset: float, bias: float) -> Array:
    """The Hankel transform of order ``mu`` of values at steps ``dln`` of the logarithm, along the last axis."""
    return _symmetric("fht", a, dln, mu, offset, bias)


@scipy_signature("A, dln, mu, offset=0.0, bias=0.0")
def ifht(A: Array, /, dln: float, mu: float, offset: float, bias: float) -> Array:
    """The inverse of `fht`."""
    return _symmetric("ifht", A, dln, mu, offset, bias)
