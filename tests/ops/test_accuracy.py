"""Elementwise functions against mpmath at 300 bits: random points, next to roots and poles, and at the edges of the domain.

The bounds are in units in the last place of the result (0.5 is the best there is). Where a function has roots that it is not
meant to resolve (Bessel functions), the unit is that of its envelope.
"""

import math
import warnings
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import mpmath
import numpy as np
import pytest
import scipy.special

import oxigrad as ox
from oxigrad import xp

special = xp.special
POINTS = 100


class Row(NamedTuple):
    """A function, the same by mpmath, its bound, and where its arguments are drawn from."""

    name: str
    ours: Callable[..., Any]
    theirs: Callable[..., Any]
    bound: float
    arguments: tuple[Callable[[np.random.Generator], float], ...]
    points: tuple[Any, ...] = ()
    # The precision of the terms that cancel next to a root.
    absolute: float = 0.0
    # The units in the last place by which NumPy's result for an array may differ; none where the core computes both.
    of_arrays: float = 4.0


def uniform(low: float, high: float) -> Callable[[np.random.Generator], float]:
    return lambda random: random.uniform(low, high)


def magnitudes(low: float, high: float) -> Callable[[np.random.Generator], float]:
    """Numbers of evenly distributed exponents."""
    return lambda random: float(10.0 ** random.uniform(np.log10(low), np.log10(high)))


def signed(draw: Callable[[np.random.Generator], float]) -> Callable[[np.random.Generator], float]:
    return lambda random: float(random.choice([-1.0, 1.0])) * draw(random)


def near(*centers: float) -> tuple[float, ...]:
    """Each number and those next to it, from one unit in the last place away to a thousandth."""
    found = []
    for center in centers:
        for distance in (0.0, 2e-16, 1e-13, 1e-9, 1e-6, 1e-3):
            size = max(abs(center), 1.0) * distance
            found += [math.nextafter(center, -math.inf) - size, center, math.nextafter(center, math.inf) + size]
    return tuple(found)


def _real_root(f: Callable[[Any], Any], low: float, high: float) -> float:
    with mpmath.workprec(120):
        return float(mpmath.findroot(f, (low, high), solver="anderson"))


def _gammaln(x: Any) -> Any:
    return mpmath.log(abs(mpmath.gamma(x)))


DIGAMMA_ROOTS = [_real_root(mpmath.digamma, 1.4, 1.5)] + [
    _real_root(mpmath.digamma, -k - 0.9999, -k - 0.0001) for k in (0, 1, 2, 5, 10, 33)
]
GAMMALN_ROOTS = [
    _real_root(_gammaln, *bracket) for bracket in ((-2.7, -2.3), (-2.9, -2.72), (-3.2, -3.1), (-4.1, -4.01))
]
# The largest number, and those nearest to a multiple of pi/2: a reduced argument of which 61 bits are zeros.
FAR_FROM_ZERO = (
    1.7976931348623157e308,
    6381956970095103.0 * 2.0**797,
    -6381956970095103.0 * 2.0**797,
    5.319372648326541e255,
)
SUBNORMALS = (5e-324, 1e-320, 2.2e-308, 1e-300)


def _logaddexp(base: Any, a: Any, b: Any) -> Any:
    return mpmath.log(base**a + base**b) / mpmath.log(base)


def _roots_of_sum(base: float) -> tuple[tuple[float, float], ...]:
    """Pairs whose powers add up to nearly one."""
    firsts = (-1.0, -0.7, -0.3, -1e-3, -1e-9)
    return tuple((a, math.log1p(-(base**a)) / math.log(base)) for a in firsts)


def _near_root(a: Any, distance: Any) -> float:
    """The number whose power and that of `a` add up to one, and a distance from it."""
    a, distance = (float(np.asarray(x).item()) for x in (a, distance))
    return math.log(-math.expm1(a)) + distance


