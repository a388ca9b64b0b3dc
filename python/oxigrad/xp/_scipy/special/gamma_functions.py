"""Rows of the gamma, beta and zeta functions, and of the inverses of the incomplete ones."""

import math

from oxigrad import xp as ops
from oxigrad._typing import Array, Function
from oxigrad.ops.core.guarded import beta_density, digamma_rise, gamma_density
from oxigrad.xp import where
from oxigrad.xp._scipy.guarded import branch
from oxigrad.xp._scipy.special.rows import Row, f


def inverse_slope_by_a(a: Array, y: Array) -> Array:
    """The derivative of the inverse of `gammainc` by ``a``; zero where the inverse is zero for all ``a``."""
    at_edge = ops.logical_or(y == 0.0, y == math.inf)
    safe = where(at_edge, 1.0, y)
    return where(at_edge, 0.0, -f.gammainc_a(a, safe) / gamma_density(a, safe))


def _inverse_slope(a: Array, p: Array, y: Array) -> Array:
    """The derivative of ``y``, the inverse of `gammainc`, by its value ``p``.

    At zero it is the derivative of the first two powers of ``p`` in the inverse. At infinity it is a function that is
    infinite with its derivatives.
    """

    def near(p: Array) -> Array:
        scale, power = ops.exp(ops.gammaln(a + 1.0) / a), 1.0 / a
        further = ops.multiply(2.0 * scale / (a + 1.0), ops.pow(p, 2.0 * power - 1.0))
        return ops.multiply(scale * power, ops.pow(p, power - 1.0) + further)

    at_edge = lambda p, y: branch(  # noqa: E731
        y == 0.0, lambda p, _: near(p), lambda _, y: y, (p, 0.5, 0.5), (y, 0.0, 1.0)
    )
    inside = lambda _, y: ops.exp(y + ops.gammaln(a) - ops.multiply(a - 1.0, ops.log(y)))  # noqa: E731
    is_edge = ops.logical_or(y == 0.0, y == math.inf)
    return branch(is_edge, at_edge, inside, (p, 0.5, 0.5), (y, math.inf, 1.0))


def density_of(a: Array, b: Array, x: Array, rest: Array) -> Array:
    """`beta_density` of ``x``, given ``rest = 1 - x``: of the smaller one."""
    return branch(
        x <= 0.5,
        lambda x, _: beta_density(a, b, x),
        lambda _, rest: beta_density(b, a, rest),
        (x, 0.5, 0.5),
        (rest, 0.5, 0.5),
    )


def _beta_slope(by: Function, a: Array, b: Array, y: Array, rest: Array) -> Array:
    """The derivative of the inverse of `betainc` by a parameter, given ``rest = 1 - y``; zero at zero and one."""
    at_edge = ops.logical_or(y == 0.0, rest == 0.0)
    y, rest = where(at_edge, 0.5, y), where(at_edge, 0.5, rest)
    return where(at_edge, 0.0, -by(a, b, y) / density_of(a, b, y, rest))


# --- products with zeros of the reciprocal gamma function -------------------------------------------------------------


def _wave(x: Array) -> tuple[Array, Array]:
    """``sin(pi * x) / pi`` and ``cos(pi * x)``, exact for whole numbers."""
    nearest = ops.round(x)
    sign, rest = 1.0 - 4.0 * ops.abs(0.5 * nearest - ops.round(0.5 * nearest)), math.pi * (x - nearest)
    return ops.multiply(sign, ops.sin(rest)) / math.pi, ops.multiply(sign, ops.cos(rest))


def _is_pole(x: Array) -> Array:
    return ops.logical_and(x <= 0.0, x == ops.round(x))


def _binom_by_n(y: Array, n: Array, k: Array) -> Array:
    """The derivative of the binomial coefficient by ``n``.

    At its zeros, ``beta(n + 1, k - n) * sin(pi * (n - k + 1)) / pi`` is differentiated.
    """

    def at_zero(n: Array, k: Array, _: Array) -> Array:
        sine, cosine = _wave(n - k + 1.0)
        return f.beta(n + 1.0, k - n) * (cosine - sine * digamma_rise(n + 1.0, k - 2.0 * n - 1.0))

    other = lambda n, k, y: y * digamma_rise(n - k + 1.0, k)  # noqa: E731
    is_zero = ops.logical_and(_is_pole(n - k + 1.0), n >= 0.0)
    return branch(is_zero, at_zero, other, (n, 0.0, 1.0), (k, 1.0, 0.5), (y, 1.0, 1.0))


def _binom_by_k(y: Array, n: Array, k: Array) -> Array:
    """The derivative of the binomial coefficient by ``k``, at its zeros as by ``n``."""

    def at_zero(n: Array, k: Array, _: Array) -> Array:
        sine, cosine = _wave(n - k + 1.0)
        return f.beta(n + 1.0, k - n) * (-cosine - sine * digamma_rise(k - n, n + 1.0))

    other = lambda n, k, y: y * (f.digamma(n - k + 1.0) - f.digamma(k + 1.0))  # noqa: E731
    is_zero = ops.logical_and(_is_pole(n - k + 1.0), n >= 0.0)
    return branch(is_zero, at_zero, other, (n, 0.0, 1.0), (k, 1.0, 0.5), (y, 1.0, 1.0))


