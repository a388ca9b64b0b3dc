"""Special functions under SciPy's names: values against SciPy's, refusals, dtypes; `forms_scipy` has their derivatives."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from mpmath import mp

import oxigrad as ox
from cases_special import CASES, SHAPES, F, P, X, of_smooth
from libraries import host
from oxigrad import xp
from oxigrad.ops.backends import adapter_of, on_host
from oxigrad.testing import check_grads

scipy = pytest.importorskip("scipy")
ufuncs = scipy.special._ufuncs


@pytest.mark.parametrize("name", CASES)
def test_values_are_scipy_s(name: str) -> None:
    ours, theirs = getattr(xp.special, name.split("-")[0]), getattr(scipy.special, name.split("-")[0])
    expected, found = theirs(*CASES[name]), ours(*CASES[name])
    np.testing.assert_allclose(found, expected, rtol=2e-13, atol=1e-15)
    first = [arg.flat[0].item() if isinstance(arg, np.ndarray) else arg for arg in CASES[name]]
    number = ours(*first)
    assert {type(each) for each in (number if isinstance(number, tuple) else (number,))} == {float}


def test_at_least_sixty_ufuncs_have_a_derivative() -> None:
    names = [name for name in xp.special.__all__ if isinstance(getattr(ufuncs, name, None), np.ufunc)]
    assert len(names) >= 120
    tested = {name.split("-")[0] for name in CASES}
    elsewhere = {"jn", "gammasgn", "wofz"}  # below, or in the table of cases
    assert set(names) - tested == elsewhere
    assert tested <= set(xp.special.__all__)


def test_shape_parameters_with_a_derivative() -> None:
    for name in SHAPES:
        check_grads(lambda a, name=name: getattr(xp.special, name)(a, 0.4), (np.array([0.7, 2.5]),), order=1)


def _student(df: Any, t: Any) -> Any:
    return mp.mpf(1) / 2 + mp.sign(t) * mp.betainc(0.5, df / 2, 0, t * t / (df + t * t), regularized=True) / 2


def _fisher(dfn: Any, dfd: Any, x: Any) -> Any:
    return mp.betainc(dfn / 2, dfd / 2, 0, dfn * x / (dfn * x + dfd), regularized=True)


@pytest.mark.parametrize(
    ("f", "args"),
    [
        *((_student, (df, t)) for df in (0.7, 3.5, 30.0) for t in (-8.0, -0.4, 1e-4, 2.0)),
        *((_fisher, (dfn, dfd, x)) for dfn, dfd in ((0.8, 2.5), (6.0, 9.0)) for x in (0.05, 0.9, 12.0)),
    ],
)
def test_degrees_of_freedom_have_a_derivative(f: Any, args: tuple[float, ...]) -> None:
    functions: Any = (
        (xp.special.stdtr, xp.special.stdtrit, xp.stats.t)
        if f is _student
        else (xp.special.fdtr, xp.special.fdtri, xp.stats.f)
    )
    forward, inverse, distribution = functions
    with mp.workdps(40):
        exact = [mp.mpf(arg) for arg in args]
        *slopes, density = (
            mp.diff(lambda v, at=at: f(*exact[:at], v, *exact[at + 1 :]), exact[at]) for at in range(len(args))
        )
        probability = float(f(*exact))
        expected, of_inverse = [float(slope) for slope in slopes], [float(-slope / density) for slope in slopes]
    shapes, x = args[:-1], args[-1]
    by_shapes = tuple(range(len(shapes)))
    np.testing.assert_allclose(ox.grad(forward, by_shapes)(*args), expected, rtol=1e-11)
    np.testing.assert_allclose(ox.grad(inverse, by_shapes)(*shapes, probability), of_inverse, rtol=1e-9)
    of_distribution = ox.grad(lambda *shapes: distribution.cdf(x, *shapes), by_shapes)
    np.testing.assert_allclose(of_distribution(*shapes), expected, rtol=1e-11, atol=1e-15)
    quantile = ox.grad(lambda *shapes: distribution.ppf(probability, *shapes), by_shapes)
    np.testing.assert_allclose(quantile(*shapes), of_inverse, rtol=1e-9)


@pytest.mark.parametrize(
    ("name", "args", "what"),
    [
        ("jv", (1.5, 2.0), "its order"),
        ("expn", (2.0, 2.0), "its integer order"),
        ("bdtr", (2.0, 5, 0.5), "its count k"),
        ("eval_legendre", (2.0, 0.5), "its integer order"),
    ],
)
def test_parameters_without_a_derivative_are_refused_by_name(name: str, args: tuple[Any, ...], what: str) -> None:
    message = f"{name} is not differentiable with respect to {what}"
    with pytest.raises(ox.DerivativeError, match=message):
        ox.grad(getattr(xp.special, name))(*args)


def test_functions_without_a_derivative_are_refused() -> None:
    with pytest.raises(ox.DerivativeError, match=r"^scipy\.special\.kolmogorov has no derivative"):
        ox.grad(scipy.special.kolmogorov)(1.0)
    with pytest.raises(TypeError, match="^erfcx: found 2 arguments, expected 1: x"):
        xp.special.erfcx(1.0, 2.0)
    with pytest.raises(AttributeError, match=r"no attribute 'erfz' \(did you mean erf\?\)"):
        xp.special.erfz  # noqa: B018


def test_complex_arguments() -> None:
    z = np.array([0.3 + 0.4j, -1.0 + 0.2j])
    for name in "wofz erfcx dawsn expi exp1 spence".split():
        check_grads(getattr(xp.special, name), (z,), order=1)
    for k in (0, -1):
        np.testing.assert_allclose(xp.special.lambertw(z, k), scipy.special.lambertw(z, k))
        check_grads(lambda z, k=k: xp.special.lambertw(z, k), (z,), order=2)
    check_grads(lambda x: xp.real(xp.special.wofz(x)), (X,), order=2)
    with pytest.raises(ox.DerivativeError, match="with respect to a complex argument"):
        ox.vjp(lambda z: xp.special.jve(1, z), z)[1](z)


def test_ops_of_the_core_take_complex_numbers_where_scipy_does_or_refuse_them() -> None:
    strict = pytest.importorskip("array_api_strict")
    z = np.array([0.3 + 0.4j, -1.2 + 0.7j])
    for name in "erf erfc gamma digamma psi loggamma rgamma".split():
        ours, theirs = getattr(xp.special, name), getattr(scipy.special, name)
        np.testing.assert_allclose(ours(z), theirs(z), rtol=1e-14)
        np.testing.assert_allclose(ours(complex(z[0])), theirs(z[0]), rtol=1e-14)
        np.testing.assert_allclose(np.asarray(ours(strict.asarray(z))), theirs(z), rtol=1e-14)
        if name not in ("digamma", "psi"):
            check_grads(ours, (z,), order=1)
    check_grads(xp.special.erf, (z,), order=2)
    check_grads(lambda x: xp.real(xp.special.erf(x * (0.5 + 0.5j))), (X,), order=2)
    for name in "erfinv erfcinv expit gammaln i0 i1 j0 j1 y0 y1".split():
        with pytest.raises(ox.DtypeError, match="found dtype complex128, expected a real floating dtype"):
            getattr(xp.special, name)(z)
        with pytest.raises(ox.DtypeError, match="found dtype complex128"):
            ox.jvp(getattr(xp.special, name), (z,), (z,))
    with pytest.raises(ox.DtypeError, match="polygamma: found dtype complex128"):
        ox.jvp(xp.special.digamma, (z,), (z,))


def test_the_sign_of_logsumexp() -> None:
    x, b = np.array([[1000.0, 1001.0], [1.0, 2.0]]), np.array([1.0, -1.0])
    expected = scipy.special.logsumexp(x, axis=1, b=b, return_sign=True)
    for part, other in zip(xp.special.logsumexp(x, axis=1, b=b, return_sign=True), expected, strict=True):
        np.testing.assert_allclose(part, other)
    np.testing.assert_array_equal(
        ox.grad(lambda x: xp.special.logsumexp(x, b=b)[()])(np.array([2.0, 2.0 - 1e3])), [1.0, 0.0]
    )


def test_piecewise_constant_and_infinite_values() -> None:
    np.testing.assert_array_equal(xp.special.gammasgn(X), scipy.special.gammasgn(X))
    assert ox.grad(lambda x: x * xp.special.gammasgn(x))(2.0) == 1.0
    for name, args in {
        "huber": (-1.0, 2.0),
        "pseudo_huber": (np.array([0.0, -1.0]), 2.0),
        "kl_div": (0.0, 2.0),
        "boxcox": (0.0, np.array([0.5, -0.5, 0.0])),
        "boxcox1p": (-1.0, np.array([0.5, -0.5, 0.0])),
    }.items():
        expected = getattr(scipy.special, name)(*args)
        np.testing.assert_array_equal(getattr(xp.special, name)(*args), expected)


INFINITE = {
    **dict.fromkeys(("expi", "exp1", "sici", "shichi"), (0.0,)),
    **dict.fromkeys(("zeta", "zetac"), (1.0,)),
    **dict.fromkeys(("kerp", "y1"), (0.0,)),
    "expn": (0.0, 0.0),
    "gammaincinv": (0.5, 1.0),
    "betaincinv": (1.0, 2.0, 1.0),
    "betainccinv": (1.0, 2.0, 0.0),
    "voigt_profile": (0.0, 0.0, 0.0),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", INFINITE)
def test_derivatives_at_numbers_are_those_at_arrays(name: str) -> None:
    """A quotient by zero of Python's numbers raises."""
    last = len(INFINITE[name]) - 1

    def f(*args: Any) -> Any:
        y = getattr(xp.special, name)(*args)
        return sum(map(xp.sum, y), start=0.0) if isinstance(y, tuple) else xp.sum(y)

    arrays = [np.array([each]) for each in INFINITE[name]]
    expected = ox.grad(f, last)(*arrays)[0]
    gradient = ox.grad(f, last)(*INFINITE[name])
    assert type(gradient) is float
    np.testing.assert_array_equal(gradient, expected)
    of_last = lambda x: f(*INFINITE[name][:-1], x)  # noqa: E731
    np.testing.assert_array_equal(ox.jvp(of_last, INFINITE[name][-1:], (1.0,))[1], expected)
    second = ox.grad(lambda x: xp.sum(ox.grad(lambda x: f(*arrays[:-1], x))(x)))(arrays[-1])[0]
    found = ox.grad(ox.grad(of_last))(INFINITE[name][-1])
    np.testing.assert_array_equal(found, second)


