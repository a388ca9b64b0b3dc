"""Functions under SciPy's names have SciPy's parameters: each is honoured, without effect, or refused by name."""

from __future__ import annotations

import functools
import importlib
import inspect
import operator
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import numpy as np
import pytest

import oxigrad as ox
from oxigrad import xp
from oxigrad.testing import check_grads

scipy = pytest.importorskip("scipy")
pytest.importorskip("scipy.special")
PARTS = ("fft", "integrate", "linalg", "ndimage", "signal", "spatial.distance", "special")
RELEASE = tuple(map(int, scipy.__version__.split(".")[:2]))
#: The first release of SciPy without a parameter that was deprecated.
REMOVED = {("linalg.logm", "disp"): (1, 18), ("linalg.sqrtm", "disp"): (1, 18), ("linalg.sqrtm", "blocksize"): (1, 18)}
X = np.random.default_rng(0).normal(size=(3, 5, 4))


def pairs() -> list[tuple[str, Callable[..., Any], Callable[..., Any]]]:
    """Each function of `xp` with that of SciPy, ufuncs and functions of NumPy left out."""
    found = []
    for part in PARTS:
        theirs = importlib.import_module(f"scipy.{part}")
        for name in operator.attrgetter(part)(xp).__all__:
            function, own = getattr(theirs, name, None), operator.attrgetter(f"{part}.{name}")(xp)
            is_numpys = hasattr(getattr(np, part, None), name)
            is_ufunc = inspect.isfunction(function) and "casting" in inspect.signature(function).parameters
            if inspect.isfunction(function) and callable(own) and not is_numpys and not is_ufunc:
                found.append((f"{part}.{name}", own, function))
    return found


def test_signatures_are_scipy_s() -> None:
    assert len(pairs()) > 70
    for name, own, function in pairs():
        ours, theirs = (inspect.signature(each).parameters for each in (own, function))
        # Older releases lack some parameters, and later ones those that were deprecated.
        absent = {parameter for (of, parameter), release in REMOVED.items() if of == name and release <= RELEASE}
        absent |= ours.keys() - theirs.keys() if RELEASE < (1, 17) else set()
        known = [parameter for parameter in ours if parameter not in absent]
        assert known == list(theirs), name
        for parameter in theirs.values():
            mine = ours[parameter.name]
            assert mine.kind is parameter.kind, (name, parameter.name)
            is_marker = type(parameter.default) is object or type(parameter.default).__name__ == "_NoValue"
            assert is_marker or mine.default == parameter.default, (name, parameter.name)


def test_values_that_are_not_implemented_are_refused_by_name() -> None:
    v = X[0, 0]
    for message, call in {
        "upfirdn: mode is 'wrap'": lambda x: xp.signal.upfirdn(v, x, mode="wrap"),
        "filtfilt: method is 'gust'": lambda x: xp.signal.filtfilt([1.0], [1.0, 0.5], x, method="gust"),
        "lu: p_indices is True": lambda x: xp.linalg.lu(np.diag(v), p_indices=True),
        "odeint: full_output is 1": lambda x: xp.integrate.odeint(lambda y, t: y, x, v, full_output=1),
    }.items():
        with pytest.raises(NotImplementedError, match=message):
            ox.grad(lambda x, call=call: xp.sum(call(x)))(v)
    for method, calls in {
        "fft": (lambda **named: xp.signal.convolve(v, v, **named), lambda **named: xp.signal.correlate(v, v, **named)),
        "direct": (lambda **named: xp.linalg.solve_discrete_lyapunov(0.1 * np.eye(2), np.eye(2), **named),),
        "SPS": (lambda **named: xp.linalg.expm_frechet(np.eye(2), np.eye(2), **named),),
    }.items():
        for call in calls:
            np.testing.assert_array_equal(call(method=method), call())
            with pytest.raises(ValueError, match=f"method is 'quick': expected one of .*'{method}'"):
                call(method="quick")
    with pytest.raises(TypeError, match="gaussian_filter: got an unexpected keyword argument 'sigmas'"):
        xp.ndimage.gaussian_filter(X, 1.0, sigmas=1.0)


