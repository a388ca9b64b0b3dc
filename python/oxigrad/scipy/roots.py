"""`scipy.optimize.root`, `least_squares` and `curve_fit` for functions of trees."""

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np

from oxigrad._core import ShapeError
from oxigrad._typing import Array, Tree
from oxigrad.ops.backends import is_array
from oxigrad.scipy.vectors import Vectors, host, optimize, raveled, with_args

# Methods of `scipy.optimize.root` that use the Jacobian.
_WITH_JACOBIAN = {"hybr", "lm"}


def root(f: Callable[..., Tree], x0: Tree, args: Any = (), method: str = "hybr", **options: Any) -> Any:
    """Finds a tree ``x`` with ``f(x, *args)`` zero, from ``x0`` on, by `scipy.optimize.root`; the Jacobian is filled in.

    ``f`` returns a tree with as many numbers as ``x0``. Other arguments are SciPy's. Returns SciPy's ``OptimizeResult``, in which
    ``x`` is a tree. Raises `StructureError` where ``x0`` has no floating-point number, `DtypeError` where ``f`` is complex, and
    SciPy's errors.

    >>> import numpy as np
    >>> solution = root(lambda x: {"a": x["a"] ** 2 - 4.0, "b": x["b"] - x["a"]}, {"a": 1.0, "b": 0.0})
    >>> round(float(solution.x["b"]), 9)
    2.0
    """
    vectors, residual = Vectors(x0), with_args(f, args)
    jacobian = vectors.jacobian(residual) if method.lower() in _WITH_JACOBIAN else None
    solution = optimize.root(_vector_valued(vectors, residual), vectors.start, method=method, jac=jacobian, **options)
    solution.x = vectors.tree(solution.x)
    return solution


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

    The Jacobian is filled in; with ``sparse`` it is that of `oxigrad.sparse_jacobian`, for which SciPy has the methods "trf" and
    "dogbox". ``bounds`` is as of `minimize`; other arguments are SciPy's. Returns SciPy's ``OptimizeResult``,
    in which ``x`` and the gradient ``grad`` are trees. Raises as `minimize`, and `ValueError` for ``sparse`` with the method "lm".

    >>> import numpy as np
    >>> t = np.linspace(0.0, 1.0, 20)
    >>> found = least_squares(
    ...     lambda m: m["a"] * np.exp(-m["k"] * t) - 2.0 * np.exp(-3.0 * t), {"a": 1.0, "k": 1.0}
    ... )
    >>> round(float(found.x["k"]), 6)
    3.0
    """
    vectors, residual = Vectors(x0), with_args(f, args)
    limits = vectors.bounds(bounds)
    if limits is not None:
        options["bounds"] = (limits.lb, limits.ub)
    if sparse and options.get("method") == "lm":
        raise ValueError("least_squares: method is 'lm': expected 'trf' or 'dogbox' with sparse=True")
    jacobian = vectors.sparse_jacobian if sparse else vectors.jacobian
    solution = optimize.least_squares(
        _vector_valued(vectors, residual), vectors.start, jac=jacobian(residual), **options
    )
    solution.x, solution.grad = vectors.tree(solution.x), vectors.tree(solution.grad)
    return solution


def curve_fit(
    f: Callable[..., Array],
    xdata: Any,
    ydata: Array,
    p0: Tree = None,
    sigma: Any = None,
    bounds: Any = None,
    **options: Any,
) -> tuple[Tree, np.ndarray]:
    """Fits ``f(xdata, p)``, a function of a tree ``p`` of parameters, to ``ydata``, by `scipy.optimize.curve_fit`.

    ``f`` takes the parameters as one tree, like ``p0``, at which the fit begins. As SciPy's, a function ``f(xdata, a, b)`` of
    several parameters takes them one by one, from a list or vector ``p0`` on, and so does any function without ``p0``, from ones
    on. The Jacobian is filled in. ``sigma`` may have the shape of ``ydata``. Returns the tree, or vector, of the best parameters and their covariance, a NumPy array of shape
    (elements, elements) in the order of `oxigrad.tree.ravel`.

    Raises `ShapeError` where ``f(xdata, p0)`` has not the shape of ``ydata``, or that is empty, `TypeError` where ``p0`` is needed
    to tell how many parameters there are, or ``full_output`` is set, and as `minimize`.

    >>> import numpy as np
    >>> x = np.linspace(0.0, 4.0, 50)
    >>> found, covariance = curve_fit(
    ...     lambda x, p: p["a"] * np.sin(p["w"] * x), x, 2.0 * np.sin(1.5 * x), {"a": 1.0, "w": 1.3}
    ... )
    >>> round(float(found["w"]), 6), covariance.shape
    (1.5, (2, 2))
    """
    if options.get("full_output"):
        raise TypeError(
            "curve_fit: full_output is set: expected none; `least_squares` returns all that SciPy states of a fit"
        )
    f, p0 = _of_one_tree(f, p0)
    vectors = Vectors(p0)
    shape, expected = np.shape(host(f(xdata, vectors.tree(vectors.start)))), np.shape(host(ydata))
    if shape != expected:
        raise ShapeError(f"curve_fit: f(xdata, p0) has shape {shape}, ydata {expected}")
    if 0 in expected:
        raise ShapeError(f"curve_fit: ydata has shape {expected}: expected one number at least")

    def fitted(p: Tree) -> Any:
        return f(xdata, p)

    value, jacobian = _vector_valued(vectors, fitted), vectors.jacobian(fitted)
    if sigma is not None and np.shape(sigma := host(sigma)) == expected:
        sigma = np.ravel(sigma)
    limits = vectors.bounds(bounds)
    if limits is not None:
        options["bounds"] = (limits.lb, limits.ub)
    # SciPy leaves places without data out, by ``nan_policy="omit"``.
    fitted_vector, covariance = optimize.curve_fit(
        lambda places, *p: value(np.array(p))[places.astype(int)],
        np.arange(int(np.prod(expected))),
        np.ravel(host(ydata)),
        p0=vectors.start,
        sigma=sigma,
        jac=lambda places, *p: jacobian(np.array(p))[places.astype(int)],
        **options,
    )[:2]
    return vectors.tree(fitted_vector), covariance


def _of_one_tree(f: Callable[..., Array], p0: Tree) -> tuple[Callable[..., Array], Tree]:
    """A function of the data and a tree of parameters, and where its fit begins."""
    kinds = [parameter.kind for parameter in inspect.signature(f).parameters.values()]
    by_position = [kind for kind in kinds if kind <= inspect.Parameter.POSITIONAL_OR_KEYWORD]
    count = len(by_position) - 1
    if p0 is None:
        if count < 1 or inspect.Parameter.VAR_POSITIONAL in kinds:
            raise TypeError("curve_fit: p0 is None: expected a point to begin at, since f does not tell its parameters")
        p0 = np.ones(count)
    elif count < 2 or not (is_array(p0) or isinstance(p0, (list, tuple))):
        return f, p0
    start: Any = p0 if is_array(p0) else np.asarray(p0, np.float64)
    return (lambda x, p: f(x, *(p[at] for at in range(start.shape[0])))), start


def _vector_valued(vectors: Vectors, f: Callable[[Tree], Any]) -> Callable[[np.ndarray], np.ndarray]:
    return lambda vector: host(raveled(f(vectors.tree(vector))))