def test_dtypes_and_broadcasting() -> None:
    x, v = P.astype(np.float32), np.array([[1.0], [2.0]], np.float32)
    y, pull = ox.vjp(lambda x: xp.special.kv(v, x), x)
    assert (y.shape, y.dtype) == ((2, 3), np.float32)
    assert pull(np.ones_like(y))[0].dtype == np.float32
    assert xp.special.erfcx([0.5, 1.0]).shape == (2,)
    gradient = ox.grad(lambda x: xp.sum(scipy.special.kv(2, x)))(np.array(1.5))
    assert (gradient.shape, gradient.dtype) == ((), np.float64)


@pytest.mark.parametrize("name", ["erfcx", "log_ndtr", "kv", "ellipk", "voigt_profile", "boxcox", "i0e"])
def test_arrays_of_every_library(name: str, arrays: Any) -> None:
    if arrays.name == "tiny":
        pytest.skip("it answers to any name")
    function, args = of_smooth(name, getattr(xp.special, name))
    every, there = tuple(range(len(args))), list(map(arrays.asarray, args))
    has_function = adapter_of(there[0]).special(name) is not None  # as PyTorch and CuPy have some, on any device
    if not on_host(there[0]) and name != "boxcox" and not has_function:  # which is composed of the core's functions
        with pytest.raises(NotImplementedError, match=f"has no function {name}, and its array cannot be read in host"):
            function(*there)
        return
    found = ox.grad(lambda *args: xp.sum(function(*args)), every)(*there)
    for one, other in zip(found, ox.grad(lambda *args: xp.sum(function(*args)), every)(*args), strict=True):
        np.testing.assert_allclose(host(one), other, rtol=1e-10)


