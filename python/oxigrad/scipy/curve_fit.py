"""`scipy.optimize.curve_fit` for functions of trees."""

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np

from oxigrad import xp
from oxigrad._core import ShapeError, plain
from oxigrad._names import check_callable
from oxigrad._typing import Array, Tree
from oxigrad.autodiff.jacobians import jacobian
from oxigrad.ops.backends import is_array
from oxigrad.scipy.roots import least
from oxigrad.scipy.solutions import unbatched, valued
from oxigrad.scipy.vectors import Vectors, host, optimize, raveled


@unbatched
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

    Args:
        f: model ``f(xdata, p)`` of one tree of parameters or, as in SciPy, ``f(xdata, a, b)`` of several numbers.
        xdata: data that ``f`` takes, of any type.
        ydata: array that ``f(xdata, p)`` is fitted to.
        p0: parameters at which the fit begins; None begins at ones, with a number for each argument of ``f``. A list
            of numbers is a vector.
        sigma: standard deviations of ``ydata``, of its shape, or its covariance; None weighs all elements equally.
        bounds: pair of the lowest and the greatest values as in `minimize`, or SciPy's ``Bounds``; None is no bound.
        **options: further arguments of `scipy.optimize.curve_fit`.

    Returns:
        The best parameters, a tree like ``p0`` or a vector, and their covariance, a NumPy array of shape (elements,
        elements) in the order of `oxigrad.tree.ravel`.

    The Jacobian is computed automatically.

    Inside a transform such as `oxigrad.grad`, both are differentiable functions of the variables that ``f``, ``xdata``,
    ``ydata``, ``sigma`` and ``bounds`` read, as in `oxigrad.scipy.minimize`.

    Raises `ShapeError` if ``f(xdata, p0)`` and ``ydata`` differ in shape, or are empty. Raises `TypeError` if the
    number of parameters is unknown without ``p0``, or if ``full_output`` is set. Other errors are as in `minimize`.

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
    check_callable(f, "curve_fit")
    f, p0 = _of_one_tree(f, p0)
    vectors = Vectors(p0)
    shape, expected = np.shape(host(f(xdata, vectors.tree(vectors.start)))), np.shape(host(ydata))
    if shape != expected:
        raise ShapeError(f"curve_fit: f(xdata, p0) has shape {shape}, ydata {expected}")
    if 0 in expected:
        raise ShapeError(f"curve_fit: ydata has shape {expected}: expected one number at least")

    def fitted(p: Tree) -> Array:
        return f(xdata, p)

    value, derivative = vectors.vector_valued(fitted), vectors.jacobian(fitted)
    if sigma is not None and np.shape(host(sigma)) == expected:
        sigma = xp.reshape(sigma, (-1,)) if is_array(plain(sigma)) else np.ravel(sigma)
    if (limits := vectors.limits(bounds)) is not None:
        options["bounds"] = tuple(map(vectors.host, limits))
    # SciPy leaves places without data out, by ``nan_policy="omit"``.
    fitted_vector, covariance = optimize.curve_fit(
        lambda places, *p: value(np.array(p))[places.astype(int)],
        np.arange(int(np.prod(expected))),
        np.ravel(vectors.host(ydata)),
        p0=vectors.start,
        sigma=None if sigma is None else vectors.host(sigma),
        jac=lambda places, *p: derivative(np.array(p))[places.astype(int)],
        **options,
    )[:2]
    if not vectors.reads_variables:
        return vectors.tree(fitted_vector), covariance

    present = np.flatnonzero(~np.isnan(np.ravel(host(ydata))))
    data = xp.reshape(ydata, (-1,)) if is_array(plain(ydata)) else np.ravel(np.asarray(ydata, np.float64))

    def residual(v: Array) -> Array:
        return _weighted((raveled(fitted(vectors.unravel(v))) - data)[present], sigma, present)

    vector = least("curve_fit", vectors, [residual, residual], fitted_vector, limits, **options)
    return vectors.unravel(vector), _covariance(residual, vector, covariance, **options)


def _weighted(residual: Any, sigma: Any, present: np.ndarray) -> Array:
    """The residual divided by standard deviations, or by the Cholesky factor of the covariance of the data."""
    if sigma is None:
        return residual
    if np.ndim(host(sigma)) < 2:
        return residual / (sigma[present] if np.size(host(sigma)) > 1 else sigma)
    factor = xp.linalg.cholesky(sigma[present][:, present])
    return xp.linalg.solve(factor, residual)


def _covariance(
    residual: Callable[[Array], Array], x: Array, covariance: np.ndarray, *, absolute_sigma: bool = False, **_: Any
) -> Array:
    """The covariance of the parameters: SciPy's value, with the derivative of its formula."""
    slopes, differences = jacobian(residual)(x), residual(x)
    computed = xp.linalg.inv(xp.matmul(xp.matrix_transpose(slopes), slopes))
    if not absolute_sigma:
        computed = computed * (xp.sum(differences**2) / (differences.shape[0] - x.shape[0]))
    return valued(covariance, computed)


def _of_one_tree(f: Callable[..., Array], p0: Tree) -> tuple[Callable[..., Array], Tree]:
    """A function of the data and a tree of parameters, and the starting point of its fit."""
    kinds = [parameter.kind for parameter in inspect.signature(f).parameters.values()]
    by_position = [kind for kind in kinds if kind <= inspect.Parameter.POSITIONAL_OR_KEYWORD]
    count = len(by_position) - 1
    if p0 is None:
        if count < 1 or inspect.Parameter.VAR_POSITIONAL in kinds:
            raise TypeError("curve_fit: p0 is None: expected a point to begin at, since f does not tell its parameters")
        p0 = np.ones(count)
    elif count < 2 and type(p0) in (list, tuple) and all(isinstance(each, (int, float)) for each in p0):
        return f, np.asarray(p0, np.float64)  # as SciPy reads it
    elif count < 2 or not (is_array(p0) or isinstance(p0, (list, tuple))):
        return f, p0
    start: Array = p0 if is_array(p0) else np.asarray(p0, np.float64)
    return (lambda x, p: f(x, *(p[at] for at in range(start.shape[0])))), start
