"""Derivatives of what SciPy's solvers find: by closed forms, and by finite differences of the solver itself, to second order."""

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import oxigrad as ox
from oxigrad import xp

optimize = pytest.importorskip("scipy.optimize")

A = np.array([0.7, 1.6])
T = np.linspace(0.1, 2.0, 12)
DATA = 1.5 * np.exp(-0.8 * T) + 0.05 * np.cos(7.0 * T)
TIGHT = {"ftol": 1e-15, "xtol": 1e-15, "gtol": 1e-15}


def equations(x: Any, a: Any) -> Any:
    return xp.stack([x[0] ** 3 + a[0] * x[1] - 2.0, xp.exp(x[1]) - a[1] * x[0] * a[0]])


def bowl(x: Any, a: Any) -> Any:
    return xp.sum((x - a) ** 2 * np.array([1.0, 3.0])) + xp.sum(x) ** 4 / 8.0 + a[0] * x[0] * x[1]


def curve(t: Any, p: Any) -> Any:
    return p[0] * xp.exp(-p[1] * t)


def root(a: Any, **options: Any) -> Any:
    return ox.scipy.root(lambda x: equations(x, a), np.array([1.0, 0.5]), **options).x


def minimum(a: Any, start: float = 0.5, **options: Any) -> Any:
    return ox.scipy.minimize(lambda x: bowl(x, a), np.full(2, start), tol=1e-12, **options).x


def least(a: Any, **options: Any) -> Any:
    found = ox.scipy.least_squares(
        lambda p: curve(T, p) * a[0] - DATA - 0.1 * a[1] * T, np.full(2, 0.4), **TIGHT, **options
    )
    return found.x


def fit(a: Any, **options: Any) -> Any:
    return ox.scipy.curve_fit(lambda t, p: curve(t, p) * a[0], T * a[1], DATA * a[0] + a[1], np.full(2, 0.4), **options)


def with_sigma(a: Any, **options: Any) -> Any:
    sigma = 0.1 + a[0] * T**2
    return ox.scipy.curve_fit(lambda t, p: curve(t, p) * a[1], T, DATA, np.ones(2), sigma=sigma, **options)


def correlated(a: Any) -> Any:
    sigma = np.eye(T.size) * a[0] + np.exp(-abs(T[:, None] - T)) * a[1]
    return ox.scipy.curve_fit(curve, T, DATA, np.ones(2), sigma=sigma)


def equal(a: Any) -> dict[str, Any]:
    return {"type": "eq", "fun": lambda x: xp.sum(x**2) - a[0]}


def inequal(a: Any) -> dict[str, Any]:
    return {"type": "ineq", "fun": lambda x, a: a[1] - x[0] * (1.0 + x[1] ** 2), "args": (a,)}


