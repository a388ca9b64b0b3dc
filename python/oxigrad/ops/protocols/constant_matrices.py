"""Products of variables with constant matrices: SciPy's sparse arrays and matrices, and its linear operators.

A product is one entry of the tape, computed by SciPy. Its derivatives are products with the matrix and its transpose,
so all orders follow. For values that SciPy does not support (batched, recorded, or of another library), products gather
and scatter elements.
"""

from typing import Any

import numpy as np

from oxigrad._core import DtypeError, ShapeError, record
from oxigrad._typing import Array
from oxigrad.ops.backends import is_array, is_foreign, is_matrix
from oxigrad.ops.core import primitives as ops
from oxigrad.ops.core.array_like import array
from oxigrad.ops.core.host_calls import call
from oxigrad.ops.core.host_calls import computed as on_host
from oxigrad.ops.core.in_place import of_library


def computed(name: str, args: tuple[Array, ...], *, is_operator: bool) -> Array:
    """An op on a constant matrix and a variable: a product, or a binary elementwise op with a dense result."""
    is_product = name == "matmul" or (name == "multiply" and is_operator and any(map(_multiplies_as_matrix, args)))
    if len(args) == 2 and is_product and not all(map(is_matrix, args)):
        return _product(*args)
    if len(args) == 2 and name in _ELEMENTWISE and all(not is_matrix(arg) or _is_sparse(arg) for arg in args):
        return record(name, [arg.toarray() if is_matrix(arg) else arg for arg in args])
    kind = next(type(arg).__name__ for arg in args if is_matrix(arg))
    raise DtypeError(
        f"{name}: found a {kind}, expected arrays: xp.matmul takes it as a constant, and x.toarray() is an array of "
        "a sparse one"
    )


_ELEMENTWISE = set(
    "add subtract multiply divide maximum minimum equal not_equal less less_equal greater greater_equal".split()
)


def _is_sparse(matrix: Any) -> bool:
    return hasattr(matrix, "toarray")


def _multiplies_as_matrix(operand: Any) -> bool:
    """Whether ``*`` is the matrix product: it is for sparse matrices, not for sparse arrays."""
    return is_matrix(operand) and (
        not _is_sparse(operand) or any(base.__name__ == "spmatrix" for base in type(operand).__mro__)
    )


def _product(x1: Any, x2: Any) -> Array:
    """``x1 @ x2``, with one constant matrix."""
    matrix, x = (x1, x2) if is_matrix(x1) else (x2, x1)
    x = array(x) if is_foreign(x) or not is_array(x) else x
    if len(matrix.shape) != 2:
        return ops.matmul(*(each.toarray() if is_matrix(each) else each for each in (x1, x2)))
    shape, axis = tuple(x.shape), 0 if matrix is x1 or len(x.shape) == 1 else 1
    inner = matrix.shape[1 if matrix is x1 else 0]
    if len(shape) not in (1, 2) or shape[axis] != inner:
        shapes = (matrix.shape, shape) if matrix is x1 else (shape, matrix.shape)
        raise ShapeError(
            f"matmul: found shapes {shapes[0]} and {shapes[1]}, expected {inner} along axis {axis} of the array"
        )
    if matrix is x1:
        return _applied(matrix, x)
    if len(shape) == 1:
        return _applied(matrix.T, x)
    return ops.matrix_transpose(_applied(matrix.T, ops.matrix_transpose(x)))


def _applied(matrix: Any, x: Array) -> Array:
    """``matrix @ x``, for ``x`` of one or two dimensions."""

    def function(value: Array) -> tuple[Any]:
        if type(value) is np.ndarray or not _is_sparse(matrix):
            return on_host("matmul", lambda v: matrix @ v, (value,))
        return (_gathered(matrix, value),)

    outputs = call(
        function,
        [x],
        lambda g, y, x: [_applied(matrix.T, g[0])],
        lambda y, x, t: (_applied(matrix, t),),
        takes_batches=_is_sparse(matrix),
    )
    return ops.item(outputs, 0)


def _gathered(matrix: Any, x: Array) -> Array:
    """``matrix @ x`` by the elements of a sparse matrix, row by row, as SciPy adds them."""
    rows = matrix.tocsr().tocoo()
    data = rows.data if len(x.shape) == 1 else rows.data[:, None]
    targets, places = (of_library(part.astype(np.intp), x) for part in rows.coords)
    products = ops.multiply(of_library(data, x), ops.index(x, places))
    return ops.scatter_add(products, targets, (matrix.shape[0], *tuple(x.shape)[1:]))
