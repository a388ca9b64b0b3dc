"""SciPy's solvers on trees of any library: the same points as SciPy's own with derivatives written by hand."""

from typing import Any

import numpy as np
import pytest

import oxigrad as ox
from libraries import host
from oxigrad import xp

optimize = pytest.importorskip("scipy.optimize")
sparse = pytest.importorskip("scipy.sparse")

METHODS = """Nelder-Mead Powell CG BFGS Newton-CG L-BFGS-B TNC COBYLA COBYQA SLSQP trust-constr dogleg trust-ncg trust-krylov
    trust-exact""".split()
T = np.linspace(0.0, 2.0, 30)


def rosen(m: Any) -> Any:
    """Rosenbrock's function of four variables, of which one is a number."""
    x = xp.concat([m["a"], xp.reshape(m["l"][0], (2,)), xp.ones_like(m["a"][:1]) * m["s"]])
    return xp.sum(100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1.0 - x[:-1]) ** 2)


def start(asarray: Any = np.asarray) -> dict[str, Any]:
    return {"a": asarray(np.array([1.3])), "l": [asarray(np.array([[0.8], [1.1]]))], "s": 1.2, "name": "m"}


@pytest.mark.parametrize("method", METHODS)
def test_every_method_finds_the_minimum(method: str) -> None:
    if method in (
        "dogleg",
        "COBYLA",
    ):  # of which one needs a convex function, and the other thousands of calls from afar
        x0 = {**start(), "a": np.array([1.05]), "s": 1.05, "l": [np.array([[1.02], [1.04]])]}
    else:
        x0 = start()
    found = ox.scipy.minimize(rosen, x0, method=method, options={"maxfun" if method == "TNC" else "maxiter": 4000})
    assert found.x["name"] == "m"
    assert rosen(found.x) < (2e-2 if method in ("Nelder-Mead", "Powell", "COBYLA", "COBYQA") else 1e-6) < rosen(x0)


def test_the_path_is_scipy_s() -> None:
    """The same calls and the same bits as with the gradient written by hand."""
    seen: list[Any] = []
    found = ox.scipy.minimize(
        lambda m: xp.sum((m["x"] - 1.0) ** 2 * np.array([1.0, 4.0])),
        {"x": np.zeros(2)},
        method="BFGS",
        callback=lambda m: seen.append(m["x"].copy()),
    )
    expected = optimize.minimize(
        lambda x: ((x - 1.0) ** 2 * [1.0, 4.0]).sum(),
        np.zeros(2),
        method="BFGS",
        jac=lambda x: 2.0 * (x - 1.0) * [1.0, 4.0],
    )
    np.testing.assert_allclose(found.x["x"], expected.x, rtol=1e-12)
    assert (found.nit, found.nfev, found.njev) == (expected.nit, expected.nfev, expected.njev)
    assert len(seen) == found.nit
    np.testing.assert_allclose(found.jac["x"], expected.jac, atol=1e-9)


def test_every_library(arrays: Any, asarray: Any) -> None:
    if arrays.name not in ("numpy", "torch", "jax", "strict"):
        pytest.skip("SciPy fetches the numbers to the host")
    x0 = start(asarray)
    found = ox.scipy.minimize(rosen, x0, method="L-BFGS-B", options={"maxiter": 500, "ftol": 1e-14, "gtol": 1e-9})
    assert type(found.x["a"]) is type(x0["a"])
    assert found.x["a"].dtype == x0["a"].dtype
    np.testing.assert_allclose(host(found.x["l"][0]), 1.0, rtol=1e-3)


def test_float32_stays_float32() -> None:
    found = ox.scipy.minimize(lambda x: xp.sum((x - 3.0) ** 2), np.zeros(2, np.float32))
    assert found.x.dtype == np.float32
    np.testing.assert_allclose(found.x, 3.0, rtol=1e-5)


