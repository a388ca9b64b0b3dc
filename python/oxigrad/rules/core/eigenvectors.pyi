# Printed by make generated.
from typing import Any
from oxigrad._typing import Array

def order_of(x: Array) -> Array:
    """The number of derivatives that are being taken of a value: the depth of variables in it."""

def changes_of(x: Array) -> Array:
    """Zeros with the derivatives of ``x``."""

def identity(values: Array) -> Array:
    """The identity matrix of the size, dtype and device of a vector."""

def column(xp: Any, values: Array) -> Array:
    """A vector as a column."""

def rounding(xp: Any, values: Array) -> Array:
    """The size of rounding errors among values computed from a matrix."""

def with_derivatives(xp: Any, vectors: Array, values: Array, matrix: Array) -> Array:
    """The constant eigenvectors of a symmetric matrix, as columns, with their derivatives."""