def called(function: Callable[..., Any], named: dict[str, Any], *args: Any) -> Any:
    return function(*args, **named)


@pytest.mark.skipif(RELEASE < (1, 16), reason="SciPy's filters take axes since 1.16")
@pytest.mark.parametrize("axes", [(0,), (2, 1), (-1, 0), (0, 1, 2)])
def test_filters_along_some_axes(axes: tuple[int, ...]) -> None:
    n, weights = len(axes), np.random.default_rng(1).normal(size=(3,) * len(axes))
    for name, args, named in (
        (
            "gaussian_filter",
            ((0.7, 1.2, 0.5)[:n],),
            {"order": (0, 1, 2)[:n], "mode": ("wrap", "nearest", "mirror")[:n]},
        ),
        ("gaussian_laplace", (0.8,), {"truncate": 2.0}),
        ("gaussian_gradient_magnitude", (0.8,), {"mode": "nearest"}),
        ("laplace", (), {"mode": "constant", "cval": 0.3}),
        ("uniform_filter", ((3, 2, 4)[:n],), {"origin": (1, 0, -1)[:n]}),
        ("correlate", (weights,), {"mode": "wrap", "origin": (1, 0, -1)[:n]}),
        ("convolve", (weights,), {"mode": "nearest"}),
    ):
        ours, theirs = (
            functools.partial(called, getattr(m.ndimage, name), {**named, "axes": axes}) for m in (xp, scipy)
        )
        np.testing.assert_allclose(ours(X, *args), theirs(X, *args), rtol=1e-10, atol=1e-12, err_msg=name)
        differentiated = (X, *args) if name in ("correlate", "convolve") else (X,)
        check_grads(lambda *given, ours=ours, args=args: ours(*given, *args[len(given) - 1 :]), differentiated, order=1)


@pytest.mark.parametrize("axes", [(1, 0), (2, 0), (1, 2)])
def test_an_array_is_rotated_in_the_plane_of_two_axes(axes: tuple[int, int]) -> None:
    for named in ({"mode": "mirror"}, {"mode": "constant", "cval": 0.3, "reshape": False}):
        ours, theirs = (m.ndimage.rotate(X, 31.7, axes=axes, **named) for m in (xp, scipy))
        np.testing.assert_allclose(ours, theirs, rtol=1e-9, atol=1e-11)
    check_grads(lambda x, angle: xp.ndimage.rotate(x, angle, axes, False, mode="mirror"), (X, 31.7), order=1)


def test_output_is_a_dtype_or_an_array() -> None:
    x = X[0]
    for output in (np.float32, "float32"):
        found = ox.vjp(lambda x, output=output: xp.ndimage.gaussian_filter(x, 1.0, output=output), x)[0]
        assert found.dtype == np.float32
        np.testing.assert_allclose(found, scipy.ndimage.gaussian_filter(x, 1.0, output=output), rtol=1e-5)
    out = np.zeros_like(x)
    assert xp.ndimage.sobel(x, output=out) is out
    np.testing.assert_array_equal(out, scipy.ndimage.sobel(x))
    with pytest.raises(ox.DerivativeError, match="sobel with out="):
        ox.grad(lambda x: xp.sum(xp.ndimage.sobel(x, output=out)))(x)


