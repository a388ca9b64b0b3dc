"""Derivatives of eigenvectors and of singular vectors, which do not exist for equal values.

Vectors of equal values are not functions of the matrix: here their derivatives do not mix them. All vectors are
constants, with derivatives by iterations in their basis, which never divide by a difference of equal values.
"""

from oxigrad._core import Variable
from oxigrad.ops.backends import device_of, holds_variable, namespace, without_variables


def order_of(x):
    """The number of derivatives that are being taken of a value: the depth of variables in it."""
    order = 0
    while holds_variable(x):
        is_variable = isinstance(x, Variable)
        x, order = x.value, order + is_variable
    return order


def changes_of(x):
    """Zeros with the derivatives of ``x``."""
    return x - without_variables(x)


def identity(values):
    """The identity matrix of the size, dtype and device of a vector."""
    return namespace(values).eye(values.shape[0], dtype=values.dtype, device=device_of(values))


def column(xp, values):
    """A vector as a column."""
    return xp.reshape(values, (values.shape[0], 1))


def rounding(xp, values):
    """The size of rounding errors among values computed from a matrix."""
    return xp.max(xp.abs(values)) * values.shape[0] * float(namespace(values).finfo(values.dtype).eps)


def with_derivatives(xp, vectors, values, matrix):
    """The constant eigenvectors of a symmetric matrix, as columns, with their derivatives.

    They are refined as by Ogita and Aishima (2018), where each iteration adds the derivatives of one more order, or of
    several.
    """
    if (order := order_of(matrix)) == 0:
        return vectors
    eye, are_equal = identity(values), xp.abs(values - column(xp, values)) <= rounding(xp, values)
    matrix = changes_of(xp.matmul(xp.matrix_transpose(vectors), matrix) @ vectors) + values * eye
    x = eye
    for _ in range(order):
        transposed = xp.matrix_transpose(x)
        excess, product = xp.subtract(eye, transposed @ x), xp.matmul(transposed, matrix) @ x
        diagonal = xp.sum(product * eye, axis=0) / (1.0 - xp.sum(excess * eye, axis=0))
        gaps = xp.where(are_equal, 1.0, diagonal - column(xp, diagonal))
        x = xp.matmul(x, xp.where(are_equal, 0.5 * excess, (product + diagonal * excess) / gaps)) + x
    return changes_of(xp.matmul(vectors, x)) + vectors
