"""Products and contractions of arrays, composed of differentiable ops.

On plain values the array library's own function is called, if it has one.
"""

import functools
import itertools
from typing import Any

import numpy as np

from oxigrad._core import ShapeError
from oxigrad._typing import Array, Dtype
from oxigrad.ops.backends import is_matrix, size_of, zeros_of
from oxigrad.ops.core import primitives as ops
from oxigrad.ops.core.composite import composite, of_numpy
from oxigrad.ops.core.primitives import along
from oxigrad.ops.core.shapes import position
from oxigrad.ops.core.standard import moveaxis

__all__ = [
    "convolve",
    "cross",
    "diag",
    "diagonal",
    "dot",
    "einsum",
    "inner",
    "kron",
    "outer",
    "tensordot",
    "trace",
    "vdot",
    "vecdot",
]

# The constant `string.ascii_letters` is spelled out: the module `string` compiles a regular expression on import.
_LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"


# --- products of two arrays -------------------------------------------------------------------------------------------


@composite
def tensordot(x1: Array, x2: Array, axes: int | tuple[Any, Any] = 2) -> Array:
    """Sum of products over the last ``axes`` dimensions of ``x1`` and the first of ``x2``, or over the axes listed.

    >>> import numpy as np
    >>> tensordot(np.ones((2, 3, 4)), np.ones((3, 4, 5)), axes=2).shape
    (2, 5)
    """
    n1, n2 = len(x1.shape), len(x2.shape)
    if isinstance(axes, int):
        if not 0 <= axes <= min(n1, n2):
            raise ShapeError(f"tensordot: axes is {axes}: expected axes of arrays of {n1} and {n2} dimensions")
        axes = (range(n1 - axes, n1), range(axes))
    a, b = (
        [position(axis, n) for axis in ((group,) if isinstance(group, int) else group)]
        for group, n in zip(axes, (n1, n2), strict=True)
    )
    if [x1.shape[axis] for axis in a] != [x2.shape[axis] for axis in b]:
        raise ShapeError(
            f"tensordot: found different sizes along axes {a} of shape {tuple(x1.shape)} and {b} of "
            f"{tuple(x2.shape)}, expected equal ones"
        )
    free1, free2 = ([axis for axis in range(n) if axis not in used] for n, used in ((n1, a), (n2, b)))
    shape = (*(x1.shape[axis] for axis in free1), *(x2.shape[axis] for axis in free2))
    summed = size_of(tuple(x1.shape[axis] for axis in a))
    rows, columns = (size_of(tuple(x.shape[i] for i in free)) for x, free in ((x1, free1), (x2, free2)))
    left = ops.reshape(_permuted(x1, [*free1, *a]), (rows, summed))
    right = ops.reshape(_permuted(x2, [*b, *free2]), (summed, columns))
    return ops.reshape(ops.matmul(left, right), shape)


def _permuted(x: Array, order: list[int]) -> Array:
    """The dimensions in an order; the array itself where they are in it, which takes no entry of the tape."""
    return x if order == [*range(len(order))] else ops.permute_dims(x, tuple(order))


@composite
def vecdot(x1: Array, x2: Array, /, *, axis: int = -1) -> Array:
    """Sum over ``axis`` of the products with the conjugate of ``x1``."""
    sizes = [x.shape[position(axis, len(x.shape))] for x in (x1, x2)]
    if sizes[0] != sizes[1]:
        raise ShapeError(f"vecdot: found sizes {sizes[0]} and {sizes[1]} along axis {axis}, expected equal sizes")
    return ops.sum(ops.multiply(ops.conjugate(x1), x2), axis=axis)


@of_numpy
def vdot(x1: Array, x2: Array, /) -> Array:
    """Sum of the products of all elements with the conjugate of ``x1``."""
    sizes = [size_of(tuple(getattr(x, "shape", ()))) for x in (x1, x2)]
    if sizes[0] != sizes[1]:
        raise ShapeError(f"vdot: found {sizes[0]} and {sizes[1]} elements, expected equal numbers")
    return ops.sum(ops.multiply(ops.conjugate(ops.ravel(x1)), ops.ravel(x2)))


@of_numpy
def outer(x1: Array, x2: Array, /) -> Array:
    """The outer product of two vectors; arrays of more dimensions are flattened, as in NumPy."""
    return ops.multiply(ops.expand_dims(ops.ravel(x1), axis=-1), ops.ravel(x2))


@of_numpy
def inner(x1: Array, x2: Array, /) -> Array:
    """Sum of products over the last dimensions."""
    if not (_ndim(x1) and _ndim(x2)):
        return ops.multiply(x1, x2)
    _require_sizes("inner", x1, x2, -1)
    return tensordot(x1, x2, axes=([-1], [-1]))