class TestBounds:
    def test_trees_numbers_and_scipy_s(self) -> None:
        def f(m: Any) -> Any:
            return xp.sum((m["a"] - 3.0) ** 2) + (m["b"] + 5.0) ** 2

        x0 = {"a": np.zeros(2), "b": 0.0}
        low, high = {"a": np.full(2, -1.0), "b": -2.0}, {"a": np.array([1.0, 10.0]), "b": 9.0}
        found = ox.scipy.minimize(f, x0, bounds=(low, high))
        np.testing.assert_allclose(found.x["a"], [1.0, 3.0], rtol=1e-6)
        assert float(found.x["b"]) == -2.0
        found = ox.scipy.minimize(f, x0, bounds=(-1.5, None))
        np.testing.assert_allclose(ox.tree.ravel(found.x)[0], [3.0, 3.0, -1.5], rtol=1e-5)
        found = ox.scipy.minimize(f, x0, bounds=optimize.Bounds([-9.0] * 3, [2.0] * 3))
        np.testing.assert_allclose(ox.tree.ravel(found.x)[0], [2.0, 2.0, -5.0], rtol=1e-5)

    def test_errors(self) -> None:
        with pytest.raises(TypeError, match="expected a pair, the lowest and the greatest values"):
            ox.scipy.minimize(xp.sum, np.zeros(2), bounds=3.0)
        with pytest.raises(ox.StructureError, match=r"bounds has a side .*expected a pair"):
            ox.scipy.minimize(lambda m: xp.sum(m["a"]), {"a": np.zeros(2)}, bounds=({"b": 1.0}, None))

    @pytest.mark.parametrize("bounds", [
        [(0.0, 2.0), (5.0, 7.0)],
        ((0, None), (None, 2)),
        [(0.0, 1.0), [-1.0, 2.0], np.array([5.0, 7.0])],
        np.array([[0.0, 1.0], [0.0, 2.0], [5.0, 7.0]]),
        optimize.Bounds([0.0, 5.0], [2.0, 7.0]),
        [(0.0, 1.0)],
    ], ids=str)  # fmt: skip
    def test_bounds_in_scipys_forms_have_its_meaning(self, bounds: Any) -> None:
        x0 = np.full(len(getattr(bounds, "lb", bounds)), 1.5)
        expected = optimize.minimize(lambda x: np.sum((x - 3.0) ** 2), x0, bounds=bounds).x
        loss = lambda x: xp.sum((xp.asarray(x) - 3.0) ** 2)  # noqa: E731
        np.testing.assert_allclose(ox.scipy.minimize(loss, x0, bounds=bounds).x, expected, rtol=1e-6)
        np.testing.assert_allclose(ox.scipy.minimize(loss, [*map(float, x0)], bounds=bounds).x, expected, rtol=1e-6)

    @pytest.mark.parametrize("bounds", [
        [np.array([0.0, 5.0]), np.array([2.0, 7.0])],
        (np.array([0.0, 5.0]), np.array([2.0, 7.0])),
        np.array([[0.0, 5.0], [2.0, 7.0]]),
    ], ids=str)  # fmt: skip
    def test_two_pairs_of_two_meanings_are_refused(self, bounds: Any) -> None:
        with pytest.raises(TypeError, match=r"expected scipy.optimize.Bounds\(lowest, greatest\)"):
            ox.scipy.minimize(xp.sum, np.array([1.0, 6.0]), bounds=bounds)

    def test_pairs_may_hold_variables(self) -> None:
        def found(a: Any) -> Any:
            pairs = [(0.0, a[0]), (None, 2.0 * a[1]), (0.0, 9.0)]
            return ox.scipy.minimize(lambda x: xp.sum((x - 3.0) ** 2), np.zeros(3), bounds=pairs).x

        np.testing.assert_allclose(ox.jacobian(found)(np.ones(2)), [[1.0, 0.0], [0.0, 2.0], [0.0, 0.0]], atol=1e-12)

    @pytest.mark.parametrize("bounds", [([0, -1], [2, 5]), optimize.Bounds([0, -1], [2, 5])], ids=str)
    def test_bounds_of_least_squares_are_the_lowest_and_the_greatest(self, bounds: Any) -> None:
        residual, x0 = lambda x: x - 3.0, np.ones(2)
        expected = optimize.least_squares(residual, x0, bounds=bounds).x
        np.testing.assert_allclose(ox.scipy.least_squares(residual, x0, bounds=bounds).x, expected, rtol=1e-6)


@pytest.mark.parametrize("method", ["SLSQP", "trust-constr"])
@pytest.mark.parametrize("form", ["dict", "object"])
def test_constraints(method: str, form: str) -> None:
    """The point of the unit circle that is nearest to (2, 1)."""

    def circle(m: Any) -> Any:
        return {"c": m["x"] ** 2 + m["y"] ** 2 - 1.0}

    constraint: Any = {"type": "eq", "fun": circle}
    if form == "object":
        constraint = optimize.NonlinearConstraint(circle, 0.0, 0.0)
    found = ox.scipy.minimize(
        lambda m: (m["x"] - 2.0) ** 2 + (m["y"] - 1.0) ** 2, {"x": 1.0, "y": 0.5}, method=method, constraints=constraint
    )
    np.testing.assert_allclose([found.x["x"], found.x["y"]], np.array([2.0, 1.0]) / np.sqrt(5.0), rtol=1e-4)