ROWS = [
    Row("digamma", special.digamma, mpmath.digamma, 4.0, (magnitudes(1e-300, 1e300),), SUBNORMALS[2:]),
    Row("digamma-moderate", special.digamma, mpmath.digamma, 4.0, (uniform(0.0, 20.0),), near(*DIGAMMA_ROOTS, 1.0, 2.0, 8.0), 2.0**-96),
    Row("digamma-negative", special.digamma, mpmath.digamma, 4.0, (uniform(-60.0, 0.0),), near(-0.5, -1e4 - 0.5)),
    Row("gamma", special.gamma, mpmath.gamma, 4.0, (uniform(0.0, 171.6),), near(0.5, 1.0, 2.0, 23.5, 24.0, 171.5)),
    Row("gamma-negative", special.gamma, mpmath.gamma, 4.0, (uniform(-170.0, 0.0),), near(-0.5, -1.5, -23.5, -24.5)),
    Row("gamma-small", special.gamma, mpmath.gamma, 4.0, (signed(magnitudes(1e-307, 1.0)),)),
    Row("gammaln", special.gammaln, _gammaln, 4.0, (magnitudes(1e-300, 1e5),), near(0.5, 1.5, 2.5)),
    Row("gammaln-negative", special.gammaln, _gammaln, 4.0, (uniform(-60.0, 0.0),), near(*GAMMALN_ROOTS), 2.0**-96),
    Row("rgamma", special.rgamma, mpmath.rgamma, 4.0, (uniform(-20.0, 170.0),)),
    Row("beta", special.beta, mpmath.beta, 4.0, (magnitudes(1e-3, 300.0),) * 2, ((1e-3, 1e-3), (0.5, 200.0))),
    Row("betaln", special.betaln, lambda a, b: mpmath.log(mpmath.beta(a, b)), 4.0, (magnitudes(1e-3, 1e6),) * 2,
        ((1e16, 0.5), (1e20, 3.0), (1e100, 0.25), (1e18, 1e9))),
    Row("logaddexp", xp.logaddexp, lambda a, b: _logaddexp(mpmath.e, a, b), 4.0, (uniform(-3.0, 3.0),) * 2,
        _roots_of_sum(math.e), of_arrays=0.0),
    Row("logaddexp2", xp.logaddexp2, lambda a, b: _logaddexp(mpmath.mpf(2), a, b), 4.0, (uniform(-3.0, 3.0),) * 2,
        _roots_of_sum(2.0)),
    Row("logaddexp-wide", xp.logaddexp, lambda a, b: max(a, b) + mpmath.log1p(mpmath.exp(-abs(a - b))), 1.0, (uniform(-3.0, 700.0),) * 2,
        ((0.0, -745.1), (-745.1, 0.0), (1e-300, -700.0), (-1e300, 1e300), (0.0, -708.4), (5.0, 5.0)), of_arrays=0.0),
    Row("logaddexp-near-root", lambda a, d: xp.logaddexp(a, _near_root(a, d)),
        lambda a, d: _logaddexp(mpmath.e, a, mpmath.mpf(_near_root(a, d))), 4.0,
        (lambda random: -magnitudes(1e-6, 0.6)(random), signed(magnitudes(1e-6, 0.5))), of_arrays=0.0),
    Row("softplus", special.softplus, lambda x: mpmath.log1p(mpmath.exp(x)), 1.0, (uniform(-740.0, 40.0),),
        (*near(0.0, -0.88, 1.0), -745.1, 1e300), of_arrays=0.0),
    Row("pow", xp.pow, mpmath.power, 0.6, (magnitudes(1e-3, 1e3), uniform(-100.0, 100.0)),
        ((0.999, 12345.0), (0.9, 1e3), (3.0, 30.0), (7.0, -1.0), (2.0, 0.5))),
    Row("pow-wide", xp.pow, mpmath.power, 0.6, (magnitudes(1e-307, 1e307), uniform(-1.0, 1.0))),
    Row("exp2", xp.exp2, lambda x: mpmath.power(2, x), 0.8, (uniform(-1022.0, 1024.0),),
        (*near(0.0, 0.5, 1.0), -1074.0, -1074.9, 1023.5, 1e300, -1e300), of_arrays=0.0),
    Row("pow-of-number", lambda x: xp.pow(0.7, x), lambda x: mpmath.power(mpmath.mpf(0.7), x), 0.8, (uniform(-1980.0, 1990.0),),
        (2.0, 3.0, 2000.5, 1e-300), of_arrays=0.0),
    Row("pow-large", lambda x, y: xp.pow(x, y / np.log(x)), lambda x, y: mpmath.power(x, mpmath.mpf(float(y) / np.log(float(x)))),
        0.8, (magnitudes(1e-307, 1e307), uniform(-707.0, 709.0)), ((1.0 + 2.0**-52, 700.0), (1.0 - 2.0**-53, -700.0))),
    Row("pow-subnormal", xp.pow, mpmath.power, 0.8, (uniform(9.9, 10.1), uniform(-321.0, -308.5)),
        ((2.0, -1074.0), (10.0, -323.0), (5e-324, 0.999), (1e-320, 0.97))),
    Row("cbrt", xp.cbrt, lambda x: mpmath.sign(x) * mpmath.cbrt(abs(x)), 0.51, (signed(magnitudes(1e-307, 1e307)),),
        (*SUBNORMALS, *(-x for x in SUBNORMALS), 1.0, 8.0, 1e-3, 1.7e308)),
    Row("log2", xp.log2, lambda x: mpmath.log(x, 2), 0.7, (magnitudes(1e-307, 1e307),), (*SUBNORMALS, *near(1.0, 2.0)), of_arrays=0.0),
    Row("log10", xp.log10, mpmath.log10, 0.51, (magnitudes(1e-307, 1e307),), (*SUBNORMALS, *near(1.0, 10.0))),
    Row("sinh", xp.sinh, mpmath.sinh, 0.7, (uniform(-3.0, 3.0),), (*SUBNORMALS, *near(0.3465, 1.0), -710.4, 18.4, 37.0), of_arrays=0.0),
    Row("sinh-wide", xp.sinh, mpmath.sinh, 0.7, (uniform(-710.0, 710.0),), of_arrays=0.0),
    Row("cosh", xp.cosh, mpmath.cosh, 0.7, (uniform(-3.0, 3.0),), (*SUBNORMALS, *near(0.3465), -710.4, 37.0), of_arrays=0.0),
    Row("cosh-wide", xp.cosh, mpmath.cosh, 0.7, (uniform(-710.0, 710.0),), of_arrays=0.0),
    Row("asinh", xp.asinh, mpmath.asinh, 0.51, (signed(magnitudes(1e-12, 1e12)),), (*SUBNORMALS, *near(1.0, 1e9), 1.7e308)),
    Row("acosh", xp.acosh, mpmath.acosh, 0.51, (lambda random: 1.0 + magnitudes(1e-16, 1e12)(random),), (*near(1e9), 1.7e308)),
    Row("atanh", xp.atanh, mpmath.atanh, 0.51, (uniform(-1.0, 1.0),), (*SUBNORMALS, *near(1e-9), 1.0 - 2.0**-53)),
    Row("sin", xp.sin, mpmath.sin, 0.8, (uniform(-1e5, 1e5),), (*SUBNORMALS, *near(np.pi, 1e5)), of_arrays=0.0),
    Row("cos", xp.cos, mpmath.cos, 0.8, (uniform(-1e5, 1e5),), (*SUBNORMALS, *near(np.pi / 2, 1e5)), of_arrays=0.0),
    Row("tan", xp.tan, mpmath.tan, 0.8, (uniform(-1e5, 1e5),), (*SUBNORMALS, *near(np.pi / 2, np.pi / 4, 0.67434, 1e5)), of_arrays=0.0),
    Row("sin-far", xp.sin, mpmath.sin, 0.8, (signed(magnitudes(1e5, 1.7e308)),), FAR_FROM_ZERO, of_arrays=0.0),
    Row("cos-far", xp.cos, mpmath.cos, 0.8, (signed(magnitudes(1e5, 1.7e308)),), FAR_FROM_ZERO, of_arrays=0.0),
    Row("tan-far", xp.tan, mpmath.tan, 0.8, (signed(magnitudes(1e5, 1.7e308)),), FAR_FROM_ZERO, of_arrays=0.0),
    Row("erf", special.erf, mpmath.erf, 1.0, (signed(magnitudes(1e-300, 6.0)),), (*SUBNORMALS, *near(0.84375, 1.25, 1.0 / 0.35), -6.5), of_arrays=0.0),
    Row("erfc", special.erfc, mpmath.erfc, 2.0, (uniform(-6.0, 26.0),), (*SUBNORMALS, *near(0.25, 0.84375, 1.25, 1.0 / 0.35), 26.5)),
    Row("atan", xp.atan, mpmath.atan, 0.6, (signed(magnitudes(1e-12, 1e12)),), (*SUBNORMALS, *near(0.4375, 0.6875, 1.0, 2.4375), 1e17, 1.7e308), of_arrays=0.0),
    Row("atan2", xp.atan2, mpmath.atan2, 0.6, (signed(magnitudes(1e-3, 1e3)),) * 2,
        ((1.0, 1.0), (1.0, -1.0), (-7.0, -16.0), (1e-300, 1e300), (1e300, -1e-300), (1.7e308, 1.7e308), (1e-9, -1.0))),
    Row("atan2-wide", xp.atan2, mpmath.atan2, 0.7, (signed(magnitudes(1e-290, 1e290)),) * 2,
        ((5e-324, 5e-324), (5e-324, -1e-323), (1.5e-323, 1e-323), (1.7e308, 1.7e308), (1e308, -1.7e308), (2.2e-308, -1e-310))),
    Row("asin", xp.asin, mpmath.asin, 0.6, (uniform(-1.0, 1.0),), (*SUBNORMALS, *near(0.5)[:-1], 1.0, -1.0, 1.0 - 2.0**-53, 1e-9)),
    Row("acos", xp.acos, mpmath.acos, 0.6, (uniform(-1.0, 1.0),), (*SUBNORMALS, *near(0.5)[:-1], 1.0, -1.0, 1.0 - 2.0**-53, 2.0**-53 - 1.0)),
    Row("hypot", xp.hypot, mpmath.hypot, 0.6, (signed(magnitudes(1e-290, 1e290)),) * 2,
        ((3e-324, 4e-324), (1e-310, 2e-310), (1.2e308, 1.2e308), (1e154, 1e154), (1e200, 1e-200), (1.0, 1e-8), (0.0, 3.5))),
    Row("hypot-near", xp.hypot, mpmath.hypot, 0.6, (uniform(-3.0, 3.0),) * 2, ((3.0, 4.0), (5.0, -12.0))),
    Row("erfinv", special.erfinv, mpmath.erfinv, 2.0, (uniform(-1.0, 1.0),), (1e-300, 1e-9, 0.5, 1.0 - 2.0**-53)),
    Row("erfcinv", special.erfcinv, lambda y: mpmath.erfinv(1 - y), 2.0, (magnitudes(1e-20, 1.9),), (1e-40, 1.0, 0.5)),
    Row("expit", special.expit, lambda x: 1 / (1 + mpmath.exp(-x)), 1.0, (uniform(-700.0, 40.0),)),
    Row("logit", special.logit, lambda p: mpmath.log(p / (1 - p)), 4.0, (uniform(0.0, 1.0),), near(0.25, 0.5, 0.75)),
    Row("log_expit", special.log_expit, lambda x: -mpmath.log1p(mpmath.exp(-x)), 2.0, (uniform(-50.0, 50.0),)),
    Row("entr", special.entr, lambda x: -x * mpmath.log(x), 2.0, (uniform(0.0, 3.0),), near(1.0)),
    Row("rel_entr", special.rel_entr, lambda x, y: x * mpmath.log(x / y), 4.0, (uniform(0.0, 3.0),) * 2,
        ((1.0, 1.0 + 1e-12), (2.0, 2.0 - 1e-9))),
    Row("sinc", xp.sinc, lambda x: mpmath.sin(mpmath.pi * x) / (mpmath.pi * x), 4.0, (uniform(-9.0, 9.0),),
        (0.014, 0.016, 1.0 + 1e-9, 6.0 - 1e-12)),
    Row("polygamma-1", lambda x: special.polygamma(1.0, x), lambda x: mpmath.polygamma(1, x), 8.0, (magnitudes(1e-3, 1e5),)),
    Row("polygamma-5", lambda x: special.polygamma(5.0, x), lambda x: mpmath.polygamma(5, x), 8.0, (magnitudes(1e-3, 1e5),)),
    # These are sums of as many terms as their argument is large.
    Row("iv-0", lambda x: special.iv(0.0, x), lambda x: mpmath.besseli(0, x), 60.0, (uniform(0.0, 100.0),)),
    Row("iv-2.5", lambda x: special.iv(2.5, x), lambda x: mpmath.besseli(2.5, x), 60.0, (uniform(0.0, 100.0),)),
]  # fmt: skip


