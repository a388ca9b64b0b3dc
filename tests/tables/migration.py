"""The claims of each row of from_autograd.md, run with their function and with ours: numbers that must agree."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import oxigrad as ox
from oxigrad import optim, xp

# What a function of another library gives, what ours gives, and a relative tolerance where it is not the test's.
Pair = tuple[Any, Any] | tuple[Any, Any, float]
X = np.array([0.3, 0.6, 0.7])
V = np.array([1.0, -2.0, 0.5])
A = np.array([[0.5, -1.0, 0.3], [0.8, 0.1, -0.6], [-0.4, 0.9, 1.2]])
S = A @ A.T + 3 * np.eye(3)
C = np.array([[2.0, 0.3], [0.3, 1.0]])
BANDS = np.array([[0.0, 0.1, 0.2], [3.0, 4.0, 5.0], [0.3, 0.4, 0.0]])
TIMES = np.linspace(0.0, 1.0, 4)


def cubes(np_: Any) -> Callable[[Any], Any]:
    return lambda x: np_.sum(np_.sin(x) * x**3)


# --- autograd -----------------------------------------------------------------------------------------------------------


def of_autograd() -> dict[str, Callable[[], Iterator[Pair]]]:
    """The rows of from_autograd.md by their first name."""
    import autograd
    import autograd.differential_operators as operators
    import autograd.numpy as anp
    import autograd.test_util
    from autograd.misc import fixed_points, flatten, optimizers

    theirs, ours = cubes(anp), cubes(xp)

    def pairs(make: Callable[[], Any]) -> Callable[[], Iterator[Pair]]:
        return lambda: iter([make()])

    def primitives() -> Iterator[Pair]:
        cube = autograd.extend.primitive(lambda x: x**3)
        autograd.extend.defvjp(cube, lambda ans, x: lambda g: 3 * g * x**2)
        own = ox.define_vjp(lambda g, x: 3 * g * x**2)(lambda x: x**3)
        yield autograd.grad(cube)(2.0), ox.grad(own)(2.0)
        yield 12.0, ox.grad(ox.custom_vjp(lambda x: x**3, lambda g, out, x: 3 * g * x**2))(2.0)

    def tangents() -> Iterator[Pair]:
        cube = autograd.extend.primitive(lambda x: x**3)
        autograd.extend.defjvp(cube, lambda g, ans, x: 3 * g * x**2)
        own = ox.define_jvp(lambda t, x: 3 * t * x**2)(lambda x: x**3)
        yield from zip(autograd.make_jvp(cube)(2.0)(0.5), ox.jvp(own, (2.0,), (0.5,)), strict=True)

    def optimizer(their: Any, own: Any, **options: Any) -> Iterator[Pair]:
        loss = lambda x, step: anp.sum((x - 1.0) ** 2)  # noqa: E731
        model = X.copy()
        for _ in range(5):
            own.minimize(lambda x: xp.sum((x - 1.0) ** 2), model)
        yield their(autograd.grad(loss), X.copy(), num_iters=5, **options), model

    def fixed_point() -> Iterator[Pair]:
        def root(a: Any) -> Any:
            step = lambda a: lambda x: 0.5 * (x + a / x)  # noqa: E731
            distance = lambda x, y: anp.abs(x - y)  # noqa: E731
            return fixed_points.fixed_point(step, a, 1.0, distance, 1e-12)

        own = ox.implicit(lambda x, a: x * x - a, np.sqrt)
        yield autograd.grad(root)(2.0), ox.grad(own)(2.0)

    def vjps() -> Iterator[Pair]:
        pullback, value = autograd.make_vjp(theirs)(X)
        own_value, own_pullback = ox.vjp(ours, X)
        yield from ((value, own_value), (pullback(2.0), own_pullback(2.0)[0]))
        yield from zip(autograd.make_jvp(theirs)(X)(V), ox.jvp(ours, (X,), (V,)), strict=True)

    return {
        "autograd.numpy": pairs(lambda: (autograd.grad(theirs)(X), ox.grad(cubes(np))(X))),
        "autograd.grad": pairs(lambda: (autograd.grad(theirs)(X), ox.grad(ours)(X))),
        "autograd.value_and_grad": lambda: zip(
            autograd.value_and_grad(theirs)(X), ox.value_and_grad(ours)(X), strict=True
        ),
        "autograd.elementwise_grad": pairs(
            lambda: (autograd.elementwise_grad(anp.tanh)(X), ox.elementwise_grad(xp.tanh)(X))
        ),
        "autograd.jacobian": lambda: iter(
            [
                (autograd.jacobian(lambda x: anp.sin(x) * x[0])(X), ox.jacobian(lambda x: xp.sin(x) * x[0])(X)),
                (autograd.hessian(theirs)(X), ox.hessian(ours)(X)),
            ]
        ),
        "autograd.hessian_vector_product": pairs(
            lambda: (autograd.hessian_vector_product(theirs)(X, V), ox.hvp(ours, (X,), (V,))[0])
        ),
        "autograd.make_vjp": vjps,
        "autograd.make_ggnvp": pairs(
            lambda: (
                operators.make_ggnvp(lambda x: anp.sin(x) * x[0], lambda y: anp.sum(y**4))(X)(V),
                ox.ggnvp(lambda x: xp.sin(x) * x[0], lambda y: xp.sum(y**4), (X,), (V,))[0],
            )
        ),
        "autograd.checkpoint": pairs(
            lambda: (autograd.grad(autograd.checkpoint(theirs))(X), ox.grad(ox.checkpoint(ours))(X))
        ),
        "autograd.extend.primitive": primitives,
        "autograd.extend.defjvp": tangents,
        "autograd.misc.flatten": pairs(
            lambda: (flatten({"a": A, "b": X})[0], ox.tree.ravel({"a": A, "b": X})[0]),
        ),
        "autograd.misc.optimizers.adam": lambda: optimizer(
            optimizers.adam, optim.Adam(0.1, epsilon=1e-8), step_size=0.1, eps=1e-8
        ),
        "autograd.misc.optimizers.sgd": lambda: optimizer(
            optimizers.sgd, optim.SGD(0.1 * (1 - 0.9), momentum=0.9), step_size=0.1, mass=0.9
        ),
        "autograd.misc.fixed_points.fixed_point": fixed_point,
        "autograd.test_util.check_grads": lambda: iter(
            [(autograd.test_util.check_grads(theirs, order=2)(X), ox.testing.check_grads(ours, (X,), order=2))]
        ),
        **of_autograd_scipy(),
    }


def of_autograd_scipy() -> dict[str, Callable[[], Iterator[Pair]]]:
    """Values, and derivatives by the arguments named, of the functions of autograd.scipy."""
    import autograd.builtins as builtins
    import autograd.numpy as anp
    import autograd.scipy.integrate as integrate
    import autograd.scipy.linalg as linalg
    import autograd.scipy.signal as signal
    import autograd.scipy.special as special
    import autograd.scipy.stats as stats

    def both(their: Any, own: Any, args: tuple[Any, ...], by: tuple[int, ...], rtol: float = 1e-9) -> Iterator[Pair]:
        import autograd

        value = their(*args)
        weights = np.cos(np.arange(np.size(value))).reshape(np.shape(value))
        yield value, own(*args), rtol
        for argnum in by:
            yield (
                autograd.grad(lambda *a: anp.sum(their(*a) * weights), argnum)(*args),
                ox.grad(lambda *a: xp.sum(own(*a) * weights), argnums=argnum)(*args),
                rtol,
            )

    def decay(odeint: Any, tuple_: Any = tuple) -> Any:
        return lambda y, k: odeint(lambda y, t, k: -k * y, y, TIMES, tuple_((k,)))

    def of_special() -> Iterator[Pair]:
        orders = {"jn": (2,), "yn": (2,), "iv": (2.0,), "ive": (2.0,), "polygamma": (2,), "multigammaln": ()}
        orders |= {"betainc": (1.5, 2.5), "gammainc": (1.5,), "gammaincc": (1.5,), "beta": (1.5,), "betaln": (1.5,)}
        names = [n for n in dir(special) if hasattr(getattr(special, n), "fun") and hasattr(xp.special, n)]
        for name in names:
            if name not in ("logsumexp", "gammasgn"):
                args = (3.0 + X, 2) if name == "multigammaln" else (*orders.get(name, ()), X)
                by = () if name == "gammasgn" else (0 if name == "multigammaln" else len(args) - 1,)
                yield from both(getattr(special, name), getattr(xp.special, name), args, by)
        assert len(names) >= 25

    def of_stats() -> Iterator[Pair]:
        parameters = {"norm": (0.2, 1.3), "t": (4.5, 0.2, 1.3), "gamma": (2.5,), "beta": (2.5, 1.5), "chi2": (4.0,)}
        for name, given in {**parameters, "poisson": (2.5,)}.items():
            x = np.array([1.0, 2.0, 3.0]) if name == "poisson" else X
            theirs, ours = getattr(stats, name), getattr(xp.stats, name)
            for kind in ("pdf", "logpdf", "cdf", "logcdf", "sf", "logsf", "pmf", "logpmf"):
                if hasattr(getattr(theirs, kind, None), "fun"):
                    has_all = name == "norm" or (kind in ("pdf", "logpdf") and name != "chi2")
                    by = (1,) if name == "poisson" else tuple(range(1 + len(given))) if has_all else (0,)
                    yield from both(getattr(theirs, kind), getattr(ours, kind), (x, *given), by)

    def of_linalg() -> Iterator[Pair]:
        banded = functools.partial(linalg.solve_banded, (1, 1)), functools.partial(xp.linalg.solve_banded, (1, 1))
        yield from both(linalg.sqrtm, xp.linalg.sqrtm, (S,), (0,))
        yield from both(linalg.solve_triangular, xp.linalg.solve_triangular, (S, X), (0, 1))
        yield from both(linalg.solve_sylvester, xp.linalg.solve_sylvester, (S, S + 1, A), (0, 1, 2))
        yield from both(*banded, (BANDS, X), (0, 1))

    vector = np.array([0.1, 0.2])
    normal = stats.multivariate_normal.logpdf, xp.stats.multivariate_normal.logpdf
    dirichlet = stats.dirichlet.logpdf, xp.stats.dirichlet.logpdf
    shares = np.array([0.2, 0.3, 0.5])
    return {
        "autograd.scipy.special": of_special,
        "autograd.scipy.special.logsumexp": lambda: both(special.logsumexp, xp.special.logsumexp, (X,), (0,)),
        "autograd.scipy.stats.norm": of_stats,
        "autograd.scipy.stats.dirichlet": lambda: both(*dirichlet, (shares, 1.5 + X), (0, 1)),
        "autograd.scipy.stats.multivariate_normal": lambda: both(*normal, (vector, 2 * vector, C), (0, 1, 2)),
        "autograd.scipy.linalg.sqrtm": of_linalg,
        "autograd.scipy.signal.convolve": lambda: both(signal.convolve, xp.signal.convolve, (A, C), (0, 1)),
        "autograd.scipy.integrate.odeint": lambda: both(
            decay(integrate.odeint, builtins.tuple), decay(xp.integrate.odeint), (X, 0.7), (0, 1), 1e-6
        ),
    }
