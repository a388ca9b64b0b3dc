"""Arrays that a function makes and fills: constant variables that take assignments, in every transform."""

import copy
import math

import numpy as np
import pytest

import oxigrad as ox
from libraries import host
from oxigrad import xp
from oxigrad.testing import check_grads

X = np.array([1.5, -0.5, 2.0])

MAKERS = {
    "np.array": lambda x: np.array([0.0, 7.0, 0.0], like=x),
    "np.asarray": lambda x: np.asarray([0.0, 7.0, 0.0], like=x),
    "np.empty": lambda x: np.empty(3, like=x),
    "np.empty_like": np.empty_like,
    "np.eye": lambda x: np.eye(3, like=x)[1],
    "np.full": lambda x: np.full(3, 7.0, like=x),
    "np.full_like": lambda x: np.full_like(x, 7.0),
    "np.identity": lambda x: np.identity(3, like=x)[1],
    "np.ones": lambda x: np.ones(3, like=x),
    "np.ones_like": np.ones_like,
    "np.zeros": lambda x: np.zeros(3, like=x),
    "np.zeros_like": np.zeros_like,
    "xp.zeros_like of a list": lambda x: xp.zeros_like([x[0], x[1], x[2]]),
    "xp.array": lambda x: xp.array([0.0, 7.0, 0.0]),
    "xp.empty": lambda x: xp.empty(3),
    "xp.empty_like": xp.empty_like,
    "xp.eye": lambda x: xp.eye(3)[1],
    "xp.full": lambda x: xp.full(3, 7.0),
    "xp.full of a variable": lambda x: xp.full(3, x[0]),
    "xp.full_like": lambda x: xp.full_like(x, 7.0),
    "xp.ones": lambda x: xp.ones(3),
    "xp.ones_like": xp.ones_like,
    "xp.zeros": lambda x: xp.zeros(3),
    "xp.zeros_like": xp.zeros_like,
    "xp.zeros_like of data": lambda x: xp.zeros_like(X),
    "an expression": lambda x: 2.0 * xp.ones(3) + 1.0,
    "a copy": lambda x: xp.zeros(3).copy(),
    "another shape": lambda x: xp.zeros((3, 1)).reshape(3),
}


@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
def test_a_filled_array_has_derivatives_in_every_transform(make) -> None:
    def f(x):
        y = make(x)
        y[0] = 2.0 * x[0]
        y[1] = y[0] * x[1]
        y[2:] = x[2:] ** 2
        y[1:2] += x[2]
        y *= x[0]
        return xp.sum(y * np.array([1.0, 10.0, 100.0]))

    # 2 a^2 + 10 a (2 a b + c) + 100 a c^2
    a, b, c = X
    gradient = [4 * a + 40 * a * b + 10 * c + 100 * c**2, 20 * a**2, 10 * a + 200 * a * c]
    hessian = [[4 + 40 * b, 40 * a, 10 + 200 * c], [40 * a, 0, 0], [10 + 200 * c, 0, 200 * a]]
    both = np.stack([X, 2 * X])
    np.testing.assert_allclose(ox.grad(f)(X), gradient)
    np.testing.assert_allclose(ox.jvp(f, (X,), (X,))[1], np.dot(gradient, X))
    np.testing.assert_allclose(ox.vmap(f)(both), [f(X), f(2 * X)])
    np.testing.assert_allclose(ox.vmap(ox.grad(f))(both)[0], gradient)
    np.testing.assert_allclose(ox.grad(lambda x: xp.sum(ox.vmap(f)(xp.stack([x, x]))))(X), np.multiply(2, gradient))
    np.testing.assert_allclose(ox.hessian(f)(X), hessian)
    np.testing.assert_allclose(ox.jacobian(ox.grad(f), mode="forward")(X), hessian)
    np.testing.assert_allclose(ox.grad(ox.checkpoint(f))(X), gradient)
    with ox.Tape() as tape:
        x = tape.watch(X)
        y = f(x)
    np.testing.assert_allclose(tape.gradient(y, [x])[0], gradient)
    for recorded, function in ((ox.record(ox.grad(f)), ox.grad(f)), (ox.record(f), f)):
        for k in (1.0, 2.0, 3.0):
            np.testing.assert_array_equal(recorded(k * X), function(k * X))
        assert recorded.replays == 2, recorded.why


