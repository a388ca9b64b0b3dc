"""`scipy.optimize.minimize` for scalar functions of trees."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from oxigrad import xp
from oxigrad._names import check_callable
from oxigrad._typing import Array, Tree
from oxigrad.autodiff.transforms import value_and_grad_of
from oxigrad.scipy.solutions import Problem, Rows, limit_rows, minimum, unbatched, valued
from oxigrad.scipy.vectors import Vectors, like, optimize, with_args

# Methods of SciPy that use no derivatives, the product of the Hessian with a vector, and the Hessian.
_WITHOUT_GRADIENT = {"nelder-mead", "powell", "cobyla", "cobyqa"}
_WITH_PRODUCTS = {"newton-cg", "trust-ncg", "trust-krylov", "trust-constr"}
_WITH_HESSIAN = {"dogleg", "trust-exact"}


@unbatched
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

    Args:
        f: function of a tree that returns a real number.
        x0: tree at which the minimization begins. Integers count as floating-point numbers, as in SciPy.
        args: further arguments of ``f``, a tuple or one value.
        method: method of SciPy, such as "BFGS" or "trust-constr"; None takes SciPy's choice.
        bounds: pair of the lowest and the greatest values, each a tree like ``x0``, a number, or None for no bound.
            SciPy's forms are ``Bounds``, and a pair for each number of ``x0``. `TypeError` if two pairs have both
            meanings.
        constraints: SciPy's constraints as functions of trees: dicts ``{"type": "eq" or "ineq", "fun": g}``, or
            ``NonlinearConstraint(g, low, high)``.
        callback: function that is called with the tree of each iteration; it stops by raising ``StopIteration``.
        tol: tolerance at which the method stops; None takes SciPy's.
        options: options of the method, as in SciPy.

    Returns:
        SciPy's ``OptimizeResult``, in which ``x`` and the gradient ``jac`` are trees; ``x`` has the library, dtypes and
        devices of ``x0``.

    Gradients, products with the Hessian and Hessians are computed automatically if the method uses them, as are
    Jacobians of constraints.

    Inside a transform such as `oxigrad.grad`, ``x``, ``fun`` and ``jac`` are differentiable functions of the variables
    that ``f``, ``args``, ``bounds`` and ``constraints`` read. The first-order conditions of the minimum give the
    derivatives, in both modes and to any order. They hold if ``success`` is true. Other fields are constants. The
    derivatives require the second derivatives of ``f`` and of active constraints.

    Raises `StructureError` if ``x0`` has no floating-point number, `ShapeError` if ``f`` is not a scalar, `DtypeError`
    if it is complex, `numpy.linalg.LinAlgError` if the minimum has no derivative, and SciPy's errors.

    >>> import numpy as np
    >>> found = minimize(lambda x: np.sum((x - 3.0) ** 4), np.zeros(2), bounds=(None, 2.0))
    >>> found.x
    array([2., 2.])
    >>> from oxigrad import grad
    >>> round(float(grad(lambda a: minimize(lambda x: (x - a) ** 2 + x**4, 1.0).x)(3.0)), 3)
    0.143
    """
    check_callable(f, "minimize")
    vectors, name = Vectors(x0), method.lower() if isinstance(method, str) else method
    objective = with_args(f, vectors.constants(args))
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
    if vectors.reads_variables:
        functions = [vectors.function(each) for each in (with_args(f, args), objective)]
        _follow(result, vectors, functions, bounds, constraints)
        return result
    result.x = vectors.tree(result.x)
    if _is_gradient(result, vectors):
        result.jac = vectors.tree(result.jac)
    return result


def _is_gradient(result: Any, vectors: Vectors) -> bool:
    """Whether the field ``jac`` of a result is the gradient, rather than a list of Jacobians."""
    return isinstance(result.get("jac"), np.ndarray) and result.jac.shape == vectors.start.shape


def _follow(
    result: Any, vectors: Vectors, objectives: list[Callable[[Any], Any]], bounds: Any, constraints: Any
) -> None:
    """Makes the point, the value and the gradient of a result functions of the variables that the problem reads.

    The two objectives are functions of the arguments and of the arguments' values.
    """
    point, keep = vectors.like_x0(result.x), lambda args: args
    problem, constant = (
        Problem(objective, _rows(vectors, point, bounds, constraints, arguments))
        for objective, arguments in zip(objectives, (keep, vectors.constants), strict=True)
    )
    x = minimum("minimize", vectors, problem, constant, result.x)
    result.x = vectors.unravel(x)
    value, gradient = value_and_grad_of(objectives[0], x)
    result.fun = valued(result.fun, value)
    if _is_gradient(result, vectors):
        result.jac = vectors.unravel(valued(vectors.like_x0(result.jac), gradient))


def _callback(callback: Callable[[Tree], Any], vectors: Vectors) -> Callable[..., Any]:
    """SciPy's callback. A parameter named for a result asks for it; all methods except "tnc" then pass it.

    Other callbacks receive the point.
    """

    def called(intermediate_result: Any) -> Any:
        return callback(vectors.tree(getattr(intermediate_result, "x", intermediate_result)))

    return called


def _listed(constraints: Any) -> list[Any]:
    return list(constraints) if isinstance(constraints, (list, tuple)) else [constraints]


def _constraints(constraints: Any, vectors: Vectors) -> list[Any]:
    """Constraints on trees as constraints on vectors, with Jacobians."""
    return [_constraint(each, vectors) for each in _listed(constraints)]


def _constraint(constraint: Any, vectors: Vectors) -> Any:
    if isinstance(constraint, optimize.NonlinearConstraint):
        fun, limits = constraint.fun, [vectors.host(limit) for limit in (constraint.lb, constraint.ub)]
        return optimize.NonlinearConstraint(
            vectors.value(fun), *limits, jac=vectors.jacobian(fun), hess=constraint.hess
        )
    if isinstance(constraint, Mapping):
        if not (constraint.get("type") in ("eq", "ineq") and callable(constraint.get("fun"))):
            raise TypeError(f'constraints has {constraint!r}: expected {{"type": "eq" or "ineq", "fun": function}}')
        fun = with_args(constraint["fun"], vectors.constants(constraint.get("args", ())))
        return {"type": constraint["type"], "fun": vectors.value(fun), "jac": vectors.jacobian(fun)}
    return constraint


def _rows(vectors: Vectors, x: Array, bounds: Any, constraints: Any, arguments: Callable[[Any], Any]) -> list[Rows]:
    """Bounds and constraints at the minimum ``x`` as rows; ``arguments`` maps arguments that may hold variables."""
    limits = vectors.limits(bounds, takes_pairs=True)
    rows = [] if limits is None else limit_rows(lambda v: v, x, *map(arguments, limits))
    for constraint in _listed(constraints):
        if isinstance(constraint, Mapping):
            function = vectors.residual(with_args(constraint["fun"], arguments(constraint.get("args", ()))))
            rows += limit_rows(function, x, 0.0, 0.0 if constraint["type"] == "eq" else np.inf)
        else:
            limits = arguments((constraint.lb, constraint.ub))
            rows += limit_rows(_constrained(constraint, vectors, x), x, *limits)
    return rows


def _constrained(constraint: Any, vectors: Vectors, x: Array) -> Callable[[Any], Any]:
    """The function of a linear or nonlinear constraint of SciPy."""
    if isinstance(constraint, optimize.NonlinearConstraint):
        return vectors.residual(constraint.fun)
    matrix = like(np.asarray(getattr(constraint.A, "toarray", lambda: constraint.A)()), x)
    return lambda v: xp.matmul(matrix, v)
