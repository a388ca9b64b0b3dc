"""The table of SciPy's special functions that the core does not compute: parameters, meaning and partial derivatives.

Values are those of SciPy, or of the array library where it has the function. A row is the parameters, the docstring, and one
derivative for each parameter: a function of ``y``, the result, and of parameters by name; a text where there is none. A
function with several results has a tuple of derivatives for each parameter. Derivatives read functions of SciPy's names from `f`.
Formulas are those of the Digital Library of Mathematical Functions (DLMF).
"""

import functools
import inspect
import math
import types
from collections.abc import Callable, Sequence
from typing import Any

from oxigrad._core import DerivativeError
from oxigrad._typing import Array
from oxigrad.ops.core import primitives as ops
from oxigrad.ops.backends import is_complex
from oxigrad.ops.backends.functions.scipy_functions import of_scipy
from oxigrad.ops.core.guarded import beta_density, branch, digamma_rise, gamma_density, log1p_square, xlogy
from oxigrad.ops.core.host_calls import Elementwise

f: Any = types.SimpleNamespace()
"""All special functions by SciPy's names, for the derivatives."""

cos, cosh, exp, log, log1p, sin, sinh, sqrt, tan, where = (
    getattr(ops, name) for name in "cos cosh exp log log1p sin sinh sqrt tan where".split()
)
for _name in "beta betaln digamma erf erfc expit gamma gammainc gammaincc gammainc_a gammaln iv polygamma".split():
    setattr(f, _name, getattr(ops, _name))

_ROOT_PI, _ROOT_2PI, _DEGREE = math.sqrt(math.pi), math.sqrt(2.0 * math.pi), math.pi / 180.0


def _real(x: Array) -> Array:
    """``x``, for a function with a factor that is not holomorphic."""
    if is_complex(x):
        raise DerivativeError(
            "an exponentially scaled Bessel function is not differentiable with respect to a complex argument"
        )
    return x


def _normal(x: Array) -> Array:
    return exp(-0.5 * x * x) / _ROOT_2PI


def _successes_density(k: Any, n: Any, p: Array) -> Array:
    """The derivative of `bdtrc`, which rounds ``k`` down, and ``n`` towards zero."""
    k, n = ops.floor(1.0 * k), trunc(n)
    return beta_density(k + 1.0, n - k, p)


def _bdtri_slope(k: Any, n: Any, p: Array, y: Array) -> Array:
    """The derivative of the inverse of `bdtr`; of ``1 - y``, an inverse of `betainc`, where ``y`` is rounded to one."""
    k, n = ops.floor(1.0 * k), trunc(n)
    return -1.0 / _density_of(k + 1.0, n - k, y, f.betaincinv(n - k, k + 1.0, p))


def trunc(n: Any) -> Any:
    """An order, or a count, as SciPy's functions of integers take it: rounded towards zero."""
    return ops.trunc(1.0 * n)


def _t_density(df: Array, t: Array) -> Array:
    return exp(-0.5 * (df + 1.0) * log1p_square(t / sqrt(df)) - 0.5 * log(df) - f.betaln(0.5 * df, 0.5))


def _f_density(dfn: Array, dfd: Array, x: Array) -> Array:
    whole = dfn * x + dfd
    return _density_of(0.5 * dfn, 0.5 * dfd, dfn * x / whole, dfd / whole) * (dfn / whole) * (dfd / whole)


def _density_of(a: Array, b: Array, x: Array, rest: Array) -> Array:
    """`beta_density` of ``x``, given ``rest = 1 - x``: of the smaller one."""
    return branch(
        x <= 0.5,
        lambda x, _: beta_density(a, b, x),
        lambda _, rest: beta_density(b, a, rest),
        (x, 0.5, 0.5),
        (rest, 0.5, 0.5),
    )


def _asymptotic(u: Array, sign: float) -> Array:
    """``u + sign 3 u**2 + 15 u**3 ...``, whose factors are odd numbers: the tails of error functions for ``u = 1 / (2 x**2)``."""
    total: Any = 1.0
    for odd in range(33, 1, -2):
        total = 1.0 + sign * odd * u * total
    return u * total


def _far(x: Array, at: float, slope: Callable[[Array, Array], Array], sign: float, factor: complex, y: Array) -> Array:
    """``slope``, and its asymptotic series where ``x`` is beyond ``at``, where its terms cancel."""
    is_far = (ops.abs(x) if at < 0.0 else x) > abs(at)
    series = lambda x, _: factor * _asymptotic(0.5 / (x * x), sign)  # noqa: E731
    return branch(is_far, series, slope, (x, 10.0, 0.0), (y, 0.0, 0.0))