# --- programs ------------------------------------------------------------------------------------------------------------


def _kalman(q):
    """The log-likelihood of a local linear trend by the Kalman filter."""
    data = np.array([0.3, 0.9, 1.1, 1.8, 2.2])
    transition, seen = np.array([[1.0, 1.0], [0.0, 1.0]]), np.array([[1.0, 0.0]])
    noise = xp.zeros((2, 2))
    noise[0, 0], noise[1, 1] = xp.exp(q[0]), xp.exp(q[1])
    mean, covariance = xp.zeros(2), 10.0 * xp.eye(2)
    likelihoods = np.zeros(len(data), like=q)
    for t, value in enumerate(data):
        mean, covariance = transition @ mean, transition @ covariance @ transition.T + noise
        residual, spread = value - (seen @ mean)[0], (seen @ covariance @ seen.T)[0, 0] + xp.exp(q[2])
        gain = (covariance @ seen.T)[:, 0] / spread
        mean, covariance = mean + gain * residual, covariance - xp.outer(gain, (seen @ covariance)[0])
        likelihoods[t] = -0.5 * (xp.log(2.0 * math.pi * spread) + residual**2 / spread)
    return xp.sum(likelihoods)


def _runge_kutta(p):
    """The end of a trajectory of predators and prey, kept in an array of all steps."""

    def slope(y):
        dy = xp.empty(2)
        dy[0] = p[0] * y[0] - p[1] * y[0] * y[1]
        dy[1] = p[1] * y[0] * y[1] - p[2] * y[1]
        return dy

    h, states = 0.1, xp.zeros((6, 2))
    states[0] = [1.0, 0.5]
    for n in range(5):
        y = states[n]
        k1 = slope(y)
        k2 = slope(y + h / 2 * k1)
        k3 = slope(y + h / 2 * k2)
        states[n + 1] = y + h / 6 * (k1 + 2 * k2 + 2 * k3 + slope(y + h * k3))
    return xp.sum(states**2)


def _tridiagonal(d):
    """The solution of a tridiagonal system by Thomas' algorithm, beside that of the assembled matrix."""
    n, right = 4, np.arange(1.0, 5.0)
    matrix = xp.zeros((n, n))
    for i in range(n):
        matrix[i, i] = 4.0 + d[i] ** 2
        if i:
            matrix[i, i - 1] = matrix[i - 1, i] = -d[i] * d[i - 1]
    factors, rights, solution = xp.zeros(n), xp.zeros(n), xp.zeros(n)
    for i in range(n):
        below = matrix[i, i - 1] if i else 0.0
        pivot = matrix[i, i] - below * (factors[i - 1] if i else 0.0)
        factors[i] = matrix[i, i + 1] / pivot if i + 1 < n else 0.0
        rights[i] = (right[i] - below * (rights[i - 1] if i else 0.0)) / pivot
    for i in reversed(range(n)):
        solution[i] = rights[i] - (factors[i] * solution[i + 1] if i + 1 < n else 0.0)
    return xp.sum(solution * xp.linalg.solve(matrix, right))


def _random_field(w):
    """The log-probability of a sequence of labels in a conditional random field, by the forward algorithm."""
    scores, steps = xp.reshape(w[:6], (3, 2)), xp.reshape(w[6:], (2, 2))
    forward = np.full((3, 2), -np.inf, like=w)
    forward[0] = scores[0]
    for t in (1, 2):
        for label in (0, 1):
            forward[t, label] = xp.logaddexp(*(forward[t - 1] + steps[:, label])) + scores[t, label]
    labels = (0, 1, 1)
    score = sum(scores[t, label] for t, label in enumerate(labels)) + steps[0, 1] + steps[1, 1]
    return score - xp.logaddexp(*forward[2])


