"""Rows of the gamma, beta and zeta functions, and of the inverses of the incomplete ones."""

import math

from oxigrad._typing import Array
from oxigrad.ops.core import primitives as ops
from oxigrad.ops.core.guarded import beta_density, branch, digamma_rise, gamma_density
from oxigrad.ops.core.primitives import where
from oxigrad.ops.special.rows import NO_FORM, A, B, Row, f


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


ROWS: dict[str, Row] = {
    "loggamma": ("x", "Principal branch of the logarithm of the gamma function.", lambda x: f.digamma(x)),
    "zeta": ("x q", "Hurwitz zeta function.", NO_FORM.format("exponent x"), lambda x, q: -x * f.zeta(x + 1.0, q)),
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
