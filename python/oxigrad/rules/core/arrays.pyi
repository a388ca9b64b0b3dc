# Printed by make generated.
from typing import Any
from oxigrad._typing import Array

def zeros(xp: Any, p: Array, shape: Array) -> Array:
    """Zeros of the given shape, of the dtype and on the device of ``p``."""

def mean_over(xp: Any, x: Array, axis: Array=None) -> Array:
    """The mean over ``axis``, with dimensions kept; zero for an empty array."""

def wide_product(xp: Any, x: Array, y: Array) -> Array:
    """The elementwise product of two arrays in float64, as kernels compute terms of a sum."""

def number_like(xp: Any, number: Array, x: Array) -> Array:
    """A number in the dtype of the array ``x``, to which a kernel rounds it when it meets the array."""

def root_mean_square(xp: Any, x: Array) -> Array:
    """The root mean square of all elements, with dimensions kept."""

def count(xp: Any, x: Array) -> Array:
    """The number of elements, as a sum that a kernel computes too, which cannot read shapes; 1 for an empty array."""

def norm(xp: Any, x: Array) -> Array:
    """The Euclidean norm of all elements."""

def share_of_new(xp: Any, beta: Array) -> Array:
    """The weight of a new term in a statistic with decay ``beta``: ``1 - beta``, or 1 without decay."""

def choose(xp: Any, condition: Array, these: Array, those: Array) -> Array:
    """The results of ``these()`` if the condition holds, else of ``those()``; a traced program calls both."""

def finite_only(xp: Any, decomposed: Array, x: Array) -> Array:
    """The factors of the matrix ``x``, or NaN if ``x`` is not finite."""

def along(shape: Array, axis: Array) -> Array:
    """The shape in which a vector along ``axis`` broadcasts to ``shape``."""

def matrix_norm(xp: Any, x: Array) -> Array:
    """The norm of each matrix of a stack, with dimensions kept."""