def test_constraints_take_their_own_arguments() -> None:
    constraint = {"type": "ineq", "fun": lambda x, low: x - low, "args": (0.5,)}
    found = ox.scipy.minimize(
        lambda x, a: xp.sum((x + a) ** 2), np.ones(2), (1.0,), method="SLSQP", constraints=[constraint]
    )
    np.testing.assert_allclose(found.x, 0.5, rtol=1e-8)


def test_a_callback_may_stop() -> None:
    def stop(_: Any) -> None:
        raise StopIteration

    assert ox.scipy.minimize(rosen, start(), method="BFGS", callback=stop).nit == 1


@pytest.mark.parametrize("method", ["hybr", "lm", "krylov", "df-sane"])
def test_roots(method: str) -> None:
    found = ox.scipy.root(
        lambda x, c: {"a": x["a"] ** 3 - c, "b": [x["b"][0] - xp.sum(x["a"])]},
        {"a": np.ones(2) * 2.0, "b": [3.0]},
        (8.0,),
        method,
    )
    assert found.success
    np.testing.assert_allclose(found.x["a"], 2.0, rtol=1e-5)
    np.testing.assert_allclose(found.x["b"][0], 4.0, rtol=1e-5)


def model(t: Any, m: Any) -> Any:
    return m["a"] * xp.exp(-m["k"] * t) + m["c"]


def test_least_squares() -> None:
    data = model(T, {"a": 2.0, "k": 1.5, "c": 0.3})
    begin = {"a": 1.0, "k": 1.0, "c": 0.0}
    found = ox.scipy.least_squares(lambda m: {"r": model(T, m) - data}, begin)
    np.testing.assert_allclose(ox.tree.ravel(found.x)[0], [2.0, 1.5, 0.3], rtol=1e-6)
    assert set(found.grad) == {"a", "k", "c"}
    bounded = ox.scipy.least_squares(lambda m: model(T, m) - data, begin, bounds=({"a": 0.0, "k": 0.0, "c": -1.0}, 1.2))
    assert float(bounded.x["a"]) <= 1.2


def test_least_squares_with_a_sparse_jacobian() -> None:
    begin = {"a": np.linspace(0.5, 1.5, 40), "k": 2.0}

    def residuals(m: Any) -> Any:
        return {"near": m["a"][1:] - m["a"][:-1] ** 2, "all": m["k"] * m["a"] - 3.0}

    for method in ("trf", "dogbox"):
        dense = ox.scipy.least_squares(residuals, begin, method=method)
        found = ox.scipy.least_squares(residuals, begin, sparse=True, method=method)
        assert sparse.issparse(found.jac) and not sparse.issparse(dense.jac)
        np.testing.assert_allclose(found.jac.toarray(), dense.jac, rtol=1e-4, atol=1e-4)
        np.testing.assert_allclose(found.x["a"], dense.x["a"], rtol=1e-4)
    with pytest.raises(ValueError, match="expected 'trf' or 'dogbox' with sparse=True"):
        ox.scipy.least_squares(residuals, begin, sparse=True, method="lm")


def test_curve_fit() -> None:
    rng = np.random.default_rng(0)
    data = model(T, {"a": 2.0, "k": 1.5, "c": 0.3}) + 0.01 * rng.standard_normal(T.size)
    found, covariance = ox.scipy.curve_fit(model, T, data, {"a": 1.0, "k": 1.0, "c": 0.0})
    expected, theirs = optimize.curve_fit(lambda t, a, k, c: a * np.exp(-k * t) + c, T, data, p0=[1.0, 1.0, 0.0])
    np.testing.assert_allclose(ox.tree.ravel(found)[0], expected, rtol=1e-6)
    np.testing.assert_allclose(covariance, theirs, rtol=1e-4)
    with pytest.raises(ox.ShapeError, match=r"curve_fit: f\(xdata, p0\) has shape \(30,\), ydata \(29,\)"):
        ox.scipy.curve_fit(model, T, data[1:], {"a": 1.0, "k": 1.0, "c": 0.0})