def _erfcx_slope(y: Array, x: Array) -> Array:
    slope = lambda x, y: 2.0 * x * y - 2.0 / _ROOT_PI  # noqa: E731
    return slope(x, y) if is_complex(x) else _far(x, 8.0, slope, -1.0, -2.0 / _ROOT_PI, y)


def _dawsn_slope(y: Array, x: Array) -> Array:
    slope = lambda x, y: 1.0 - 2.0 * x * y  # noqa: E731
    return slope(x, y) if is_complex(x) else _far(x, -8.0, slope, 1.0, -1.0, y)


def _wofz_slope(y: Array, z: Array) -> Array:
    slope = lambda z, y: -2.0 * z * y + 2j / _ROOT_PI  # noqa: E731
    series = lambda z, _: (-2j / _ROOT_PI) * _asymptotic(0.5 / (z * z), 1.0)  # noqa: E731
    return branch(_is_far_above(z), series, slope, (z, 31.0, 0.0), (y, 0.0, 0.0))


def _is_far_above(z: Array) -> Array:
    """Mask of the places where the asymptotic series of the Faddeeva function holds, and no exponential of the real axis underflows."""
    size, height = ops.abs(z), ops.imag(z)
    return ops.logical_or(ops.logical_and(size > 30.0, height >= 0.0), ops.logical_and(size > 8.0, height > 1e-9))


def _wofz_curve(z: Array) -> Array:
    """The second derivative of the Faddeeva function."""
    y = f.wofz(z)
    near = lambda z, y: -2.0 * y - 2.0 * z * (-2.0 * z * y + 2j / _ROOT_PI)  # noqa: E731

    def series(z: Array, _: Array) -> Array:
        u, total = 0.5 / (z * z), 0.0
        for k in range(16, 0, -1):
            total = (2 * k - 1) * u * (total + (2 * k + 1) * (2 * k + 2))
        return 1j / _ROOT_PI * (2.0 + total) / (z * z * z)

    return branch(_is_far_above(z), series, near, (z, 31.0, 0.0), (y, 0.0, 0.0))


def _scaled_slope(v: Any, x: Array, y: Array, sign: float, slope: Array) -> Array:
    """``slope``, the derivative of a scaled Bessel function, and that of Hankel's expansion (DLMF 10.40) where it would cancel."""
    size = ops.abs(x)
    is_far = size > 30.0 + 2.0 * v * v
    safe = where(is_far, x, 1e3 * (1.0 + v * v))
    term, total, weighted = 1.0, 1.0, 0.0
    for k in range(1, 21):
        term = term * (sign * (4.0 * v * v - (2 * k - 1) ** 2) / (8.0 * k)) / ops.abs(safe)
        total, weighted = total + term, weighted + k * term
    return where(is_far, -y * (0.5 + weighted / total) / safe, slope)


def _struve_slope(name: str, sign: float) -> Callable[..., Array]:
    """The derivative of a Struve function (DLMF 11.4.27, 11.4.31), which is finite at zero."""

    def slope(v: Any, x: Array) -> Array:
        own = getattr(f, name)
        power = ops.pow(0.5 * x, v) / (_ROOT_PI * f.gamma(v + 1.5))
        return 0.5 * (own(v - 1.0, x) + sign * own(v + 1.0, x) + power)

    return slope


def _by_x(y: Array, x: Array, series: Sequence[float]) -> Array:
    """``y / x``, and its series in ``x**4`` near zero."""
    near = ops.abs(x) < 1e-3
    return where(near, polynomial(series, where(near, x, 0.0) ** 2), y / where(near, 1.0, x))


def _inverse_a(a: Array, y: Array) -> Array:
    """The derivative of the inverse of `gammainc` by ``a``; zero where the inverse is zero for all ``a``."""
    at_edge = ops.logical_or(y == 0.0, y == math.inf)
    safe = where(at_edge, 1.0, y)
    return where(at_edge, 0.0, -f.gammainc_a(a, safe) / gamma_density(a, safe))


def polynomial(coefficients: Sequence[float], x: Array) -> Array:
    """A polynomial by Horner's rule, coefficients from the constant one on."""
    *rest, y = coefficients
    for coefficient in reversed(rest):
        y = y * x + coefficient
    return y


