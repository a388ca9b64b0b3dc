# Printed by tools/stubs.py.
from typing import Any
from oxigrad._typing import Array

def zeros(xp: Any, p: Array, shape: Array) -> Array:
    """Zeros of the given shape, of the dtype and on the device of ``p``."""

def mean_over(xp: Any, x: Array, axis: Array=None) -> Array:
    """The mean over ``axis``, with dimensions kept; zero where there are no elements."""

def root_mean_square(xp: Any, x: Array) -> Array:
    """The root mean square of all elements, with dimensions kept."""

def norm(xp: Any, x: Array) -> Array:
    """The Euclidean norm of all elements; infinite where their squares overflow."""

def finite_norm(xp: Any, x: Array) -> Array:
    """The Euclidean norm of all elements, whose squares may overflow."""

def scaled_norm(xp: Any, x: Array, add: Array=None) -> Array:
    """A number, and the scale by which it is to be divided to be the Euclidean norm; ``add`` sums terms up, by default all of them."""

def length_of_squares(xp: Any, square: Array, scaled_square: Array) -> tuple[Array, ...]:
    """The `scaled_norm` of numbers with these `squares`."""

def square_of_norm(xp: Any, x: Array, add: Array=None) -> Array:
    """The square of the norm, in the float64 that kernels compute numbers with."""

def squares(xp: Any, x: Array, add: Array=None) -> tuple[Array, ...]:
    """The sums of the squares of numbers, and of these numbers times `_SCALE`."""

def share_of_new(xp: Any, beta: Array) -> Array:
    """The weight of a new term in a statistic with decay ``beta``: ``1 - beta``, or 1 without decay."""

def choose(xp: Any, condition: Array, these: Array, those: Array) -> Array:
    """The results of ``these`` where the condition holds, else of ``those``; both are called only in a traced program."""

def finite_only(xp: Any, decomposed: Array, x: Array) -> Array:
    """The factors of the matrix ``x``; NaN where it is not finite, for which LAPACK raises: a guard may yet drop the step."""

def along(shape: Array, axis: Array) -> Array:
    """The shape in which a vector along ``axis`` broadcasts to ``shape``."""