@of_numpy
def dot(x1: Array, x2: Array, /) -> Array:
    """Sum of products over the last dimension of ``x1`` and the second to last of ``x2``, as in NumPy."""
    if is_matrix(x1) or is_matrix(x2):
        return ops.matmul(x1, x2)
    if not (_ndim(x1) and _ndim(x2)):
        return ops.multiply(x1, x2)
    axis = -2 if _ndim(x2) > 1 else -1
    _require_sizes("dot", x1, x2, axis)
    if _ndim(x1) <= 2 and _ndim(x2) <= 2:
        return ops.matmul(x1, x2)
    return tensordot(x1, x2, axes=([-1], [axis]))


def _require_sizes(name: str, x1: Array, x2: Array, axis: int) -> None:
    """Raises `ShapeError` if the last dimension of ``x1`` and ``axis`` of ``x2`` differ."""
    shape1, shape2 = tuple(x1.shape), tuple(x2.shape)
    if shape1[-1] != shape2[axis]:
        raise ShapeError(
            f"{name}: found shapes {shape1} and {shape2}, expected sizes {shape1[-1]} and {shape2[axis]}, of the "
            f"last axis and of axis {axis}, to be equal"
        )


def _ndim(x: Array) -> int:
    return len(getattr(x, "shape", ()))


@of_numpy
def kron(x1: Array, x2: Array, /) -> Array:
    """Kronecker product: blocks of ``x2``, scaled by the elements of ``x1``."""
    ndim = max(_ndim(x1), _ndim(x2))
    sizes1, sizes2 = ((*[1] * (ndim - _ndim(x)), *(x.shape if _ndim(x) else ())) for x in (x1, x2))
    left = ops.reshape(x1, tuple(itertools.chain.from_iterable((size, 1) for size in sizes1))) if _ndim(x1) else x1
    right = ops.reshape(x2, tuple(itertools.chain.from_iterable((1, size) for size in sizes2))) if _ndim(x2) else x2
    return ops.reshape(ops.multiply(left, right), tuple(a * b for a, b in zip(sizes1, sizes2, strict=True)))


@of_numpy
def cross(x1: Array, x2: Array, /, *, axis: int = -1) -> Array:
    """Cross product of vectors of three elements along ``axis``."""

    def item(x: Array, which: int) -> Array:
        return ops.index(x, along(axis % len(x.shape), which))

    if any(x.shape[position(axis, len(x.shape))] != 3 for x in (x1, x2)):
        raise ShapeError(f"cross: found shapes {tuple(x1.shape)} and {tuple(x2.shape)}, expected vectors of 3 elements")
    pairs = ((1, 2), (2, 0), (0, 1))
    products = [[ops.multiply(item(x1, i), item(x2, j)) for i, j in (pair, pair[::-1])] for pair in pairs]
    return ops.stack([left - right for left, right in products], axis=axis)


@of_numpy
def convolve(x1: Array, x2: Array, mode: str = "full") -> Array:
    """Discrete convolution of two vectors.

    ``mode`` is ``"full"``, ``"same"`` or ``"valid"``. A number is a vector of one element.
    """
    x1, x2 = (x if x.shape else ops.reshape(x, (1,)) for x in (x1, x2))
    if any(len(x.shape) != 1 for x in (x1, x2)):
        raise ShapeError(f"convolve: found shapes {tuple(x1.shape)} and {tuple(x2.shape)}: expected (m,) and (n,)")
    short, long = sorted((x1, x2), key=lambda x: x.shape[0])
    if not short.shape[0]:
        raise ShapeError(
            f"convolve: found shapes {tuple(x1.shape)} and {tuple(x2.shape)}: expected one element at least"
        )
    n, m = short.shape[0], long.shape[0]
    products = ops.multiply(ops.expand_dims(short, axis=-1), long)
    zeros = zeros_of((n, n), products)
    flat = ops.ravel(ops.concat([products, zeros], axis=1))
    # Reshaped to rows one element shorter: each starts one element further to the right than the row above.
    full = ops.sum(ops.reshape(ops.index(flat, slice(0, n * (n + m - 1))), (n, n + m - 1)), axis=0)
    spared = {"full": 0, "same": n - 1, "valid": 2 * (n - 1)}
    if mode not in spared:
        raise ValueError(f"mode is {mode!r}: expected 'full', 'same' or 'valid'")
    start = spared[mode] // 2
    return ops.index(full, slice(start, start + n + m - 1 - spared[mode]))


# --- diagonals --------------------------------------------------------------------------------------------------------