@pytest.mark.parametrize("count", [1, 2, 4])
def test_curve_fit_without_a_start_begins_at_ones(count: int) -> None:
    """As SciPy's, for as many parameters as the function has after the data; a start may be a list, and stays by position."""
    seen: list[Any] = []

    def line(t: Any, *p: Any) -> Any:
        seen.append([float(np.ravel(ox.stop_gradient(each))[0]) for each in p])
        return sum(each * xp.exp(-at * t) for at, each in enumerate(p))

    fs = {
        1: lambda t, a: line(t, a),
        2: lambda t, a, b: line(t, a, b),
        4: lambda t, a, b, c, d: line(t, a, b, c, d),
    }
    weights = np.arange(1.0, 1.0 + count)
    data = line(T, *weights) + 0.01 * np.sin(9.0 * T)
    seen.clear()
    found, covariance = ox.scipy.curve_fit(fs[count], T, data)
    assert seen[0] == [1.0] * count
    expected, theirs = optimize.curve_fit(fs[count], T, data)
    np.testing.assert_allclose(found, expected, rtol=1e-5)
    np.testing.assert_allclose(covariance, theirs, rtol=1e-3)
    begun = ox.scipy.curve_fit(fs[count], T, data, [0.5] * count)[0]
    np.testing.assert_allclose(np.ravel(begun), expected, rtol=1e-5)


@pytest.mark.parametrize("sigma", [None, np.linspace(0.5, 1.0, T.size)])
def test_curve_fit_of_one_number_in_a_list(sigma: Any) -> None:
    data = 2.0 * T + 0.1 * np.sin(9.0 * T)
    expected, theirs = optimize.curve_fit(lambda t, a: a * t, T, data, [1.0], sigma)
    for f in (lambda t, a: a * t, lambda t, p: p[0] * t):
        for p0 in ([1.0], (1,)):
            found, covariance = ox.scipy.curve_fit(f, T, data, p0, sigma)
            np.testing.assert_allclose(found, expected, rtol=1e-9)
            np.testing.assert_allclose(covariance, theirs, rtol=1e-6)


def test_curve_fit_of_a_function_that_does_not_tell_its_parameters() -> None:
    for f in (lambda t: t, lambda t, *p: p[0] * t, lambda *p: p[0]):
        with pytest.raises(TypeError, match="curve_fit: p0 is None: expected a point to begin at"):
            ox.scipy.curve_fit(f, T, T)
    with pytest.raises(ox.ShapeError, match="curve_fit: ydata has shape .* expected one number at least"):
        ox.scipy.curve_fit(lambda t, a: a * t, T[:0], T[:0])


EMPTY = np.zeros(0), {"a": np.zeros((3, 0)), "b": []}, [np.zeros((0, 2)), np.zeros(0, np.float32)]


@pytest.mark.parametrize("at", range(len(EMPTY)))
def test_a_point_without_numbers_is_refused(at: int) -> None:
    for solve in (
        *(lambda x0, m=method: ox.scipy.minimize(lambda x: pytest.fail("called"), x0, method=m) for method in METHODS),
        lambda x0: ox.scipy.root(lambda x: pytest.fail("called"), x0),
        lambda x0: ox.scipy.least_squares(lambda x: pytest.fail("called"), x0),
        lambda x0: ox.scipy.curve_fit(lambda t, p: pytest.fail("called"), T, T, x0),
    ):
        with pytest.raises(ox.StructureError, match="the point has arrays of size zero alone: expected one number"):
            solve(EMPTY[at])
    found = ox.scipy.minimize(lambda m: xp.sum((m["a"] - 2.0) ** 2), {"a": np.zeros(2), "none": np.zeros((0, 3))})
    np.testing.assert_allclose(found.x["a"], 2.0, rtol=1e-6)
    assert found.x["none"].shape == (0, 3)


def test_errors() -> None:
    with pytest.raises(ox.ShapeError, match="expected a scalar"):
        ox.scipy.minimize(lambda x: x, np.zeros(2))
    with pytest.raises(ox.StructureError, match="no floating-point number"):
        ox.scipy.minimize(lambda m: m["a"][0], {"a": np.arange(3)})
    with pytest.raises(TypeError, match="complex numbers"):
        ox.scipy.root(lambda x: x, np.zeros(2, complex))


@pytest.mark.parametrize("method", METHODS)
def test_a_callback_of_every_method_gets_trees(method: str) -> None:
    points: list[Any] = []

    def f(m: Any) -> Any:
        return (m["a"] - 1.0) ** 2 + xp.sum((m["b"] - 2.0) ** 2)

    x0 = {"a": 0.3, "b": np.ones(2)}
    found = ox.scipy.minimize(f, x0, method=method, callback=points.append)
    assert points
    np.testing.assert_allclose([points[-1]["a"], *points[-1]["b"]], [found.x["a"], *found.x["b"]], atol=0.1)


def test_a_callable_method_is_called_with_the_derivative() -> None:
    def descent(fun: Any, x0: np.ndarray, jac: Any, **_: Any) -> Any:
        return optimize.OptimizeResult(x=x0 - 0.5 * jac(x0), fun=fun(x0))

    found = ox.scipy.minimize(lambda m: xp.sum((m["a"] - 1.0) ** 2), {"a": np.zeros(2)}, method=descent)
    assert found.x["a"].tolist() == [1.0, 1.0]


