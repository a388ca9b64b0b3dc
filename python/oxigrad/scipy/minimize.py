"""`scipy.optimize.minimize` for scalar functions of trees."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from oxigrad._typing import Tree
from oxigrad.scipy.vectors import Vectors, optimize, with_args

# Methods of SciPy that use no derivatives, the product of the Hessian with a vector, and the Hessian.
_WITHOUT_GRADIENT = {"nelder-mead", "powell", "cobyla", "cobyqa"}
_WITH_PRODUCTS = {"newton-cg", "trust-ncg", "trust-krylov", "trust-constr"}
_WITH_HESSIAN = {"dogleg", "trust-exact"}


def minimize(
    f: Callable[..., Any],
    x0: Tree,
    args: Any = (),
    method: str | Callable[..., Any] | None = None,
    *,
    bounds: Any = None,
    constraints: Any = (),
    callback: Callable[[Tree], Any] | None = None,
    tol: float | None = None,
    options: Mapping[str, Any] | None = None,
) -> Any:
    """Minimizes the scalar function ``f(x, *args)`` of a tree, from ``x0`` on, by `scipy.optimize.minimize`.

    ``method`` and ``options`` are SciPy's. Gradients, products with the Hessian and Hessians are filled in where the method uses
    them, and so are Jacobians of constraints. ``bounds`` is a pair of trees of the structure of ``x0`` (or numbers, or None for no
    bound), the lowest and the greatest values, or SciPy's ``Bounds``. ``constraints`` are SciPy's, as functions of trees: dicts
    ``{"type": "eq" or "ineq", "fun": g}``, or ``NonlinearConstraint(g, low, high)``. ``callback`` is called with the tree
    of each iteration; one that raises ``StopIteration`` stops.

    Returns SciPy's ``OptimizeResult``, in which ``x`` and the gradient ``jac`` are trees; ``x`` has the library, dtypes and
    devices of ``x0``.

    Raises `StructureError` where ``x0`` has no floating-point number, `ShapeError` where ``f`` is not a scalar, `DtypeError` where it
    is complex, and SciPy's errors.

    >>> import numpy as np
    >>> found = minimize(lambda x: np.sum((x - 3.0) ** 4), np.zeros(2), bounds=(None, 2.0))
    >>> found.x
    array([2., 2.])
    """
    vectors, name = Vectors(x0), method.lower() if isinstance(method, str) else method
    objective = with_args(f, args)
    named: dict[str, Any] = {}
    if name in _WITHOUT_GRADIENT:
        function: Callable[[np.ndarray], Any] = vectors.value(objective)
    else:
        function, named["jac"] = vectors.value_and_gradient(objective), True
    if name in _WITH_PRODUCTS:
        named["hessp"] = vectors.hessian_product(objective)
    if name in _WITH_HESSIAN:
        named["hess"] = vectors.hessian(objective)
    if callback is not None:
        named["callback"] = _callback(callback, vectors)
    result = optimize.minimize(
        function,
        vectors.start,
        method=method,
        bounds=vectors.bounds(bounds),
        constraints=_constraints(constraints, vectors),
        tol=tol,
        options=None if options is None else dict(options),
        **named,
    )
    result.x = vectors.tree(result.x)
    if isinstance(result.get("jac"), np.ndarray) and result.jac.shape == vectors.start.shape:
        result.jac = vectors.tree(result.jac)
    return result


def _callback(callback: Callable[[Tree], Any], vectors: Vectors) -> Callable[..., Any]:
    """SciPy's callback: the name of the parameter asks for a result, which all methods but "tnc" pass in the place of the point."""

    def called(intermediate_result: Any) -> Any:
        return callback(vectors.tree(getattr(intermediate_result, "x", intermediate_result)))

    return called


def _constraints(constraints: Any, vectors: Vectors) -> Any:
    """Constraints on trees as constraints on vectors, with Jacobians."""
    several = constraints if isinstance(constraints, (list, tuple)) else [constraints]
    return [_constraint(each, vectors) for each in several]


def _constraint(constraint: Any, vectors: Vectors) -> Any:
    if isinstance(constraint, optimize.NonlinearConstraint):
        fun = constraint.fun
        return optimize.NonlinearConstraint(
            vectors.value(fun), constraint.lb, constraint.ub, jac=vectors.jacobian(fun), hess=constraint.hess
        )
    if isinstance(constraint, Mapping):
        extra = constraint.get("args", ())
        fun = lambda x: constraint["fun"](x, *extra)  # noqa: E731
        return {"type": constraint["type"], "fun": vectors.value(fun), "jac": vectors.jacobian(fun)}
    return constraint
