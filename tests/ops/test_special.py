"""Special functions under SciPy's names: values against SciPy's, derivatives of both orders, and calls of SciPy's ufuncs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import oxigrad as ox
from libraries import host
from oxigrad import xp
from oxigrad.ops.backends import on_host
from oxigrad.testing import check_grads

scipy = pytest.importorskip("scipy")
ufuncs = scipy.special._ufuncs

X = np.array([-1.3, 0.4, 2.2])
P = np.array([0.3, 0.9, 2.4])
Q = np.array([1.7, 0.6, 1.1])
F = np.array([0.15, 0.5, 0.85])
N = np.array([0, 1, 3])
# Within the series near zero or one, and beyond.
SMALL = np.array([-0.3, 0.0, 0.01, 0.7])

# The arguments of each function; those that are integers are constants.
CASES: dict[str, tuple[Any, ...]] = {
    **dict.fromkeys("erf erfc erfcx erfi dawsn ndtr expit log_expit exp2 exp10 expm1 exprel cosm1".split(), (X,)),
    **dict.fromkeys("cbrt log1p gamma gammaln loggamma psi rgamma entr expi exp1 i0 i1 j0 j1 y0 y1".split(), (P,)),
    **dict.fromkeys("k0 k1 k0e k1e ber bei ker kei berp beip kerp keip wrightomega".split(), (P,)),
    **dict.fromkeys("sindg cosdg tandg cotdg i0e i1e fresnel airy".split(), (X,)),
    **dict.fromkeys("erfinv erfcinv logit ndtri ellipk ellipe ellipkm1".split(), (F,)),
    **dict.fromkeys("beta betaln xlogy xlog1py rel_entr kl_div poch agm powm1".split(), (P, Q)),
    **dict.fromkeys("iv jv yv jve yve ive kv kve kn struve modstruve expn yn".split(), (2, P)),
    **{f"{name}-real": (np.array([0.5, 1.3, 2.6]), P) for name in "iv jv yv ive kv kve struve".split()},
    **{name: (X, np.array([0.4, -0.7, 0.0])) for name in "boxcox1p inv_boxcox1p".split()},
    "log_ndtr": (np.array([-30.0, -1.0, 4.0]),),
    "ndtri_exp": (np.array([-40.0, -1.5, -0.1]),),
    "owens_t": (X, P),
    "voigt_profile": (X, P, Q),
    "sici": (np.array([0.1, 0.7, 3.0]),),
    "shichi": (np.array([0.1, 0.7, 3.0]),),
    "spence": (np.array([0.2, 0.99, 1.0, 1.02, 3.0]),),
    "expn-orders": (N, P),
    "zeta": (3.0, P),
    "binom": (np.array([5.5, 3.2, 4.1]), Q),
    "gammainc": (2.5, P),
    "gammaincc": (2.5, P),
    "gammaincinv": (2.5, F),
    "gammainccinv": (2.5, F),
    "betainc": (2.5, 0.7, F),
    "betaincc": (2.5, 0.7, F),
    "betaincinv": (2.5, 0.7, F),
    "betainccinv": (2.5, 0.7, F),
    "ellipk-zero": (SMALL,),
    "ellipe-zero": (SMALL,),
    "ellipkm1-one": (np.array([0.01, 0.3, 0.95, 1.0, 1.2]),),
    "ellipkinc": (X[:, None], SMALL * 0.5),
    "ellipeinc": (X[:, None], SMALL * 0.5),
    "hyp0f1": (1.5, X),
    "hyp1f1": (1.5, 2.5, X),
    "hyperu": (1.5, 2.5, P),
    "hyp2f1": (1.5, 2.5, 0.7, F),
    "bdtr": (np.array([1.0, 2.0, 3.0]), 5, F),
    "bdtrc": (np.array([1.0, 2.0, 3.0]), 5, F),
    "bdtri": (np.array([1.0, 2.0, 3.0]), 5, F),
    "nbdtr": (2, 5, F),
    "nbdtrc": (2, 5, F),
    "chdtr": (3.5, P),
    "chdtrc": (3.5, P),
    "chdtri": (3.5, F),
    "gdtr": (Q, 2.5, P),
    "gdtrc": (Q, 2.5, P),
    "pdtr": (N, P),
    "pdtrc": (N, P),
    "pdtri": (2, F),
    "stdtr": (3.5, X),
    "stdtrit": (3.5, F),
    "fdtr": (3.5, 2.5, P),
    "fdtrc": (3.5, 2.5, P),
    "fdtri": (3.5, 2.5, F),
    **{f"eval_{name}": (N, F) for name in "legendre chebyt chebyu hermite hermitenorm laguerre".split()},
    "eval_jacobi": (N, 0.5, 1.5, F),
    "eval_gegenbauer": (N, 0.5, F),
    "eval_genlaguerre": (N, 0.5, F),
    "huber": (1.0, np.array([-2.0, -0.3, 0.9, 1.4])),
    "huber-delta": (np.array([0.5, 1.0, 2.0]), X),
    "pseudo_huber": (P, X),
    "boxcox": (P, np.array([0.4, -0.7, 0.0])),
    "inv_boxcox": (P, np.array([0.2, -0.1, 0.0])),
    "boxcox1p": (P, np.array([0.4, -0.7, 0.0])),
    "inv_boxcox1p": (P, np.array([0.2, -0.1, 0.0])),
    "radian": (X, P, Q),
}
# Parameters given as numbers that have no derivative: those with one are differentiated as well.
SHAPES = {"gammainc": 0, "gammaincc": 0, "gammaincinv": 0, "gammainccinv": 0, "chdtr": 0, "chdtrc": 0, "chdtri": 0}


def of_smooth(name: str, function: Any) -> tuple[Any, tuple[Any, ...]]:
    """The function of those of its arguments that are arrays of floats, and these."""
    args = CASES[name]
    is_order = name.endswith("-real")
    places = [
        at
        for at, arg in enumerate(args)
        if isinstance(arg, np.ndarray) and arg.dtype == np.float64 and not (is_order and at == 0)
    ]
    places = [at for at in places if not (name.startswith("bdtr") and at == 0) and not (name[:4] == "gdtr" and at == 1)]

    def of(*values: Any) -> Any:
        whole = list(args)
        for at, value in zip(places, values, strict=True):
            whole[at] = value
        return function(*whole)

    return of, tuple(args[at] for at in places)


@pytest.mark.parametrize("name", CASES)
def test_values_are_scipy_s(name: str) -> None:
    ours, theirs = getattr(xp.special, name.split("-")[0]), getattr(scipy.special, name.split("-")[0])
    expected, found = theirs(*CASES[name]), ours(*CASES[name])
    np.testing.assert_allclose(found, expected, rtol=2e-13, atol=1e-15)
    first = [arg.flat[0].item() if isinstance(arg, np.ndarray) else arg for arg in CASES[name]]
    number = ours(*first)
    assert {type(each) for each in (number if isinstance(number, tuple) else (number,))} == {float}


@pytest.mark.parametrize("name", CASES)
def test_derivatives_of_both_orders(name: str) -> None:
    function, args = of_smooth(name, getattr(xp.special, name.split("-")[0]))
    check_grads(function, args, order=2)


@pytest.mark.parametrize("name", sorted({name.split("-")[0] for name in CASES} - {"zeta"}))
def test_ufuncs_of_scipy_take_variables(name: str) -> None:
    theirs, args = of_smooth(name, getattr(ufuncs, name))
    ours, _ = of_smooth(name, getattr(xp.special, name))
    assert isinstance(getattr(ufuncs, name), np.ufunc)
    every = tuple(range(len(args)))
    summed = [lambda *args, f=f: xp.sum(xp.stack(ox.tree.leaves(f(*args)))) for f in (theirs, ours)]
    found, expected = (ox.grad(f, every)(*args) for f in summed)
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_array_equal(one, other)


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


@pytest.mark.parametrize(
    ("name", "args", "what"),
    [
        ("jv", (1.5, 2.0), "its order"),
        ("expn", (2.0, 2.0), "its integer order"),
        ("zeta", (2.0, 2.0), "its exponent x"),
        ("betaincinv", (2.0, 2.0, 0.5), "its parameter a"),
        ("stdtr", (2.0, 2.0), "its parameter df"),
        ("bdtr", (2.0, 5, 0.5), "its count k"),
        ("eval_legendre", (2.0, 0.5), "its integer order"),
    ],
)
def test_parameters_without_a_derivative_are_refused_by_name(name: str, args: tuple[Any, ...], what: str) -> None:
    message = f"{name} is not differentiable with respect to {what}"
    with pytest.raises(ox.DerivativeError, match=message):
        ox.grad(getattr(xp.special, name))(*args)


def test_functions_without_a_derivative_are_refused() -> None:
    with pytest.raises(ox.DerivativeError, match=r"kolmogorov has no derivative"):
        ox.grad(scipy.special.kolmogorov)(1.0)
    with pytest.raises(TypeError, match="^erfcx: found 2 arguments, expected 1: x"):
        xp.special.erfcx(1.0, 2.0)
    with pytest.raises(AttributeError, match=r"no function 'erfz'"):
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
    if not on_host(there[0]) and name != "boxcox":  # which is composed of the core's functions
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