def _points(row: Row) -> Iterator[tuple[float, ...]]:
    random = np.random.default_rng(list(row.name.encode()))
    for _ in range(POINTS):
        yield tuple(draw(random) for draw in row.arguments)
    for point in row.points:
        yield point if isinstance(point, tuple) else (point,)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_error_in_units_in_the_last_place(row: Row) -> None:
    with mpmath.workprec(300):
        for point in _points(row):
            exact = row.theirs(*map(mpmath.mpf, point))
            nearest, found = float(exact), float(row.ours(*point))
            if math.isinf(nearest):
                assert found == nearest, point
                continue
            array = row.ours(*(np.array([x]) for x in point))
            assert abs(array[0] - found) <= row.of_arrays * math.ulp(nearest) + row.absolute, point
            if abs(mpmath.mpf(found) - exact) <= row.absolute:
                continue
            error = float(abs(mpmath.mpf(found) - exact) / max(math.ulp(nearest), 5e-324))
            assert error <= row.bound, f"{row.name}{point} is {found!r}, not {nearest!r}: {error:.3g} ulp"


@pytest.mark.parametrize("order", [0, 1, 7, 100, 1000])
@pytest.mark.parametrize("kind", ["jn", "yn"])
@pytest.mark.slow
def test_bessel_functions_follow_their_envelope(kind: str, order: int) -> None:
    random, eps = np.random.default_rng(order), 2.0**-52
    ours, theirs = getattr(special, kind), getattr(mpmath, f"bessel{kind[0]}")
    with mpmath.workprec(200):
        for x in [*random.uniform(0.3, 2.0, 8) * max(order, 1), *random.uniform(1.0, 3.0, 2) * 1e3]:
            exact = theirs(order, mpmath.mpf(x))
            size = (
                mpmath.sqrt(mpmath.besselj(order, x) ** 2 + mpmath.bessely(order, x) ** 2) if x > order else abs(exact)
            )
            bound = (8 + order / 4) * eps  # the recurrence over orders rounds once a step
            assert abs(ours(float(order), float(x)) - exact) <= bound * size, (kind, order, x)


