"""Trees as the vectors of float64 that SciPy's solvers take, and functions of trees as functions of such vectors."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from oxigrad import tree, xp
from oxigrad._core import DtypeError, StructureError, plain
from oxigrad._names import library
from oxigrad._typing import Tree
from oxigrad.autodiff.jacobians import hvp, jacobian
from oxigrad.autodiff.sparse.jacobians import sparse_jacobian
from oxigrad.autodiff.transforms import value_and_grad_of
from oxigrad.ops.backends import device_of, is_array, is_complex, is_smooth, namespace, to_host

# SciPy states the types of arguments more narrowly than it takes them.
optimize: Any = library("scipy.optimize", "oxigrad.scipy needs SciPy: python -m pip install scipy")


class Vectors:
    """The vectors of trees like ``x0``.

    Raises `StructureError` where ``x0`` has no floating-point number, and `TypeError` where one is complex.
    """

    start: np.ndarray

    def __init__(self, x0: Tree) -> None:
        x0 = tree.map(lambda leaf: float(leaf) if type(leaf) is int else leaf, x0)
        self._x0 = x0
        self._sample, self._unravel = tree.ravel(x0)
        if is_complex(self._sample):
            raise TypeError("the point has complex numbers: expected real ones; take real and imaginary parts")
        self.start = host(self._sample)
        if not self.start.size:
            raise StructureError("the point has arrays of size zero alone: expected one number at least")

    def tree(self, vector: np.ndarray) -> Tree:
        """The tree of a vector, with arrays of the library, dtype and device of those of ``x0``."""
        return self._unravel(self._like_x0(vector))

    def vector(self, tree_: Tree) -> np.ndarray:
        """The vector of a tree of the structure of ``x0``."""
        return host(tree.ravel(tree_)[0])

    def value_and_gradient(self, f: Callable[[Tree], Any]) -> Callable[[np.ndarray], tuple[float, np.ndarray]]:
        """A scalar function of trees, as a function of vectors that returns its value and its gradient."""

        def called(vector: np.ndarray) -> tuple[float, np.ndarray]:
            value, gradient = value_and_grad_of(lambda v: f(self._unravel(v)), self._like_x0(vector))
            return host(value).item(), host(gradient)

        return called

    def value(self, f: Callable[[Tree], Any]) -> Callable[[np.ndarray], Any]:
        """A function of trees whose result is a number or a tree of arrays, as a function of vectors."""

        def called(vector: np.ndarray) -> Any:
            result = f(self.tree(vector))
            return float(host(result)) if _is_number(result) else host(raveled(result))

        return called

    def jacobian(self, f: Callable[[Tree], Any]) -> Callable[[np.ndarray], np.ndarray]:
        """The Jacobian of the vector of a function's results, of shape (results, elements)."""
        of_vector = jacobian(lambda v: raveled(f(self._unravel(v))))
        return lambda vector: host(of_vector(self._like_x0(vector)))

    def sparse_jacobian(self, f: Callable[[Tree], Any]) -> Callable[[np.ndarray], Any]:
        """The Jacobian of the vector of a function's results, as a CSR matrix of float64."""
        of_vector = sparse_jacobian(lambda v: raveled(f(self._unravel(v))))
        return lambda vector: of_vector(self._like_x0(vector)).astype(np.float64)

    def hessian_product(self, f: Callable[[Tree], Any]) -> Callable[[np.ndarray, np.ndarray], np.ndarray]:
        """The product of the Hessian of a scalar function with a vector."""

        def product(vector: np.ndarray, direction: np.ndarray) -> np.ndarray:
            of_vector = lambda v: f(self._unravel(v))  # noqa: E731
            return host(hvp(of_vector, (self._like_x0(vector),), (self._like_x0(np.ravel(direction)),))[0])

        return product

    def hessian(self, f: Callable[[Tree], Any]) -> Callable[[np.ndarray], np.ndarray]:
        """The Hessian matrix of a scalar function."""
        of_vector = jacobian(lambda v: value_and_grad_of(lambda v: f(self._unravel(v)), v)[1], mode="forward")
        return lambda vector: host(of_vector(self._like_x0(vector)))

    def bounds(self, bounds: Any) -> Any:
        """SciPy's bounds of a pair of trees, or of numbers for all; None where there are none."""
        if bounds is None or isinstance(bounds, optimize.Bounds):
            return bounds
        if not (isinstance(bounds, Sequence) and len(bounds) == 2):
            raise TypeError(f"bounds is {bounds!r}: expected a pair, the lowest and the greatest values")
        return optimize.Bounds(self._bound(bounds[0], -np.inf), self._bound(bounds[1], np.inf))

    def _bound(self, bound: Any, limit: float) -> np.ndarray:
        """The vector of one side; ``limit`` where there is none."""
        if bound is None or isinstance(bound, (int, float)):
            return np.full(self.start.shape, limit if bound is None else float(bound))

        def of_leaf(leaf: Any, side: Any) -> Any:
            return side + leaf * 0.0 if hasattr(leaf, "shape") else float(side) if is_smooth(leaf) else leaf

        return self.vector(tree.map(of_leaf, self._x0, bound))

    def _like_x0(self, vector: np.ndarray) -> Any:
        """A vector of the library, dtype and device of ``x0``."""
        like = plain(self._sample)
        copied = np.array(vector, dtype=np.float64)  # SciPy writes to the vectors that it passes
        if isinstance(like, np.ndarray):
            return copied.astype(like.dtype, copy=False)
        return namespace(like).asarray(copied, dtype=like.dtype, device=device_of(like))


def host(value: Any) -> np.ndarray:
    """An array or number as a NumPy array of float64. Raises `DtypeError` for complex ones, whose imaginary parts would be lost."""
    value = plain(value)
    array = np.asarray(to_host(value) if is_array(value) else value)
    if is_complex(array):
        raise DtypeError(
            "a function or its data has complex numbers: expected real ones; take real and imaginary parts"
        )
    return array.astype(np.float64, copy=False)


def with_args(f: Callable[..., Any], args: Any) -> Callable[[Tree], Any]:
    """``f`` of its first argument alone; ``args`` that are no tuple are one argument, as in SciPy."""
    others = args if isinstance(args, tuple) else (args,)
    return lambda x: f(x, *others)


def raveled(result: Any) -> Any:
    """The numbers of a result as one vector; an array keeps its library."""
    return xp.reshape(result, (-1,)) if is_array(plain(result)) else tree.ravel(result)[0]


def _is_number(value: Any) -> bool:
    return not getattr(value, "shape", ()) and (is_array(plain(value)) or isinstance(value, (int, float)))