def _bodies(x):
    """The energy of three bodies after steps of the leapfrog scheme, whose forces are summed in place."""
    places, masses = xp.reshape(x, (3, 2)), np.array([1.0, 0.5, 0.25])

    def acceleration(places):
        sums = np.zeros_like(places)
        for i in range(3):
            for j in range(3):
                if i != j:
                    apart = places[j] - places[i]
                    sums[i] += masses[j] * apart / xp.sum(apart**2) ** 1.5
        return sums

    speeds = xp.zeros((3, 2))
    for _ in range(3):
        speeds += 0.05 * acceleration(places)
        places = places + 0.1 * speeds
    return 0.5 * xp.sum(masses[:, None] * speeds**2)


def _differences(u):
    """A step of the heat equation, written to the inside of an array."""
    after = xp.zeros_like(u)
    after[1:-1] = u[1:-1] + 0.1 * (u[2:] - 2.0 * u[1:-1] + u[:-2])
    after[0], after[-1] = after[1], after[-2]
    return xp.sum(after**3)


PROGRAMS = {
    _kalman: [-1.0, -2.0, -0.5],
    _runge_kutta: [1.1, 0.4, 0.6],
    _tridiagonal: [0.5, -1.0, 0.8, 1.2],
    _random_field: [0.1, -0.2, 0.3, 0.4, -0.5, 0.6, 0.7, -0.8, 0.9, 0.2],
    _bodies: [0.0, 0.0, 1.0, 0.1, 0.2, 1.3],
    _differences: [0.1, 0.5, 0.9, 0.4, 0.2],
}


@pytest.mark.parametrize(("program", "at"), PROGRAMS.items(), ids=lambda part: getattr(part, "__name__", ""))
def test_programs_that_fill_arrays_have_derivatives(program, at) -> None:
    check_grads(program, (np.array(at),), order=2)
    one_by_one = [program(k * np.array(at)) for k in (1.0, 1.1)]
    np.testing.assert_allclose(ox.vmap(program)(np.stack([at, np.multiply(1.1, at)])), one_by_one, rtol=1e-12)


# --- constants -----------------------------------------------------------------------------------------------------------


def test_outside_of_transforms_arrays_are_plain() -> None:
    assert type(xp.zeros(3)) is type(xp.eye(2)) is type(xp.full_like(X, 1.0)) is np.ndarray
    ox.grad(lambda x: xp.sum(x))(X)
    with pytest.raises(ZeroDivisionError):
        ox.grad(lambda x: 1 / 0)(X)
    assert type(xp.zeros(3)) is np.ndarray


def test_a_constant_records_nothing_until_it_is_assigned_to() -> None:
    with ox.Tape() as tape:
        x = tape.watch(X)
        zeros = xp.zeros(3)
        total = 2.0 * (zeros + 1.0)[1:]
        assert len(tape) == 1
        assert isinstance(zeros, ox.Variable) and isinstance(total, ox.Variable)
        zeros[0] = 5.0
        assert len(tape) == 1
        zeros[1] = x[0]
        y = xp.sum(zeros)
    assert len(tape) > 1
    np.testing.assert_array_equal(tape.gradient(y, [x])[0], [1.0, 0.0, 0.0])
    assert ox.stop_gradient(zeros).tolist() == [5.0, 1.5, 0.0]


def test_a_function_of_constants_alone_has_zeros_as_its_derivative() -> None:
    np.testing.assert_array_equal(ox.grad(lambda x: xp.sum(xp.ones(3) * 2.0))(X), np.zeros(3))
    np.testing.assert_array_equal(ox.jacobian(lambda x: xp.eye(3))(X), np.zeros((3, 3, 3)))
    value, tangent = ox.jvp(lambda x: xp.ones(2), (X,), (X,))
    assert type(value) is np.ndarray
    np.testing.assert_array_equal(tangent, np.zeros(2))
    *_, aux = ox.vjp(lambda x: (x, {"zeros": xp.zeros(2)}), X, has_aux=True)
    assert type(aux["zeros"]) is np.ndarray
    assert type(ox.vmap(lambda x: xp.zeros(2))(X)) is np.ndarray
    with ox.Tape() as tape:
        x, zeros = tape.watch(X), xp.zeros(3)
    gradients = tape.gradient(zeros, [x, zeros], np.ones(3))
    np.testing.assert_array_equal(gradients, np.zeros((2, 3)))