@pytest.mark.parametrize("f", [special.jn, special.yn])
def test_bessel_functions_of_orders_that_are_not_followed_are_nan(f: Callable[..., Any]) -> None:
    assert math.isnan(f(2e5, 2e5)) and not math.isnan(f(1e5, 1e5))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # SciPy truncates some orders, and says so
        expected = getattr(scipy.special, f.__name__)(1.5, 1.0)
    np.testing.assert_allclose(f(1.5, 1.0), expected, rtol=1e-14)


@pytest.mark.parametrize("name", ["digamma", "gamma", "gammaln", "cbrt", "logaddexp2", "erfcinv", "beta", "betaln"])
def test_infinities_and_zeros_as_in_the_c_library(name: str) -> None:
    inf, nan = math.inf, math.nan
    cases: dict[str, list[tuple[tuple[float, ...], float]]] = {
        "digamma": [((0.0,), -inf), ((-0.0,), inf), ((-3.0,), nan), ((inf,), inf), ((-inf,), nan), ((nan,), nan)],
        "gamma": [((0.0,), inf), ((-0.0,), -inf), ((-3.0,), nan), ((inf,), inf), ((-inf,), nan), ((180.0,), inf),
                  ((-190.5,), -0.0), ((5.0,), 24.0), ((23.0,), math.factorial(22)), ((1e-320,), inf)],
        "gammaln": [((0.0,), inf), ((-3.0,), inf), ((inf,), inf), ((-inf,), inf), ((1.0,), 0.0), ((2.0,), 0.0)],
        "cbrt": [((0.0,), 0.0), ((-0.0,), -0.0), ((inf,), inf), ((-inf,), -inf), ((27.0,), 3.0), ((nan,), nan)],
        "logaddexp2": [((-1.0, -1.0), 0.0), ((inf, 1.0), inf), ((-inf, 2.0), 2.0), ((-inf, -inf), -inf), ((nan, 0.0), nan)],
        "erfcinv": [((0.0,), inf), ((2.0,), -inf), ((1.0,), 0.0), ((2.5,), nan), ((-0.5,), nan)],
        "beta": [((1.0, 1.0), 1.0), ((0.0, 1.0), inf), ((nan, 1.0), nan)],
        "betaln": [((0.0, 1.0), inf), ((nan, 1.0), nan)],
    }  # fmt: skip
    for arguments, expected in cases[name]:
        found = float(getattr(xp, name)(*arguments))
        same = math.copysign(1.0, found) == math.copysign(1.0, expected)
        assert (found == expected and same) or (math.isnan(found) and math.isnan(expected)), (name, arguments, found)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", ["cbrt", "gamma", "digamma", "erfcinv", "sinc"])