@pytest.mark.parametrize("argument", [3.0, np.array([1.0, 2.0])])
def test_an_argument_that_is_no_tuple_is_one_argument(argument: Any) -> None:
    def difference(x: Any, a: Any) -> Any:
        return x - a

    x0 = np.zeros(2)
    for found in (
        ox.scipy.minimize(lambda x, a: xp.sum((x - a) ** 2), x0, argument),
        ox.scipy.root(difference, x0, argument),
        ox.scipy.least_squares(difference, x0, argument),
    ):
        np.testing.assert_allclose(found.x, argument * np.ones(2), rtol=1e-6)


def test_the_name_of_a_method_has_any_case() -> None:
    calls = [ox.scipy.root(lambda x: x**2 - 4.0, np.ones(2), method=method).nfev for method in ("lm", "LM")]
    assert calls[0] == calls[1]
    with pytest.raises(TypeError, match="jac"):
        ox.scipy.root(lambda x: x, np.ones(2), jac=lambda x: np.eye(2))


def test_curve_fit_leaves_places_without_data_out() -> None:
    x = np.linspace(0.0, 2.0, 9)
    y = 2.0 * np.exp(-1.5 * x) + 0.01 * np.cos(9.0 * x)
    y[3] = np.nan
    p, covariance = ox.scipy.curve_fit(
        lambda x, p: p["a"] * np.exp(-p["k"] * x), x, y, {"a": 1.0, "k": 1.0}, nan_policy="omit"
    )
    expected, by_scipy = optimize.curve_fit(lambda x, a, k: a * np.exp(-k * x), x, y, [1.0, 1.0], nan_policy="omit")
    np.testing.assert_allclose([p["a"], p["k"]], expected, rtol=1e-5)
    np.testing.assert_allclose(covariance, by_scipy, rtol=1e-3)


def test_curve_fit_takes_errors_of_the_shape_of_the_data() -> None:
    x = np.linspace(0.0, 2.0, 12)
    y, sigma = 2.0 * np.exp(-1.5 * x) + 0.1 * np.cos(9.0 * x), 0.1 + x
    p, _ = ox.scipy.curve_fit(
        lambda x, p: p[0] * np.exp(-p[1] * x), x.reshape(3, 4), y.reshape(3, 4), [1.0, 1.0], sigma.reshape(3, 4)
    )
    expected, _ = optimize.curve_fit(lambda x, a, k: a * np.exp(-k * x), x, y, [1.0, 1.0], sigma)
    np.testing.assert_allclose(p, expected, rtol=1e-5)


def test_curve_fit_refuses_the_full_output_of_scipy() -> None:
    with pytest.raises(TypeError, match="full_output"):
        ox.scipy.curve_fit(lambda x, p: p * x, T, T, 1.0, full_output=True)


@pytest.mark.filterwarnings("error")
def test_imaginary_parts_are_not_lost() -> None:
    x0 = np.ones(2)
    for solve in (
        lambda: ox.scipy.minimize(lambda x: xp.sum(x * 1j), x0, method="Powell"),
        lambda: ox.scipy.root(lambda x: x * (1.0 + 1.0j) - 2.0j, x0),
        lambda: ox.scipy.least_squares(lambda x: x * (1.0 + 1.0j) - 2.0j, x0),
        lambda: ox.scipy.curve_fit(lambda t, p: p * t, T, T * 1j, 1.0),
    ):
        with pytest.raises(ox.DtypeError, match="complex numbers: expected real ones"):
            solve()


@pytest.mark.parametrize(
    "x0", [0, [0, 0], np.array([0, 0]), np.array([0, 0], np.int8)], ids=["int", "list", "int64", "int8"]
)
def test_points_of_integers_are_points_of_floats_as_in_scipy(x0: Any) -> None:
    found = ox.scipy.minimize(lambda x: sum((each - 1.5) ** 2 for each in (x if np.ndim(x0) else [x])), x0)
    np.testing.assert_allclose(found.x, np.full(np.shape(x0), 1.5), rtol=1e-6)


@pytest.mark.parametrize("name", ["minimize", "root", "least_squares"])
@pytest.mark.parametrize("derivative", ["jac", "hess"])
def test_derivatives_of_the_user_are_refused_by_name(name: str, derivative: str) -> None:
    with pytest.raises(TypeError, match=f"^{name}: {derivative} is unknown: derivatives are computed automatically"):
        getattr(ox.scipy, name)(lambda x: x * x, 1.0, **{derivative: "2-point"})
