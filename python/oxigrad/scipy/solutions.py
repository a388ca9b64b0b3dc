"""Solutions of SciPy's solvers as functions of the variables that the solved problem reads.

A solver sees plain numbers, so its result has no derivative. The derivatives follow from the equations that the
solution satisfies: the residual of a root, and the first-order (Karush-Kuhn-Tucker) conditions of a minimum.
"""

import functools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, cast

import numpy as np

from oxigrad import xp
from oxigrad._core import TapeEndedError, Variable, plain
from oxigrad._names import library
from oxigrad._typing import Array, F
from oxigrad.autodiff.custom_rules import custom_vjp
from oxigrad.autodiff.jacobians import jacobian
from oxigrad.autodiff.transforms import jvp, value_and_grad_of, vjp
from oxigrad.ops.backends import UnbatchedError
from oxigrad.scipy.closures import without_variables
from oxigrad.scipy.vectors import Vectors, host, like

# A differentiable function from vectors to vectors or scalars, of the library of the point.
Function = Callable[[Any], Any]

sparse: Any = library("scipy.sparse.linalg", "oxigrad.scipy needs SciPy: python -m pip install scipy")

# The matrix of more equations is not formed: products with it are solved by MINRES or GMRES.
DENSE_LIMIT = 1000


class Rows(NamedTuple):
    """Constraints ``function(x) = 0`` where ``is_equality`` is true, and ``function(x) >= 0`` elsewhere."""

    function: Function
    is_equality: np.ndarray


class Problem(NamedTuple):
    """A function to minimize, and its constraints."""

    objective: Function
    rows: Sequence[Rows]


_TOLERANCES = {"tol", "ftol", "xtol", "gtol"}
# SciPy's arguments for derivatives.
_DERIVATIVES = {"jac", "hess", "hessp", "jac_sparsity"}


def unbatched(function: F) -> F:
    """Decorates a solver, which has no batching rule: the error of a value that `oxigrad.vmap` batches names it.

    SciPy's arguments for derivatives are refused, and tolerances that are no numbers. An error over a list of numbers
    has a note, as SciPy makes an array of it.
    """

    @functools.wraps(function)
    def called(*args: Any, **named: Any) -> Any:
        for name in named.keys() & _DERIVATIVES:
            raise TypeError(
                f"{function.__name__}: {name} is unknown: derivatives are computed automatically; ox.custom_vjp gives "
                "the function your own"
            )
        for name in named.keys() & _TOLERANCES:
            if not isinstance(named[name], (int, float, np.number, type(None))):
                raise TypeError(f"{function.__name__}: {name} is {named[name]!r}: expected a number, or None")
        try:
            return function(*args, **named)
        except UnbatchedError as error:
            what = str(error).removeprefix("vmap: ")
            raise UnbatchedError(f"vmap: {function.__name__} has no batching rule: {what}") from error
        except (AttributeError, TypeError, ValueError) as error:
            x0 = args[1] if len(args) > 1 else named.get("x0")
            if isinstance(x0, (list, tuple)) and all(isinstance(each, (int, float)) for each in x0):
                error.add_note(
                    f"{function.__name__}: x0 is a {type(x0).__name__} of numbers, and so is what the function gets: "
                    f"pass np.array({x0!r}) for an array"
                )
            raise

    return cast(F, called)


def followed(name: str, residual: Function, constant: Function, x: Array, *, symmetric: bool = False) -> Array:
    """The solution ``x`` of ``residual(x) = 0``, as a function of the variables that ``residual`` reads.

    Its value is ``x``. Each chord iteration, which solves with the Jacobian of a constant residual, is exact to one
    more order in these variables. Each enclosing transform therefore takes one. ``constant`` is the residual with
    variables among its arguments replaced by their values. ``symmetric`` states that the Jacobian is symmetric.

    Raises `numpy.linalg.LinAlgError` for a singular Jacobian. Raises `TypeError` in reverse mode if the Jacobian is too
    large to be formed and ``constant`` reads variables in globals or in attributes of objects.
    """
    value = residual(x)
    shift = plain(value)
    inverse = _inverse(name, constant, x, symmetric=symmetric)
    for at in range(levels := _levels(value)):
        x = x - inverse(value - shift)
        if at + 1 < levels:
            value = residual(x)
    return x


def minimum(name: str, vectors: Vectors, problem: Problem, constant: Problem, x: np.ndarray) -> Array:
    """The minimum ``x`` of a problem as a function of the variables that it reads; ``constant`` is as in `followed`.

    A constraint is active if its slack is smaller than its multiplier, as estimated by Facchinei, Fischer and Kanzow,
    "On the accurate identification of active constraints" (1998).
    """
    active, multipliers = _active(vectors, constant, x)
    z = vectors.like_x0(np.concatenate([x, multipliers]))
    equations, constants = (_conditions(each, x.size, active) for each in (problem, constant))
    return followed(name, equations, constants, z, symmetric=True)[: x.size]


