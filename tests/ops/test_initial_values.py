"""Initial value problems and integrals of functions: values against SciPy's, derivatives by all that they read, refusals."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import oxigrad as ox
from oxigrad import xp
from oxigrad.testing import check_grads

scipy_integrate = pytest.importorskip("scipy.integrate")


METHODS = ["RK23", "RK45", "DOP853", "Radau"]
Y0 = np.array([1.0, 0.5])


def oscillator(t: Any, y: Any, mu: Any) -> Any:
    return [y[1], mu * (1.0 - y[0] ** 2) * y[1] - y[0]]


def settings(method: str) -> dict[str, Any]:
    tolerance = {"RK23": 1e-7, "Radau": 1e-8}.get(method, 1e-9)  # these two take the most steps, or the longest
    return {"method": method, "rtol": tolerance, "atol": 0.1 * tolerance}


@pytest.mark.parametrize("method", METHODS)
def test_initial_value_problems_by_all_that_they_read(method: str) -> None:
    def end(mu: Any, y0: Any, start: Any, end: Any) -> Any:
        return xp.integrate.solve_ivp(oscillator, (start, end), y0, args=(mu,), **settings(method)).y[:, -1]

    expected = scipy_integrate.solve_ivp(oscillator, (0.0, 3.0), Y0, args=(1.5,), **settings(method))
    value, _ = ox.vjp(lambda mu: end(mu, Y0, 0.0, 3.0), 1.5)
    np.testing.assert_allclose(value, expected.y[:, -1], rtol=1e-8)
    check_grads(end, (1.5, Y0, 0.0, 3.0), order=1, step=1e-4, tolerance=1e-4)
    check_grads(lambda y0: end(1.5, y0, 0.0, -1.0), (Y0,), order=1, step=1e-4, tolerance=1e-4)
    slope = lambda mu: ox.jacobian(lambda mu: end(mu, Y0, 0.0, 3.0))(mu)  # noqa: E731
    numeric = (slope(1.501) - slope(1.499)) / 0.002
    np.testing.assert_allclose(ox.jacobian(slope)(1.5), numeric, rtol=1e-3)


@pytest.mark.parametrize("method", METHODS)
def test_dense_output_and_times_of_evaluation(method: str) -> None:
    times = np.array([0.1, 1.0, 2.5])
    call = lambda module, mu, times: module.solve_ivp(  # noqa: E731
        oscillator, (0.0, 3.0), Y0, args=(mu,), t_eval=times, dense_output=True, **settings(method)
    )
    expected = call(scipy_integrate, 1.5, times)
    solution = {}

    def f(mu: Any, times: Any) -> Any:
        result = call(xp.integrate, mu, times)
        solution["sol"] = np.asarray(ox.stop_gradient(result.sol(np.array([0.3, 1.3]))))
        return result.y

    np.testing.assert_allclose(ox.vjp(lambda mu: f(mu, times), 1.5)[0], expected.y, rtol=1e-8)
    np.testing.assert_allclose(solution["sol"], expected.sol(np.array([0.3, 1.3])), rtol=1e-8)
    check_grads(f, (1.5, times), order=1, step=1e-4, tolerance=1e-4)


@pytest.mark.parametrize("method", METHODS)
def test_events_by_the_implicit_function_theorem(method: str) -> None:
    def falls(t: Any, y: Any, mu: Any) -> Any:
        return y[0] - 0.3 * mu

    vars(falls).update(terminal=True, direction=-1)

    def run(mu: Any) -> Any:
        return xp.integrate.solve_ivp(oscillator, (0.0, 5.0), Y0, args=(mu,), events=falls, **settings(method))

    time = lambda mu: run(mu).t_events[0][0]  # noqa: E731
    h = 1e-3
    numeric = (time(1.5 + h) - time(1.5 - h)) / (2 * h)
    assert ox.grad(time)(1.5) == pytest.approx(numeric, rel=1e-5)
    assert ox.grad(lambda mu: run(mu).t[-1])(1.5) == pytest.approx(numeric, rel=1e-5)
    curvature = (ox.grad(time)(1.5 + h) - ox.grad(time)(1.5 - h)) / (2 * h)
    assert ox.grad(ox.grad(time))(1.5) == pytest.approx(curvature, rel=1e-2)
    np.testing.assert_allclose(ox.jacobian(lambda mu: run(mu).y[:, -1])(1.5)[0], 0.3, rtol=1e-9)
    np.testing.assert_allclose(ox.jacobian(lambda mu: run(mu).y_events[0][0])(1.5)[0], 0.3, rtol=1e-9)


def test_initial_value_problems_with_variables_in_closures_and_methods_of_scipy_alone() -> None:
    def f(k: Any, **named: Any) -> Any:
        options = {"rtol": 1e-9, "atol": 1e-11, **named}
        return xp.integrate.solve_ivp(lambda t, y: -k * y, (0.0, 1.0), [1.0], **options).y[0, -1]

    assert ox.grad(f)(2.0) == pytest.approx(-np.exp(-2.0), rel=1e-6)
    assert f(2.0, method="LSODA") == pytest.approx(np.exp(-2.0), rel=1e-6)
    with pytest.raises(
        ox.DerivativeError, match="^solve_ivp: method is 'LSODA': expected one of RK23, RK45, DOP853, Radau"
    ):
        ox.grad(lambda k: f(k, method="LSODA"))(2.0)


@pytest.mark.parametrize(
    "limits", [(0.2, 2.0), (0.2, np.inf), (-np.inf, 0.3), (-np.inf, np.inf), (np.inf, 0.3), (2.0, 0.2)]
)
def test_integrals_of_functions(limits: tuple[float, float]) -> None:
    f = lambda x, c: xp.exp(-c * x * x) * (1.0 + 0.5 * xp.sin(x))  # noqa: E731
    value, error = xp.integrate.quad(f, *limits, args=(1.3,))
    assert (value, error) == scipy_integrate.quad(f, *limits, args=(1.3,))
    assert ox.value_and_grad(lambda c: xp.integrate.quad(f, *limits, args=(c,))[0])(1.3)[0] == pytest.approx(
        value, rel=1e-14
    )
    check_grads(lambda c: xp.integrate.quad(lambda x: f(x, c), *limits)[0], (1.3,), order=2)
    finite = [at for at, limit in enumerate(limits) if np.isfinite(limit)]

    def of_limits(*given: Any) -> Any:
        ends: list[Any] = [*limits]
        for at, limit in zip(finite, given, strict=True):
            ends[at] = limit
        return xp.integrate.quad(f, *ends, args=(1.3,))[0]

    if finite:
        check_grads(of_limits, tuple(limits[at] for at in finite), order=2)


def test_integrals_with_weights_are_refused() -> None:
    with pytest.raises(ox.DerivativeError, match="^quad: found variables and weight, expected the default of weight"):
        ox.grad(lambda c: xp.integrate.quad(lambda x: c * x, 0.0, 1.0, weight="cos", wvar=1.0)[0])(1.0)
    assert xp.integrate.quad(lambda x: 0.0 * x + 1.0, 0.0, 1.0, full_output=1)[2]["last"] == 1
    assert ox.grad(lambda a: xp.integrate.quad(lambda x: x * x, a, 2.0)[0])(2.0) == -4.0


@pytest.mark.parametrize("method", [*METHODS, scipy_integrate.RK45])
@pytest.mark.parametrize("span", [(0.0, 3.0), (3.0, 0.0)])
def test_dense_output_is_a_function_of_time_alone(method: Any, span: tuple[float, float]) -> None:
    named = {**settings("RK45"), "method": method, "dense_output": True}
    solve = lambda module: module.integrate.solve_ivp(lambda t, y: [y[1], -y[0]], span, Y0, **named)  # noqa: E731
    ours, theirs = solve(xp).sol, scipy_integrate.solve_ivp(lambda t, y: [y[1], -y[0]], span, Y0, **named).sol
    times = np.array([0.4, 1.3])
    np.testing.assert_array_equal(ours(times), theirs(times))
    np.testing.assert_array_equal(ours.ts, theirs.ts)
    assert (ours.t_min, ours.t_max) == (theirs.t_min, theirs.t_max)
    value, pull = ox.vjp(lambda t: ours(t)[0], times)
    np.testing.assert_allclose(value, theirs(times)[0], rtol=1e-8)
    np.testing.assert_allclose(pull(np.ones(2))[0], theirs(times)[1], rtol=1e-4)  # as the slope of y[0] is y[1]
    assert ox.grad(lambda t: ours([t])[0, 0])(1.3) == pytest.approx(theirs(1.3)[1], rel=1e-4)


def test_dense_output_of_a_method_of_scipy_alone() -> None:
    solution = xp.integrate.solve_ivp(lambda t, y: -y, (0.0, 1.0), [1.0], method="LSODA", dense_output=True).sol
    assert solution(0.5)[0] == pytest.approx(np.exp(-0.5), rel=1e-2)
    with pytest.raises(ox.DerivativeError, match="^solve_ivp: method is 'LSODA'"):
        ox.grad(lambda t: solution(t)[0])(0.5)


@pytest.mark.parametrize(
    ("slope", "error", "text"),
    [
        (lambda t, y: None, TypeError, "fun returned None: expected the derivative of y"),
        (lambda t, y: y * np.nan, ox.NonFiniteError, r"fun returned array\(\[nan\]\) at the start"),
        (lambda t, y: y * np.inf, ox.NonFiniteError, r"fun returned array\(\[inf\]\) at the start"),
    ],
)
def test_slopes_that_solve_ivp_cannot_begin_with_are_refused(slope: Any, error: Any, text: str) -> None:
    with pytest.raises(error, match=text):
        xp.integrate.solve_ivp(slope, (0.0, 1.0), [1.0])


def test_odeint_takes_lists_as_scipys_does() -> None:
    def pendulum(y: Any, t: Any, b: Any) -> list[Any]:
        return [y[1], -b * y[1] - 5.0 * y[0]]

    for y0 in ([1.0, 0.0], (1, 0)):
        expected = scipy_integrate.odeint(pendulum, y0, [0.0, 1.0, 2.0], (0.25,), rtol=1e-10, atol=1e-10)
        solution = xp.integrate.odeint(pendulum, y0, [0.0, 1.0, 2.0], (0.25,), rtol=1e-10, atol=1e-10)
        np.testing.assert_allclose(solution, expected, atol=1e-7)
    check_grads(lambda b: xp.integrate.odeint(pendulum, [b, 0.0], [0.0, 1.0], (b,))[-1], (0.25,))


@pytest.mark.parametrize("times", [(0.0, 0.0, 1.0), (0.0, 0.5, 0.5, 1.0), (0.0, 1.0, 1.0), (1.0, 1.0, 0.0)])
def test_odeint_takes_repeated_times(times: tuple[float, ...]) -> None:
    t = np.array(times)
    solve = lambda t: xp.integrate.odeint(lambda y, t: -t * y, np.ones(1), t, rtol=1e-10, atol=1e-10)[:, 0]  # noqa: E731
    np.testing.assert_allclose(solve(t), np.exp((t[0] ** 2 - t**2) / 2), atol=1e-8)
    expected = np.diag(-t * np.exp((t[0] ** 2 - t**2) / 2))
    expected[:, 0] += t[0] * np.exp((t[0] ** 2 - t**2) / 2)
    np.testing.assert_allclose(ox.jacobian(solve)(t), expected, atol=1e-6)


@pytest.mark.parametrize(
    ("slope", "t", "error", "text"),
    [
        (lambda y, t: -y, [0.0, np.nan, 1.0], ValueError, "t has 0.0 before nan: expected finite numbers"),
        (lambda y, t: -y, [0.0, 1.0, np.inf], ValueError, "t has 1.0 before inf: expected finite numbers"),
        (lambda y, t: [t], [0.0, 1.0], ox.ShapeError, r"func returns an array of shape \(1,\): expected \(2,\), as y0"),
        (lambda y, t: t, [0.0, 1.0], ox.ShapeError, r"func returns an array of shape \(\): expected \(2,\), as y0"),
        (
            lambda y, t: y[:, None],
            [0.0, 1.0],
            ox.ShapeError,
            r"func returns an array of shape \(2, 1\): expected \(2,\)",
        ),
    ],
)
def test_odeint_refuses_other_shapes_and_times(slope: Any, t: Any, error: Any, text: str) -> None:
    with pytest.raises(error, match=text):
        xp.integrate.odeint(slope, np.array([1.0, 2.0]), t)


def test_vmap_evaluates_a_solution_at_each_time() -> None:
    times = np.array([0.9, 0.2, 0.5])

    def at_each(rate: Any, times: Any) -> Any:
        solved = xp.integrate.solve_ivp(
            lambda t, y: -rate * y, (0.0, 1.0), [1.0], dense_output=True, **settings("RK45")
        )
        return ox.vmap(lambda t: solved.sol(t)[0])(times)

    exact = np.exp(-1.3 * times)
    np.testing.assert_allclose(at_each(1.3, times), exact, rtol=1e-8)
    np.testing.assert_allclose(ox.jacobian(at_each)(1.3, times), -times * exact, rtol=1e-6)
    np.testing.assert_allclose(ox.jacobian(at_each, argnums=1)(1.3, times), np.diag(-1.3 * exact), rtol=1e-6, atol=1e-9)
    slope = lambda t: at_each(1.3, xp.reshape(t, (1,)))[0]  # noqa: E731
    np.testing.assert_allclose(ox.vmap(ox.grad(slope))(times), -1.3 * exact, rtol=1e-6)


def test_vmap_of_an_initial_value_problem_is_refused() -> None:
    solve = lambda rate: xp.integrate.solve_ivp(lambda t, y: -rate * y, (0.0, 1.0), [1.0]).y[0, -1]  # noqa: E731
    with pytest.raises(TypeError, match=r"solve_ivp: .*xp\.stack"):
        ox.vmap(solve)(np.ones(2))