CASES: dict[str, Callable[[Any], Any]] = {
    "root": root,
    "root of trees": lambda a: ox.scipy.root(
        lambda x, a: {"u": x["u"] ** 2 - a[0], "v": x["v"] * x["u"] - a[1]}, {"u": 1.0, "v": 1.0}, args=(a,)
    ).x,
    "root by krylov": lambda a: root(a, method="krylov", tol=1e-13),
    "root by lm": lambda a: root(a, method="lm", tol=1e-13),
    "minimize": minimum,
    "minimize by args": lambda a: ox.scipy.minimize(bowl, np.zeros(2), args=(a,), tol=1e-12).x,
    "minimize by trust-exact": lambda a: minimum(a, method="trust-exact"),
    "value": lambda a: ox.scipy.minimize(lambda x: bowl(x, a), np.zeros(2)).fun,
    "gradient": lambda a: ox.scipy.minimize(lambda x: bowl(x, a), np.zeros(2), bounds=(None, 0.1), tol=1e-12).jac,
    "bounds": lambda a: minimum(a, bounds=(None, np.array([0.1, 5.0]))),
    "bounds that are variables": lambda a: minimum(a, bounds=(-5.0, a * 0.2)),
    "equation": lambda a: minimum(a, method="SLSQP", constraints=equal(a)),
    "inequality": lambda a: minimum(a, method="SLSQP", constraints=[inequal(a * 0.1)]),
    "inactive inequality": lambda a: minimum(a, method="SLSQP", constraints=inequal(a * 50.0)),
    "constraints and bounds": lambda a: minimum(
        a, method="SLSQP", constraints=equal(a), bounds=(np.array([0.6, -9.0]), None)
    ),
    "linear constraint": lambda a: minimum(
        a, method="SLSQP", constraints=optimize.LinearConstraint([[1.0, 1.0]], -1.0, 0.5)
    ),
    "limits": lambda a: minimum(
        a, method="trust-constr", constraints=optimize.NonlinearConstraint(lambda x: x[0] * a[0] + x[1] ** 3, -1.0, 0.5)
    ),
    "least squares": least,
    "least squares within bounds": lambda a: least(a, bounds=(0.0, np.array([9.0, 0.5]))),
    "soft_l1": lambda a: least(a, loss="soft_l1", f_scale=0.1),
    "huber": lambda a: least(a, loss="huber", f_scale=0.02),
    "cauchy": lambda a: least(a, loss="cauchy", f_scale=0.5),
    "arctan": lambda a: least(a, loss="arctan", f_scale=0.5),
    "a loss that is a function": lambda a: least(
        a, loss=lambda z: xp.stack([xp.log1p(z), 1.0 / (1.0 + z), -1.0 / (1.0 + z) ** 2])
    ),
    "cost": lambda a: (
        lambda found: [found.cost, found.fun[:3], found.jac[:2]]
    )(ox.scipy.least_squares(lambda p: curve(T, p) * a[0] - a[1] * T, np.ones(2), **TIGHT)),
    "curve_fit": fit,
    "absolute_sigma": lambda a: with_sigma(a, absolute_sigma=True),
    "sigma": with_sigma,
    "covariance of the data": correlated,
    "curve_fit within bounds": lambda a: fit(a, bounds=(0.0, np.array([9.0, 0.5])))[0],
    "omitted data": lambda a: ox.scipy.curve_fit(
        curve, T, xp.where(T > 1.9, np.nan, DATA * a[0] + a[1]), np.ones(2), nan_policy="omit"
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_derivatives_of_solutions(name: str) -> None:
    """Both modes, to second order, beside finite differences of the solver; the value has the bits of the plain call."""
    f = CASES[name]
    value, _ = ox.vjp(f, A)
    for found, expected in zip(ox.tree.leaves(value), ox.tree.leaves(f(A)), strict=True):
        np.testing.assert_array_equal(found, expected)
    rough = name in ("limits", "huber")  # an interior point is at a distance of about 1e-9 from its limit
    ox.testing.check_grads(f, (A,), order=1 if rough else 2, modes=("fwd", "rev"), tolerance=1e-4)


def test_the_fourth_derivative_of_a_root() -> None:
    cube_root = lambda a: ox.scipy.root(lambda x: x**3 - a, 1.0, tol=1e-14).x  # noqa: E731
    derivative, factor, power = cube_root, 1.0, 1.0 / 3.0
    for _ in range(5):
        np.testing.assert_allclose(derivative(2.0), factor * 2.0**power, rtol=1e-9)
        derivative, factor, power = ox.grad(derivative), factor * power, power - 1.0


def test_two_variables_of_different_transforms() -> None:
    """One variable in the function, another in a bound."""
    mixed = ox.grad(lambda a: ox.grad(lambda b: ox.scipy.root(lambda x: x**3 - a * b, 1.0, tol=1e-14).x)(2.0))
    np.testing.assert_allclose(mixed(3.0), 6.0 ** (-2 / 3) / 9.0, rtol=1e-9)


COUNT = 1500
B = np.sin(np.arange(COUNT) * 0.01)


def chain(x: Any, a: Any) -> Any:
    """The equations of a chain of 1,500 numbers."""
    return 4.0 * x - xp.roll(x, 1) - xp.roll(x, -1) + x**3 - a * B


def chain_energy(x: Any, a: Any) -> Any:
    """The energy whose gradient `chain` is."""
    return xp.sum(2.0 * x * x - x * xp.roll(x, 1) + x**4 / 4.0 - a * B * x)


def root_of_chain(f: Any, **named: Any) -> Any:
    return ox.scipy.root(f, np.zeros(COUNT), method="krylov", tol=1e-11, **named).x


def minimum_of_chain(f: Any, **named: Any) -> Any:
    return ox.scipy.minimize(f, np.zeros(COUNT), method="L-BFGS-B", tol=1e-16, **named).x


def in_containers(a: Any) -> Any:
    """Solved for a variable that functions of a closure read from containers, defaults and partial functions."""
    forces = {"all": [a * B]}
    bend = functools.partial(lambda x, scale, shift=0.0 * a: scale * x**3 + shift, scale=a / a)

    def residual(x: Any) -> Any:
        return stretched(x) + bend(x) - forces["all"][0]

    def stretched(x: Any) -> Any:
        return 4.0 * x - xp.roll(x, 1) - xp.roll(x, -1)

    return root_of_chain(residual)


LARGE: dict[str, Callable[[Any], Any]] = {
    "root by args": lambda a: root_of_chain(chain, args=(a,)),
    "root": lambda a: root_of_chain(lambda x: chain(x, a)),
    "root in containers": in_containers,
    "minimize by args": lambda a: minimum_of_chain(chain_energy, args=(a,)),
    "minimize": lambda a: minimum_of_chain(lambda x: chain_energy(x, a)),
    "least_squares": lambda a: ox.scipy.least_squares(lambda x: chain(x, a), np.zeros(COUNT), sparse=True, **TIGHT).x,
}


@pytest.mark.parametrize("name", LARGE)
def test_large_systems_are_solved_by_products(name: str) -> None:
    """The gradient of a solution of 1,500 numbers, beside SciPy's solution of the sparse linear system."""
    solved = LARGE[name]
    x = solved(2.0)
    matrix = np.diag(4.0 + 3.0 * x**2) - np.roll(np.eye(COUNT), 1, 0) - np.roll(np.eye(COUNT), -1, 0)
    expected = np.linalg.solve(matrix, B)
    weights = np.cos(np.arange(COUNT))
    np.testing.assert_allclose(ox.grad(lambda a: solved(a) @ weights)(2.0), expected @ weights, rtol=1e-7)
    np.testing.assert_allclose(ox.jvp(solved, (2.0,), (1.0,))[1], expected, rtol=1e-6, atol=1e-9)


def test_second_derivatives_of_large_solutions_of_closures() -> None:
    weights = np.cos(np.arange(COUNT))
    by_args, by_closure = (ox.grad(lambda a, name=name: LARGE[name](a) @ weights) for name in ("root by args", "root"))
    step = 1e-4
    expected = (by_args(2.0 + step) - by_args(2.0 - step)) / (2.0 * step)
    for f in (by_args, by_closure):
        assert ox.grad(f)(2.0) == pytest.approx(expected, rel=1e-5)


def test_a_variable_in_an_attribute_is_refused_in_large_systems() -> None:
    class Force:
        size: Any = None

    def solved(a: Any) -> Any:
        Force.size = a
        return xp.sum(root_of_chain(lambda x: Force.size * chain(x, 1.0)))

    with pytest.raises(TypeError, match="root: the functions read variables .* expected them by args= or in closures"):
        ox.grad(solved)(2.0)


def test_a_singular_solution_has_no_derivative() -> None:
    with pytest.raises(np.linalg.LinAlgError, match="minimize: the equations of the solution have a singular Jacobian"):
        ox.grad(lambda a: ox.scipy.minimize(lambda x: (x[0] + x[1] - a) ** 2, np.zeros(2)).x[0])(1.0)


def test_every_library(arrays: Any, asarray: Any) -> None:
    if arrays.name not in ("numpy", "torch", "jax", "strict"):
        pytest.skip("SciPy fetches the numbers to the host")
    a = asarray(np.array([2.0, 3.0]))
    solved = lambda a: ox.scipy.root(lambda x: x**3 - a, asarray(np.ones(2)), tol=1e-12).x  # noqa: E731
    gradient = ox.grad(lambda a: xp.sum(solved(a)))(a)
    assert type(gradient) is type(a)
    np.testing.assert_allclose(np.asarray(gradient), np.array([2.0, 3.0]) ** (-2 / 3) / 3.0, rtol=1e-8)


def test_a_recording_follows_the_solver() -> None:
    solved = ox.record(ox.grad(lambda a: ox.scipy.root(lambda x: x**3 - a, 1.0, tol=1e-14).x))
    for a in (2.0, 3.0, 4.0):
        np.testing.assert_allclose(solved(a), a ** (-2 / 3) / 3.0, rtol=1e-9)


def test_vmap_is_refused_by_name() -> None:
    for solved in (
        lambda a: ox.scipy.root(lambda x, a: x**3 - a, 1.0, args=(a,)).x,
        lambda a: ox.scipy.minimize(lambda x: (x - a) ** 2, 1.0).x,
    ):
        with pytest.raises(TypeError, match="vmap"):
            ox.vmap(solved)(np.array([1.0, 2.0]))