def test_arrays_keep_their_dtype_and_agree_with_numbers(name: str, dtype: str) -> None:
    f, x = getattr(xp, name), np.linspace(0.2, 1.8, 11, dtype=dtype)
    found = f(x)
    assert found.dtype == x.dtype
    np.testing.assert_allclose(found, [f(float(v)) for v in x], rtol=2 * float(np.finfo(dtype).eps))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("shape", [(), (5,), (300, 80)])
@pytest.mark.parametrize("base", [2.0, 0.7, 10])
def test_powers_of_a_number_have_one_value(base: float, shape: tuple[int, ...], dtype: str) -> None:
    """Of arrays of any layout, numbers, variables, recordings and kernels."""
    x = np.asarray(np.random.default_rng(0).standard_normal((*shape, 2))[..., 0] * 5, dtype)
    power = xp.exp2 if base == 2.0 else lambda x: xp.pow(base, x)
    rule = ox.optim.define(lambda xp, p, g: base ** (p + 0.0 * g), name="Power")
    values: list[Any] = []

    def total(x: Any) -> Any:
        values.extend((ox.stop_gradient(power(x)), ox.stop_gradient(base**x)))
        return xp.sum(x)

    ox.grad(total)(x)
    recorded = ox.record(power)
    values += [recorded(x) for _ in range(3)]
    values += [rule().update({"": x.copy()}, {"": x})[""], power(x[...]), power(np.asarray(x, order="F"))]
    values.append(np.array([power(each) for each in x.flat]).reshape(shape))
    expected = power(x.copy())
    assert expected.dtype == dtype
    np.testing.assert_allclose(
        expected, np.power(np.float64(base), x.astype(np.float64)), rtol=2 * float(np.finfo(dtype).eps)
    )
    for value in values:
        np.testing.assert_array_equal(value, expected)
