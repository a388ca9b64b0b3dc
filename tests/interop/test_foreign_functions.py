"""Functions of other libraries that are called on variables, and names that are not there: the error says what to call."""

import os
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import oxigrad as ox
from oxigrad import xp

X = np.eye(3)


def refusal(f: Callable[[Any], Any], at: Any = X) -> str:
    with pytest.raises((TypeError, NotImplementedError)) as caught:
        ox.grad(lambda x: xp.sum(f(x)))(at)
    return str(caught.value)


def test_a_function_of_scipy_is_named_with_its_twin() -> None:
    for part in ("linalg", "ndimage", "signal", "special", "stats"):
        pytest.importorskip(f"scipy.{part}")
    import scipy

    for name, args in {
        "linalg.expm": (),
        "linalg.solve": (X,),
        "stats.norm.logpdf": (),
        # Those that SciPy writes to the Array API: with SCIPY_ARRAY_API=1 they take variables.
        **({} if os.environ.get("SCIPY_ARRAY_API") else {"special.logsumexp": (), "ndimage.gaussian_filter": (1.0,)}),
    }.items():
        function: Any = scipy
        for part in name.split("."):
            function = getattr(function, part)
        assert f"xp.{name} is scipy.{name} for variables" in refusal(lambda x, f=function, args=args: f(x, *args))
    assert "scipy.signal.medfilt takes none; with SCIPY_ARRAY_API=1" in refusal(scipy.signal.medfilt)
    optimize: Any = scipy.optimize
    for solve in (optimize.brentq, optimize.bisect):
        text = refusal(lambda x, solve=solve: solve(lambda z: z - x, -9.0, 9.0), 1.5)
        assert f"{solve.__name__} takes none: oxigrad.implicit" in text and "SCIPY_ARRAY_API" not in text
    assert "minimize_scalar takes none: oxigrad.implicit" in refusal(
        lambda x: optimize.minimize_scalar(lambda z: (z - x) ** 2).x, 1.5
    )
    for f in (np.asarray, np.float64):  # of NumPy
        assert "np.array([v, w], like=v)" in refusal(f) and "scipy" not in refusal(f)


@pytest.mark.skipif("SCIPY_ARRAY_API" in os.environ, reason="there, functions of the Array API take variables")
def test_a_function_of_scipy_that_a_wrapper_or_a_class_calls_is_named() -> None:
    linalg, interpolate, stats, cluster = (
        pytest.importorskip(f"scipy.{part}") for part in "linalg interpolate stats cluster.vq".split()
    )
    knots = np.arange(3.0)
    for name, f in {
        **{f"linalg.{name}": getattr(linalg, name) for name in "cho_factor eigh logm lu_factor polar pinv svd".split()},
        "linalg.solve_triangular": lambda x: linalg.solve_triangular(X, x),
        "interpolate.CubicSpline": lambda x: interpolate.CubicSpline(knots, x)(0.5),
        "interpolate.PchipInterpolator": lambda x: interpolate.PchipInterpolator(knots, x)(0.5),
        "interpolate.RegularGridInterpolator": lambda x: interpolate.RegularGridInterpolator((knots,), x)([0.5]),
        "stats.gamma.pdf": lambda x: stats.gamma(2.0, scale=x).pdf(1.0),
    }.items():
        assert f"xp.{name} is scipy.{name} for variables; xp.asarray" in refusal(f)
    for name, f in {
        "stats.gamma.mean": lambda x: stats.gamma(x).mean(),
        "stats.gaussian_kde": stats.gaussian_kde,
        "stats.skew": stats.skew,
        "cluster.vq.whiten": cluster.whiten,
    }.items():
        assert f"scipy.{name} takes none" in refusal(f)


def test_the_method_dot_of_a_plain_array_is_named_with_the_line_to_write() -> None:
    assert "X.dot(2.0 * x) takes none: np.dot(X, 2.0 * x) does" in refusal(lambda x: X.dot(2.0 * x))