def _active(vectors: Vectors, problem: Problem, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The positions of the active constraints at the minimum, and their multipliers."""
    if not problem.rows:
        return np.array([], np.int64), np.array([])
    point, constraints = vectors.like_x0(x), _stacked(problem.rows)
    gradient = host(value_and_grad_of(problem.objective, point)[1])
    is_equality = np.concatenate([row.is_equality for row in problem.rows])
    slack = np.where(is_equality, 0.0, host(constraints(point)))
    multipliers = _multipliers(constraints, point, gradient, slack)
    active = np.flatnonzero(is_equality | (slack < multipliers))
    return active, multipliers[active]


def _stacked(rows: Sequence[Rows]) -> Function:
    return lambda v: xp.concat([row.function(v) for row in rows])


def _conditions(problem: Problem, count: int, active: np.ndarray) -> Function:
    """The gradient of the Lagrangian, as a function of the vector of the point (``count`` numbers) and multipliers."""
    constraints = _stacked(problem.rows)

    def lagrangian(z: Array) -> Array:
        value = problem.objective(z[:count])
        return value - xp.sum(z[count:] * constraints(z[:count])[active]) if active.size else value

    return lambda z: value_and_grad_of(lagrangian, z)[1]


def valued(value: Any, function: Any) -> Array:
    """A function of variables with the bits of a value that the solver computed."""
    return value + (function - plain(function))


def limit_rows(function: Function, x: Array, lower: Array, upper: Array) -> list[Rows]:
    """The constraints ``lower <= function(x) <= upper``; equal limits are one equation, infinite ones are omitted."""
    zeros = xp.zeros_like(plain(function(x)))
    lower, upper = lower + zeros, upper + zeros
    low, high = host(lower), host(upper)
    is_equality = low == high
    rows = []
    for at, limit, sign in (
        (np.flatnonzero(np.isfinite(low)), lower, 1.0),
        (np.flatnonzero(np.isfinite(high) & ~is_equality), upper, -1.0),
    ):
        if at.size:
            rows.append(Rows(_slack(function, at, limit, sign), is_equality[at]))
    return rows


def _slack(function: Function, at: np.ndarray, limit: Array, sign: float) -> Function:
    return lambda v: (function(v)[at] - limit[at]) * sign


def _multipliers(constraints: Function, x: Array, gradient: np.ndarray, slack: np.ndarray) -> np.ndarray:
    """The multipliers with the least squares of the Lagrangian's gradient and of the products with the slacks."""
    values, pullback = vjp(constraints, x)

    def product(v: np.ndarray) -> np.ndarray:
        return np.concatenate([host(pullback(like(np.ravel(v), plain(values)))[0]), slack * np.ravel(v)])

    def transposed(v: np.ndarray) -> np.ndarray:
        tangent = like(v[: gradient.size], x)
        return host(jvp(constraints, (x,), (tangent,))[1]) + slack * v[gradient.size :]

    shape = (gradient.size + slack.size, slack.size)
    operator = sparse.LinearOperator(shape, matvec=product, rmatvec=transposed, dtype=np.float64)
    right = np.concatenate([gradient, np.zeros(slack.size)])
    return sparse.lsmr(operator, right, atol=1e-14, btol=1e-14, conlim=0.0)[0]


def _levels(value: Any) -> int:
    """The number of enclosing transforms whose variables a value depends on."""
    levels = 0
    while isinstance(value, Variable):
        levels, value = levels + 1, value.value
    return levels


def _inverse(name: str, residual: Function, x: Array, *, symmetric: bool) -> Function:
    """Solves with the Jacobian of the plain residual at ``x``, a matrix of constants."""
    if x.shape[0] > DENSE_LIMIT:
        residual = without_variables(residual)  # it is called in the backward pass too, after the tape has ended
        _, pullback = vjp(residual, x)
        products = (lambda v: jvp(residual, (x,), (v,))[1], lambda v: pullback(v)[0])
        return _by_products(name, *products, symmetric=symmetric)
    matrix = plain(jacobian(residual)(x))

    def solve(right: Array) -> Array:
        try:
            return xp.linalg.solve(matrix, right)
        except np.linalg.LinAlgError as error:
            raise np.linalg.LinAlgError(f"{name}: {_SINGULAR}") from error

    return solve


_SINGULAR = "the equations of the solution have a singular Jacobian: the solution has no derivative"


def _by_products(name: str, product: Function, transposed: Function, *, symmetric: bool) -> Function:
    """Solves with a matrix given by products with it and with its transpose."""

    def solve(right: Array) -> Array:
        vector = host(right)
        if not vector.any():
            return right

        def matvec(v: np.ndarray) -> np.ndarray:
            return host(product(like(np.ravel(v), right)))

        operator = sparse.LinearOperator((vector.size, vector.size), matvec=matvec, dtype=np.float64)
        solver = sparse.minres if symmetric else sparse.gmres
        epsilon = float(xp.finfo(right.dtype).eps)
        solution, _ = solver(operator, vector, rtol=10.0 * epsilon)
        if not np.linalg.norm(matvec(solution) - vector) <= epsilon**0.5 * np.linalg.norm(vector):
            raise np.linalg.LinAlgError(f"{name}: {_SINGULAR}, or {solver.__name__} did not converge")
        return like(solution, right)

    def pulled(g: Array, _: Any, __: Any) -> Array:
        try:
            return _by_products(name, transposed, product, symmetric=symmetric)(g)
        except TapeEndedError as error:
            raise TypeError(
                f"{name}: the functions read variables of a transform in globals or attributes of objects: "
                f"expected them by args= or in closures, since there are more than {DENSE_LIMIT} equations"
            ) from error

    return custom_vjp(solve, pulled)