def _poch_by_z(y: Array, z: Array, m: Array) -> Array:
    """The derivative of the Pochhammer symbol by ``z``.

    The reflection formula is used at poles of the gamma function of ``z``.
    """

    def at_zero(z: Array, m: Array, _: Array) -> Array:
        sine, cosine = _wave(z)
        slope = cosine + sine * (f.digamma(z + m) - f.digamma(1.0 - z))
        return f.gamma(z + m) * f.gamma(1.0 - z) * slope

    # With an integer number of nonzero factors.
    reflected = lambda z, m, y: y * -digamma_rise(1.0 - z - m, m)  # noqa: E731
    both = ops.logical_and(_is_pole(z), _is_pole(z + m))
    at_pole = lambda z, m, y: branch(  # noqa: E731
        both, reflected, at_zero, (z, -2.0, 0.0), (m, 1.0, 1.0), (y, 1.0, 1.0)
    )
    other = lambda z, m, y: y * digamma_rise(z, m)  # noqa: E731
    return branch(_is_pole(z), at_pole, other, (z, -2.0, 1.0), (m, 1.0, 1.0), (y, 1.0, 1.0))


DIRECT: int = 12
# The Bernoulli numbers of even order 2 to 20, by the factorials of their orders.
BERNOULLI: list[float] = [
    number / math.factorial(2 * k)
    for k, number in enumerate(
        (1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6, -3617 / 510, 43867 / 798, -174611 / 330), start=1
    )
]


def zeta_slope(x: Array, q: Array) -> Array:
    """The derivative of Hurwitz' zeta function by its exponent, for positive ``q``.

    It is computed by the formula of Euler and Maclaurin (DLMF 25.11.28).
    """
    total: Array = 0.0
    for n in range(DIRECT):
        total = total - ops.log(q + n) * ops.pow(q + n, -x)
    x = ops.minimum(x, 1e4)  # beyond, the rest is zero
    w, before = q + DIRECT, x - 1.0
    # The part of the sum from w on, by w**-x, and its derivative; products of x + j, and their derivatives.
    rest, slope = w / before + 0.5, -w / (before * before)
    product, rise, power = x, 1.0, 1.0 / w
    for k, number in enumerate(BERNOULLI):
        rest, slope = rest + number * product * power, slope + number * rise * power
        for j in (2 * k + 1, 2 * k + 2):
            product, rise = product * (x + j), rise * (x + j) + product
        power = power / (w * w)
    return total + ops.pow(w, -x) * (slope - ops.log(w) * rest)


def riemann_slope(x: Array) -> Array:
    """The derivative of Riemann's zeta function; by its reflection (DLMF 25.4.1) where terms would cancel."""

    def reflected(x: Array) -> Array:
        angle, rest = 0.5 * math.pi * x, 1.0 - x
        scale = 2.0 * ops.pow(2.0 * math.pi, x - 1.0) * f.gamma(rest)
        by_factors = 0.5 * math.pi * ops.cos(angle) + ops.sin(angle) * (math.log(2.0 * math.pi) - f.digamma(rest))
        return scale * (by_factors * f.zeta(rest, 1.0) - ops.sin(angle) * zeta_slope(rest, 1.0))

    return branch(x > -1.0, lambda x: zeta_slope(1.0 * x, 1.0), reflected, (x, 2.0, -2.0))


ROWS: dict[str, Row] = {
    "loggamma": ("x", "Principal branch of the logarithm of the gamma function.", lambda x: f.digamma(x)),
    "zeta": (
        "x q",
        "Hurwitz zeta function.",
        lambda x, q: zeta_slope(x, q),
        lambda x, q: -x * f.zeta(x + 1.0, q),
    ),
    "zetac": ("x", "Riemann's zeta function less one.", lambda x: riemann_slope(x)),
    "binom": (
        "n k",
        "Binomial coefficient of real numbers.",
        _binom_by_n,
        _binom_by_k,
    ),
    "poch": (
        "z m",
        "Pochhammer symbol ``gamma(z + m) / gamma(z)``.",
        _poch_by_z,
        lambda y, z, m: y * f.digamma(z + m),
    ),
    "gammaincinv": (
        "a p",
        "Inverse of `gammainc` in its second argument.",
        inverse_slope_by_a,
        _inverse_slope,
    ),
    "gammainccinv": (
        "a p",
        "Inverse of `gammaincc` in its second argument.",
        inverse_slope_by_a,
        lambda a, p, y: -_inverse_slope(a, 1.0 - p, y),
    ),
    "betaincc": (
        "a b x",
        "Complement of `betainc`.",
        lambda a, b, x: -f.betainc_a(a, b, x),
        lambda a, b, x: -f.betainc_b(a, b, x),
        lambda a, b, x: -beta_density(a, b, x),
    ),
    "betaincinv": (
        "a b p",
        "Inverse of `betainc`.",
        lambda a, b, p, y: _beta_slope(f.betainc_a, a, b, y, f.betainccinv(b, a, p)),
        lambda a, b, p, y: _beta_slope(f.betainc_b, a, b, y, f.betainccinv(b, a, p)),
        lambda a, b, p, y: 1.0 / density_of(a, b, y, f.betainccinv(b, a, p)),
    ),
    "betainccinv": (
        "a b p",
        "Inverse of `betaincc`.",
        lambda a, b, p, y: _beta_slope(f.betainc_a, a, b, y, f.betaincinv(b, a, p)),
        lambda a, b, p, y: _beta_slope(f.betainc_b, a, b, y, f.betaincinv(b, a, p)),
        lambda a, b, p, y: -1.0 / density_of(a, b, y, f.betaincinv(b, a, p)),
    ),
}