def test_a_function_of_torch_is_named_with_its_twin(library: Callable[..., Any]) -> None:
    torch = library("torch")
    for at in (X, 1.0, torch.ones(3)):
        assert "torch.sin takes tensors, and found a variable: xp.sin takes variables" in refusal(torch.sin, at)
        assert "oxigrad.interop.torch.from_torch" in refusal(torch.nn.functional.relu, at)
    # operators of tensors are those of the variable
    ones = torch.ones(3)
    for f in (lambda x: ones * x, lambda x: x - ones, lambda x: ones - x, lambda x: ones / x, lambda x: ones**x):
        assert ox.grad(lambda x, f=f: xp.sum(f(x)))(torch.ones(3)).shape == (3,)
    assert ox.grad(lambda x: ones @ x)(torch.ones(3)).tolist() == [1.0, 1.0, 1.0]


def test_a_function_of_jax_names_from_jax(library: Callable[..., Any]) -> None:
    library("jax")
    import jax.numpy as jnp

    for f in (jnp.sin, jnp.asarray, lambda x: jnp.add(1.0, x)):
        assert "oxigrad.interop.jax.from_jax(f)" in refusal(f)
    ones = jnp.ones(3)
    for f in (lambda x: ones * x, lambda x: x - ones, lambda x: ones - x, lambda x: ones / x, lambda x: ones @ x):
        assert ox.grad(lambda x, f=f: xp.sum(f(x)))(ones).shape == (3,)


def test_a_name_that_is_not_there_brings_the_nearest() -> None:
    for module, name, near in (
        (ox, "gradd", "grad"),
        (ox, "Optim", "optim"),
        (xp, "arcsine", "arcsin"),
        (xp.linalg, "dett", "det"),
        (xp.fft, "fftt", "fft"),
        (xp.special, "erff", "erf"),
        (xp.signal, "convolv", "convolve"),
        (xp.ndimage, "gaussian_filters", "gaussian_filter"),
        (xp.stats, "Norm", "norm"),
        (xp.integrate, "odeintt", "odeint"),
    ):
        with pytest.raises(AttributeError, match=rf"has no attribute {name!r} \(did you mean {near}\?\)"):
            getattr(module, name)
        assert not hasattr(module, "__no_such_name__")
    with pytest.raises(AttributeError, match="no attribute 'jit': functions run as they are"):
        ox.jit  # noqa: B018


def test_axes_out_of_range_and_products_of_wrong_shapes() -> None:
    for name in "sum mean max min prod std var flip squeeze expand_dims cumsum sort roll median repeat diff take nansum ptp".split():
        further = {"roll": (1,), "repeat": (2,), "take": ([0],)}.get(name, ())
        for module in (np, xp):
            call = lambda x, f=getattr(module, name), further=further: f(x, *further, axis=7)  # noqa: B008,E731
            with pytest.raises(ox.ShapeError, match="axis is 7: expected an axis of an array of [23] dimensions"):
                ox.grad(lambda x, call=call: xp.sum(call(x)))(X)
    with pytest.raises(TypeError, match=r"sum: axis is 1.5: expected a whole number"):
        ox.grad(lambda x: np.sum(x, axis=1.5))(X)  # type: ignore[call-overload]
    for name, shapes in {"dot": (3, 2), "inner": (3, 2), "vdot": (9, 2)}.items():
        message = f"{name}: found .*{shapes[0]}.*{shapes[1]}"
        with pytest.raises(ox.ShapeError, match=message):
            ox.grad(lambda x, f=getattr(np, name): xp.sum(f(x, np.ones(2))))(X)  # noqa: B008


def test_the_version_of_the_standard_is_that_of_the_functions() -> None:
    assert xp.__array_api_version__ == "2025.12"  # since which meshgrid returns a tuple
    with ox.Tape() as tape:
        x = tape.watch(X[0])
        assert isinstance(xp.meshgrid(x, x), tuple) and isinstance(xp.meshgrid(X[0], X[0]), tuple)
        assert x.__array_namespace__(api_version="2025.12") is xp
        with pytest.raises(ValueError, match="is not supported"):
            x.__array_namespace__(api_version="2099.12")
