"""Trees as the vectors of float64 that SciPy's solvers take, and functions of trees as functions of such vectors."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from oxigrad import tree, xp
from oxigrad._core import DtypeError, ShapeError, StructureError, Variable, plain
from oxigrad._names import library
from oxigrad._typing import Array, Tree
from oxigrad.autodiff.jacobians import hvp, jacobian
from oxigrad.autodiff.rules.tangents import is_numeric
from oxigrad.autodiff.sparse.jacobians import sparse_jacobian
from oxigrad.autodiff.transforms import value_and_grad_of
from oxigrad.ops.backends import device_of, is_array, is_complex, is_smooth, namespace, to_host

# SciPy states the types of arguments more narrowly than it takes them.
optimize: Any = library("scipy.optimize", "oxigrad.scipy needs SciPy: python -m pip install scipy")

_BOUNDS = (
    "a pair, the lowest and the greatest values, each a number, None or a tree like x0, such as an array; or "
    "scipy.optimize.Bounds"
)


class Vectors:
    """The vectors of trees like ``x0``.

    ``reads_variables`` is whether a called function depends on variables of an enclosing transform.

    Raises `StructureError` if ``x0`` has no floating-point number, and `TypeError` if one is complex.
    """

    start: np.ndarray
    unravel: Callable[[Any], Any]
    reads_variables: bool = False

    def __init__(self, x0: Tree) -> None:
        x0 = tree.map(lambda leaf: float(leaf) if type(leaf) is int else leaf, x0)
        if is_array(x0) and namespace(x0).isdtype(x0.dtype, "integral"):  # as SciPy's solvers take it
            x0 = xp.astype(x0, xp.float64)
        self._x0 = x0
        self._sample, self.unravel = tree.ravel(x0)
        if is_complex(self._sample):
            raise TypeError("the point has complex numbers: expected real ones; take real and imaginary parts")
        self.start = host(self._sample)
        if not self.start.size:
            raise StructureError("the point has arrays of size zero alone: expected one number at least")

    def tree(self, vector: np.ndarray) -> Tree:
        """The tree of a vector, with arrays of the libraries, dtypes and devices of the arrays of ``x0``."""
        return self.unravel(self.like_x0(vector))

    def value_and_gradient(self, f: Callable[[Tree], Array]) -> Callable[[np.ndarray], tuple[float, np.ndarray]]:
        """A scalar function of trees, as a function of vectors that returns its value and its gradient."""

        def called(vector: np.ndarray) -> tuple[float, np.ndarray]:
            value, gradient = value_and_grad_of(self.function(f), self.like_x0(vector))
            return self.host(value).item(), host(gradient)

        return called

    def function(self, f: Callable[[Tree], Array]) -> Callable[[Array], Array]:
        """A function of trees as a function of vectors of the library of ``x0``."""
        return lambda v: f(self.unravel(v))

    def residual(self, f: Callable[[Tree], Array]) -> Callable[[Array], Array]:
        """A function of trees whose result is a tree, as a function between vectors of the library of ``x0``."""
        return lambda v: raveled(f(self.unravel(v)))

    def value(self, f: Callable[[Tree], Array]) -> Callable[[np.ndarray], Array]:
        """A function of trees whose result is a number or a tree of arrays, as a function of vectors."""

        def called(vector: np.ndarray) -> Any:
            result = f(self.tree(vector))
            return float(self.host(result)) if _is_number(result) else self.host(raveled(result))

        return called

    def vector_valued(self, f: Callable[[Tree], Array]) -> Callable[[np.ndarray], np.ndarray]:
        """A function of trees whose result is a tree of numbers, as a function from vectors to vectors."""
        return lambda vector: self.host(raveled(f(self.tree(vector))))

    def jacobian(self, f: Callable[[Tree], Array]) -> Callable[[np.ndarray], np.ndarray]:
        """The Jacobian of the vector of a function's results, of shape (results, elements)."""
        of_vector = jacobian(self.residual(f))
        return lambda vector: host(of_vector(self.like_x0(vector)))

    def sparse_jacobian(self, f: Callable[[Tree], Array]) -> Callable[[np.ndarray], Array]:
        """The Jacobian of the vector of a function's results, as a CSR matrix of float64."""
        of_vector = sparse_jacobian(self.residual(f))
        return lambda vector: of_vector(self.like_x0(vector)).astype(np.float64)

    def hessian_product(self, f: Callable[[Tree], Array]) -> Callable[[np.ndarray, np.ndarray], np.ndarray]:
        """The product of the Hessian of a scalar function with a vector."""

        def product(vector: np.ndarray, direction: np.ndarray) -> np.ndarray:
            return host(hvp(self.function(f), (self.like_x0(vector),), (self.like_x0(np.ravel(direction)),))[0])

        return product

    def hessian(self, f: Callable[[Tree], Array]) -> Callable[[np.ndarray], np.ndarray]:
        """The Hessian matrix of a scalar function."""
        of_vector = jacobian(lambda v: value_and_grad_of(self.function(f), v)[1], mode="forward")
        return lambda vector: host(of_vector(self.like_x0(vector)))

    def bounds(self, bounds: Any) -> Any:
        """SciPy's bounds for the forms of `minimize`, or None without bounds."""
        if (limits := self.limits(bounds, takes_pairs=True)) is None:
            return None
        lower, upper = map(self.host, limits)
        return bounds if isinstance(bounds, optimize.Bounds) else optimize.Bounds(lower, upper)

    def limits(self, bounds: Any, *, takes_pairs: bool = False) -> tuple[Array, Array] | None:
        """The vectors of the lowest and the greatest values, which may be variables; None without bounds.

        If it ``takes_pairs``, bounds may be a pair (lowest, greatest) for each number, as in `scipy.optimize.minimize`.
        """
        if bounds is None:
            return None
        if isinstance(bounds, optimize.Bounds):
            return np.broadcast_to(bounds.lb, self.start.shape), np.broadcast_to(bounds.ub, self.start.shape)
        if takes_pairs and (pairs := self._of_pairs(bounds)) is not None:
            return pairs
        if not (isinstance(bounds, Sequence) and len(bounds) == 2):
            each = f", or {self.start.size} pairs, one for each number of x0" if takes_pairs else ""
            raise TypeError(f"bounds is {bounds!r}: expected {_BOUNDS}{each}")
        if is_array(self._x0) and not takes_pairs:  # SciPy takes lists, which `minimize` reads as pairs
            bounds = [xp.asarray(side) if isinstance(side, (list, tuple)) else side for side in bounds]
        return self._limit(bounds[0], -np.inf), self._limit(bounds[1], np.inf)

    def _of_pairs(self, bounds: Any) -> tuple[Array, Array] | None:
        """The vectors of both sides of SciPy's pairs, one for each number; None if the bounds are no such pairs."""
        if not (isinstance(bounds, (Sequence, np.ndarray)) and len(bounds) == self.start.size):
            return None
        if not all(map(_is_pair_of_numbers, bounds)):
            return None
        if len(bounds) == 2 and all(map(self._is_side, bounds)):
            raise TypeError(
                f"bounds is {bounds!r}: expected scipy.optimize.Bounds(lowest, greatest), since SciPy would read two "
                "pairs as the bounds of each number, and this function as the lowest and the greatest values"
            )
        lower, upper = zip(*bounds, strict=True)
        return _side(lower, -np.inf), _side(upper, np.inf)

    def _is_side(self, bound: Any) -> bool:
        """Whether bounds are a tree like ``x0``."""
        try:
            self._limit(bound, 0.0)
        except (TypeError, ValueError):
            return False
        return True

    def _limit(self, bound: Any, limit: float) -> Any:
        """The vector of one side; ``limit`` without a bound."""
        if bound is None or isinstance(bound, (int, float)):
            return np.full(self.start.shape, limit if bound is None else float(bound))

        def of_leaf(leaf: Any, side: Any) -> Any:
            shape, expected = (tuple(getattr(x, "shape", ())) for x in (side, leaf))
            if shape and _broadcast(shape, expected) != expected:
                raise ShapeError(f"bounds has a side of shape {shape}: expected a number, or {expected}, as in x0")
            return side + leaf * 0.0 if hasattr(leaf, "shape") else side * 1.0 if is_smooth(leaf) else leaf

        try:
            return tree.ravel(tree.map(of_leaf, self._x0, bound))[0]
        except StructureError as error:
            raise StructureError(f"bounds has a side {bound!r}: {error}; expected {_BOUNDS}") from None

    def constants(self, args: Any) -> Tree:
        """Arguments without variables; that there were some is remembered."""
        self.reads_variables |= any(isinstance(leaf, Variable) for leaf in tree.leaves(args))
        return tree.map(plain, args)

    def host(self, value: Any) -> np.ndarray:
        """A result on the host; that it is a variable is remembered."""
        self.reads_variables |= isinstance(value, Variable)
        return host(value)

    def like_x0(self, vector: np.ndarray) -> Array:
        """A copy of a vector in the library, dtype and device of ``x0``: SciPy writes to the vectors that it passes."""
        return like(np.array(vector, dtype=np.float64), plain(self._sample))