def test_further_parameters_are_honoured() -> None:
    a, b = X[0, :4] + 4.0 * np.eye(4), X[1, :4]
    z = a + 1j * b
    for name, call in {
        "trans": lambda m, a, b: m.linalg.solve_triangular(a, b, 1, True),
        "conjugate": lambda m, a, b: m.linalg.solve_triangular(a + 1j * b, b, trans="C", check_finite=False),
        "permute_l": lambda m, a, b: m.linalg.lu(a[::-1], permute_l=True)[0],
        "compute_expm": lambda m, a, b: m.linalg.expm_frechet(a, b, compute_expm=False),
        "N": lambda m, a, b: m.signal.hilbert(b, 6, axis=1),
        "shorter": lambda m, a, b: m.signal.hilbert(b, N=3),
        "keywords": lambda m, a, b: m.special.logsumexp(a=b, axis=0),
        "method": lambda m, a, b: m.signal.convolve(in1=a, in2=b, method="direct"),
        "by position": lambda m, a, b: m.signal.savgol_filter(b, 3, 1, 1, 0.5, 0),
        "polygamma": lambda m, a, b: m.special.polygamma(n=1, x=b * b + 1.0),
    }.items():
        np.testing.assert_allclose(call(xp, a, b), call(scipy, a, b), rtol=1e-9, atol=1e-12, err_msg=name)
        check_grads(lambda a, b, call=call: call(xp, a, b), (a, b), order=1)
    assert z.shape == (4, 4)
    assert xp.special.zeta(3.0) == scipy.special.zeta(3.0)
    check_grads(xp.special.zeta, (np.array([3.0, 1.4, -2.3]),), order=2)
    times = np.linspace(0.0, 1.0, 4)
    decay = xp.integrate.odeint(lambda t, y: -y, 1.0, times, tfirst=True, rtol=1e-10)
    np.testing.assert_allclose(decay, np.exp(-times), rtol=1e-7)


# --- orders that SciPy rounds --------------------------------------------------------------------------------------------

# Arguments with a fraction in each order or count, and the positions of those.
ROUNDED = {
    "expn": ((1.45, 0.8), (0,)),
    "kn": ((2.45, 0.8), (0,)),
    "yn": ((1.63, 2.8), (0,)),
    "bdtr": ((1.63, 3.7, 0.37), (0, 1)),
    "bdtrc": ((1.63, 3.7, 0.37), (0, 1)),
    "bdtri": ((1.63, 3.7, 0.37), (0, 1)),
    "nbdtr": ((2.45, 2.7, 0.37), (0, 1)),
    "nbdtrc": ((2.45, 2.7, 0.37), (0, 1)),
    "pdtr": ((1.63, 0.9), (0,)),
    "pdtrc": ((1.63, 0.9), (0,)),
    "pdtri": ((1.63, 0.37), (0,)),
}


@pytest.mark.filterwarnings("ignore:.*truncated", "ignore:non-integer")
@pytest.mark.parametrize("name", ROUNDED)
def test_an_order_that_scipy_rounds_is_rounded_in_derivatives_too(name: str) -> None:
    args, orders = ROUNDED[name]
    f, theirs = getattr(xp.special, name), getattr(scipy.special, name)
    for shift in (0.0, -1.0, 1.0):
        shifted = tuple(x + shift if at in orders else x for at, x in enumerate(args))
        if not np.isfinite(theirs(*shifted)):
            continue
        np.testing.assert_allclose(f(*shifted), theirs(*shifted), rtol=1e-12)
        *whole, x = shifted
        check_grads(lambda x, whole=whole: f(*whole, x), (x,))
        np.testing.assert_allclose(f(*shifted[:-1], np.full(2, x)), theirs(*shifted[:-1], np.full(2, x)), rtol=1e-12)
    for at in orders:
        refused = pytest.raises(ox.DerivativeError, match=name) if name not in ("pdtr", "pdtrc") else nullcontext()
        with refused:
            assert ox.grad(f, argnums=at)(*args) == 0.0


def test_jn_takes_real_orders() -> None:
    np.testing.assert_allclose(xp.special.jn(1.45, 0.8), scipy.special.jn(1.45, 0.8), rtol=1e-13)
    check_grads(lambda x: xp.special.jn(1.45, x), (0.8,))