def test_traced_arrays_need_a_function_of_their_library(library: Any) -> None:
    jax = library("jax")
    with jax.enable_x64(True):
        x = jax.numpy.asarray(F)
        found = jax.jit(ox.grad(lambda x: xp.sum(xp.special.ndtri(x))))(x)
        np.testing.assert_allclose(found, ox.grad(lambda x: xp.sum(xp.special.ndtri(x)))(F), rtol=1e-12)
        with pytest.raises(NotImplementedError, match=r"jax.* has no function struve, and its array cannot be read"):
            jax.jit(lambda x: xp.special.struve(0, x))(x)


def test_combinatorial_functions_are_scipy_s() -> None:
    n, k = np.array([5.0, 5.5, 2.0, -1.0, 0.0]), np.array([2.0, 2.2, 3.0, 1.0, 0.0])
    for name in ("comb", "perm"):
        ours, theirs = getattr(xp.special, name), getattr(scipy.special, name)
        np.testing.assert_allclose(ours(n, k), theirs(n, k), rtol=1e-13)
        assert ours(30, 15, exact=True) == theirs(30, 15, exact=True)
        check_grads(ours, (np.array([5.3, 7.0]), np.array([2.2, 3.0])), order=2)
        assert ox.grad(ours)(2.0, 3.0) == ox.grad(ours)(-1.0, 1.0) == 0.0
        with pytest.raises(ox.DerivativeError, match=f"^{name} is not differentiable with exact=True"):
            ox.grad(lambda n, ours=ours: ours(n, 2, exact=True))(5.0)
        with pytest.raises(ValueError, match="Non-integer"):
            ours(5.5, 2, exact=True)
    np.testing.assert_allclose(xp.special.comb(n, k, repetition=True), scipy.special.comb(n, k, repetition=True))
    np.testing.assert_allclose(xp.special.factorial(n), scipy.special.factorial(n), rtol=1e-13)
    assert xp.special.factorial(25, exact=True) == math.factorial(25)
    assert ox.grad(xp.special.factorial)(-2.0) == 0.0
    with pytest.raises(NotImplementedError, match="^factorial: extend is 'complex'"):
        xp.special.factorial(2.0, extend="complex")