def near_zero(x: Array, radius: float, coefficients: Sequence[float], beyond: Callable[[Array], Array]) -> Array:
    """A Taylor series within ``radius`` of zero, and ``beyond(x)`` outside, where that loses digits or divides zero by zero."""
    near = ops.abs(x) < radius
    return where(near, polynomial(coefficients, where(near, x, 0.0)), beyond(where(near, 2.0 * radius, x)))


def _fresnel_phase(x: Array) -> Array:
    """``pi / 2 * x**2``, of a real ``x`` less whole turns, which is exact before the product is rounded."""
    square = x * x
    return 0.5 * math.pi * (square if is_complex(x) else square - 4.0 * ops.round(0.25 * square))


def _sinhc(x: Array) -> Array:
    """``sinh(x) / x``."""
    series = [1.0 / math.factorial(k + 1) if k % 2 == 0 else 0.0 for k in range(15)]
    return near_zero(x, 0.5, series, lambda x: sinh(x) / x)


def _sine_quotient(x: Array) -> Array:
    """``sin(x) / x``."""
    series = [(-1.0) ** (k // 2) / math.factorial(k + 1) if k % 2 == 0 else 0.0 for k in range(15)]
    return near_zero(x, 0.5, series, lambda x: sin(x) / x)


# --- elliptic integrals ------------------------------------------------------------------------------------------------


def _elliptic_coefficients(power: float, count: int) -> list[float]:
    """The coefficients of ``(1 - u) ** power``."""
    found = [1.0]
    for k in range(count - 1):
        found.append(found[-1] * (k - power) / (k + 1))
    return found


# The averages of sin^2k over a quarter of a period.
_AVERAGES = [math.comb(2 * k, k) / 4.0**k for k in range(24)]
_K_SLOPES, _E_SLOPES = (
    [scale * math.pi * c * a for c, a in zip(_elliptic_coefficients(power, 22), _AVERAGES[1:], strict=False)]
    for power, scale in ((-1.5, 0.25), (-0.5, -0.25))
)


def _ellipk_slope(m: Array) -> Array:
    """The derivative of K (DLMF 19.4.1), by its series for small ``m``."""
    beyond = lambda m: (f.ellipe(m) / (1.0 - m) - f.ellipk(m)) / (2.0 * m)  # noqa: E731
    return where(m == 1.0, math.inf, near_zero(where(m == 1.0, 0.5, m), 0.1, _K_SLOPES, beyond))


def _ellipe_slope(m: Array) -> Array:
    """The derivative of E (DLMF 19.4.2), by its series for small ``m``."""
    return near_zero(m, 0.1, _E_SLOPES, lambda m: (f.ellipe(m) - f.ellipk(m)) / (2.0 * m))


def _ellipkm1_slope(p: Array) -> Array:
    """The derivative of ``K(1 - p)``, accurate for small ``p``."""
    near = ops.abs(p - 1.0) < 0.1
    far = where(ops.logical_or(near, p == 0.0), 0.5, p)
    beyond = (f.ellipkm1(far) - f.ellipe(1.0 - far) / far) / (2.0 * (1.0 - far))
    return where(p == 0.0, -math.inf, where(near, -polynomial(_K_SLOPES, where(near, 1.0 - p, 0.0)), beyond))


def _small_modulus(phi: Array, m: Array, power: float) -> Array:
    """The integral of ``sin(t)**2 * (1 - m sin(t)**2) ** power`` from 0 to ``phi`` for small ``m``, by its series."""
    sine, cosine, integral, odd_power = sin(phi), cos(phi), phi, sin(phi)
    total: Any = 0.0
    for k, coefficient in enumerate(_elliptic_coefficients(power, 12)):
        integral = ((2 * k + 1) * integral - cosine * odd_power) / (2 * k + 2)
        total = total + coefficient * integral * m**k
        odd_power = odd_power * sine * sine
    return total


def _incomplete(phi: Array, m: Array, power: float, beyond: Callable[[Array], Array]) -> Array:
    near = ops.abs(m) < 0.03
    return where(near, _small_modulus(phi, where(near, m, 0.0), power), beyond(where(near, 0.5, m)))


def _slope_near_one(phi: Array, m: Array) -> Array:
    """The integral of ``sin(t)**2 * (1 - m sin(t)**2) ** -1.5`` from 0 to ``phi``, by its series in ``(1 - m) tan(t)**2``."""
    tangent, secant = tan(phi), 1.0 / cos(phi)
    integral, odd_power = ops.asinh(tangent), tangent
    total: Any = 0.0
    for k, coefficient in enumerate(_elliptic_coefficients(-1.5, 12)):
        integral = (odd_power * secant - (2 * k + 1) * integral) / (2 * k + 2)
        total = total + coefficient * integral * (m - 1.0) ** k
        odd_power = odd_power * tangent * tangent
    return total


def _ellipkinc_slope(phi: Array, m: Array) -> Array:
    """The derivative of F with respect to ``m`` (DLMF 19.4.6)."""

    def beyond(m: Array) -> Array:
        root = sqrt(1.0 - m * sin(phi) ** 2)
        whole = f.ellipeinc(phi, m) / (1.0 - m) - f.ellipkinc(phi, m) - m * sin(2.0 * phi) / (2.0 * (1.0 - m) * root)
        return whole / m

    near = ops.logical_and(ops.abs(1.0 - m) * (1.0 + tan(phi) ** 2) < 0.05, ops.abs(phi) <= 0.5 * math.pi)
    inside = _slope_near_one(where(near, phi, 0.0), where(near, m, 1.0))
    return 0.5 * where(near, inside, _incomplete(phi, where(near, 0.5, m), -1.5, beyond))


def _ellipeinc_slope(phi: Array, m: Array) -> Array:
    """The derivative of E with respect to ``m`` (DLMF 19.4.7)."""
    return -0.5 * _incomplete(phi, m, -0.5, lambda m: (f.ellipkinc(phi, m) - f.ellipeinc(phi, m)) / m)


def _spence_slope(x: Array) -> Array:
    """``log(x) / (1 - x)``."""
    series = [(-1.0) ** (k + 1) / (k + 1) for k in range(14)]
    near = ops.abs(x - 1.0) < 0.05
    beyond = where(near, 2.0, x)
    return where(near, polynomial(series, where(near, x - 1.0, 0.0)), log(beyond) / (1.0 - beyond))


def _expn_slope(n: Any, x: Array) -> Array:
    n = trunc(n)
    return where(n == 0, -exp(-x) * (1.0 / x + 1.0 / (x * x)), -f.expn(n - (n > 0), x))


def _kve_slope(y: Array, v: Any, x: Array) -> Array:
    slope = y - _half(1.0, "kve")(v, x)
    return slope if is_complex(x) else _scaled_slope(v, x, y, 1.0, slope)


def _half(sign: float, name: str) -> Callable[[Any, Array], Array]:
    """Half the sum, or the difference, of a Bessel function of the orders below and above (DLMF 10.6, 10.29)."""

    def slope(v: Any, x: Array) -> Array:
        return 0.5 * (getattr(f, name)(v - 1.0, x) + sign * getattr(f, name)(v + 1.0, x))

    return slope


def _voigt_slope(x: Array, sigma: Array, gamma: Array) -> Array:
    """The derivative by ``x + i gamma`` of the function of which a Voigt profile is the real part."""
    near = lambda c, sigma: _faddeeva_slope(c / (sigma * math.sqrt(2.0))) / (2.0 * _ROOT_PI * sigma * sigma)  # noqa: E731
    return _almost_cauchy(near, lambda c, _: -1j / (math.pi * c * c), x, sigma, gamma)


def _faddeeva_slope(z: Array) -> Array:
    return _wofz_slope(f.wofz(z), z)


def _voigt_sigma(x: Array, sigma: Array, gamma: Array) -> Array:
    """The derivative by the deviation, which is the deviation times the second one by ``x``: the profile solves a heat equation."""
    near = lambda c, sigma: _wofz_curve(c / (sigma * math.sqrt(2.0))) / (2.0 * _ROOT_2PI * sigma * sigma)  # noqa: E731
    return ops.real(_almost_cauchy(near, lambda c, sigma: 2j * sigma / (math.pi * c * c * c), x, sigma, gamma))


def _almost_cauchy(
    near: Callable[..., Array], far: Callable[..., Array], x: Array, sigma: Array, gamma: Array
) -> Array:
    """A function of ``x + i gamma`` and of the deviation, or its limit where that is of no account."""
    c = x + 1j * gamma
    return branch(sigma < 1e-9 * ops.abs(c), far, near, (c, 1.0, 1.0), (sigma, 0.0, 1.0))


def _previous(name: str, *parameters: Any, n: Any, x: Array) -> Array:
    """The polynomial of degree ``n - 1``, zero for ``n = 0``."""
    return where(n == 0, 0.0, getattr(f, name)(n - (n > 0), *parameters, x))


_INTEGER, _NO_FORM = "its integer order", "its {}: the derivative has no closed form"
_ORDER, _A, _B = (_NO_FORM.format(name) for name in ("order", "parameter a", "parameter b"))
_DF, _DFN, _DFD = (_NO_FORM.format(name) for name in ("parameter df", "parameter dfn", "parameter dfd"))
_K, _N = "its count k", "its count n"

Row = tuple[Any, ...]
TABLE: dict[str, Row] = {
    # --- error function and its like
    "erfcx": (
        "x",
        "Scaled complementary error function, ``exp(x**2) * erfc(x)``.",
        _erfcx_slope,
    ),
    "erfi": ("x", "Imaginary error function, ``-i erf(ix)``.", lambda x: 2.0 / _ROOT_PI * exp(x * x)),
    "dawsn": ("x", "Dawson's integral.", _dawsn_slope),
    "wofz": ("z", "Faddeeva function ``exp(-z**2) * erfc(-iz)``, complex.", _wofz_slope),
    "ndtr": ("x", "Cumulative distribution function of the standard normal distribution.", lambda x: _normal(x)),
    "ndtri": ("p", "Inverse of `ndtr`.", lambda y: _ROOT_2PI * exp(0.5 * y * y)),
    "log_ndtr": ("x", "Logarithm of `ndtr`.", lambda x: math.sqrt(2.0 / math.pi) / f.erfcx(x * -math.sqrt(0.5))),
    "ndtri_exp": ("p", "Inverse of `log_ndtr`.", lambda y: math.sqrt(0.5 * math.pi) * f.erfcx(y * -math.sqrt(0.5))),
    "owens_t": (
        "h a",
        "Owen's T function.",
        lambda h, a: -0.5 * _normal(h) * f.erf(a * h * math.sqrt(0.5)),
        lambda h, a: exp(-0.5 * h * h * (1.0 + a * a)) / (2.0 * math.pi * (1.0 + a * a)),
    ),
    "voigt_profile": (
        "x sigma gamma",
        "Voigt profile: the density of a normal number of deviation ``sigma`` plus a Cauchy number of scale ``gamma``.",
        lambda x, sigma, gamma: ops.real(_voigt_slope(x, sigma, gamma)),
        _voigt_sigma,
        lambda x, sigma, gamma: -ops.imag(_voigt_slope(x, sigma, gamma)),
    ),
    "fresnel": (
        "x",
        "Fresnel integrals: the pair S, C.",
        (lambda x: sin(_fresnel_phase(x)), lambda x: cos(_fresnel_phase(x))),
    ),
    # --- exponential integrals
    "expi": ("x", "Exponential integral Ei.", lambda x: exp(x) / x),
    "exp1": ("x", "Exponential integral E1.", lambda x: -exp(-x) / x),
    "expn": ("n x", "Exponential integral of integer order.", _INTEGER, _expn_slope),
    "sici": ("x", "Sine and cosine integrals: the pair Si, Ci.", (_sine_quotient, lambda x: cos(x) / x)),
    "shichi": ("x", "Hyperbolic sine and cosine integrals: the pair Shi, Chi.", (_sinhc, lambda x: cosh(x) / x)),
    "spence": ("x", "Spence's function, the dilogarithm of ``1 - x``.", _spence_slope),
    # --- gamma function and its like
    "loggamma": ("x", "Principal branch of the logarithm of the gamma function.", lambda x: f.digamma(x)),
    "zeta": ("x q", "Hurwitz zeta function.", _NO_FORM.format("exponent x"), lambda x, q: -x * f.zeta(x + 1.0, q)),
    "binom": (
        "n k",
        "Binomial coefficient of real numbers.",
        lambda y, n, k: y * digamma_rise(n - k + 1.0, k),
        lambda y, n, k: y * (f.digamma(n - k + 1.0) - f.digamma(k + 1.0)),
    ),
    "poch": (
        "z m",
        "Pochhammer symbol ``gamma(z + m) / gamma(z)``.",
        lambda y, z, m: y * digamma_rise(z, m),
        lambda y, z, m: y * f.digamma(z + m),
    ),
    "gammaincinv": (
        "a p",
        "Inverse of `gammainc` in its second argument.",
        _inverse_a,
        lambda a, y: 1.0 / gamma_density(a, y),
    ),
    "gammainccinv": (
        "a p",
        "Inverse of `gammaincc` in its second argument.",
        _inverse_a,
        lambda a, y: -1.0 / gamma_density(a, y),
    ),
    "betaincc": ("a b x", "Complement of `betainc`.", _A, _B, lambda a, b, x: -beta_density(a, b, x)),
    "betaincinv": (
        "a b p",
        "Inverse of `betainc`.",
        _A,
        _B,
        lambda a, b, p, y: 1.0 / _density_of(a, b, y, f.betainccinv(b, a, p)),
    ),
    "betainccinv": (
        "a b p",
        "Inverse of `betaincc`.",
        _A,
        _B,
        lambda a, b, p, y: -1.0 / _density_of(a, b, y, f.betaincinv(b, a, p)),
    ),
    # --- Bessel functions
    "jv": ("v x", "Bessel function of the first kind and real order.", _ORDER, _half(-1.0, "jv")),
    "yv": ("v x", "Bessel function of the second kind and real order.", _ORDER, _half(-1.0, "yv")),
    "jve": ("v x", "`jv` of a real argument.", _ORDER, lambda v, x: _half(-1.0, "jve")(v, _real(x))),
    "yve": ("v x", "`yv` of a real argument.", _ORDER, lambda v, x: _half(-1.0, "yve")(v, _real(x))),
    "i0e": ("x", "``exp(-abs(x)) * i0(x)``.", lambda y, x: _scaled_slope(0.0, x, y, -1.0, f.i1e(x) - ops.sign(x) * y)),
    "i1e": (
        "x",
        "``exp(-abs(x)) * i1(x)``.",
        lambda y, x: _scaled_slope(1.0, x, y, -1.0, _half(1.0, "ive")(1.0, x) - ops.sign(x) * y),
    ),
    "ive": (
        "v x",
        "``exp(-abs(x)) * iv(v, x)``.",
        _ORDER,
        lambda y, v, x: _scaled_slope(v, x, y, -1.0, _half(1.0, "ive")(v, x) - ops.sign(_real(x)) * y),
    ),
    "k0": ("x", "Modified Bessel function of the second kind and order 0.", lambda x: -f.k1(x)),
    "k1": ("x", "Modified Bessel function of the second kind and order 1.", lambda x: -_half(1.0, "kv")(1.0, x)),
    "kn": (
        "n x",
        "Modified Bessel function of the second kind and integer order.",
        _INTEGER,
        lambda n, x: -_half(1.0, "kv")(trunc(n), x),
    ),
    "kv": (
        "v x",
        "Modified Bessel function of the second kind and real order.",
        _ORDER,
        lambda v, x: -_half(1.0, "kv")(v, x),
    ),
    "k0e": ("x", "``exp(x) * k0(x)``.", lambda y, x: _scaled_slope(0.0, x, y, 1.0, y - f.k1e(x))),
    "k1e": ("x", "``exp(x) * k1(x)``.", lambda y, x: _scaled_slope(1.0, x, y, 1.0, y - _half(1.0, "kve")(1.0, x))),
    "kve": ("v x", "``exp(x) * kv(v, x)``.", _ORDER, lambda y, v, x: _kve_slope(y, v, x)),
    "struve": ("v x", "Struve function.", _ORDER, _struve_slope("struve", -1.0)),
    "modstruve": ("v x", "Modified Struve function.", _ORDER, _struve_slope("modstruve", 1.0)),
    "ber": ("x", "Kelvin function ber.", lambda x: f.berp(x)),
    "bei": ("x", "Kelvin function bei.", lambda x: f.beip(x)),
    "ker": ("x", "Kelvin function ker.", lambda x: f.kerp(x)),
    "kei": ("x", "Kelvin function kei.", lambda x: f.keip(x)),
    "berp": ("x", "Derivative of the Kelvin function ber.", lambda y, x: -f.bei(x) - _by_x(y, x, (0.0, -1.0 / 16.0))),
    "beip": (
        "x",
        "Derivative of the Kelvin function bei.",
        lambda y, x: f.ber(x) - _by_x(y, x, (0.5, 0.0, -1.0 / 384.0)),
    ),
    "kerp": ("x", "Derivative of the Kelvin function ker.", lambda y, x: -f.kei(x) - y / x),
    "keip": ("x", "Derivative of the Kelvin function kei.", lambda y, x: f.ker(x) - y / x),
    "airy": (
        "x",
        "Airy functions: Ai, its derivative, Bi, its derivative.",
        (lambda y: y[1], lambda y, x: x * y[0], lambda y: y[3], lambda y, x: x * y[2]),
    ),
    # --- elliptic integrals
    "ellipk": ("m", "Complete elliptic integral of the first kind, of the parameter ``m``.", _ellipk_slope),
    "ellipkm1": ("p", "``ellipk(1 - p)``, accurate for small ``p``.", _ellipkm1_slope),
    "ellipe": ("m", "Complete elliptic integral of the second kind.", _ellipe_slope),
    "ellipkinc": (
        "phi m",
        "Incomplete elliptic integral of the first kind.",
        lambda phi, m: 1.0 / sqrt(1.0 - m * sin(phi) ** 2),
        _ellipkinc_slope,
    ),
    "ellipeinc": (
        "phi m",
        "Incomplete elliptic integral of the second kind.",
        lambda phi, m: sqrt(1.0 - m * sin(phi) ** 2),
        _ellipeinc_slope,
    ),
    # --- hypergeometric functions and Lambert's
    "hyp0f1": (
        "v z",
        "Confluent hypergeometric limit function.",
        _NO_FORM.format("parameter v"),
        lambda v, z: f.hyp0f1(v + 1.0, z) / v,
    ),
    "hyp1f1": ("a b x", "Kummer's function M.", _A, _B, lambda a, b, x: a / b * f.hyp1f1(a + 1.0, b + 1.0, x)),
    "hyperu": ("a b x", "Tricomi's function U.", _A, _B, lambda a, b, x: -a * f.hyperu(a + 1.0, b + 1.0, x)),
    "hyp2f1": (
        "a b c z",
        "Gauss' hypergeometric function.",
        _A,
        _B,
        _NO_FORM.format("parameter c"),
        lambda a, b, c, z: a * b / c * f.hyp2f1(a + 1.0, b + 1.0, c + 1.0, z),
    ),
    "wrightomega": ("z", "Wright's omega function: the solution of ``y + log(y) = z``.", lambda y: y / (1.0 + y)),
    # --- distribution functions
    "bdtr": (
        "k n p",
        "Probability of at most ``k`` successes in ``n`` trials.",
        _K,
        _N,
        lambda k, n, p: -_successes_density(k, n, p),
    ),
    "bdtrc": (
        "k n p",
        "Probability of more than ``k`` successes in ``n`` trials.",
        _K,
        _N,
        lambda k, n, p: _successes_density(k, n, p),
    ),
    "bdtri": (
        "k n p",
        "Inverse of `bdtr` in the probability of a success.",
        _K,
        _N,
        lambda k, n, p, y: _bdtri_slope(k, n, p, y),
    ),
    "nbdtr": (
        "k n p",
        "Probability of at most ``k`` failures before ``n`` successes.",
        _K,
        _N,
        lambda k, n, p: beta_density(trunc(n), trunc(k) + 1.0, p),
    ),
    "nbdtrc": (
        "k n p",
        "Probability of more than ``k`` failures before ``n`` successes.",
        _K,
        _N,
        lambda k, n, p: -beta_density(trunc(n), trunc(k) + 1.0, p),
    ),
    "chdtri": (
        "v p",
        "Inverse of `chdtrc` in its second argument.",
        lambda v, y: _inverse_a(0.5 * v, 0.5 * y),
        lambda v, y: -2.0 / gamma_density(0.5 * v, 0.5 * y),
    ),
    "pdtri": ("k p", "Inverse of `pdtr` in the mean.", _K, lambda k, y: -1.0 / gamma_density(trunc(k) + 1.0, y)),
    "stdtr": (
        "df t",
        "Cumulative distribution function of Student's t distribution.",
        _DF,
        lambda df, t: _t_density(df, t),
    ),
    "stdtrit": ("df p", "Inverse of `stdtr` in its second argument.", _DF, lambda df, y: 1.0 / _t_density(df, y)),
    "fdtr": (
        "dfn dfd x",
        "Cumulative distribution function of the F distribution.",
        _DFN,
        _DFD,
        lambda dfn, dfd, x: _f_density(dfn, dfd, x),
    ),
    "fdtrc": (
        "dfn dfd x",
        "Survival function of the F distribution.",
        _DFN,
        _DFD,
        lambda dfn, dfd, x: -_f_density(dfn, dfd, x),
    ),
    "fdtri": ("dfn dfd p", "Inverse of `fdtr`.", _DFN, _DFD, lambda dfn, dfd, y: 1.0 / _f_density(dfn, dfd, y)),
    # --- orthogonal polynomials
    "eval_legendre": (
        "n x",
        "Legendre polynomial.",
        _INTEGER,
        lambda n, x: _previous("eval_gegenbauer", 1.5, n=n, x=x),
    ),
    "eval_jacobi": (
        "n alpha beta x",
        "Jacobi polynomial.",
        _INTEGER,
        _NO_FORM.format("parameter alpha"),
        _NO_FORM.format("parameter beta"),
        lambda n, alpha, beta, x: (
            0.5 * (n + alpha + beta + 1.0) * _previous("eval_jacobi", alpha + 1.0, beta + 1.0, n=n, x=x)
        ),
    ),
    "eval_chebyt": (
        "n x",
        "Chebyshev polynomial of the first kind.",
        _INTEGER,
        lambda n, x: n * _previous("eval_chebyu", n=n, x=x),
    ),
    "eval_chebyu": (
        "n x",
        "Chebyshev polynomial of the second kind.",
        _INTEGER,
        lambda n, x: 2.0 * _previous("eval_gegenbauer", 2.0, n=n, x=x),
    ),
    "eval_gegenbauer": (
        "n alpha x",
        "Gegenbauer polynomial.",
        _INTEGER,
        _NO_FORM.format("parameter alpha"),
        lambda n, alpha, x: 2.0 * alpha * _previous("eval_gegenbauer", alpha + 1.0, n=n, x=x),
    ),
    "eval_hermite": (
        "n x",
        "Hermite polynomial, the physicist's.",
        _INTEGER,
        lambda n, x: 2.0 * n * _previous("eval_hermite", n=n, x=x),
    ),
    "eval_hermitenorm": (
        "n x",
        "Hermite polynomial, the probabilist's.",
        _INTEGER,
        lambda n, x: n * _previous("eval_hermitenorm", n=n, x=x),
    ),
    "eval_laguerre": (
        "n x",
        "Laguerre polynomial.",
        _INTEGER,
        lambda n, x: -_previous("eval_genlaguerre", 1.0, n=n, x=x),
    ),
    "eval_genlaguerre": (
        "n alpha x",
        "Generalized Laguerre polynomial.",
        _INTEGER,
        _NO_FORM.format("parameter alpha"),
        lambda n, alpha, x: -_previous("eval_genlaguerre", alpha + 1.0, n=n, x=x),
    ),
    # --- trigonometric functions of degrees, and powers
    "sindg": ("x", "Sine of an angle in degrees.", lambda x: _DEGREE * f.cosdg(x)),
    "cosdg": ("x", "Cosine of an angle in degrees.", lambda x: -_DEGREE * f.sindg(x)),
    "tandg": ("x", "Tangent of an angle in degrees.", lambda y: _DEGREE * (1.0 + y * y)),
    "cotdg": ("x", "Cotangent of an angle in degrees.", lambda y: -_DEGREE * (1.0 + y * y)),
    "powm1": (
        "x1 x2",
        "``x1**x2 - 1``, accurate near zero.",
        lambda x1, x2: x2 * ops.pow(x1, x2 - 1.0),
        lambda x1, x2: xlogy(ops.pow(x1, x2), x1),
    ),
}


def _function(name: str, names: str, doc: str, *partials: Any) -> Callable[..., Any]:
    """The function of a row of the table."""
    elementwise = Elementwise(name, functools.partial(of_scipy, "special", name), names.split(), partials)

    def function(*args: Array) -> Any:
        return elementwise(*args)

    function.__name__ = function.__qualname__ = name
    function.__module__, function.__doc__ = "oxigrad.ops.special", doc
    parameters = [inspect.Parameter(each, inspect.Parameter.POSITIONAL_ONLY) for each in names.split()]
    vars(function)["__signature__"] = inspect.Signature(parameters)
    return function


FUNCTIONS = {name: _function(name, *row) for name, row in TABLE.items()}
vars(f).update(FUNCTIONS)


riemann_zeta = Elementwise(
    "zeta", functools.partial(of_scipy, "special", "zeta"), ["x"], [_NO_FORM.format("exponent x")]
)


@functools.cache
def lambertw(k: int) -> Elementwise:
    """The branch ``k`` of Lambert's function."""
    branch = lambda: functools.partial(of_scipy("special", "lambertw"), k=k)  # noqa: E731
    return Elementwise("lambertw", branch, ["z"], [lambda y: exp(-y) / (1.0 + y)])
