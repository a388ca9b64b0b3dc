# Printed by tools/stubs.py.
from typing import Any
from oxigrad._typing import Array

def zeros(xp: Any, p: Array, shape: Array) -> Array:
    """Zeros of the given shape, of the dtype and on the device of ``p``."""

def mean_over(xp: Any, x: Array, axis: Array=None) -> Array:
    """The mean over ``axis``, with dimensions kept; zero where there are no elements."""

def wide_product(xp: Any, x: Array, y: Array) -> Array:
    """The products of two arrays, as terms of a sum: in float64, as kernels compute them, since those of float32 overflow."""

def number_like(xp: Any, number: Array, x: Array) -> Array:
    """A number in the dtype of the array ``x``, to which a kernel rounds it where it meets the array."""

def root_mean_square(xp: Any, x: Array) -> Array:
    """The root mean square of all elements, with dimensions kept."""

def norm(xp: Any, x: Array) -> Array:
    """The Euclidean norm of all elements."""

def share_of_new(xp: Any, beta: Array) -> Array:
    """The weight of a new term in a statistic with decay ``beta``: ``1 - beta``, or 1 without decay."""

def choose(xp: Any, condition: Array, these: Array, those: Array) -> Array:
    """The results of ``these`` where the condition holds, else of ``those``; both are called only in a traced program."""

def finite_only(xp: Any, decomposed: Array, x: Array) -> Array:
    """The factors of the matrix ``x``; NaN where it is not finite, for which LAPACK raises: a guard may yet drop the step."""

def along(shape: Array, axis: Array) -> Array:
    """The shape in which a vector along ``axis`` broadcasts to ``shape``."""