def _diagonal_slice(rows: int, columns: int, offset: int) -> tuple[slice, int]:
    """The slice of a flattened matrix with its diagonal, and the length of the diagonal."""
    start = offset if offset >= 0 else -offset * columns
    length = max(0, min(rows, columns - offset) if offset >= 0 else min(rows + offset, columns))
    return slice(start, start + max(0, (length - 1) * (columns + 1) + 1) if length else start, columns + 1), length


@of_numpy
def diagonal(x: Array, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Array:
    """The diagonal of the matrices along two axes, as the last axis; ``offset`` counts diagonals above the main one."""
    x = x if len(x.shape) == 2 and (axis1, axis2) == (0, 1) else moveaxis(x, (axis1, axis2), (-2, -1))
    *stack, rows, columns = x.shape
    flat = ops.reshape(x, (*stack, rows * columns))
    return ops.index(flat, (..., _diagonal_slice(rows, columns, offset)[0]))


@of_numpy
def trace(x: Array, offset: int = 0, axis1: int = 0, axis2: int = 1, dtype: Dtype = None) -> Array:
    """Sum of the diagonal of the matrices along two axes."""
    return ops.sum(diagonal(x, offset, axis1, axis2), axis=-1, dtype=dtype)


@of_numpy
def diag(v: Array, k: int = 0) -> Array:
    """The matrix with the vector ``v`` on its ``k``-th diagonal, or that diagonal of a matrix ``v``."""
    if len(v.shape) == 2:
        return diagonal(v, k)
    size = v.shape[0] + abs(k)
    return ops.reshape(ops.scatter_add(v, (_diagonal_slice(size, size, k)[0],), (size * size,)), (size, size))


# --- einsum -----------------------------------------------------------------------------------------------------------


@of_numpy
def einsum(subscripts: Any, *operands: Any, optimize: Any = None) -> Array:
    """Sums of products in Einstein's notation: ``einsum("ij,jk->ik", a, b)`` is ``a @ b``.

    Operands are contracted from left to right, in each step by one matrix product; with ``optimize``, in the order of
    `numpy.einsum_path`. Subscripts are a string, or a list of numbers after each operand and a last one for the result,
    as in ``einsum(a, [0, 1], b, [1, 2], [0, 2])``. ``...`` means broadcast dimensions. Raises `ShapeError` or
    `ValueError` if the subscripts do not match the operands.

    >>> import numpy as np
    >>> float(einsum("ij,ij->", np.ones((2, 3)), np.ones((2, 3))))
    6.0
    """
    if not isinstance(subscripts, str):
        subscripts, operands = _of_sublists((subscripts, *operands))
    labels, output = _parse(subscripts, tuple(len(x.shape) for x in operands))
    sizes = {}
    for letters, x in zip(labels, operands, strict=True):
        for letter, size in zip(letters, x.shape, strict=True):
            if size != sizes.get(letter, size) and 1 not in (size, sizes[letter]):
                raise ShapeError(
                    f"einsum: found sizes {sizes[letter]} and {size} for {letter!r} of {subscripts!r}, expected one "
                    "size"
                )
            sizes[letter] = max(size, sizes.get(letter, 1)) if size else 0
    terms = [_without_repeats(x, letters, sizes) for x, letters in zip(operands, labels, strict=True)]
    for group in _path(subscripts, operands, optimize):
        term, *others = [terms[at] for at in group]
        terms = [term for at, term in enumerate(terms) if at not in group]
        while others:
            wanted = set(output).union(*(letters for _, letters in (*terms, *others[1:])))
            term = _contract(term, others.pop(0), wanted)
        terms.append(term)
    x, letters = terms[0]
    x, letters = _sum_out(x, letters, set(output))
    x = ops.permute_dims(x, tuple(letters.index(letter) for letter in output if letter in letters))
    return ops.broadcast_to(x, tuple(sizes[letter] for letter in output)) if len(letters) < len(output) else x


def _of_sublists(arguments: tuple[Any, ...]) -> tuple[str, tuple[Any, ...]]:
    """The subscripts as a string, and the operands, of the form with a list of numbers after each operand."""

    def text(sublist: Any) -> str:
        if not (isinstance(sublist, (list, tuple)) or getattr(sublist, "ndim", 0) == 1):
            raise TypeError(
                "einsum: expected the subscripts as a string first, then the operands, or a list after each of them"
            )
        return "".join("..." if part is Ellipsis else _LETTERS[int(part)] for part in sublist)

    count = len(arguments) // 2
    left = ",".join(text(sublist) for sublist in arguments[1 : 2 * count : 2])
    operands = tuple(ops.array_of(x, arguments) for x in arguments[: 2 * count : 2])
    return left + (f"->{text(arguments[-1])}" if len(arguments) % 2 else ""), operands


def _path(subscripts: str, operands: tuple[Array, ...], optimize: Any) -> list[tuple[int, ...]]:
    """The positions of the terms that each step contracts; the product is appended to the remaining terms."""
    if optimize is None or optimize is False:
        return [tuple(range(len(operands)))]
    if isinstance(optimize, str) and optimize not in ("greedy", "optimal"):
        raise ValueError(f"optimize is {optimize!r}: expected a bool, 'greedy', 'optimal' or a path")
    shapes = (np.broadcast_to(np.empty(()), tuple(x.shape)) for x in operands)
    return np.einsum_path(subscripts, *shapes, optimize=optimize)[0][1:]


@functools.lru_cache(maxsize=1024)
def _parse(subscripts: str, ndims: tuple[int, ...]) -> tuple[list[str], str]:
    """The letters of each operand and of the result, with ``...`` replaced by unused letters."""
    left, arrow, output = subscripts.replace(" ", "").partition("->")
    terms = left.split(",")
    if len(terms) != len(ndims):
        raise ValueError(f"einsum: found {len(ndims)} operands, expected {len(terms)} for {subscripts!r}")
    counts = [
        ndim - len(term.replace("...", "")) if "..." in term else 0 for term, ndim in zip(terms, ndims, strict=True)
    ]
    spare = "".join(letter for letter in _LETTERS if letter not in subscripts)[: max(counts)]
    if not arrow:
        letters = left.replace(",", "").replace(".", "")
        output = "..." * ("..." in left) + "".join(
            sorted(letter for letter in set(letters) if letters.count(letter) == 1)
        )
    labels = [term.replace("...", spare[len(spare) - count :]) for term, count in zip(terms, counts, strict=True)]
    for term, ndim in zip(labels, ndims, strict=True):
        if len(term) != ndim:
            raise ShapeError(
                f"einsum: found an operand of {ndim} dimensions for the term {term!r} of {subscripts!r}, expected "
                f"{len(term)}"
            )
    output = output.replace("...", spare)
    if not set(output) <= set("".join(labels)) or len(set(output)) < len(output):
        raise ValueError(f"einsum: found the result of {subscripts!r}, expected letters of the operands, each once")
    return labels, output


def _without_repeats(x: Array, letters: str, sizes: dict[str, int]) -> tuple[Array, str]:
    """``x`` with the diagonal along repeated letters; broadcast dimensions of size 1 are removed."""
    while len(set(letters)) < len(letters):
        letter = next(letter for letter in letters if letters.count(letter) > 1)
        first, second = letters.index(letter), letters.rindex(letter)
        x = diagonal(x, 0, first, second)
        letters = "".join(other for at, other in enumerate(letters) if at not in (first, second)) + letter
    alone = tuple(at for at, letter in enumerate(letters) if x.shape[at] != sizes[letter])
    remaining = "".join(letter for at, letter in enumerate(letters) if at not in alone)
    return (ops.squeeze(x, axis=alone) if alone else x), remaining


def _sum_out(x: Array, letters: str, wanted: set[str]) -> tuple[Array, str]:
    axes = tuple(at for at, letter in enumerate(letters) if letter not in wanted)
    return (ops.sum(x, axis=axes) if axes else x), "".join(letter for letter in letters if letter in wanted)


def _contract(first: tuple[Array, str], second: tuple[Array, str], wanted: set[str]) -> tuple[Array, str]:
    """The product of two terms, summed over the letters that are not ``wanted``."""
    x1, a = _sum_out(*first, wanted | set(second[1]))
    x2, b = _sum_out(*second, wanted | set(a))
    both = [letter for letter in a if letter in b]
    stack, summed = (
        "".join(letter for letter in both if letter in wanted),
        "".join(letter for letter in both if letter not in wanted),
    )
    free1, free2 = (
        "".join(letter for letter in a if letter not in both),
        "".join(letter for letter in b if letter not in both),
    )
    sizes = dict(zip(a + b, (*x1.shape, *x2.shape), strict=True))

    def arranged(x: Array, letters: str, *groups: str) -> Array:
        x = ops.permute_dims(x, tuple(letters.index(letter) for letter in "".join(groups)))
        return ops.reshape(x, (*shape(groups[0]), *(size_of(shape(group)) for group in groups[1:])))

    def shape(group: str) -> tuple[int, ...]:
        return tuple(sizes[letter] for letter in group)

    left, right = arranged(x1, a, stack, free1, summed), arranged(x2, b, stack, summed, free2)
    return ops.reshape(ops.matmul(left, right), shape(stack + free1 + free2)), stack + free1 + free2