def like(vector: np.ndarray, array: Array) -> Array:
    """A vector of the library, dtype and device of an array."""
    if isinstance(array, np.ndarray):
        return vector.astype(array.dtype, copy=False)
    return namespace(array).asarray(vector, dtype=array.dtype, device=device_of(array))


def host(value: Any) -> np.ndarray:
    """An array or number as a NumPy array of float64. Raises `DtypeError` for complex ones.

    Their imaginary parts would be lost.
    """
    value = plain(value)
    array = np.asarray(to_host(value) if is_array(value) else value)
    if is_complex(array):
        raise DtypeError(
            "a function or its data has complex numbers: expected real ones; take real and imaginary parts"
        )
    return array.astype(np.float64, copy=False)


def with_args(f: Callable[..., Array], args: Any) -> Callable[[Tree], Array]:
    """``f`` of its first argument alone; ``args`` that are no tuple are one argument, as in SciPy."""
    others = args if isinstance(args, tuple) else (args,)
    return lambda x: f(x, *others)


def raveled(result: Any) -> Array:
    """The numbers of a result as one vector; an array keeps its library."""
    return xp.reshape(result, (-1,)) if is_array(plain(result)) else tree.ravel(result)[0]


def _is_number(value: Any) -> bool:
    return not getattr(value, "shape", ()) and (is_array(plain(value)) or isinstance(value, (int, float)))


def _is_pair_of_numbers(pair: Any) -> bool:
    """Whether it is a pair of numbers, of which each may be None."""
    if not isinstance(pair, (list, tuple)):
        return is_array(plain(pair)) and tuple(pair.shape) == (2,)
    return len(pair) == 2 and all(x is None or (is_numeric(x) and not getattr(x, "shape", ())) for x in pair)


def _side(numbers: Sequence[Any], limit: float) -> Array:
    """The vector of one side of pairs; ``limit`` in the place of None."""
    return xp.asarray([limit if number is None else number for number in numbers]) * 1.0


def _broadcast(shape: tuple[int, ...], other: tuple[int, ...]) -> tuple[int, ...] | None:
    """The broadcast shape, or None if there is none."""
    try:
        return np.broadcast_shapes(shape, other)
    except ValueError:
        return None
