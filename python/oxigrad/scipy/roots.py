"""`scipy.optimize.root` and `least_squares` for functions of trees."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from oxigrad import xp
from oxigrad._core import ShapeError
from oxigrad._names import check_callable
from oxigrad._typing import Array, Tree
from oxigrad.autodiff.jacobians import jacobian
from oxigrad.autodiff.transforms import value_and_grad_of
from oxigrad.scipy.solutions import Problem, followed, limit_rows, minimum, unbatched, valued
from oxigrad.scipy.vectors import Vectors, optimize, with_args

# Methods of `scipy.optimize.root` that use the Jacobian.
_WITH_JACOBIAN = {"hybr", "lm"}


@unbatched
def root(f: Callable[..., Tree], x0: Tree, args: Any = (), method: str = "hybr", **options: Any) -> Any:
    """Finds a tree ``x`` with ``f(x, *args)`` zero, starting from ``x0``, by `scipy.optimize.root`.

    Args:
        f: function that returns a tree with the same number of elements as ``x0``.
        x0: tree at which the search begins.
        args: further arguments of ``f``, a tuple or one value.
        method: method of SciPy, such as "hybr", "lm" or "krylov".
        **options: further arguments of `scipy.optimize.root`.

    Returns SciPy's ``OptimizeResult``, in which ``x`` is a tree. The Jacobian is computed automatically.

    Inside a transform such as `oxigrad.grad`, ``x`` is a differentiable function of the variables that ``f`` and
    ``args`` read, by the implicit function theorem, in both modes and to any order. The derivatives hold if ``success``
    is true. Other fields are constants.

    Raises `StructureError` if ``x0`` has no floating-point number, `ShapeError` if ``f`` returns another number of
    elements than ``x0`` has, `DtypeError` if ``f`` is complex, `numpy.linalg.LinAlgError` if the root has no
    derivative, and SciPy's errors.

    >>> import numpy as np
    >>> solution = root(lambda x: {"a": x["a"] ** 2 - 4.0, "b": x["b"] - x["a"]}, {"a": 1.0, "b": 0.0})
    >>> round(float(solution.x["b"]), 9)
    2.0
    >>> from oxigrad import grad
    >>> round(float(grad(lambda a: root(lambda x: x**3 - a, 1.0).x)(8.0)), 6)
    0.083333
    """
    check_callable(f, "root")
    vectors = Vectors(x0)
    residual = with_args(f, vectors.constants(args))
    derivative = vectors.jacobian(residual) if method.lower() in _WITH_JACOBIAN else None
    solution = optimize.root(
        _square("root", vectors.vector_valued(residual)), vectors.start, method=method, jac=derivative, **options
    )
    x = vectors.like_x0(solution.x)
    if vectors.reads_variables:
        x = followed("root", vectors.residual(with_args(f, args)), vectors.residual(residual), x)
    solution.x = vectors.unravel(x)
    return solution


def _square(name: str, f: Callable[[np.ndarray], np.ndarray]) -> Callable[[np.ndarray], np.ndarray]:
    """A function between vectors that must have one length; raises `ShapeError` for another one."""

    def called(x: np.ndarray) -> np.ndarray:
        if (value := f(x)).size != x.size:
            raise ShapeError(f"{name}: f returns {value.size} numbers: expected {x.size}, the number of elements of x0")
        return value

    return called


@unbatched
def least_squares(
    f: Callable[..., Tree],
    x0: Tree,
    args: Any = (),
    bounds: Any = None,
    *,
    sparse: bool = False,
    **options: Any,
) -> Any:
    """Minimizes the sum of squares of the residuals ``f(x, *args)``, a tree, by `scipy.optimize.least_squares`.

    Args:
        f: function that returns the residuals, a tree.
        x0: tree at which the minimization begins.
        args: further arguments of ``f``, a tuple or one value.
        bounds: pair of the lowest and the greatest values as in `minimize`, or SciPy's ``Bounds``; None is no bound.
        sparse: whether `oxigrad.sparse_jacobian` computes the Jacobian, for the methods "trf" and "dogbox".
        **options: further arguments of `scipy.optimize.least_squares`.

    Returns SciPy's ``OptimizeResult``, in which ``x`` and the gradient ``grad`` are trees. The Jacobian is computed
    automatically. Raises the errors of `minimize`, and `ValueError` for ``sparse`` with the method "lm".

    >>> import numpy as np
    >>> t = np.linspace(0.0, 1.0, 20)
    >>> found = least_squares(
    ...     lambda m: m["a"] * np.exp(-m["k"] * t) - 2.0 * np.exp(-3.0 * t), {"a": 1.0, "k": 1.0}
    ... )
    >>> round(float(found.x["k"]), 6)
    3.0
    """
    check_callable(f, "least_squares")
    vectors = Vectors(x0)
    residual = with_args(f, vectors.constants(args))
    if (limits := vectors.limits(bounds)) is not None:
        options["bounds"] = tuple(map(vectors.host, limits))
    if sparse and options.get("method") == "lm":
        raise ValueError("least_squares: method is 'lm': expected 'trf' or 'dogbox' with sparse=True")
    derivative = vectors.sparse_jacobian if sparse else vectors.jacobian
    solution = optimize.least_squares(
        vectors.vector_valued(residual), vectors.start, jac=derivative(residual), **options
    )
    if vectors.reads_variables:
        residuals = [vectors.residual(each) for each in (with_args(f, args), residual)]
        _follow(solution, vectors, residuals, limits, sparse=sparse, **options)
    else:
        solution.x, solution.grad = vectors.tree(solution.x), vectors.tree(solution.grad)
    return solution


def least(
    name: str,
    vectors: Vectors,
    residuals: Sequence[Callable[[Array], Array]],
    x: np.ndarray,
    limits: tuple[Array, Array] | None,
    *,
    loss: Any = "linear",
    f_scale: float = 1.0,
    **_: Any,
) -> Array:
    """The minimum ``x`` of SciPy's cost of a residual within limits, as a function of the variables they read.

    The two residuals are functions of the arguments and of the arguments' values.
    """
    rows = [] if limits is None else limit_rows(lambda v: v, vectors.like_x0(x), *limits)
    problem, constant = (Problem(_cost(each, loss, f_scale), rows) for each in residuals)
    return minimum(name, vectors, problem, constant, x)


def _follow(
    solution: Any,
    vectors: Vectors,
    residuals: Sequence[Callable[[Array], Array]],
    limits: tuple[Array, Array] | None,
    *,
    sparse: bool,
    **options: Any,
) -> None:
    """Makes the fields of a result functions of the variables that the residual and the limits read."""
    x, residual = least("least_squares", vectors, residuals, solution.x, limits, **options), residuals[0]
    loss, f_scale = options.get("loss", "linear"), options.get("f_scale", 1.0)
    cost, gradient = value_and_grad_of(_cost(residual, loss, f_scale), x)
    solution.x, solution.grad = vectors.unravel(x), vectors.unravel(valued(vectors.like_x0(solution.grad), gradient))
    solution.cost, solution.fun = valued(solution.cost, cost), valued(solution.fun, residual(x))
    if not sparse:
        solution.jac = valued(solution.jac, jacobian(residual)(x))


def _cost(residual: Callable[[Array], Array], loss: Any, f_scale: float) -> Callable[[Array], Array]:
    """Half the sum of SciPy's losses of the squares of a residual, a function of vectors."""
    return lambda v: xp.sum(_loss(loss, (residual(v) / f_scale) ** 2)) * (0.5 * f_scale**2)


def _loss(loss: Any, squares: Array) -> Array:
    """SciPy's losses of squares of residuals: a name, or a function that returns the values and two derivatives."""
    return _LOSSES[loss](squares) if isinstance(loss, str) else loss(squares)[0]


_LOSSES: dict[str, Any] = {
    "linear": lambda z: z,
    "soft_l1": lambda z: 2.0 * (xp.sqrt(1.0 + z) - 1.0),
    "huber": lambda z: xp.where(z <= 1.0, z, 2.0 * xp.sqrt(xp.maximum(z, 1.0)) - 1.0),
    "cauchy": xp.log1p,
    "arctan": xp.atan,
}