def test_a_constant_is_converted_as_a_plain_array_is() -> None:
    import scipy.linalg

    def f(x):
        zeros, eye = xp.zeros(3), xp.eye(3)
        assert np.asarray(zeros).tolist() == zeros.tolist() == [0.0] * 3
        assert float(zeros[0]) == float(zeros.sum()) == math.sqrt(zeros[1]) == int(zeros[2]) == 0
        assert not zeros.any() and zeros.shape == (3,) and len(zeros) == 3 and zeros.dtype == np.float64
        assert (zeros < 1.0).tolist() == [True] * 3 and type(zeros < 1.0) is np.ndarray
        assert list(zeros) == [0.0] * 3
        assert f"{zeros[0]:.1f}" == "0.0"
        np.testing.assert_array_equal(scipy.linalg.expm(eye), math.e * np.eye(3))
        plain = np.ones(3)
        plain[:2] = zeros[:2]
        plain += zeros
        np.add(plain, zeros, out=plain)
        np.copyto(plain[1:], zeros[1:])
        assert plain.tolist() == [0.0] * 3
        assert np.nextafter(zeros, 1.0).max() > 0.0
        assert np.random.default_rng(0).normal(zeros).shape == (3,)
        assert plain[np.argsort(zeros)].tolist() == [0.0] * 3
        with pytest.raises(ValueError, match="read-only"):
            np.asarray(zeros)[0] = 1.0
        writable = np.array(zeros)
        writable[0] = 1.0
        return xp.sum(x * eye[0])

    np.testing.assert_array_equal(ox.grad(f)(X), [1.0, 0.0, 0.0])


def test_an_array_with_a_derivative_is_not_converted() -> None:
    def f(x):
        y = xp.zeros(3)
        y[0] = x[0]
        with pytest.raises(TypeError, match="lose its derivative"):
            np.asarray(y)
        with pytest.raises(TypeError, match="lose its derivative"):
            float(y[0])
        with pytest.raises(ox.DerivativeError, match="plain array"):
            np.add(np.ones(3), y, out=np.ones(3))
        return y[0]

    ox.grad(f)(X)


def test_arrays_of_integers_are_plain_and_cast_as_numpys() -> None:
    def f(x):
        whole = xp.zeros(3, dtype=int)
        assert type(whole) is np.ndarray
        whole[0] = x[2] + 0.9
        return xp.sum(x * whole)

    np.testing.assert_array_equal(ox.grad(f)(X), [2.0, 0.0, 0.0])
    single = ox.grad(lambda x: xp.sum(_filled(np.zeros(3, np.float32, like=x), x)))(X)
    np.testing.assert_array_equal(single, [1.0, 0.0, 0.0])
    with pytest.raises(ox.DtypeError, match="complex"):
        ox.grad(lambda x: xp.sum(xp.real(_filled(xp.zeros(3), 1j * x))))(X)


def _filled(y, x):
    y[0] = x[0]
    return y


def test_a_view_of_a_constant_is_stale_once_it_is_changed() -> None:
    def f(x):
        y = xp.zeros((2, 3))
        row = y[0]
        y[1] = x
        return xp.sum(row)

    with pytest.raises(ox.ArrayMemoryError, match="share memory"):
        ox.grad(f)(X)

    def g(x):
        y = xp.zeros((2, 3))
        row = y[0]
        row[:] = x
        return xp.sum(y)

    with pytest.raises(ox.ArrayMemoryError, match="share memory"):
        ox.grad(g)(X)

    def h(x):  # the part that was changed is assigned elsewhere
        y = xp.zeros(4)
        part = y[:2]
        part += x[:2]
        y[2:] = part
        return xp.sum(y)

    with pytest.raises(ox.ArrayMemoryError, match="share memory"):
        ox.grad(h)(X)


