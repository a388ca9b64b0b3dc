"""Rows of the gamma, beta and zeta functions, and of the inverses of the incomplete ones."""

import math
from typing import Any

from oxigrad._typing import Array
from oxigrad.ops.core import primitives as ops
from oxigrad.ops.core.guarded import beta_density, branch, digamma_rise, gamma_density
from oxigrad.ops.core.primitives import where
from oxigrad.ops.special.rows import A, B, Row, f


def inverse_slope_by_a(a: Array, y: Array) -> Array:
    """The derivative of the inverse of `gammainc` by ``a``; zero where the inverse is zero for all ``a``."""
    at_edge = ops.logical_or(y == 0.0, y == math.inf)
    safe = where(at_edge, 1.0, y)
    return where(at_edge, 0.0, -f.gammainc_a(a, safe) / gamma_density(a, safe))


def density_of(a: Array, b: Array, x: Array, rest: Array) -> Array:
    """`beta_density` of ``x``, given ``rest = 1 - x``: of the smaller one."""
    return branch(
        x <= 0.5,
        lambda x, _: beta_density(a, b, x),
        lambda _, rest: beta_density(b, a, rest),
        (x, 0.5, 0.5),
        (rest, 0.5, 0.5),
    )


DIRECT: int = 12
# The Bernoulli numbers of even order 2 to 20, by the factorials of their orders.
BERNOULLI: list[float] = [
    number / math.factorial(2 * k)
    for k, number in enumerate(
        (1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6, -3617 / 510, 43867 / 798, -174611 / 330), start=1
    )
]


def zeta_slope(x: Array, q: Array) -> Array:
    """The derivative of Hurwitz' zeta function by its exponent, by the formula of Euler and Maclaurin (DLMF 25.11.28), for positive ``q``."""
    total: Any = 0.0
    for n in range(DIRECT):
        total = total - ops.log(q + n) * ops.pow(q + n, -x)
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
        inverse_slope_by_a,
        lambda a, y: 1.0 / gamma_density(a, y),
    ),
    "gammainccinv": (
        "a p",
        "Inverse of `gammaincc` in its second argument.",
        inverse_slope_by_a,
        lambda a, y: -1.0 / gamma_density(a, y),
    ),
    "betaincc": ("a b x", "Complement of `betainc`.", A, B, lambda a, b, x: -beta_density(a, b, x)),
    "betaincinv": (
        "a b p",
        "Inverse of `betainc`.",
        A,
        B,
        lambda a, b, p, y: 1.0 / density_of(a, b, y, f.betainccinv(b, a, p)),
    ),
    "betainccinv": (
        "a b p",
        "Inverse of `betaincc`.",
        A,
        B,
        lambda a, b, p, y: -1.0 / density_of(a, b, y, f.betaincinv(b, a, p)),
    ),
}