def test_parts_of_a_constant_are_changed_in_place() -> None:
    def f(x):
        y = xp.zeros((2, 3))
        y[0] += x
        y[1, :2] -= x[:2] ** 2
        y += 1.0
        return xp.sum(y * y)

    check_grads(f, (X,), order=2)


def test_copies_of_a_constant_are_their_own() -> None:
    def f(x):
        y = xp.zeros(3)
        z, w = copy.copy(y), copy.deepcopy(y)
        y[0] = x[0]
        z[1] = x[1]
        w[2] = x[2]
        return xp.sum(y) + 10.0 * xp.sum(z) + 100.0 * xp.sum(w)

    np.testing.assert_array_equal(ox.grad(f)(X), [1.0, 10.0, 100.0])


def test_a_constant_outlives_its_transform() -> None:
    kept = []

    def f(x):
        zeros = xp.zeros(3)
        zeros[1] = 2.0
        kept.append(zeros)
        return xp.sum(x)

    ox.grad(f)(X)
    (constant,) = kept
    np.testing.assert_array_equal(constant + 1.0, [1.0, 3.0, 1.0])
    np.testing.assert_array_equal(ox.grad(lambda x: xp.sum(x * constant))(X), [0.0, 2.0, 0.0])
    np.testing.assert_array_equal(np.asarray(constant), [0.0, 2.0, 0.0])


def test_an_outer_constant_takes_no_inner_variable() -> None:
    def f(x):
        y = xp.zeros(3)

        def g(z):
            y[0] = z[0]
            return xp.sum(y)

        return xp.sum(ox.grad(g)(x))

    with pytest.raises(ox.DerivativeError, match="belongs to an outer function"):
        ox.grad(f)(X)


def test_an_inner_array_takes_outer_variables() -> None:
    def f(x):
        def g(z):
            y = xp.zeros(2)
            y[0] = x[0] * x[1]
            y[1] = z * x[2]
            return xp.sum(y**2)

        return ox.grad(g)(2.0)  # 2 z c^2

    np.testing.assert_allclose(ox.grad(f)(X), [0.0, 0.0, 8.0 * X[2]])


def test_rules_and_optimizers_inside_of_a_transform_see_plain_arrays() -> None:
    def f(x):
        opt, params = ox.optim.Adam(0.1), {"w": np.ones(3)}
        for _ in range(2):
            params = opt.update(params, {"w": np.ones(3)})
        assert all(type(slot) is np.ndarray for slots in opt.slots.values() for slot in slots.values())
        clipped = ox.custom_vjp(lambda v: _filled(xp.zeros_like(v), v), lambda g, y, v: _filled(xp.zeros_like(v), g))
        return xp.sum(clipped(x) * params["w"])

    gradient = ox.grad(f)(X)
    np.testing.assert_allclose(gradient, [0.8, 0.0, 0.0], rtol=1e-6)


def test_a_custom_rule_fills_arrays_at_each_order() -> None:
    def rule(g, y, v):
        cotangent = np.zeros_like(v)
        cotangent[0] = 3.0 * g[0] * v[0] ** 2
        return cotangent

    cube = ox.custom_vjp(lambda v: _filled(np.zeros(3, like=v), v**3), rule)
    f = lambda x: xp.sum(cube(x))  # noqa: E731
    np.testing.assert_allclose(ox.grad(f)(X), [3 * X[0] ** 2, 0.0, 0.0])
    np.testing.assert_allclose(ox.hessian(f)(X), np.diag([6 * X[0], 0.0, 0.0]))


def test_zeros_like_a_variable_are_of_its_library(asarray) -> None:
    x = asarray(X)

    def f(x):
        y = np.zeros(3, like=x)
        y[0] = x[0] ** 2
        z = xp.zeros_like(x)
        z[1:] = x[1:]
        return xp.sum(y) + xp.sum(z * z)

    np.testing.assert_allclose(host(ox.grad(f)(x)), 2.0 * X, rtol=1e-6)
